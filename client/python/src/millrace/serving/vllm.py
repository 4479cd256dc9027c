"""The plug-in for vLLM (entry point ``vllm.general_plugins``). Written for 0.33; imports it when vLLM calls ``register``.

vLLM loads a model's processor by ``get_processor`` and, for some models, ``get_image_processor``; both are wrapped, and what is in
the place of the first cache of each is a new one. What is uploaded stays encoded until the daemon has it, see ``upload.py``.
"""

from __future__ import annotations

import functools
import logging
import sys
from collections.abc import Callable
from typing import Any

from millrace.errors import Error
from millrace.serving.settings import Settings, settings

_log = logging.getLogger("vllm.plugins.millrace")  # beneath vLLM's own, whose handlers and level it shares


def register() -> None:
    """Called by vLLM in each of its processes; any number of times.

    Raises:
        InvalidRequest: an environment variable of settings.py makes no sense.
    """
    how = settings()
    if how.mode == "off":
        return
    try:
        from vllm.multimodal.media import image
        from vllm.transformers_utils import processor as hub

        from millrace.serving import upload

        _wrap(hub, "get_processor", _inside, how)
        _wrap(hub, "get_image_processor", _itself, how)
        upload.keep_encoded(image)
    except (ImportError, AttributeError, Error) as why:
        if how.mode == "required":
            raise
        _log.warning("Millrace: is not used: this vLLM or its transformers is not one that the plug-in knows (%s)", why)


def _wrap(hub: Any, name: str, take_over: Callable[[Any, Settings], Any], how: Settings) -> None:
    own = getattr(hub, name)
    if hasattr(own, "millrace"):
        return
    cached = getattr(hub, f"cached_{name}")

    @functools.wraps(own)
    def loaded(*args: Any, **options: Any) -> Any:
        return take_over(own(*args, **options), how)

    loaded.millrace = how  # type: ignore[attr-defined]
    for old, new in ((own, loaded), (cached, functools.lru_cache(loaded))):
        for module in [one for path, one in list(sys.modules.items()) if path.startswith("vllm.")]:
            for attribute in [key for key, value in list(vars(module).items()) if value is old]:
                setattr(module, attribute, new)


def _itself(own: Any, how: Settings) -> Any:
    from millrace.serving.takeover import taken_over

    return taken_over(own, how, _log)


def _inside(processor: Any, how: Settings) -> Any:
    if getattr(processor, "image_processor", None) is not None:
        processor.image_processor = _itself(processor.image_processor, how)
    return processor
