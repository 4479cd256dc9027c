"""The session's shared memory. Its layout: layout.py.

The daemon may still be filling it: then its object is shorter than it will be, and a page behind its end would be a SIGBUS. So only the
headers are mapped at first; a slot, once, when the first batch comes in it; all other addresses of it show zeros. That mapping is shared
and read-only: for the headers, and for page-locking. A session whose batches may be written to has a copy-on-write mapping of each slot
besides, in which they are read (copy_on_write.py).
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from millrace._memory.copy_on_write import SharedMapping, SharedWindow, Window, noticed
from millrace._memory.device_memory import DeviceMemory
from millrace._memory.layout import SEALED, SEGMENT_HEADER, SEGMENT_MAGIC, SEGMENT_VERSION, SLOT_HEADER
from millrace._process import fork as _fork
from millrace._wire.handoff import HandoffConnection
from millrace.errors import FailedPrecondition, InternalError, ResourceExhausted


class Segment:
    """The mapping and the hand-off connection that keeps the session's memory in the daemon; shared by the session and every batch.

    Gone with the last of them. ``leases`` changes by single operations of the dictionary, all else by one thread at a time.
    """

    def __init__(self, connection: HandoffConnection, deadline: float, *, writable: bool) -> None:
        """Receives the descriptor on ``connection``, maps it and checks its header. Raises as ``HandoffConnection``."""
        self._connection = connection
        self.forked = False
        """Whether this is the copy of a forked child, which must not use it."""
        self.writable = writable
        """Whether each slot has a copy-on-write mapping, where batches are read."""
        self.leases: dict[Any, None] = {}
        """The ends of the leases that this process holds at the moment (see lease.py), the oldest first."""
        self.device_memory: DeviceMemory | None = None
        """Where the tensors are if the session asked for a GPU's memory; the slots have the records alone then."""
        self._written = False  # somebody writes to batches
        self._descriptor = -1
        self._lock = threading.Lock()
        fd, size = connection.receive_segment(deadline)
        try:
            filled = os.fstat(fd).st_size
            if filled > size or filled < SEGMENT_HEADER.size:
                raise InternalError(f"the session's segment has {filled} bytes, the daemon speaks of {size}")
            self._descriptor = os.dup(fd)
            self._map = SharedMapping(self._descriptor, size)
            self._map.show(0, SEGMENT_HEADER.size, populate=True)
            self.bytes = np.frombuffer(self._map.memory, np.uint8)
            """The whole segment, read-only."""
            self._read_header(size, filled)
            self._map.show(0, self._data_offset, populate=True)
            self._tells = writable and noticed(self._descriptor)
            self._shown = [False] * self.slots  # whether there was a batch in that slot
            self.windows: list[Window | SharedWindow] = [self._window(slot) for slot in range(self.slots)]
            """Where each slot's next batch is read."""
        except OSError as why:
            hint = "; writable=False maps it once instead of twice" if writable else ""
            raise ResourceExhausted(f"mapping {size} bytes of shared memory: {why.strerror}{hint}") from why
        finally:
            os.close(fd)
        _fork.register(self)

    def _read_header(self, size: int, filled: int) -> None:
        header = SEGMENT_HEADER.unpack_from(self._map.memory)
        magic, version, self.slots, _, self.slot_bytes, self._stride, self._data_offset, self.session_id, _ = header
        if magic != SEGMENT_MAGIC or version != SEGMENT_VERSION:
            raise FailedPrecondition(
                f"the daemon's shared memory has layout version {version}, this package reads version {SEGMENT_VERSION}; "
                "install the Python package and millraced of the same version"
            )
        headers_end, end = SEGMENT_HEADER.size + self.slots * SLOT_HEADER.size, self._data_offset + self.slots * self._stride
        if self.slots < 1 or headers_end > self._data_offset or end > size or self._data_offset > filled:
            raise InternalError("the segment's header contradicts itself; please report it with the daemon's version")

    def receive_device_memory(self, opened: Any, name: str, deadline: float) -> None:
        """Receives the GPU's memory of that name that goes with it, as the ``OpenSessionReply`` describes it, and maps it.

        Raises:
            Unsupported, Forked, ResourceExhausted, FailedPrecondition: as ``DeviceMemory``.
            InternalError: the daemon passes none, or another one.
            Error: as ``HandoffConnection``.
        """
        if len(opened.memories) != 2 or opened.memories[1].name != name:
            raise InternalError(f"the daemon opened the session without the memory {name}; please report it with the daemon's version")
        told = opened.memories[1]
        fd, size, uuid = self._connection.receive_memory(deadline)
        try:
            if (size, uuid) != (told.bytes, told.device):
                raise InternalError(f"hand-off: {size} bytes of {uuid.hex()} came, the daemon spoke of {told.bytes} of {told.device.hex()}")
            try:
                self.device_memory = DeviceMemory(uuid, fd, size, self.slots, self.leases, self._connection)
            except Exception:
                self._connection.let_go()  # nothing is mapped, so another attempt need not be charged beside this one
                raise
        finally:
            os.close(fd)

    def start_of(self, slot: int) -> int:
        """Where the slot's bytes begin, from the segment's start."""
        start: int = self._data_offset + slot * self._stride
        return start

    def slot_of(self, address: int) -> tuple[int, int]:
        """The address and the bytes of the slot in the shared mapping in which that address is."""
        memory: int = self.bytes.ctypes.data
        return memory + self.start_of((address - memory - self._data_offset) // self._stride), self._stride

    def _window(self, slot: int) -> Window | SharedWindow:
        if self.writable:
            return Window(self._descriptor, self.start_of(slot), self._stride, tells=self._tells)
        return SharedWindow(self.bytes, self.start_of(slot), self._stride)

    def show(self, slot: int, used: int) -> None:
        """A batch of ``used`` bytes has come in that slot: its window shows them, whatever was written there before.

        It is done now, when the daemon has written all of them, and not when the slot is given back: what copies pages on its own accord
        (a process that locks all its memory) copies the right bytes from here on.

        Raises:
            FailedPrecondition: it cannot be done.
            ResourceExhausted: the slot cannot be mapped.
        """
        if not self._shown[slot]:
            try:
                self._map.show(self.start_of(slot), self._stride, populate=not self.writable)
            except OSError as why:
                raise ResourceExhausted(f"mapping {self._stride} bytes of shared memory: {why.strerror}") from why
            self._shown[slot] = True
        if self.windows[slot].fresh(used):
            self._written = True

    def given_back(self, slot: int, used: int) -> None:
        """Nobody looks at that slot any more. Copies go now where there are some as a rule: memory is free earlier, batches show sooner."""
        if self._written:
            with contextlib.suppress(FailedPrecondition):  # show() will say so
                self.windows[slot].fresh(used)

    def keep(self, slot: int, window: Window, used: int) -> bool:
        """Makes the bytes of a batch that is alive this process's own; then its slot has another window and can be given back.

        Returns:
            False if it was kept already, or its slot given back.

        Raises:
            OSError: there is no memory for it.
        """
        with self._lock:
            if self.windows[slot] is not window:
                return False
            fresh = self._window(slot)
            if isinstance(fresh, Window):
                fresh.populate()
            window.keep(used)
            self.windows[slot] = fresh
            return True

    def holds(self, slot: int, generation: int) -> bool:
        """Whether the slot is sealed and of that generation right now."""
        if slot >= self.slots:
            return False
        state, _, found = SLOT_HEADER.unpack_from(self._map.memory, SEGMENT_HEADER.size + slot * SLOT_HEADER.size)
        return bool(state == SEALED and found == generation)

    def request_ring(self, size: int, deadline: float) -> int:
        """As ``HandoffConnection.request_ring``. Thread-safe."""
        with self._lock:
            return self._connection.request_ring(size, deadline)

    def say_goodbye(self) -> None:
        """As ``HandoffConnection.say_goodbye``. Thread-safe."""
        self._connection.say_goodbye()

    def after_fork_in_child(self) -> None:
        """Nothing of it is used there."""
        self.forked = True
        self.leases.clear()  # they would be put into a queue of the parent's

    def __del__(self, close: Callable[[int], None] = os.close) -> None:  # its own: at the interpreter's end there may be no module os
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            close(descriptor)
