"""The README's example of millrace.hf, executed as it stands, but for the paths."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import millrace
import pytest

from peers import EXAMPLES

README = EXAMPLES.parents[1] / "README.md"


def test_a_processor_in_three_lines(client: millrace.Client, made: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILLRACE_SOCKET", client.path)
    (code,) = [code for code in re.findall(r"^```python\n(.*?)^```$", README.read_text(), re.M | re.S) if "millrace.hf" in code]
    assert '"Qwen2-VL-7B-Instruct"' in code
    assert '"/data/cat.jpg"' in code
    names: dict[str, Any] = {"jpeg_bytes": made[-1].read_bytes()}

    exec(code.replace("Qwen2-VL-7B-Instruct", str(EXAMPLES / "qwen2_vl_7b.json")).replace("/data/cat.jpg", str(made[-2])), names)

    assert names["inputs"]["image_grid_thw"].shape == (2, 3)
    names["processor"].close()
