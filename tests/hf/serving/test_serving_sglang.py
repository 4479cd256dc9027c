"""SGLang's own processor of Qwen2-VL, with the plug-in and without. Needs SGLang's package, see requirements-serving.txt."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import millrace
import numpy as np
import pytest
from millrace.serving import takeover
from transformers import AutoConfig
from transformers.image_utils import load_image

import served

pytest.importorskip("sglang", reason="SGLang is not installed; see tests/hf/serving/requirements-serving.txt", exc_type=ImportError)
from sglang.srt import runtime_context
from sglang.srt.multimodal.processors.qwen_vl import QwenVLImageProcessor
from sglang.srt.plugins.hook_registry import HookRegistry
from sglang.srt.server_args import ServerArgs
from sglang.srt.utils.hf_transformers import processor as hub

PROMPT = "user <|vision_start|><|image_pad|><|vision_end|> what is <|vision_start|><|image_pad|><|vision_end|>"
Plug = Callable[..., None]


@pytest.fixture
def plugged(client: millrace.Client, monkeypatch: pytest.MonkeyPatch) -> Iterator[Plug]:
    """Loads the plug-in as SGLang does when it starts, with MILLRACE_SERVING and MILLRACE_SOCKET as given."""
    own = hub.get_processor

    def plug(mode: str, address: str = "") -> None:
        monkeypatch.setenv("MILLRACE_SERVING", mode)
        monkeypatch.setenv("MILLRACE_SOCKET", address or client.path)
        found = [point for point in entry_points(group="sglang.srt.plugins") if point.value.startswith("millrace.")]
        for point in found or pytest.fail("the package is not installed with its entry points: pip install ./client/python"):
            point.load()()
        HookRegistry.apply_hooks()

    yield plug
    HookRegistry.reset()
    hub.get_processor = own


def inputs_of(folder: Path, images: list[Any]) -> tuple[Any, Any]:
    """What SGLang's processor makes of a prompt with ``images``, and transformers' processor within it."""
    arguments = ServerArgs(model_path=str(folder), device="cpu", image_processor_backend="pil")
    runtime_context.publish(arguments, role="tokenizer")
    processor = hub.get_processor(str(folder), image_processor_backend="pil")
    multimodal = QwenVLImageProcessor(AutoConfig.from_pretrained(folder), arguments, processor, "default")
    try:
        return multimodal.process_mm_data(PROMPT, images=images), processor
    finally:
        multimodal.shutdown()


def test_the_inputs_are_those_of_the_models_own(plugged: Plug, made: list[Path], tmp_path: Path) -> None:
    folder = served.qwen2_vl(tmp_path)
    images = [load_image(str(path)) for path in (made[6], made[-1])]
    wanted, _ = inputs_of(folder, images)
    plugged("required")
    got, processor = inputs_of(folder, images)

    assert isinstance(processor.image_processor, takeover.TakenOver)
    assert list(got) == list(wanted)
    for key in wanted:
        np.testing.assert_array_equal(np.asarray(got[key]), np.asarray(wanted[key]), err_msg=key)


def test_without_a_daemon_the_server_goes_on(plugged: Plug, made: list[Path], tmp_path: Path) -> None:
    folder = served.qwen2_vl(tmp_path)
    images = [load_image(str(path)) for path in (made[6], made[-1])]
    wanted, _ = inputs_of(folder, images)
    plugged("fallback", str(tmp_path / "nobody.sock"))
    got, processor = inputs_of(folder, images)

    assert processor.image_processor._beside.not_before
    np.testing.assert_array_equal(np.asarray(got["pixel_values"]), np.asarray(wanted["pixel_values"]))
