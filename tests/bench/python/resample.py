#!/usr/bin/env python3
"""Millrace's resamplers beside Pillow-SIMD's: pictures of 519x519 and 521x521 pixels by turns to 224x224, bilinear.

    config/setup.sh bench --resample [--rounds 31] [--target avx2] [--json]

Each round takes Pillow-SIMD's time and asks `millrace_bench_resample` for ours: the thread's processor time for 20 pictures. Pillow
computes the weights of both sides in each resize(); `exact` and `fast` do the same, and aims are theirs. `.kept` have the weights at hand,
as Millrace has them where a size comes again. Prints medians, and the medians of the rounds' ratios.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

PICTURES = 20
SIDES, OUTPUT = (519, 521), (224, 224)
AT_LEAST = {"exact": 3.0, "fast": 4.0}
THEIRS = "Pillow-SIMD"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--target", default="", help="our instruction set: avx512, avx512bw, avx2 or scalar; none: the best")
    parser.add_argument("--json", action="store_true", help="one JSON object a line: first the machine, then a figure each")
    return parser.parse_args()


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(": ")[2]
    return "unknown processor"


def pillow_round() -> Callable[[], float]:
    """What times a round of Pillow-SIMD's, microseconds a picture."""
    import PIL
    from PIL import Image

    if "post" not in PIL.__version__:
        raise SystemExit(f"Pillow {PIL.__version__} is no Pillow-SIMD, whose versions end with .postN")
    pictures: Sequence[Any] = [Image.frombytes("RGB", (side, side), os.urandom(3 * side * side)) for side in SIDES]

    def measure() -> float:
        begin = time.thread_time()
        for number in range(PICTURES):
            pictures[number % len(pictures)].resize(OUTPUT, Image.Resampling.BILINEAR)
        return (time.thread_time() - begin) / PICTURES * 1e6

    return measure


def answered(line: str) -> dict[str, float]:
    """Microseconds by name, from a line of millrace_bench_resample."""
    words = line.split()
    return {name: float(value) for name, value in zip(words[::2], words[1::2], strict=True)}


def report(rounds: Sequence[dict[str, float]]) -> list[str]:
    """A line for each way: median of its times, median of the rounds' ratios to Pillow-SIMD, and whether the aim is met."""
    lines = []
    for name in rounds[0]:
        ratio = statistics.median(times[THEIRS] / times[name] for times in rounds)
        line = f"resample {name:12} {statistics.median(times[name] for times in rounds):8.1f} us {ratio:6.2f} x"
        if name in AT_LEAST:
            line += f", at least {AT_LEAST[name]:.0f}" + ("" if ratio >= AT_LEAST[name] else ": missed")
        lines.append(line)
    return lines


def figures(rounds: Sequence[dict[str, float]]) -> list[dict[str, Any]]:
    """The same as millrace_bench's JSON has its figures."""
    theirs = statistics.median(times[THEIRS] for times in rounds)
    return [
        {
            "name": f"resample.{name}",
            "value": statistics.median(times[name] for times in rounds),
            "unit": "us",
            "rounds": len(rounds),
            "baseline": {"name": THEIRS, "value": theirs},
            "ratio": statistics.median(times[THEIRS] / times[name] for times in rounds),
        }
        for name in rounds[0]
        if name != THEIRS
    ]


def measured(ours: subprocess.Popen[str], rounds: int) -> list[dict[str, float]]:
    assert ours.stdin
    assert ours.stdout
    theirs, found = pillow_round(), []
    for _ in range(rounds + 1):
        times = {THEIRS: theirs()}
        print(file=ours.stdin, flush=True)
        times |= answered(ours.stdout.readline())
        if len(times) == 1:
            raise SystemExit("millrace_bench_resample gave up")
        found.append(times)
    ours.stdin.close()
    ours.wait()
    return found[1:]  # the first one warms both up


def main() -> None:
    given = arguments()
    program = [os.environ["MILLRACE_BENCH_RESAMPLE"], *([given.target] if given.target else [])]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as ours:
        rounds = measured(ours, given.rounds)
    if given.json:
        print("\n".join(json.dumps(line) for line in [{"processor": processor()}, *figures(rounds)]))
        return
    print(f"{processor()}, {given.rounds} rounds of {PICTURES} pictures, ours with {given.target or 'the best instruction set'}")
    print("\n".join(report(rounds)))


if __name__ == "__main__":
    main()
