#!/usr/bin/env python3
"""millrace.hf.from_pretrained beside transformers' own image processors, from a file's bytes to PyTorch's tensors. Prints one JSON object.

    bench.py --only transformers [--rounds 5] [--data FOLDER]

For each model: one image and a batch of eight, the median and (of one) the 95th percentile in milliseconds; four threads with one
processor, images/s and the 99th percentile. Interleaved: each repetition asks every side once, in an order that turns. The sides:

    ours   the drop-in, its daemon with a lane a core
    slow   transformers with backend="pil", decoded by Pillow
    fast   transformers with backend="torchvision", decoded by Pillow
    quick  the same, decoded by torchvision.io

A side's threads of PyTorch are one (OMP_NUM_THREADS=1), which suits all of them best here: with more, four callers wait for each other.
The image is the folder's JPEG file next to 198 kB; batches are the eight next to it in size. REQUIRES: MILLRACE_DAEMON.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"  # before PyTorch is loaded

import millrace
import torch
from millrace.hf import from_pretrained
from PIL import Image
from torchvision.io import ImageReadMode, decode_image
from transformers import AutoImageProcessor

EXAMPLES = Path(__file__).resolve().parents[3] / "client" / "python" / "examples" / "processors"
MODELS = {
    "clip_l_336": "clip_vit_large_patch14_336",
    "vit_b_224": "vit_base_patch16_224",
    "siglip_384": "siglip_so400m_patch14_384",
    "qwen2_5_vl": "qwen2_5_vl_7b",
}
BYTES = 198_000
THREADS = 4
REPETITIONS = 12  # a round

Side = Callable[[list[bytes]], Any]


def by_pillow(encoded: bytes) -> Image.Image:
    return Image.open(io.BytesIO(encoded)).convert("RGB")


def by_torchvision(encoded: bytes) -> torch.Tensor:
    return decode_image(torch.frombuffer(bytearray(encoded), dtype=torch.uint8), mode=ImageReadMode.RGB)


def side(processor: Any, decode: Callable[[bytes], Any] | None) -> Side:
    def call(images: list[bytes]) -> Any:
        pixels = processor(images if decode is None else [decode(one) for one in images], return_tensors="pt")["pixel_values"]
        assert isinstance(pixels, torch.Tensor)
        return pixels

    return call


def sides_of(name: str, place: Path) -> dict[str, Side]:
    folder = place / name
    folder.mkdir()
    (folder / "preprocessor_config.json").write_text((EXAMPLES / f"{name}.json").read_text())
    slow, fast = (AutoImageProcessor.from_pretrained(folder, backend=backend) for backend in ("pil", "torchvision"))
    return {
        "ours": side(from_pretrained(folder), None),
        "slow": side(slow, by_pillow),
        "fast": side(fast, by_pillow),
        "quick": side(fast, by_torchvision),
    }


def turned(sides: dict[str, Side], number: int) -> list[str]:
    """Their names, beginning with another one each time."""
    names = list(sides)
    at = number % len(names)
    return names[at:] + names[:at]


def took(call: Side, images: list[bytes]) -> float:
    """Milliseconds of one call, whose result is dropped afterwards."""
    began = time.perf_counter()
    pixels = call(images)
    ended = time.perf_counter()
    del pixels
    return (ended - began) * 1e3


def latencies(sides: dict[str, Side], images: list[bytes], repetitions: int) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(-3, repetitions):
        for name in turned(sides, number):
            times[name].append(took(sides[name], images))
    return {name: of[3:] for name, of in times.items()}


def together(call: Side, images: list[bytes]) -> tuple[float, list[float]]:
    """Images/s of four threads, an image a call, and each call's milliseconds."""
    with ThreadPoolExecutor(THREADS) as pool:
        began = time.perf_counter()
        times = list(pool.map(lambda one: took(call, [one]), images))
        return len(images) / (time.perf_counter() - began), times


def figures_of(sides: dict[str, Side], files: list[bytes], rounds: int) -> dict[str, float]:
    """Of one model, by name."""
    one = latencies(sides, files[:1], rounds * REPETITIONS)
    eight = latencies(sides, files, rounds * REPETITIONS // 4)
    rates: dict[str, list[float]] = {name: [] for name in sides}
    calls: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(rounds):
        for name in turned(sides, number):
            rate, times = together(sides[name], files * 12)
            rates[name].append(rate)
            calls[name] += times
    found: dict[str, float] = {}
    for name in sides:
        found |= {
            f"one_{name}_ms": statistics.median(one[name]),
            f"one_{name}_p95_ms": statistics.quantiles(one[name], n=20)[-1],
            f"eight_{name}_ms": statistics.median(eight[name]),
            f"threads_{name}_images_per_s": statistics.median(rates[name]),
            f"threads_{name}_p99_ms": statistics.quantiles(calls[name], n=100)[-1],
        }
    return found | ratios(found)


def ratios(found: dict[str, float]) -> dict[str, float]:
    """How many times better than the slow one, and than the better of the fast ones."""

    def times_better(figure: str) -> tuple[float, float]:
        ours = found[figure.format("ours")]
        return found[figure.format("slow")] / ours, min(found[figure.format(name)] for name in ("fast", "quick")) / ours

    rate = found["threads_ours_images_per_s"]
    of = {name: dict(zip(("slow", "fast"), times_better(f"{name}_{{}}_ms"), strict=True)) for name in ("one", "eight")}
    of["threads"] = {
        "slow": rate / found["threads_slow_images_per_s"],
        "fast": rate / max(found[f"threads_{name}_images_per_s"] for name in ("fast", "quick")),
    }
    return {f"{name}_to_{other}": ratio for name, both in of.items() for other, ratio in both.items()}


def run(photographs: Path, rounds: int) -> dict[str, float]:
    paths = sorted(photographs.rglob("*.JPEG"), key=lambda path: abs(path.stat().st_size - BYTES))[:8]
    if len(paths) < 8:
        raise SystemExit(f"{photographs}: fewer than eight JPEG files")
    files = [path.read_bytes() for path in paths]
    found: dict[str, float] = {"image_bytes": len(files[0])}
    torch.set_num_threads(1)
    with millrace.serve(photographs), tempfile.TemporaryDirectory() as place:
        for short, name in MODELS.items():
            figures = figures_of(sides_of(name, Path(place)), files, rounds)
            found |= {f"{short}.{figure}": value for figure, value in figures.items()}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photographs", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    json.dump(run(given.photographs, given.rounds), sys.stdout)


if __name__ == "__main__":
    main()
