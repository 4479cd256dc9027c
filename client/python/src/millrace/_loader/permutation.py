"""The order of datasets whose rows the loader takes itself by number.

Documented, so that others can draw it: row ``i`` of an epoch has the key ``mix(i + mix(seed + mix(epoch)))``, all numbers modulo 2**64,
and rows come in ascending order of their keys, equal ones in ascending order of ``i``. ``mix`` is SplitMix64's: x += 0x9E3779B97F4A7C15;
x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9; x = (x ^ x >> 27) * 0x94D049BB133111EB; x ^ x >> 31. Ranks take turns, as with
``DistributedSampler``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from millrace._loader.order import Batches, OrderState
from millrace._loader.ranks import Ranks
from millrace.errors import FailedPrecondition, InvalidRequest
from millrace.recipe import ShardTail


def mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64's function, of each number."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: NDArray[np.uint64] = x ^ (x >> np.uint64(31))
    return mixed


def start_of(seed: int, epoch: int) -> NDArray[np.uint64]:
    """What is added to the numbers of rows; an array of one."""
    return mix(np.array([seed & (1 << 64) - 1], np.uint64) + mix(np.array([epoch & (1 << 64) - 1], np.uint64)))


def permutation(count: int, seed: int, epoch: int) -> NDArray[np.int64]:
    """The rows 0 ... count - 1 in the order of an epoch. Takes 24 bytes a row, 16 of them while it is drawn."""
    return np.argsort(mix(np.arange(count, dtype=np.uint64) + start_of(seed, epoch)), kind="stable")


def share(order: NDArray[np.int64], rank: int, world_size: int, tail: ShardTail) -> NDArray[np.int64]:
    """A rank's part; what becomes of rows that do not divide is as with ``Session.epoch``."""
    if tail == "drop":
        order = order[: len(order) // world_size * world_size]
    elif tail == "pad":
        order = np.resize(order, -(-len(order) // world_size) * world_size)
    return order[rank::world_size]


@dataclass(frozen=True)
class Permuted:
    """The order that a loader draws of its seed. Immutable."""

    seed: int
    shuffle: bool
    batch_size: int
    drop_last: bool
    shard_tail: ShardTail
    fingerprint: str = ""

    def begin(self, epoch: int, resumed: OrderState | None, samples: int, ranks: Ranks) -> Batches:
        """The batches of an epoch, from the start or after what ``resumed`` says.

        Raises:
            FailedPrecondition: that is of another order; says in what.
        """
        order = permutation(samples, self.seed, epoch) if self.shuffle else np.arange(samples)
        return self.begin_order(order, epoch, resumed, ranks)

    def begin_order(self, order: NDArray[np.int64], epoch: int, resumed: OrderState | None, ranks: Ranks) -> Batches:
        """As ``begin``, with the order of all samples, over all ranks."""
        begun: dict[str, Any] = {**self.__dict__, "samples": len(order), "world_size": ranks.world_size, "epoch": epoch}
        taken = 0 if resumed is None else self._taken(resumed, begun)
        mine = self.mine(order, ranks)
        size = self.batch_size

        def pieces() -> Iterator[list[NDArray[np.int64]]]:
            for begin in range(taken * size, len(mine), size):
                yield [mine[begin : begin + size]]

        batches = Batches(pieces(), begun, None)
        batches.state = OrderState(begun, taken)
        return batches

    def mine(self, order: NDArray[np.int64], ranks: Ranks) -> NDArray[np.int64]:
        """The rank's part, without what drop_last leaves out. Raises InvalidRequest: nothing is left."""
        mine = share(order, *ranks, self.shard_tail)
        end = len(mine) // self.batch_size * self.batch_size if self.drop_last else len(mine)
        if not len(mine):
            raise InvalidRequest(f"loader: there are {len(order)} samples, and none of them for rank {ranks.rank} of {ranks.world_size}")
        if not end:
            raise InvalidRequest("loader: not one batch is full, and drop_last leaves out what is not")
        return mine[:end]

    def _taken(self, resumed: OrderState, begun: dict[str, Any]) -> int:
        """Batches of this rank's before the place of the state.

        What all ranks have had after k batches in step is the beginning of the epoch's order, whatever their number and batches' size.

        Raises:
            FailedPrecondition: none of these batches begins there, or it is another order.
        """
        then, shares = resumed.begun, ("batch_size", "world_size")
        had = resumed.taken
        if {**then, **{name: begun[name] for name in shares}} == begun:
            for name in shares:
                had *= then[name]
            whole, rest = divmod(int(had), self.batch_size * int(begun["world_size"]))
            if not rest:
                return whole
        told = ", ".join(f"{name} was {then.get(name)!r} and is {now!r}" for name, now in begun.items() if then.get(name) != now)
        raise FailedPrecondition(
            f"loader: the state is of another order, or no batch of this one begins there: {told or 'it was saved with a sampler'}; make "
            "the loader as it was to the end of the epoch, or begin the epoch anew"
        )
