"""MixUp and CutMix of a loader's batches, on the batches' device, drawn so that a resumed loop mixes as the first one did."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from millrace._frameworks.over_loader import OverLoader
from millrace.errors import InvalidRequest

if TYPE_CHECKING:
    from millrace.torch import Loader


@dataclass(frozen=True)
class MixUp:
    """Torchvision's MixUp (arXiv:1710.09412): each image blended with the one before it, the first with the last.

    Attributes:
        alpha: of the Beta distribution (alpha, alpha) from which the share of the image itself is drawn, at least 0.001.
    """

    alpha: float = 1.0

    def __post_init__(self) -> None:
        _check_alpha(self)

    def mix(self, images: torch.Tensor, targets: torch.Tensor, share: float, numbers: Any = None) -> tuple[torch.Tensor, torch.Tensor]:
        """Given the share. ``numbers``: not used."""
        return _blended(images, share), _blended(targets, share)


@dataclass(frozen=True)
class CutMix:
    """Torchvision's CutMix (arXiv:1905.04899): a rectangle of each image replaced by the same one of the image before it.

    Attributes:
        alpha: of the Beta distribution (alpha, alpha) from which the share of the area that stays is drawn, at least 0.001.
    """

    alpha: float = 1.0

    def __post_init__(self) -> None:
        _check_alpha(self)

    def mix(self, images: torch.Tensor, targets: torch.Tensor, share: float, numbers: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """Given the share, and ``numbers.randint(n)`` for the rectangle's middle: first along x, then along y."""
        height, width = images.shape[-2:]
        x, y = int(numbers.randint(width)), int(numbers.randint(height))
        half = 0.5 * math.sqrt(1.0 - share)
        left, right = max(0, x - int(half * width)), min(width, x + int(half * width))
        top, bottom = max(0, y - int(half * height)), min(height, y + int(half * height))
        mixed = images.clone()
        mixed[..., top:bottom, left:right] = images.roll(1, 0)[..., top:bottom, left:right]
        kept = 1.0 - (right - left) * (bottom - top) / (width * height)
        return mixed, _blended(targets, kept)


class Mixed(OverLoader):
    """A loader's batches mixed, one of ``ways`` drawn for each batch: ``for images, targets in Mixed(loader, [MixUp(), CutMix()], 1000)``.

    Images are the loader's, floats, channels first; targets float32 [N, classes], on the same device. What is drawn is a function of
    ``seed``, the epoch and the id of the batch's first sample: the same after a resume, another on each rank. Given the same share and
    rectangle the result is torchvision's, to the bit. A batch of one image is mixed with itself.

    It stands where the loader stands, as ``OverLoader`` says; ``batch`` is not mixed.
    """

    def __init__(self, loader: Loader, ways: Sequence[MixUp | CutMix], classes: int, seed: int = 0) -> None:
        """Of a loader whose labels are class numbers, below ``classes``.

        Raises:
            InvalidRequest: there is no way, or no class; or the loader makes views.
        """
        chosen: tuple[Any, ...] = tuple(ways) if isinstance(ways, (list, tuple)) else (ways,)
        if not chosen or not all(isinstance(way, (MixUp, CutMix)) for way in chosen):
            raise InvalidRequest(f"Mixed: ways must be some of MixUp and CutMix, are {ways!r}")
        if classes < 1:
            raise InvalidRequest(f"Mixed: classes must be at least 1, is {classes}")
        if loader.recipe.views:
            raise InvalidRequest("Mixed: the loader makes several views of each image, and mixes nothing of them: mix in the loop")
        if loader.recipe.layout == "NHWC":
            raise InvalidRequest("Mixed: the loader's layout must be NCHW, as torchvision's")
        super().__init__(loader)
        self._classes, self._seed = classes, seed
        self._ways: tuple[MixUp | CutMix, ...] = chosen

    def _each(self, batches: Iterator[tuple[torch.Tensor, Any]]) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        for images, labels in batches:
            yield self._mixed(images, labels)

    def __repr__(self) -> str:
        return f"<millrace.torch.Mixed by {', '.join(map(repr, self._ways))}, {self._classes} classes: {self._loader!r}>"

    def _mixed(self, images: torch.Tensor, labels: Any) -> tuple[torch.Tensor, torch.Tensor]:
        if not images.is_floating_point():
            raise InvalidRequest(f"Mixed: images must be floats, are {images.dtype}: give the loader dtype=torch.float32")
        if not isinstance(labels, torch.Tensor) or labels.dtype != torch.int64 or labels.ndim != 1:
            raise InvalidRequest("Mixed: labels must be one class number an image")
        if labels.device.type == "cpu" and not ((labels >= 0) & (labels < self._classes)).all():
            raise InvalidRequest(f"Mixed: labels must be class numbers from 0 to {self._classes - 1}, are {labels.unique().tolist()}")
        targets = torch.nn.functional.one_hot(labels, self._classes).to(torch.float32)
        batch = self._loader.batch
        assert batch is not None  # the loop has just had it
        numbers = _numbers(self._seed, self._loader.epoch, int(batch.ids[0]))
        way = self._ways[int(numbers.randint(len(self._ways)))]
        return way.mix(images, targets, float(numbers.beta(way.alpha, way.alpha)), numbers)


def _numbers(seed: int, epoch: int, sample: int) -> np.random.RandomState:
    """NumPy promises that this generator's numbers never change, of no newer one."""
    words = [(value >> shift) & 0xFFFFFFFF for value in (seed, epoch, sample) for shift in (0, 32)]
    return np.random.RandomState(words)


def _check_alpha(way: MixUp | CutMix) -> None:
    if not 1e-3 <= way.alpha <= 1e6:
        raise InvalidRequest(f"{type(way).__name__}: alpha must be from 0.001 to 1000000, is {way.alpha}")


def _blended(values: torch.Tensor, share: float) -> torch.Tensor:
    """In torchvision's order of operations, for they round."""
    return values.roll(1, 0).mul_(1.0 - share).add_(values.mul(share))
