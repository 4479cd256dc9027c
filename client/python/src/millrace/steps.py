"""Steps of augmentation, for ``Recipe.steps``: what the daemon does to a sample between its flip and its normalisation.

    >>> recipe = Recipe.train(224)
    >>> recipe = dataclasses.replace(recipe, steps=(RandAugment(), Grayscale(probability=0.2)), erasing=Erasing(0.25))

Each works on the RGB image of 8 bits that the steps before it have made, bit for bit as torchvision does on a PIL image given the same
parameters (``TimmRandAugment`` and ``TimmAugMix`` as timm does). Parameters are drawn by the daemon, a function of (seed, epoch, sample
id, number of the step): the same in any order and after a resume. An interval is a pair of its least and its largest number, which may be
equal; one number is that number. Every step has ``probability``: that it is done to a sample at all.

Immutable values; the daemon checks them. Where nothing else is said, factors are at most 1000, degrees within 36,000 either way, shears
within 89, scales, sigmas and radii at least 0.001, weights at most a million.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from millrace._public import found_at
from millrace._recipe.erasing import Erasing as Erasing
from millrace._recipe.erasing import Noise as Noise
from millrace._recipe.policies import AugMix as AugMix
from millrace._recipe.policies import AutoAugment as AutoAugment
from millrace._recipe.policies import Policy as Policy
from millrace._recipe.policies import RandAugment as RandAugment
from millrace._recipe.policies import TimmAugMix as TimmAugMix
from millrace._recipe.policies import TimmRandAugment as TimmRandAugment
from millrace._recipe.policies import TrivialAugmentWide as TrivialAugmentWide
from millrace._recipe.step import Sampling as Sampling
from millrace._recipe.step import Step as Step
from millrace._recipe.step import steps_of as steps_of
from millrace._recipe.values import BLACK as _BLACK
from millrace._recipe.values import Fill as Fill
from millrace._recipe.values import Interval as Interval
from millrace._recipe.values import interval_of
from millrace.errors import InvalidRequest

found_at("millrace.steps", Step, RandAugment, TrivialAugmentWide, AutoAugment, AugMix, TimmRandAugment, TimmAugMix)


@dataclass(frozen=True, repr=False)
class HorizontalFlip(Step):
    """Left becomes right. ``Recipe.flip_probability`` is the same, costs nothing, and comes first."""


@dataclass(frozen=True, repr=False)
class VerticalFlip(Step):
    """Top becomes bottom."""


@dataclass(frozen=True, repr=False)
class Grayscale(Step):
    """ITU-R 601 luma in each of the three channels: Pillow's ``convert("L")``."""


@dataclass(frozen=True, repr=False)
class Invert(Step):
    """255 - value."""


@dataclass(frozen=True, repr=False)
class AutoContrast(Step):
    """Each channel stretched to 0 to 255: Pillow's ``ImageOps.autocontrast``."""


@dataclass(frozen=True, repr=False)
class Equalize(Step):
    """Each channel's histogram equalised: Pillow's ``ImageOps.equalize``."""


@dataclass(frozen=True, repr=False)
class Posterize(Step):
    """Pillow's ``ImageOps.posterize``.

    Attributes:
        bits: that are kept, 1 to 8.
    """

    bits: int = 4


@dataclass(frozen=True, repr=False)
class Solarize(Step):
    """Pillow's ``ImageOps.solarize``.

    Attributes:
        threshold: values of at least that are inverted, 0 to 256.
    """

    threshold: float = 128.0


@dataclass(frozen=True, repr=False)
class Sharpness(Step):
    """Pillow's ``ImageEnhance.Sharpness``.

    Attributes:
        factor: interval, 0 to 1000; 1 changes nothing.
    """

    factor: Any = 1.0

    def __post_init__(self) -> None:
        self._make_intervals("factor")


@dataclass(frozen=True, repr=False)
class ColorJitter(Step):
    """Torchvision's ColorJitter: what is set, in random order.

    Attributes:
        brightness: interval of the factor, at least 0; one number v means (max(0, 1 - v), 1 + v), 0 and None that it is left as it is.
        contrast: likewise.
        saturation: likewise.
        hue: interval of turns, within -0.5 to 0.5; one number v means (-v, v).
    """

    brightness: Any = None
    contrast: Any = None
    saturation: Any = None
    hue: Any = None

    def __post_init__(self) -> None:
        for name in ("brightness", "contrast", "saturation", "hue"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, self._jitter_of(name, getattr(self, name)))

    @staticmethod
    def _jitter_of(name: str, value: Any) -> Interval | None:
        """None: nothing would change, as torchvision has it."""
        interval = interval_of(f"ColorJitter.{name}", value)
        if not isinstance(value, (tuple, list)):
            most = interval[0]
            if most < 0:
                raise InvalidRequest(f"ColorJitter.{name}: a number is at least 0, is {value!r}; for an interval give a pair")
            interval = (-most, most) if name == "hue" else (max(0.0, 1.0 - most), 1.0 + most)
        unchanged = 0.0 if name == "hue" else 1.0
        return None if interval == (unchanged, unchanged) else interval


@dataclass(frozen=True, repr=False)
class GaussianBlur(Step):
    """Torchvision's GaussianBlur.

    Attributes:
        kernel_size: pixels, odd, at most 99, less than twice the image's shorter side.
        sigma: interval, pixels, more than 0, at most 100.
    """

    kernel_size: int = 3
    sigma: Any = (0.1, 2.0)

    def __post_init__(self) -> None:
        self._make_intervals("sigma")


@dataclass(frozen=True, repr=False)
class PillowBlur(Step):
    """Pillow's ``ImageFilter.GaussianBlur``, which SimCLR's, DINO's and DeiT III's code use.

    Attributes:
        radius: interval, pixels, more than 0, at most 100.
    """

    radius: Any = (0.1, 2.0)

    def __post_init__(self) -> None:
        self._make_intervals("radius")


@dataclass(frozen=True, repr=False)
class Rotation(Step):
    """Torchvision's RandomRotation: about the middle, counter-clockwise, the image as large as before.

    Attributes:
        degrees: interval.
        sampling: how it reads between pixels.
        fill: a level or three.
    """

    degrees: Any = (0.0, 0.0)
    sampling: Sampling = "nearest"
    fill: Any = _BLACK

    def __post_init__(self) -> None:
        self._make_intervals("degrees")
        self._make_fill()


@dataclass(frozen=True, repr=False)
class Affine(Step):
    """Torchvision's RandomAffine, about the middle.

    Attributes:
        degrees: interval.
        translate: the largest shifts as shares of width and height, 0 to 1.
        scale: interval, more than 0.
        shear_x: interval, degrees.
        shear_y: interval, degrees.
        sampling: how it reads between pixels.
        fill: a level or three.
    """

    degrees: Any = (0.0, 0.0)
    translate: tuple[float, float] = (0.0, 0.0)
    scale: Any = (1.0, 1.0)
    shear_x: Any = (0.0, 0.0)
    shear_y: Any = (0.0, 0.0)
    sampling: Sampling = "nearest"
    fill: Any = _BLACK

    def __post_init__(self) -> None:
        self._make_intervals("degrees", "translate", "scale", "shear_x", "shear_y")
        self._make_fill()


@dataclass(frozen=True, repr=False)
class Shift(Step):
    """The image moved by whole pixels: torchvision's ``RandomCrop`` to the image's own size with ``padding=(x, y)``.

    Before the flip, and of images of any size, ``Recipe.pad`` and a ``centre_crop`` at a random place do that.

    Attributes:
        x: the most pixels to the left or the right, at most 4096.
        y: the most up or down; None: as ``x``.
        fill: a level or three.
    """

    x: int = 4
    y: Any = None
    fill: Any = _BLACK

    def __repr__(self) -> str:
        """Both ways: ``x`` alone would read as if it moved along one."""
        always = "" if self.probability == 1.0 else f", probability={self.probability!r}"
        return f"Shift(x={self.x!r}, y={self.y!r}, fill={self.fill!r}{always})"

    def __post_init__(self) -> None:
        if self.y is None:
            object.__setattr__(self, "y", self.x)
        self._make_fill()


@dataclass(frozen=True, repr=False)
class Perspective(Step):
    """Torchvision's RandomPerspective.

    Attributes:
        distortion: how far corners may move, as a share of half a side, 0 to 1.
        sampling: how it reads between pixels.
        fill: a level or three.
    """

    distortion: float = 0.5
    sampling: Sampling = "bilinear"
    fill: Any = _BLACK

    def __post_init__(self) -> None:
        self._make_fill()


@dataclass(frozen=True, repr=False)
class Sequence(Step):
    """All of them, in order: with ``probability`` torchvision's RandomApply."""

    steps: tuple[Step, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", steps_of("Sequence.steps", self.steps))


@dataclass(frozen=True, repr=False)
class AnyOrder(Step):
    """All of them, in random order: torchvision's RandomOrder."""

    steps: tuple[Step, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", steps_of("AnyOrder.steps", self.steps))


@dataclass(frozen=True, repr=False)
class OneOf(Step):
    """One of them: torchvision's RandomChoice.

    Attributes:
        steps: from which it is chosen.
        weights: as many; empty: all alike.
    """

    steps: tuple[Step, ...] = ()
    weights: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", steps_of("OneOf.steps", self.steps))
        try:
            object.__setattr__(self, "weights", tuple(float(weight) for weight in self.weights))
        except (TypeError, ValueError):
            raise InvalidRequest(f"OneOf.weights: must be numbers, are {self.weights!r}") from None
