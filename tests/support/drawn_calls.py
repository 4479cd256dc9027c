"""What draws.py draws, carried out on PIL images by torchvision and Pillow."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from draws import PUBLISHED, Call
from PIL import Image, ImageEnhance, ImageFilter, ImageOps
from torchvision.transforms import InterpolationMode
from torchvision.transforms import functional as F  # noqa: N812
from torchvision.transforms.autoaugment import _apply_op

FILTERS = {"nearest": Image.Resampling.NEAREST, "bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}


def applied(image: Image.Image, calls: Iterable[Call]) -> Image.Image:
    """What the calls make of it, one after the other."""
    for call in calls:
        image = _FUNCTIONS[call.name](image, *call.arguments)
    return image


def _named(name: str) -> Callable[..., Image.Image]:
    def apply(image: Image.Image, magnitude: float, sampling: str, fill: Any) -> Image.Image:
        return _apply_op(image, name, magnitude, InterpolationMode(sampling), list(fill))

    return apply


def _rotate(image: Image.Image, degrees: float, sampling: str, fill: Any) -> Image.Image:
    return F.rotate(image, degrees, InterpolationMode(sampling), fill=list(fill))


def _affine(image: Image.Image, degrees: float, shift: Any, scale: float, shear: Any, sampling: str, fill: Any) -> Image.Image:
    return F.affine(image, degrees, shift, scale, shear, InterpolationMode(sampling), list(fill))


def _perspective(image: Image.Image, ends: Any, sampling: str, fill: Any) -> Image.Image:
    right, bottom = image.width - 1, image.height - 1
    return F.perspective(image, [[0, 0], [right, 0], [right, bottom], [0, bottom]], ends, InterpolationMode(sampling), list(fill))


def _moved(image: Image.Image, matrix: tuple[float, ...], sampling: str, fill: Any) -> Image.Image:
    return image.transform(image.size, Image.Transform.AFFINE, matrix, FILTERS[sampling], fillcolor=fill)


def _solarize_add(image: Image.Image, added: int, *_: Any) -> Image.Image:
    return image.point([min(255, value + added) if value < 128 else value for value in range(256)] * 3)


def _mixed(image: Image.Image, of_image: float, weights: list[float], chains: list[list[Call]], share: float) -> Image.Image:
    """In float32, as torchvision's AugMix and timm's add up."""
    total = np.float32(of_image) * np.asarray(image, dtype=np.float32)
    for weight, chain in zip(weights, chains, strict=True):
        total += np.float32(weight) * np.asarray(applied(image, chain), dtype=np.float32)
    return Image.blend(image, Image.fromarray(np.clip(total, 0.0, 255.0).astype(np.uint8)), share)


_FUNCTIONS: dict[str, Callable[..., Image.Image]] = {
    **{name: _named(name) for name in (*PUBLISHED, "Invert")},
    "mix": _mixed,
    "hflip": F.hflip,
    "vflip": F.vflip,
    "grey": lambda image: F.to_grayscale(image, 3),
    "invert": F.invert,
    "autocontrast": F.autocontrast,
    "equalize": F.equalize,
    "posterize": F.posterize,
    "solarize": F.solarize,
    "brightness": F.adjust_brightness,
    "contrast": F.adjust_contrast,
    "saturation": F.adjust_saturation,
    "sharpness": F.adjust_sharpness,
    "hue": F.adjust_hue,
    "gaussian_blur": F.gaussian_blur,
    "pillow_blur": lambda image, radius: image.filter(ImageFilter.GaussianBlur(radius)),
    "rotate": _rotate,
    "affine": _affine,
    "perspective": _perspective,
    "timm AutoContrast": lambda image, *_: ImageOps.autocontrast(image),
    "timm Equalize": lambda image, *_: ImageOps.equalize(image),
    "timm Invert": lambda image, *_: ImageOps.invert(image),
    "timm Rotate": lambda image, degrees, sampling, fill: image.rotate(degrees, FILTERS[sampling], fillcolor=fill),
    "timm Posterize": lambda image, bits, *_: image.point([value & 0xFF00 >> bits for value in range(256)] * 3),
    "timm Solarize": lambda image, threshold, *_: ImageOps.solarize(image, threshold),
    "timm SolarizeAdd": _solarize_add,
    "timm Color": lambda image, factor, *_: ImageEnhance.Color(image).enhance(factor),
    "timm Contrast": lambda image, factor, *_: ImageEnhance.Contrast(image).enhance(factor),
    "timm Brightness": lambda image, factor, *_: ImageEnhance.Brightness(image).enhance(factor),
    "timm Sharpness": lambda image, factor, *_: ImageEnhance.Sharpness(image).enhance(factor),
    "timm ShearX": lambda image, share, *around: _moved(image, (1, share, 0, 0, 1, 0), *around),
    "timm ShearY": lambda image, share, *around: _moved(image, (1, 0, 0, share, 1, 0), *around),
    "timm TranslateX": lambda image, share, *around: _moved(image, (1, 0, share * image.width, 0, 1, 0), *around),
    "timm TranslateY": lambda image, share, *around: _moved(image, (1, 0, 0, 0, 1, share * image.height), *around),
}
