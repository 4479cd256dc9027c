"""What transformers' classes give where nobody asks for tensors: lists of what they would stack, and arrays of what they have stacked."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from millrace.hf._plans.any_resolution import AnyResolution
from millrace.hf._plans.arrange import Padding, PatchList
from millrace.hf._plans.features import Features
from millrace.hf._plans.plans import Frames, OneSize, Plan, Tiles
from millrace.hf._plans.sized import MiddleFirst, Sized, WithSources
from millrace.hf._plans.tiling import ChosenTiles

_LISTS = (OneSize, Tiles, AnyResolution, MiddleFirst, WithSources, Sized, ChosenTiles)


def unstacked(plan: Plan, features: Features) -> dict[str, Any]:
    """The features of ``plan`` as its class leaves them; views of the same memory."""
    if isinstance(plan, Frames):
        return {key: [list(row) for row in array] for key, array in features.items()}
    if not isinstance(plan, _LISTS):
        return dict(features)
    stacked = _stacked(plan)
    return {key: array if key in stacked else _list_of(key, array) for key, array in features.items()}


def _stacked(plan: Plan) -> tuple[str, ...]:
    arrange = plan.arrange if isinstance(plan, Sized) else None
    if isinstance(arrange, Padding) and arrange.counts_crops:
        return "pixel_values", "pixel_mask"
    if isinstance(arrange, Padding) and arrange.resized == "image_sizes":
        return ("pixel_values",)
    if isinstance(arrange, PatchList) and arrange.kind == "gemma4":
        return "pixel_values", "image_position_ids"
    return ()


def _list_of(key: str, value: NDArray[Any] | list[Any]) -> Any:
    """Arrays of pixels and masks, numbers, tuples of numbers, lists of them for grids, a number."""
    if isinstance(value, list):
        return value
    if value.ndim > 2 or key == "pixel_attention_mask":
        return list(value)
    plain = value.tolist()
    if not isinstance(plain, list) or key == "grids":
        return plain
    return [tuple(row) if isinstance(row, list) else row for row in plain]
