"""torchvision's augmentations as steps, by their public attributes: those of its v1 and its v2 have the same names."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from millrace import steps
from millrace._transforms.translation import Inner, name_of, number
from millrace.errors import InvalidRequest, Unsupported

Steps = tuple[steps.Step, ...]
PIL_FILTERS = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic", 4: "box", 5: "hamming"}
_SAMPLINGS: dict[str, steps.Sampling] = {
    "nearest": "nearest",
    "nearest-exact": "nearest",
    "bilinear": "bilinear",
    "bicubic": "bicubic",
}
_LEAST_AREA = 1e-6  # that the daemon takes as a share; less than a pixel, which it draws again
SAME = steps.HorizontalFlip(probability=0.0)
"""A step that leaves every image as it is, where a group needs one."""


def erasing(transform: Any) -> steps.Erasing:
    """Of a RandomErasing; what overwrites is in the units of the image that it was given."""
    value = transform.value
    if value is None or isinstance(value, str):
        wanted: float | tuple[float, float, float] | steps.Noise = "pixel"
    else:
        values = [float(value)] if isinstance(value, (int, float)) else [float(each) for each in value]
        if len(values) not in (1, 3):
            raise Unsupported(f"RandomErasing with {len(values)} values: give one, or one for each channel")
        wanted = values[0] if len(values) == 1 else (values[0], values[1], values[2])
    low, high = pair(transform.scale)
    return steps.Erasing(float(transform.p), (max(low, _LEAST_AREA), high), pair(transform.ratio), wanted)


def pair(values: Any) -> steps.Interval:
    low, high = values
    return number(low), number(high)


def mode_of(transform: Any) -> Any:
    """The name of its interpolation: torchvision's mode, Pillow's number of it, or the name."""
    mode = getattr(transform.interpolation, "value", transform.interpolation)
    return PIL_FILTERS.get(mode, mode)


def around(transform: Any) -> dict[str, Any]:
    """How it reads between pixels, and what stands where there are none."""
    name, mode, fill = name_of(transform), mode_of(transform), transform.fill
    if mode not in _SAMPLINGS:
        raise Unsupported(f"{name} with interpolation {mode}: moves of pixels are {', '.join(_SAMPLINGS)}")
    return {"sampling": _SAMPLINGS[mode], "fill": fill_of(name, fill)}


def fill_of(name: str, fill: Any) -> steps.Fill:
    if fill is None:
        fill = 0
    if isinstance(fill, dict):
        raise Unsupported(f"{name} with a fill for each kind of input: give the image's alone")
    if isinstance(fill, (list, tuple)) and len(fill) == 1:
        fill = fill[0]
    try:
        made: steps.Fill = steps.Rotation(fill=fill).fill
    except InvalidRequest:
        raise Unsupported(f"{name} with fill {fill!r}: must be a whole level from 0 to 255, or three") from None
    return made


def _simple(step: type[Any]) -> Callable[[Any, Inner], Steps]:
    def make(transform: Any, inner: Inner) -> Steps:
        return (step(probability=float(transform.p)),)

    return make


def _grayscale(transform: Any, inner: Inner) -> Steps:
    if transform.num_output_channels != 3:
        raise Unsupported("Grayscale with one channel in a group: all images of a batch have as many channels; ask for three")
    return (steps.Grayscale(),)


def _posterize(transform: Any, inner: Inner) -> Steps:
    if not 1 <= transform.bits <= 8:
        raise Unsupported(f"RandomPosterize with {transform.bits} bits: the daemon keeps 1 to 8")
    return (steps.Posterize(int(transform.bits), probability=float(transform.p)),)


def _solarize(transform: Any, inner: Inner) -> Steps:
    return (steps.Solarize(min(256.0, max(0.0, float(transform.threshold))), probability=float(transform.p)),)


def _sharpness(transform: Any, inner: Inner) -> Steps:
    return (steps.Sharpness(float(transform.sharpness_factor), probability=float(transform.p)),)


def _colour_jitter(transform: Any, inner: Inner) -> Steps:
    factors = [transform.brightness, transform.contrast, transform.saturation, transform.hue]
    set_to = [None if factor is None else pair(factor) for factor in factors]
    return (steps.ColorJitter(*set_to),) if any(set_to) else ()


def _gaussian_blur(transform: Any, inner: Inner) -> Steps:
    size = transform.kernel_size
    sides = {size} if isinstance(size, int) else set(size)
    if len(sides) != 1:
        raise Unsupported(f"GaussianBlur with a kernel of {size}: the daemon's is as wide as it is high")
    sigma = transform.sigma
    return (steps.GaussianBlur(int(*sides), sigma if isinstance(sigma, (int, float)) else pair(sigma)),)


def _refuse_centre(transform: Any) -> None:
    if transform.center is not None:
        raise Unsupported(f"{name_of(transform)} about {transform.center}: the daemon turns about the middle; leave center out")


def _rotation(transform: Any, inner: Inner) -> Steps:
    if transform.expand:
        raise Unsupported("RandomRotation with expand=True: images would differ in size; leave expand out")
    _refuse_centre(transform)
    return (steps.Rotation(pair(transform.degrees), **around(transform)),)


def _affine(transform: Any, inner: Inner) -> Steps:
    _refuse_centre(transform)
    shear = [0.0] * 4 if transform.shear is None else [float(each) for each in transform.shear]
    step = steps.Affine(
        degrees=pair(transform.degrees),
        translate=(0.0, 0.0) if transform.translate is None else pair(transform.translate),
        scale=(1.0, 1.0) if transform.scale is None else pair(transform.scale),
        shear_x=pair(shear[:2]),
        shear_y=pair(shear[2:] or [0.0, 0.0]),
        **around(transform),
    )
    return (step,)


def _perspective(transform: Any, inner: Inner) -> Steps:
    return (steps.Perspective(float(transform.distortion_scale), **around(transform), probability=float(transform.p)),)


def _rand_augment(transform: Any, inner: Inner) -> Steps:
    numbers = int(transform.num_ops), int(transform.magnitude), int(transform.num_magnitude_bins)
    return (steps.RandAugment(*numbers, **around(transform)),) if numbers[0] else ()


def _trivial_augment_wide(transform: Any, inner: Inner) -> Steps:
    return (steps.TrivialAugmentWide(int(transform.num_magnitude_bins), **around(transform)),)


def _auto_augment(transform: Any, inner: Inner) -> Steps:
    return (steps.AutoAugment(getattr(transform.policy, "value", transform.policy), **around(transform)),)


def _aug_mix(transform: Any, inner: Inner) -> Steps:
    depth = max(0, int(transform.chain_depth))
    chains = int(transform.severity), int(transform.mixture_width), depth, float(transform.alpha), bool(transform.all_ops)
    return (steps.AugMix(*chains, **around(transform)),)


def _random_apply(transform: Any, inner: Inner) -> Steps:
    """A single step that is always done gets the probability; several become one sequence."""
    made, probability = inner(list(transform.transforms)), float(transform.p)
    if len(made) == 1 and made[0].probability == 1.0:
        return (dataclasses.replace(made[0], probability=probability),)
    return (steps.Sequence(made, probability=probability),) if made else ()


def one_step(made: Steps) -> steps.Step:
    return made[0] if len(made) == 1 else steps.Sequence(made) if made else SAME


def _random_choice(transform: Any, inner: Inner) -> Steps:
    chosen = tuple(one_step(inner(each)) for each in transform.transforms)
    weights = [] if transform.p is None else [float(each) for each in transform.p]
    return (steps.OneOf(chosen, tuple(weights) if len(set(weights)) > 1 else ()),)


def _random_order(transform: Any, inner: Inner) -> Steps:
    ordered = tuple(one_step(made) for each in transform.transforms if (made := inner(each)))
    return (steps.AnyOrder(ordered),) if ordered else ()


STEPS: dict[str, Callable[[Any, Inner], Steps]] = {
    "AugMix": _aug_mix,
    "AutoAugment": _auto_augment,
    "ColorJitter": _colour_jitter,
    "GaussianBlur": _gaussian_blur,
    "Grayscale": _grayscale,
    "RandAugment": _rand_augment,
    "RandomAdjustSharpness": _sharpness,
    "RandomAffine": _affine,
    "RandomApply": _random_apply,
    "RandomAutocontrast": _simple(steps.AutoContrast),
    "RandomChoice": _random_choice,
    "RandomEqualize": _simple(steps.Equalize),
    "RandomGrayscale": _simple(steps.Grayscale),
    "RandomHorizontalFlip": _simple(steps.HorizontalFlip),
    "RandomInvert": _simple(steps.Invert),
    "RandomOrder": _random_order,
    "RandomPerspective": _perspective,
    "RandomPosterize": _posterize,
    "RandomRotation": _rotation,
    "RandomSolarize": _solarize,
    "RandomVerticalFlip": _simple(steps.VerticalFlip),
    "TrivialAugmentWide": _trivial_augment_wide,
}
MOVES = frozenset({"RandomHorizontalFlip", "RandomVerticalFlip"})
