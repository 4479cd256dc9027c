"""Steps of augmentation that draw what is done from a published list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from millrace._recipe.step import Sampling, Step
from millrace._recipe.values import BLACK as _BLACK

Policy = Literal["imagenet", "cifar10", "svhn"]


@dataclass(frozen=True, repr=False)
class RandAugment(Step):
    """Torchvision's RandAugment (arXiv:1909.13719).

    Attributes:
        operations: a sample, 1 to 16.
        magnitude: less than ``bins``.
        bins: 2 to 1000.
        sampling: how transforms read between pixels.
        fill: a level or three.
    """

    operations: int = 2
    magnitude: int = 9
    bins: int = 31
    sampling: Sampling = "nearest"
    fill: Any = _BLACK

    def __post_init__(self) -> None:
        self._make_fill()


@dataclass(frozen=True, repr=False)
class TrivialAugmentWide(Step):
    """Torchvision's TrivialAugmentWide (arXiv:2103.10158). Attributes as RandAugment's."""

    bins: int = 31
    sampling: Sampling = "nearest"
    fill: Any = _BLACK

    def __post_init__(self) -> None:
        self._make_fill()


@dataclass(frozen=True, repr=False)
class AutoAugment(Step):
    """Torchvision's AutoAugment (arXiv:1805.09501).

    Attributes:
        policy: the set of learned pairs.
        sampling: how transforms read between pixels.
        fill: a level or three.
    """

    policy: Policy = "imagenet"
    sampling: Sampling = "nearest"
    fill: Any = _BLACK

    def __post_init__(self) -> None:
        self._make_fill()


@dataclass(frozen=True, repr=False)
class TimmRandAugment(Step):
    """timm's RandAugment: ``rand-m9-mstd0.5-inc1`` is ``TimmRandAugment()``.

    Attributes:
        operations: a sample, 1 to 16.
        magnitude: 0 to 10.
        magnitude_std: of the normal distribution around it, 0 to 100.
        operation_probability: of each operation.
        increasing: the set in which more magnitude is always a stronger change.
        sampling: None: bilinear or bicubic, drawn for each operation, as timm does unless told otherwise.
        fill: a level or three.
    """

    operations: int = 2
    magnitude: float = 9.0
    magnitude_std: float = 0.5
    operation_probability: float = 0.5
    increasing: bool = True
    sampling: Sampling | None = None
    fill: Any = _BLACK

    def __post_init__(self) -> None:
        self._make_fill()


@dataclass(frozen=True, repr=False)
class AugMix(Step):
    """Torchvision's AugMix (arXiv:1912.02781), with the operations that it has for PIL images.

    It does them to tensors, whose arithmetic differs: see doc/transforms.md.

    Attributes:
        severity: 1 to 10: magnitudes are of the weakest so many of ten.
        width: chains of operations, each of the image itself, 1 to 8. What they make and the image are added up by weights.
        depth: operations a chain, at most 16; 0: 1 to 3, drawn for each. All in all ``width * (depth + 1) + 2`` may be 64.
        alpha: of the Dirichlet distributions of the weights, 0.1 to 100.
        all_operations: brightness, colour, contrast and sharpness, too.
        sampling: how transforms read between pixels.
        fill: a level or three.
    """

    severity: int = 3
    width: int = 3
    depth: int = 0
    alpha: float = 1.0
    all_operations: bool = True
    sampling: Sampling = "bilinear"
    fill: Any = _BLACK

    def __post_init__(self) -> None:
        self._make_fill()


@dataclass(frozen=True, repr=False)
class TimmAugMix(Step):
    """timm's AugMix, not blended: ``augmix-m3-w3`` is ``TimmAugMix()``.

    Attributes:
        magnitude: 0 to 10.
        magnitude_std: of the normal distribution around it, 0 to 100; None: magnitudes are uniform, from 0 to that one.
        width: as AugMix's, as are depth and alpha.
        sampling: None: bilinear or bicubic, drawn for each operation, as timm does unless told otherwise.
        fill: a level or three.
    """

    magnitude: float = 3.0
    magnitude_std: float | None = None
    width: int = 3
    depth: int = 0
    alpha: float = 1.0
    sampling: Sampling | None = None
    fill: Any = _BLACK

    def __post_init__(self) -> None:
        self._make_fill()
