"""What is drawn for one sample: a second implementation of daemon/draw and of the boxes of daemon/plan, from their READMEs alone.

    calls = drawn(recipe.steps, (224, 224), Key(seed, epoch, sample))

A call is a function's name and its arguments; drawn_calls.py carries them out with torchvision and Pillow. ``erased()`` and ``noise()`` are
the same for ``Recipe.erasing``, ``cropped()``, ``placed()`` and ``flipped()`` for crops and flips, ``resized()``, ``filtered()`` and
``padded()`` for random sizes, filters and places in what is padded. Parameters of recipes travel in single precision; all is computed in
double precision, and factors, radii and deviations are rounded to single precision last.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import millrace
import numpy as np
from millrace import steps
from random_stream import Key as Key
from random_stream import Stream, single

Pair = tuple[int, int]
"""Width, height; or x, y. Pixels."""

CROP, FLIP, ERASE, NOISE, PLACE, PAD, RESIZE, FILTER, FIRST_STEP = 1, 2, 4, 5, 6, 7, 8, 9, 256  # streams

SHEARS, SHIFTS = ("ShearX", "ShearY"), ("TranslateX", "TranslateY")
ENHANCED = ("Brightness", "Color", "Contrast", "Sharpness")
PLAIN = ("AutoContrast", "Equalize")
PUBLISHED = ("Identity", *SHEARS, *SHIFTS, "Rotate", *ENHANCED, "Posterize", "Solarize", *PLAIN)
SIGNED = {*SHEARS, *SHIFTS, "Rotate", *ENHANCED}
TIMM = (
    *PLAIN,
    "Invert",
    "Rotate",
    "Posterize",
    "Solarize",
    "SolarizeAdd",
    "Color",
    "Contrast",
    "Brightness",
    "Sharpness",
    *SHEARS,
    *SHIFTS,
)
MIXED = (*SHEARS, *SHIFTS, "Rotate", "Posterize", "Solarize", *PLAIN, *ENHANCED)
TIMM_MIXED = (
    "AutoContrast",
    "Color",
    "Contrast",
    "Brightness",
    "Sharpness",
    "Equalize",
    "Rotate",
    "Posterize",
    "Solarize",
    *SHEARS,
    *SHIFTS,
)


class Call(NamedTuple):
    """What drawn_calls.py does."""

    name: str
    arguments: tuple[Any, ...] = ()


def drawn(recipe_steps: tuple[steps.Step, ...], size: Pair, key: Key) -> list[Call]:
    """What is done to an image of that size, in order."""
    calls: list[Call] = []
    number = 0
    for step in recipe_steps:
        calls += _drawn(step, number, size, key)
        number += _count(step)
    return calls


def _count(step: Any) -> int:
    return 1 + sum(_count(inner) for inner in getattr(step, "steps", ()))


def _drawn(step: Any, number: int, size: Pair, key: Key) -> list[Call]:
    stream = Stream(key, FIRST_STEP + number)
    if not stream.uniform() < single(step.probability):
        return []
    if isinstance(step, steps.Sequence | steps.AnyOrder | steps.OneOf):
        numbered, number = [], number + 1
        for inner in step.steps:
            numbered.append((inner, number))
            number += _count(inner)
        return [call for place in _order(step, stream) for call in _drawn(*numbered[place], size, key)]
    return list(_DRAW[type(step)](step, stream, size))


def _order(step: Any, stream: Stream) -> list[int]:
    if isinstance(step, steps.AnyOrder):
        return stream.permutation(len(step.steps))
    if isinstance(step, steps.Sequence):
        return list(range(len(step.steps)))
    if not step.weights:
        return [stream.below(len(step.steps))]
    weights = [single(weight) for weight in step.weights]
    at, place = stream.uniform() * sum(weights), 0
    while at >= weights[place]:
        at -= weights[place]
        place += 1
    return [place]


def _plain(name: str) -> Callable[[Any, Stream, Pair], list[Call]]:
    return lambda _step, _stream, _size: [Call(name)]


def _color_jitter(step: steps.ColorJitter, stream: Stream, _size: Pair) -> Iterator[Call]:
    names = ["brightness", "contrast", "saturation", "hue"]
    order = [names[place] for place in stream.permutation(4)]
    factors = {name: stream.of(getattr(step, name)) for name in names if getattr(step, name) is not None}
    for name in order:
        if name in factors:
            yield Call(name, (factors[name] if name == "hue" else single(factors[name]),))


def _around(step: Any) -> tuple[Any, ...]:
    return step.sampling, step.fill


def _rotation(step: steps.Rotation, stream: Stream, _size: Pair) -> list[Call]:
    return [Call("rotate", (stream.of(step.degrees), *_around(step)))]


def _affine(step: steps.Affine, stream: Stream, size: Pair) -> list[Call]:
    angle = stream.of(step.degrees)
    most = [single(share) * side for share, side in zip(step.translate, size, strict=True)]
    shift = [round(stream.uniform(-side, side)) for side in most]
    scale, shear = stream.of(step.scale), [stream.of(step.shear_x), stream.of(step.shear_y)]
    return [Call("affine", (angle, shift, scale, shear, *_around(step)))]


def _perspective(step: steps.Perspective, stream: Stream, size: Pair) -> list[Call]:
    """Where the corners move."""
    most = [int(single(step.distortion) * (side // 2)) for side in size]
    ends = []
    for right, bottom in ((0, 0), (1, 0), (1, 1), (0, 1)):
        x, y = (stream.below(side + 1) for side in most)
        ends.append([size[0] - 1 - x if right else x, size[1] - 1 - y if bottom else y])
    return [Call("perspective", (ends, *_around(step)))]


def magnitude(name: str, most: dict[str, float], bins: int, bin_: int, posterized: int) -> float:
    """The bin's of a space whose largest magnitudes are ``most``."""
    if name == "Posterize":
        return 8 - round(float(np.float32(bin_) / np.float32((bins - 1) / posterized)))  # in single precision, as torchvision
    if name == "Solarize":
        return linspace(255.0, 0.0, bin_, bins)
    return linspace(0.0, most[name], bin_, bins) if name in most else 0.0


def linspace(first: float, last: float, bin_: int, bins: int) -> float:
    """``torch.linspace(first, last, bins)[bin_]``, an element at a time: the second half is counted from its end."""
    step = (np.float32(last) - np.float32(first)) / np.float32(bins - 1)
    if bin_ < bins // 2:
        return float(np.float32(first) + step * np.float32(bin_))
    return float(np.float32(last) - step * np.float32(bins - 1 - bin_))


def narrow(size: Pair) -> dict[str, float]:
    """Of RandAugment and AutoAugment."""
    shifts = {name: 150.0 / 331.0 * side for name, side in zip(SHIFTS, size, strict=True)}
    return {**dict.fromkeys(SHEARS, 0.3), **shifts, "Rotate": 30.0, **dict.fromkeys(ENHANCED, 0.9)}


WIDE = {**dict.fromkeys(SHEARS, 0.99), **dict.fromkeys(SHIFTS, 32.0), "Rotate": 135.0, **dict.fromkeys(ENHANCED, 0.99)}


def _rand_augment(step: steps.RandAugment, stream: Stream, size: Pair) -> Iterator[Call]:
    for _ in range(step.operations):
        name = PUBLISHED[stream.below(14)]
        of_bin = magnitude(name, narrow(size), step.bins, step.magnitude, 4)
        is_minus = name in SIGNED and stream.below(2) == 1
        yield Call(name, (-of_bin if is_minus else of_bin, *_around(step)))


def _trivial_augment_wide(step: steps.TrivialAugmentWide, stream: Stream, _size: Pair) -> Iterator[Call]:
    name = PUBLISHED[stream.below(14)]
    of_bin = magnitude(name, WIDE, step.bins, stream.below(step.bins), 6)
    is_minus = name in SIGNED and stream.below(2) == 1
    yield Call(name, (-of_bin if is_minus else of_bin, *_around(step)))


def _auto_augment(step: steps.AutoAugment, stream: Stream, size: Pair) -> Iterator[Call]:
    from torchvision.transforms.autoaugment import AutoAugment, AutoAugmentPolicy

    pairs = AutoAugment(AutoAugmentPolicy(step.policy)).policies
    for name, probability, bin_ in pairs[stream.below(len(pairs))]:
        is_done = stream.uniform() < probability
        is_minus = name in SIGNED and stream.below(2) == 1
        of_bin = magnitude(name, narrow(size), 10, bin_, 4) if bin_ is not None else 0.0
        if is_done:
            yield Call(name, (-of_bin if is_minus else of_bin, *_around(step)))


def _timm_rand_augment(step: steps.TimmRandAugment, stream: Stream, size: Pair) -> Iterator[Call]:
    for _ in range(step.operations):
        name = TIMM[stream.below(15)]
        is_done = stream.uniform() < single(step.operation_probability)
        level = single(step.magnitude) + stream.normal() * single(step.magnitude_std)
        level = max(0.0, min(level, 10.0)) / 10.0
        if is_done:
            yield _timm_call(name, level, step.sampling, step.fill, step.increasing, stream)


def _timm_call(name: str, level: float, sampling: Any, fill: Any, increasing: bool, stream: Stream, shift: float = 0.45) -> Call:
    if name in (*SHEARS, *SHIFTS, "Rotate") and sampling is None:
        sampling = ("bilinear", "bicubic")[stream.below(2)]
    has_sign = name in (*SHEARS, *SHIFTS, "Rotate") or (name in ENHANCED and increasing)
    sign = -1.0 if has_sign and stream.uniform() < 0.5 else 1.0
    return Call(f"timm {name}", (*timm_argument(name, level, sign, increasing, shift), sampling, fill))


def gamma(shape: float, stream: Stream) -> float:
    """Of Marsaglia and Tsang (ACM TOMS 26, 2000)."""
    if shape < 1.0:
        larger = gamma(shape + 1.0, stream)
        return larger * math.pow(1.0 - stream.uniform(), 1.0 / shape)
    d = shape - 1.0 / 3.0
    while True:
        x = stream.normal()
        root, log_of = 1.0 + x / math.sqrt(9.0 * d), math.log(1.0 - stream.uniform())
        v = root**3
        if root > 0.0 and log_of < 0.5 * x * x + d - d * v + d * math.log(v):
            return d * v


def dirichlet(alpha: float, count: int, stream: Stream) -> list[float]:
    """Symmetric."""
    drawn = [gamma(single(alpha), stream) for _ in range(count)]
    return [each / sum(drawn) for each in drawn]


def _chains(step: Any, stream: Stream, operation: Callable[[], Call]) -> Iterator[list[Call]]:
    for _ in range(step.width):
        yield [operation() for _ in range(step.depth or 1 + stream.below(3))]


def _aug_mix(step: steps.AugMix, stream: Stream, size: Pair) -> list[Call]:
    of_image, of_chains = dirichlet(step.alpha, 2, stream)
    weights = dirichlet(step.alpha, step.width, stream)
    names = MIXED if step.all_operations else MIXED[:9]
    most = {**narrow(size), **{name: side / 3.0 for name, side in zip(SHIFTS, size, strict=True)}}

    def operation() -> Call:
        name = names[stream.below(len(names))]
        level = 0.0
        if name not in PLAIN:
            bin_ = stream.below(step.severity)
            level = magnitude(name, most, 10, bin_, 4)
            level -= 4.0 if name == "Posterize" else 0.0
        is_minus = name in SIGNED and stream.below(2) == 1
        if name == "Posterize" and level == 0.0:  # no bits: black
            name, level = "Brightness", -1.0
        return Call(name, (-level if is_minus else level, *_around(step)))

    chains = list(_chains(step, stream, operation))
    return [Call("mix", (of_image, [weight * single(of_chains) for weight in map(single, weights)], chains, 1.0))]


def _timm_aug_mix(step: steps.TimmAugMix, stream: Stream, size: Pair) -> list[Call]:
    share = dirichlet(step.alpha, 2, stream)[1]
    weights = dirichlet(step.alpha, step.width, stream)

    def operation() -> Call:
        name = TIMM_MIXED[stream.below(13)]
        most = single(step.magnitude)
        level = most * stream.uniform() if step.magnitude_std is None else most + single(step.magnitude_std) * stream.normal()
        return _timm_call(name, max(0.0, min(level, 10.0)) / 10.0, step.sampling, step.fill, True, stream, 0.3)

    return [Call("mix", (0.0, weights, list(_chains(step, stream, operation)), share))]


def timm_argument(name: str, level: float, sign: float, increasing: bool, shift: float = 0.45) -> tuple[float, ...]:
    """What timm's function of that name takes, of a level in [0, 1]."""
    if name in ENHANCED:
        return (max(0.1, 1.0 + sign * (level * 0.9)) if increasing else level * 1.8 + 0.1,)
    if name in ("Posterize", "Solarize"):
        value, none = (int(level * 4), 4) if name == "Posterize" else (min(256, int(level * 256)), 256)
        return (none - value if increasing else value,)
    if name == "SolarizeAdd":
        return (min(128, int(level * 110)),)
    most = {"Rotate": 30.0, "ShearX": 0.3, "ShearY": 0.3, "TranslateX": shift, "TranslateY": shift}
    return (sign * (level * most[name]),) if name in most else ()


_DRAW: dict[type, Callable[[Any, Stream, Pair], Any]] = {
    steps.HorizontalFlip: _plain("hflip"),
    steps.VerticalFlip: _plain("vflip"),
    steps.Grayscale: _plain("grey"),
    steps.Invert: _plain("invert"),
    steps.AutoContrast: _plain("autocontrast"),
    steps.Equalize: _plain("equalize"),
    steps.Posterize: lambda step, _stream, _size: [Call("posterize", (step.bits,))],
    steps.Solarize: lambda step, _stream, _size: [Call("solarize", (single(step.threshold),))],
    steps.Sharpness: lambda step, stream, _size: [Call("sharpness", (single(stream.of(step.factor)),))],
    steps.ColorJitter: _color_jitter,
    steps.GaussianBlur: lambda step, stream, _size: [Call("gaussian_blur", (step.kernel_size, single(stream.of(step.sigma))))],
    steps.PillowBlur: lambda step, stream, _size: [Call("pillow_blur", (single(stream.of(step.radius)),))],
    steps.Rotation: _rotation,
    steps.Affine: _affine,
    steps.Perspective: _perspective,
    steps.RandAugment: _rand_augment,
    steps.TrivialAugmentWide: _trivial_augment_wide,
    steps.AutoAugment: _auto_augment,
    steps.TimmRandAugment: _timm_rand_augment,
    steps.AugMix: _aug_mix,
    steps.TimmAugMix: _timm_aug_mix,
}


def cropped(crop: Any, size: Pair, key: Key) -> tuple[int, int, int, int]:
    """Left, top, width, height of a RandomResizedCrop of an image of that size, as torchvision's ``get_params``."""
    stream = Stream(key, CROP)
    width, height = size
    low, high = (math.log(single(ratio)) for ratio in crop.ratio)
    for _ in range(10):
        area = width * height * stream.of(crop.scale)
        ratio = math.exp(stream.uniform(low, high))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 1 <= w <= width and 1 <= h <= height:
            top, left = stream.below(height - h + 1), stream.below(width - w + 1)
            return left, top, w, h
    least, most = (single(ratio) for ratio in crop.ratio)
    w = max(1, round(height * most)) if width / height > most else width
    h = max(1, round(width / least)) if width / height < least else height
    return (width - w) // 2, (height - h) // 2, w, h


def placed(size: Pair, room: Pair, key: Key, use: int = PLACE) -> Pair:
    """Left and top of a crop of that size in an image of ``room``, where its place is random; or, for PAD, of an image in a larger one."""
    if size == room:
        return 0, 0
    stream = Stream(key, use)
    top, left = stream.below(room[1] - size[1] + 1), stream.below(room[0] - size[0] + 1)
    return left, top


def resized(resize: Any, size: Pair, key: Key) -> Pair:
    """Of a crop of that size, by any resize that the recipe alone or a draw decides."""
    stream = Stream(key, RESIZE)
    width, height = size
    if isinstance(resize, millrace.ScaleJitter):
        scale = stream.of(resize.scale)
        by = min(resize.target[1] / height, resize.target[0] / width) * scale
        return max(1, int(width * by)), max(1, int(height * by))
    if isinstance(resize, millrace.ExactSize):
        return resize.size
    if resize is None:
        return size
    short, long = min(size), max(size)
    if isinstance(resize, millrace.LongerSide):
        sides = max(1, resize.pixels * short // long), resize.pixels
    else:
        of = resize.sides[stream.below(len(resize.sides))] if isinstance(resize, millrace.RandomShorterSide) else resize.pixels
        sides = of, max(1, of * long // short)
        if resize.longest is not None and sides[1] > resize.longest:
            sides = max(1, resize.longest * sides[0] // sides[1]), resize.longest
    return sides if width <= height else (sides[1], sides[0])


def filtered(recipe: millrace.Recipe, key: Key) -> str:
    """The name of the resampling filter."""
    several = recipe.random_filters
    return several[Stream(key, FILTER).below(len(several))] if several else recipe.filter


def padded(pad: millrace.Pad, size: Pair, key: Key) -> tuple[int, int, int, int]:
    """Pixels that an image of that size gets left, above, right and below."""
    sides = size[0] + pad.left + pad.right, size[1] + pad.top + pad.bottom
    missing = [max(0, want - have) for want, have in zip(pad.to or (1, 1), sides, strict=True)]
    if pad.place == "random":
        left, top = placed(sides, (sides[0] + missing[0], sides[1] + missing[1]), key, PAD)
    elif pad.place == "centre":
        left, top = missing[0] // 2, missing[1] // 2
    else:
        left, top = missing[0] if "right" in pad.place else 0, missing[1] if "bottom" in pad.place else 0
    return pad.left + left, pad.top + top, pad.right + missing[0] - left, pad.bottom + missing[1] - top


def flipped(probability: float, key: Key) -> bool:
    """Whether from left to right."""
    return probability > 0 and Stream(key, FLIP).uniform() < single(probability)


Box = tuple[int, int, int, int]
"""Left, top, width, height."""


def erased(erasing: steps.Erasing, size: Pair, key: Key) -> Box | None:
    """Of at most one rectangle; None: nothing."""
    found = all_erased(erasing, size, key)
    return found[0] if found else None


def all_erased(erasing: steps.Erasing, size: Pair, key: Key) -> list[Box]:
    """One after the other."""
    stream = Stream(key, ERASE)
    if not stream.uniform() < single(erasing.probability):
        return []
    count = 1 + stream.below(erasing.most) if erasing.most > 1 else 1
    return [box for box in (_erased(erasing, size, count, stream) for _ in range(count)) if box is not None]


def _erased(erasing: steps.Erasing, size: Pair, count: int, stream: Stream) -> Box | None:
    width, height = size
    low, high = (math.log(single(ratio)) for ratio in erasing.ratio)
    for _ in range(10):
        area = width * height * stream.of(erasing.scale) / count
        ratio = math.exp(stream.uniform(low, high))
        h, w = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 1 <= h < height and 1 <= w < width:
            top, left = stream.below(height - h + 1), stream.below(width - w + 1)
            return left, top, w, h
    return None


def noise(count: int, key: Key) -> list[float]:
    """The first numbers of an erased rectangle's."""
    stream = Stream(key, NOISE)
    return [stream.normal() for _ in range(count)]
