"""Encoded images in shared memory, for programs that hold the bytes already and have more of them than a message may carry.

    >>> ring = session.ring(64 << 20)
    >>> session.submit([ring.put(jpeg) for jpeg in jpegs])

The daemon makes the ring once and both share it; submitting then costs a few bytes an image.
"""

from __future__ import annotations

import mmap
import os
import queue
import threading
import weakref
from bisect import insort

from millrace.errors import InvalidRequest, ResourceExhausted

RING_ALIGNMENT = 64


def whole_pages(size: int) -> int:
    """The size of a ring for ``size`` bytes."""
    if not 1 <= size < 1 << 62:
        raise InvalidRequest(f"ring: {size} bytes is no size for a ring; give at least 1")
    return -(-size // mmap.PAGESIZE) * mmap.PAGESIZE


def _granted(length: int) -> int:
    return -(-length // RING_ALIGNMENT) * RING_ALIGNMENT


class _RoomEnd(weakref.ref["RingRoom"]):
    """Goes into the ring's queue when its room is gone (for why see ``LeaseEnd``)."""

    __slots__ = ("length", "offset")

    offset: int
    length: int


class RingRoom:
    """A stretch of the ring. It is free again when the last reference is gone; a batch under way holds one.

    Write to it only before it is submitted. Made by ``Ring.put`` and ``Ring.allocate``.
    """

    __slots__ = ("__weakref__", "_ring", "length", "offset")

    def __init__(self, ring: Ring, offset: int, length: int) -> None:
        self._ring = ring
        self.offset = offset
        """Bytes from the ring's start."""
        self.length = length
        """Bytes, as asked for."""
        end = _RoomEnd(self, ring._returned.put)
        end.offset, end.length = offset, _granted(length)
        ring._rooms.add(end)

    @property
    def view(self) -> memoryview:
        """The room's bytes, writable. Drop the view before the room itself goes."""
        return memoryview(self._ring._memory)[self.offset : self.offset + self.length]


class Ring:
    """Shared memory for encoded images, one a session; made by ``Session.ring``. Thread-safe."""

    def __init__(self, memfd: int, size: int) -> None:
        try:
            # Reserves the memory, so that a full host is an error here and not a SIGBUS while writing.
            os.posix_fallocate(memfd, 0, size)
            self._memory = mmap.mmap(memfd, size)
        except OSError as why:
            raise ResourceExhausted(
                f"ring: no {size} bytes of memory for it: {why.strerror}; open another session for a smaller one"
            ) from why
        self._free: list[tuple[int, int]] = [(0, size)]  # (offset, length), sorted, never touching each other
        self._lock = threading.Lock()
        self._rooms: set[_RoomEnd] = set()
        self._returned: queue.SimpleQueue[_RoomEnd] = queue.SimpleQueue()  # a lock must not be taken when something is collected

    def __len__(self) -> int:
        """Bytes in all."""
        return len(self._memory)

    def allocate(self, length: int) -> RingRoom:
        """Room for ``length`` bytes, to be written through ``RingRoom.view``.

        Raises:
            ResourceExhausted: no such room for now; take finished batches and try again.
            InvalidRequest: 0 bytes, or more than the ring has.
        """
        if not 1 <= length <= len(self):
            raise InvalidRequest(f"ring: {length} bytes of room in a ring of {len(self)}; open a larger one")
        wanted = _granted(length)
        with self._lock:
            self._take_back()
            for position, (offset, free) in enumerate(self._free):
                if free >= wanted:
                    self._free[position : position + 1] = [(offset + wanted, free - wanted)] if free > wanted else []
                    return RingRoom(self, offset, length)
        raise ResourceExhausted(
            f"ring: no {length} bytes free in one piece for now; take finished batches and try again, "
            f"or open a larger ring than {len(self)} bytes"
        )

    def put(self, encoded: bytes | bytearray | memoryview) -> RingRoom:
        """Copies one file's bytes into the ring. Raises as ``allocate``."""
        view = memoryview(encoded).cast("B")
        room = self.allocate(len(view))
        self._memory[room.offset : room.offset + room.length] = view
        return room

    def _take_back(self) -> None:
        while True:
            try:
                end = self._returned.get_nowait()
            except queue.Empty:
                return
            self._rooms.discard(end)
            extent = (end.offset, end.length)
            insort(self._free, extent)
            position = self._free.index(extent)
            for left in (position, position - 1):  # join with the next one, then with the one before
                if 0 <= left < len(self._free) - 1:
                    (offset, length), (after, more) = self._free[left : left + 2]
                    if offset + length == after:
                        self._free[left : left + 2] = [(offset, length + more)]
