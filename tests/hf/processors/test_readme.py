"""The examples of millrace.hf in the package's pages, executed as they stand, but for the paths."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import millrace
import pytest
import transformers
from transformers.image_utils import load_image

from folders import folder_of, own
from peers import EXAMPLES
from vocabulary import tokenizer

PAGES = sorted((EXAMPLES.parents[1] / "doc").glob("*.md"))


def example_with(word: str) -> str:
    (code,) = [
        code
        for page in PAGES
        for code in re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.M | re.S)
        if "millrace.hf" in code and word in code
    ]
    return code


def executed(code: str, changes: dict[str, str], names: dict[str, Any]) -> dict[str, Any]:
    for old, new in changes.items():
        assert old in code
        code = code.replace(old, new)
    exec(code, names)
    return names


def test_a_processor_in_three_lines(client: millrace.Client, made: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILLRACE_SOCKET", client.path)
    changes = {"Qwen2-VL-7B-Instruct": str(EXAMPLES / "qwen2_vl_7b.json"), "/data/cat.jpg": str(made[-2])}

    names = executed(example_with("from_config"), changes, {"jpeg_bytes": made[-1].read_bytes()})

    assert names["inputs"]["image_grid_thw"].shape == (2, 3)
    names["processor"].close()


def test_an_image_processor_in_the_place_of_another(
    client: millrace.Client, made: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MILLRACE_SOCKET", client.path)
    whole = transformers.LlavaProcessor(
        image_processor=own(folder_of("llava_1_5_7b", tmp_path)),
        tokenizer=tokenizer(image_token="<image>"),
        patch_size=14,
        vision_feature_select_strategy="default",
    )
    whole.save_pretrained(tmp_path / "whole")
    changes = {"llava-1.5-7b-hf": str(tmp_path / "whole")}
    if importlib.util.find_spec("torch") is None:
        changes['return_tensors="pt"'] = 'return_tensors="np"'

    names = executed(example_with("AutoProcessor"), changes, {"jpeg_bytes": made[-1].read_bytes(), "pil_image": load_image(str(made[-2]))})

    assert names["inputs"]["pixel_values"].shape == (2, 3, 336, 336)
    assert (names["inputs"]["input_ids"] == names["processor"].image_token_id).sum() == 2 * 575
    names["processor"].image_processor.close()
