"""Runs the tests of this folder, or says what is missing and exits with 77, which counts as skipped."""

import importlib.util
import sys
from pathlib import Path

NEEDED = ("millrace", "transformers", "PIL", "pytest")

if __name__ == "__main__":
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        print(f"SKIPPED: {sys.executable} lacks {', '.join(missing)}; see tests/hf/CMakeLists.txt")
        sys.exit(77)
    import pytest

    here = Path(__file__).resolve().parent
    sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "--rootdir", str(here), str(here), *sys.argv[1:]]))
