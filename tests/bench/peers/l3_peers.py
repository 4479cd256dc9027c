#!/usr/bin/env python3
"""One peer of l3.py in a process of its own. Started by l3.py.

l3_peers.py PEER FOLDER     then PASS and SET a line on stdin, one answer a line on stdout

decode  files in memory to arrays: seconds of processor time, of whatever threads
load    the same, and files are read anew
size    bytes of the files

A peer reads FOLDER/png/SET, or writes what it makes of that into FOLDER/PEER/SET first, and compares all samples with those
that come back. "none": the peer does not have such pictures.
"""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Decode = Callable[[bytes], np.ndarray]
Encode = Callable[[np.ndarray], bytes]


class Peer:
    """Reads PNG files, or has files of its own: then ``encode`` makes them. All kinds are there but those that ``has`` denies."""

    def __init__(self, decode: Decode, encode: Encode | None = None, has: Callable[[np.ndarray], bool] = lambda _: True) -> None:
        self.decode, self.encode, self.has = decode, encode, has


def _is_rgb(picture: np.ndarray) -> bool:
    return picture.dtype == np.uint8 and picture.ndim == 3 and picture.shape[2] == 3


def _has_colour(picture: np.ndarray) -> bool:
    return picture.dtype == np.uint8 and picture.ndim == 3


def libpng() -> Peer:
    import imagecodecs

    return Peer(imagecodecs.png_decode)


def pillow() -> Peer:
    """It has a PNG reader of its own, over zlib-ng."""
    from PIL import Image

    return Peer(lambda file: np.asarray(Image.open(io.BytesIO(file))), has=lambda picture: picture.ndim == 2 or picture.itemsize == 1)


def kornia_rs() -> Peer:
    import kornia_rs.io

    def decode(file: bytes) -> np.ndarray:
        """It wants to be told the size, which the header has."""
        width, height = (int.from_bytes(file[at : at + 4], "big") for at in (16, 20))
        return kornia_rs.io.decode_image_png_u8(file, (height, width), "rgb")

    return Peer(decode, has=_is_rgb)


def qoi() -> Peer:
    import qoi

    return Peer(qoi.decode, qoi.encode, _has_colour)


def webp() -> Peer:
    """With Pillow's settings for lossless ones: method 4, quality 80."""
    from PIL import Image

    def encode(picture: np.ndarray) -> bytes:
        file = io.BytesIO()
        Image.fromarray(picture).save(file, "WEBP", lossless=True, exact=True)
        return file.getvalue()

    return Peer(lambda file: np.asarray(Image.open(io.BytesIO(file))), encode, _has_colour)


def jpeg_xl(effort: int) -> Peer:
    import imagecodecs

    return Peer(
        lambda file: imagecodecs.jpegxl_decode(file, numthreads=1),
        lambda picture: imagecodecs.jpegxl_encode(picture, lossless=True, effort=effort, numthreads=1),
    )


def lz4() -> Peer:
    """Of the samples as they are in memory, behind a head of our own."""
    import imagecodecs

    def encode(picture: np.ndarray) -> bytes:
        height, width, channels = (*picture.shape, 1)[:3]
        head = np.array([height, width, channels, picture.ndim, picture.itemsize], "<i4")
        return head.tobytes() + imagecodecs.lz4_encode(picture, header=True)

    def decode(file: bytes) -> np.ndarray:
        *shape, dimensions, size = np.frombuffer(file[:20], "<i4")
        return np.frombuffer(imagecodecs.lz4_decode(file[20:], header=True), f"<u{size}").reshape(shape[:dimensions])

    return Peer(decode, encode)


def dali() -> Peer:
    from nvidia.dali import fn, pipeline_def, types

    files: list[bytes] = []

    @pipeline_def(batch_size=1, num_threads=1, device_id=None, prefetch_queue_depth=1, exec_async=False, exec_pipelined=False)
    def define() -> Any:
        encoded = fn.external_source(lambda: [np.frombuffer(files[0], np.uint8)], batch=True)
        return fn.decoders.image(encoded, device="cpu", output_type=types.RGB)

    pipeline = define()
    pipeline.build()

    def decode(file: bytes) -> np.ndarray:
        files[:] = [file]
        return pipeline.run()[0].as_array()[0]

    return Peer(decode, has=_is_rgb)


PEERS: dict[str, Callable[[], Peer]] = {
    "libpng": libpng,
    "pillow": pillow,
    "kornia_rs": kornia_rs,
    "dali": dali,
    "qoi": qoi,
    "webp": webp,
    "jpeg_xl_1": lambda: jpeg_xl(1),
    "jpeg_xl_3": lambda: jpeg_xl(3),
    "lz4": lz4,
}


class Passes:
    """Sets are made when they are first asked for."""

    def __init__(self, name: str, folder: Path) -> None:
        self._name, self._folder, self._peer = name, folder, PEERS[name]()
        self._sets: dict[str, dict[Path, bytes] | None] = {}

    def make(self, what: str, name: str) -> float | int | None:
        if name not in self._sets:
            self._sets[name] = self._prepared(name)
        files = self._sets[name]
        if files is None:
            return None
        if what == "size":
            return sum(map(len, files.values()))
        began = time.process_time()
        for path, file in files.items():
            self._peer.decode(path.read_bytes() if what == "load" else file)
        return time.process_time() - began

    def _prepared(self, name: str) -> dict[Path, bytes] | None:
        sources = sorted((self._folder / "png" / name).glob("*.png"))
        pictures = {path: _samples(path) for path in sources}
        if not all(map(self._peer.has, pictures.values())):
            return None
        files = {}
        for source, picture in pictures.items():
            path = source
            if self._peer.encode:
                path = self._folder / self._name / name / source.stem
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(self._peer.encode(picture))
            files[path] = path.read_bytes()
            if not _are_equal(self._peer.decode(files[path]), picture):
                raise SystemExit(f"{self._name}: {source} came back with other samples")
        return files


def _are_equal(made: np.ndarray, picture: np.ndarray) -> bool:
    """WebP leaves out alpha of an opaque picture."""
    if made.ndim == 3 and made.shape[2] == 3 and picture.shape[2:] == (4,) and picture[..., 3].min() == 255:
        picture = picture[..., :3]
    return np.array_equal(made, picture)


def _samples(path: Path) -> np.ndarray:
    """Of every PNG, those of colour with 16 bits as well, for which DALI's environment has no reader."""
    try:
        import imagecodecs
    except ImportError:
        from PIL import Image

        return np.asarray(Image.open(path))
    return imagecodecs.png_decode(path.read_bytes())


def main() -> None:
    passes = Passes(sys.argv[1], Path(sys.argv[2]))
    for line in sys.stdin:
        answer = passes.make(*line.split())
        print("none" if answer is None else answer, flush=True)


if __name__ == "__main__":
    main()
