"""The session that a processor works with: as large as its batches turn out to be."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import nullcontext, suppress

from millrace._core.batch import Batch
from millrace._core.session import PATIENCE, Session
from millrace._memory.layout import slot_bytes_of_images
from millrace._process import fork as _fork
from millrace._wire.handoff import left
from millrace._wire.limits import Limits
from millrace.client import Client, connect
from millrace.errors import DeadlineExceeded, ResourceExhausted
from millrace.hf.aside import Abandonment
from millrace.hf.turns import Turns
from millrace.recipe import Priority, Recipe
from millrace.ring import RING_ALIGNMENT, Ring, RingRoom
from millrace.samples import Sample, Source

_FIRST_GUESS = 6 << 20  # bytes of a batch whose size nobody knows yet; four of them fit a container's /dev/shm of 64 MiB
_RING_LEAST = 16 << 20
_INLINE_MOST = 256 << 10  # bytes of images that travel in a message though it takes more: beyond, the ring is quicker
_CONNECTING = 5.0  # seconds at most, as long as the call's deadline is later
_OPENING = 30.0
_RECLAIM = 1.0  # seconds that the daemon may take to get back the memory of a session that was just closed, here or elsewhere


class Workshop:
    """Opens the session when it is needed, and a larger one when a batch does not fit. Thread-safe.

    As many batches as the session has slots are under way at once; who comes later waits, in order. A session is replaced when nobody uses
    it, so that there are never two of them, but for what results keep of an earlier one.
    """

    def __init__(self, client: Client | None, slots: int, slot_bytes: int | None, name: str, address: str | None = None) -> None:
        self._client = client
        self._address = address  # without a client; None: the host's daemon
        self.slots = slots
        """Of the session."""
        self._slot_bytes = slot_bytes or 0
        self._fixed = slot_bytes is not None
        self._name = name
        self._ring_bytes = 0
        self._ring_refused = False  # then messages carry what they can
        self._session: Session | None = None
        self._ring: Ring | None = None
        self._turns = Turns(slots)  # a place is a slot: one to use the session, all of them to replace it
        self._ring_turns = Turns(0)  # a place is a byte
        _fork.register(self)

    def __reduce__(self) -> tuple[type[Workshop], tuple[None, int, int | None, str, str | None]]:
        """A copy, in another process for instance, is a workshop like this one, with no session yet."""
        address = self._client.path if self._client is not None else self._address
        return Workshop, (None, self.slots, self._slot_bytes if self._fixed else None, self._name, address)

    def make(
        self,
        samples: Sequence[Sample | Source],
        recipe: Recipe,
        most_bytes: int,
        priority: Priority,
        deadline: float,
        abandonment: Abandonment,
    ) -> Batch:
        """One batch of ``samples``, each of ``most_bytes`` at most, before ``deadline`` (as of ``time.monotonic``).

        Raises:
            Cancelled: the call was given up.
            SampleFailed: an image cannot be read or decoded, or does not suit the processor.
            ResourceExhausted: it does not fit a slot of the given size, or the daemon's budget.
            DeadlineExceeded: it did not come in time.
        """
        most = slot_bytes_of_images(most_bytes, len(samples))
        room = min(most, _FIRST_GUESS)
        alone = False
        while True:
            abandonment.check()
            with self._turns.alone(deadline) if alone else self._turns.one(deadline):
                abandonment.check()
                if time.monotonic() >= deadline:
                    raise DeadlineExceeded("nothing is begun that can only come too late")
                if alone and not self._suits(room, samples):
                    self._open(room, samples, deadline)
                session = self._session
                if session is not None and self._suits(room, samples):
                    try:
                        return self._made(session, samples, recipe, priority, deadline, abandonment)
                    except _RingInPieces:
                        if alone:  # what fills it has left long ago, but for an exception that somebody keeps
                            self._end()
                    except ResourceExhausted as why:  # before anything was decoded: the headers tell the sizes
                        if self._fixed or why.slot_bytes <= session.slot_bytes:
                            raise
                        room = why.slot_bytes
            alone = True

    @property
    def full(self) -> bool:
        """Whether every slot is in use, by results that are held and by batches that were just taken."""
        session = self._session
        return session is not None and session.leased >= session.slots

    def close(self) -> None:
        """Ends the session once nobody uses it; what it made stays readable."""
        with suppress(DeadlineExceeded), self._turns.alone(time.monotonic() + PATIENCE):
            self._end()
            return
        self._end()  # a call that uses it still gets Cancelled

    def after_fork_in_child(self) -> object:
        """For the child of a fork: the session is the parent's, and so are the turns that its threads had."""
        kept = (self._session, self._ring)
        self._session = self._ring = None
        self._turns = Turns(self.slots)
        return kept

    def _suits(self, room: int, samples: Sequence[Sample | Source]) -> bool:
        session = self._session
        if session is None or session.closed:
            return False
        return (self._fixed or room <= self._slot_bytes) and self._ring_bytes_of(samples, session.limits) <= self._ring_bytes

    def _end(self) -> None:
        session, self._session, self._ring = self._session, None, None
        if session is not None:
            session.close()

    def _open(self, room: int, samples: Sequence[Sample | Source], deadline: float) -> None:
        """REQUIRES: alone."""
        self._end()
        if not self._fixed and room > self._slot_bytes:  # a little more than now, lest the next call is too large again
            self._slot_bytes = max(room, self._slot_bytes * 5 // 4)
        client = self._client
        with nullcontext(client) if client is not None else connect(self._address, min(_CONNECTING, left(deadline))) as connected:
            session = self._opened(connected, room, deadline)
        try:
            self._open_ring(session, samples, deadline)
        except BaseException:
            self._ring_bytes = 0
            session.close()
            raise
        self._ring_turns = Turns(self._ring_bytes)
        self._session = session

    def _open_ring(self, session: Session, samples: Sequence[Sample | Source], deadline: float) -> None:
        needed = self._ring_bytes_of(samples, session.limits)
        if needed > self._ring_bytes:
            allowed = session.limits.ring_bytes
            wanted = max(_RING_LEAST, 2 * needed)
            self._ring_bytes = wanted if allowed is None else max(needed, min(wanted, allowed))
        if not self._ring_bytes:
            return
        try:
            self._ring = session.ring(self._ring_bytes, left(deadline))
        except ResourceExhausted:
            if _ring_bytes_of(samples, session.limits.inline_bytes):
                raise
            self._ring_bytes, self._ring_refused = 0, True

    def _ring_bytes_of(self, samples: Sequence[Sample | Source], limits: Limits) -> int:
        most = limits.inline_bytes
        return _ring_bytes_of(samples, most if most is None or self._ring_refused else min(most, _INLINE_MOST))

    def _opened(self, client: Client, room: int, deadline: float) -> Session:
        reclaimed = min(time.monotonic() + _RECLAIM, deadline)
        while True:
            try:
                timeout = min(_OPENING, left(deadline))
                return client.session(slots=self.slots, slot_bytes=self._slot_bytes, name=self._name, timeout=timeout)
            except ResourceExhausted:
                if not self._fixed and self._slot_bytes > room:
                    self._slot_bytes = room
                elif time.monotonic() >= reclaimed:
                    self._slot_bytes = self._slot_bytes if self._fixed else 0
                    raise
                else:
                    time.sleep(0.01)

    def _made(
        self,
        session: Session,
        samples: Sequence[Sample | Source],
        recipe: Recipe,
        priority: Priority,
        deadline: float,
        abandonment: Abandonment,
    ) -> Batch:
        ring_bytes = self._ring_bytes_of(samples, session.limits)
        with self._ring_turns.some(ring_bytes, deadline) if ring_bytes else nullcontext():
            rooms = self._rooms(samples) if ring_bytes else {}
            number = session.submit([_placed(sample, rooms) for sample in samples], recipe=recipe, priority=priority)
            rooms.clear()  # the session has them now; an exception's traceback would keep them here
            try:
                abandonment.waits_for(session, number)
                return session.get(number, max(0.0, deadline - time.monotonic()))
            except BaseException:
                session._give_up(number)
                raise

    def _rooms(self, samples: Sequence[Sample | Source]) -> dict[int, RingRoom]:
        """Copies of the encoded images in the ring, by the images' ``id()``."""
        rooms: dict[int, RingRoom] = {}
        assert self._ring is not None
        try:
            for source in map(_source_of, samples):
                if isinstance(source, (bytes, bytearray, memoryview)) and id(source) not in rooms:
                    rooms[id(source)] = self._ring.put(source)
        except ResourceExhausted:
            rooms.clear()
            raise _RingInPieces from None
        return rooms


class _RingInPieces(Exception):
    """The ring has enough bytes free, but not in one piece."""


def _source_of(sample: Sample | Source) -> Source:
    return sample.source if isinstance(sample, Sample) else sample


def _placed(sample: Sample | Source, rooms: dict[int, RingRoom]) -> Sample | Source:
    room = rooms.get(id(_source_of(sample)))
    if room is None:
        return sample
    return Sample(room, sample.id, sample.label, sample.box, sample.size) if isinstance(sample, Sample) else room


def _ring_bytes_of(samples: Sequence[Sample | Source], inline_bytes: int | None) -> int:
    """Bytes of ring that the encoded images need, each one once; 0 where they travel in the message, which carries so many of them."""
    encoded = {id(source): source for source in map(_source_of, samples) if isinstance(source, (bytes, bytearray, memoryview))}
    inline = sum(len(source) for source in map(_source_of, samples) if isinstance(source, (bytes, bytearray, memoryview)))
    if inline_bytes is not None and inline <= inline_bytes:
        return 0
    return sum(len(source) + RING_ALIGNMENT for source in encoded.values())
