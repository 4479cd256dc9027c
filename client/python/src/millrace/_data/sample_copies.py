"""Samples that come several times in an epoch, as samplers with replacement give them: each time with boxes and flips of its own."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_SHIFT = np.uint64(40)
SAMPLE_MASK = (1 << 40) - 1
"""Of a number that keys random choices: the sample's id."""


class Copies:
    """Numbers the copies of each sample: the first of rank 0 is 0, so what comes once is as it is without a sampler.

    Copies on different ranks have different numbers: copy k of rank r is k * world_size + r. Memory: 4 bytes a sample.
    """

    def __init__(self, samples: int, rank: int, world_size: int) -> None:
        self._seen = np.zeros(samples, np.uint32)
        self._rank, self._world_size = np.uint64(rank), np.uint64(world_size)

    def keys(self, ids: NDArray[np.int64]) -> NDArray[np.uint64]:
        """What keys the random choices of these samples, the epoch's next: their ids where each comes first, on rank 0."""
        copies = self._seen[ids].astype(np.uint64)
        self._seen[ids] += 1
        order = np.argsort(ids, kind="stable")
        ordered = ids[order]
        again = ordered[1:] == ordered[:-1]
        if again.any():  # within this batch
            begins = np.flatnonzero(np.concatenate(([True], ~again)))
            within = np.arange(len(ids)) - np.repeat(begins, np.diff(np.append(begins, len(ids))))
            copies[order] += within.astype(np.uint64)
            np.add.at(self._seen, ordered[1:][again], 1)
        keys: NDArray[np.uint64] = ids.astype(np.uint64) + ((copies * self._world_size + self._rank) << _SHIFT)
        return keys
