"""How long a program waits for its batches: the daemon hears of it when a batch's slot goes back.

By that its statistics say why a loop waits (``SessionStatistics.waited_seconds``). A wait ends when its batch arrives in the inbox: what
keeps the program from taking it then, such as an event loop's other tasks, is the program's own. A wait that ends without a batch, by a
timeout or a cancelled task, counts for the batch that comes after it.
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
    """Of one session. Thread-safe but for the sum of waits without a batch: of several threads', some may be lost."""

    def __init__(self, knowledge: DaemonKnowledge) -> None:
        self._told = knowledge.knows(_schema.ClientMessage(release={"waited_ns": 0}))  # an older daemon would refuse it
        self._without_batch = 0  # nanoseconds, since a batch was last taken

    def timed(self, wait: Callable[[], T]) -> T:
        """What ``wait`` returns: a batch, an Error, or None at an epoch's end."""
        began = time.monotonic_ns()
        try:
            found = wait()
        except DeadlineExceeded:
            self.ended_without_batch(began)
            raise
        self.note(found, began)
        return found

    async def awaited(self, wait: Awaitable[T]) -> T:
        """As ``timed``."""
        import asyncio  # who calls this has it already

        began = time.monotonic_ns()
        try:
            found = await wait
        except (DeadlineExceeded, asyncio.CancelledError):
            self.ended_without_batch(began)
            raise
        self.note(found, began)
        return found

    def ended_without_batch(self, began: int) -> None:
        """A wait since ``began``, of ``time.monotonic_ns()``, ends now, and the program has nothing."""
        self._without_batch += time.monotonic_ns() - began

    def note(self, found: Any, began: int | None) -> None:
        """The program has that, for which it waited since ``began``; None: it was there. Counts if it is a batch."""
        if not isinstance(found, Batch) or found._held is None:
            return
        waited, self._without_batch = self._without_batch, 0
        if began is not None:
            waited += max(0, found._held.arrived - began)
        if self._told:
            found._held.note_wait(waited)
