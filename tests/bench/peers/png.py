#!/usr/bin/env python3
"""PNG: Millrace's decoder beside Pillow, OpenCV and kornia-rs, on the same files, a thread each.

    python3 -m venv VENV && VENV/bin/pip install numpy pillow opencv-python-headless kornia_rs
    VENV/bin/python tests/bench/peers/png.py build/release/bin/millrace_bench_png [--rounds 15] FILE...

decode  encoded bytes in memory to 8-bit RGB
resize  the same, then to 224x224, bilinear: Millrace's and Pillow's antialias, OpenCV's is INTER_AREA, kornia-rs's own

Rounds go round robin; a figure is the median over rounds of images per second of processor time, of whatever threads. Millrace runs in
its own process, which times its passes itself.
"""

from __future__ import annotations

import argparse
import io
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import kornia_rs.imgproc
import kornia_rs.io
import numpy as np
from PIL import Image

SIDE = 224
Pass = Callable[[], float]  # over all files: seconds of processor time


class Millrace:
    """The program that makes passes over `files` when it is asked to."""

    def __init__(self, program: str, files: list[Path]) -> None:
        command = [program, *map(str, files)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def make(self, what: str) -> float:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(what + "\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())


def timed(work: Callable[[bytes], Any], files: list[bytes]) -> Pass:
    def run() -> float:
        begin = time.process_time()
        for file in files:
            work(file)
        return time.process_time() - begin

    return run


def by_pillow(file: bytes) -> Image.Image:
    return Image.open(io.BytesIO(file)).convert("RGB")


def by_opencv(file: bytes) -> np.ndarray:
    return cv2.imdecode(np.frombuffer(file, np.uint8), cv2.IMREAD_COLOR_RGB)


def by_kornia(file: bytes) -> np.ndarray:
    """It wants to be told the size, which the header has."""
    width, height = (int.from_bytes(file[at : at + 4], "big") for at in (16, 20))
    return kornia_rs.io.decode_image_png_u8(file, (height, width), "rgb")


def peers(millrace: Millrace, files: list[bytes]) -> dict[str, dict[str, Pass]]:
    pillow: dict[str, Callable[[bytes], Any]] = {
        "decode": lambda file: np.asarray(by_pillow(file)),
        "resize": lambda file: np.asarray(by_pillow(file).resize((SIDE, SIDE), Image.Resampling.BILINEAR)),
    }
    opencv: dict[str, Callable[[bytes], Any]] = {
        "decode": by_opencv,
        "resize": lambda file: cv2.resize(by_opencv(file), (SIDE, SIDE), interpolation=cv2.INTER_AREA),
    }
    kornia: dict[str, Callable[[bytes], Any]] = {
        "decode": by_kornia,
        "resize": lambda file: kornia_rs.imgproc.resize(by_kornia(file), (SIDE, SIDE), "bilinear"),
    }
    others = {"Pillow": pillow, "OpenCV": opencv, "kornia-rs": kornia}
    passes = {name: {what: timed(work, files) for what, work in works.items()} for name, works in others.items()}
    return {"Millrace": {what: lambda what=what: millrace.make(what) for what in ("decode", "resize")}, **passes}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="millrace_bench_png")
    parser.add_argument("files", nargs="+", type=Path, help="RGB, 8 bits: kornia-rs takes no others")
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args()
    cv2.setNumThreads(1)
    files = [path.read_bytes() for path in given.files]
    passes = peers(Millrace(given.program, given.files), files)
    print("| " + " | ".join(["images/s", *passes, "beside kornia-rs"]) + " |")
    print("|" + "---|" * (len(passes) + 2))
    for what in ("decode", "resize"):
        times: dict[str, list[float]] = {name: [] for name in passes}
        for round_number in range(given.rounds + 1):
            for name, works in passes.items():
                seconds = works[what]()
                if round_number > 0:
                    times[name].append(seconds)
        rates = {name: len(files) / statistics.median(seconds) for name, seconds in times.items()}
        ratio = rates["Millrace"] / rates["kornia-rs"]
        print("| " + " | ".join([what, *(f"{rate:,.0f}" for rate in rates.values()), f"{ratio:.2f} x"]) + " |")


if __name__ == "__main__":
    main()
