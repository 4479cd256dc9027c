"""How long a program waits for its batches: the daemon hears of it when a batch's slot goes back.

By that its statistics say why a loop waits (``SessionStatistics.waited_seconds``). Waiting that ends in vain counts for the batch that
comes after it.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from millrace._core.batch import Batch
from millrace._wire import schema as _schema
from millrace._wire.daemon_knowledge import DaemonKnowledge
from millrace.errors import DeadlineExceeded

T = TypeVar("T")


class Waits:
    """Of one session. Thread-safe but for sums of what several threads wait for in vain, of which some may be lost."""

    def __init__(self, knowledge: DaemonKnowledge) -> None:
        self._told = knowledge.knows(_schema.ClientMessage(release={"waited_ns": 0}))  # an older daemon would refuse it
        self._in_vain = 0  # nanoseconds, since a batch was last taken

    def timed(self, wait: Callable[[], T]) -> T:
        """What ``wait`` returns: a batch, an Error, or None at an epoch's end."""
        began = time.monotonic_ns()
        try:
            found = wait()
        except DeadlineExceeded:
            self.in_vain(time.monotonic_ns() - began)
            raise
        self.note(found, time.monotonic_ns() - began)
        return found

    async def awaited(self, wait: Awaitable[T]) -> T:
        """As ``timed``."""
        import asyncio  # who calls this has it already

        began = time.monotonic_ns()
        try:
            found = await wait
        except (DeadlineExceeded, asyncio.CancelledError):
            self.in_vain(time.monotonic_ns() - began)
            raise
        self.note(found, time.monotonic_ns() - began)
        return found

    def in_vain(self, nanoseconds: int) -> None:
        """The program waited so long and has nothing."""
        self._in_vain += nanoseconds

    def note(self, found: Any, nanoseconds: int) -> None:
        """The program waited so long for what it has now, if that is a batch."""
        if not isinstance(found, Batch) or found._held is None:
            return
        waited, self._in_vain = self._in_vain + nanoseconds, 0
        if self._told:
            found._held.note_wait(waited)
