"""Values that steps of augmentation are given: intervals and fill colours."""

from __future__ import annotations

from typing import Any

from millrace.errors import InvalidRequest

Interval = tuple[float, float]
Fill = tuple[int, int, int]
"""Red, green, blue, 0 to 255 each: what stands where a transform finds no pixel of the image."""
BLACK: Fill = (0, 0, 0)


def interval_of(name: str, value: Any) -> Interval:
    """A pair, or one number for both.

    Raises:
        InvalidRequest: it is neither.
    """
    try:
        low, high = value if isinstance(value, (tuple, list)) else (value, value)
        return float(low), float(high)
    except (TypeError, ValueError):
        raise InvalidRequest(f"{name}: must be a number or a pair of them, is {value!r}") from None


def fill_of(name: str, value: Any) -> Fill:
    try:
        red, green, blue = value if isinstance(value, (tuple, list)) else (value, value, value)
        levels = int(red), int(green), int(blue)
    except (TypeError, ValueError):
        raise InvalidRequest(f"{name}: must be a level from 0 to 255, or three, is {value!r}") from None
    is_whole = levels == (red, green, blue)
    if not is_whole or not all(0 <= level <= 255 for level in levels):
        raise InvalidRequest(f"{name}: must be whole levels from 0 to 255, is {value!r}")
    return levels
