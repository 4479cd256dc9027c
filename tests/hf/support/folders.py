"""A model's folder, and both processors of it: ours in the place of transformers', and transformers' own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import millrace
import numpy as np
from millrace.hf import from_pretrained
from transformers import AutoImageProcessor

from peers import example


def folder_of(name: str, place: Path, **changes: Any) -> Path:
    """A folder with the example's configuration; ``aspect_ratio_setting`` is nothing that transformers' own class takes."""
    folder = place / name
    folder.mkdir(exist_ok=True)
    config = {key: value for key, value in {**example(name), **changes}.items() if key != "aspect_ratio_setting"}
    (folder / "preprocessor_config.json").write_text(json.dumps(config))
    return folder


def own(folder: Path) -> Any:
    """Transformers' own, with PIL."""
    return AutoImageProcessor.from_pretrained(folder, backend="pil")


@contextmanager
def both(client: millrace.Client, name: str, place: Path, /, **options: Any) -> Iterator[tuple[Any, Any]]:
    """Ours and theirs."""
    folder = folder_of(name, place)
    with from_pretrained(folder, client=client, **options) as ours:
        yield ours, own(folder)


def assert_same(got: Any, wanted: Any) -> None:
    """The same keys in the same order, the same kinds of values, and the same numbers."""
    if not hasattr(wanted, "keys"):  # Idefics gives the pixels alone
        got, wanted = {"pixel_values": got}, {"pixel_values": wanted}
    assert list(got.keys()) == list(wanted.keys())
    for key in wanted.keys():  # noqa: SIM118 (a BatchFeature)
        assert type(got[key]) is type(wanted[key]), key
        np.testing.assert_array_equal(np.asarray(got[key]), np.asarray(wanted[key]), err_msg=key)
