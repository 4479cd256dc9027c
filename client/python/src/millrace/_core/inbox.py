"""What the daemon has sent a session and was not taken yet, and who waits for it.

The wire's reader delivers; the waiters are woken: threads by a bell, event loops by a callback. Thread-safe. The destructors
of what it holds (leases, room in the ring) take no lock, so they may run while its own is held.
"""

from __future__ import annotations

import math
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from millrace._core.batch import Batch
from millrace._core.full_slots import FullSlots
from millrace._core.waits import Waits
from millrace._memory.layout import RECORD
from millrace._memory.lease import Held, LeaseEnd, Outgoing
from millrace._memory.segment import Segment
from millrace._process.wakeup import Bell
from millrace._process.warn import warn
from millrace._wire.daemon_knowledge import DaemonKnowledge
from millrace._wire.messages import failure
from millrace.errors import Cancelled, DeadlineExceeded, Error, FailedPrecondition, InternalError, NotFound, SlotsWithdrawn
from millrace.recipe import Recipe
from millrace.ring import RingRoom

T = TypeVar("T")
Outcome = Batch | Error


class EpochShape(NamedTuple):
    """How long an epoch is, for this rank."""

    batches: int
    """In all."""
    first_batch: int
    """0, or where the position resumes."""
    samples: int
    """In all."""


class Pending:
    """The answer of a ``take`` that has nothing yet."""


PENDING = Pending()


@dataclass
class _Expected:
    recipe: Recipe
    rooms: list[RingRoom]  # free again once the batch has ended


class EpochEnd(weakref.ref[Any]):
    """Goes into ``Outgoing`` when its ``Epoch`` is gone, and becomes a StopEpoch message there, unless the epoch is over.

    A reference with a callback for the same reason as ``LeaseEnd``.
    """

    __slots__ = ("stream",)

    stream: int


@dataclass(eq=False)
class EpochState:
    """What has arrived of one epoch. Its owner takes from ``batches`` without a lock; the rest is the inbox's."""

    recipe: Recipe
    prepare: Callable[[Batch], Any] | None = None
    batches: deque[Outcome] = field(default_factory=deque)
    shape: EpochShape | None = None
    failed: Error | None = None
    ended: bool = False
    stopped: bool = False
    end: EpochEnd | None = None  # has to live as long as the epoch may go on

    def stop(self) -> None:
        """Nobody takes its batches any more."""
        self.stopped = True
        self.batches.clear()


@dataclass
class _DatasetState:
    files: int = 0
    answer: Any = None  # DatasetOpened or Error


class Inbox:
    """See the module."""

    def __init__(self, segment: Segment, outgoing: Outgoing, knowledge: DaemonKnowledge) -> None:
        self._segment: Segment | None = segment
        self.slots: int = segment.slots
        """That the session has, or will have when all are filled."""
        self._withdrawn: str | None = None  # why they are fewer, until that was told
        self._outgoing = outgoing
        self._lock = threading.Lock()
        self._bells: set[Bell] = set()  # of those that wait for a change
        self._watchers: list[Callable[[], None]] = []
        self._attached = False
        self._end: Error | None = None
        self._under_way: dict[int, _Expected] = {}
        self._done: dict[int, Outcome] = {}  # in the order in which they ended
        self._arriving = False  # a batch holds its slot, but is not among the above yet
        self._full = FullSlots(outgoing)
        self.waits = Waits(knowledge)
        self._epochs: dict[int, EpochState] = {}
        self._not_all_taken: weakref.WeakSet[EpochState] = weakref.WeakSet()  # and those that have ended, but are taken from
        self._datasets: dict[int, _DatasetState] = {}
        self._questions: dict[int, Any] = {}  # by id: SampleFiles or Error; None: no answer yet

    # --------------------------------------------------------------------------------------------------- by the wire's reader

    def deliver(self, message: Any) -> None:
        """Takes one ``ServerMessage``; those that nobody waits for any more are dropped, their slots given back."""
        kind = message.WhichOneof("message")
        content: Any = getattr(message, kind) if kind else None
        self._arriving = kind == "completed"
        built = self._build(content) if kind == "completed" else None
        with self._lock:
            self._arriving = False
            if built is not None:
                self._file(content.stream_id, content.batch_id, built)
            elif kind == "failed":
                self._fail(content)
            elif kind == "epoch_started" and content.stream_id in self._epochs:
                shape = EpochShape(content.batches, content.first_batch, content.samples)
                self._epochs[content.stream_id].shape = shape
            elif kind == "epoch_ended" and content.stream_id in self._epochs:
                self._epochs.pop(content.stream_id).ended = True
            elif kind == "dataset_opened" and content.dataset_id in self._datasets:
                self._datasets[content.dataset_id].answer = content
            elif kind == "dataset_progress" and content.dataset_id in self._datasets:
                self._datasets[content.dataset_id].files = content.files
            elif kind == "sample_files" and content.question_id in self._questions:
                self._questions[content.question_id] = content
            elif kind == "slots_withdrawn":
                self._withdraw(content)
            elif kind == "attached":
                self._attached = True
            self._wake()

    def _withdraw(self, withdrawn: Any) -> None:
        self._withdrawn = f"the session has {withdrawn.slots} slots and not {self.slots}: {withdrawn.message}"
        self.slots = min(self.slots, withdrawn.slots)
        if self._segment is not None:
            self._segment.slots = self.slots

    def close(self, why: Error, *, wake: bool = True) -> None:
        """Nothing comes any more. What is there can still be taken. ``wake`` False: a caller that waits already goes on waiting."""
        with self._lock:
            self._end = self._end or why
            self._under_way.clear()
            if wake:
                self._wake()

    def drop(self) -> None:
        """Lets go of all that was not taken, and of the segment. After ``close``."""
        with self._lock:
            self._done.clear()
            for state in self._epochs.values():
                state.batches.clear()
            self._segment = None

    def _wake(self) -> None:
        for bell in self._bells:
            bell.ring()
        self._bells.clear()
        for watcher in self._watchers:
            watcher()

    def _build(self, completed: Any) -> Outcome:
        epoch = self._epochs.get(completed.stream_id)
        expected = epoch or self._under_way.get(completed.batch_id)
        segment, held = self._segment, None
        try:
            if completed.HasField("handle"):
                handle = completed.handle
                if segment is None:
                    return Cancelled("the session was closed", batch_id=completed.batch_id)
                if handle.segment != (segment.device_memory is not None):  # by number: 0 is the host's
                    return InternalError(
                        f"the batch is in memory {handle.segment} of the session; please report it with the daemon's version"
                    )
                end = handle.records_offset + handle.samples * RECORD.itemsize
                held = Held(segment, self._outgoing, handle.slot, handle.generation, end)
            batch = Batch(completed, held, expected.recipe if expected else Recipe())
            if epoch is not None and epoch.prepare is not None and held is not None and not epoch.stopped:
                batch.prepared = epoch.prepare(batch)
        except Error as why:
            return why
        except Exception as why:  # of the caller's prepare; it must not end the reader's thread
            failed = Error(f"preparing batch {completed.batch_id} failed: {why!r}", batch_id=completed.batch_id)
            failed.__cause__ = why
            return failed
        return batch

    def _fail(self, failed: Any) -> None:
        subject = failed.WhichOneof("subject")
        if subject == "batch_id":
            self._file(failed.epoch_stream_id, failed.batch_id, failure(failed, failed.batch_id))
        if subject == "dataset_id" and failed.dataset_id in self._datasets:
            self._datasets[failed.dataset_id].answer = failure(failed)
        elif subject == "question_id" and failed.question_id in self._questions:
            self._questions[failed.question_id] = failure(failed)
        elif subject == "stream_id" and failed.stream_id in self._epochs:
            self._epochs.pop(failed.stream_id).failed = failure(failed)

    def _file(self, stream: int, batch: int, outcome: Outcome) -> None:
        if stream:
            epoch = self._epochs.get(stream)
            if epoch is None:
                return
            epoch.batches.append(outcome)
            if epoch.stopped:  # asked after the append: stop() may have come in between
                epoch.batches.clear()
        elif self._under_way.pop(batch, None) is not None:
            self._done[batch] = outcome

    # -------------------------------------------------------------------------------------------------------------- by waiters

    def wait(self, take: Callable[[], T | Pending], timeout: float, what: str, grace: float | None = None) -> T:
        """What ``take`` (one of those below, called under the lock) has, as soon as it has it.

        ``grace`` is for what needs a slot to come, see full_slots.py.

        Raises:
            DeadlineExceeded: nothing within ``timeout`` seconds.
            DaemonUnavailable and other Errors: why nothing comes any more.
        """
        deadline = time.monotonic() + timeout
        held: list[LeaseEnd] = []
        while True:
            self.tell()
            found = self._look_until(take, min(deadline, time.monotonic() + self.pause(grace)))
            if not isinstance(found, Pending):
                return found
            if time.monotonic() >= deadline:
                raise self.too_late(timeout, what)
            held = self.relieve(held)

    def _look_until(self, take: Callable[[], T | Pending], end: float) -> T | Pending:
        bell = Bell()
        while True:
            with self._lock:
                found = self._look(take)
                left = end - time.monotonic()
                if not isinstance(found, Pending) or left <= 0:
                    self._bells.discard(bell)
                    return found
                self._bells.add(bell)
            bell.wait(left)

    def tell(self) -> None:
        """Warns, once, if slots were withdrawn. For the waiter, before it takes anything: the warning may be an error."""
        if self._withdrawn is not None:
            with self._lock:
                why, self._withdrawn = self._withdrawn, None
            if why is not None:
                warn(why, SlotsWithdrawn)

    def pause(self, grace: float | None) -> float:
        """Seconds after which the waiter calls ``relieve``."""
        return math.inf if grace is None else self._full.pause(grace)

    def relieve(self, before: list[LeaseEnd]) -> list[LeaseEnd]:
        """Makes room if batches that were taken hold all slots, and have since the call that returned ``before``."""
        held, segment = self._taken_of_full(), self._segment
        if segment is not None and held and held == before:
            self._full.relieve(segment, held)
        return held

    def all_taken(self) -> bool:
        """Whether batches that were taken, and arrays, hold every slot, so that nothing comes before one is let go of."""
        segment = self._segment
        return segment is not None and len(self._taken_of_full()) >= segment.slots

    def _taken_of_full(self) -> list[LeaseEnd]:
        """If the leases of this process hold every slot: those whose batch was taken, the oldest first; else none."""
        with self._lock:
            if self._segment is None or self._arriving:
                return []
            ends = list(self._segment.leases)
            leases = [end() for end in ends]
            if len(ends) < self._segment.slots or any(lease is None for lease in leases):
                return []  # a slot is free, or on its way back
            waiting = [outcome for state in self._not_all_taken for outcome in state.batches.copy()] + list(self._done.values())
            untaken = [outcome._held for outcome in waiting if isinstance(outcome, Batch) and outcome._held is not None]
            return [end for end, lease in zip(ends, leases, strict=True) if not any(held.is_of(lease) for held in untaken)]

    def look(self, take: Callable[[], T | Pending]) -> T | Pending:
        """As ``wait``, without waiting: ``PENDING`` if there is nothing yet."""
        with self._lock:
            return self._look(take)

    def _look(self, take: Callable[[], T | Pending]) -> T | Pending:
        found = take()
        if isinstance(found, Pending) and self._end is not None:
            raise _again(self._end)
        return found

    def too_late(self, timeout: float, what: str) -> DeadlineExceeded:
        """The exception for waiting in vain, which says so when the caller holds every slot itself."""
        text, segment = f"{what}: nothing came within {timeout:g} s", self._segment
        ends = list(segment.leases) if segment is not None else []
        if segment is None or len(ends) < segment.slots:
            return DeadlineExceeded(text)
        queued = sum(end() is None and bool(end.streams) for end in ends)
        if queued:
            return DeadlineExceeded(
                f"{text}; no slot of the session is free: the GPU is at work on {queued} of {segment.slots} that nobody refers to any "
                "more, or waits; look at what is queued on the streams that were given them"
            )
        return DeadlineExceeded(
            f"{text}; this process holds all {segment.slots} slots of the session in batches and arrays that are alive: "
            "release them, copy what is to be kept, or open the session with more slots"
        )

    def watch(self, watcher: Callable[[], None]) -> None:
        """Calls ``watcher`` (which must not block) after every arrival, from the reader's thread."""
        with self._lock:
            self._watchers.append(watcher)

    def unwatch(self, watcher: Callable[[], None]) -> None:
        """Ends ``watch``."""
        with self._lock:
            self._watchers.remove(watcher)

    @property
    def ended(self) -> bool:
        """Whether nothing comes any more."""
        return self._end is not None

    @property
    def end(self) -> Error | None:
        """Why nothing comes any more; None while something may."""
        return _again(self._end) if self._end is not None else None

    # ----------------------------------------------------------------------------------------- what is expected, what is taken

    def take_attached(self) -> bool | Pending:
        """Whether the daemon has answered the stream's first message."""
        return True if self._attached else PENDING

    def expect_batch(self, batch: int, recipe: Recipe, rooms: list[RingRoom]) -> None:
        """A batch is about to be asked for."""
        with self._lock:
            self._under_way[batch] = _Expected(recipe, rooms)

    def forget_batch(self, batch: int) -> bool:
        """Nobody takes it any more; its slot goes back once it has come. Whether anybody might have."""
        with self._lock:
            waited = self._under_way.pop(batch, None) is not None
            return self._done.pop(batch, None) is not None or waited

    def take_batch(self, batch: int | None) -> Outcome | Pending:
        """That batch, or the one that ended first."""
        if batch is None:
            if self._done:
                return self._done.pop(next(iter(self._done)))
            if not self._under_way and self._end is None:
                raise FailedPrecondition("get: no submitted batch is under way; submit one first")
            return PENDING
        if batch in self._done:
            return self._done.pop(batch)
        if batch not in self._under_way and self._end is None:
            raise NotFound(f"get: batch {batch} was never submitted here, or was taken already", batch_id=batch)
        return PENDING

    def expect_epoch(self, stream: int, recipe: Recipe, prepare: Callable[[Batch], Any] | None) -> EpochState:
        """An epoch is about to start; ``prepare`` is called with each of its batches in the reader's thread."""
        epoch = EpochState(recipe, prepare)
        with self._lock:
            self._epochs[stream] = epoch
            self._not_all_taken.add(epoch)
        return epoch

    def stop_without(self, epoch: object, stream: int, state: EpochState) -> None:
        """Has the stream's epoch stopped once ``epoch`` is collected."""
        state.end = EpochEnd(epoch, self._outgoing.put)
        state.end.stream = stream

    def leave_epoch(self, end: EpochEnd) -> bool:
        """Nobody has that epoch any more. Whether it goes on, so that the daemon has to be told."""
        with self._lock:
            state = self._epochs.get(end.stream)
        if state is None or state.stopped:
            return False
        state.stop()
        return True

    def take_epoch_shape(self, epoch: EpochState) -> EpochShape | Error | Pending:
        """How long it is."""
        if epoch.stopped:
            return Cancelled("the epoch was stopped")
        return epoch.shape or (_again(epoch.failed) if epoch.failed else PENDING)

    def take_of_epoch(self, epoch: EpochState) -> Outcome | Pending | None:
        """Its next batch; None: it is over; an Error without ``batch_id``: it never began or broke off."""
        if epoch.batches:
            return epoch.batches.popleft()
        if epoch.failed is not None:
            return _again(epoch.failed)
        return None if epoch.ended or epoch.stopped else PENDING

    def expect_dataset(self, dataset: int) -> None:
        """A dataset is about to be opened."""
        with self._lock:
            self._datasets[dataset] = _DatasetState()

    def forget_dataset(self, dataset: int) -> None:
        """Nobody waits for it any more."""
        with self._lock:
            self._datasets.pop(dataset, None)

    def take_dataset(self, dataset: int, told: int) -> Any:
        """The daemon's answer, or the number of files seen so far if it is not ``told``."""
        state = self._datasets[dataset]
        if state.answer is not None:
            return state.answer
        return state.files if state.files != told else PENDING

    def expect_answer(self, question: int) -> None:
        """Something is about to be asked."""
        with self._lock:
            self._questions[question] = None

    def forget_question(self, question: int) -> None:
        """Nobody waits for it any more."""
        with self._lock:
            self._questions.pop(question, None)

    def take_answer(self, question: int) -> Any:
        """The daemon's answer, or an Error."""
        answer = self._questions[question]
        return PENDING if answer is None else answer


def _again(error: Error) -> Error:
    """A fresh exception like ``error``, so that no traceback grows on one that is raised in many places."""
    return type(error)(str(error), batch_id=error.batch_id, sample_errors=error.sample_errors)
