"""The shuffle in blocks, as the daemon draws it, too (daemon/doc/adr/0043).

Documented, so that others can draw it. ``mix`` is SplitMix64's, all numbers modulo 2**64, and ``start = mix(seed + mix(epoch))``, both as
in ``millrace._loader.permutation``. Blocks come in ascending order of ``mix(block + mix(start))``. Each ``window`` of them, as they come,
make a window; the last one has the rest. Within a window samples come in ascending order of ``mix(sample + start)``. Of equal keys the
smaller number comes first. Ranks take turns, sample by sample.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from millrace._loader.permutation import mix, start_of


class BlockOrder(NamedTuple):
    """An epoch of a source in blocks.

    Attributes:
        samples: the order [N], int64.
        rounds: of each block, the number of its window [B], int64.
    """

    samples: NDArray[np.int64]
    rounds: NDArray[np.int64]


def block_order(sizes: NDArray[np.int64], window: int, seed: int, epoch: int) -> BlockOrder:
    """The order of an epoch. Takes 40 bytes a sample while it is drawn.

    Args:
        sizes: of each block, in samples; int64.
        window: blocks that are mixed with each other, at least 1.
        seed: of the loader.
        epoch: its number.
    """
    start = start_of(seed, epoch)
    blocks = np.argsort(mix(np.arange(len(sizes), dtype=np.uint64) + mix(start)), kind="stable")
    rounds = np.empty(len(sizes), np.int64)
    rounds[blocks] = np.arange(len(sizes)) // window
    keys = mix(np.arange(int(sizes.sum()), dtype=np.uint64) + start)
    return BlockOrder(np.lexsort((keys, np.repeat(rounds, sizes))), rounds)


def listed_order(sizes: NDArray[np.int64]) -> BlockOrder:
    """Without shuffling: block after block, each a window of its own."""
    return BlockOrder(np.arange(int(sizes.sum())), np.arange(len(sizes)))


def even_sizes(samples: int, block_samples: int) -> NDArray[np.int64]:
    """The sizes of blocks of so many samples, as the daemon cuts a dataset."""
    return np.diff(np.append(np.arange(0, samples, block_samples, dtype=np.int64), samples))
