"""Element types, by whatever name NumPy, ml_dtypes, PyTorch and JAX have for them. None of these but NumPy is imported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Union, get_args

import numpy as np

from millrace.errors import InvalidRequest

if TYPE_CHECKING:
    import torch

DType = Literal["uint8", "float16", "bfloat16", "float32"]
_NAMES: tuple[DType, ...] = get_args(DType)

AnyDType = Union["DType", "np.dtype[Any]", "type[Any]", "torch.dtype"]
"""``"float32"``, ``numpy.float32``, ``numpy.dtype("float32")``, ``torch.float32``, ``jax.numpy.float32``, ``ml_dtypes.bfloat16``."""


def dtype_name(value: AnyDType, what: str = "dtype") -> DType:
    """The name of an element type that the daemon makes.

    Args:
        value: see ``AnyDType``; in a string PyTorch's prefix (``"torch.float32"``) does not matter.
        what: the argument's name, for the message.

    Raises:
        InvalidRequest: it is none, or one that the daemon does not make.
    """
    name = _name(value)
    for known in _NAMES:
        if name == known:
            return known
    raise InvalidRequest(f"{what}: must be one of {', '.join(_NAMES)}; is {value!r}")


def _name(value: Any) -> str | None:
    if isinstance(value, str):
        return value.removeprefix("torch.")
    if type(value).__module__ == "torch":
        return str(value).removeprefix("torch.")
    if not isinstance(value, (type, np.dtype)):
        return None
    try:
        dtype = np.dtype(value)
    except (TypeError, ValueError):
        return None
    return dtype.name if dtype.isnative else None
