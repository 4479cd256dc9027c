"""timm's transforms as recipes, as ``timm.data.create_transform`` makes them: torchvision's among its own."""

from __future__ import annotations

import math
from typing import Any

from millrace import steps
from millrace._transforms.torchvision import TORCH, filter_of, size_of, to_bytes, to_tensor
from millrace._transforms.torchvision import WORDS as TORCHVISIONS
from millrace._transforms.torchvision_steps import Steps, fill_of, mode_of, pair
from millrace._transforms.translation import Inner, Language, Translation, Words, name_of
from millrace.errors import Unsupported
from millrace.recipe import ExactSize, RandomResizedCrop, Recipe

_LARGEST = 10  # of magnitudes
_MOST_RECTANGLES = 16
_SHIFT, _MIXED_SHIFT = 0.45, 0.3  # of a side, at the largest magnitude
_INCREASING = {"Posterize", "Solarize", "Color", "Contrast", "Brightness", "Sharpness"}
_OPERATIONS = ["AutoContrast", "Equalize", "Invert", "Rotate", "Posterize", "Solarize", "SolarizeAdd", "Color", "Contrast", "Brightness"]
_OPERATIONS += ["Sharpness", "ShearX", "ShearY", "TranslateXRel", "TranslateYRel"]
_MIXED = ["AutoContrast", "ColorIncreasing", "ContrastIncreasing", "BrightnessIncreasing", "SharpnessIncreasing", "Equalize", "Rotate"]
_MIXED += ["PosterizeIncreasing", "SolarizeIncreasing", "ShearX", "ShearY", "TranslateXRel", "TranslateYRel"]
_THREE = [[("Solarize", 1.0, 5)], [("Desaturate", 1.0, 10)], [("GaussianBlurRand", 1.0, 10)]]
_KEEPS_RATIO = "it keeps the ratio and rounds as no recipe does; use train_crop_mode='rrc', and a square size or crop_mode='squash' to test"
_NAFLEX = "it makes sequences of patches; give naflex and patchify up, or keep timm's loader"


def from_timm(transform: Any) -> Recipe:
    """The recipe that does what a transform of timm's does; see ``from_torchvision`` for what that means, and what is known beside it.

    Args:
        transform: of ``timm.data.create_transform``, for training or evaluation; the three that ``separate=True`` gives; a list. Known are
            RandomResizedCropAndInterpolation, ``auto_augment`` of the kinds ``rand-m9-mstd0.5-inc1``, ``augmix-m3-w3`` and ``3a``,
            RandomErasing of one rectangle or of 1 to so many, ToTensor, MaybeToTensor, MaybePILToTensor, ToNumpy, and torchvision's. With
            ``use_prefetcher=True`` timm normalises and erases on the device, and so must who asked for it.

    Raises:
        Unsupported: names the transform or argument that the daemon does not do, and what to do instead.
    """
    return TIMM.recipe(transform)


def _crop(translation: Translation, transform: Any) -> None:
    name = name_of(transform)
    given = transform.interpolation
    modes = [getattr(mode, "value", mode) for mode in given] if isinstance(given, (tuple, list)) else [mode_of(transform)]
    translation.crop(name, RandomResizedCrop(pair(transform.scale), pair(transform.ratio)))
    sampled = [filter_of(name, "nearest-exact" if mode == "nearest" else mode, transform) for mode in modes]  # of PIL images the same
    translation.resize(name, ExactSize(size_of(transform.size)), *sampled)


def _floats(translation: Translation, transform: Any) -> None:
    translation.is_tensor = True
    translation.convert(name_of(transform), transform.dtype, scaled=False)


def _erasing(translation: Translation, transform: Any) -> None:
    if transform.min_count != 1 or transform.max_count > _MOST_RECTANGLES:
        raise Unsupported(
            f"RandomErasing of {transform.min_count} to {transform.max_count} rectangles: the daemon erases 1 to as many as "
            f"{_MOST_RECTANGLES}; say min_count=1, re_count=3"
        )
    value: float | steps.Noise = "pixel" if transform.per_pixel else "channel" if transform.rand_color else 0.0
    low, high = (float(f"{math.exp(bound):.12g}") for bound in transform.log_aspect_ratio)
    area = float(transform.min_area), float(transform.max_area)
    translation.erase("RandomErasing", steps.Erasing(float(transform.probability), area, (low, high), value, int(transform.max_count)))


def _one(kind: str, name: str, values: list[Any]) -> Any:
    if any(value != values[0] for value in values):
        raise Unsupported(f"{kind} whose operations differ in {name}: the daemon draws them alike")
    return values[0]


def _one_of_timms(kind: str, operations: list[Any], shift: float) -> tuple[float, float, Any, steps.Sampling | None, steps.Fill]:
    """Magnitude, deviation, largest magnitude, sampling and fill, which are all operations'."""
    if any(operation.hparams.get("translate_pct", _SHIFT) != shift for operation in operations):
        raise Unsupported(f"{kind} with another translate_pct than {shift}: the daemon's is what create_transform sets")
    return (
        float(_one(kind, "the magnitude", [operation.magnitude for operation in operations])),
        float(_one(kind, "the deviation", [operation.magnitude_std for operation in operations])),
        _one(kind, "mmax", [operation.magnitude_max for operation in operations]) or _LARGEST,
        _sampling(kind, _one(kind, "interpolation", [operation.kwargs["resample"] for operation in operations])),
        fill_of(kind, _one(kind, "fill", [operation.kwargs["fillcolor"] for operation in operations])),
    )


def _aug_mix(transform: Any, inner: Inner) -> Steps:
    operations = list(transform.ops)
    names = [operation.name for operation in operations]
    if transform.blended:
        raise Unsupported("AugMix that is blended (b1): its weights are rounded chain by chain; leave b1 out")
    if names != _MIXED or any(operation.prob != 1.0 for operation in operations):
        raise Unsupported(
            f"AugMix that chooses from {', '.join(names)}: the daemon chooses from timm's own 13, and does what it has chosen"
        )
    magnitude, std, most, sampling, fill = _one_of_timms("AugMix", operations, _MIXED_SHIFT)
    if most != _LARGEST or (magnitude > _LARGEST and std > 0):
        raise Unsupported(f"AugMix with magnitudes over {_LARGEST}: say m3, and leave mmax out")
    return (
        steps.TimmAugMix(
            magnitude=min(magnitude, float(_LARGEST)),
            magnitude_std=None if std == math.inf else max(std, 0.0),
            width=int(transform.width),
            depth=max(0, int(transform.depth)),
            alpha=float(transform.alpha),
            sampling=sampling,
            fill=fill,
        ),
    )


def _rand_augment(transform: Any, inner: Inner) -> Steps:
    operations = list(transform.ops)
    names = [operation.name for operation in operations]
    increasing = names == [f"{name}Increasing" if name in _INCREASING else name for name in _OPERATIONS]
    if transform.choice_weights is not None or not (increasing or names == _OPERATIONS):
        raise Unsupported(f"RandAugment that chooses from {', '.join(names)}: the daemon chooses from timm's own 15; leave -t out")
    magnitude, std, most, sampling, fill = _one_of_timms("RandAugment", operations, _SHIFT)
    if std > 100:
        raise Unsupported("RandAugment with uniform magnitudes (mstd over 100): the daemon draws normal ones; say mstd0.5")
    if most != _LARGEST or (magnitude > _LARGEST and std > 0):
        raise Unsupported(f"RandAugment with magnitudes over {_LARGEST}: say m9, and leave mmax out")
    step = steps.TimmRandAugment(
        operations=int(transform.num_layers),
        magnitude=min(magnitude, float(_LARGEST)),
        magnitude_std=max(std, 0.0),
        operation_probability=float(_one("RandAugment", "the probability", [operation.prob for operation in operations])),
        increasing=increasing,
        sampling=sampling,
        fill=fill,
    )
    return (step,) if step.operations else ()


def _sampling(kind: str, resample: Any) -> steps.Sampling | None:
    """Of Pillow's number, or of the two from which timm draws."""
    names = {0: "nearest", 2: "bilinear", 3: "bicubic"}
    if isinstance(resample, (tuple, list)) and [int(each) for each in resample] == [2, 3]:
        return None
    name = None if isinstance(resample, (tuple, list)) else names.get(int(resample))
    if name is None:
        raise Unsupported(f"{kind} with interpolation {resample}: moves of pixels are {', '.join(names.values())}")
    return "nearest" if name == "nearest" else "bilinear" if name == "bilinear" else "bicubic"


def _auto_augment(transform: Any, inner: Inner) -> Steps:
    """3-Augment of DeiT III; the learned policies have operations of their own."""
    policy = [[(each.name, each.prob, each.magnitude) for each in pair] for pair in transform.policy]
    if policy == _THREE and not any(each.magnitude_std for pair in transform.policy for each in pair):
        return (steps.OneOf((steps.Solarize(128), steps.Grayscale(), steps.PillowBlur((0.1, 2.0)))),)
    used = {name for pair in policy for name, _, _ in pair}
    kind = "v0" if "SolarizeAdd" in used else "3a with mstd" if "Desaturate" in used else "original"
    raise Unsupported(
        f"AutoAugment of timm's policy {kind}{'r' if 'PosterizeIncreasing' in used else ''}: its magnitudes and shears are not those of "
        "torchvision's policies, which the daemon knows; use torchvision's AutoAugment, auto_augment='rand-m9-mstd0.5-inc1' or '3a'"
    )


WORDS = Words(
    whole={
        "MaybePILToTensor": to_bytes,
        "MaybeToTensor": to_tensor,
        "RandomErasing": _erasing,
        "RandomResizedCropAndInterpolation": _crop,
        "ToNumpy": to_bytes,
        "ToTensor": _floats,
    },
    steps={"AugMixAugment": _aug_mix, "AutoAugment": _auto_augment, "RandAugment": _rand_augment},
    moves=frozenset(),
    refused={
        "CenterCropOrPad": _KEEPS_RATIO,
        "Patchify": _NAFLEX,
        "RandomCropOrPad": _KEEPS_RATIO,
        "RandomPad": _KEEPS_RATIO,
        "RandomResizedCropToSequence": _NAFLEX,
        "ResizeKeepRatio": _KEEPS_RATIO,
        "ResizeToSequence": _NAFLEX,
        "TfPreprocessTransform": "it is TensorFlow's; leave tf_preprocessing out",
        "TrimBorder": "no recipe cuts a border of all images alike; leave crop_border_pixels out",
    },
)
TIMM = Language("from_timm", {"timm": WORDS, "torchvision": TORCHVISIONS, "torch": TORCH})
