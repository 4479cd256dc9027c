"""vLLM's own processors of Qwen2-VL and LLaVA, with the plug-in and without. Needs vLLM's package, see requirements-serving.txt."""

from __future__ import annotations

import base64
import io
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import millrace
import numpy as np
import pytest
from millrace.serving import takeover
from millrace.serving.upload import Upload
from PIL import Image
from transformers import AutoImageProcessor

import served
from peers import difference

pytest.importorskip("vllm", reason="vLLM is not installed; see tests/hf/serving/requirements-serving.txt", exc_type=ImportError)
from vllm.config import ModelConfig
from vllm.multimodal import MULTIMODAL_REGISTRY
from vllm.multimodal.media import image as media
from vllm.tokenizers import cached_tokenizer_from_config
from vllm.transformers_utils import processor as hub

PROMPTS = {
    served.qwen2_vl: "user <|vision_start|> <|image_pad|> <|vision_end|> what is <|vision_start|> <|image_pad|> <|vision_end|>",
    served.llava: "user <image> what is <image>",
}
LOADS = ("get_processor", "cached_get_processor", "get_image_processor", "cached_get_image_processor")


Plug = Callable[..., None]


@pytest.fixture
def plugged(client: millrace.Client, monkeypatch: pytest.MonkeyPatch) -> Iterator[Plug]:
    """Loads the plug-in as vLLM does when it starts, with MILLRACE_SERVING and MILLRACE_SOCKET as given."""

    def plug(mode: str, address: str = "") -> None:
        monkeypatch.setenv("MILLRACE_SERVING", mode)
        monkeypatch.setenv("MILLRACE_SOCKET", address or client.path)
        found = [point for point in entry_points(group="vllm.general_plugins") if point.value.startswith("millrace.")]
        for point in found or pytest.fail("the package is not installed with its entry points: pip install ./client/python"):
            point.load()()

    own = {name: getattr(hub, name) for name in LOADS}
    load_bytes = media.ImageMediaIO.load_bytes
    monkeypatch.setattr(takeover, "taken", 0)
    yield plug
    for name, function in own.items():
        setattr(hub, name, function)
    media.ImageMediaIO.load_bytes = load_bytes


@pytest.fixture
def photograph() -> bytes:
    """A JPEG file that a camera held upright has made."""
    across, down = np.meshgrid(np.arange(640), np.arange(426))
    waves = np.stack([np.sin(across / 19), np.cos(down / 23), np.sin((across + down) / 31)], axis=-1)
    file, exif = io.BytesIO(), Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(np.uint8(127.5 + 127 * waves)).save(file, "JPEG", quality=92, exif=exif)
    return file.getvalue()


def processor_of(folder: Path) -> Any:
    hub.cached_get_processor.cache_clear()
    config = ModelConfig(model=str(folder), tokenizer=str(folder), dtype="float32")
    return MULTIMODAL_REGISTRY.create_processor(config, tokenizer=cached_tokenizer_from_config(config))


def inputs_of(processor: Any, prompt: str, images: list[Any]) -> Any:
    return processor(prompt, processor.info.parse_mm_data({"image": images}))


def values_of(inputs: Any) -> list[dict[str, Any]]:
    return [{key: element.data.float().numpy() for key, element in item.items()} for item in inputs["mm_kwargs"]["image"]]


@pytest.mark.parametrize("model", PROMPTS, ids=lambda model: model.__name__)
def test_the_inputs_are_those_of_the_models_own(plugged: Plug, photograph: bytes, tmp_path: Path, model: Callable[[Path], Path]) -> None:
    folder, prompt = model(tmp_path), PROMPTS[model]
    own = processor_of(folder)
    drawn = Image.new("RGB", (200, 150), (200, 30, 60))
    decoded = media.ImageMediaIO().load_bytes(photograph)
    usual = inputs_of(own, prompt, [decoded, drawn])
    own.info.get_hf_processor().image_processor = AutoImageProcessor.from_pretrained(folder, backend="pil")
    wanted = inputs_of(own, prompt, [decoded, drawn])
    plugged("required")
    ours = processor_of(folder)
    processor = ours.info.get_hf_processor()  # a server has it loaded before the first request
    encoded = media.ImageMediaIO().load_base64("image/jpeg", base64.b64encode(photograph).decode())
    got = inputs_of(ours, prompt, [encoded, drawn])

    assert isinstance(processor.image_processor, takeover.TakenOver)
    assert isinstance(encoded.media, Upload)
    assert encoded.media._im is None, "it was decoded in this process"
    for key in ("prompt_token_ids", "mm_hashes", "mm_placeholders"):
        assert got[key] == wanted[key] == usual[key]
    for mine, by_pil, by_torchvision in zip(values_of(got), values_of(wanted), values_of(usual), strict=True):
        assert mine.keys() == by_pil.keys() == by_torchvision.keys()
        for key, values in mine.items():
            np.testing.assert_array_equal(values, by_pil[key], err_msg=key)
            assert difference(values, by_torchvision[key]).mean < 0.01 * max(1, np.ptp(values)), key


def test_without_a_daemon_the_server_goes_on(plugged: Plug, photograph: bytes, tmp_path: Path) -> None:
    folder = served.llava(tmp_path)
    wanted = inputs_of(processor_of(folder), "<image>", [media.ImageMediaIO().load_bytes(photograph)])
    plugged("fallback", str(tmp_path / "nobody.sock"))
    ours = processor_of(folder)
    processor = ours.info.get_hf_processor()
    encoded = media.ImageMediaIO().load_bytes(photograph)
    got = inputs_of(ours, "<image>", [encoded])

    assert isinstance(encoded.media, Upload)
    assert processor.image_processor._beside.not_before
    assert got["prompt_token_ids"] == wanted["prompt_token_ids"]
    for mine, theirs in zip(values_of(got), values_of(wanted), strict=True):
        np.testing.assert_array_equal(mine["pixel_values"], theirs["pixel_values"])


def test_a_server_that_requires_the_daemon_does_not_begin_without_it(plugged: Plug, tmp_path: Path) -> None:
    plugged("required", str(tmp_path / "nobody.sock"))

    with pytest.raises(millrace.DaemonUnavailable, match=r"nobody\.sock"):
        processor_of(served.llava(tmp_path)).info.get_hf_processor()


def test_a_bad_upload_is_refused_as_vllm_refuses_one(plugged: Plug, photograph: bytes, tmp_path: Path) -> None:
    plugged("required")
    ours = processor_of(served.llava(tmp_path))
    ours.info.get_hf_processor()
    with pytest.raises(ValueError, match="Failed to load image"):
        media.ImageMediaIO().load_bytes(b"no image")

    broken = media.ImageMediaIO().load_bytes(photograph[:700])

    with pytest.raises(ValueError, match="Failed to apply"):
        inputs_of(ours, "<image>", [broken])


def test_an_upload_over_the_servers_limit_is_refused_in_its_words(
    plugged: Plug, photograph: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugged("required")
    processor_of(served.llava(tmp_path)).info.get_hf_processor()
    monkeypatch.setenv("VLLM_MAX_IMAGE_PIXELS", "1000")
    with pytest.raises(ValueError, match="exceed the maximum of 1000 pixels"):
        media.ImageMediaIO().load_bytes(photograph)


def test_millrace_does_not_import_vllm() -> None:
    code = "import sys, millrace, millrace.hf, millrace.serving; print('vllm' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "False"
