#!/usr/bin/env python3
"""Millrace's resamplers beside Pillow-SIMD's: 520x520 to 224x224 pixels, bilinear, in turns.

    config/setup.sh bench --resample [--rounds 31] [--target avx2]

Each round takes Pillow-SIMD's time and asks `millrace_bench_resample` for ours: the thread's processor time for 20 pictures, tables at hand
on either side. Prints medians, and the medians of the rounds' ratios.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import time
from pathlib import Path

import PIL
from PIL import Image

PICTURES = 20
SOURCE, OUTPUT = (520, 520), (224, 224)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--target", default="", help="our instruction set: avx512, avx2 or scalar; none: the best")
    return parser.parse_args()


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(": ")[2]
    return "unknown processor"


def pillow_microseconds(picture: Image.Image) -> float:
    begin = time.thread_time()
    for _ in range(PICTURES):
        picture.resize(OUTPUT, Image.Resampling.BILINEAR)
    return (time.thread_time() - begin) / PICTURES * 1e6


def main() -> None:
    given = arguments()
    if "post" not in PIL.__version__:
        raise SystemExit(f"Pillow {PIL.__version__} is no Pillow-SIMD, whose versions end with .postN")
    program = os.environ["MILLRACE_BENCH_RESAMPLE"]
    ours = subprocess.Popen([program, *([given.target] if given.target else [])], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert ours.stdin
    assert ours.stdout
    picture = Image.frombytes("RGB", SOURCE, os.urandom(3 * SOURCE[0] * SOURCE[1]))
    times: dict[str, list[float]] = {"Pillow-SIMD": [], "exact": [], "fast": []}
    for round_number in range(given.rounds + 1):
        pillow = pillow_microseconds(picture)
        print(file=ours.stdin, flush=True)
        answer = ours.stdout.readline().split()
        if len(answer) != 4:
            raise SystemExit(f"{program} gave up")
        if round_number == 0:
            continue  # it warms both up
        times["Pillow-SIMD"].append(pillow)
        times["exact"].append(float(answer[1]))
        times["fast"].append(float(answer[3]))
    ours.stdin.close()
    ours.wait()
    target = given.target or "the best instruction set"
    print(f"{processor()}, Pillow-SIMD {PIL.__version__}, {given.rounds} rounds of {PICTURES} pictures, ours with {target}")
    for name, values in times.items():
        ratio = statistics.median(theirs / own for theirs, own in zip(times["Pillow-SIMD"], values, strict=True))
        print(f"resample {name:12} {statistics.median(values):8.1f} us {ratio:6.2f} x")


if __name__ == "__main__":
    main()
