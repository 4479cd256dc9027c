"""Tar shards behind URLs as a source in blocks.

>>> shards = millrace.RemoteShards("s3://bucket/train-{0000..0099}.tar", label="cls", columns=["json"])
>>> loader = millrace.torch.Loader(shards, millrace.Recipe.train(224), shuffle="blocks")
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from millrace._blocks.source import BlockSource
from millrace._core.listing_bar import ListingBar
from millrace._data.endings import DECODED
from millrace._remote.indexes import indexed
from millrace._remote.objects import objects_of
from millrace._remote.shard_blocks import BLOCK, blocks_of, stretches_of
from millrace._remote.shard_values import Labels, Values, labels_in
from millrace._shards.fields import Keys
from millrace._shards.reads import Pieces
from millrace._shards.shards import KEY, extensions_of
from millrace._shards.table import table_of
from millrace.encoded import Row
from millrace.errors import InvalidRequest

_AT_ONCE = 8  # blocks, of mostly two ranges each


class RemoteShards(BlockSource):
    """Tar shards of an object store or a web server, as a loader's dataset with ``shuffle="blocks"``.

    The daemon reads no URL: this process does.

    Samples, labels and columns are those of ``Shards``. A block is some 8 to 15 MiB of a shard. Each epoch, and each rank of it, reads all
    blocks. For ``storage_options`` and credentials see fsspec's package of the scheme: s3fs, gcsfs, huggingface_hub, aiohttp.

    Where members lie is said by the index beside a shard (``train-0000.idx``, which ``python -m millrace index`` makes before shards are
    copied to the store; DALI's are taken, too). Without one the first opening reads the whole shard, once for a host and its user: the
    index is kept in ``$XDG_CACHE_HOME/millrace/shards``. Memory: about 30 bytes a sample and those of its image's name, 16 for each column.
    """

    at_once = _AT_ONCE

    def __init__(
        self,
        source: Any,
        *,
        image: str | Sequence[str] = DECODED,
        label: str | None = None,
        columns: Iterable[str] = (),
        classes: Sequence[str] = (),
        strict: bool = False,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        """Reads the indexes; makes those that are missing.

        Args:
            source: a URL, ``s3://``, ``gs://``, ``hf://``, ``https://``: of an archive, a folder of them (``.tar``), several as
                ``train-{0000..0099}.tar`` or ``train-*.tar``; or a list of these. Order: as named; of folders and ``*`` that of the names.
            image: as of ``Shards``.
            label: as of ``Shards``. Texts that are no numbers need ``classes``. What the index does not say is read with the images: a
                label that is none of these ends the loop then.
            columns: as of ``Shards``.
            classes: names of the labels; then labels that are texts become positions in them.
            strict: as of ``Shards``.
            storage_options: what fsspec opens the store with: credentials, endpoint and the like. None: what the environment says.

        Raises:
            InvalidRequest: no shards or no images; a compressed archive; a label that is missing or no number; says which.
            NotFound, PermissionDenied: a shard is not there, or cannot be read with these credentials.
            Unsupported: a scheme that is not read, or a package that is missing.
            OSError: the store fails.
        """
        if isinstance(classes, str):
            raise InvalidRequest(
                "shards: classes has the names of the labels; of shards behind URLs not all are read before the first loop"
            )
        images, others = extensions_of(image, "image"), extensions_of(columns, "columns") if columns else []
        self._objects = objects_of(source, (".tar",), "shards", storage_options)
        with ListingBar(f"{len(self._objects)} shards", "indexing", " shards") as bar:
            table = table_of(indexed(self._objects, bar), images)
        self._images = table.pieces(table.images)
        self._names = table.parts().members
        self._labels: Labels | None = labels_in(table, label, classes)
        self._others = [Keys(self._names) if name == KEY else Values(table.pieces(table.members(name)), name) for name in others]  # type: ignore[arg-type]
        table.report(strict)
        self.classes = tuple(classes)
        self.columns = (*(["label"] if self._labels is not None else []), *others)
        self._wanted = [self._images, *(one.pieces for one in (self._labels, *self._others) if isinstance(one, Values))]
        self._first, self._bytes = blocks_of(self._wanted, BLOCK)
        told = repr((images, label, self.columns, self.classes, self._first.tolist(), [one.identity for one in self._objects]))
        self._fingerprint = hashlib.sha256(told.encode("utf-8", "surrogateescape")).hexdigest()

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Samples of each block."""
        return np.diff(self._first)

    @property
    def block_bytes(self) -> NDArray[np.int64]:
        """Of the members that are wanted, and what lies between them."""
        return self._bytes

    @property
    def fingerprint(self) -> str:
        """Of the shards' URLs, sizes and versions, and of what is wanted."""
        return self._fingerprint

    @property
    def shards(self) -> tuple[str, ...]:
        """The archives' URLs."""
        return tuple(one.url for one in self._objects)

    def name_of(self, block: int) -> str:
        """``s3://bucket/train-0.tar[1536+8388608]``."""
        stretches = stretches_of(self._taken(block)).pieces
        begin = stretches[0][0]
        return f"{self._object_of(block).name}[{begin}+{sum(stretches[-1]) - begin}]"

    def read(self, block: int, stop: threading.Event | None = None) -> list[Row]:
        """The images lie in the block's own memory.

        Raises:
            InvalidRequest: a label or a column that is not what its extension says; names it.
        """
        stretches = stretches_of(self._taken(block))
        read = self._object_of(block).read(stretches.pieces, stop)
        rows = []
        for sample in range(int(self._first[block]), int(self._first[block + 1])):

            def member(pieces: Pieces, sample: int = sample) -> memoryview | None:
                length = int(pieces.lengths[sample])
                return None if length < 0 else stretches.view(read, int(pieces.offsets[sample]), length)

            values: list[Any] = [] if self._labels is None else [self._labels.value(sample, member)]
            values += [one[sample] if isinstance(one, Keys) else one.value(sample, member) for one in self._others]
            image = member(self._images)
            rows.append(Row(b"" if image is None else image, tuple(values), 0))
        return rows

    def _object_of(self, block: int) -> Any:
        return self._objects[int(self._images.which[self._first[block]])]

    def _taken(self, block: int) -> list[Pieces]:
        samples = slice(int(self._first[block]), int(self._first[block + 1]))
        return [one.taken(np.arange(samples.start, samples.stop)) for one in self._wanted]

    def __repr__(self) -> str:
        more = len(self._objects) - 1
        return f"<millrace.RemoteShards {self._objects[0].name}{f' and {more} more' if more else ''}: {len(self)}>"
