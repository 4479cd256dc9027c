#!/usr/bin/env python3
"""mypy --strict over the Python package, ruff over it and its tests. Exits 77 where they are not installed."""

import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
PACKAGE, TESTS, HF = TOP / "client" / "python", TOP / "tests" / "python", TOP / "tests" / "hf"


def main() -> int:
    missing = [name for name in ("mypy", "ruff", "numpy") if importlib.util.find_spec(name) is None]
    if missing:
        print(f"SKIPPED: {sys.executable} has no {', '.join(missing)}; `config/setup.sh test` makes an interpreter that has")
        return 77
    settings = PACKAGE / "pyproject.toml"
    with tempfile.TemporaryDirectory() as cache:
        commands = [
            ["mypy", "--cache-dir", cache, "--config-file", str(settings), str(PACKAGE / "src")],
            ["ruff", "check", "--no-cache", str(PACKAGE), str(TESTS), str(HF)],
            ["ruff", "format", "--no-cache", "--check", "--config", str(settings), str(PACKAGE), str(TESTS), str(HF)],
        ]
        return max(subprocess.run([sys.executable, "-m", *command], check=False, cwd=TOP).returncode for command in commands)


if __name__ == "__main__":
    sys.exit(main())
