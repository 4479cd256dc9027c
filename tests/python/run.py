#!/usr/bin/env python3
"""Runs the Python package's tests against a daemon: `run.py DAEMON [--need=MODULE]... [PYTEST ARGUMENTS]`.

It runs all tests where the arguments name no file, folder or test. It exits with 77, which ctest counts as skipped, where the interpreter
lacks the package, pytest or a module that is needed. config/setup.sh makes environments that have them.
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from skips import skip_all

HERE = Path(__file__).resolve().parent


def main() -> int:
    daemon, *arguments = sys.argv[1:]
    needed = ["millrace", "pytest"]
    while arguments and arguments[0].startswith("--need="):
        needed.append(arguments.pop(0).removeprefix("--need="))
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        skip_all(f"the package's tests: {sys.executable} has no {', '.join(missing)}; `config/setup.sh test` makes an interpreter that has")
    environment = {**os.environ, "MILLRACE_DAEMON": os.path.abspath(daemon), "XDG_STATE_HOME": os.devnull}
    if "PYTHONPYCACHEPREFIX" not in environment:  # what is compiled would lie in the checkout
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
    environment["PYTHONFAULTHANDLER"] = "1"  # a process that dies says where its threads were
    pytest = [sys.executable, "-m", "pytest", "-c", str(HERE / "pytest.ini"), "-p", "no:cacheprovider"]
    everything = [] if any(os.path.exists(argument.partition("::")[0]) for argument in arguments) else [str(HERE)]
    return subprocess.run([*pytest, *everything, *arguments], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
