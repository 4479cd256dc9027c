#!/usr/bin/env python3
"""Steps of augmentation beside torchvision, Albumentations and kornia-rs: one picture of 224 x 224, one thread.

    python augmentations.py build/release/bin/millrace_bench_augment [--rounds 15] [--target avx2] [--only hue,equalize] [--json]

Each round asks `millrace_bench_augment` for our times, from RGB rows to RGB rows, and takes the others' in turn: torchvision on a PIL
image and its v2 on a uint8 tensor, Albumentations with OpenCV, and kornia-rs, where they have the step. All are processor time, with
the call from Python for the peers. Parameters are alike, results are not: ours are torchvision's on a PIL image. Prints medians in
microseconds, and the medians of the rounds' ratios to ours: below 1, the peer is faster.

Needs torch, torchvision, albumentations, opencv-python-headless and kornia-rs.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

os.environ |= {"RAYON_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "NO_ALBUMENTATIONS_UPDATE": "1"}

import albumentations
import cv2
import kornia_rs
import numpy as np
import torch
import torchvision
from PIL import Image, ImageFilter
from torchvision.transforms import InterpolationMode, v2
from torchvision.transforms import functional as on_pil
from torchvision.transforms.v2 import functional as on_tensor

SIDE = 224
TORCHVISION, TENSOR, OPENCV, KORNIA = "torchvision PIL", "torchvision v2", "Albumentations", "kornia-rs"
PEERS = (TORCHVISION, TENSOR, OPENCV, KORNIA)
ENOUGH = 0.003  # seconds of calls of one peer a round

Call = Callable[[], Any]
SAMPLINGS = {
    "nearest": (InterpolationMode.NEAREST, cv2.INTER_NEAREST),
    "bilinear": (InterpolationMode.BILINEAR, cv2.INTER_LINEAR),
    "bicubic": (InterpolationMode.BICUBIC, cv2.INTER_CUBIC),
}
CORNERS = [[0, 0], [SIDE - 1, 0], [SIDE - 1, SIDE - 1], [0, SIDE - 1]]
MOVED = [[10, 4], [SIDE - 9, 12], [SIDE - 20, SIDE - 6], [16, SIDE - 14]]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path, help="the built millrace_bench_augment")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--target", default="avx512", help="our instruction set: avx512, avx512bw, avx2 or scalar")
    parser.add_argument("--only", default="", help="steps with commas between; none: all")
    parser.add_argument("--json", action="store_true", help="one JSON object a line: first the machine, then a step each")
    return parser.parse_args()


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(": ")[2]
    return "unknown processor"


def picture() -> Any:
    """Neighbours alike, as millrace_bench_augment has it."""
    y, x = np.mgrid[:SIDE, :SIDE]
    base = np.stack([x, y, (x + y) // 2], axis=-1)
    return (base + np.random.default_rng(1).integers(0, 24, base.shape)).astype(np.uint8)


def opencv(pixels: Any, name: str, **options: Any) -> Call:
    """A transform of Albumentations that is always taken; without Compose, which would cost more."""
    transform = getattr(albumentations, name)(p=1, **options)
    return lambda: transform(image=pixels)


def both(image: Any, tensor: Any, name: str, *given: Any, **options: Any) -> dict[str, Call]:
    """The function of that name in torchvision, on a PIL image and on a tensor."""
    return {
        TORCHVISION: partial(getattr(on_pil, name), image, *given, **options),
        TENSOR: partial(getattr(on_tensor, name), tensor, *given, **options),
    }


def jitter(module: Any, image: Any) -> Any:
    image = module.adjust_contrast(module.adjust_brightness(image, 1.3), 0.7)
    return module.adjust_hue(module.adjust_saturation(image, 1.2), 20 / 255)


def colours(image: Any, tensor: Any, pixels: Any) -> dict[str, dict[str, Call]]:
    torch_pair, by_opencv = partial(both, image, tensor), partial(opencv, pixels)
    none: Any = {"brightness": (1, 1), "contrast": (1, 1), "saturation": (1, 1), "hue": (0, 0)}
    every: Any = {"brightness": (1.3, 1.3), "contrast": (0.7, 0.7), "saturation": (1.2, 1.2), "hue": (20 / 255, 20 / 255)}
    kornia_jitter = kornia_rs.augmentations.ColorJitter(0.4, 0.4, 0.4, 0.1)
    wrapped = kornia_rs.image.Image.fromarray(pixels)
    calls: dict[str, dict[str, Call]] = {
        "rand_augment": {
            TORCHVISION: partial(v2.RandAugment(2, 9), image),
            TENSOR: partial(v2.RandAugment(2, 9), tensor),
        },
        "aug_mix": {
            TORCHVISION: partial(v2.AugMix(), image),
            TENSOR: partial(v2.AugMix(), tensor),
        },
        "colour_jitter_drawn": {
            TORCHVISION: partial(v2.ColorJitter(0.4, 0.4, 0.4, 0.1), image),
            TENSOR: partial(v2.ColorJitter(0.4, 0.4, 0.4, 0.1), tensor),
            OPENCV: by_opencv("ColorJitter", brightness=(0.6, 1.4), contrast=(0.6, 1.4), saturation=(0.6, 1.4), hue=(-0.1, 0.1)),
            KORNIA: partial(kornia_jitter, wrapped),
        },
        "invert": torch_pair("invert") | {OPENCV: by_opencv("InvertImg")},
        "posterize": torch_pair("posterize", 4) | {OPENCV: by_opencv("Posterize", num_bits=4)},
        "solarize": torch_pair("solarize", 128) | {OPENCV: by_opencv("Solarize", threshold_range=(0.5, 0.5))},
        "brightness": torch_pair("adjust_brightness", 1.3)
        | {OPENCV: by_opencv("ColorJitter", **none | {"brightness": (1.3, 1.3)}), KORNIA: partial(wrapped.adjust_brightness, 1.3)},
        "contrast": torch_pair("adjust_contrast", 0.7)
        | {OPENCV: by_opencv("ColorJitter", **none | {"contrast": (0.7, 0.7)}), KORNIA: partial(wrapped.adjust_contrast, 0.7)},
        "saturation": torch_pair("adjust_saturation", 1.2)
        | {OPENCV: by_opencv("ColorJitter", **none | {"saturation": (1.2, 1.2)}), KORNIA: partial(wrapped.adjust_saturation, 1.2)},
        "hue": torch_pair("adjust_hue", 20 / 255)
        | {OPENCV: by_opencv("ColorJitter", **none | {"hue": (20 / 255, 20 / 255)}), KORNIA: partial(wrapped.adjust_hue, 20 / 255)},
        "colour_jitter": {
            TORCHVISION: partial(jitter, on_pil, image),
            TENSOR: partial(jitter, on_tensor, tensor),
            OPENCV: by_opencv("ColorJitter", **every),
        },
        "sharpness": torch_pair("adjust_sharpness", 1.7) | {OPENCV: by_opencv("Sharpen", alpha=(0.5, 0.5))},
        "grey": torch_pair("rgb_to_grayscale", num_output_channels=3) | {OPENCV: by_opencv("ToGray"), KORNIA: wrapped.to_grayscale},
        "autocontrast": torch_pair("autocontrast") | {OPENCV: by_opencv("AutoContrast")},
        "equalize": torch_pair("equalize") | {OPENCV: by_opencv("Equalize")},
        "pillow_blur": {TORCHVISION: partial(image.filter, ImageFilter.GaussianBlur(1))},
    }
    return calls | {
        f"gaussian_blur_{side}": torch_pair("gaussian_blur", [side, side], [1.0, 1.0])
        | {
            OPENCV: by_opencv("GaussianBlur", blur_limit=(side, side), sigma_limit=(1, 1)),
            KORNIA: partial(kornia_rs.imgproc.gaussian_blur, pixels, (side, side), (1.0, 1.0)),
        }
        for side in (9, 23)
    }


def moves(image: Any, tensor: Any, pixels: Any) -> dict[str, dict[str, Call]]:
    torch_pair, by_opencv = partial(both, image, tensor), partial(opencv, pixels)
    calls: dict[str, dict[str, Call]] = {
        "flip_horizontal": torch_pair("hflip")
        | {OPENCV: by_opencv("HorizontalFlip"), KORNIA: partial(kornia_rs.imgproc.horizontal_flip, pixels)},
        "flip_vertical": torch_pair("vflip")
        | {OPENCV: by_opencv("VerticalFlip"), KORNIA: partial(kornia_rs.imgproc.vertical_flip, pixels)},
        "quarter_turn": {
            TORCHVISION: partial(image.transpose, Image.Transpose.ROTATE_90),
            TENSOR: lambda: torch.rot90(tensor, 1, (1, 2)).contiguous(),
            OPENCV: by_opencv("Transpose"),
        },
    }
    cosine, sine = np.cos(np.radians(20)), np.sin(np.radians(20))
    half = SIDE / 2
    turn = (cosine, sine, half - cosine * half - sine * half, -sine, cosine, half + sine * half - cosine * half)
    for name, (mode, flag) in SAMPLINGS.items():
        affine = partial(torch_pair, "affine", interpolation=mode)
        calls |= {
            f"rotate_{name}": torch_pair("rotate", 20, interpolation=mode)
            | {OPENCV: by_opencv("Rotate", limit=(20, 20), interpolation=flag)},
            f"shear_{name}": affine(angle=0, translate=[0, 0], scale=1, shear=[11.3, 0.0])
            | {OPENCV: by_opencv("Affine", shear={"x": (11.3, 11.3), "y": (0, 0)}, interpolation=flag)},
            f"translate_{name}": affine(angle=0, translate=[30, 0], scale=1, shear=[0.0, 0.0])
            | {OPENCV: by_opencv("Affine", translate_px={"x": (30, 30), "y": (0, 0)}, interpolation=flag)},
            f"perspective_{name}": torch_pair("perspective", CORNERS, MOVED, interpolation=mode)
            | {OPENCV: by_opencv("Perspective", scale=(0.06, 0.06), interpolation=flag)},
        }
    # kornia-rs samples 8-bit pictures bilinearly, whichever sampling it is given.
    warps = {"rotate": turn, "shear": (1, 0.2, 0, 0, 1, 0), "translate": (1, 0, 30, 0, 1, 0)}
    for name, matrix in warps.items():
        calls[f"{name}_bilinear"][KORNIA] = partial(
            kornia_rs.imgproc.warp_affine, pixels, tuple(map(float, matrix)), (SIDE, SIDE), "bilinear"
        )
    homography = (0.9, 0.08, 10.0, -0.05, 1.1, 4.0, 0.0003, -0.0002, 1.0)
    calls["perspective_bilinear"][KORNIA] = partial(kornia_rs.imgproc.warp_perspective, pixels, homography, (SIDE, SIDE), "bilinear")
    return calls


def microseconds(call: Call) -> float:
    """Processor time of one call, of all threads."""
    calls, begin = 0, time.process_time()
    while True:
        call()
        calls += 1
        taken = time.process_time() - begin
        if taken >= ENOUGH:
            return taken / calls * 1e6


def ours(program: Path, target: str, steps: Iterable[str]) -> dict[str, float]:
    """A round of millrace_bench_augment: microseconds by step."""
    pattern = f"^({'|'.join(map(re.escape, steps))})/{target}$"
    command = [str(program), f"--benchmark_filter={pattern}", "--benchmark_format=json", "--benchmark_min_time=0.02"]
    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return {each["name"].partition("/")[0]: each["cpu_time"] for each in json.loads(answer.stdout)["benchmarks"]}


def taken(call: Call) -> bool:
    """Whether the peer has the step; for the first time, which warms it up."""
    try:
        call()
    except (AttributeError, TypeError, ValueError, NotImplementedError):
        return False
    return True


def measured(given: argparse.Namespace) -> dict[str, list[dict[str, float]]]:
    """For each step the rounds' microseconds, by who took them."""
    pixels = picture()
    image, tensor = Image.fromarray(pixels), torch.from_numpy(pixels).permute(2, 0, 1).contiguous()
    calls = colours(image, tensor, pixels) | moves(image, tensor, pixels)
    chosen = given.only.split(",") if given.only else list(calls)
    unknown = sorted(set(chosen) - set(calls))
    if unknown:
        raise SystemExit(f"--only: {', '.join(unknown)}: there are {', '.join(calls)}")
    calls = {step: {peer: call for peer, call in calls[step].items() if taken(call)} for step in chosen}
    found: dict[str, list[dict[str, float]]] = {step: [] for step in calls}
    for _ in range(given.rounds):
        mine = ours(given.program, given.target, calls)
        for step, peers in calls.items():
            found[step].append({"ours": mine[step]} | {peer: microseconds(call) for peer, call in peers.items()})
    return found


def summary(rounds: list[dict[str, float]]) -> dict[str, tuple[float, float]]:
    """By who: the median, and the median of the rounds' ratios to ours."""
    return {
        who: (statistics.median(each[who] for each in rounds), statistics.median(each[who] / each["ours"] for each in rounds))
        for who in rounds[0]
    }


def main() -> None:
    given = arguments()
    torch.set_num_threads(1)
    cv2.setNumThreads(1)
    found = {step: summary(rounds) for step, rounds in measured(given).items()}
    versions = {
        "torchvision": torchvision.__version__,
        "torch": torch.__version__,
        "albumentations": albumentations.__version__,
        "opencv": cv2.__version__,
        "kornia-rs": kornia_rs.__version__,
    }
    if given.json:
        print(json.dumps({"processor": processor(), "target": given.target, "rounds": given.rounds, "versions": versions}))
        for step, figures in found.items():
            print(
                json.dumps({"name": f"augment.{step}", "unit": "us"} | {who: {"value": v, "ratio": r} for who, (v, r) in figures.items()})
            )
        return
    named = ", ".join(f"{name} {version}" for name, version in versions.items())
    print(f"{processor()}, {given.rounds} rounds, ours with {given.target}; {named}\n")
    print(f"| step | ours, us | {' | '.join(PEERS)} |\n|---|---|{'---|' * len(PEERS)}")
    for step, figures in found.items():
        cells = [f"{figures[peer][0]:,.0f}, {figures[peer][1]:.1f} x" if peer in figures else "" for peer in PEERS]
        print(f"| {step} | {figures['ours'][0]:,.0f} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
