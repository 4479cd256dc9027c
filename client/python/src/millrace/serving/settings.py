"""What an operator sets, which is environment variables: a server passes them on to all of its processes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal

from millrace._wire.address import resolve
from millrace.errors import InvalidRequest

Mode = Literal["off", "fallback", "required"]

_MODES: tuple[Mode, ...] = ("off", "fallback", "required")


@dataclass(frozen=True)
class Settings:
    """As the environment has them.

    Attributes:
        mode: ``$MILLRACE_SERVING``. ``off``: the server is left alone. ``fallback``: what the daemon cannot do, the model's own processor
            does. ``required``: it is an error. Not set: ``fallback`` where ``$MILLRACE_SOCKET`` is, else ``off``.
        address: the daemon's socket, as ``millrace.connect()`` finds it.
        slots: ``$MILLRACE_SERVING_SLOTS``: calls under way at once, of each process and model.
        timeout: ``$MILLRACE_SERVING_TIMEOUT``, seconds: how long a call may wait for the daemon.
    """

    mode: Mode
    address: str
    slots: int = 4
    timeout: float = 10.0


def settings() -> Settings:
    """Those of this process.

    Raises:
        InvalidRequest: a value that makes no sense; names the variable.
    """
    given = os.environ.get("MILLRACE_SERVING") or ("fallback" if os.environ.get("MILLRACE_SOCKET") else "off")
    mode = next((mode for mode in _MODES if mode == given), None)
    if mode is None:
        raise InvalidRequest(f"MILLRACE_SERVING: must be {', '.join(_MODES)}, is {given!r}")
    if mode == "off":
        return Settings(mode, "")
    slots = _number("MILLRACE_SERVING_SLOTS", 4)
    if slots < 1 or slots != int(slots):
        raise InvalidRequest(f"MILLRACE_SERVING_SLOTS: must be a whole number of at least 1, is {slots:g}")
    timeout = _number("MILLRACE_SERVING_TIMEOUT", 10)
    if not 0 < timeout < 3600:
        raise InvalidRequest(f"MILLRACE_SERVING_TIMEOUT: must be seconds, more than 0 and less than 3600, is {timeout:g}")
    return Settings(mode, resolve(None), int(slots), timeout)


def _number(name: str, usual: float) -> float:
    given = os.environ.get(name)
    if not given:
        return usual
    try:
        return float(given)
    except ValueError:
        raise InvalidRequest(f"{name}: must be a number, is {given!r}") from None
