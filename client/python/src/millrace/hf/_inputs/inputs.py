"""What a caller may give as an image, as what the daemon takes: a file's bytes, a path, or raw pixels behind a header."""

from __future__ import annotations

import binascii
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_to_bytes

import numpy as np
from numpy.typing import NDArray

from millrace._wire.messages import is_url, path_text
from millrace.errors import InvalidRequest
from millrace.hf._inputs.pixels import Layout, of_array, of_picture
from millrace.hf._inputs.transparent import on_white
from millrace.hf._plans.plans import Plan
from millrace.samples import Path, Source

_KINDS = "a file's bytes, its path, an open file, a data URL, a PIL image, a NumPy array or a PyTorch tensor"
_DATA_URL = re.compile("data:[a-z]+/[a-z0-9.+-]+[;,]", re.IGNORECASE)
_LONGEST_PATH = 4096


@dataclass(frozen=True)
class Reading:
    """How images are read.

    Attributes:
        to_rgb: those that are given as pixels become RGB, transparent ones on white; False: they must have three channels, which are
            taken as they are.
        layout: of arrays and tensors, ``"channels_first"`` or ``"channels_last"``; None: what it looks like.
        on_white: a transparent colour of an encoded image is laid on white; False: it is shown. All else that is encoded becomes RGB
            whatever is said here.
        advice: what to do about other channels, where ``to_rgb`` is false.
    """

    to_rgb: bool = True
    layout: Layout | None = None
    on_white: bool = True
    advice: str = "convert it to RGB, or say do_convert_rgb=True"


@dataclass(frozen=True)
class Given:
    """The images of one call.

    Attributes:
        images: sources, or lists of them for a plan that knows rows.
        names: what to call each of them in messages, row by row.
    """

    images: list[Any]
    names: list[str]


def given(images: Any, plan: Plan, reading: Reading) -> Given:
    """The caller's images as ``plan`` and the daemon take them. An object that comes more than once is read once.

    Raises:
        InvalidRequest: there is none, or one is of no kind that is known; names it and says what to give.
    """
    several, alone = _several(images)
    rows = any(map(is_row, several))
    if rows and not all(map(is_row, several)):
        raise InvalidRequest("images: a list of images, or a list of lists of images; this one mixes both")
    if rows and plan.alone:
        crowded = next((i for i, row in enumerate(several) if len(row) > 1), None)
        if crowded is not None:
            told = "which transformers squares instead of cutting them into tiles; give a list of images, or rows of one image each"
            raise InvalidRequest(f"images[{crowded}]: is a row of {len(several[crowded])} images, {told}")
    flat = [image for row in several for image in row] if rows else several
    if not flat:
        raise InvalidRequest("images: there must be at least one")
    names = ["the image"] if alone else _names(several) if rows else [f"images[{i}]" for i in range(len(several))]
    read: dict[int, Source] = {}
    sources = [_once(image, name, reading, read) for image, name in zip(flat, names, strict=True)]
    if not rows or type(plan).flat is Plan.flat:
        return Given(sources, names)
    left = iter(sources)
    return Given([[next(left) for _ in row] for row in several], names)


def taken(image: Any, name: str, reading: Reading) -> Source:
    """One image as what the daemon takes. Raises as ``given``."""
    if isinstance(image, np.ndarray):
        return of_array(image, name, reading.to_rgb, reading.layout, reading.advice)
    if _is_a(image, "PIL.Image", "Image"):
        source = _undecoded(image)
        if source is None:
            return of_picture(image, name, reading.to_rgb, reading.advice)
    elif _is_a(image, "torch", "Tensor"):
        return of_array(_array(image), name, reading.to_rgb, reading.layout, reading.advice)
    else:
        source = encoded(image, name)
    return on_white(source, name) if reading.on_white else source


def _undecoded(image: Any) -> Source | None:
    """What an image of PIL's was made of that nobody has decoded, and so nobody has changed; None: it has pixels."""
    source: Source | None = getattr(image, "millrace_source", None)
    return source if source is not None and image._im is None and image.info.get("transparency") is None else None


def encoded(image: Any, name: str) -> Source:
    """An encoded image as bytes or a path. Raises as ``given``."""
    if isinstance(image, bytes):
        return image
    if isinstance(image, str):
        return _of_text(image, name)
    if isinstance(image, (Path, os.PathLike)):
        return image
    if isinstance(image, (bytearray, memoryview)):
        view = memoryview(image)
        return view.cast("B") if view.c_contiguous else bytes(view)
    if callable(getattr(image, "read", None)):
        return _of_file(image, name)
    raise InvalidRequest(f"{name}: must be {_KINDS}; is a {type(image).__module__}.{type(image).__qualname__}")


def is_encoded(image: Any) -> bool:
    """Whether it is an image, or may be one, whose pixels nobody in this process has yet."""
    return isinstance(image, (str, Path, os.PathLike, bytes, bytearray, memoryview)) or callable(getattr(image, "read", None))


def is_row(images: Any) -> bool:
    """Whether it is several images: a list or a tuple, but no ``millrace.Path``, which is a tuple, too."""
    return isinstance(images, (list, tuple)) and not isinstance(images, Path)


def _several(images: Any) -> tuple[list[Any], bool]:
    """A list of images or of lists of images, and whether it was one image. An array of four dimensions is a list of images."""
    if _is_batch(images):
        return list(images), False
    if not is_row(images):
        return [images], True
    return [list(one) if _is_batch(one) else one for one in images], False


def _is_batch(image: Any) -> bool:
    return (isinstance(image, np.ndarray) or _is_a(image, "torch", "Tensor")) and image.ndim == 4


def _names(rows: Sequence[Sequence[Any]]) -> list[str]:
    return [f"images[{i}][{j}]" for i, row in enumerate(rows) for j in range(len(row))]


def _once(image: Any, name: str, reading: Reading, read: dict[int, Source]) -> Source:
    source = read.get(id(image))
    if source is None:
        source = read[id(image)] = taken(image, name, reading)
    return source


def _is_a(image: Any, module: str, name: str) -> bool:
    """Whether it is of that class, which is not imported for it: where nobody has, there is no such object."""
    of = getattr(sys.modules.get(module), name, None)
    return of is not None and isinstance(image, of)


def _array(tensor: Any) -> NDArray[Any]:
    tensor = tensor.detach().cpu()
    array: NDArray[Any] = (tensor.float() if tensor.is_floating_point() else tensor).numpy()
    return array


def _of_text(text: str, name: str) -> Source:
    if _DATA_URL.match(text):
        return _of_data_url(text, name)
    if is_url(text):
        raise InvalidRequest(f"{name}: is a URL ({path_text(text[:40])}), not a path; fetch it, and give the file's bytes")
    if len(text) > _LONGEST_PATH:
        told = "too many for a path; base64 is given as data:image/jpeg;base64,..."
        raise InvalidRequest(f"{name}: a str of {len(text)} letters is {told}")
    return text


def _of_data_url(url: str, name: str) -> bytes:
    head, comma, content = url.partition(",")
    if not comma or not head.lower().endswith(";base64"):
        raise InvalidRequest(
            f"{name}: is a data URL without base64 ({path_text(url[:40])}): give data:image/jpeg;base64,... or the file's bytes"
        )
    try:
        image = binascii.a2b_base64(unquote_to_bytes(content) if "%" in content else content)
    except (binascii.Error, ValueError) as why:
        raise InvalidRequest(f"{name}: is a data URL whose base64 is broken ({why})") from why
    if not image:
        raise InvalidRequest(f"{name}: is a data URL without content")
    return image


def _of_file(file: Any, name: str) -> bytes:
    """The rest of an open file, which is left where it was if it can be."""
    try:
        at = file.tell() if getattr(file, "seekable", bool)() else None
        content = file.read()
        if at is not None:
            file.seek(at)
    except (OSError, ValueError, AttributeError) as why:
        raise InvalidRequest(f"{name}: is a file that cannot be read ({why}); give its bytes or its path") from why
    if isinstance(content, str):
        raise InvalidRequest(f'{name}: is a file opened as text; open it with mode "rb"')
    if not isinstance(content, (bytes, bytearray, memoryview)):
        raise InvalidRequest(f"{name}: is a {type(file).__qualname__} whose read() gives no bytes")
    if not content:
        raise InvalidRequest(f"{name}: is a file at its end, or an empty one: seek(0) before")
    return bytes(content)
