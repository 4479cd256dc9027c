"""transformers' processors of whole models, with our image processor in the place of theirs: the very inputs, text included."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import millrace
import pytest
import transformers
from transformers.image_utils import load_image

from folders import assert_same, both
from vocabulary import tokenizer

LLAVA = {"patch_size": 14, "vision_feature_select_strategy": "default", "num_additional_image_tokens": 1}

# The processor, its image processor's configuration, the tokens and arguments it needs, and texts for three images.
MODELS: dict[str, tuple[str, dict[str, str], dict[str, Any], list[str]]] = {
    "CLIPProcessor": ("clip_vit_base_patch32", {}, {}, ["a photograph of cat", "dog"]),
    "SiglipProcessor": ("siglip_so400m_patch14_384", {}, {}, ["a photograph of cat", "dog"]),
    "LlavaProcessor": (
        "llava_1_5_7b",
        {"image_token": "<image>"},
        LLAVA,
        ["user <image> what is <image> in it", "describe <image> dog"],
    ),
    "LlavaNextProcessor": (
        "llava_v1_6_mistral_7b",
        {"image_token": "<image>"},
        LLAVA,
        ["user <image> what is <image> in it", "describe <image> dog"],
    ),
    **{
        name: (
            config,
            {"image_token": "<|image_pad|>", "video_token": "<|video_pad|>"},
            {},
            ["user <|image_pad|> what is <|image_pad|> in it", "describe <|image_pad|> dog"],
        )
        for name, config in (("Qwen2VLProcessor", "qwen2_vl_7b"), ("Qwen2_5_VLProcessor", "qwen2_5_vl_7b"))
    },
}


def pair(ours: Any, own: Any, name: str) -> tuple[Any, Any]:
    """The model's processor with either image processor."""
    _, tokens, arguments, _ = MODELS[name]
    arguments = dict(arguments)
    if name.startswith("Qwen"):
        pytest.importorskip("torchvision", reason=f"{name}: its video processor needs PyTorch; see tests/requirements-frameworks.txt")
        arguments["video_processor"] = transformers.Qwen2VLVideoProcessor()
    made = [getattr(transformers, name)(image_processor=one, tokenizer=tokenizer(**tokens), **arguments) for one in (ours, own)]
    return made[0], made[1]


@contextmanager
def processors(client: millrace.Client, name: str, place: Path) -> Iterator[tuple[Any, Any]]:
    with both(client, MODELS[name][0], place) as (ours, own):
        yield pair(ours, own, name)


@pytest.mark.parametrize("return_tensors", [None, "np", "pt"])
@pytest.mark.parametrize("name", sorted(MODELS))
def test_a_models_processor_gives_the_very_inputs(
    client: millrace.Client, made: list[Path], tmp_path: Path, name: str, return_tensors: str | None
) -> None:
    if return_tensors == "pt":
        pytest.importorskip("torch", reason="inputs as PyTorch's tensors: tests/requirements-frameworks.txt is not installed")
    paths = [made[6], made[-1], made[-4]]
    images = [load_image(str(path)) for path in paths]
    encoded = [path.read_bytes() for path in paths]
    text = MODELS[name][3]
    how = {"padding": True, **({} if return_tensors is None else {"return_tensors": return_tensors})}
    with processors(client, name, tmp_path) as (ours, own):
        wanted = own(images=images, text=text, **how)

        for given in (images, [str(path) for path in paths], encoded, [io.BytesIO(content) for content in encoded]):
            assert_same(ours(images=given, text=text, **how), wanted)
        assert_same(ours(text=["dog"], **how), own(text=["dog"], **how))


@pytest.mark.parametrize("name", sorted(name for name, model in MODELS.items() if model[1]))
def test_how_many_tokens_an_image_takes_can_be_asked_for(client: millrace.Client, tmp_path: Path, name: str) -> None:
    with processors(client, name, tmp_path) as (ours, own):
        sizes = [(333, 500), (900, 301), (29, 31)]
        assert ours._get_num_multimodal_tokens(image_sizes=sizes) == own._get_num_multimodal_tokens(image_sizes=sizes)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_settings_of_the_call_reach_the_image_processor(client: millrace.Client, made: list[Path], tmp_path: Path, name: str) -> None:
    images = [load_image(str(path)) for path in (made[6], made[-1], made[-4])]
    settings = {"image_mean": [0.1, 0.2, 0.3]} if not name.startswith("Qwen") else {"size": {"shortest_edge": 3136, "longest_edge": 50_000}}
    how = {"padding": True, "return_tensors": "np", "images_kwargs": settings}
    with processors(client, name, tmp_path) as (ours, own):
        assert_same(ours(images=images, text=MODELS[name][3], **how), own(images=images, text=MODELS[name][3], **how))


@pytest.mark.parametrize("name", sorted(MODELS))
def test_a_models_processor_is_saved_with_the_original_types(client: millrace.Client, tmp_path: Path, name: str) -> None:
    with processors(client, name, tmp_path) as (ours, own):
        ours.save_pretrained(tmp_path / "ours")
        own.save_pretrained(tmp_path / "own")

        assert ours.to_dict() == own.to_dict()
    for path in (tmp_path / "own").iterdir():
        assert (tmp_path / "ours" / path.name).read_text() == path.read_text()
    with millrace.hf.from_pretrained(tmp_path / "ours", client=client) as again:
        assert again.to_dict() == own.image_processor.to_dict()


def test_a_bad_image_is_named(client: millrace.Client, made: list[Path], tmp_path: Path) -> None:
    with processors(client, "LlavaProcessor", tmp_path) as (ours, _):
        for bad, words in ((b"not an image", "not an image"), ("http://example.org/a.jpg", "fetch it")):
            with pytest.raises(millrace.Error, match=words):
                ours(images=[made[-1].read_bytes(), bad], text="<image> <image>", return_tensors="np")
