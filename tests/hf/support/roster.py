"""All image processor classes of the installed transformers, and what of them is compared how."""

from __future__ import annotations

import importlib
import re
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import transformers

MODELS = Path(transformers.__file__).parent / "models"


OLDER_NAMES = {"Qwen2_5_VL": "Qwen2VL", "Ernie4_5_VL_Moe": "Ernie4_5_VLMoe"}
"""Classes that transformers had, or has still as another name, and what they are now."""


class Kind(NamedTuple):
    """A class: the modules that have its two backends, None where there is none."""

    torchvision: str | None
    pil: str | None


@cache
def classes() -> dict[str, Kind]:
    """By the name without ``ImageProcessor``; found in the sources, so that it does not depend on what else is installed."""
    found: dict[str, dict[str, str]] = {}
    for path in sorted(MODELS.glob("*/image_processing_*.py")):
        if path.parent.name == "auto":
            continue
        module = f"transformers.models.{path.parent.name}.{path.stem}"
        for name, pil in re.findall(r"^class (\w+)ImageProcessor(Pil)?\(", path.read_text(), re.M):
            if name in OLDER_NAMES:
                continue
            found.setdefault(name, {})["pil" if pil else "torchvision"] = module
    return {name: Kind(modules.get("torchvision"), modules.get("pil")) for name, modules in found.items()}


def processor_class(name: str, backend: str = "pil") -> Any:
    """The class of a backend; torchvision's where there is no other."""
    kind = classes()[name]
    module, suffix = (kind.pil, "Pil") if kind.pil and backend == "pil" else (kind.torchvision, "")
    assert module is not None
    return getattr(importlib.import_module(module), f"{name}ImageProcessor{suffix}")


SMALL = {"height": 90, "width": 70}
SQUARE = {"height": 80, "width": 80}
SHORT = {"shortest_edge": 60}
BOTH = {"shortest_edge": 60, "longest_edge": 100}
PIXELS = {"shortest_edge": 9000, "longest_edge": 60000}
FLAT = {"do_normalize": False}
STATISTICS = {"image_mean": [0.1, 0.2, 0.3], "image_std": [0.4, 0.5, 0.7]}
CROP = {"size": {"shortest_edge": 60}, "do_center_crop": True, "crop_size": {"height": 51, "width": 40}}

DEFAULTS: dict[str, dict[str, Any]] = {
    "LayoutLMv2": {"apply_ocr": False},
    "LayoutLMv3": {"apply_ocr": False},
    "LlavaNext": {"size": {"shortest_edge": 336}, "crop_size": {"height": 336, "width": 336}},
}
"""What makes of a class's own defaults something that is supported: why, the refusal says."""

VARIATIONS: dict[str, list[dict[str, Any]]] = {
    "Aria": [{"max_image_size": 490, "min_image_size": 100, **STATISTICS}],
    "Beit": [{"size": SMALL, "resample": 2}, CROP],
    "Bit": [CROP, {"size": {"shortest_edge": 40}, "crop_size": {"height": 60, "width": 51}}],
    "Blip": [{"size": SMALL, **STATISTICS}],
    "BridgeTower": [
        {"size": SHORT, "size_divisor": 16, "crop_size": {"shortest_edge": 50}},
        {"do_center_crop": False, "size": SHORT},
        {"do_pad": False},
    ],
    "CLIP": [CROP],
    "Chameleon": [{"rescale_factor": 1 / 255, **CROP}],
    "ChineseCLIP": [CROP],
    "Cohere2Vision": [{"size": SQUARE, "max_patches": 6}, {"size": SMALL, "crop_to_patches": False}],
    "CohereCompass": [{"size": PIXELS, "patch_size": 8}],
    "ConditionalDetr": [{"size": BOTH}, {"size": SMALL, "do_pad": False}],
    "ConvNext": [{"size": SHORT, "crop_pct": 0.9}, {"size": {"shortest_edge": 90}, "resample": 2}],
    "Cosmos3Edge": [{"size": PIXELS, "patch_size": 8, "temporal_patch_size": 2}],
    "DINOv3ViT": [{"size": SMALL}],
    "DPT": [
        {"size": SMALL, "ensure_multiple_of": 14},
        {"size": {"height": 518, "width": 518}, "keep_aspect_ratio": True, "ensure_multiple_of": 14, "resample": 3},
    ],
    "DeepseekVL": [{"size": SQUARE, "min_size": 30, **STATISTICS}],
    "DeformableDetr": [{"size": BOTH, "pad_size": {"height": 120, "width": 130}}],
    "DeiT": [{"size": SQUARE, "crop_size": SQUARE}, {"size": SMALL, "do_center_crop": False}],
    "Detr": [{"size": BOTH}, {"size": {"max_height": 90, "max_width": 70}}, FLAT],
    "EfficientNet": [{"size": SMALL, "include_top": False}, {"size": SMALL, "rescale_offset": True, "rescale_factor": 1 / 127.5}, FLAT],
    "Ernie4_5_VLMoe": [{"size": PIXELS, "temporal_patch_size": 2}],
    "Flava": [CROP],
    "GLPN": [{"size_divisor": 16}],
    "Gemma3": [{"size": SMALL, **STATISTICS}],
    "Gemma4": [{"max_soft_tokens": 70}, {"do_normalize": True, "patch_size": 8, **STATISTICS}],
    "Glm46V": [{"size": PIXELS}],
    "Glm4v": [{"size": PIXELS, "patch_size": 16, "merge_size": 3}],
    "Glmga": [{"size": PIXELS}],
    "GotOcr2": [{"size": SMALL, "crop_to_patches": True}],
    "GroundingDino": [{"size": BOTH}],
    "HunYuanVL": [{"size": PIXELS}],
    "Idefics": [{"image_size": 90}],
    "Idefics2": [{"size": BOTH, "do_image_splitting": True}],
    "Janus": [{"size": SQUARE, "min_size": 30, **STATISTICS}],
    "LayoutLMv2": [{"apply_ocr": False, "size": SMALL}],
    "LayoutLMv3": [{"apply_ocr": False, "size": SMALL, **STATISTICS}],
    "Levit": [{"size": SHORT, "crop_size": {"height": 51, "width": 40}}, {"size": SMALL, "do_center_crop": False}],
    "Llava": [CROP],
    "LlavaNext": [{"size": SQUARE, "crop_size": SQUARE, "image_grid_pinpoints": [[80, 160], [240, 80], [160, 160]]}],
    "LlavaOnevision": [{"size": SQUARE, "image_grid_pinpoints": [[80, 160], [240, 80], [160, 160]]}],
    "Mask2Former": [{"size": BOTH, "size_divisor": 16}],
    "MaskFormer": [{"size": BOTH, "size_divisor": 16}],
    "MiniMaxM3VL": [{"size": PIXELS}],
    "Mllama": [{"size": SQUARE, "max_image_tiles": 6, **STATISTICS}],
    "MobileNetV1": [CROP],
    "MobileNetV2": [CROP],
    "MobileViT": [CROP, {"do_flip_channel_order": False}],
    "OneFormer": [{"size": BOTH}],
    "Ovis2": [{"size": SQUARE, "crop_to_patches": True}, {"size": SQUARE, "crop_to_patches": True, "use_covering_area_grid": False}],
    "OwlViT": [{"size": SMALL, "do_center_crop": True, "crop_size": {"height": 50, "width": 40}}],
    "PI0": [{"size": {"max_height": 80, "max_width": 70}, "pad_size": SMALL}],
    "PPChart2Table": [{"size": SMALL}],
    "PaddleOCRVL": [{"size": PIXELS, "temporal_patch_size": 2}],
    "Perceiver": [{"size": SMALL, "crop_size": {"height": 100, "width": 100}}, {"do_center_crop": False, "size": SMALL}],
    "Pixtral": [{"size": {"longest_edge": 100}, "patch_size": {"height": 14, "width": 14}}, {"do_pad": False, **FLAT}],
    "PoolFormer": [{"size": SHORT, "crop_size": {"height": 51, "width": 40}}, {"size": SQUARE, "crop_pct": 0.8, "crop_size": SQUARE}],
    "PromptDepthAnything": [{"size": SMALL, "keep_aspect_ratio": True, "ensure_multiple_of": 14}],
    "Pvt": [{"size": SMALL}],
    "Qwen2VL": [{"size": PIXELS, "patch_size": 16}],
    "RTDetr": [{"size": BOTH, "do_pad": True}, {"size": SMALL, "do_normalize": True}],
    "Sam": [{"size": {"longest_edge": 100}, "pad_size": {"height": 110, "width": 120}, **STATISTICS}],
    "Sam2": [{"size": SMALL}],
    "Sam3": [{"size": SMALL}],
    "Sapiens2": [{"size": SMALL}],
    "SegGpt": [{"size": SMALL}],
    "Segformer": [{"size": SMALL, "do_reduce_labels": True}],
    "Siglip": [{"size": SMALL}],
    "Siglip2": [{"max_num_patches": 100, "patch_size": 14}],
    "SuperPoint": [{"size": SMALL, "resample": 3}],
    "TextNet": [{"size": SHORT, "size_divisor": 16}, {"size": SHORT, "do_center_crop": True, "crop_size": {"height": 100, "width": 70}}],
    "Tipsv2": [{"size": SMALL, "do_normalize": True, **STATISTICS}],
    "Tipsv2Dpt": [{"size": SMALL}],
    "ViT": [{"size": SMALL, **STATISTICS}],
    "VideoLlama3": [{"size": PIXELS, "merge_size": 2}],
    "VideoMAE": [CROP],
    "Vilt": [{"size": SHORT, "size_divisor": 16}, {"do_pad": False}],
    "Yolos": [{"size": BOTH}, {"size": SMALL, "do_pad": False}],
}
"""What is compared of each class beside its defaults."""


class Bound(NamedTuple):
    """How far from torchvision's arithmetic, in units of the normalised pixels."""

    largest: float
    mean: float


_NEAR = Bound(0.1, 0.005)

BOUNDS: dict[str, Bound] = {
    "Cohere2Vision": _NEAR,
    "DINOv3ViT": Bound(0.02, 0.006),
    "MiniMaxM3VL": Bound(0.3, 0.005),
    "PI0": _NEAR,
    "Sam2": _NEAR,
    "Sam3": _NEAR,
    "Sapiens2": _NEAR,
    "Tipsv2": _NEAR,
    "Tipsv2Dpt": _NEAR,
}
"""Of the classes that have no PIL backend."""
