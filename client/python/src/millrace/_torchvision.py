"""torchvision's transforms as recipes: what the daemon can do, in its order, and an exception that says precisely what it cannot.

Transforms are known by their class's name and public attributes, so torchvision need not be imported, and its v1 and v2 are the same.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, get_args

from millrace._dtype import DType, dtype_name
from millrace.errors import InvalidRequest, Unsupported
from millrace.recipe import (
    CentreCrop,
    ExactSize,
    Filter,
    LongerSide,
    Normalise,
    RandomResizedCrop,
    Recipe,
    Resize,
    ShorterSide,
    Size,
)

_ORDER = "the daemon's order is: crop, resize, centre crop, flip, conversion of the type, normalisation"
_FILTERS: dict[str, Filter] = {
    "nearest-exact": "nearest",
    "box": "box",
    "bilinear": "bilinear",
    "hamming": "hamming",
    "bicubic": "bicubic",
    "lanczos": "lanczos",
}
_PIL_FILTERS = {0: "nearest-exact", 1: "lanczos", 2: "bilinear", 3: "bicubic", 4: "box", 5: "hamming"}
_START, _CROPPED, _RESIZED, _CENTRED, _FLIPPED, _CONVERTED, _NORMALISED = range(7)


def from_torchvision(transform: Any) -> Recipe:
    """The recipe that does what ``transform`` does.

    Boxes and flips are drawn by the daemon from (seed, epoch, sample id), not by PyTorch's generator; given the same boxes and flips the
    pixels are within 1/255 of torchvision's with ``antialias=True``. An image that is smaller than a CenterCrop, which torchvision pads, is
    a bad sample; ``Resize(size, max_size)`` makes long images smaller than ``size``.

    Args:
        transform: a ``Compose`` (v2 or v1), a list, one transform, or a weights' ``transforms()`` for classification. Known are
            RandomResizedCrop, Resize, CenterCrop, RandomHorizontalFlip, ToDtype, ConvertImageDtype, ToTensor, Normalize, and
            ToImage, PILToTensor, ToPureTensor, RGB and Identity, which are no work for the daemon.

    Raises:
        Unsupported: names the transform or argument that the daemon does not do, and what to do instead.
    """
    translation = _Translation()
    for step in _steps(transform):
        translation.add(step)
    return translation.recipe


def _steps(transform: Any) -> Iterable[Any]:
    if isinstance(transform, (list, tuple)):
        for inner in transform:
            yield from _steps(inner)
    elif _name(transform) in ("Compose", "Sequential"):
        yield from _steps(list(getattr(transform, "transforms", transform)))
    else:
        yield transform


def _name(transform: Any) -> str:
    return type(transform).__name__


class _Translation:
    """The recipe so far, and how far it is in the daemon's order."""

    def __init__(self) -> None:
        self.recipe = Recipe()
        self._done = _START
        self._last = "the beginning"

    def add(self, step: Any) -> None:
        name = _name(step)
        known = _TRANSFORMS.get(name)
        if isinstance(step, partial) and isinstance(step.func, type):
            raise Unsupported(f"from_torchvision: a function that makes the transform: call it first (weights.transforms()); is {step}")
        if known is None or not type(step).__module__.startswith("torchvision."):
            raise Unsupported(
                f"from_torchvision: {name} is not something that the daemon does; known are {', '.join(sorted(_TRANSFORMS))}. "
                "Apply it to each image that the loader yields (given a whole batch it draws once for all of its images), or keep "
                "torchvision's loader"
            )
        known(self, step)
        self._last = name

    def _at(self, step: Any, stage: int, **changes: Any) -> None:
        if self._done >= stage:
            raise Unsupported(f"from_torchvision: {_name(step)} after {self._last}; {_ORDER}")
        self._done = stage
        self.recipe = dataclasses.replace(self.recipe, **changes)

    def _nothing(self, step: Any) -> None:
        pass

    def _random_resized_crop(self, step: Any) -> None:
        crop = RandomResizedCrop(tuple(step.scale), tuple(step.ratio))
        self._at(step, _CROPPED, crop=crop)
        self._at(step, _RESIZED, resize=ExactSize(_size(step.size)), filter=_filter(step))

    def _resize(self, step: Any) -> None:
        size = [step.size] if isinstance(step.size, int) else list(step.size or [])
        self._at(step, _RESIZED, resize=_resize_to(size, getattr(step, "max_size", None)), filter=_filter(step))

    def _centre_crop(self, step: Any) -> None:
        size = _size(step.size)
        if self._done < _RESIZED:
            self._at(step, _CROPPED, crop=CentreCrop(size))
            return
        resize = self.recipe.resize
        room = Size(resize.pixels, resize.pixels) if isinstance(resize, ShorterSide) else self.recipe.fixed_size
        if room is not None and (size.width > room.width or size.height > room.height):
            raise Unsupported(f"from_torchvision: CenterCrop to {size.width} x {size.height} pads an image of {room.width} x {room.height}")
        self._at(step, _CENTRED, centre_crop=size)

    def _flip(self, step: Any) -> None:
        if self._done < _FLIPPED:
            self._at(step, _FLIPPED, flip_probability=float(step.p))
        elif self.recipe.flip_probability:
            raise Unsupported("from_torchvision: a second RandomHorizontalFlip; one is enough")
        else:  # what came since works on each pixel alone
            self.recipe = dataclasses.replace(self.recipe, flip_probability=float(step.p))

    def _to_dtype(self, step: Any) -> None:
        scaled = getattr(step, "scale", True)
        dtype = _dtype(getattr(step, "dtype", "torch.float32"))
        self._at(step, _CONVERTED, dtype=dtype, range="unit" if scaled else "raw")

    def _normalise(self, step: Any) -> None:
        if self._done < _CONVERTED or self.recipe.range != "unit" or self.recipe.dtype == "uint8":
            raise Unsupported("from_torchvision: Normalize needs floats in [0, 1]: put ToDtype(torch.float32, scale=True) before it")
        normalise = Normalise(tuple(map(float, step.mean)), tuple(map(float, step.std)))
        self._at(step, _NORMALISED, normalise=normalise)

    def _classification(self, step: Any) -> None:
        """Torchvision's preset of a model's weights: resize, centre crop, float32, normalise."""
        resize = step.resize_size if len(step.resize_size) > 1 else step.resize_size[0]
        resized = ShorterSide(resize) if isinstance(resize, int) else ExactSize(_size(resize))
        self._at(step, _RESIZED, resize=resized, filter=_filter(step))
        self._at(step, _CENTRED, centre_crop=_size(step.crop_size))
        normalise = Normalise(tuple(map(float, step.mean)), tuple(map(float, step.std)))
        self._at(step, _NORMALISED, dtype="float32", normalise=normalise)


_TRANSFORMS: dict[str, Callable[[_Translation, Any], None]] = {
    "CenterCrop": _Translation._centre_crop,
    "ConvertImageDtype": _Translation._to_dtype,
    "Identity": _Translation._nothing,
    "ImageClassification": _Translation._classification,
    "Normalize": _Translation._normalise,
    "PILToTensor": _Translation._nothing,
    "RGB": _Translation._nothing,
    "RandomHorizontalFlip": _Translation._flip,
    "RandomResizedCrop": _Translation._random_resized_crop,
    "Resize": _Translation._resize,
    "ToDtype": _Translation._to_dtype,
    "ToImage": _Translation._nothing,
    "ToPureTensor": _Translation._nothing,
    "ToTensor": _Translation._to_dtype,
}


def _resize_to(size: list[Any], max_size: int | None) -> Resize:
    if max_size is not None and size and max_size <= size[0]:
        raise Unsupported(f"from_torchvision: Resize(max_size={max_size}) must be over the size, {size[0]}; torchvision refuses it, too")
    if len(size) == 2:
        if max_size is not None:
            raise Unsupported("from_torchvision: Resize(max_size=...) with an exact size; torchvision refuses it, too: give one of them")
        return ExactSize(_size(size))
    longest = None if max_size is None else int(max_size)
    if size:
        return ShorterSide(int(size[0]), longest)
    if longest is None:
        raise Unsupported("from_torchvision: Resize(size=None) without max_size makes no size; give one")
    return LongerSide(longest)


def _size(size: Any) -> Size:
    """Torchvision's (height, width), or one number for both."""
    sides = [size, size] if isinstance(size, int) else list(size)
    height, width = (sides * 2)[:2] if len(sides) == 1 else sides
    return Size(int(width), int(height))


def _filter(step: Any) -> Filter:
    mode = getattr(step.interpolation, "value", step.interpolation)
    mode = _PIL_FILTERS.get(mode, mode)
    if mode == "nearest":
        raise Unsupported(f"from_torchvision: {_name(step)} with NEAREST samples off centre; NEAREST_EXACT is Pillow's, and the daemon's")
    if mode not in _FILTERS:
        raise Unsupported(f"from_torchvision: {_name(step)} with interpolation {mode}; known are {', '.join(_FILTERS)}")
    if getattr(step, "antialias", True) is False and mode in ("bilinear", "bicubic"):
        raise Unsupported(f"from_torchvision: {_name(step)} with antialias=False: the daemon antialiases, as Pillow does; say True")
    return _FILTERS[mode]


def _dtype(dtype: Any) -> DType:
    try:
        return dtype_name(dtype)
    except InvalidRequest:
        raise Unsupported(f"from_torchvision: conversion to {dtype}; the daemon makes {', '.join(get_args(DType))}") from None
