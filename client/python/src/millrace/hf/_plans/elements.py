"""Element types that NumPy has not: bfloat16 is worked with as the uint16 of its bits, and shown as what it is at the end."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from millrace._memory.tensor import VERSIONED
from millrace.errors import Unsupported
from millrace.recipe import DType, Recipe


def as_elements(values: NDArray[np.float32], dtype: DType) -> NDArray[Any]:
    """Float32 values in a tensor's element type, rounded to nearest even; of bfloat16 the bits. REQUIRES: finite."""
    if dtype != "bfloat16":
        return values.astype(dtype)
    bits = values.view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def pixel_of(recipe: Recipe, colour: tuple[int, int, int] = (0, 0, 0)) -> NDArray[Any]:
    """What a pixel of that colour becomes, [3, 1, 1], in the recipe's order of channels."""
    by = recipe.normalise
    values = np.array(colour, np.float32)
    if by is not None or recipe.range == "unit":
        values /= np.float32(255)
    if by is not None:
        values -= np.array(by.mean, np.float32)
        values /= np.array(by.std, np.float32)
    in_order = values if recipe.channels == "RGB" else values[::-1].copy()
    return as_elements(in_order, recipe.dtype).reshape(3, 1, 1)


def shown(bits: NDArray[Any], dtype: DType) -> NDArray[Any]:
    """What ``bits()`` of a tensor gave, in its own type; bfloat16 needs the package ``ml_dtypes``.

    Raises:
        Unsupported: it is not installed.
    """
    if dtype != "bfloat16":
        return bits
    try:
        from ml_dtypes import bfloat16
    except ImportError:
        raise Unsupported('NumPy has no bfloat16: install ml_dtypes, or ask for return_tensors="pt"') from None
    return bits.view(bfloat16)


def as_torch(bits: NDArray[Any] | list[Any], dtype: DType) -> Any:
    """The same as a tensor of PyTorch, without a copy unless NumPy is older than 2.1 and they are read-only.

    A list, such as Llama 3.2 Vision's ``num_tiles``, stays one.
    """
    if isinstance(bits, list):
        return bits
    import torch

    tensor = torch.from_dlpack(bits if VERSIONED or bits.flags.writeable else bits.copy())
    return tensor.view(torch.bfloat16) if dtype == "bfloat16" else tensor
