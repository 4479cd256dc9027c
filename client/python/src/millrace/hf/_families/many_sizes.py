"""The families that give each image a size of its own, and pad it, cut its middle or take one at a time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from millrace.hf._families import sizes
from millrace.hf._families.config import Keys
from millrace.hf._families.one_size import Row
from millrace.hf._families.own import HALF, IMAGENET, PLAIN, Own, channels_of, must_resize, recipe_of, square
from millrace.hf._plans.arrange import Colour, Middle, Padding, PatchList, Together
from millrace.hf._plans.plans import Plan
from millrace.hf._plans.sized import Arrange, Fit, Sized
from millrace.recipe import DType, Size

_BOTH = ("shortest_edge", "longest_edge")
_ROOM = ("max_height", "max_width")
_SHORTEST = ("shortest_edge",)
_DETR = {"shortest_edge": 800, "longest_edge": 1333}
_ANNOTATIONS = ("format", "do_convert_annotations")
_TEXTS = ("repo_path", "class_info_file", "num_text", "metadata")
_MAPS = ("do_reduce_labels", "ignore_index", "num_labels")


def sized(own: Own, keys: Keys, dtype: DType | None, fit: Fit, arrange: Arrange, most: int) -> Plan:
    """The plan of a size and an arrangement."""
    must_resize(keys)
    return Sized(recipe_of(keys, dtype, own, None, packing="packed"), fit, arrange, most)


@dataclass(frozen=True)
class Detector:
    """DETR's: both sides within bounds, padded to the largest of a call, with ``pixel_mask``. Without annotations.

    Attributes:
        sixteenths: YOLOS's sizes.
        pads: whether, where the configuration does not say.
        always_pads: and ``do_pad`` does not count.
        multiple: MaskFormer's ``size_divisor``; None: there is none.
        task: whether OneFormer's ``task_inputs`` come beside, a list of one text: the panoptic task.
    """

    sixteenths: bool = False
    pads: bool = True
    always_pads: bool = False
    multiple: int | None = None
    task: bool = False

    def __call__(self, own: Own, keys: Keys, dtype: DType | None) -> Plan:
        """The plan."""
        fit, most = self._fit(own, keys)
        if self.task:
            keys.accept("pad_size")
        room = keys.exact_size("pad_size", {}) if keys.has("pad_size") and not self.task else None
        if self.always_pads:
            keys.accept("do_pad")
        pads = self.always_pads or keys.flag("do_pad", self.pads and keys.flag("pad_and_return_pixel_mask", True))
        return sized(
            own,
            keys,
            dtype,
            fit,
            Padding(room, mask="pixel_mask", mask_first=not self.always_pads, task=self.task) if pads else Together(),
            most,
        )

    def _fit(self, own: Own, keys: Keys) -> tuple[Fit, int]:
        if keys.has("max_size") and not keys.has("size"):
            keys.unsupported("max_size", "without a size beside it")
        value, most = keys.take("size"), keys.count("max_size", 1333)
        bare = (self.pads and not self.always_pads) or (self.multiple is not None and keys.has("max_size"))  # else it means nothing there
        if bare and isinstance(value, int) and not isinstance(value, bool):
            size = {"shortest_edge": keys.count("size", 1), "longest_edge": most}
        else:
            size = keys.size("size", own.size, (), [_BOTH, ("height", "width"), _ROOM])
        multiple = keys.count("size_divisor", self.multiple) if self.multiple is not None else 1
        if "shortest_edge" in size:
            short, long = size["shortest_edge"], size["longest_edge"]
            if multiple > 1:
                return partial(sizes.between_multiples, shortest=short, longest=long, multiple=multiple), (long + multiple) ** 2
            by = sizes.between_sixteenths if self.sixteenths else sizes.between
            return partial(by, shortest=short, longest=long), max(short, long) * long
        if multiple > 1:
            keys.unsupported("size", "only shortest_edge and longest_edge are supported")
        if "max_height" in size:
            room = Size(size["max_width"], size["max_height"])
            return partial(sizes.within, room=room), room.width * room.height
        exact = Size(size["width"], size["height"])
        return partial(always, size=exact), exact.width * exact.height


def always(source: Size, size: Size) -> Size:
    """The same for every image."""
    return size


def within(own: Own, keys: Keys, dtype: DType | None) -> Plan:
    """PI0ImageProcessor: within a room, zeros beside."""
    size = keys.size("size", own.size, _ROOM, [_ROOM])
    room = Size(size["max_width"], size["max_height"])
    pad = None if keys.is_null("pad_size") else keys.exact_size("pad_size", square(224))
    arrange: Arrange = Padding(pad) if keys.flag("do_pad", True) else Together()
    return sized(own, keys, dtype, partial(sizes.within, room=room), arrange, room.width * room.height)


def vilt(own: Own, keys: Keys, dtype: DType | None) -> Plan:
    """ViltImageProcessor: bounded sides that are multiples of ``size_divisor``, padded."""
    fit, most = _divided(own, keys)
    return sized(own, keys, dtype, fit, Padding(mask="pixel_mask") if keys.flag("do_pad", True) else Together(), most)


def bridgetower(own: Own, keys: Keys, dtype: DType | None) -> Plan:
    """BridgeTowerImageProcessor: the same, and the middle of that."""
    fit, most = _divided(own, keys)
    side = keys.size("crop_size", _shortest(288), _SHORTEST, [_SHORTEST])["shortest_edge"]
    pads, crops = keys.flag("do_pad", True), keys.flag("do_center_crop", True)
    if crops:
        return sized(own, keys, dtype, fit, Middle(Size(side, side), "pixel_mask" if pads else None, mask_first=True), most)
    return sized(own, keys, dtype, fit, Padding(mask="pixel_mask", mask_first=True) if pads else Together(), most)


def _divided(own: Own, keys: Keys) -> tuple[Fit, int]:
    short, multiple = _short(own, keys), keys.count("size_divisor", 32)
    if short < multiple:
        keys.unsupported("size_divisor", f"{multiple} is more than the shorter side, {short}")
    return partial(sizes.divided, shortest=short, multiple=multiple), short * (int(1333 / 800 * short) + 1)


def _short(own: Own, keys: Keys) -> int:
    return keys.size("size", own.size, _SHORTEST, [_SHORTEST])["shortest_edge"]


def textnet(own: Own, keys: Keys, dtype: DType | None) -> Plan:
    """TextNetImageProcessor: the shorter side, both then rounded up to a multiple."""
    short, multiple = _short(own, keys), keys.count("size_divisor", 32)
    crop = keys.exact_size("crop_size", own.crop)
    arrange: Arrange = Middle(crop) if keys.flag("do_center_crop", own.crops) else Together()
    return sized(own, keys, dtype, partial(sizes.shorter_side_up, pixels=short, multiple=multiple), arrange, 4 * short * short)


def glpn(own: Own, keys: Keys, dtype: DType | None) -> Plan:
    """GLPNImageProcessor: each side rounded down to a multiple."""
    keys.accept("size")
    return sized(own, keys, dtype, partial(sizes.multiples_down, multiple=keys.count("size_divisor", 32)), Together(), 1 << 20)


def depth(own: Own, keys: Keys, dtype: DType | None) -> Plan:
    """DPTImageProcessor, PromptDepthAnythingImageProcessor: a size, or with ``keep_aspect_ratio`` near it; multiples; without maps."""
    room, multiple = keys.exact_size("size", own.size), keys.count("ensure_multiple_of", 1)
    keys.only("do_pad", False)
    keys.accept("size_divisor")
    keeps = keys.flag("keep_aspect_ratio", False)
    fit = partial(sizes.nearest_multiples, room=room, multiple=multiple, keeps_ratio=keeps)
    return sized(own, keys, dtype, fit, Together(), room.width * room.height)


def sam(own: Own, keys: Keys, dtype: DType | None) -> Plan:
    """SamImageProcessor: the longer side, padded with zeros; the sizes of the sources and of what was made of them."""
    long = keys.size("size", own.size, (), [("longest_edge",)])["longest_edge"]
    room = None if keys.is_null("pad_size") else keys.exact_size("pad_size", square(1024))
    original, resized = "original_sizes", "reshaped_input_sizes"
    pads = keys.flag("do_pad", True)
    arrange: Arrange = Padding(room, original=original, resized=resized) if pads else Together(original, resized)
    return sized(own, keys, dtype, partial(sizes.longer_side, pixels=long), arrange, long * long)


def in_a_square(own: Own, keys: Keys, dtype: DType | None) -> Plan:
    """JanusImageProcessor, DeepseekVLImageProcessor: the longer side, in the middle of a square of the mean's colour."""
    size = keys.exact_size("size", own.size)
    if size.width != size.height:
        keys.unsupported("size", "its sides must be equal")
    least = keys.count("min_size", 14)
    keys.accept("background_color")
    if "resample" in keys.beside.asked and keys.take("resample") == 0 and keys.beside.resample != 0:
        keys.unsupported("resample", "0 in a call is taken for none by transformers' class: make a processor with it")
    arrange: Arrange = Padding(square=True, middle=True, colour=_background(own, keys)) if keys.flag("do_pad", True) else Together()
    return sized(own, keys, dtype, partial(sizes.longer_side_at_least, pixels=size.width, least=least), arrange, size.width**2)


def _background(own: Own, keys: Keys) -> Colour:
    """What the processor was made with, whatever a call says of ``image_mean``."""
    if keys.beside.background is not None:
        return keys.beside.background
    made_of = keys.beside.made_of
    if made_of.get("image_mean", ()) is None:
        return 127, 127, 127
    red, green, blue = (int(value * 255) for value in channels_of(Keys("config", made_of, keys.beside), own)[0])
    return red, green, blue


def aria(own: Own, keys: Keys, dtype: DType | None) -> Plan:
    """AriaImageProcessor without ``split_image``: the longer side, the other one bounded below; black at the right and the bottom."""
    keys.only("split_image", False)
    keys.accept("split_resolutions", "do_resize")
    side, least = keys.count("max_image_size", 980), keys.count("min_image_size", 336)
    if side not in (490, 980):
        raise keys.wrong("max_image_size", f"must be 490 or 980, is {side}")
    fit = partial(sizes.longer_side_down, pixels=side, least=least)
    arrange = Padding(Size(side, side), colour=(0, 0, 0), mask="pixel_mask", bool_mask=True, counts_crops=True)
    return sized(own, keys, dtype, fit, arrange, side * side)


def pixtral(own: Own, keys: Keys, dtype: DType | None) -> Plan:
    """PixtralImageProcessor: shrunk where it is too large, whole patches, padded with zeros; sizes before the padding."""
    size = keys.size("size", own.size, ("height", "width"), [("longest_edge",), ("height", "width")])
    room = Size(size.get("width") or size["longest_edge"], size.get("height") or size["longest_edge"])
    patch = keys.exact_size("patch_size", square(16))
    fit = partial(sizes.whole_patches, room=room, patch=patch)
    arrange: Arrange = Padding(resized="image_sizes") if keys.flag("do_pad", True) else Together(resized="image_sizes")
    return sized(own, keys, dtype, fit, arrange, (room.width + patch.width) * (room.height + patch.height))


def siglip2(own: Own, keys: Keys, dtype: DType | None) -> Plan:
    """Siglip2ImageProcessor: about the image's ratio in so many patches."""
    patch, most = keys.count("patch_size", 16), keys.count("max_num_patches", 256)
    fit = partial(sizes.most_patches, patch=patch, most=most)
    return sized(own, keys, dtype, fit, PatchList(patch, most, "siglip2"), patch * patch * most)


def gemma4(own: Own, keys: Keys, dtype: DType | None) -> Plan:
    """Gemma4ImageProcessor: the same in so many tokens of ``pooling_kernel_size`` squared patches."""
    patch, pooling, tokens = keys.count("patch_size", 16), keys.count("pooling_kernel_size", 3), keys.count("max_soft_tokens", 280)
    if tokens not in _TOKENS:
        raise keys.wrong("max_soft_tokens", f"must be one of {_TOKENS}, is {tokens}")
    most = tokens * pooling**2
    fit = partial(sizes.soft_tokens, patch=patch, most=most, pooling=pooling)
    return sized(own, keys, dtype, fit, PatchList(patch, most, "gemma4", pooling), patch * patch * most)


def _shortest(side: int) -> dict[str, int]:
    return {"shortest_edge": side}


def _detector(**more: Any) -> Own:
    return Own(_DETR, "bilinear", IMAGENET, _SHORTEST, accepted=_ANNOTATIONS, **more)


_TOKENS = (70, 140, 280, 560, 1120)
_SEGMENTER = Own(_DETR, "bilinear", IMAGENET, _SHORTEST, accepted=_MAPS)

MANY_SIZES: dict[str, Row] = {
    "Aria": (aria, Own(statistics=HALF)),
    "BridgeTower": (bridgetower, Own(_shortest(288), bare=_SHORTEST)),
    "ConditionalDetr": (Detector(), _detector()),
    "DPT": (depth, Own(square(384), statistics=HALF, accepted=("do_reduce_labels",))),
    "DeepseekVL": (in_a_square, Own(square(384))),
    "DeformableDetr": (Detector(), _detector()),
    "Detr": (Detector(), _detector()),
    "GLPN": (glpn, Own(filter="bilinear", normalises=False, statistics=None)),
    "Gemma4": (gemma4, Own(statistics=PLAIN, normalises=False)),
    "GroundingDino": (Detector(), _detector()),
    "Janus": (in_a_square, Own(square(384))),
    "Mask2Former": (Detector(always_pads=True, multiple=32), _SEGMENTER),
    "MaskFormer": (Detector(always_pads=True, multiple=32), _SEGMENTER),
    "OneFormer": (Detector(always_pads=True, task=True), Own(_DETR, "bilinear", IMAGENET, _SHORTEST, accepted=(*_MAPS, *_TEXTS))),
    "PI0": (within, Own({"max_height": 224, "max_width": 224}, statistics=HALF)),
    "Pixtral": (pixtral, Own({"longest_edge": 1024})),
    "PromptDepthAnything": (depth, Own(square(384), statistics=HALF, accepted=("prompt_scale_to_meter",))),
    "RTDetr": (Detector(pads=False), Own(square(640), "bilinear", IMAGENET, _SHORTEST, normalises=False, accepted=_ANNOTATIONS)),
    "Sam": (sam, Own({"longest_edge": 1024}, "bilinear", IMAGENET, accepted=("mask_size", "mask_pad_size"))),
    "Siglip2": (siglip2, Own(filter="bilinear", statistics=HALF)),
    "TextNet": (textnet, Own(_shortest(640), "bilinear", IMAGENET, _SHORTEST)),
    "Vilt": (vilt, Own(_shortest(384), statistics=HALF, bare=_SHORTEST)),
    "Yolos": (Detector(sixteenths=True), _detector()),
}
"""By the name of the class without ``ImageProcessor``; sizes, filters and values are its own."""
