"""Which samples the batches of an epoch are made of, where the loader says it: by the user's sampler, or by a permutation of its own.

::

    sampler --piece by piece, with private streams--> batches of ids --> the daemon --> the loop
                                                      CRC after each     counted

What is drawn ahead does not count: a state is where the sampler was when the epoch began, and how many batches the loop has got. From
there it is drawn anew, and the CRC of the ids tells whether that gave the same order.
"""

from __future__ import annotations

import itertools
import operator
import zlib
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from millrace._core.given_order import OrderedBatch
from millrace._data.sample_copies import Copies
from millrace._loader import random_streams as _streams
from millrace._loader.random_streams import Streams
from millrace._loader.ranks import Ranks
from millrace.errors import FailedPrecondition, InvalidRequest

_PIECES = (2, 4, 8, 16, 32)  # batches that are drawn together: the first ones come soon, later ones cost little
_DEEP = 4


class OrderState(NamedTuple):
    """Where an epoch's order is.

    Attributes:
        begun: where its source was when the epoch began: plain values and arrays.
        taken: batches that the loop has got.
        crc: of their ids.
    """

    begun: Mapping[str, Any]
    taken: int = 0
    crc: int = 0

    def plain(self) -> dict[str, Any]:
        """For ``state_dict``."""
        return {"begun": _streams.to_plain(self.begun), "taken": self.taken, "crc": self.crc}

    @staticmethod
    def of(state: Any) -> OrderState:
        """What ``plain()`` gave.

        Raises:
            InvalidRequest: it is damaged.
        """
        try:
            return OrderState(dict(_streams.from_plain(state["begun"])), operator.index(state["taken"]), operator.index(state["crc"]))
        except KeyError as why:
            raise InvalidRequest(f"its order has no {why}") from why
        except (TypeError, ValueError, zlib.error) as why:
            raise InvalidRequest(f"its order is none: {why}") from why


class Batches:
    """The batches of one epoch: an iterator of ids, int64 [n]; ``keys`` has what keys the random choices. Belongs to the loop's thread."""

    def __init__(self, pieces: Iterator[Sequence[NDArray[np.int64]]], begun: Mapping[str, Any], copies: Copies | None) -> None:
        self._ids = itertools.chain.from_iterable(pieces)
        self._copies = copies
        self._crc = 0  # of all that were drawn
        self._crcs: deque[int] = deque()  # after each batch that was drawn and not delivered
        self.state = OrderState(begun)
        """After the batch that the loop got last."""

    def __iter__(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.uint64] | None]]:
        return self

    def __next__(self) -> tuple[NDArray[np.int64], NDArray[np.uint64] | None]:
        ids = next(self._ids)
        self._crc = zlib.crc32(ids.astype("<i8").tobytes(), zlib.crc32(len(ids).to_bytes(8, "little"), self._crc))
        self._crcs.append(self._crc)
        return ids, self._copies.keys(ids) if self._copies is not None else None

    def requests(self) -> Iterator[NDArray[np.int64] | OrderedBatch]:
        """For ``Session.epoch``."""
        for ids, keys in self:
            yield ids if keys is None or np.array_equal(keys, ids) else OrderedBatch(ids, keys)

    def delivered(self) -> OrderState:
        """The loop has got one more."""
        self.state = OrderState(self.state.begun, self.state.taken + 1, self._crcs.popleft())
        return self.state

    def skip(self, to: OrderState) -> None:
        """Goes on after what another loop had got.

        Raises:
            FailedPrecondition: that was something else.
        """
        for _ in range(to.taken):
            if next(self, None) is None:
                break
            self.delivered()
        if (self.state.taken, self.state.crc) != (to.taken, to.crc):
            raise FailedPrecondition(
                f"load_state_dict: the sampler gave another order than when the state was saved (looked at: its first {to.taken} batches): "
                "make the loader with the same batch_size and samples, and the sampler with a generator or a seed; a state is of the rank "
                "that saved it"
            )


@dataclass
class SamplerOrder:
    """The order of the user's ``sampler``, or ``batch_sampler``. Belongs to the loader's thread."""

    sampler: Any
    batch_sampler: Any
    batch_size: int
    drop_last: bool

    def __post_init__(self) -> None:
        self._epochs = [getattr(sampler, "epoch", None) for sampler in self._epochal()]  # as they were seen last, or set

    @property
    def source(self) -> Any:
        """What is iterated."""
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    def samples(self) -> int:
        """Of an epoch. Raises TypeError if a sampler does not say it."""
        if self.batch_sampler is not None:
            raise TypeError("loader: how many samples a batch_sampler gives is not known; len(loader) is its number of batches")
        return len(self.sampler)

    def batches(self) -> int:
        """Of an epoch. Raises TypeError if a sampler does not say it."""
        if self.batch_sampler is not None:
            return len(self.batch_sampler)
        full, rest = divmod(len(self.sampler), self.batch_size)
        return full + (rest > 0 and not self.drop_last)

    def set_epoch(self, epoch: int) -> None:
        """Passes it on to the samplers that want to know."""
        for position, sampler in enumerate(self._epochal()):
            sampler.set_epoch(epoch)
            self._epochs[position] = getattr(sampler, "epoch", None)

    def begin(self, epoch: int, resumed: OrderState | None, samples: int, ranks: Ranks) -> Batches:
        """The batches of an epoch.

        Args:
            epoch: its number.
            resumed: goes on from there; None: from the start.
            samples: of the dataset.
            ranks: of this process, for the random choices.

        Raises:
            FailedPrecondition: the sampler gives another order than it gave then.
            InvalidRequest: it gives something that is no sample, or too many at once. These, and the sampler's own, come in ``next``, too.
        """
        own = _streams.own_streams(self.source)
        if resumed is not None:
            self._set(own, resumed.begun)
        else:
            self._follow(epoch)
        streams = Streams(None if resumed is None else resumed.begun.get("streams"))
        begun = {**self._own_state(own), "streams": dict(streams.states)}
        batches = Batches(self._pieces(streams, samples), begun, Copies(samples, *ranks))
        if resumed is not None:
            batches.skip(resumed)
        return batches

    def resting(self) -> OrderState:
        """Between two epochs."""
        return OrderState(self._own_state(_streams.own_streams(self.source)))

    def _own_state(self, own: Mapping[str, Any]) -> dict[str, Any]:
        state: dict[str, Any] = {"own": _streams.states_of(own), "epochs": [getattr(each, "epoch", None) for each in self._epochal()]}
        if self._is_stateful():
            state["sampler"] = self.source.state_dict()
        return state

    def _set(self, own: Mapping[str, Any], begun: Mapping[str, Any]) -> None:
        try:
            if (
                begun["own"].keys() != own.keys()
                or len(begun["epochs"]) != len(self._epochs)
                or ("sampler" in begun) != self._is_stateful()
            ):
                raise FailedPrecondition("loader: the state was saved with another sampler, or by a loader without one")
            for name, stream in own.items():
                _streams.set_state(stream, begun["own"][name])
            for position, (sampler, epoch) in enumerate(zip(self._epochal(), begun["epochs"], strict=True)):
                if epoch is not None:
                    sampler.set_epoch(epoch)
                    self._epochs[position] = epoch
        except (KeyError, TypeError, ValueError, RuntimeError) as why:
            raise FailedPrecondition(f"loader: the state was saved with another sampler: {why!r}") from why
        if "sampler" in begun:
            self.source.load_state_dict(begun["sampler"])

    def _is_stateful(self) -> bool:
        return all(callable(getattr(self.source, name, None)) for name in ("state_dict", "load_state_dict"))

    def _epochal(self) -> list[Any]:
        found, sampler = [], self.source
        for _ in range(_DEEP):
            if callable(getattr(sampler, "set_epoch", None)):
                found.append(sampler)
            sampler = getattr(sampler, "sampler", None)
        return found

    def _follow(self, epoch: int) -> None:
        """Tells samplers the loader's epoch, but not those to whom somebody else has told one."""
        for position, sampler in enumerate(self._epochal()):
            if getattr(sampler, "epoch", None) == self._epochs[position]:
                sampler.set_epoch(epoch)
                self._epochs[position] = getattr(sampler, "epoch", None)

    def _pieces(self, streams: Streams, samples: int) -> Iterator[list[NDArray[np.int64]]]:
        with streams.drawn():
            given = iter(self.source)
        for most in itertools.chain(_PIECES, itertools.repeat(_PIECES[-1])):
            piece: list[NDArray[np.int64]] = []
            why: BaseException | None = None
            with streams.drawn():
                try:
                    while len(piece) < most and (ids := self._one(given, samples)) is not None:
                        piece.append(ids)
                except Exception as raised:  # after what came before it
                    why = raised
            yield piece
            try:
                if why is not None:
                    raise why
            finally:
                del why  # it has this frame in its traceback: they would keep each other, and the epoch
            if len(piece) < most:
                return

    def _one(self, given: Iterator[Any], samples: int) -> NDArray[np.int64] | None:
        if self.batch_sampler is None:
            found = list(itertools.islice(given, self.batch_size))
            if not found or (self.drop_last and len(found) < self.batch_size):
                return None
        else:
            try:
                found = list(next(given))
            except StopIteration:
                return None
            if not 0 < len(found) <= self.batch_size:
                raise InvalidRequest(
                    f"loader: batch_sampler gave a batch of {len(found)}; batch_size={self.batch_size} is the most, 1 the least"
                )
        try:
            ids = np.fromiter(map(operator.index, found), np.int64, len(found))
        except (TypeError, OverflowError) as why:
            raise InvalidRequest(f"loader: the sampler gave something that is no sample's number: {why}") from why
        if ids.min() < 0 or ids.max() >= samples:
            wrong = int(ids[(ids < 0) | (ids >= samples)][0])
            raise InvalidRequest(f"loader: the sampler gave the sample {wrong}; the dataset's are 0 to {samples - 1}")
        return ids
