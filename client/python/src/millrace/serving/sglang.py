"""The plug-in for SGLang (entry point ``sglang.srt.plugins``). Written for 0.5.23; imports it when SGLang calls ``register``.

It asks SGLang's own registry of hooks to pass what ``get_processor`` has loaded through here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from millrace.errors import Error
from millrace.serving.settings import settings

_log = logging.getLogger("sglang.plugins.millrace")
_LOADS = "sglang.srt.utils.hf_transformers.processor.get_processor"


def register() -> None:
    """Called by SGLang in each of its processes, before it applies the hooks.

    Raises:
        InvalidRequest: an environment variable of settings.py makes no sense; SGLang logs it and goes on without the plug-in.
    """
    if settings().mode == "off":
        return
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    HookRegistry.register(_LOADS, loaded, HookType.AROUND)


def loaded(load: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """What ``load``, SGLang's function, gives, with the daemon doing the work of its image processor.

    Raises:
        Error: with MILLRACE_SERVING=required: why it cannot.
    """
    processor = load(*args, **options)
    own = getattr(processor, "image_processor", None)
    if own is None:
        return processor
    how = settings()
    try:
        from millrace.serving.takeover import taken_over

        processor.image_processor = taken_over(own, how, _log)
    except Error as why:
        if how.mode == "required":
            raise
        _log.warning("Millrace: is not used: the installed transformers is not one that it knows (%s)", why)
    return processor
