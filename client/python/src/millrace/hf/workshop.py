"""The session that a processor works with: as large as its batches turn out to be."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from millrace.batch import Batch
from millrace.client import Client, connect
from millrace.errors import FailedPrecondition, ResourceExhausted
from millrace.recipe import ALIGNMENT, RECORD_BYTES, Priority, Recipe
from millrace.ring import Ring
from millrace.samples import Sample, Source
from millrace.session import Session

_INLINE_MOST = 1 << 20
_FIRST_GUESS = 8 << 20  # bytes of a batch whose size nobody knows yet
_RING_LEAST = 16 << 20
_RECLAIM = 1.0  # seconds that the daemon may take to get back the memory of a session that was just closed, here or elsewhere


class Workshop:
    """Opens the session when it is needed, and a larger one when a batch does not fit. One caller at a time (``turn``)."""

    def __init__(self, client: Client | None, slots: int, slot_bytes: int | None, name: str) -> None:
        self._client = client
        self._slots = slots
        self._slot_bytes = slot_bytes or 0
        self._fixed = slot_bytes is not None
        self._name = name
        self._ring_bytes = 0
        self._session: Session | None = None
        self._ring: Ring | None = None
        self._lock = threading.Lock()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Calls from several threads take turns."""
        with self._lock:
            yield

    def make(self, samples: Sequence[Sample | Source], recipe: Recipe, most_bytes: int, priority: Priority, timeout: float) -> Batch:
        """One batch of ``samples``, each of ``most_bytes`` at most.

        Raises:
            SampleFailed: an image cannot be read or decoded, or does not suit the processor.
            ResourceExhausted: it does not fit a slot of the given size, or the daemon's budget.
            FailedPrecondition: earlier results hold all slots.
        """
        most = len(samples) * (most_bytes + RECORD_BYTES + ALIGNMENT) + ALIGNMENT
        room = min(most, _FIRST_GUESS)
        while True:
            session = self._open(room, _ring_bytes_of(samples))
            self._check_slots(session)
            try:
                return session.get(session.submit(self._in_ring(samples), recipe=recipe, priority=priority), timeout)
            except ResourceExhausted as why:  # before anything was decoded: the headers tell the sizes
                needed = _room_needed(why)
                if self._fixed or needed <= session.slot_bytes:
                    raise
                room = needed

    def close(self) -> None:
        """Ends the session; what it made stays readable."""
        session, self._session, self._ring = self._session, None, None
        if session is not None:
            session.close()

    def _open(self, room: int, ring_bytes: int) -> Session:
        session = self._session
        grows = not self._fixed and room > self._slot_bytes
        if session is not None and not session.closed and not grows and ring_bytes <= self._ring_bytes:
            return session
        if ring_bytes > self._ring_bytes:
            self._ring_bytes = max(_RING_LEAST, 2 * ring_bytes)
        self.close()
        if grows:  # a little more than now, lest the next call is too large again
            self._slot_bytes = max(room, self._slot_bytes * 5 // 4)
        self._client = self._client or connect()
        session = self._opened(self._client, room)
        self._ring = session.ring(self._ring_bytes) if self._ring_bytes else None
        self._session = session
        return session

    def _opened(self, client: Client, room: int) -> Session:
        reclaimed = time.monotonic() + _RECLAIM
        while True:
            try:
                return client.session(slots=self._slots, slot_bytes=self._slot_bytes, name=self._name)
            except ResourceExhausted:
                if not self._fixed and self._slot_bytes > room:
                    self._slot_bytes = room
                elif time.monotonic() >= reclaimed:
                    self._slot_bytes = self._slot_bytes if self._fixed else 0
                    raise
                else:
                    time.sleep(0.01)

    def _in_ring(self, samples: Sequence[Sample | Source]) -> list[Sample | Source]:
        ring = self._ring
        if ring is None or not _ring_bytes_of(samples):
            return list(samples)
        rooms = {id(source): ring.put(source) for source in map(_source_of, samples) if isinstance(source, (bytes, bytearray, memoryview))}
        return [_with_source(sample, rooms.get(id(_source_of(sample)))) for sample in samples]

    def _check_slots(self, session: Session) -> None:
        if session.leased >= session.slots:
            raise FailedPrecondition(
                f"earlier results hold all {session.slots} slots of the processor's session: drop them, call with copy=True, "
                "or give ImageProcessor.from_config more slots"
            )


def _room_needed(why: ResourceExhausted) -> int:
    """How large the daemon says that a slot must be; 0 where it complains about something else."""
    found = re.search(r"slot_bytes of at least (\d+)", str(why))
    return int(found[1]) if found else 0


def _source_of(sample: Sample | Source) -> Source:
    return sample.source if isinstance(sample, Sample) else sample


def _with_source(sample: Sample | Source, room: Source | None) -> Sample | Source:
    if room is None:
        return sample
    return Sample(room, sample.id, sample.label, sample.box, sample.size) if isinstance(sample, Sample) else room


def _ring_bytes_of(samples: Sequence[Sample | Source]) -> int:
    """Bytes of ring that the encoded images need, each one once; 0 where they travel in the message."""
    encoded = {id(source): source for source in map(_source_of, samples) if isinstance(source, (bytes, bytearray, memoryview))}
    inline = sum(len(source) for source in map(_source_of, samples) if isinstance(source, (bytes, bytearray, memoryview)))
    if inline <= _INLINE_MOST:
        return 0
    return sum(len(source) + ALIGNMENT for source in encoded.values())
