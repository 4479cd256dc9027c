"""The families whose images become rows of patches, as many as their sizes ask for: Qwen2-VL and those after it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

from millrace.hf._families import sizes
from millrace.hf._families.config import Keys
from millrace.hf._families.one_size import Row
from millrace.hf._families.own import CLIP, HALF, Own, Statistics, recipe_of
from millrace.hf._plans.plans import PatchRows, Plan, most_smart_pixels
from millrace.hf._plans.sized import Fit, SizedPatches, one_patch_a_row
from millrace.recipe import DType, SmartResize

_SIDES = ("shortest_edge", "longest_edge")
_PIXELS = ("min_pixels", "max_pixels")


@dataclass(frozen=True)
class Smart:
    """Sides that are multiples of a group of patches, and bounded in all.

    Attributes:
        patch: its side.
        merge: of a group, patches a side.
        temporal: frames that an image counts as.
        by: whose rule of small images: Qwen2-VL's has none; GLM-4V's and PaddleOCR-VL's enlarge them, and GLM-4V's bounds count frames.
        shape: of a row, see ``SizedPatches``.
        grouped: whether patches come in groups, else row by row.
        tells_merge: whether ``image_merge_sizes`` comes beside.
        old_names: whether ``min_pixels`` and ``max_pixels`` override ``size``.
    """

    patch: int = 14
    merge: int = 2
    temporal: int = 2
    by: Literal["qwen", "glm", "paddle"] = "qwen"
    shape: str = "CTHW"
    grouped: bool = True
    tells_merge: bool = False
    old_names: bool = True

    def __call__(self, own: Own, keys: Keys, dtype: DType | None) -> Plan:
        """The plan."""
        side = keys.count("patch_size", self.patch)
        merge, temporal = keys.count("merge_size", self.merge), keys.count("temporal_patch_size", self.temporal)
        least, most = self._bounds(own, keys)
        patches = one_patch_a_row(side, merge if self.grouped else 1, temporal)
        resizes = keys.flag("do_resize", True)
        factor = side * merge
        if self.by == "qwen" and self.grouped and self.shape == "CTHW":
            resize = SmartResize(factor, least, most) if resizes else None
            return PatchRows(recipe_of(keys, dtype, own, resize, packing="packed", patches=patches), self.tells_merge)
        if not resizes:
            keys.unsupported("do_resize", "false is not supported for this processor")
        fit: Fit = partial(_FITS[self.by], factor=factor, least=least, most=most)
        if self.by == "glm":
            fit = partial(sizes.smart_of_frames, frames=temporal, factor=factor, least=least, most=most)
        pixels = most_smart_pixels(SmartResize(factor, least, most))
        return SizedPatches(recipe_of(keys, dtype, own, None, packing="packed", patches=patches), fit, pixels, self.shape)

    def _bounds(self, own: Own, keys: Keys) -> tuple[int, int]:
        size = keys.size("size", own.size, (), [_SIDES, _PIXELS] if self.old_names else [_SIDES])
        least, most = size.get("shortest_edge") or size["min_pixels"], size.get("longest_edge") or size["max_pixels"]
        if self.old_names:
            least, most = keys.count("min_pixels", least), keys.count("max_pixels", most)
        else:
            keys.only_in_a_file(*_PIXELS)
        if most < least:
            raise keys.wrong("size", f"at most {most} pixels is less than at least {least}")
        return least, most


_FITS = {"qwen": sizes.smart, "glm": sizes.smart, "paddle": sizes.smart_enlarged}


def hunyuan(own: Own, keys: Keys, dtype: DType | None) -> Plan:
    """HunYuanVLImageProcessor: always bicubic."""
    keys.accept("spatial_patch_size")
    return Smart(16, 2, 1, by="qwen", grouped=False)(own, keys, dtype)


def glmga(own: Own, keys: Keys, dtype: DType | None) -> Plan:
    """GlmgaImageProcessor: GLM-4V's; how many tokens a patch becomes is the model's."""
    keys.accept("patch_expand_factor")
    return Smart(by="glm", old_names=False)(own, keys, dtype)


def _own(least: int, most: int, statistics: Statistics = CLIP, *, resamples: bool = True, floats: bool = True) -> Own:
    return Own({"shortest_edge": least, "longest_edge": most}, statistics=statistics, resamples=resamples, floats=floats)


_QWEN = _own(56 * 56, 28 * 28 * 1280)
_ERNIE = _own(56 * 56, 28 * 28 * 6177)
_GLM = _own(112 * 112, 28 * 28 * 15000)

PATCH_ROWS: dict[str, Row] = {
    "CohereCompass": (Smart(), _QWEN),
    "Cosmos3Edge": (Smart(16, 2, 1, by="glm", shape="HWCT", old_names=False), _own(65536, 16777216, HALF)),
    "Ernie4_5_VLMoe": (Smart(temporal=1, old_names=False), _ERNIE),
    "Ernie4_5_VL_Moe": (Smart(temporal=1, old_names=False), _ERNIE),
    "Glm46V": (Smart(by="glm", old_names=False), _GLM),
    "Glm4v": (Smart(by="glm", old_names=False), _GLM),
    "Glmga": (glmga, _GLM),
    "HunYuanVL": (hunyuan, _own(512 * 512, 2048 * 2048, resamples=False)),
    "MiniMaxM3VL": (Smart(), _own(56 * 56, 28 * 28 * 576, floats=False)),
    "PaddleOCRVL": (Smart(14, 2, 1, by="paddle", shape="CT H W", grouped=False), _own(384 * 384, 1536 * 1536)),
    "Qwen2VL": (Smart(), _QWEN),
    "Qwen2_5_VL": (Smart(), _QWEN),
    "VideoLlama3": (Smart(14, 1, 1, tells_merge=True), _own(56 * 56, 28 * 28 * 1280, HALF)),
}
"""By the name of the class without ``ImageProcessor``; sizes, filters and values are its own."""
