"""What one call asks for: the processor's configuration, with what the call says otherwise, and the plan for it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from millrace.errors import InvalidRequest, Unsupported
from millrace.hf.families import plan_of
from millrace.hf.inputs import Reading
from millrace.hf.plans import Plan
from millrace.recipe import DType

_MOST_PLANS = 128  # kept; whoever calls with ever new sizes has them made anew
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

    def plan_with(self, overrides: Mapping[str, Any]) -> Plan:
        """For a call that replaces keys of the configuration; None leaves one as it is.

        Raises:
            Unsupported: a key that is not known, or asks for what is not supported; names it.
            InvalidRequest: a value that makes no sense; names its key.
        """
        asked = {key: value for key, value in overrides.items() if value is not None and key not in ANSWERING}
        if not asked:
            return self.plan
        for key in _TYPES:
            if key in asked:
                raise Unsupported(f"this call: key {key}: a call cannot change which processor this is; make another one")
        config = self.config
        if "size" in asked:
            config = {key: value for key, value in config.items() if key not in _OTHER_NAMES}
        return self.plan_for({**config, **asked})

    def plan_for(self, config: Mapping[str, Any]) -> Plan:
        """For a whole configuration. Raises as ``plan_with``."""
        name = json.dumps(config, sort_keys=True, default=repr)
        plan = self._plans.get(name)
        if plan is None:
            plan = plan_of("this call", dict(config), self.dtype)
            if len(self._plans) >= _MOST_PLANS:
                self._plans.clear()
            self._plans[name] = plan
        return plan

    def reading(self, to_rgb: Any, layout: Any) -> Reading:
        """How a call reads pixels.

        Args:
            to_rgb: ``do_convert_rgb``.
            layout: ``input_data_format``; None: what it looks like.

        Raises:
            InvalidRequest: a layout that is none.
        """
        if layout is None:
            return Reading(bool(to_rgb))
        for known in _LAYOUTS:
            if layout == known:
                return Reading(bool(to_rgb), known)  # type: ignore[arg-type]
        raise InvalidRequest(f"input_data_format: must be one of {', '.join(_LAYOUTS)}, is {layout!r}")
