"""An epoch's order as its caller says it, taken ahead of the batches and sent to the daemon in pieces."""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from millrace._wire import schema as _schema
from millrace.errors import InvalidRequest

_AHEAD = 8  # batches that the daemon should know of at the least; twice as many at the most
_NUMBERS = 16_384  # samples of a message, after which another begins: with one more batch it is below what a daemon takes
_AT_ONCE = 0.02  # seconds in which the order is taken ahead; then the loop goes on with what there is
_UNSET = {"shuffle": False, "drop_last": False, "rank": 0, "world_size": 1, "shard_tail": 1, "position": b"", "first_batches": 0}


class OrderedBatch(NamedTuple):
    """One batch of an order of one's own (``Session.epoch(order=...)``), with what its random choices are drawn by."""

    samples: Sequence[int] | NDArray[Any]
    """Numbers of the dataset's samples; one may come more than once."""
    draws: Sequence[int] | NDArray[Any] | None = None
    """As many: random choices depend on (seed, epoch, this) and not on the sample's number. So a sample that comes twice in an epoch
    may get two crops. None: by the samples' numbers."""


class GivenOrder:
    """Of one epoch. Belongs to the thread that takes the epoch's batches."""

    def __init__(self, order: Iterable[Any], start: Any, samples: int, slots: int, send: Callable[[Any], None]) -> None:
        """Takes nothing yet.

        Args:
            order: batches: sequences of sample numbers, or ``OrderedBatch``.
            start: the epoch's ``StartEpoch``, which is made one whose order is given.
            samples: of the dataset.
            slots: of the session.
            send: takes a ``ClientMessage``.

        Raises:
            InvalidRequest: the order is none, or ``start`` says something that is for the daemon's own.
        """
        if not isinstance(order, Iterable):
            raise InvalidRequest(f"epoch: an order is batches of sample numbers, one after the other, not a {type(order).__name__}")
        _mark_given(start)
        self._order: Iterator[Any] = iter(order)
        self._stream, self._samples, self._most, self._send = start.stream_id, samples, start.batch_size, send
        self._ahead = max(_AHEAD, 2 * slots)
        self._open = 0  # batches that the daemon knows of and that were not taken
        self._ended = self._closed = False
        self._failed: Exception | None = None

    def top_up(self) -> None:
        """Sends more of the order if the daemon knows of few; of an order that takes its time, what there is by then.

        What was taken of the order is sent in any case: also if it is interrupted (Ctrl-C), which comes out of here.
        """
        enough = self._ahead
        until = time.monotonic() + _AT_ONCE
        while not self._ended and self._open < enough:
            self._send_some(until)
            enough = 2 * self._ahead if time.monotonic() < until else 1

    def _send_some(self, until: float) -> None:
        message = _schema.ClientMessage()
        given = message.give_batches
        given.stream_id = self._stream
        try:
            while self._open + len(given.sizes) < 2 * self._ahead and len(given.samples) < _NUMBERS:
                self._add(given, next(self._order))
                if time.monotonic() >= until:
                    break
        except StopIteration:
            self._ended = given.last = True
        except Exception as why:
            self._ended = given.last = True
            self._failed = why
        finally:
            self._open += len(given.sizes)
            if given.sizes or given.last:
                self._send(message)

    def end(self) -> None:
        """All batches before the order's end have come.

        Raises:
            InvalidRequest: an item of it is no batch; says which.
            Exception: what the caller's iterable raised.
        """
        failed, self._failed = self._failed, None
        try:
            if failed is not None:
                raise failed
        finally:
            del failed  # it has this frame in its traceback: they would keep each other, and what the frames before it hold

    def close(self) -> None:
        """Nothing is taken from it any more; a generator is told so, unless it is at work just now, in this thread or another."""
        self._ended, self._failed = True, None
        if not self._closed and not getattr(self._order, "gi_running", False):
            self._closed = True
            if isinstance(self._order, Generator):
                self._order.close()

    def taken(self) -> None:
        """A batch of it has come, or has failed."""
        self._open -= 1

    def _add(self, given: Any, batch: Any) -> None:
        samples, draws = batch if isinstance(batch, OrderedBatch) else (batch, None)
        numbers = _numbers(samples, "a batch of the order is a sequence of sample numbers")
        if not 0 < len(numbers) <= self._most:
            raise InvalidRequest(f"epoch: a batch of the order has {len(numbers)} samples; it must have 1 to {self._most}")
        if min(numbers) < 0 or max(numbers) >= self._samples:
            wrong = min(numbers) if min(numbers) < 0 else max(numbers)
            raise InvalidRequest(f"epoch: the order has sample {wrong}; the dataset's are 0 to {self._samples - 1}")
        keys = numbers if draws is None else _numbers(draws, "an OrderedBatch's draws are integers")
        if len(keys) != len(numbers):
            raise InvalidRequest(f"epoch: an OrderedBatch has {len(numbers)} samples and {len(keys)} draws")
        if given.draws or draws is not None:
            if not given.draws:
                given.draws.extend(given.samples)  # of the batches before it in this message
            given.draws.extend(key % 2**64 for key in keys)
        given.sizes.append(len(numbers))
        given.samples.extend(numbers)


def _mark_given(start: Any) -> None:
    for name, unset in _UNSET.items():
        if getattr(start, name) != unset:
            told = "batches" if name == "first_batches" else name
            raise InvalidRequest(f"epoch: {told} is not for an order of your own, which says all by itself; leave it out")
        start.ClearField(name)
    start.given = True


def _numbers(given: Any, rule: str) -> list[int]:
    try:
        if isinstance(given, np.ndarray):
            if given.ndim != 1 or given.dtype.kind not in "iu":
                raise TypeError(f"an array of {given.dtype} with the shape {given.shape}")
            numbers: list[int] = given.tolist()
            return numbers
        return [operator.index(number) for number in given]
    except TypeError as why:
        raise InvalidRequest(f"epoch: {rule}: {why}") from why
