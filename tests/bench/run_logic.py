#!/usr/bin/env python3
"""Runs the tests of what the benches in Python compute by themselves, in fpga/, peers/ and python/."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SUPPORT = HERE.parent / "support"
sys.path.insert(0, str(SUPPORT))
from skips import skip_all

if __name__ == "__main__":
    if importlib.util.find_spec("pytest") is None:
        skip_all(f"what the benches compute: {sys.executable} has no pytest; `config/setup.sh test` makes an interpreter that has")
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "skips", "--rootdir", str(HERE)]
    environment = {**os.environ, "PYTHONPATH": str(SUPPORT)}
    sys.exit(subprocess.run([*pytest, str(HERE / "fpga"), str(HERE / "peers"), str(HERE / "python")], env=environment, check=False).returncode)
