"""Rectangles of the finished tensor overwritten."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from millrace._recipe.values import interval_of, number_of, whole_of
from millrace.errors import InvalidRequest

Noise = Literal["channel", "pixel"]


@dataclass(frozen=True)
class Erasing:
    """Rectangles of the finished tensor overwritten: torchvision's RandomErasing, for ``Recipe.erasing``.

    Attributes:
        probability: that it is done to a sample.
        scale: bounds of the share of the area, in (0, 1]; of several rectangles together.
        ratio: bounds of height / width.
        value: in the tensor's units, for all channels or for R, G and B; ``channel``, ``pixel``: a number of the standard normal
            distribution for each channel, or each element.
        most: rectangles, at most 16: 1 to so many, drawn, each of its share divided by how many, as timm's RandomErasing.
    """

    probability: float = 0.5
    scale: Any = (0.02, 0.33)
    ratio: Any = (0.3, 3.3)
    value: float | tuple[float, float, float] | Noise = 0.0
    most: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "probability", number_of("Erasing.probability", self.probability, "a number from 0 to 1"))
        object.__setattr__(self, "most", whole_of("Erasing.most", self.most))
        for name in ("scale", "ratio"):
            object.__setattr__(self, name, interval_of(f"Erasing.{name}", getattr(self, name)))
        if not isinstance(self.value, str):
            object.__setattr__(self, "value", self._numbers())
        elif self.value not in ("channel", "pixel"):
            raise InvalidRequest(f"Erasing.value: must be numbers, channel or pixel, is {self.value!r}")

    def _numbers(self) -> float | tuple[float, ...]:
        try:
            if isinstance(self.value, (tuple, list)):
                return tuple(float(each) for each in self.value)
            return float(self.value)
        except (TypeError, ValueError):
            raise InvalidRequest(f"Erasing.value: must be a number, three, channel or pixel, is {self.value!r}") from None
