"""From a processor's configuration to a plan, a function a kind of processor.

Names, keys and defaults are those of the classes of ``transformers`` 5.23 that the functions name; values of its own are asked for by
configurations that leave keys out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from millrace.errors import Unsupported
from millrace.hf.any_resolution import AnyResolution
from millrace.hf.config import Keys
from millrace.hf.plans import OneSize, Padded, PatchRows, Plan, Tiles
from millrace.recipe import (
    BoundedSides,
    DType,
    ExactSize,
    Filter,
    Normalise,
    Patches,
    Recipe,
    Resize,
    ShorterSide,
    Size,
    SmartResize,
    TileGrid,
)

_CLIP = ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711))
_HALF = ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
_SQUARE = {"height": 224, "width": 224}

_Statistics = tuple[tuple[float, float, float], tuple[float, float, float]]


def plan_of(name: str, config: dict[str, Any], dtype: DType | None) -> Plan:
    """The plan for a configuration.

    Args:
        name: of the configuration, for messages.
        config: what preprocessor_config.json holds.
        dtype: of ``pixel_values``; None: float32, or uint8 if the configuration neither rescales nor normalises.

    Raises:
        Unsupported: a processor, key or value that is not supported; names it.
        InvalidRequest: a value that makes no sense; names its key.
    """
    keys = Keys(name, config)
    kind = keys.take("image_processor_type") or keys.take("feature_extractor_type")
    if not isinstance(kind, str):
        raise keys.wrong("image_processor_type", "is missing; it says which processor this is, such as CLIPImageProcessor")
    processor = re.sub("(ImageProcessor|FeatureExtractor)(Fast|Pil)?$", "", kind)
    if processor in _REASONS:
        raise Unsupported(f"{name}: {kind}: {_REASONS[processor]}")
    if processor not in _FAMILIES:
        known = ", ".join(f"{known}ImageProcessor" for known in _FAMILIES)
        raise Unsupported(f"{name}: {kind} is not supported; supported are {known}")
    plan = _FAMILIES[processor](keys, dtype)
    keys.finish(kind)
    return plan


def _clip(keys: Keys, dtype: DType | None) -> Plan:
    """CLIPImageProcessor, LlavaImageProcessor: shorter side, centre crop."""
    return OneSize(_resized_and_cropped(keys, dtype, "bicubic", _CLIP, {"shortest_edge": 224}, square=False, crops=True))


def _vit(keys: Keys, dtype: DType | None) -> Plan:
    """ViTImageProcessor: exact size."""
    return OneSize(_resized_and_cropped(keys, dtype, "bilinear", _HALF, _SQUARE, square=True, crops=False))


def _siglip(keys: Keys, dtype: DType | None) -> Plan:
    """SiglipImageProcessor: exact size, bicubic."""
    return OneSize(_resized_and_cropped(keys, dtype, "bicubic", _HALF, _SQUARE, square=False, crops=False))


def _idefics(keys: Keys, dtype: DType | None) -> Plan:
    """IdeficsImageProcessor: exact size, bicubic; ``image_size`` overrides ``size``."""
    if keys.take("image_num_channels", 3) != 3:
        keys.unsupported("image_num_channels", "only 3 is supported")
    if keys.has("image_size"):
        side = keys.count("image_size", 224)
        keys.take("size")
        if not keys.flag("do_resize", True):
            keys.unsupported("do_resize", "false leaves images of different sizes, which make no one array")
        return OneSize(_recipe(keys, dtype, "bicubic", _CLIP, ExactSize(Size(side, side))))
    return OneSize(_resized_and_cropped(keys, dtype, "bicubic", _CLIP, _SQUARE, square=True, crops=False))


def _qwen2_vl(keys: Keys, dtype: DType | None) -> Plan:
    """Qwen2VLImageProcessor: smart resize, patches in groups of merge_size x merge_size."""
    patch = keys.count("patch_size", 14)
    merge = keys.count("merge_size", 2)
    patches = Patches(Size(patch, patch), merge, keys.count("temporal_patch_size", 2))
    default = {"shortest_edge": 56 * 56, "longest_edge": 28 * 28 * 1280}
    forms = [("shortest_edge", "longest_edge"), ("min_pixels", "max_pixels")]
    size = keys.size("size", default, (), forms)
    least = keys.count("min_pixels", size.get("shortest_edge") or size["min_pixels"])
    most = keys.count("max_pixels", size.get("longest_edge") or size["max_pixels"])
    if most < least:
        raise keys.wrong("size", f"at most {most} pixels is less than at least {least}")
    resize = SmartResize(patch * merge, least, most) if keys.flag("do_resize", True) else None
    return PatchRows(_recipe(keys, dtype, "bicubic", _CLIP, resize, packing="packed", patches=patches))


def _got_ocr2(keys: Keys, dtype: DType | None) -> Plan:
    """GotOcr2ImageProcessor, which InternVL uses: one square, or with ``crop_to_patches`` tiles and a thumbnail."""
    tile = keys.exact_size("size", {"height": 384, "width": 384})
    least, most = keys.count("min_patches", 1), keys.count("max_patches", 12)
    tiled = keys.flag("crop_to_patches", False) and most > 1
    resizes = keys.flag("do_resize", True)
    if not tiled:
        if not resizes:
            keys.unsupported("do_resize", "false leaves images of different sizes, which make no one array")
        return OneSize(_recipe(keys, dtype, "bicubic", _CLIP, ExactSize(tile)), counts_patches=True)
    if most < least:
        raise keys.wrong("max_patches", f"{most} is less than min_patches, {least}")
    grid = TileGrid(tile, least, most)
    return Tiles(_recipe(keys, dtype, "bicubic", _CLIP, grid, packing="packed", patches=Patches(tile)))


def _idefics2(keys: Keys, dtype: DType | None) -> Plan:
    """Idefics2ImageProcessor: bounded sides, padded; with ``do_image_splitting`` four quarters before each image."""
    forms = [("shortest_edge", "longest_edge"), ("height", "width")]
    size = keys.size("size", {"shortest_edge": 378, "longest_edge": 980}, ("height", "width"), forms)
    if not keys.flag("do_resize", True):
        keys.unsupported("do_resize", "false is not supported for Idefics2")
    if not keys.flag("do_pad", True):
        keys.unsupported("do_pad", "false leaves images of different sizes, which make no one array")
    if "height" in size:
        resize: Resize = ExactSize(Size(size["width"], size["height"]))
    elif size["longest_edge"] < size["shortest_edge"]:
        raise keys.wrong("size", f"longest_edge {size['longest_edge']} is less than shortest_edge {size['shortest_edge']}")
    else:
        resize = BoundedSides(size["shortest_edge"], size["longest_edge"])
    split = keys.flag("do_image_splitting", False)
    return Padded(_recipe(keys, dtype, "bilinear", _HALF, resize, packing="packed"), split)


def _llava_next(keys: Keys, dtype: DType | None) -> Plan:
    """LlavaNextImageProcessor: the whole image and tiles at one of ``image_grid_pinpoints``."""
    size = keys.size("size", {"shortest_edge": 224}, ("shortest_edge",), [("height", "width"), ("shortest_edge",)])
    side = keys.exact_size("crop_size", {"height": 224, "width": 224}).height
    if set(size.values()) != {side} or keys.exact_size("crop_size", {"height": 224, "width": 224}).width != side:
        keys.unsupported("crop_size", "must be a square of the side that `size` names, or tiles would be resized once more")
    if keys.take("aspect_ratio_setting", "anyres") != "anyres":
        keys.unsupported("aspect_ratio_setting", "only anyres is supported")
    if not keys.flag("do_resize", True):
        keys.unsupported("do_resize", "false is not supported for LLaVA-NeXT")
    if not keys.flag("do_pad", True):
        keys.unsupported("do_pad", "false leaves images with different numbers of tiles, which make no one array")
    keys.flag("do_center_crop", True)  # of tiles that have the crop's size already
    pinpoints = keys.sizes("image_grid_pinpoints", [[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]])
    for pinpoint in pinpoints:
        if pinpoint.width % side or pinpoint.height % side:
            keys.unsupported("image_grid_pinpoints", f"{pinpoint.height} x {pinpoint.width} does not divide into tiles of {side}")
    return AnyResolution(_recipe(keys, dtype, "bicubic", _CLIP, ExactSize(Size(side, side))), side, pinpoints)


def _resized_and_cropped(
    keys: Keys,
    dtype: DType | None,
    filter_: Filter,
    statistics: _Statistics,
    size: dict[str, int],
    *,
    square: bool,
    crops: bool,
) -> Recipe:
    """The recipe of processors that resize to one size, or to a shorter side and crop the middle.

    ``square``: whether a bare number for ``size`` is a square and not the shorter side, and ``crops``: whether they crop, where the
    configuration does not say.
    """
    number = ("height", "width") if keys.flag("default_to_square", square) else ("shortest_edge",)
    asked = keys.size("size", size, number, [("height", "width"), ("shortest_edge",)])
    cropped = keys.exact_size("crop_size", {"height": 224, "width": 224})
    crop = cropped if keys.flag("do_center_crop", crops) else None
    resize: Resize | None = None
    if keys.flag("do_resize", True):
        short = asked.get("shortest_edge")
        resize = ExactSize(Size(asked["width"], asked["height"])) if short is None else ShorterSide(short)
        least = Size(short, short) if short is not None else Size(asked["width"], asked["height"])
        if crop is not None and (crop.width > least.width or crop.height > least.height):
            keys.unsupported("crop_size", f"{tuple(crop)} is larger than what `size` makes, and would have to be padded")
    if crop is None and not isinstance(resize, ExactSize):
        keys.unsupported("do_center_crop", "without it images keep different sizes, which make no one array")
    return _recipe(keys, dtype, filter_, statistics, resize, centre_crop=crop, centre_rounding="down")


def _recipe(keys: Keys, dtype: DType | None, filter_: Filter, statistics: _Statistics, resize: Resize | None, **more: Any) -> Recipe:
    """What all processors have in common: filter, rescaling, normalisation."""
    keys.flag("do_convert_rgb", True)  # pictures always come as RGB, as transformers' load_image() makes them
    scale = keys.number("rescale_factor", 1 / 255)
    rescales, normalises = keys.flag("do_rescale", True), keys.flag("do_normalize", True)
    mean, std = keys.channels("image_mean", statistics[0]), keys.channels("image_std", statistics[1])
    if 0 in std:
        raise keys.wrong("image_std", "must not hold 0")
    recipe = {"resize": resize, "filter": keys.filter("resample", filter_), **more}
    factor = 255 * scale if rescales else 255.0  # transformers' values are ours times this
    if normalises:
        unit = Normalise(tuple(m / factor for m in mean), tuple(s / factor for s in std))
        return Recipe(**recipe, normalise=unit, dtype=_floating(dtype, keys))
    if rescales and factor != 1:
        return Recipe(**recipe, normalise=Normalise((0.0,), (1 / factor,)), dtype=_floating(dtype, keys))
    return Recipe(**recipe, range="unit" if rescales else "raw", dtype=dtype or ("float32" if rescales else "uint8"))


def _floating(dtype: DType | None, keys: Keys) -> DType:
    if dtype == "uint8":
        keys.unsupported("do_normalize", "normalised or rescaled pixels are not whole numbers: choose a floating dtype")
    return dtype or "float32"


_FAMILIES: dict[str, Callable[[Keys, DType | None], Plan]] = {
    "CLIP": _clip,
    "Llava": _clip,
    "ViT": _vit,
    "Siglip": _siglip,
    "LlavaNext": _llava_next,
    "Idefics": _idefics,
    "Idefics2": _idefics2,
    "Qwen2VL": _qwen2_vl,
    "Qwen2_5_VL": _qwen2_vl,
    "GotOcr2": _got_ocr2,
}

_REASONS = {
    "Idefics3": "it resizes every image twice, which the daemon does not do in one step",
    "SmolVLM": "it resizes every image twice, which the daemon does not do in one step",
    "LlavaOnevision": "its tiling is not known here; LLaVA-NeXT's is",
}
