"""Albumentations' transforms as recipes: the few that are the same whichever library does them, and an exception for the others."""

from __future__ import annotations

import dataclasses
from typing import Any

from millrace import steps
from millrace._transforms.torchvision_steps import SAME, Steps, fill_of, one_step, pair
from millrace._transforms.translation import Inner, Language, Translation, Words, name_of, nothing, number
from millrace.errors import Unsupported
from millrace.recipe import (
    CropPlace,
    ExactSize,
    Filter,
    LongerSide,
    Pad,
    PadMode,
    RandomResizedCrop,
    RandomShorterSide,
    Recipe,
    ShorterSide,
    Size,
)

_FILTERS: dict[int, Filter] = {0: "nearest", 1: "bilinear", 2: "bicubic", 3: "box", 4: "lanczos"}  # of OpenCV's numbers
_MODES: dict[int, PadMode] = {0: "constant", 1: "edge", 2: "symmetric", 4: "reflect"}
_LIKE = {  # torchvision's that do the same with other arithmetic, and where a recipe has them
    "Affine": ("RandomAffine", "steps.Affine"),
    "AutoContrast": ("RandomAutocontrast", "steps.AutoContrast"),
    "CoarseDropout": ("RandomErasing", "Erasing"),
    "ColorJitter": ("ColorJitter", "steps.ColorJitter"),
    "Equalize": ("RandomEqualize", "steps.Equalize"),
    "GaussianBlur": ("GaussianBlur", "steps.GaussianBlur"),
    "HueSaturationValue": ("ColorJitter", "steps.ColorJitter"),
    "Perspective": ("RandomPerspective", "steps.Perspective"),
    "RandomBrightnessContrast": ("ColorJitter", "steps.ColorJitter"),
    "Rotate": ("RandomRotation", "steps.Rotation"),
    "Sharpen": ("RandomAdjustSharpness", "steps.Sharpness"),
    "ToGray": ("RandomGrayscale", "steps.Grayscale"),
}


def from_albumentations(transform: Any) -> Recipe:
    """The recipe that does what ``transform`` does, but for the resampling: sizes, crops and flips are the same, and it resizes as Pillow.

    OpenCV, with which Albumentations resizes, does not antialias, so pixels of a resized image differ visibly. Flips, inversion,
    posterisation, solarisation, crops, padding and normalisation are the same. LongestMaxSize and SmallestMaxSize round the other side,
    which the daemon truncates: it may be a pixel shorter. Parameters are drawn by the daemon from the same distributions.
    Tensors are N x 3 x H x W, as with ToTensorV2; ``dataclasses.replace(recipe, layout="NHWC")`` where that is left out.

    Args:
        transform: a ``Compose``, a list, or one of Albumentations' transforms. Known are HorizontalFlip, VerticalFlip, InvertImg, Posterize
            and Solarize with one strength, RandomResizedCrop, Resize, LongestMaxSize, SmallestMaxSize, Pad, PadIfNeeded, CropAndPad of
            as many pixels on all sides, CenterCrop, RandomCrop, Normalize, ToFloat, ToTensorV2, ToRGB, NoOp, OneOf and Sequential. The
            others compute as OpenCV does, and are refused.

    Raises:
        Unsupported: names the transform or argument that the daemon does not do, and what to do instead.
    """
    return ALBUMENTATIONS.recipe(transform)


def _always(transform: Any) -> str:
    """Its name, if it is done to every image."""
    if transform.p != 1:
        raise Unsupported(f"{name_of(transform)} with p={transform.p}: the daemon does it to all images alike; say p=1")
    return name_of(transform)


def _compose(translation: Translation, transform: Any) -> None:
    raise Unsupported(f"Compose with p={transform.p}: the daemon does it to all images alike; say p=1")


def _filter(transform: Any) -> Filter:
    if transform.interpolation not in _FILTERS:
        raise Unsupported(f"{name_of(transform)} with interpolation {transform.interpolation}; known are OpenCV's {sorted(_FILTERS)}")
    return _FILTERS[transform.interpolation]


def _random_resized_crop(translation: Translation, transform: Any) -> None:
    name, (height, width) = _always(transform), transform.size
    translation.crop(name, RandomResizedCrop(pair(transform.scale), pair(transform.ratio)))
    translation.resize(name, ExactSize(Size(int(width), int(height))), _filter(transform))


def _resize(translation: Translation, transform: Any) -> None:
    translation.resize(_always(transform), ExactSize(Size(int(transform.width), int(transform.height))), _filter(transform))


def _max_size(transform: Any) -> Any:
    name = _always(transform)
    if transform.max_size is None or transform.area_for_downscale is not None:
        raise Unsupported(f"{name} with max_size_hw or area_for_downscale: the daemon knows max_size alone, and one filter; say these")
    return transform.max_size


def _longest_max_size(translation: Translation, transform: Any) -> None:
    longest = _max_size(transform)
    if not isinstance(longest, int):
        raise Unsupported(
            f"LongestMaxSize that draws from {list(longest)}: the daemon draws shorter sides; say one, or use SmallestMaxSize"
        )
    translation.resize("LongestMaxSize", LongerSide(longest), _filter(transform))


def _smallest_max_size(translation: Translation, transform: Any) -> None:
    shortest = _max_size(transform)
    resize = ShorterSide(shortest) if isinstance(shortest, int) else RandomShorterSide(tuple(shortest))
    translation.resize("SmallestMaxSize", resize, _filter(transform))


def _around(name: str, transform: Any) -> dict[str, Any]:
    """What stands in what is padded."""
    if transform.border_mode not in _MODES:
        raise Unsupported(f"{name} with border_mode={transform.border_mode}: the daemon knows OpenCV's {sorted(_MODES)}, and no wrapping")
    mode = _MODES[transform.border_mode]
    return {"mode": mode, "fill": fill_of(name, transform.fill)} if mode == "constant" else {"mode": mode}


def _place(position: Any) -> CropPlace:
    wanted: CropPlace = "centre" if (name := getattr(position, "value", position)) == "center" else name
    return wanted


def _pad(translation: Translation, transform: Any) -> None:
    name, padding = _always(transform), transform.padding
    sides = [padding] if isinstance(padding, int) else list(padding)
    left, top, right, bottom = sides * (4 // len(sides))
    translation.pad(name, Pad(left, top, right, bottom, **_around(name, transform)))


def _pad_if_needed(translation: Translation, transform: Any) -> None:
    name = _always(transform)
    if transform.min_height is None or transform.min_width is None:
        raise Unsupported(f"{name} to multiples of a number: the daemon pads to a size; say min_height and min_width")
    size = Size(int(transform.min_width), int(transform.min_height))
    translation.pad(name, Pad(to=size, place=_place(transform.position), **_around(name, transform)))


def _crop_and_pad(translation: Translation, transform: Any) -> None:
    name, pixels = _always(transform), transform.px
    if not isinstance(pixels, int) or pixels < 0 or transform.keep_size:
        raise Unsupported(
            f"{name} of another kind than px=4, keep_size=False: the daemon adds as many pixels to all images; use RandomCrop"
        )
    translation.pad(name, Pad(pixels, pixels, pixels, pixels, **_around(name, transform)))


def _cut(translation: Translation, transform: Any, place: CropPlace) -> None:
    name, size = _always(transform), Size(int(transform.width), int(transform.height))
    if transform.pad_if_needed:
        translation.pad(name, Pad(to=size, place=_place(transform.pad_position), **_around(name, transform)))
        translation.cut(name, size, place)
    elif place == "centre":
        translation.centre_crop(name, size)
    else:
        translation.cut(name, size, place)


def _centre_crop(translation: Translation, transform: Any) -> None:
    _cut(translation, transform, "centre")
    translation.recipe = dataclasses.replace(translation.recipe, centre_rounding="down")


def _random_crop(translation: Translation, transform: Any) -> None:
    _cut(translation, transform, "random")


def _flip(translation: Translation, transform: Any) -> None:
    translation.flip("HorizontalFlip", float(transform.p))


def _normalise(translation: Translation, transform: Any) -> None:
    name = _always(transform)
    if transform.normalization != "standard" or transform.max_pixel_value != 255:
        raise Unsupported(f"{name} of another kind than (image / 255 - mean) / std: the daemon knows no other")
    if transform.mean is None or transform.std is None:
        raise Unsupported(f"{name} without mean and std: give both")
    mean, std = ([value] if isinstance(value, (int, float)) else value for value in (transform.mean, transform.std))
    translation.convert(name, "float32", scaled=True)
    translation.normalise(name, map(number, mean), map(number, std))


def _to_float(translation: Translation, transform: Any) -> None:
    if transform.max_value not in (None, 255):
        raise Unsupported(f"ToFloat with max_value={transform.max_value}: the daemon divides by 255")
    translation.convert(_always(transform), "float32", scaled=True)


def _horizontal_flip(transform: Any, inner: Inner) -> Steps:
    return (steps.HorizontalFlip(probability=float(transform.p)),)


def _vertical_flip(transform: Any, inner: Inner) -> Steps:
    return (steps.VerticalFlip(probability=float(transform.p)),)


def _invert(transform: Any, inner: Inner) -> Steps:
    return (steps.Invert(probability=float(transform.p)),)


def _posterize(transform: Any, inner: Inner) -> Steps:
    bits = transform.num_bits
    if not isinstance(bits, (list, tuple)) or len(bits) != 2 or bits[0] != bits[1] or not 1 <= bits[0] <= 8:
        raise Unsupported(f"Posterize with num_bits={bits}: the daemon keeps as many bits of all images; say one number, 1 to 8")
    return (steps.Posterize(int(bits[0]), probability=float(transform.p)),)


def _solarize(transform: Any, inner: Inner) -> Steps:
    low, high = transform.threshold_range
    if low != high:
        raise Unsupported(f"Solarize with threshold_range=({low}, {high}): the daemon has one threshold; say the same twice")
    return (steps.Solarize(255.0 * float(low), probability=float(transform.p)),)


def _one_of(transform: Any, inner: Inner) -> Steps:
    """One is chosen by its probability, and then done."""
    chosen = []
    for each in transform.transforms:
        made = inner(each)
        chosen.append(dataclasses.replace(one_step(made), probability=1.0) if made else SAME)
    weights = [float(weight) for weight in transform.transforms_ps]
    return (steps.OneOf(tuple(chosen), tuple(weights) if len(set(weights)) > 1 else (), probability=float(transform.p)),)


def _sequential(transform: Any, inner: Inner) -> Steps:
    made = inner(list(transform.transforms))
    return (steps.Sequence(made, probability=float(transform.p)),) if made else ()


def _instead(theirs: str, ours: str) -> str:
    field = "steps" if ours.startswith("steps.") else "erasing"
    return f"its arithmetic is OpenCV's; leave it out, and put millrace.{ours}, which is torchvision's {theirs}, into Recipe.{field}"


WORDS = Words(
    whole={
        "CenterCrop": _centre_crop,
        "Compose": _compose,
        "CropAndPad": _crop_and_pad,
        "HorizontalFlip": _flip,
        "LongestMaxSize": _longest_max_size,
        "NoOp": nothing,
        "Normalize": _normalise,
        "Pad": _pad,
        "PadIfNeeded": _pad_if_needed,
        "RandomCrop": _random_crop,
        "RandomResizedCrop": _random_resized_crop,
        "Resize": _resize,
        "SmallestMaxSize": _smallest_max_size,
        "ToFloat": _to_float,
        "ToRGB": nothing,
        "ToTensorV2": nothing,
    },
    steps={
        "HorizontalFlip": _horizontal_flip,
        "InvertImg": _invert,
        "OneOf": _one_of,
        "Posterize": _posterize,
        "Sequential": _sequential,
        "Solarize": _solarize,
        "VerticalFlip": _vertical_flip,
    },
    moves=frozenset({"HorizontalFlip", "VerticalFlip"}),
    refused={name: _instead(theirs, ours) for name, (theirs, ours) in _LIKE.items()},
)
ALBUMENTATIONS = Language(
    "from_albumentations", {"albumentations": WORDS}, "millrace.torch.split() does not divide Albumentations': do it by hand"
)
