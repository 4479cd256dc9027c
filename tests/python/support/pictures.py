"""Pictures that the tests make: PNG of random pixels, known by their number."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

import millrace
import numpy as np
from numpy.typing import NDArray

CLASSES = ("ant", "bee", "cat")
EACH = 20
COUNT = EACH * len(CLASSES)
SIZE = millrace.Size(width=48, height=32)


def pixels_of(number: int) -> NDArray[np.uint8]:
    """uint8 32 x 48 x 3 of the dataset's sample of that number."""
    return np.random.default_rng(number).integers(0, 256, (SIZE.height, SIZE.width, 3), np.uint8)


def png_of(pixels: NDArray[np.uint8]) -> bytes:
    """An RGB PNG file of height x width x 3, a grey one of height x width x 1."""
    height, width, channels = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b"")


def png(number: int) -> bytes:
    """The file of that sample."""
    return png_of(pixels_of(number))


def decoded(data: bytes) -> NDArray[np.uint8]:
    """The pixels of a PNG file that the package wrote: rows filtered by "sub"."""
    width, height = np.frombuffer(data[16:24], ">u4").tolist()
    start = data.index(b"IDAT")
    size = int.from_bytes(data[start - 4 : start], "big")
    rows = np.frombuffer(zlib.decompress(data[start + 4 : start + 4 + size]), np.uint8).reshape(height, 1 + width * 3)
    assert (rows[:, 0] == 1).all()
    return rows[:, 1:].reshape(height, width, 3).cumsum(axis=1, dtype=np.uint8)


def make_folder(base: Path, each: int = EACH) -> Path:
    """base/train with the classes beneath; the dataset's sample n has the pixels of n and the label n // each."""
    for label, name in enumerate(CLASSES):
        folder = base / "train" / name
        folder.mkdir(parents=True)
        for k in range(each):
            (folder / f"{k:04d}.png").write_bytes(png(label * each + k))
    return base / "train"


def path_of(folder: Path, number: int) -> str:
    """The path of the dataset's sample of that number."""
    return str(folder / CLASSES[number // EACH] / f"{number % EACH:04d}.png")


def check_pixels(batch: millrace.Batch) -> None:
    """Each image of an ``own_size`` batch is the one that its id says."""
    images: NDArray[Any] = batch.images.numpy()
    for image, number in zip(images, batch.ids, strict=True):
        np.testing.assert_array_equal(image, pixels_of(int(number)))
