"""An epoch under way: the daemon shuffles, shards, reads ahead and pushes batches as long as the session has free slots."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any

from millrace._core import full_slots as _full_slots
from millrace._core.batch import Batch
from millrace._core.given_order import GivenOrder
from millrace._core.inbox import PENDING, EpochShape, EpochState, Pending
from millrace._process import exit as _exit
from millrace.errors import Error

if TYPE_CHECKING:
    from millrace._core.dataset import Dataset
    from millrace._core.session import Session

__all__ = ["Epoch", "EpochShape"]


class Epoch:
    """An iterator of ``Batch``, in order. Made by ``Session.epoch``; belongs to one thread.

    A failed batch raises where it would have come; ``next()`` goes on with the one after it. The daemon fills a slot only when it is
    free: a batch (or an array made of it) that is kept keeps its slot. When such batches have held all slots for two seconds of waiting,
    they become copies, with a warning (``SlotsHeld``).
    """

    def __init__(
        self,
        session: Session,
        dataset: Dataset,
        start: Any,
        state: EpochState,
        timeout: float,
        order: GivenOrder | None = None,
    ) -> None:
        self._session = session
        self._dataset = dataset
        self._order = order
        self._start = start
        self._stream: int = start.stream_id
        self._state = state
        self._grace = _full_slots.SHARED  # a loader, whose loop alone takes batches, makes it ALONE
        self.timeout = timeout
        """Seconds that ``next`` waits unless told otherwise."""
        self.position: bytes = start.position
        """After the batch that came last: ``Session.epoch(position=...)`` goes on after it. Empty before the first."""
        session._inbox.stop_without(self, self._stream, state)
        _exit.register_open(self)

    def shape(self, timeout: float | None = None) -> EpochShape:
        """How many batches and samples it has (0 of an order of the caller's own); waits for the daemon's answer.

        Raises:
            InvalidRequest: a field of the request is wrong.
            FailedPrecondition: the position is of another dataset or order.
            Cancelled: the epoch was stopped.
        """
        found: EpochShape | Error = self._session._wait(self._take_shape, self.timeout if timeout is None else timeout, "epoch")
        if isinstance(found, Error):
            raise found
        return found

    def next(self, timeout: float | None = None) -> Batch | None:
        """The next batch; None at the end.

        Raises:
            SampleFailed: that batch has a bad image, with ``on_error="fail"``, or no good one, by default: the epoch goes on with the next
                call. Without a ``batch_id``: too many images are bad, by default, and the epoch is over.
            DeadlineExceeded: none within ``timeout`` seconds (None: the epoch's).
            DaemonUnavailable: it went away, or its root above the dataset did; ``position`` goes on after the last batch.
            InvalidRequest: an item of the caller's own order is no batch; and whatever that order raises, after the batches before it.
        """
        if self._session._forked:
            self._session._check_fork()
        if self._order is not None and not self._state.stopped:
            self._order.top_up()
        arrived: Batch | Error | Pending
        try:
            arrived = self._state.batches.popleft()  # the usual case: it is there
        except IndexError:
            arrived = PENDING
        if isinstance(arrived, Pending):
            patience = self.timeout if timeout is None else timeout
            waits = self._session._inbox.waits
            return self._took(waits.timed(lambda: self._session._wait(self._take_next, patience, "epoch", self._grace)))
        try:
            self._session._inbox.waits.note(arrived, None)
            return self._took(arrived)
        finally:
            del arrived

    def _take_shape(self) -> EpochShape | Error | Pending:
        return self._session._inbox.take_epoch_shape(self._state)

    def _take_next(self) -> Batch | Error | Pending | None:
        return self._session._inbox.take_of_epoch(self._state)

    def _took(self, found: Batch | Error | None) -> Batch | None:
        try:
            if self._order is not None:
                self._count(self._order, found)
            if isinstance(found, Error):
                raise found
            if found is not None:
                found._dataset, found._start = self._dataset, self._start
                if found.position:
                    self.position = found.position
            return found
        finally:
            del found  # an error has this frame in its traceback: they would keep each other, the epoch and its slots

    def _count(self, order: GivenOrder, found: Batch | Error | None) -> None:
        if isinstance(found, Batch) or (found is not None and found.batch_id is not None):
            order.taken()
        elif found is None:
            order.end()

    def stop(self) -> None:
        """Batches that are under way are dropped, and none comes any more. Idempotent, never waits."""
        if not self._state.stopped:
            self._session._stop_epoch(self._stream)  # first: Ctrl-C in between must not leave the daemon at it
            self._state.stop()
        if self._order is not None:
            self._order.close()

    def end_at_exit(self) -> None:
        """As ``stop``."""
        self.stop()

    def __repr__(self) -> str:
        return f"<millrace.Epoch of session {self._session.id}{', stopped' if self._state.stopped else ''}>"

    def __iter__(self) -> Epoch:
        return self

    def __next__(self) -> Batch:
        batch = self.next()
        if batch is None:
            raise StopIteration
        return batch

    def __enter__(self) -> Epoch:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()
