"""torchvision's transforms as recipes: what the daemon can do, in its order, and an exception that says precisely what it cannot."""

from __future__ import annotations

from typing import Any

from millrace import steps
from millrace._torchvision_refused import REFUSED
from millrace._torchvision_steps import MOVES, STEPS, erasing, fill_of, mode_of, pair
from millrace._translation import Language, Translation, Words, name_of, nothing
from millrace.errors import Unsupported
from millrace.recipe import CropPlace, ExactSize, Filter, LongerSide, RandomResizedCrop, Recipe, Resize, ShorterSide, Size

_FILTERS: dict[str, Filter] = {
    "nearest-exact": "nearest",
    "box": "box",
    "bilinear": "bilinear",
    "hamming": "hamming",
    "bicubic": "bicubic",
    "lanczos": "lanczos",
}
_FIVE: tuple[CropPlace, ...] = ("top_left", "top_right", "bottom_left", "bottom_right", "centre")
_FIVE_MIRRORED: tuple[CropPlace, ...] = ("top_right", "top_left", "bottom_right", "bottom_left", "centre")
_FIVE_UPSIDE_DOWN: tuple[CropPlace, ...] = ("bottom_left", "bottom_right", "top_left", "top_right", "centre")


def from_torchvision(transform: Any) -> Recipe:
    """The recipe that does what ``transform`` does.

    Parameters are drawn by the daemon from (seed, epoch, sample id), not by PyTorch's generator, from the same distributions. Given the
    same boxes and flips the pixels are within 1/255 of torchvision's with ``antialias=True``; given the same parameters, steps of
    augmentation (``millrace.steps``) make of these what torchvision makes of a PIL image: on tensors some of its own differ in the last
    bit. An image that is smaller than a CenterCrop, which torchvision pads, is a bad sample; ``Resize(size, max_size)`` makes long images
    smaller than ``size``. FiveCrop and TenCrop, behind which images are only converted and normalised, make a recipe with views. A class
    that makes several images by several transforms is ``Recipe.of_views(from_torchvision(first), from_torchvision(second), ...)``. Every
    transform of torchvision's, and whether it is known, is in client/python/doc/transforms.md.

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
    translation.centre_crop("CenterCrop", size_of(transform.size))


def _random_crop(translation: Translation, transform: Any) -> None:
    """A window at a random place; with padding, of an image of just that size: a move by whole pixels, each as likely as the others."""
    size, known, room = size_of(transform.size), translation.recipe.fixed_size, translation.room
    if not transform.padding:
        bounded = isinstance(resize := translation.recipe.resize, ShorterSide) and resize.longest is not None
        if transform.pad_if_needed and (bounded or room is None or room.width < size.width or room.height < size.height):
            raise Unsupported("RandomCrop with pad_if_needed=True: the daemon pads no image; put a Resize to at least that size before it")
        translation.cut("RandomCrop", size, "random")
        return
    if known != size:
        raise Unsupported(
            "RandomCrop with padding is something that the daemon does to images of its own size alone: put Resize((height, width)) before "
            "RandomCrop((height, width), padding=...) if all images are so large, or leave padding out"
        )
    padding = [transform.padding] if isinstance(transform.padding, int) else list(transform.padding)
    left, top, right, bottom = padding * (4 // len(padding))
    if type(transform).__module__.startswith("torchvision.transforms.v2."):  # which keeps them in another order
        left, right, top, bottom = left, top, right, bottom
    if (left, top) != (right, bottom) or transform.padding_mode != "constant":
        raise Unsupported(
            f"RandomCrop with padding={transform.padding}, {transform.padding_mode}: the daemon pads both sides alike, with a colour"
        )
    translation.step("RandomCrop", (steps.Shift(left, top, fill_of("RandomCrop", transform.fill)),))


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
    translation.centre_crop(name, size_of(transform.crop_size))
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
        "RGB": _three_channels,
        "RandomCrop": _random_crop,
        "RandomErasing": _random_erasing,
        "RandomHorizontalFlip": _flip,
        "RandomResizedCrop": _random_resized_crop,
        "Resize": _resize,
        "TenCrop": _ten_crop,
        "ToDtype": _to_dtype,
        "ToImage": to_bytes,
        "ToPureTensor": nothing,
        "ToTensor": to_tensor,
    },
    steps=STEPS,
    moves=MOVES,
    refused=REFUSED,
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
