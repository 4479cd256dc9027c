"""The families that make every image one size: by a resize, or by a resize and the middle of what it makes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from millrace.hf._families.config import Keys
from millrace.hf._families.own import HALF, IMAGENET, Own, channels_of, must_resize, recipe_of, square
from millrace.hf._families.sizes import shorter_side
from millrace.hf._plans.arrange import Middle
from millrace.hf._plans.plans import Frames, OneSize, Plan
from millrace.hf._plans.sized import MiddleFirst, Sized, WithSources
from millrace.recipe import DType, ExactSize, Normalise, Recipe, Resize, ShorterSide, Size

_SHORTEST = ("shortest_edge",)
_SAM = ("mask_size", "mask_pad_size")
_LABELS = ("do_reduce_labels",)
_SAPIENS = ("do_reduce_labels", "keypoint_heatmap_downscale_factor", "keypoint_heatmap_sigma")
_ONES = ((1.0, 1.0, 1.0), (1.0, 1.0, 1.0))

Row = tuple[Callable[[Own, Keys, DType | None], Plan], Own]
"""How a class reads its configuration, and what counts where that is silent."""


def _shortest(side: int) -> dict[str, int]:
    return {"shortest_edge": side}


def plain(own: Own, keys: Keys, dtype: DType | None) -> Plan:
    """One size by ``size``, ``crop_size`` and their flags; a crop that is larger than what it is cut from has black around."""
    bare = own.bare
    if keys.has("default_to_square") or keys.is_null("default_to_square"):
        bare = ("height", "width") if keys.flag("default_to_square", True) else _SHORTEST
    asked = keys.size("size", own.size, bare, [("height", "width"), _SHORTEST])
    resize: Resize | None = None
    if keys.flag("do_resize", True):
        short = asked.get("shortest_edge")
        resize = ExactSize(Size(asked["width"], asked["height"])) if short is None else ShorterSide(short)
    return _cropped(own, keys, dtype, resize)


def _cropped(own: Own, keys: Keys, dtype: DType | None, resize: Resize | None, **more: Any) -> Plan:
    cropped = keys.exact_size("crop_size", own.crop)
    crop = cropped if keys.flag("do_center_crop", own.crops) else None
    if crop is None and not isinstance(resize, ExactSize):
        keys.unsupported("do_center_crop", "without it images keep different sizes, which make no one array")
    if crop is not None and resize is not None:
        least = resize.size if isinstance(resize, ExactSize) else Size(resize.pixels, resize.pixels)  # type: ignore[union-attr]
        if crop.width > least.width or crop.height > least.height:
            fit = partial(_always, size=least) if isinstance(resize, ExactSize) else partial(shorter_side, pixels=least.width)
            return Sized(recipe_of(keys, dtype, own, resize, **more), fit, Middle(crop), least.width * least.height * 4)
    return OneSize(recipe_of(keys, dtype, own, resize, centre_crop=crop, centre_rounding="down", **more))


def _always(source: Size, size: Size) -> Size:
    return size


def exact(own: Own, keys: Keys, dtype: DType | None) -> Recipe:
    """The recipe of one size without a crop."""
    size = keys.size("size", own.size, own.bare, [("height", "width")])
    must_resize(keys)
    return recipe_of(keys, dtype, own, ExactSize(Size(size["width"], size["height"])))


def with_sources(own: Own, keys: Keys, dtype: DType | None) -> Plan:
    """The same, with the sizes of the sources beside it."""
    return WithSources(exact(own, keys, dtype))


def frames(own: Own, keys: Keys, dtype: DType | None) -> Plan:
    """VideoMAE's: rows of frames."""
    made = plain(own, keys, dtype)
    if not isinstance(made, OneSize):
        keys.unsupported("crop_size", "is larger than what `size` makes")
    return Frames(made.recipe)


def idefics(own: Own, keys: Keys, dtype: DType | None) -> Plan:
    """IdeficsImageProcessor: ``image_size`` overrides ``size``."""
    keys.only("image_num_channels", 3)
    if not keys.has("image_size"):
        return plain(own, keys, dtype)
    side = keys.count("image_size", 224)
    keys.take("size")
    must_resize(keys)
    return OneSize(recipe_of(keys, dtype, own, ExactSize(Size(side, side))))


@dataclass(frozen=True)
class LargerFirst:
    """Resizes to more than the crop needs.

    Attributes:
        by: ``convnext``: a shorter side below 384 is divided by ``crop_pct``, larger ones are squeezed into a square; ``levit``: it is
            256/224 of the size; ``poolformer``: it is divided by ``crop_pct``, whatever it is.
    """

    by: Literal["convnext", "levit", "poolformer"]

    def __call__(self, own: Own, keys: Keys, dtype: DType | None) -> Plan:
        """The plan."""
        must_resize(keys)
        forms = [_SHORTEST] if self.by == "convnext" else [_SHORTEST, ("height", "width")]
        size = keys.size("size", own.size, own.bare, forms)
        short = size.get("shortest_edge")
        if self.by == "levit":
            resize: Resize = ShorterSide(int(256 / 224 * short)) if short is not None else ExactSize(Size(size["width"], size["height"]))
            return _cropped(own, keys, dtype, resize)
        share = keys.number("crop_pct", 224 / 256 if self.by == "convnext" else 0.9)
        if self.by == "convnext":
            assert short is not None
            if short >= 384:
                return OneSize(recipe_of(keys, dtype, own, ExactSize(Size(short, short))))
            larger, crop = int(short / share), Size(short, short)
            if larger < short:
                keys.unsupported("crop_pct", f"{share} is over 1")
            return OneSize(recipe_of(keys, dtype, own, ShorterSide(larger), centre_crop=crop, centre_rounding="down"))
        if short is None and size["height"] != size["width"]:
            high, wide = (int(size[name] / share) for name in ("height", "width"))
            return _cropped(own, keys, dtype, ExactSize(Size(wide, high)))
        return _cropped(own, keys, dtype, ShorterSide(int((short or size["height"]) / share)))


def efficientnet(own: Own, keys: Keys, dtype: DType | None) -> Plan:
    """EfficientNetImageProcessor: with ``include_top`` it divides by the deviation twice, with ``rescale_offset`` it takes 1 away."""
    shifts, twice = keys.flag("rescale_offset", False) and keys.flag("do_rescale", True), keys.flag("include_top", True)
    made = plain(own, keys, dtype)
    if not shifts and not twice:
        return made
    if not isinstance(made, OneSize):
        keys.unsupported("crop_size", "is larger than what `size` makes")
    if dtype == "uint8":
        keys.unsupported("include_top", "and rescale_offset make pixels that are no whole numbers: choose a floating dtype")
    offset = 1 / (255 * keys.number("rescale_factor", own.scale)) if shifts else 0.0
    return OneSize(_once_more(made.recipe, channels_of(keys, own)[1] if twice else (1.0, 1.0, 1.0), offset))


def _once_more(recipe: Recipe, std: tuple[float, float, float], offset: float) -> Recipe:
    """``recipe`` with ``offset``, in the unit range, taken away first, and its result divided by ``std``."""
    before = recipe.normalise or Normalise((0.0,) * 3, (1.0 if recipe.range == "unit" else 1 / 255,) * 3)
    means, stds = (values * 3 if len(values) == 1 else values for values in (before.mean, before.std))
    by = Normalise(tuple(mean + offset for mean in means), tuple(a * b for a, b in zip(stds, std, strict=True)))
    return dataclasses.replace(recipe, normalise=by, range="unit", dtype="float32" if recipe.dtype == "uint8" else recipe.dtype)


def perceiver(own: Own, keys: Keys, dtype: DType | None) -> Plan:
    """PerceiverImageProcessor: the middle of the source, of the shorter side the share that ``size`` is of ``crop_size``; resized."""
    size = keys.exact_size("size", own.size)
    whole = keys.exact_size("crop_size", own.crop)
    must_resize(keys)
    recipe = recipe_of(keys, dtype, own, ExactSize(size))
    if not keys.flag("do_center_crop", True):
        return OneSize(recipe)
    if size.width > whole.width or size.height > whole.height:
        keys.unsupported("crop_size", "is smaller than `size`, so that images would have to be padded")
    return MiddleFirst(recipe, ((size.width, whole.width), (size.height, whole.height)))


def mobilevit(own: Own, keys: Keys, dtype: DType | None) -> Plan:
    """MobileViTImageProcessor: blue comes first."""
    made = plain(own, keys, dtype)
    recipe = dataclasses.replace(made.recipe, channels="BGR" if keys.flag("do_flip_channel_order", True) else "RGB")
    return dataclasses.replace(made, recipe=recipe)


def seggpt(own: Own, keys: Keys, dtype: DType | None) -> Plan:
    """SegGptImageProcessor, which crops nothing."""
    keys.accept("do_center_crop")
    return OneSize(exact(own, keys, dtype))


def superpoint(own: Own, keys: Keys, dtype: DType | None) -> Plan:
    """SuperPointImageProcessor without ``do_grayscale``."""
    keys.only("do_grayscale", False)
    return OneSize(exact(own, keys, dtype))


def layout(own: Own, keys: Keys, dtype: DType | None) -> Plan:
    """LayoutLMv2ImageProcessor, LayoutLMv3ImageProcessor without the reading of text; LayoutLMv2's blue comes first."""
    if keys.flag("apply_ocr", True):
        keys.unsupported("apply_ocr", "texts are not read here: set it to false, and give the processor words and boxes")
    keys.accept("ocr_lang", "tesseract_config")
    recipe = exact(own, keys, dtype)
    return OneSize(dataclasses.replace(recipe, channels="BGR") if own.normalises is None else recipe)


def flava(own: Own, keys: Keys, dtype: DType | None) -> Plan:
    """FlavaImageProcessor without random masks and without a codebook's pixels."""
    keys.only("return_image_mask", False)
    keys.only("return_codebook_pixels", False)
    codebook = ("do_resize", "size", "resample", "do_center_crop", "crop_size", "do_rescale", "rescale_factor", "do_map_pixels")
    keys.accept(*(f"codebook_{name}" for name in (*codebook, "do_normalize", "image_mean", "image_std")))
    keys.accept("input_size_patches", "total_mask_patches", "mask_group_min_patches", "mask_group_max_patches")
    keys.accept("mask_group_min_aspect_ratio", "mask_group_max_aspect_ratio")
    return plain(own, keys, dtype)


def gemma3(own: Own, keys: Keys, dtype: DType | None) -> Plan:
    """Gemma3ImageProcessor without pan and scan."""
    keys.only("do_pan_and_scan", False)
    keys.accept(*(f"pan_and_scan_{name}" for name in ("min_crop_size", "max_num_crops", "min_ratio_to_activate")))
    return OneSize(exact(own, keys, dtype), beside=("num_crops", 0, ()))


ONE_SIZE: dict[str, Row] = {
    "Beit": (plain, Own(statistics=HALF, accepted=_LABELS)),
    "Bit": (plain, Own(_shortest(224), bare=_SHORTEST, crops=True)),
    "Blip": (plain, Own(square(384))),
    "CLIP": (plain, Own(_shortest(224), bare=_SHORTEST, crops=True)),
    "Chameleon": (plain, Own(_shortest(512), "lanczos", _ONES, _SHORTEST, crops=True, crop=square(512), scale=0.0078)),
    "ChineseCLIP": (plain, Own(_shortest(224), bare=_SHORTEST, crops=True)),
    "ConvNext": (LargerFirst("convnext"), Own(_shortest(384), statistics=HALF, bare=_SHORTEST)),
    "DINOv3ViT": (plain, Own(filter="bilinear", statistics=IMAGENET)),
    "DeiT": (plain, Own(square(256), statistics=HALF, crops=True)),
    "EfficientNet": (efficientnet, Own(square(346), statistics=HALF, crop=square(289))),
    "Flava": (flava, Own(crops=True)),
    "Gemma3": (gemma3, Own(filter="bilinear", statistics=HALF)),
    "Idefics": (idefics, Own()),
    "LayoutLMv2": (layout, Own(filter="bilinear", normalises=None, rescales=None)),
    "LayoutLMv3": (layout, Own(filter="bilinear", statistics=HALF)),
    "Levit": (LargerFirst("levit"), Own(_shortest(224), statistics=IMAGENET, bare=_SHORTEST, crops=True)),
    "Llava": (plain, Own(_shortest(224), bare=_SHORTEST, crops=True)),
    "MobileNetV1": (plain, Own(_shortest(256), "bilinear", HALF, _SHORTEST, crops=True)),
    "MobileNetV2": (plain, Own(_shortest(256), "bilinear", HALF, _SHORTEST, crops=True, accepted=_LABELS)),
    "MobileViT": (mobilevit, Own(_shortest(224), bare=_SHORTEST, crops=True, crop=square(256), normalises=None, accepted=_LABELS)),
    "OwlViT": (plain, Own(square(768), crop=square(768))),
    "PPChart2Table": (plain, Own(square(1024))),
    "Perceiver": (perceiver, Own(statistics=IMAGENET, crop=square(256))),
    "PoolFormer": (LargerFirst("poolformer"), Own(_shortest(224), statistics=IMAGENET, bare=_SHORTEST, crops=True)),
    "Pvt": (plain, Own(statistics=IMAGENET)),
    "Sam2": (with_sources, Own(square(1024), "bilinear", IMAGENET, accepted=_SAM)),
    "Sam3": (with_sources, Own(square(1008), "bilinear", HALF, accepted=_SAM)),
    "Sapiens2": (plain, Own({"height": 1024, "width": 768}, "bilinear", IMAGENET, accepted=_SAPIENS)),
    "SegGpt": (seggpt, Own(square(448), statistics=IMAGENET)),
    "Segformer": (plain, Own(square(512), "bilinear", IMAGENET, accepted=_LABELS)),
    "Siglip": (plain, Own(statistics=HALF, bare=_SHORTEST)),
    "SuperPoint": (superpoint, Own({"height": 480, "width": 640}, "bilinear", bare=_SHORTEST, normalises=None)),
    "Tipsv2": (plain, Own(square(448), "bilinear", None, normalises=False)),
    "Tipsv2Dpt": (plain, Own(square(448), "bilinear", None, normalises=False)),
    "ViT": (plain, Own(filter="bilinear", statistics=HALF)),
    "VideoMAE": (frames, Own(_shortest(224), "bilinear", HALF, _SHORTEST, crops=True)),
}
"""By the name of the class without ``ImageProcessor``; sizes, filters and values are its own."""
