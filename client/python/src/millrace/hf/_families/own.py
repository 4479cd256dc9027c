"""What the classes of processors have each for itself: what counts where the configuration is silent. And the part that all share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from millrace.hf._families.config import Keys
from millrace.recipe import DType, Filter, Normalise, Recipe, Resize

Statistics = tuple[tuple[float, float, float], tuple[float, float, float]]
"""Means and deviations."""

CLIP: Statistics = ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711))
HALF: Statistics = ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
IMAGENET: Statistics = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
PLAIN: Statistics = ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))


def square(side: int) -> dict[str, int]:
    """A size of two equal sides."""
    return {"height": side, "width": side}


@dataclass(frozen=True)
class Own:
    """The defaults of one class.

    Attributes:
        size: of the resize.
        filter: of the resize.
        statistics: of the normalisation; None: the configuration has to give them.
        bare: the keys that a bare number for ``size`` stands for.
        crops: whether the middle is cut out.
        crop: its size.
        normalises: whether; None: never, whatever the configuration says.
        rescales: whether; None: never.
        scale: of the rescaling.
        resamples: whether ``resample`` counts; False: the filter is always this one.
        floats: whether pixels that are neither rescaled nor normalised are float32, too.
        accepted: keys that count for annotations, videos or post-processing only.
    """

    size: Mapping[str, int] = field(default_factory=lambda: square(224))
    filter: Filter = "bicubic"
    statistics: Statistics | None = CLIP
    bare: tuple[str, ...] = ("height", "width")
    crops: bool = False
    crop: Mapping[str, int] = field(default_factory=lambda: square(224))
    normalises: bool | None = True
    rescales: bool | None = True
    scale: float = 1 / 255
    resamples: bool = True
    floats: bool = False
    accepted: tuple[str, ...] = ()


def recipe_of(keys: Keys, dtype: DType | None, own: Own, resize: Resize | None, **more: Any) -> Recipe:
    """What all processors have in common: filter, rescaling, normalisation."""
    keys.accept(*own.accepted)
    keys.flag("do_convert_rgb", True)  # pictures always come as RGB, as transformers' load_image() makes them
    scale = keys.number("rescale_factor", own.scale)
    rescales = normalises = False
    if own.rescales is None:
        keys.accept("do_rescale")
    else:
        rescales = keys.flag("do_rescale", own.rescales)
    if own.normalises is None:
        keys.accept("do_normalize", "image_mean", "image_std")
    else:
        normalises = keys.flag("do_normalize", own.normalises)
    if own.statistics is None and normalises and not (keys.has("image_mean") and keys.has("image_std")):
        raise keys.wrong("do_normalize", "true needs image_mean and image_std, which this class has no values of its own for")
    mean, std = channels_of(keys, own)
    if 0 in std:
        raise keys.wrong("image_std", "must not hold 0")
    if not own.resamples:
        keys.accept("resample")
    recipe = {"resize": resize, "filter": keys.filter("resample", own.filter) if own.resamples else own.filter, **more}
    factor = 255 * scale if rescales else 255.0  # transformers' values are ours times this
    if normalises:
        unit = Normalise(tuple(m / factor for m in mean), tuple(s / factor for s in std))
        return Recipe(**recipe, normalise=unit, dtype=floating(dtype, keys))
    if rescales and factor != 1:
        return Recipe(**recipe, normalise=Normalise((0.0,), (1 / factor,)), dtype=floating(dtype, keys))
    return Recipe(**recipe, range="unit" if rescales else "raw", dtype=dtype or ("float32" if rescales or own.floats else "uint8"))


def channels_of(keys: Keys, own: Own) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    """Mean and deviation by channel."""
    mean, std = own.statistics or PLAIN
    return keys.channels("image_mean", mean), keys.channels("image_std", std)


def floating(dtype: DType | None, keys: Keys) -> DType:
    """The element type of pixels that are no whole numbers."""
    if dtype == "uint8":
        keys.unsupported("do_normalize", "normalised or rescaled pixels are not whole numbers: choose a floating dtype")
    return dtype or "float32"


def must_resize(keys: Keys) -> None:
    """Raises Unsupported for a configuration that leaves images in the sizes they have."""
    if not keys.flag("do_resize", True):
        keys.unsupported("do_resize", "false leaves images of different sizes, which make no one array")
