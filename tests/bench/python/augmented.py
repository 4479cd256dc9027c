"""Published recipes of augmentation: images/s of the PyTorch loader beside the published transform in a DataLoader. For bench.py."""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import millrace
import torch
import torchvision
from millrace import Recipe, recipes
from millrace.torch import from_torchvision
from PIL import Image, ImageFilter, ImageOps
from torchvision import transforms

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
BILINEAR, BICUBIC = transforms.InterpolationMode.BILINEAR, transforms.InterpolationMode.BICUBIC


def _classification(size: int, policy: Any, erase: float) -> transforms.Compose:
    """The training preset of torchvision's reference scripts, with its backend PIL."""
    steps = [transforms.RandomResizedCrop(size, interpolation=BILINEAR, antialias=True), transforms.RandomHorizontalFlip(0.5), policy]
    steps += [transforms.PILToTensor(), transforms.ConvertImageDtype(torch.float), transforms.Normalize(MEAN, STD)]
    return transforms.Compose([*steps, transforms.RandomErasing(erase)])


def imagenet_v2() -> Any:
    """Torchvision's "new recipe" of its V2 weights."""
    return _classification(176, transforms.TrivialAugmentWide(interpolation=BILINEAR), 0.1)


def rand_augment() -> Any:
    """The same scripts with --auto-augment ra and --random-erase 0.1, at 224."""
    return _classification(224, transforms.RandAugment(interpolation=BILINEAR), 0.1)


def simclr() -> Any:
    """One view, as torchvision's transforms say the paper's (arXiv:2002.05709, appendix A): colour, grey, blur."""
    jitter = transforms.RandomApply([transforms.ColorJitter(0.8, 0.8, 0.8, 0.2)], 0.8)
    blur = transforms.RandomApply([transforms.GaussianBlur(23, (0.1, 2.0))], 0.5)
    steps = [
        transforms.RandomResizedCrop(224, antialias=True),
        transforms.RandomHorizontalFlip(),
        jitter,
        transforms.RandomGrayscale(0.2),
        blur,
    ]
    return transforms.Compose([*steps, transforms.ToTensor(), transforms.Normalize(MEAN, STD)])


def a1() -> Any:
    """The one of "ResNet strikes back" (arXiv:2110.00476), A1 at 224. ImportError: timm is not installed."""
    from timm.data import create_transform

    return create_transform(224, is_training=True, auto_augment="rand-m7-mstd0.5-inc1", interpolation="bicubic")


class Views:
    """Several transforms of one decoded image: a list of images, which DataLoader collates to a list of tensors."""

    def __init__(self, recipe: Recipe, *transforms: Callable[[Any], Any]) -> None:
        self.recipe = recipe
        """The same for the daemon, which does not know this class."""
        self._transforms = transforms

    def __call__(self, image: Any) -> list[Any]:
        return [transform(image) for transform in self._transforms]


class PillowsBlur:
    """With that probability, of a radius of 0.1 to 2 pixels."""

    def __init__(self, probability: float) -> None:
        self._probability = probability

    def __call__(self, image: Image.Image) -> Image.Image:
        if random.random() > self._probability:
            return image
        return image.filter(ImageFilter.GaussianBlur(random.uniform(0.1, 2.0)))


def simclr_two_views() -> Any:
    """Both alike."""
    return Views(Recipe.of_views([from_torchvision(simclr())] * 2), *[simclr()] * 2)


def dino() -> Any:
    """Two crops of 224 and eight of 96 (arXiv:2104.14294), of torchvision's transforms and Pillow's blur."""
    jitter = [transforms.RandomApply([transforms.ColorJitter(0.4, 0.4, 0.2, 0.1)], 0.8), transforms.RandomGrayscale(0.2)]
    end = [transforms.ToTensor(), transforms.Normalize(MEAN, STD)]

    def crop(side: int, scale: tuple[float, float], *more: Any) -> Any:
        cropped = [transforms.RandomResizedCrop(side, scale, interpolation=BICUBIC), transforms.RandomHorizontalFlip()]
        return transforms.Compose([*cropped, *jitter, *more, *end])

    solarised = transforms.RandomApply([ImageOps.solarize], 0.2)
    large = crop(224, (0.4, 1.0), PillowsBlur(1.0)), crop(224, (0.4, 1.0), PillowsBlur(0.1), solarised)
    return Views(recipes.dino(), *large, *[crop(96, (0.05, 0.4), PillowsBlur(0.5))] * 8)


PUBLISHED: dict[str, Callable[[], Any]] = {
    "imagenet_v2": imagenet_v2,
    "rand_augment": rand_augment,
    "simclr": simclr,
    "simclr_two_views": simclr_two_views,
    "dino": dino,
    "a1": a1,
}


EPOCHS = 5
BATCH = 64


def augmented(given: argparse.Namespace, data: Path) -> dict[str, Any]:
    """What ``beside_dataloader`` says of each."""
    found: dict[str, Any] = {}
    for name, published in PUBLISHED.items():
        try:
            transform = published()
        except ImportError as why:
            found[name] = {"not_measured": str(why)}
        else:
            found[name] = beside_dataloader(given, data, transform)
    return found


def beside_dataloader(given: argparse.Namespace, data: Path, transform: Any) -> dict[str, dict[str, float]]:
    """Samples/s of our epochs beside DataLoader's, as medians, and the medians of the ratios in pairs.

    ``all``: of EPOCHS epochs, from the first call on; ``first``: of the first one of them; ``later``: of the others, of which the second
    packs what those after it take from the daemon's cache. ``uncached``: of one epoch of a loader with ``cache="off"``. Epochs are timed
    whole, over the same files, which the page cache has. The daemon is another one each time, so nothing of the files is kept in its
    first epoch. DataLoader's two workers stay, and its first epoch, which starts them, does not count; nothing is kept there, so that
    its epochs are alike.
    """
    dataset, rounds = torchvision.datasets.ImageFolder(str(data), transform), []
    for number in range(given.rounds):  # who is first alternates
        rates: dict[str, float] = {}
        for who in ("millrace", "peer") if number % 2 else ("peer", "millrace"):
            rates |= _theirs(dataset) if who == "peer" else _ours(given, data, transform, dataset)
        rounds.append(rates)
    return {epochs: _compared([(rates[epochs], rates["peer"]) for rates in rounds]) for epochs in ("all", "first", "later", "uncached")}


def _compared(pairs: list[tuple[float, float]]) -> dict[str, float]:
    ours, theirs = (statistics.median(side) for side in zip(*pairs, strict=True))
    ratio = statistics.median(one / other for one, other in pairs)
    return {"loader_samples_per_s": ours, "dataloader_samples_per_s": theirs, "ratio": ratio}


def _passed(loader: Any, epochs: int) -> tuple[int, float]:
    """Samples, and seconds."""
    samples, began = 0, time.monotonic()
    for _ in range(epochs):
        samples += sum(len(labels) for _, labels in loader)
    return samples, time.monotonic() - began


def _ours(given: argparse.Namespace, data: Path, transform: Any, dataset: Any) -> dict[str, float]:
    what, recipe = (data, transform.recipe) if isinstance(transform, Views) else (dataset, None)

    def passed(*passes: int, **arguments: Any) -> list[tuple[int, float]]:
        with millrace.serve(data, lanes=given.lanes) as daemon:
            arguments |= {"slots": 4, "on_error": "skip", "address": daemon.address, "transform": recipe, "shuffle": True}
            with millrace.torch.Loader(what, batch_size=BATCH, **arguments) as loader:
                return [_passed(loader, epochs) for epochs in passes]

    first, later = passed(1, EPOCHS - 1)
    both = first[0] + later[0], first[1] + later[1]
    by_name = {"all": both, "first": first, "later": later, "uncached": passed(1, cache="off")[0]}
    return {name: samples / seconds for name, (samples, seconds) in by_name.items()}


def _theirs(dataset: Any) -> dict[str, float]:
    loader = torch.utils.data.DataLoader(dataset, BATCH, shuffle=True, num_workers=2, persistent_workers=True)
    _passed(loader, 1)
    samples, seconds = _passed(loader, 2)
    return {"peer": samples / seconds}
