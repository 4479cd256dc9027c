"""One of transformers' image processors, taken over. Imports ``transformers``; imported when a server has loaded a model.

What takes its place is ``millrace.hf``'s drop-in for the same configuration, which keeps the model's own processor beside it for what
the daemon cannot do.
"""

from __future__ import annotations

import functools
import logging
import socket
import time
from typing import Any

from millrace._wire import address as _address
from millrace.errors import Cancelled, DaemonUnavailable, DeadlineExceeded, Error, SampleFailed, Unsupported
from millrace.hf.calls import Calls
from millrace.hf.drop_in import OnDaemon, class_of
from millrace.hf.processor import ImageProcessor
from millrace.hf.workshop import Workshop
from millrace.serving.settings import Settings

_PAUSE = 1.0  # seconds for which a daemon that was away is not asked again
_SAID = 60.0  # seconds between two warnings
_OF_A_CALL = {
    "data_format",
    "device",
    "disable_grouping",
    "input_data_format",
    "return_tensors",
}  # transformers' settings without a meaning
_PATIENCE = 2.0  # seconds for a daemon to take a connection when a model is loaded
taken: int = 0
"""How many processors of this process work with the daemon."""


class Beside:
    """What a taken-over processor has beside it, shared by its copies. Thread-safe: fields are set as a whole, and races are harmless."""

    def __init__(self, own: Any, how: Settings, log: logging.Logger) -> None:
        self.own, self.how, self.log = own, how, log
        self.not_before = self.said = 0.0

    def __deepcopy__(self, memo: Any) -> Beside:
        return self

    def away(self) -> bool:
        """Whether the daemon has just been found away."""
        return time.monotonic() < self.not_before

    def note(self, why: Error) -> None:
        """The daemon has not done a call, and the model's own processor will."""
        now = time.monotonic()
        if isinstance(why, (DaemonUnavailable, DeadlineExceeded)):
            self.not_before = now + _PAUSE
        if now >= self.said:
            self.said = now + _SAID
            told = "the model's own processor does the work meanwhile (MILLRACE_SERVING=fallback)"
            self.log.warning("Millrace: %s; %s", why, told)


class TakenOver:
    """The part of the subclass that is of this module: calls the daemon, and the model's own processor where that does not do it."""

    _beside: Beside

    def preprocess(self, images: Any, *others: Any, **options: Any) -> Any:
        """As transformers' own.

        Raises:
            SampleFailed: an image is bad.
            Error: with MILLRACE_SERVING=required: whatever the daemon says.
        """
        beside = self._beside
        if beside.how.mode == "fallback" and beside.away():
            return beside.own.preprocess(images, *others, **options)
        served = {"copy": True, "priority": "high", "timeout": beside.how.timeout, **options}
        try:
            return super().preprocess(images, *others, **served)  # type: ignore[misc]
        except (SampleFailed, Cancelled):
            raise
        except Error as why:
            if beside.how.mode == "required":
                raise
            beside.note(why)
        return beside.own.preprocess(images, *others, **options)

    def to_dict(self) -> dict[str, Any]:
        """The configuration, as transformers' own class writes it."""
        told: dict[str, Any] = super().to_dict()  # type: ignore[misc]
        told.pop("_beside", None)
        return told

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self._millrace.kind,), self.__dict__  # type: ignore[attr-defined]


def taken_over(own: Any, how: Settings, log: logging.Logger) -> Any:
    """The processor that takes ``own``'s place; ``own`` itself where it cannot be taken over, after one line in the log.

    Raises:
        Unsupported: it cannot be taken over, and MILLRACE_SERVING=required.
        DaemonUnavailable: nobody listens at the socket, and MILLRACE_SERVING=required.
    """
    global taken
    if isinstance(own, OnDaemon):
        return own
    try:
        one = _made(own, how, log)
    except (Error, ValueError, TypeError, AttributeError) as why:  # the others are those of a class that is not transformers'
        if how.mode == "required":
            raise Unsupported(
                f"{type(own).__name__} cannot be taken over: {why}; MILLRACE_SERVING=fallback leaves it to the server"
            ) from why
        log.info("Millrace: %s stays the model's own: %s", type(own).__name__, why)
        return own
    try:
        _look(how.address)
    except Error as why:
        if how.mode == "required":
            raise
        one._beside.note(why)
    taken += 1
    log.info("Millrace: the daemon at %s takes over %s", how.address, type(own).__name__)
    return one


def _made(own: Any, how: Settings, log: logging.Logger) -> Any:
    if not type(own).__module__.startswith("transformers.models."):
        raise Unsupported(f"it is of {type(own).__module__}, not transformers' own")
    told = own.to_dict()
    config = {key: value for key, value in told.items() if key not in _OF_A_CALL}
    kind = str(config.get("image_processor_type") or type(own).__name__)
    config["image_processor_type"] = kind
    workshop = Workshop(None, how.slots, None, f"serving {kind}", how.address)  # connects in the process that uses it
    engine = ImageProcessor(Calls(kind, config, None), workshop)
    one = _class_of(kind)(**{**config, "_engine": engine})
    one._beside = Beside(own, how, log)
    return one


def _look(address: str) -> None:
    """Whether somebody listens. Without gRPC, which would keep the processes that a server forks from this one from using it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connecting:
        try:
            _address.connect(connecting, address, _PATIENCE)
        except OSError as why:
            raise _address.cannot_reach(address, why) from why


@functools.cache
def _class_of(kind: str) -> Any:
    base = class_of(kind)
    return type(base.__name__.replace("Millrace", "Served", 1), (TakenOver, base), {"__doc__": base.__doc__, "__module__": __name__})


def _again(kind: str) -> Any:
    """For pickle: one without attributes."""
    of = _class_of(kind)
    return of.__new__(of)
