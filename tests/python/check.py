#!/usr/bin/env python3
"""mypy --strict over the Python packages, ruff over them, their tests and benchmarks; mypy over what the peers' bench does by itself.

Exits 77 where they are not installed.
"""

import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from skips import skip_all

TOP = Path(__file__).resolve().parents[2]
PACKAGE = TOP / "client" / "python"
WHEEL = TOP / "config" / "packages" / "wheel"
PEERS = TOP / "tests" / "bench" / "peers"
SKIPS = TOP / "tests" / "support" / "skips.py"
FOLDERS = [
    str(PACKAGE),
    str(WHEEL),
    str(TOP / "config" / "docs"),
    str(TOP / "tests" / "system" / "packages" / "wheels_test.py"),
    *(str(TOP / folder) for folder in ("tests/python", "tests/hf", "tests/gpu", "tests/bench/python", "tests/bench/cuda")),
    str(PEERS),
    str(SKIPS),
]
PEERS_LOGIC = ("drive", "figures", "plot", "processes", "report", "roster", "work")  # what needs no package
LOGIC = [*(str(PEERS / f"{name}.py") for name in PEERS_LOGIC), str(SKIPS)]


def main() -> int:
    missing = [name for name in ("mypy", "ruff", "numpy") if importlib.util.find_spec(name) is None]
    if missing:
        skip_all(f"mypy and ruff: {sys.executable} has no {', '.join(missing)}; `config/setup.sh test` makes an interpreter that has")
    settings = PACKAGE / "pyproject.toml"
    with tempfile.TemporaryDirectory() as cache:
        commands = [
            ["mypy", "--cache-dir", cache, "--config-file", str(settings), str(PACKAGE / "src")],
            ["mypy", "--cache-dir", cache, "--config-file", str(settings), str(WHEEL / "src"), str(WHEEL / "collect.py")],
            ["mypy", "--cache-dir", cache, "--config-file", str(settings), *LOGIC],
            ["ruff", "check", "--no-cache", *FOLDERS],
            ["ruff", "format", "--no-cache", "--check", "--config", str(settings), *FOLDERS],
        ]
        return max(subprocess.run([sys.executable, "-m", *command], check=False, cwd=TOP).returncode for command in commands)


if __name__ == "__main__":
    sys.exit(main())
