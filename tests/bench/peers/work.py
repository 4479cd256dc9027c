"""What every peer does: the files, the crop boxes and flips, the two recipes. Needs nothing but Python."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

RECIPES = ("train", "infer")
SIDE = 224
SHORTER = 256
BATCH = 64
MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)


def resized(width: int, height: int, shorter: int = SHORTER) -> tuple[int, int]:
    """Width and height when the shorter side gets ``shorter`` pixels and the other is truncated, as torchvision's ``Resize``."""
    if width <= height:
        return shorter, int(shorter * height / width)
    return int(shorter * width / height), shorter


def centre(width: int, height: int, side: int = SIDE) -> tuple[int, int]:
    """Left and top of the middle ``side`` x ``side``, halves to even, as torchvision's ``CenterCrop``."""
    return round((width - side) / 2.0), round((height - side) / 2.0)


@dataclass(frozen=True)
class Sample:
    """One image of an epoch. ``box``: left, top, width, height of the training crop."""

    path: str
    width: int
    height: int
    box: tuple[int, int, int, int]
    flip: bool


@dataclass(frozen=True)
class Work:
    """The files of a pass in their order, and for each epoch the boxes and flips that Millrace drew.

    ``epochs[e][i]`` belongs to ``files[i]``. ``distinct``: so many first ones are different photographs; the others are copies of them.
    """

    folder: str
    warm_folder: str
    distinct: int
    files: tuple[str, ...]
    epochs: tuple[tuple[Sample, ...], ...]

    def samples(self, epoch: int, count: int) -> Sequence[Sample]:
        return self.epochs[epoch % len(self.epochs)][:count]


def pass_images(wanted: int, cores: Iterable[int]) -> int:
    """The images of every pass of every peer: ``wanted`` batches, made up so that each of the cores gets as many whole ones as the others.

    Peers that make whole batches in each worker then can be as many times as fast as they have cores, like one that divides a batch.
    """
    share = math.lcm(1, *cores)
    return max(1, math.ceil(wanted / share)) * share * BATCH


def batches(samples: Sequence[Sample], size: int = BATCH) -> list[Sequence[Sample]]:
    return [samples[start : start + size] for start in range(0, len(samples), size)]


def read_work(path: Path) -> Work:
    stored = json.loads(path.read_text())
    epochs = tuple(
        tuple(
            Sample(file, width, height, (box[0], box[1], box[2], box[3]), bool(flip))
            for file, (width, height), box, flip in zip(stored["files"], stored["sizes"], epoch["boxes"], epoch["flips"], strict=True)
        )
        for epoch in stored["epochs"]
    )
    return Work(stored["folder"], stored["warm_folder"], stored["distinct"], tuple(stored["files"]), epochs)
