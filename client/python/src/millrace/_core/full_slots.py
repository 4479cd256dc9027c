"""What happens when a program waits for a batch and holds every slot itself, so that none can come.

Their batches are kept as copies: the pages become this process's own, at the same addresses, so nobody who has an array notices, and the
slots go back. It costs the copying, the memory, and reading ahead, so the first time it says so (``SlotsHeld``). Where batches are read
in the shared mapping (``writable=False``) that cannot be done, and the warning is all.

A thread that waits may be relieved by another that lets go of a batch; so it is done only when the same batches have held all slots for
a while: ``SHARED`` in a session, which many threads may use, ``ALONE`` in a loader's loop. Not at once there either: the end of an epoch
needs no slot and may be on its way.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence

from millrace._memory.copy_on_write import Window
from millrace._memory.lease import LeaseEnd, Outgoing
from millrace._memory.segment import Segment
from millrace._process.warn import warn
from millrace.errors import SlotsHeld

SHARED = 2.0  # seconds
ALONE = 0.05
_AGAIN = 0.005  # it is known by then that this program keeps batches


class FullSlots:
    """Of one session. Thread-safe."""

    def __init__(self, outgoing: Outgoing) -> None:
        self._outgoing = outgoing
        self._told = False
        self._keeps = False

    def pause(self, grace: float) -> float:
        """Seconds between two looks at who holds the slots, of which the second decides."""
        return (_AGAIN if self._keeps else grace) / 2

    def relieve(self, segment: Segment, held: Sequence[LeaseEnd]) -> None:
        """Keeps all but the newest of the batches that the caller holds; of a single slot that one, too.

        Raises:
            SlotsHeld: where warnings are errors.
        """
        gc.collect(1 if self._told else 2)  # batches in cycles of garbage
        alive = [end for end in held if end() is not None]
        if len(alive) < len(held):
            return
        if not self._told:
            self._told = True
            warn(_text(segment), SlotsHeld)
        if segment.writable:
            self._keeps = True
            for end in alive[: max(1, len(alive) - 1)]:
                self._keep(segment, end)

    def _keep(self, segment: Segment, end: LeaseEnd) -> None:
        lease = end()
        if lease is None or not isinstance(lease.window, Window):
            return
        try:
            kept = segment.keep(end.slot, lease.window, end.used)
        except OSError as why:
            raise MemoryError(f"{why.strerror}; release batches, or open the session with more slots") from why
        if kept:
            end.kept = True
            segment.leases.pop(end, None)
            self._outgoing.put(end.message())


def _text(segment: Segment) -> str:
    held = (
        f"all {segment.slots} slots of the session are held by batches and arrays that this program keeps (a variable in each thread or "
        "task counts), so no batch can come: "
    )
    if not segment.writable:
        return held + "release them, copy what is to be kept, or open the session with more slots"
    return held + (
        "they become copies now, which costs time, memory, and reading ahead. Copy what is to be kept and let go of the rest "
        f"(images.clone(), numpy.array(images)), or ask for more than {segment.slots} slots"
    )
