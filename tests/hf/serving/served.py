"""Folders of whole models as servers load them: configuration, tokenizer, image processor, no weights. Too small to be of use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import transformers

from folders import folder_of
from vocabulary import tokenizer

_TEXT = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "vocab_size": 64,
    "max_position_embeddings": 65_536,
}


def qwen2_vl(place: Path) -> Path:
    """Qwen2-VL, the real processor's configuration beside a model of one layer."""
    folder = folder_of("qwen2_vl_7b", place)
    tokens = {"image_token": "<|image_pad|>", "video_token": "<|video_pad|>"}
    tokens |= {"vision_start_token": "<|vision_start|>", "vision_end_token": "<|vision_end|>"}
    words = _tokenizer(folder, tokens)
    numbers = {
        "image_token_id": words.convert_tokens_to_ids("<|image_pad|>"),
        "video_token_id": words.convert_tokens_to_ids("<|video_pad|>"),
        "vision_start_token_id": words.convert_tokens_to_ids("<|vision_start|>"),
        "vision_end_token_id": words.convert_tokens_to_ids("<|vision_end|>"),
    }
    vision = {"depth": 1, "embed_dim": 32, "hidden_size": 32, "num_heads": 2, "mlp_ratio": 2}
    rope = {"rope_type": "default", "rope_theta": 10_000.0, "mrope_section": [2, 3, 3]}
    config = transformers.Qwen2VLConfig(text_config={**_TEXT, "rope_parameters": rope}, vision_config=vision, **numbers)
    config.architectures = ["Qwen2VLForConditionalGeneration"]
    config.save_pretrained(folder)
    _named(folder, "Qwen2VLProcessor")
    return folder


def llava(place: Path) -> Path:
    """LLaVA-1.5, likewise."""
    folder = folder_of("llava_1_5_7b", place)
    words = _tokenizer(folder, {"image_token": "<image>"})
    vision = transformers.CLIPVisionConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, image_size=336, patch_size=14
    )
    text = transformers.LlamaConfig(**_TEXT)
    config = transformers.LlavaConfig(vision_config=vision, text_config=text, image_token_index=words.convert_tokens_to_ids("<image>"))
    config.architectures = ["LlavaForConditionalGeneration"]
    config.save_pretrained(folder)
    _named(folder, "LlavaProcessor", patch_size=14, vision_feature_select_strategy="default", num_additional_image_tokens=1)
    return folder


def _tokenizer(folder: Path, tokens: dict[str, str]) -> Any:
    words = tokenizer(**tokens)
    words.chat_template = "{{ messages }}"
    words.save_pretrained(folder)
    return words


def _named(folder: Path, name: str, **more: Any) -> None:
    """Says which processor the model has."""
    (folder / "processor_config.json").write_text(json.dumps({"processor_class": name, **more}))
