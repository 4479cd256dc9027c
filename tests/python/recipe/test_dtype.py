"""Element types by the names of NumPy, PyTorch, JAX and ml_dtypes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import millrace
import millrace.numpy
import numpy as np
import pytest
from millrace._recipe.dtype import dtype_name
from millrace._wire import messages as _messages

NAMES = ["uint8", "float16", "bfloat16", "float32"]


@pytest.mark.parametrize("value", ["float16", "torch.float16", np.float16, np.dtype("float16"), np.dtype("<f2"), np.zeros(1, "f2").dtype])
def test_names_and_numpys_types(value: Any) -> None:
    assert dtype_name(value) == "float16"
    assert millrace.Recipe(dtype=value) == millrace.Recipe(dtype="float16")
    assert millrace.Recipe.train(24).normalised(value).dtype == "float16"


def test_values_to_normalise_by_are_refused_beside_uint8() -> None:
    by = millrace.Normalise((0.5,) * 3, (0.5,) * 3)
    assert millrace.Recipe.train(24).normalised("float32", by=by).normalise == by
    with pytest.raises(millrace.InvalidRequest, match="uint8 is not normalised; choose float32, float16 or bfloat16"):
        millrace.Recipe.train(24).normalised("uint8", by=by)


def test_a_loader_takes_numpys_types(daemon: millrace.PrivateDaemon, folder: Path) -> None:
    with millrace.numpy.Loader(folder, millrace.Recipe.train(24), dtype=np.float16, address=daemon.address) as loader:
        images, _ = next(iter(loader))

    assert images.dtype == np.float16


@pytest.mark.parametrize("value", ["int8", "", np.float64, np.dtype(">f4"), np.dtype("int64"), float, bool, object, 3, None, b"uint8"])
def test_what_the_daemon_does_not_make_is_refused(value: Any) -> None:
    with pytest.raises(millrace.InvalidRequest, match="dtype: must be one of uint8, float16, bfloat16, float32; is "):
        dtype_name(value)


@pytest.mark.torch
@pytest.mark.parametrize("name", NAMES)
def test_torchs_types(name: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: its dtypes are not tried")

    assert dtype_name(getattr(torch, name)) == name
    with pytest.raises(millrace.InvalidRequest, match=r"is torch\.int64"):
        dtype_name(torch.int64)


@pytest.mark.jax
@pytest.mark.parametrize("name", NAMES)
def test_jaxs_types(name: str) -> None:
    jax = pytest.importorskip("jax", reason="JAX is not installed: its dtypes are not tried")

    assert dtype_name(getattr(jax.numpy, name)) == name
    assert dtype_name(jax.numpy.zeros(1, name).dtype) == name
    if name == "bfloat16":
        import ml_dtypes

        assert dtype_name(ml_dtypes.bfloat16) == name


def test_a_type_of_a_newer_daemon_is_an_error_and_not_taken_for_another() -> None:
    assert [_messages.dtype_name(number) for number in (1, 2, 3, 4)] == NAMES
    for number in (0, 5):
        with pytest.raises(millrace.Unsupported, match=f"of a type \\({number}\\) that this package does not know"):
            _messages.dtype_name(number)
