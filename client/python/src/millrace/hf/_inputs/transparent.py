"""Encoded images with one colour that counts as transparent: PNG's chunk tRNS, GIF's graphic control extension.

The daemon shows that colour, as ``transformers.image_utils.load_image()`` does, which keeps what it is in ``info``; ``convert_to_rgb``
lays it on white afterwards. So these are decoded here, with Pillow, by the same steps. Transparency of any other kind ends in
``load_image()``.
"""

from __future__ import annotations

import io
import os
import stat
import struct
from collections.abc import Iterator
from typing import Any, BinaryIO, cast

from millrace._wire.messages import path_text
from millrace.errors import InvalidRequest, Unsupported
from millrace.hf._inputs.pixels import of_picture
from millrace.samples import Path, Source

_PNG = b"\x89PNG\r\n\x1a\n"
_GIF = (b"GIF87a", b"GIF89a")
_NAMED_SO = (".png", ".apng", ".gif")
_MOST_BLOCKS = 100_000  # looked at, lest somebody's file keeps this process busy
_ON_WHITE = "has a transparent colour, which transformers lays on white"


def on_white(source: Source, name: str) -> Source:
    """What the daemon takes in its place: raw pixels where the file has a transparent colour, else ``source`` itself.

    Raises:
        InvalidRequest: it has one, and Pillow cannot read it; or it is a path to a PNG or GIF that cannot be looked into here.
        Unsupported: it has one, and Pillow is not installed.
    """
    if not isinstance(source, (bytes, bytearray, memoryview)):
        return _of_path(source, name)
    if bytes(source[:6]) in _GIF or bytes(source[:8]) == _PNG:
        file = io.BytesIO(source)
        if _has_one(file, name):
            return _decoded(file, name)
    return source


def _of_path(source: Any, name: str) -> Source:
    path = os.fsdecode(source.path if isinstance(source, Path) else os.fspath(source))
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return cast(Source, source)
            return _decoded(file, name) if _has_one(file, name) else cast(Source, source)
    except (OSError, ValueError) as why:
        if isinstance(why, PermissionError) or not path.lower().endswith(_NAMED_SO):
            return cast(Source, source)  # the daemon says what is wrong with it
        told = getattr(why, "strerror", None) or why
        raise InvalidRequest(
            f"{name}: {path_text(path)} cannot be read here ({told}), and may have a transparent colour, which transformers lays on white: "
            "give the file's bytes, or say do_convert_rgb=False, which leaves that colour as it is"
        ) from why


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)  # for a writer of a FIFO


def _has_one(file: BinaryIO, name: str) -> bool:
    """Of a file at its beginning."""
    first = file.read(13)
    if first[:6] in _GIF:
        if len(first) == 13 and first[10] & 0x80:
            file.seek(3 << ((first[10] & 7) + 1), os.SEEK_CUR)  # the palette
        blocks = _of_gif(file)
    elif first[:8] == _PNG:
        file.seek(8)
        blocks = _of_png(file)
    else:
        return False
    for number, has_one in enumerate(blocks):
        if has_one:
            return True
        if number == _MOST_BLOCKS:
            raise InvalidRequest(f"{name}: has more than {_MOST_BLOCKS} blocks before its pixels; write it anew")
    return False


def _of_png(file: BinaryIO) -> Iterator[bool]:
    """Of each chunk before the pixels, whether it is the one."""
    while len(head := file.read(8)) == 8:
        length, kind = struct.unpack(">I4s", head)
        if kind in (b"IDAT", b"IEND"):
            return
        yield kind == b"tRNS"
        file.seek(length + 4, os.SEEK_CUR)  # and the checksum


def _of_gif(file: BinaryIO) -> Iterator[bool]:
    """Of each block before the first picture, whether it says that a colour is transparent."""
    while (kind := file.read(1)) not in (b"", b",", b";"):
        if kind != b"!":
            yield False  # Pillow, too, looks for the next block
            continue
        label, first = file.read(1), True
        while (size := file.read(1)) not in (b"", b"\0"):
            block = file.read(size[0])
            yield first and label == b"\xf9" and bool(block[:1]) and bool(block[0] & 1)
            first = False


def _decoded(file: BinaryIO, name: str) -> Source:
    try:
        from PIL import Image, ImageOps
    except ImportError:
        raise Unsupported(f"{name}: {_ON_WHITE}: install Pillow, or say do_convert_rgb=False, which leaves that colour as it is") from None
    file.seek(0)
    try:
        with Image.open(file) as opened:
            picture = ImageOps.exif_transpose(opened).convert("RGB")
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as why:
        raise InvalidRequest(f"{name}: {_ON_WHITE}, and PIL cannot read it ({why})") from why
    return of_picture(picture, name, to_rgb=True)
