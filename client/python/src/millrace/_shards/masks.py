"""Images and masks that are members of one sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from millrace._data.file_parts import FileParts
from millrace._shards.sources import extensions_of
from millrace._shards.table import opened
from millrace._wire.messages import is_url, path_text
from millrace.errors import InvalidRequest


class ImagesAndMasks(NamedTuple):
    """As ``Pairs`` takes them: mask i is that of image i."""

    images: FileParts
    masks: FileParts


def images_and_masks(source: Any, image: str | Sequence[str], mask: str | Sequence[str]) -> ImagesAndMasks:
    """The images of shards and their masks. Warns as ``Shards``.

    Raises:
        InvalidRequest: an image has no mask; says which. Else as ``Shards``.
    """
    first = next(iter(source), "") if isinstance(source, (list, tuple)) else source
    if isinstance(first, str) and is_url(first):
        raise InvalidRequest(f"Pairs: {path_text(first)} is a URL, and pairs are read by the daemon: copy the shards beneath its roots")
    table = opened(source, extensions_of(image, "image"))
    wanted = [extension.encode() for extension in extensions_of(mask, "mask")]
    masks = [shard.members.chosen(wanted)[0][samples] for shard, samples in zip(table.shards, table.samples, strict=True)]
    for shard, images, found in zip(table.shards, table.images, masks, strict=True):
        missing = np.flatnonzero(found < 0)
        if len(missing):
            raise InvalidRequest(
                f"Pairs: {len(missing)} of {len(images)} images in {path_text(shard.path)} have no mask, such as "
                f"{path_text(shard.members.name(int(images[missing[0]])))}; name its extension in mask="
            )
    table.report(strict=False)
    return ImagesAndMasks(table.parts(), table.parts(masks))
