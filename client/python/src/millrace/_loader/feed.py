"""An epoch whose images the loader takes from a source and sends: a thread of its own reads rows and submits batches ahead.

::

    loop: next() --ids--> [asked] --> thread: rows, ring, Session.submit --> [submitted] --> loop: next()
                                                at most `ahead` batches are in between

It stands where ``Epoch`` stands, for the loader. The thread ends with the loop, however that ends.
"""

from __future__ import annotations

import contextlib
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from millrace._core import full_slots as _full_slots
from millrace._core.batch import Batch
from millrace._core.inbox import Inbox
from millrace._core.session import Session
from millrace._data.columns import Labels, column_of, each_column, selected
from millrace._data.sample_copies import SAMPLE_MASK
from millrace._loader.bad_images import UnreadImage, with_blocks
from millrace._loader.order import Batches, OrderState
from millrace._loader.source_rows import RowBatch, Unread
from millrace._process import exit as _exit
from millrace.errors import DeadlineExceeded, Error, ResourceExhausted, SampleFailed
from millrace.recipe import Fidelity, OnError
from millrace.ring import RING_ALIGNMENT, Ring, RingRoom
from millrace.samples import Sample, Source

_INLINE = 128 << 10  # bytes of a batch that go within the message
_RING = 64 << 20  # at least
_JOIN = 10.0  # seconds
_TOLERATED, _AFTER = 20, 1000  # one image in so many may be bad, once there were so many

_rings: weakref.WeakKeyDictionary[Session, Ring] = weakref.WeakKeyDictionary()


class Submitting(NamedTuple):
    """How batches are submitted.

    Attributes:
        seed: of the random choices.
        epoch: likewise.
        on_error: None: as with epochs, by default.
        fidelity: as for ``Session.submit``.
        shuffled: what ``on_error`` None depends on.
    """

    seed: int
    epoch: int
    on_error: OnError | None
    fidelity: Fidelity
    shuffled: bool


class _Submitted(NamedTuple):
    number: int
    keys: list[int]
    labels: Labels
    state: OrderState | None
    unread: Mapping[int, Unread]


class _Stopped(Exception):
    """Nobody wants any more of it."""


@dataclass
class _Between:
    """What is between the loop and the thread. Thread-safe."""

    ahead: int
    changed: threading.Condition = field(default_factory=threading.Condition)
    asked: deque[tuple[NDArray[np.int64], NDArray[np.uint64] | None]] = field(default_factory=deque)
    all_asked: bool = False
    submitted: deque[_Submitted] = field(default_factory=deque)
    ended: bool = False
    failed: BaseException | None = None
    stopped: bool = False
    cut: bool = False  # the thread ended for nobody wanted any more

    def wake(self, inbox: Inbox) -> None:
        with self.changed:
            if inbox.ended:  # a loop that goes no further may never look
                self.stopped = True
            self.changed.notify_all()

    def wait_until(self, ready: Callable[[], bool]) -> None:
        """In the thread. Raises _Stopped."""
        with self.changed:
            self.changed.wait_for(lambda: self.stopped or ready())
        if self.stopped:
            raise _Stopped

    def take_asked(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.uint64] | None]]:
        """In the thread: what the loop asks for."""
        while True:
            self.wait_until(lambda: bool(self.asked) or self.all_asked)
            if not self.asked:
                return
            yield self.asked.popleft()

    def end(self, why: BaseException | None) -> None:
        with self.changed:
            self.ended, self.failed = True, why
            self.changed.notify_all()


class Feed:
    """Batches of a source, in order. Belongs to the loop's thread."""

    def __init__(
        self,
        session: Session,
        rows: Callable[[Iterator[Any]], Iterator[RowBatch]],
        batches: Batches | None,
        how: Submitting,
        convert: Callable[[Batch, Labels], Any],
        names: Callable[[int], tuple[str, ...]],
        timeout: float,
        stop: threading.Event,
    ) -> None:
        """Begins.

        Args:
            session: in which batches are made; no other loop's.
            rows: makes the rows of what is asked for (``_Between.take_asked``); called and iterated in the thread.
            batches: what to ask for; None: the rows come as they come.
            how: see ``Submitting``.
            convert: what becomes ``Batch.prepared``.
            names: of so many values of a row.
            timeout: seconds to wait for a batch.
            stop: is set once nobody wants rows any more, for what waits for them.
        """
        self._stop = stop
        self._session, self._batches, self._how, self._convert, self._timeout = session, batches, how, convert, timeout
        self._between = _Between(session.slots)
        self._images = self._bad = 0
        self._wake = partial(self._between.wake, session._inbox)
        self._stopped = False
        session._inbox.watch(self._wake)
        work = _Work(session, self._between, how, names)
        self._thread = threading.Thread(target=work.run, args=(rows,), name="millrace-feed", daemon=True)
        self._thread.start()
        _exit.register(self)
        self.state: OrderState | None = batches.state if batches is not None else None
        """After the batch that came last."""

    def next(self) -> Batch | None:
        """The next batch; None at the end.

        Raises:
            SampleFailed: as ``Epoch.next``.
            DeadlineExceeded: none in time.
            Exception: whatever the source raised, after what it gave before.
        """
        deadline = time.monotonic() + self._timeout
        self._ask()
        began = time.monotonic_ns()
        try:
            submitted = self._take(deadline)
            if submitted is None:
                return None
            take = partial(self._session._inbox.take_batch, submitted.number)
            outcome: Batch | Error = self._session._wait(take, deadline - time.monotonic(), "epoch", _full_slots.ALONE)
        except DeadlineExceeded:
            self._session._inbox.waits.ended_without_batch(began)
            raise
        try:
            if isinstance(outcome, Error):
                raise _with_blocks(outcome, submitted)
            if submitted.unread:
                outcome._errors = with_blocks(outcome.errors, submitted.unread)
            self._session._inbox.waits.note(outcome, began)
            self.state = self._batches.delivered() if self._batches is not None else submitted.state
            self._prepare(outcome, submitted)
            return outcome
        finally:
            del outcome  # an exception's traceback has this frame: they would keep each other, and the slot

    def _ask(self) -> None:
        if self._batches is None:
            return
        between = self._between
        while not between.all_asked and len(between.asked) + len(between.submitted) < between.ahead:
            one = next(self._batches, None)
            with between.changed:
                if one is None:
                    between.all_asked = True
                else:
                    between.asked.append(one)
                between.changed.notify_all()

    def _take(self, deadline: float) -> _Submitted | None:
        between = self._between
        with between.changed:
            while not between.submitted and not between.ended:
                if (end := self._session._inbox.end) is not None:
                    raise end
                left = deadline - time.monotonic()
                if left <= 0:
                    raise DeadlineExceeded(f"epoch: the source gave nothing within {self._timeout:g} s")
                between.changed.wait(min(left, threading.TIMEOUT_MAX))
            if between.submitted:
                found = between.submitted.popleft()
                between.changed.notify_all()
                return found
        if between.failed is not None:
            raise between.failed
        if between.cut and (end := self._session._inbox.end) is not None:
            raise end
        return None

    def _prepare(self, batch: Batch, submitted: _Submitted) -> None:
        self._images += len(submitted.keys)
        self._bad += batch.bad
        if self._how.on_error is None:
            self._tolerate(batch)
        if batch._held is None:
            return
        ids = batch._copied_records()["id"]
        positions = {key: position for position, key in enumerate(submitted.keys)}
        chosen = np.fromiter((positions[key] for key in ids.tolist()), np.int64, len(ids))
        ids &= np.uint64(SAMPLE_MASK)  # the copy, of which batch.ids are made
        batch.prepared = self._convert(batch, each_column(submitted.labels, lambda column: selected(column, chosen)))

    def _tolerate(self, batch: Batch) -> None:
        told = f"; the first: {batch.errors[0]}" if batch.errors else ""
        if batch._held is None:
            raise SampleFailed(f"no image of the batch is good{told}", batch_id=batch.id, sample_errors=batch.errors)
        if self._images >= _AFTER and self._bad * _TOLERATED > self._images:
            raise SampleFailed(f"{self._bad} of {self._images} images are bad{told}; on_error= takes them", sample_errors=batch.errors)

    def stop(self) -> None:
        """Batches that are under way are dropped, and the thread ends. Idempotent."""
        between = self._between
        if self._stopped:
            return
        self._stopped = True
        self.end_at_exit()
        with contextlib.suppress(ValueError):
            self._session._inbox.unwatch(self._wake)
        if threading.current_thread() is not self._thread:
            self._thread.join(_JOIN)
        for submitted in between.submitted:
            self._session._give_up(submitted.number)
        between.submitted.clear()

    def end_at_exit(self) -> None:
        """Tells the thread to end."""
        with self._between.changed:
            self._between.stopped = True
            self._between.changed.notify_all()
        self._stop.set()

    def join(self, timeout: float) -> None:
        """Until the thread has ended."""
        self._thread.join(timeout)


def _with_blocks(failed: Error, submitted: _Submitted) -> Error:
    """The error, or of images in blocks that cannot be read one that says so."""
    failed.sample_errors = errors = with_blocks(failed.sample_errors, submitted.unread)
    if not isinstance(failed, SampleFailed) or not errors or not isinstance(errors[0], UnreadImage):
        return failed
    return SampleFailed(str(errors[0]), batch_id=failed.batch_id, sample_errors=errors)


@dataclass
class _Work:
    """The thread's."""

    session: Session
    between: _Between
    how: Submitting
    names: Callable[[int], tuple[str, ...]]

    def run(self, rows: Callable[[Iterator[Any]], Iterator[RowBatch]]) -> None:
        why: BaseException | None = None
        between = self.between
        try:
            given = rows(between.take_asked())
            with contextlib.closing(given):  # type: ignore[type-var]
                while True:
                    between.wait_until(lambda: len(between.submitted) < between.ahead)
                    batch = next(given, None)
                    if batch is None:
                        break
                    self._submit(batch)
        except _Stopped:
            between.cut = True
        except BaseException as raised:
            why = raised
        between.end(why)

    def _submit(self, batch: RowBatch) -> None:
        values = list(zip(*(row.values for row in batch.rows), strict=True))
        columns = {name: column_of(column, len(batch.rows), name) for name, column in zip(self.names(len(values)), values, strict=True)}
        labels: Labels = columns["label"] if columns.keys() == {"label"} else columns or None
        whole = columns.get("label")
        marks = (
            whole.tolist() if isinstance(whole, np.ndarray) and whole.dtype == np.int64 and whole.ndim == 1 else [None] * len(batch.rows)
        )
        samples = [Sample(source, id=key, label=label) for source, key, label in zip(self._sources(batch), batch.keys, marks, strict=True)]
        how = self.how
        on_error: OnError = how.on_error or ("substitute" if how.shuffled else "skip")
        number = self._again(lambda: self.session.submit(samples, seed=how.seed, epoch=how.epoch, on_error=on_error, fidelity=how.fidelity))
        with self.between.changed:
            if not self.between.stopped:
                self.between.submitted.append(_Submitted(number, batch.keys, labels, batch.state, batch.unread))
                self.between.changed.notify_all()
                return
        self.session._give_up(number)

    def _again(self, ask: Callable[[], Any]) -> Any:
        """What ``ask`` returns, as soon as the daemon has room."""
        while True:
            try:
                return ask()
            except ResourceExhausted:
                with self.between.changed:
                    if self.between.stopped:
                        raise _Stopped from None
                    self.between.changed.wait(0.05)

    def _sources(self, batch: RowBatch) -> list[Source]:
        sizes = [len(row.source) if isinstance(row.source, (bytes, memoryview)) else 0 for row in batch.rows]
        if sum(sizes) <= min(_INLINE, self.session.limits.inline_bytes or 0):
            return [row.source for row in batch.rows]
        total = sum(-(-size // RING_ALIGNMENT) * RING_ALIGNMENT for size in sizes)
        ring = self._ring(total)
        if total > len(ring):
            raise ResourceExhausted(
                f"loader: a batch has {total} bytes of encoded images, and the ring for them {len(ring)}: take a smaller batch_size, or "
                "raise limits.ring in the daemon's settings"
            )
        room = self._again(lambda: ring.allocate(total))
        sources: list[Source] = []
        view, begin = room.view, 0
        for row, size in zip(batch.rows, sizes, strict=True):
            if not isinstance(row.source, (bytes, memoryview)) or not size:
                sources.append(row.source)
                continue
            view[begin : begin + size] = row.source
            sources.append(_Part(room, begin, size))
            begin += -(-size // RING_ALIGNMENT) * RING_ALIGNMENT
        view.release()
        return sources

    def _ring(self, total: int) -> Ring:
        if self.session not in _rings:
            most = self.session.limits.ring_bytes or _RING
            _rings[self.session] = self.session.ring(min(most, max(_RING, 2 * (self.between.ahead + 1) * total)))
        return _rings[self.session]


class _Part(RingRoom):
    """One image's part of a batch's room, which it keeps."""

    __slots__ = ("_whole",)

    def __init__(self, whole: RingRoom, begin: int, length: int) -> None:
        self._whole, self._ring, self.offset, self.length = whole, whole._ring, whole.offset + begin, length
