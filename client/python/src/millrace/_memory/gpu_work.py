"""Slots of a GPU's memory that nobody refers to any more, but that work which was queued in time may still use.

Python lets go of a tensor when the last kernel that reads it is queued, not when it has run. So when a lease is gone, an event is recorded
in each stream that was given its memory, and the Release message is sent when all have passed.
"""

from __future__ import annotations

import queue
import time
from typing import Any

from millrace._memory.device_memory import DeviceMemory, Events
from millrace._memory.lease import LeaseEnd, Outgoing

_LOOK, _LATER = 0.0005, 0.005  # seconds between two looks at the events: at first, and at most
_OF_THE_WAIT = 1 / 8  # that a look comes late at most, as long as that is no more than _LATER


class GpuWork:
    """Takes from a session's queue. Thread-bound: the stream's writer."""

    def __init__(self, outgoing: Outgoing) -> None:
        self._outgoing = outgoing
        self._waiting: list[tuple[LeaseEnd, Events, DeviceMemory]] = []  # the memory: so that it is not unmapped meanwhile
        self._since = 0.0  # when the last of them passed, or the first came

    def next(self) -> Any:
        """What is to be sent next; waits for it.

        Raises:
            FailedPrecondition: a stream's event cannot be had: the slot can never be given back.
        """
        while True:
            for n, (end, events, _) in enumerate(self._waiting):
                if events.passed():
                    del self._waiting[n]
                    self._since = time.monotonic()
                    return end
            try:
                message = self._outgoing.get(timeout=self._pause() if self._waiting else None)
            except queue.Empty:
                continue
            memory = _memory_in_use(message)
            if memory is None:
                return message
            if not self._waiting:
                self._since = time.monotonic()
            self._waiting.append((message, Events(memory.context, message.streams), memory))
            del memory

    def _pause(self) -> float:
        """Seconds until the next look: a look takes 0.1 ms of the CPU, and a GPU may be behind for as long as a program runs."""
        return min(_LATER, max(_LOOK, (time.monotonic() - self._since) * _OF_THE_WAIT))

    def drop(self) -> None:
        """Nothing is sent any more. What unmaps the memory waits for what uses it."""
        while self._waiting:
            self._waiting.pop()[1].drop()


def _memory_in_use(message: Any) -> DeviceMemory | None:
    """Which streams may be at work on; None: nothing has to be waited for."""
    if not isinstance(message, LeaseEnd) or not message.streams:
        return None
    segment = message.segment
    return segment.device_memory if segment is not None else None  # gone, it has been waited for
