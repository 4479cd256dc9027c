"""How much is mixed at once: blocks of a window, of the ``window=`` bytes that a loader may keep.

Half of these bytes is the window that is given out, the other half the next one, which is read meanwhile.
"""

from __future__ import annotations

import contextlib
import os

import numpy as np
from numpy.typing import NDArray

from millrace._blocks.source import BlockSource
from millrace._data.file_parts import WHOLE
from millrace.errors import InvalidRequest

WINDOW = 1 << 30  # bytes, unless memory says less
BLOCK_SAMPLES = 256  # of a daemon's block: 8 to 64 MiB of photographs
IMAGE_BYTES = 128 << 10  # that a file is taken for, where its size is not known


def usual_window() -> int:
    """Bytes: ``WINDOW``, or the greatest power of two that is at most a quarter of the host's free memory."""
    free = 0
    with contextlib.suppress(OSError, ValueError, StopIteration), open("/proc/meminfo", encoding="ascii") as lines:
        free = int(next(line for line in lines if line.startswith("MemAvailable:")).split()[1]) << 10
    with contextlib.suppress(OSError, ValueError):
        free = free or os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    quarter = max(free // 4, 64 << 20)
    return min(WINDOW, 1 << (quarter.bit_length() - 1))


def window_of_source(source: BlockSource, window: int) -> int:
    """Blocks that are mixed with each other: as many of the largest as half of ``window`` bytes holds.

    Raises:
        InvalidRequest: not even one.
    """
    sizes = source.block_bytes
    if not len(sizes):
        raise InvalidRequest(f"loader: {source!r} has no samples")
    largest = int(np.argmax(sizes))
    blocks = window // 2 // max(1, int(sizes[largest]))
    if blocks < 1:
        raise InvalidRequest(
            f"loader: {source.name_of(largest)} takes {int(sizes[largest])} bytes, which is more than half of window={window}: give "
            f"window={2 * int(sizes[largest])}, or write files with smaller row groups, or smaller shards"
        )
    return min(blocks, len(sizes))


def window_of_files(lengths: NDArray[np.uint64] | None, window: int) -> int:
    """Blocks of ``BLOCK_SAMPLES`` that the daemon mixes with each other, for about ``window`` bytes of files.

    Args:
        lengths: of each sample in bytes, as ``FileParts.lengths``; None: not known, and each is taken for ``IMAGE_BYTES``.
        window: bytes.
    """
    known = lengths[lengths != WHOLE] if lengths is not None else np.empty(0, np.uint64)
    mean = max(1, int(known.sum()) // len(known)) if len(known) else IMAGE_BYTES
    return min(max(1, window // (mean * BLOCK_SAMPLES)), 0xFFFFFFFF)
