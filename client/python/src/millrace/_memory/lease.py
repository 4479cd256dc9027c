"""The lease of a slot: who refers to it keeps the slot's bytes as they are.

    Batch, Tensor --> Held --> Lease --> Segment        handles: lose the lease when the batch is released
    NumPy arrays, DLPack consumers --> Lease            views of the memory itself: keep it as long as they live

The slot goes back to the daemon when the last reference to its Lease is gone, so no view ever shows another batch's pixels; in a GPU's
memory when the streams that were given it have done by then, too (gpu_work.py).
"""

from __future__ import annotations

import queue
import time
import weakref
from typing import Any

import numpy as np

from millrace._memory.device_memory import DeviceMemory, OnDevice
from millrace._memory.segment import Segment
from millrace._wire import schema as _schema
from millrace.errors import Forked, Released, StaleHandle

Outgoing = queue.SimpleQueue[Any]
"""What the session's stream is to send; its ``put`` may be called from destructors, in any thread, at any time."""


class LeaseEnd(weakref.ref["Lease"]):
    """Goes into ``Outgoing`` when its lease is gone, and becomes a Release message there.

    A reference with a callback, rather than a ``__del__`` of the lease: the callback is the queue's own ``put``, so no Python code runs
    then, and with it no signal handler, whose KeyboardInterrupt would be lost there.
    """

    __slots__ = ("_segment", "generation", "kept", "slot", "streams", "used", "waits")

    slot: int
    generation: int
    used: int
    _segment: weakref.ref[Segment]
    kept: bool
    streams: set[int]
    """CUDA's handles of those that were given the slot's tensors, in a GPU's memory."""
    waits: list[int]
    """Nanoseconds for which the program waited for the batch; none: it is not told."""

    @property
    def segment(self) -> Segment | None:
        """The slot's; None if it is unmapped already, because the session was closed. A reference would be a cycle."""
        return self._segment()

    def give_back(self) -> None:
        """What precedes the Release message."""
        segment = self.segment
        if segment is not None:
            segment.leases.pop(self, None)
            segment.given_back(self.slot, self.used)

    def message(self) -> Any:
        """The Release message."""
        release: dict[str, int] = {"slot": self.slot, "generation": self.generation}
        if self.waits:
            release["waited_ns"] = sum(self.waits)
        return _schema.ClientMessage(release=release)


class Lease:
    """One slot as long as it is read. NumPy makes of it the slot's bytes, an array whose base is the lease."""

    __slots__ = ("__array_interface__", "__weakref__", "segment", "slot", "streams", "waits", "window")

    def __init__(self, segment: Segment, outgoing: Outgoing, slot: int, generation: int, used: int) -> None:
        self.segment = segment
        self.slot = slot
        self.streams: set[int] = set()
        """See ``LeaseEnd``."""
        self.waits: list[int] = []
        """See ``LeaseEnd``."""
        self.window = segment.windows[slot]  # mapped as long as the lease lives, also when the slot has another one by then
        self.__array_interface__ = self.window.array_interface
        end = LeaseEnd(self, outgoing.put)
        end.slot, end.generation, end.used, end._segment, end.kept = slot, generation, used, weakref.ref(segment), False
        end.streams, end.waits = self.streams, self.waits
        segment.leases[end] = None


class Held:
    """What a batch and its tensors share: the lease until the batch is released, nothing afterwards."""

    __slots__ = ("_bytes", "_lease", "arrived", "start")

    def __init__(self, segment: Segment, outgoing: Outgoing, slot: int, generation: int, end: int) -> None:
        """``end``: of the batch's bytes, from the segment's start."""
        self.arrived = time.monotonic_ns()
        """When the batch did."""
        if not segment.holds(slot, generation):
            raise StaleHandle(f"a stale handle: slot {slot} does not hold this batch any more")
        self.start = segment.start_of(slot)
        """Where ``bytes`` begin, from the segment's start."""
        self._lease: Lease | None = Lease(segment, outgoing, slot, generation, end - self.start)
        self._bytes: np.ndarray[Any, np.dtype[np.uint8]] | None = None
        try:
            segment.show(slot, end - self.start)
        except BaseException:
            self._lease = None  # the traceback would keep the slot
            raise

    @property
    def released(self) -> bool:
        return self._lease is None

    def note_wait(self, nanoseconds: int) -> None:
        """The program waited so long for the batch: the daemon hears of it with the release."""
        if self._lease is not None:
            self._lease.waits[:] = [nanoseconds]

    def is_of(self, lease: Lease | None) -> bool:
        """Whether it holds that lease."""
        return lease is not None and self._lease is lease

    def check(self) -> Lease:
        """The lease.

        Raises:
            Released: the batch was released.
            Forked: the batch belongs to the process that forked this one.
        """
        lease = self._lease
        if lease is None:
            raise Released("this batch was released, and its memory may hold another one by now; copy what you need before")
        if lease.segment.forked:
            raise Forked("this batch belongs to the process that forked this one, which gives it back when it likes")
        return lease

    def bytes(self) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """The slot's bytes; as long as they or a view of them live, the slot is not given back.

        Raises as ``check``.
        """
        lease = self.check()
        if self._bytes is None:
            self._bytes = np.asarray(lease)
        return self._bytes

    @property
    def on_device(self) -> bool:
        """Whether the batch's tensors are in a GPU's memory. Raises as ``check``."""
        return self.check().segment.device_memory is not None

    def device_memory(self) -> DeviceMemory:
        """The GPU's memory in which they are. Raises as ``check``."""
        memory = self.check().segment.device_memory
        assert memory is not None
        return memory

    def device_bytes(self) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """The slot's bytes there, for their address and nothing else; they keep the slot as ``bytes`` do. Raises as ``check``."""
        lease, memory = self.check(), self.device_memory()
        return np.asarray(OnDevice(memory.address + lease.slot * memory.stride, memory.stride, lease))

    def release(self) -> bool:
        """Lets go of the slot. True: it went back at once; False: views that live keep it until they are gone."""
        if self._lease is None:
            return True
        lease = weakref.ref(self._lease)
        self._lease = self._bytes = None
        return lease() is None
