"""Values that recipes' and steps' fields are given, by type: wrong ones are refused by the field's name, as one is made."""

from __future__ import annotations

from operator import index
from typing import Any

from millrace.errors import InvalidRequest

Interval = tuple[float, float]
Fill = tuple[int, int, int]
"""Red, green, blue, 0 to 255 each: what stands where a transform finds no pixel of the image."""
BLACK: Fill = (0, 0, 0)


def refused(name: str, rule: str, value: Any) -> InvalidRequest:
    """``rule``: what it must be."""
    return InvalidRequest(f"{name}: must be {rule}, is {value!r}")


def whole_of(name: str, value: Any, rule: str = "a whole number") -> int:
    """An int, of a whole number of Python's, NumPy's, ...

    Raises:
        InvalidRequest: a fraction, a text, True or False, ...
    """
    if not isinstance(value, bool):
        try:
            return index(value)
        except TypeError:
            pass
    raise refused(name, rule, value)


def number_of(name: str, value: Any, rule: str = "a number") -> float:
    """A number as it is, if it is Python's; else a float of it.

    Raises:
        InvalidRequest: it is none.
    """
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    try:
        if not isinstance(value, (bool, str, bytes)):
            return float(value)
    except (TypeError, ValueError):
        pass
    raise refused(name, rule, value)


def numbers_of(name: str, value: Any, count: int | None, rule: str) -> tuple[float, ...]:
    """A tuple of numbers, of any iterable of them.

    Args:
        name: the field.
        value: its value.
        count: how many; None: any number.
        rule: what it must be.

    Raises:
        InvalidRequest: they are none, or not so many.
    """
    try:
        found = tuple(number_of(name, each) for each in value) if not isinstance(value, (str, bytes)) else None
    except (TypeError, InvalidRequest):
        found = None
    if found is None or count not in (None, len(found)):
        raise refused(name, rule, value)
    return found


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


class Checked:
    """Of frozen data classes whose fields are checked as one is made."""

    def _be_whole(self, *fields: str) -> None:
        for field in fields:
            self._be(field, whole_of(f"{type(self).__name__}.{field}", getattr(self, field)))

    def _be_pixels(self, *fields: str) -> None:
        for field in fields:
            self._be(field, whole_of(f"{type(self).__name__}.{field}", getattr(self, field), "a whole number of pixels"))

    def _be_pixels_or_none(self, field: str) -> None:
        if getattr(self, field) is not None:
            self._be(field, whole_of(f"{type(self).__name__}.{field}", getattr(self, field), "a whole number of pixels, or None"))

    def _be(self, field: str, value: Any) -> None:
        object.__setattr__(self, field, value)
