"""What mypy sees of the loaders: misspelled and mistyped arguments are errors, and what a loop gets has a type."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import millrace
import pytest

pytest.importorskip("mypy", reason="mypy is not installed: the package's types are not tried as a user's program")

USER = """
import millrace, millrace.jax, millrace.numpy, millrace.torch
import numpy as np

loader = millrace.torch.Loader("/data", millrace.Recipe.train(224), batch_size=8, shuffle=True, dtype=np.float32, num_workers=2)
for images, labels in loader:
    reveal_type(images)
    reveal_type(labels)
    reveal_type(loader.classes)
    len(loader.dataset)
millrace.torch.Loader([("/data/a.jpg", 1)])
millrace.numpy.Loader(samples={"path": ["/data/a.jpg"], "label": np.zeros((1, 3))}, sampler=[0, 0], batch_sampler=[[0], [0]])
millrace.jax.Loader(millrace.Samples(["/data/a.jpg"], ["cat"], classes="sorted"))
millrace.torch.Loader(millrace.Encoded([{"jpg": b""}], image="jpg", label=""))
with millrace.jax.Loader("/data", device=None) as jax_loader:
    reveal_type(jax_loader)
    for pair in jax_loader:
        reveal_type(pair)
for arrays in millrace.numpy.Loader(b"/data", seed=3):
    reveal_type(arrays)
millrace.torch.Loader("/data", shufle=True)
millrace.jax.Loader("/data", batch_size="8")
millrace.numpy.Loader("/data", 64)
millrace.numpy.Loader("/data", dtype="int8")
millrace.torch.Loader("/data", collate_fn=list)
millrace.torch.Loader(3)
millrace.numpy.Loader("/data", sampler=3)
millrace.read_manifest("/data/a.csv", label_kind="number")
"""

# As much of the frameworks as the loaders' types name; the real ones take mypy minutes, and are not needed for what is tried here.
FRAMEWORKS = {
    "torch": "class Tensor: ...\nclass dtype: ...\nclass device: ...\nclass memory_format: ...\ncontiguous_format: memory_format\n",
    "torch/utils": "",
    "torch/utils/data": "class SequentialSampler: ...\n",
    "jax": "class Array: ...\nclass Device: ...\nfrom jax import sharding as sharding\n",
    "jax/sharding": "class Sharding: ...\n",
}


def test_mypy_sees_arguments_and_images(tmp_path: Path) -> None:
    for name, text in FRAMEWORKS.items():
        (tmp_path / "stubs" / name).mkdir(parents=True, exist_ok=True)
        (tmp_path / "stubs" / name / "__init__.pyi").write_text(text)
    (tmp_path / "user.py").write_text(USER)
    (tmp_path / "mypy.ini").write_text(
        "[mypy]\nstrict = true\n[mypy-millrace.*]\nignore_errors = true\n[mypy-grpc.*,google.*]\nignore_missing_imports = true\n"
    )
    places = [str(tmp_path / "stubs"), *(str(place) for place in Path(millrace.__file__).parents[1:2] if place.name != "site-packages")]
    command = [sys.executable, "-m", "mypy", "--config-file", str(tmp_path / "mypy.ini"), "--cache-dir", str(tmp_path / "cache")]

    told = subprocess.run(
        [*command, str(tmp_path / "user.py")], env={**os.environ, "MYPYPATH": ":".join(places)}, capture_output=True, text=True, check=False
    )

    said: dict[int, str] = {}
    for line, text in re.findall(r"user\.py:(\d+): (.*)", told.stdout):
        said[int(line)] = said.get(int(line), "") + text
    lines = {line: number for number, line in enumerate(USER.splitlines(), 1)}
    assert said.keys() == {
        number for line, number in lines.items() if "reveal_type" in line or number > lines["    reveal_type(arrays)"]
    }, told
    for shown, text in {
        "    reveal_type(images)": '"torch.Tensor"',
        "    reveal_type(labels)": '"Any"',
        "    reveal_type(jax_loader)": '"millrace.jax.Loader"',
        "        reveal_type(pair)": '"tuple[jax.Array, Any]"',
        'millrace.torch.Loader("/data", shufle=True)': 'Unexpected keyword argument "shufle"',
        'millrace.jax.Loader("/data", batch_size="8")': 'expected "int"',
        'millrace.numpy.Loader("/data", 64)': 'Argument 2 to "Loader" has incompatible type "int"',
        'millrace.numpy.Loader("/data", dtype="int8")': "incompatible type",
        'millrace.torch.Loader("/data", collate_fn=list)': 'expected "None"',
        "millrace.torch.Loader(3)": 'Argument 1 to "Loader" has incompatible type "int"',
        'millrace.numpy.Loader("/data", sampler=3)': 'Argument "sampler" to "Loader" has incompatible type "int"',
        'millrace.read_manifest("/data/a.csv", label_kind="number")': "incompatible type",
    }.items():
        assert text in said[lines[shown]], told.stdout
    assert "ndarray" in said[lines["    reveal_type(arrays)"]]
    assert "str" in said[lines["    reveal_type(loader.classes)"]]
