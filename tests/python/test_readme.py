"""The README's examples, executed as they stand, but for the paths."""

from __future__ import annotations

import asyncio
import re
import textwrap
from pathlib import Path
from typing import Any

import millrace
import millrace.aio
import pytest

from pictures import COUNT, png

pytest.importorskip("torch", reason="PyTorch is not installed: the README's examples are not executed")
pytestmark = pytest.mark.torch
README = Path(__file__).parents[2] / "client" / "python" / "README.md"


def examples() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", README.read_text(), re.M | re.S)


def test_training_in_three_lines(daemon: millrace.PrivateDaemon, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILLRACE_SOCKET", daemon.address)
    seen = []

    def train(images: Any, labels: Any) -> None:
        assert images.shape[1:] == (3, 224, 224)
        seen.append(len(labels))

    code = examples()[0]
    assert '"/data/train"' in code
    names: dict[str, Any] = {"train": train}
    exec(code.replace("/data/train", str(folder)), names)
    names["loader"].close()
    assert sum(seen) == COUNT


def test_serving_in_three_lines(daemon: millrace.PrivateDaemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILLRACE_SOCKET", daemon.address)
    names: dict[str, Any] = {"jpeg": png(0), "png": png(1), "model": lambda images: images.mean(dim=(1, 2, 3))}

    exec(examples()[1], names)

    assert names["logits"].shape == (2,)
    exec(examples()[2], names)  # through a ring
    assert len(names["batch"]) == 2
    names["session"].close()


def test_asyncio(daemon: millrace.PrivateDaemon, own_size: millrace.Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILLRACE_SOCKET", daemon.address)
    names: dict[str, Any] = {"millrace": millrace, "recipe": own_size, "jpeg": png(0)}

    exec(f"async def example():\n{textwrap.indent(examples()[3], '    ')}    return len(batch)", names)

    assert asyncio.run(names["example"]()) == 1
