"""What one call asks for: the processor's configuration, with what the call says otherwise, and the plan for it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from millrace.errors import InvalidRequest, Unsupported
from millrace.hf._families.config import ABSENT, Beside
from millrace.hf._families.families import converts, is_taken_as_it_is, plan_of
from millrace.hf._inputs.inputs import Reading
from millrace.hf._plans.plans import Plan
from millrace.recipe import DType

_MOST_PLANS = 128  # kept; a program that calls with ever new sizes has them made anew
_TYPES = ("image_processor_type", "feature_extractor_type")
_OTHER_NAMES = (
    "min_pixels",
    "max_pixels",
    "image_size",
    "use_square_size",
)  # older ones for parts of `size`, which they override in a file
_LAYOUTS = ("channels_first", "channels_last")

# Of transformers' arguments: how a call is answered, and not what with. None of them changes the plan.
ANSWERING = frozenset({"device", "disable_grouping", "input_data_format", "return_tensors"})


class Calls:
    """Plans by what calls override. Thread-safe: what two threads make at once is made twice, and equal."""

    def __init__(self, name: str, config: Mapping[str, Any], dtype: DType | None) -> None:
        self.config = dict(config)
        """What the processor was made of."""
        self.dtype = dtype
        self.plan = plan_of(name, self.config, dtype)
        """Of calls that override nothing."""
        self._plans: dict[str, Plan] = {}

    @property
    def kind(self) -> str:
        """The configuration's name for the processor, such as ``CLIPImageProcessor``."""
        return str(self.config.get("image_processor_type") or self.config.get("feature_extractor_type"))

    def converts(self, overrides: Mapping[str, Any]) -> tuple[bool, bool]:
        """Whether pixels become RGB, and whether transparent colours of what is encoded are laid on white, without transformers.

        Where neither the call nor the configuration says it, pixels become RGB, and the other is as the class has it.
        """
        said = overrides.get("do_convert_rgb", self.config.get("do_convert_rgb"))
        if "do_convert_rgb" in overrides or "do_convert_rgb" in self.config:
            return bool(said), bool(said)
        return True, converts(self.kind)

    def plan_with(self, overrides: Mapping[str, Any]) -> Plan:
        """For a call that replaces keys of the configuration; None is null, and leaves ``min_pixels`` and the like as they are.

        Raises:
            Unsupported: a key that is not known, or asks for what is not supported; names it.
            InvalidRequest: a value that makes no sense; names its key.
        """
        asked = {key: value for key, value in overrides.items() if key not in ANSWERING and not (value is None and key in ABSENT)}
        if not asked:
            return self.plan
        for key in _TYPES:
            if key in asked:
                raise Unsupported(f"this call: key {key}: a call cannot change which processor this is; make another one")
        config = self.config
        if "size" in asked:
            config = {key: value for key, value in config.items() if key not in _OTHER_NAMES}
        return self.plan_for({**config, **asked}, Beside(self.config, frozenset(asked), self.config.get("resample")))

    def plan_for(self, config: Mapping[str, Any], beside: Beside) -> Plan:
        """For a whole configuration. Raises as ``plan_with``."""
        name = json.dumps([config, beside.made_of, sorted(beside.asked)], sort_keys=True, default=repr)
        plan = self._plans.get(name)
        if plan is None:
            plan = plan_of("this call", dict(config), self.dtype, beside)
            if len(self._plans) >= _MOST_PLANS:
                self._plans.clear()
            self._plans[name] = plan
        return plan

    def reading(self, to_rgb: bool, on_white: bool, layout: Any) -> Reading:
        """How a call reads images.

        Args:
            to_rgb: ``do_convert_rgb`` for pixels.
            on_white: the same for transparent colours of what is encoded.
            layout: ``input_data_format``; None: what it looks like.

        Raises:
            InvalidRequest: a layout that is none.
        """
        advice = "convert it to RGB, or say do_convert_rgb=True"
        if is_taken_as_it_is(self.kind):
            to_rgb, on_white, advice = False, False, f"convert it to RGB, which {self.kind} does not do"
        if layout is None:
            return Reading(to_rgb, None, on_white, advice)
        for known in _LAYOUTS:
            if layout == known:
                return Reading(to_rgb, known, on_white, advice)  # type: ignore[arg-type]
        raise InvalidRequest(f"input_data_format: must be one of {', '.join(_LAYOUTS)}, is {layout!r}")
