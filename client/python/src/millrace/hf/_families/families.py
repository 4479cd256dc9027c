"""From a processor's configuration to a plan: which class reads it how.

Names, keys and defaults are those of the classes of ``transformers`` 5.23; values of its own are asked for by configurations that leave
keys out. The table for people is client/python/doc/processors.md.
"""

from __future__ import annotations

import re
from typing import Any

from millrace.errors import Unsupported
from millrace.hf._families.config import Beside, Keys
from millrace.hf._families.many_sizes import MANY_SIZES
from millrace.hf._families.one_size import ONE_SIZE, Row
from millrace.hf._families.patch_rows import PATCH_ROWS
from millrace.hf._families.refusals import REFUSED
from millrace.hf._families.tile_families import TILES
from millrace.hf._plans.plans import Plan
from millrace.recipe import DType

FAMILIES: dict[str, Row] = {**ONE_SIZE, **TILES, **PATCH_ROWS, **MANY_SIZES}
"""By the name of the class without ``ImageProcessor``."""


# fmt: off
_CONVERT = frozenset(
    {
        "Aria", "Bit", "Blip", "CLIP", "Chameleon", "ChineseCLIP", "Cohere2Vision", "CohereCompass", "Cosmos3Edge",
        "Ernie4_5_VLMoe", "Ernie4_5_VL_Moe", "Gemma3", "Gemma4", "Glm46V", "Glm4v", "Glmga", "GotOcr2", "HunYuanVL", "Idefics",
        "Idefics2", "Llava", "LlavaNext", "LlavaOnevision", "MiniMaxM3VL", "Mllama", "OneFormer", "Ovis2", "OwlViT", "PI0",
        "PaddleOCRVL", "Pixtral", "Qwen2VL", "Qwen2_5_VL", "Sam", "Sam2", "Sam3", "Siglip", "TextNet", "Tipsv2", "Tipsv2Dpt",
        "VideoLlama3",
    }
)
# fmt: on
_AS_THEY_ARE = frozenset({"PromptDepthAnything", "SegGpt"})


def converts(kind: str) -> bool:
    """Whether the class turns images into RGB, and lays transparent colours on white, where nobody says whether."""
    return _family(kind) in _CONVERT


def is_taken_as_it_is(kind: str) -> bool:
    """Whether the class does not look at ``do_convert_rgb``, and turns no image into RGB."""
    return _family(kind) in _AS_THEY_ARE


def _family(kind: str) -> str:
    return re.sub("(ImageProcessor|FeatureExtractor)(Fast|Pil)?$", "", kind)


def plan_of(name: str, config: dict[str, Any], dtype: DType | None, beside: Beside | None = None) -> Plan:
    """The plan for a configuration.

    Args:
        name: of the configuration, for messages.
        config: what preprocessor_config.json holds.
        dtype: of ``pixel_values``; None: float32, or uint8 if the configuration neither rescales nor normalises.
        beside: what a call knows beside that; None: this is no call.

    Raises:
        Unsupported: a processor, key or value that is not supported; names it.
        InvalidRequest: a value that makes no sense; names its key.
    """
    keys = Keys(name, config, beside or Beside(config))
    kind = keys.take("image_processor_type") or keys.take("feature_extractor_type")
    if not isinstance(kind, str):
        raise keys.wrong("image_processor_type", "is missing; it says which processor this is, such as CLIPImageProcessor")
    processor = _family(kind)
    if processor in REFUSED:
        raise Unsupported(f"{name}: {kind} is not supported: {REFUSED[processor]}")
    if processor not in FAMILIES:
        raise Unsupported(f"{name}: {kind} is not supported; supported are {', '.join(f'{known}ImageProcessor' for known in FAMILIES)}")
    read, own = FAMILIES[processor]
    plan = read(own, keys, dtype)
    keys.finish(kind)
    return plan
