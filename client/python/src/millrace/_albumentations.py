"""Albumentations' transforms as recipes: the few that are the same whichever library does them, and an exception for the others."""

from __future__ import annotations

import dataclasses
from typing import Any

from millrace import steps
from millrace._torchvision_steps import SAME, Steps, one_step, pair
from millrace._translation import Inner, Language, Translation, Words, name_of, nothing, number
from millrace.errors import Unsupported
from millrace.recipe import ExactSize, Filter, RandomResizedCrop, Recipe, Size

_FILTERS: dict[int, Filter] = {0: "nearest", 1: "bilinear", 2: "bicubic", 3: "box", 4: "lanczos"}  # of OpenCV's numbers
_OTHER = "its arithmetic is OpenCV's; use torchvision's"


def from_albumentations(transform: Any) -> Recipe:
    """The recipe that does what ``transform`` does, but for the resampling: sizes, crops and flips are the same, and it resizes as Pillow.

    OpenCV, with which Albumentations resizes, does not antialias, so pixels of a resized image differ visibly. Flips, inversion,
    posterisation, solarisation, crops and normalisation are the same. Parameters are drawn by the daemon from the same distributions.
    Tensors are N x 3 x H x W, as with ToTensorV2; ``dataclasses.replace(recipe, layout="NHWC")`` where that is left out.

    Args:
        transform: a ``Compose``, a list, or one of Albumentations' transforms. Known are HorizontalFlip, VerticalFlip, InvertImg, Posterize
            and Solarize with one strength, RandomResizedCrop, Resize, CenterCrop, RandomCrop, Normalize, ToFloat, ToTensorV2, ToRGB, NoOp,
            OneOf and Sequential. The others compute as OpenCV does, and are refused.

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


def _centre_crop(translation: Translation, transform: Any) -> None:
    if transform.pad_if_needed:
        raise Unsupported("CenterCrop with pad_if_needed=True: the daemon adds no borders; a smaller image is a bad sample")
    translation.centre_crop(_always(transform), Size(int(transform.width), int(transform.height)))
    translation.recipe = dataclasses.replace(translation.recipe, centre_rounding="down")


def _random_crop(translation: Translation, transform: Any) -> None:
    if transform.pad_if_needed:
        raise Unsupported("RandomCrop with pad_if_needed=True: the daemon adds no borders; a smaller image is a bad sample")
    translation.cut(_always(transform), Size(int(transform.width), int(transform.height)), "random")


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


WORDS = Words(
    whole={
        "CenterCrop": _centre_crop,
        "Compose": _compose,
        "HorizontalFlip": _flip,
        "NoOp": nothing,
        "Normalize": _normalise,
        "RandomCrop": _random_crop,
        "RandomResizedCrop": _random_resized_crop,
        "Resize": _resize,
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
    refused={
        "Affine": f"{_OTHER} RandomAffine",
        "ColorJitter": f"{_OTHER} ColorJitter",
        "Equalize": f"{_OTHER} RandomEqualize",
        "GaussianBlur": f"{_OTHER} GaussianBlur",
        "LongestMaxSize": "it rounds the other side, which the daemon truncates; use Resize, or Recipe(resize=LongerSide(...))",
        "Perspective": f"{_OTHER} RandomPerspective",
        "Rotate": f"{_OTHER} RandomRotation",
        "SmallestMaxSize": "it rounds the other side, which the daemon truncates; use Resize, or Recipe(resize=ShorterSide(...))",
        "ToGray": f"{_OTHER} RandomGrayscale",
    },
)
ALBUMENTATIONS = Language("from_albumentations", {"albumentations": WORDS})
