"""Shards behind URLs in blocks: neighbouring samples, and the stretches of the shard that they take. Pure functions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from millrace._shards.reads import Pieces

BLOCK = 15 << 20
"""Bytes that a block has at the most, about, unless one sample has more: two ranges."""
_GAP = 1 << 20  # bytes between members that are read rather than asked for anew


class Blocks(NamedTuple):
    """How samples are divided.

    Attributes:
        first: int64 [B + 1], block b has the samples ``first[b]`` to ``first[b + 1]``.
        bytes: int64 [B], what each takes in memory, about.
    """

    first: NDArray[np.int64]
    bytes: NDArray[np.int64]


def blocks_of(wanted: Sequence[Pieces], most: int = BLOCK) -> Blocks:
    """Divides shards into blocks that are about equally large.

    Args:
        wanted: the members that are read of each sample, all of the same N samples: those of a shard follow each other.
        most: bytes of a block.
    """
    which = wanted[0].which
    begins = np.full(len(which), np.iinfo(np.int64).max)
    ends, taken = np.zeros(len(which), np.int64), np.zeros(len(which), np.int64)
    for pieces in wanted:
        there = pieces.lengths >= 0
        np.minimum(begins, pieces.offsets, out=begins, where=there)
        np.maximum(ends, pieces.offsets + pieces.lengths, out=ends, where=there)
        taken += np.where(there, pieces.lengths, 0)
    taken += np.clip(ends - begins - taken, 0, _GAP * (len(wanted) - 1))
    gaps = np.append(begins[1:] - ends[:-1], 0)
    taken += np.where((gaps > 0) & (gaps <= _GAP), gaps, 0)
    bounds = [0, *(np.flatnonzero(np.diff(which)) + 1).tolist(), len(which)]
    first = [np.zeros(0, np.int64)]
    for begin, end in itertools.pairwise(bounds):
        summed = np.cumsum(taken[begin:end], dtype=np.float64)
        count = max(1, int(-(-summed[-1] // most)))
        cuts = np.searchsorted(summed, np.arange(1, count) * (summed[-1] / count))
        first.append(begin + np.unique(np.append(0, cuts[cuts < end - begin])))
    starts = np.concatenate(first).astype(np.int64)
    return Blocks(np.append(starts, len(which)), np.add.reduceat(taken, starts))


class Stretches(NamedTuple):
    """What is read of a shard for some samples.

    Attributes:
        pieces: of each its begin and its length.
        begins: int64, their begins.
    """

    pieces: list[tuple[int, int]]
    begins: NDArray[np.int64]

    def view(self, read: Sequence[memoryview], offset: int, length: int) -> memoryview | None:
        """A member, in what was read of the pieces; None: it is in none."""
        number = int(np.searchsorted(self.begins, offset, side="right")) - 1
        if number < 0 or offset + length > sum(self.pieces[number]):
            return None
        begin = offset - self.pieces[number][0]
        return read[number][begin : begin + length]


def stretches_of(wanted: Sequence[Pieces]) -> Stretches:
    """The stretches that hold all of these members, of one shard; members that lie near each other are in one."""
    offsets = np.concatenate([pieces.offsets[pieces.lengths >= 0] for pieces in wanted])
    lengths = np.concatenate([pieces.lengths[pieces.lengths >= 0] for pieces in wanted])
    order = np.argsort(offsets, kind="stable")
    begins = offsets[order]
    ends = np.maximum.accumulate(begins + lengths[order])
    starts = np.flatnonzero(np.append(True, begins[1:] - ends[:-1] > _GAP))
    lasts = np.append(starts[1:], len(begins)) - 1
    first = begins[starts]
    return Stretches(list(zip(first.tolist(), (ends[lasts] - first).tolist(), strict=True)), first)
