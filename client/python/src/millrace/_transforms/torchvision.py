"""torchvision's transforms as recipes: what the daemon can do, in its order, and an exception that says precisely what it cannot."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from millrace import steps
from millrace._transforms.torchvision_steps import MOVES, STEPS, erasing, fill_of, mode_of, pair
from millrace._transforms.translation import Language, Translation, Words, name_of, nothing
from millrace.errors import Unsupported
from millrace.recipe import (
    CropPlace,
    ExactSize,
    Filter,
    LongerSide,
    Pad,
    RandomResizedCrop,
    RandomShorterSide,
    Recipe,
    Resize,
    ScaleJitter,
    ShorterSide,
    Size,
)

_BATCHES = (
    "it works on a batch and its labels: millrace.torch.Mixed(loader, [MixUp(), CutMix()], classes) does, the same again after a resume"
)
_BOXES = "it is about boxes, masks or key points, which the daemon does not know"
_AFTER = "apply it to the images that the loader yields"

_REFUSED: dict[str, str] = {
    "ClampBoundingBoxes": _BOXES,
    "ClampKeyPoints": _BOXES,
    "ConvertBoundingBoxFormat": _BOXES,
    "CutMix": _BATCHES,
    "ElasticTransform": f"it moves each pixel by its own random vector; {_AFTER}, on the GPU, or use RandomAffine or RandomPerspective",
    "GaussianNoise": f"it changes each value by its own random number; {_AFTER}: on a GPU it is one torch.randn_like()",
    "JPEG": "it compresses and decodes again; keep torchvision's loader",
    "Lambda": f"it is a Python function, which the daemon does not run; {_AFTER}",
    "LinearTransformation": f"it multiplies whole images by a matrix; {_AFTER}, as one matrix product of the batch",
    "MixUp": _BATCHES,
    "RandomChannelPermutation": f"it exchanges whole channels; {_AFTER} (images[:, torch.randperm(3)])",
    "RandomIoUCrop": _BOXES,
    "RandomPhotometricDistort": "it permutes channels and fixes the order of what it does; use ColorJitter, which draws the order",
    "RandomZoomOut": (
        "it lays an image on a canvas of a random size; use ScaleJitter and RandomCrop(size, pad_if_needed=True), or RandomAffine(scale=)"
    ),
    "SanitizeBoundingBoxes": _BOXES,
    "SanitizeKeyPoints": _BOXES,
    "SetClampingMode": _BOXES,
    "ToPILImage": "batches are tensors; leave it out, or apply it to the images that the loader yields",
    "Transform": "it is the base of the others",
    "UniformTemporalSubsample": "it is about videos, which the daemon does not read",
}
"""Transforms that no recipe says: why, and what to do instead."""
_FILTERS: dict[str, Filter] = {
    "nearest-exact": "nearest",
    "box": "box",
    "bilinear": "bilinear",
    "hamming": "hamming",
    "bicubic": "bicubic",
    "lanczos": "lanczos",
}
_MOST_SIDES = 64  # from which the daemon draws
_FIVE: tuple[CropPlace, ...] = ("top_left", "top_right", "bottom_left", "bottom_right", "centre")
_FIVE_MIRRORED: tuple[CropPlace, ...] = ("top_right", "top_left", "bottom_right", "bottom_left", "centre")
_FIVE_UPSIDE_DOWN: tuple[CropPlace, ...] = ("bottom_left", "bottom_right", "top_left", "top_right", "centre")


def from_torchvision(transform: Any) -> Recipe:
    """The recipe that does what ``transform`` does.

    Parameters are drawn by the daemon from (seed, epoch, sample id), not by PyTorch's generator, from the same distributions. Given the
    same boxes and flips the pixels are within 1/255 of torchvision's with ``antialias=True``; given the same parameters, steps of
    augmentation (``millrace.steps``) make of these what torchvision makes of a PIL image: on tensors some of its own differ in the last
    bit. An image that is smaller than a CenterCrop is padded, as by torchvision, unless a Resize, Pad or another crop follows: then
    it is a bad sample, as is one that is smaller than another crop. RandomCrop with padding is ``Recipe.pad`` and a crop at a random place;
    behind a flip or an augmentation it is ``steps.Shift``, of images of its own size. FiveCrop and TenCrop, behind which images are
    only converted and normalised, make a recipe with views. A class that makes several images by several transforms is
    ``Recipe.of_views(from_torchvision(first), from_torchvision(second), ...)``. Every transform of torchvision's, and whether it is
    known, is in client/python/doc/transforms.md.

    Args:
        transform: a ``Compose`` (v2 or v1), a list, one transform, a weights' ``transforms()`` for classification, or an object whose
            ``transforms`` is a ``Compose`` that its ``__call__`` applies, as the presets of torchvision's training scripts.

    Raises:
        Unsupported: names the transform or argument that the daemon does not do, and what to do instead.
    """
    return TORCHVISION.recipe(transform)


def _random_resized_crop(translation: Translation, transform: Any) -> None:
    translation.crop(name_of(transform), RandomResizedCrop(pair(transform.scale), pair(transform.ratio)))
    translation.resize(name_of(transform), ExactSize(size_of(transform.size)), _filter(transform))


def _resize(translation: Translation, transform: Any) -> None:
    size = [transform.size] if isinstance(transform.size, int) else list(transform.size or [])
    translation.resize("Resize", _resize_to(size, getattr(transform, "max_size", None)), _filter(transform))


def _centre_crop(translation: Translation, transform: Any) -> None:
    translation.centre_crop("CenterCrop", size_of(transform.size), pads=True)


def _pad(translation: Translation, transform: Any) -> None:
    translation.pad("Pad", pad_of("Pad", transform.padding, transform))


def _random_crop(translation: Translation, transform: Any) -> None:
    """A window at a random place in what is padded; after what padding comes before, of an image of just that size, a move."""
    size, padding = size_of(transform.size), list(_sides("RandomCrop", transform.padding))
    if type(transform).__module__.startswith("torchvision.transforms.v2."):  # which keeps them in another order
        padding[1:3] = padding[2:0:-1]
    pad = pad_of("RandomCrop", padding, transform)
    if translation.may_pad:
        if transform.pad_if_needed and not translation.has_room(size, pad):
            pad = dataclasses.replace(pad, to=size, place="random", mode=transform.padding_mode, fill=_fill("RandomCrop", transform))
        translation.pad("RandomCrop", pad)
        translation.cut("RandomCrop", size, "random")
        return
    known = translation.recipe.fixed_size
    if not any(padding):
        if known != size:
            translation.cut("RandomCrop", size, "random")  # which says why not
    elif known != size or (pad.left, pad.top, pad.mode) != (pad.right, pad.bottom, "constant"):
        raise Unsupported(
            f"RandomCrop with padding={transform.padding}, {transform.padding_mode} after a flip or an augmentation: there the daemon only "
            "moves images, with a colour, alike to both sides, and of its own size alone; put RandomCrop right behind the Resize"
        )
    else:
        translation.step("RandomCrop", (steps.Shift(pad.left, pad.top, pad.fill),))


def _scale_jitter(translation: Translation, transform: Any) -> None:
    """Its target is width and height: it divides the second by the image's height."""
    width, height = transform.target_size
    resize = ScaleJitter(Size(int(width), int(height)), pair(transform.scale_range))
    translation.resize("ScaleJitter", resize, _filter(transform))


def _random_shortest_size(translation: Translation, transform: Any) -> None:
    longest = None if transform.max_size is None else int(transform.max_size)
    sides = [int(side) if longest is None else min(int(side), longest) for side in transform.min_size]
    translation.resize("RandomShortestSize", _one_of("RandomShortestSize", sides, longest), _filter(transform))


def _random_resize(translation: Translation, transform: Any) -> None:
    sides = range(int(transform.min_size), int(transform.max_size))
    translation.resize("RandomResize", _one_of("RandomResize", sides, None), _filter(transform))


def _one_of(name: str, sides: Sequence[int], longest: int | None) -> RandomShorterSide:
    if not 1 <= len(sides) <= _MOST_SIDES:
        raise Unsupported(f"{name} that draws from {len(sides)} sizes: the daemon draws from {_MOST_SIDES} at most; take every second one")
    return RandomShorterSide(tuple(sides), longest)


def _five_crop(translation: Translation, transform: Any) -> None:
    translation.windows("FiveCrop", size_of(transform.size), tuple((place, ()) for place in _FIVE))


def _ten_crop(translation: Translation, transform: Any) -> None:
    """The five, and those of the flipped image: what is in its corner was in the opposite one."""
    flip: tuple[steps.Step, ...] = (steps.VerticalFlip(),) if transform.vertical_flip else (steps.HorizontalFlip(),)
    flipped = _FIVE_UPSIDE_DOWN if transform.vertical_flip else _FIVE_MIRRORED
    windows = (*((place, ()) for place in _FIVE), *((place, flip) for place in flipped))
    translation.windows("TenCrop", size_of(transform.size), windows)


def _flip(translation: Translation, transform: Any) -> None:
    translation.flip("RandomHorizontalFlip", float(transform.p))


def _grayscale(translation: Translation, transform: Any) -> None:
    if transform.num_output_channels == 1:
        translation.grey("Grayscale")
    else:
        translation.step("Grayscale", STEPS["Grayscale"](transform, TORCHVISION.step))


def _three_channels(translation: Translation, transform: Any) -> None:
    if translation.recipe.channels == "grey":
        raise Unsupported("RGB after Grayscale(1): say Grayscale(3) in the place of both")


def _random_erasing(translation: Translation, transform: Any) -> None:
    translation.erase("RandomErasing", erasing(transform))


def _to_dtype(translation: Translation, transform: Any) -> None:
    dtype = transform.dtype
    if isinstance(dtype, dict):  # by class
        dtype = next((wanted for kind, wanted in dtype.items() if getattr(kind, "__name__", kind) == "Image"), dtype.get("others"))
    if dtype is None:
        return
    translation.is_tensor = True
    translation.convert(name_of(transform), dtype, scaled=getattr(transform, "scale", True))


def to_tensor(translation: Translation, transform: Any) -> None:
    """To floats in [0, 1]; a tensor is left as it is, which is seldom what was wanted."""
    if translation.is_tensor and not translation.is_converted:
        raise Unsupported(f"{name_of(transform)} leaves a tensor's bytes as they are: say ToDtype(torch.float32, scale=True)")
    translation.is_tensor = True
    translation.convert(name_of(transform), translation.recipe.dtype if translation.is_converted else "float32", scaled=True)


def to_bytes(translation: Translation, transform: Any) -> None:
    translation.is_tensor = True


def normalise(translation: Translation, transform: Any) -> None:
    translation.normalise("Normalize", transform.mean, transform.std)


def _classification(translation: Translation, transform: Any) -> None:
    """Torchvision's preset of a model's weights: resize, centre crop, float32, normalise."""
    name = name_of(transform)
    resize = transform.resize_size if len(transform.resize_size) > 1 else transform.resize_size[0]
    resized = ShorterSide(resize) if isinstance(resize, int) else ExactSize(size_of(resize))
    translation.resize(name, resized, _filter(transform))
    translation.centre_crop(name, size_of(transform.crop_size), pads=True)
    translation.is_tensor = True
    translation.convert(name, "float32", scaled=True)
    translation.normalise(name, transform.mean, transform.std)


WORDS = Words(
    whole={
        "CenterCrop": _centre_crop,
        "ConvertImageDtype": _to_dtype,
        "FiveCrop": _five_crop,
        "Grayscale": _grayscale,
        "Identity": nothing,
        "ImageClassification": _classification,
        "Normalize": normalise,
        "PILToTensor": to_bytes,
        "Pad": _pad,
        "RGB": _three_channels,
        "RandomCrop": _random_crop,
        "RandomErasing": _random_erasing,
        "RandomHorizontalFlip": _flip,
        "RandomResize": _random_resize,
        "RandomResizedCrop": _random_resized_crop,
        "RandomShortestSize": _random_shortest_size,
        "Resize": _resize,
        "ScaleJitter": _scale_jitter,
        "TenCrop": _ten_crop,
        "ToDtype": _to_dtype,
        "ToImage": to_bytes,
        "ToPureTensor": nothing,
        "ToTensor": to_tensor,
    },
    steps=STEPS,
    moves=MOVES,
    refused=_REFUSED,
)
TORCH = Words(whole={"Identity": nothing}, steps={}, moves=frozenset(), refused={})
TORCHVISION = Language("from_torchvision", {"torchvision": WORDS, "torch": TORCH})


def _resize_to(size: list[Any], max_size: int | None) -> Resize:
    if max_size is not None and size and max_size <= size[0]:
        raise Unsupported(f"Resize(max_size={max_size}) must be over the size, {size[0]}; torchvision refuses it, too")
    if len(size) == 2:
        if max_size is not None:
            raise Unsupported("Resize(max_size=...) with an exact size; torchvision refuses it, too: give one of them")
        return ExactSize(size_of(size))
    longest = None if max_size is None else int(max_size)
    if size:
        return ShorterSide(int(size[0]), longest)
    if longest is None:
        raise Unsupported("Resize(size=None) without max_size makes no size; give one")
    return LongerSide(longest)


def size_of(size: Any) -> Size:
    """Torchvision's (height, width), or one number for both."""
    sides = [size, size] if isinstance(size, int) else list(size)
    height, width = (sides * 2)[:2] if len(sides) == 1 else sides
    return Size(int(width), int(height))


def pad_of(name: str, padding: Any, transform: Any) -> Pad:
    """Of Pad and RandomCrop; what lies around an image that is not padded is not said."""
    sides = _sides(name, padding)
    return Pad(*sides, mode=transform.padding_mode, fill=_fill(name, transform)) if any(sides) else Pad()


def _fill(name: str, transform: Any) -> steps.Fill:
    return fill_of(name, transform.fill) if transform.padding_mode == "constant" else steps.Rotation().fill


def _sides(name: str, padding: Any) -> tuple[int, int, int, int]:
    """Torchvision's padding: a number, two (left and right, above and below) or four."""
    sides = [padding or 0] if isinstance(padding, int | None) else list(padding)
    left, top, right, bottom = (int(side) for side in sides * (4 // len(sides)))
    if min(left, top, right, bottom) < 0:
        raise Unsupported(f"{name} with padding={padding}: less than 0 cuts off, and a recipe adds; use CenterCrop")
    return left, top, right, bottom


def _filter(transform: Any) -> Filter:
    return filter_of(name_of(transform), "nearest-exact" if transform.interpolation == 0 else mode_of(transform), transform)


def filter_of(name: str, mode: Any, transform: Any) -> Filter:
    if mode == "nearest":
        raise Unsupported(f"{name} with NEAREST samples off centre; NEAREST_EXACT is Pillow's, and the daemon's")
    if mode not in _FILTERS:
        raise Unsupported(f"{name} with interpolation {mode}; known are {', '.join(_FILTERS)}")
    if getattr(transform, "antialias", True) is False and mode in ("bilinear", "bicubic"):
        raise Unsupported(f"{name} with antialias=False: the daemon antialiases, as Pillow does; say True")
    return _FILTERS[mode]
