"""The examples of Ray Data and Ray Train, run as a user runs them, on a cluster of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from pictures import COUNT, EACH

pytest.importorskip("ray.data", reason="Ray Data is not installed: nothing of millrace.ray is tested")
pytest.importorskip("ray.train.torch", reason="Ray Train or PyTorch is not installed: its example is not run")

from ray_cluster import processes_with, until

pytestmark = [pytest.mark.ray, pytest.mark.long, pytest.mark.filterwarnings("default")]
EXAMPLES = Path(__file__).parents[3] / "client" / "python" / "examples"


def run(name: str, folder: Path, *arguments: str) -> str:
    """What it printed; asserts that nothing of it lives on."""
    with tempfile.TemporaryDirectory(prefix="mr-", dir="/tmp", ignore_cleanup_errors=True) as place:
        environment = {name: value for name, value in os.environ.items() if name not in ("MILLRACE_SOCKET", "XDG_RUNTIME_DIR")}
        environment |= {"TMPDIR": place, "RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS": "0", "OMP_NUM_THREADS": "1"}
        command = [sys.executable, str(EXAMPLES / name), str(folder), *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False, cwd=place)
        assert done.returncode == 0, done.stderr
        assert until(lambda: not processes_with(place))
    return done.stdout + done.stderr


def test_the_example_of_ray_data(folder: Path) -> None:
    printed = run("ray_data.py", folder, "--size", "32", "--lanes", "1")
    each = dict.fromkeys(("ant", "bee", "cat"), EACH)

    for epoch in range(2):
        assert f"epoch {epoch}: {COUNT} images, " in printed
    assert printed.count(str(each)) == 2


@pytest.mark.parametrize("source", ["dataset", "loader"])
def test_the_example_of_ray_train(folder: Path, source: str, tmp_path: Path) -> None:
    printed = run("ray_train.py", folder, "--input", source, "--size", "32", "--storage", str(tmp_path))
    assert f"epoch 1: {COUNT} images, loss " in printed
