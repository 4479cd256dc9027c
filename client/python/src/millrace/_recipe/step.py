"""What all steps of augmentation have."""

from __future__ import annotations

import dataclasses
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

from millrace._recipe.values import fill_of, interval_of
from millrace.errors import InvalidRequest

Sampling = Literal["nearest", "bilinear", "bicubic"]
"""How a transform that moves pixels reads between them, as Pillow's of that name."""


@dataclass(frozen=True, repr=False)
class Step:
    """What all have.

    Attributes:
        probability: that it is done to a sample at all.
    """

    _: KW_ONLY
    probability: float = 1.0

    def __repr__(self) -> str:
        """What is not the default."""
        fields = [field for field in dataclasses.fields(self) if field.name != "_"]
        said = [f"{field.name}={getattr(self, field.name)!r}" for field in fields if getattr(self, field.name) != field.default]
        return f"{type(self).__name__}({', '.join(said)})"

    def _make_intervals(self, *names: str) -> None:
        for name in names:
            object.__setattr__(self, name, interval_of(f"{type(self).__name__}.{name}", getattr(self, name)))

    def _make_fill(self) -> None:
        object.__setattr__(self, "fill", fill_of(f"{type(self).__name__}.fill", vars(self)["fill"]))


def steps_of(name: str, value: Any) -> tuple[Step, ...]:
    """A tuple of steps, of any iterable of them.

    Raises:
        InvalidRequest: there is something else among them.
    """
    steps = (value,) if isinstance(value, Step) else value
    try:
        steps = tuple(steps)
    except TypeError:
        raise InvalidRequest(f"{name}: must be steps of millrace.steps, is {value!r}") from None
    for step in steps:
        if not isinstance(step, Step):
            raise InvalidRequest(f"{name}: must be steps of millrace.steps; has {step!r} (from_torchvision() translates torchvision's)")
    return steps
