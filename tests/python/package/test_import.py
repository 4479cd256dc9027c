"""What `import millrace` brings along: nothing that takes long and that not everybody needs."""

from __future__ import annotations

import millrace
import pytest

from processes import python

HEAVY = ("PIL", "asyncio", "flax", "grpc", "importlib.metadata", "jax", "keras", "matplotlib", "pandas", "ray", "tensorflow", "torch")
HEAVY += ("torchvision", "tqdm", "transformers", "IPython")


def test_importing_loads_no_framework_and_nothing_heavy() -> None:
    code = f"import sys; import millrace; print(*sorted(set({HEAVY!r}) & set(sys.modules)))"

    with python(code) as process:
        loaded, errors = process.communicate()

    assert (process.returncode, loaded.split(), errors) == (0, [], "")


def test_what_is_imported_later_is_there_all_the_same() -> None:
    code = "import millrace; assert set(millrace.__all__) <= set(dir(millrace)); print(millrace.__version__, millrace.serve.__name__)"

    with python(code) as process:
        printed, errors = process.communicate()

    assert (process.returncode, printed.split(), errors) == (0, [millrace.__version__, "serve"], "")
    with pytest.raises(AttributeError, match="no attribute 'server'"):
        millrace.server  # noqa: B018
    for name in millrace.__all__:
        assert getattr(millrace, name) is not None
