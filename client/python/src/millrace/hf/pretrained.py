"""From a model's folder to a processor that takes the place of transformers' own."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from typing import Any

from millrace._recipe.dtype import AnyDType
from millrace._wire.messages import path_text
from millrace.client import Client
from millrace.errors import NotFound
from millrace.hf._families.config import load
from millrace.hf.processor import ImageProcessor

_OF_PROCESSOR = "processor_config.json"  # transformers 5 may write the image processor into it; then this counts
_OF_IMAGES = "preprocessor_config.json"


def from_pretrained(
    folder: str | os.PathLike[str] | Mapping[str, Any],
    *,
    client: Client | None = None,
    dtype: AnyDType | None = None,
    slots: int = 4,
    slot_bytes: int | None = None,
    name: str = "image processor",
    **overrides: Any,
) -> Any:
    """A model's image processor, in the place of ``AutoImageProcessor.from_pretrained(folder, backend="pil")``.

    Where ``transformers`` 5 is installed, what comes is of a subclass of its own class for that model, so that ``CLIPProcessor``,
    ``Qwen2VLProcessor`` and all others take it, and it has their attributes and methods (``size``, ``merge_size``,
    ``get_number_of_image_patches``, ``save_pretrained``, ...). It is called as theirs are, with their keyword arguments, and gives
    their ``BatchFeature``; beside that it has ``copy=``, ``priority=``, ``timeout=``, ``acall``, ``recipe`` and ``close`` as
    ``ImageProcessor`` has, and takes what that takes as images. Without ``transformers`` it is an ``ImageProcessor``.

    Args:
        folder: a downloaded model, or its preprocessor_config.json, or what that holds. Nothing is downloaded. Of a folder's
            processor_config.json the part "image_processor" counts before the other file, as for ``transformers``.
        client: as for ``ImageProcessor.from_config``, as are ``dtype``, ``slots``, ``slot_bytes`` and ``name``.
        dtype: of ``pixel_values``.
        slots: calls under way at once.
        slot_bytes: room for one call.
        name: of its session.
        overrides: keys that replace the configuration's.

    Raises:
        NotFound: there is no such folder or file, or the folder has no such file.
        Unsupported: a processor, a key or a value that is not supported; the message names it. A ``transformers`` that is too old.
        InvalidRequest: a value that makes no sense; the message names its key.
    """
    source = folder if isinstance(folder, Mapping) else _file_of(os.fspath(folder))
    engine = ImageProcessor.from_config(source, client=client, dtype=dtype, slots=slots, slot_bytes=slot_bytes, name=name, **overrides)
    if importlib.util.find_spec("transformers") is None:
        return engine
    from millrace.hf.drop_in import drop_in

    return drop_in(engine)


def _file_of(path: str) -> str:
    if os.path.isfile(path):
        return path
    if not os.path.isdir(path):
        shown = path_text(path)
        raise NotFound(
            f"{shown}: no such folder or file here, and Millrace downloads nothing: get a model with "
            f'huggingface_hub.snapshot_download("{shown}") and give the folder that it returns'
        )
    both, images = os.path.join(path, _OF_PROCESSOR), os.path.join(path, _OF_IMAGES)
    if os.path.isfile(both) and (not os.path.isfile(images) or "image_processor_type" in load(both)[1]):
        return both
    if os.path.isfile(images):
        return images
    raise NotFound(f"{path_text(path)}: has neither {_OF_IMAGES} nor {_OF_PROCESSOR}; is it the folder of a model that sees images?")
