"""Contact sheets: pictures in a grid, as PNG or as coloured text. Pure functions; pictures are uint8 height x width x 3."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

Picture = NDArray[np.uint8]

_BACKGROUND = (30, 31, 33)
_GAP = 4  # pixels
_BAD = (232, 92, 80)


def compose(pictures: Sequence[Picture | None], side: int, columns: int) -> Picture:
    """One picture with each of ``pictures`` in a square of ``side``, row by row; None becomes a crossed-out square."""
    rows = -(-len(pictures) // columns)
    cell = side + _GAP
    sheet = np.full((rows * cell + _GAP, columns * cell + _GAP, 3), _BACKGROUND, np.uint8)
    for index, picture in enumerate(pictures):
        shown = _crossed(side) if picture is None else picture
        row, column = divmod(index, columns)
        top = _GAP + row * cell + (side - shown.shape[0]) // 2
        left = _GAP + column * cell + (side - shown.shape[1]) // 2
        sheet[top : top + shown.shape[0], left : left + shown.shape[1]] = shown
    return sheet


def _crossed(side: int) -> Picture:
    square = np.full((side, side, 3), _BACKGROUND, np.uint8)
    diagonal = np.arange(side)
    square[diagonal, diagonal] = square[diagonal, side - 1 - diagonal] = _BAD
    square[[0, -1]] = square[:, [0, -1]] = _BAD
    return square


def png(picture: Picture) -> bytes:
    """An RGB PNG file (ISO/IEC 15948), each row filtered by "sub"."""
    height, width, _ = picture.shape
    filtered = picture.copy()
    filtered[:, 1:] -= picture[:, :-1]
    rows = np.concatenate([np.ones((height, 1), np.uint8), filtered.reshape(height, -1)], axis=1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 6)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def text(picture: Picture) -> Iterable[str]:
    """Lines for a terminal with 24-bit colours: an upper half block is two pixels, one above the other."""
    even = picture[: picture.shape[0] // 2 * 2]
    for upper, lower in zip(even[0::2], even[1::2], strict=True):
        cells = [
            "\x1b[38;2;{};{};{};48;2;{};{};{}m\u2580".format(*above, *below)
            for above, below in zip(upper.tolist(), lower.tolist(), strict=True)
        ]
        yield "".join(cells) + "\x1b[0m"
