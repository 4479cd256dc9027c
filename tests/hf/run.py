"""Runs the tests of this folder, or of the files that are named, or says what is missing and exits with 77, which counts as skipped."""

import importlib.util
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from skips import skip_all

NEEDED = ("millrace", "transformers", "PIL", "pytest")

if __name__ == "__main__":
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        skip_all(f"millrace.hf: {sys.executable} has no {', '.join(missing)}; `config/setup.sh test` makes an interpreter that has")
    import pytest

    here = Path(__file__).resolve().parent
    everything = [] if any(argument.endswith(".py") and not argument.startswith("-") for argument in sys.argv[1:]) else [str(here)]
    sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "--rootdir", str(here), *everything, *sys.argv[1:]]))
