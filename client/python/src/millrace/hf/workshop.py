"""The session that a processor works with: as large as its batches turn out to be."""

from __future__ import annotations

import threading
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
_FIRST_GUESS = 8 << 20  # bytes of a picture whose size nobody knows yet
_RING_LEAST = 16 << 20


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
        overhead = len(samples) * (RECORD_BYTES + ALIGNMENT) + ALIGNMENT
        most = len(samples) * most_bytes + overhead
        room = min(most, len(samples) * _FIRST_GUESS + overhead)
        while True:
            session = self._open(room, _ring_bytes_of(samples))
            self._check_slots(session)
            try:
                return session.get(session.submit(self._in_ring(samples), recipe=recipe, priority=priority), timeout)
            except ResourceExhausted:
                if self._fixed or session.slot_bytes >= most:
                    raise
                room = min(most, 2 * session.slot_bytes)

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
        if grows:
            self._slot_bytes = room
        self._client = self._client or connect()
        session = self._client.session(slots=self._slots, slot_bytes=self._slot_bytes, name=self._name)
        self._ring = session.ring(self._ring_bytes) if self._ring_bytes else None
        self._session = session
        return session

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
