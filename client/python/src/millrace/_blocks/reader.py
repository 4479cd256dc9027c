"""Blocks that are read ahead of a loop, by threads, and the rows of its batches out of them. Belongs to the feed's thread.

::

    order of the rank's samples --> loads: (window, block), in order --> threads: BlockSource.read --> rows by sample
                                    as far ahead as `room` bytes allow     let go of with the last row that is wanted

Of a block that cannot be read every sample is an image without bytes, which the daemon answers as a bad image, and the feed says why.
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from millrace._blocks.order import BlockOrder
from millrace._blocks.source import BlockSource
from millrace._loader.source_rows import RowBatch, Unread
from millrace._process import exit as _exit
from millrace._wire.messages import path_text
from millrace.encoded import Row
from millrace.errors import Error

_THREADS = max(1, min(4, os.cpu_count() or 1))


@dataclass
class _Load:
    """A block that is read for one window."""

    window: int
    block: int
    wanted: int  # samples of it that have not been given out
    rows: Future[Sequence[Row] | Unread] | None = None


class _Threads:
    """They read blocks, in the order in which these are asked for. A read that never returns does not keep the program from its end."""

    def __init__(self, read: Callable[[int], Sequence[Row] | Unread], count: int, stop: threading.Event) -> None:
        """``stop`` is set when they are to end."""
        self._read, self._stop = read, stop
        self._asked: queue.SimpleQueue[tuple[int, Future[Sequence[Row] | Unread]] | None] = queue.SimpleQueue()
        self._threads = [threading.Thread(target=self._run, name=f"millrace-blocks_{n}", daemon=True) for n in range(count)]
        for thread in self._threads:
            thread.start()
        _exit.register(self)

    def read(self, block: int) -> Future[Sequence[Row] | Unread]:
        found: Future[Sequence[Row] | Unread] = Future()
        self._asked.put((block, found))
        return found

    def _run(self) -> None:
        while (asked := self._asked.get()) is not None:
            block, found = asked
            try:
                if self._stop.is_set():
                    raise CancelledError
                found.set_result(self._read(block))
            except BaseException as why:
                found.set_exception(why)
            del asked, found

    def end_at_exit(self) -> None:
        """Nothing more is begun."""
        self._stop.set()
        for _ in self._threads:
            self._asked.put(None)

    def join(self, timeout: float | None) -> None:
        """Until the threads have ended, each at most ``timeout`` seconds."""
        for thread in self._threads:
            thread.join(timeout)

    def close(self) -> None:
        """What is being read is waited for."""
        self.end_at_exit()
        self.join(None)


class BlockReader:
    """Of one epoch of one rank. Its threads end with ``close``."""

    def __init__(
        self,
        source: BlockSource,
        order: BlockOrder,
        mine: NDArray[np.int64],
        begin: int,
        wrapped: int,
        room: int,
        stop: threading.Event | None = None,
    ) -> None:
        """Begins to read.

        Args:
            source: what is read.
            order: of the epoch.
            mine: the rank's samples of it, in their order, int64.
            begin: so many of them were given before.
            wrapped: the last so many of them come from the epoch's first window again (padding).
            room: bytes that may be in memory at once. A window whose samples are due is read even if it takes more.
            stop: once it is set, what is read is wanted no more; ``close`` sets it, too.
        """
        self._source, self._room = source, room
        self._sizes, self._bytes = source.sizes, source.block_bytes
        self._ends = np.cumsum(self._sizes)
        blocks = self._blocks_of(mine[begin:])
        windows = order.rounds[blocks]
        if wrapped:
            windows[max(0, len(windows) - wrapped) :] += int(order.rounds.max()) + 1
        self._windows = windows
        pairs, first, counts = np.unique(np.stack((windows, blocks)), axis=1, return_index=True, return_counts=True)
        by_need = np.lexsort((first, pairs[0]))
        self._loads = {(int(pairs[0][i]), int(pairs[1][i])): _Load(int(pairs[0][i]), int(pairs[1][i]), int(counts[i])) for i in by_need}
        self._to_read = deque(self._loads.values())
        self._held = self._given = 0
        self._stop = stop or threading.Event()
        self._threads = _Threads(self._read, source.at_once or _THREADS, self._stop)
        self._fill()

    def take(self, samples: NDArray[np.int64]) -> list[Row | Unread]:
        """Rows of the next samples of the order, or the block of such a row.

        Raises:
            Exception: what the source raised that is not about one block.
        """
        rows: list[Row | Unread] = []
        windows = self._windows[self._given : self._given + len(samples)].tolist()
        self._given += len(samples)
        for sample, block, window in zip(samples.tolist(), self._blocks_of(samples).tolist(), windows, strict=True):
            load = self._loads[window, block]
            if load.rows is None:
                self._fill(window)
            assert load.rows is not None
            block_rows = load.rows.result()
            begin = int(self._ends[block]) - int(self._sizes[block])
            rows.append(block_rows if isinstance(block_rows, Unread) else block_rows[sample - begin])
            load.wanted -= 1
            if not load.wanted:
                del self._loads[window, block]
                self._held -= int(self._bytes[block])
            del block_rows
        self._fill()
        return rows

    def _blocks_of(self, samples: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.searchsorted(self._ends, samples, side="right")

    def _fill(self, until: int = -1) -> None:
        """Asks for blocks as far as there is room, and for all blocks of the windows up to ``until``."""
        while self._to_read:
            load = self._to_read[0]
            size = int(self._bytes[load.block])
            if self._held and self._held + size > self._room and load.window > until:
                return
            self._held += size
            load.rows = self._threads.read(load.block)
            self._to_read.popleft()

    def _read(self, block: int) -> Sequence[Row] | Unread:
        """In one of the threads."""
        source = self._source
        try:
            rows = source.read(block, self._stop)
            if len(rows) != self._sizes[block]:
                raise ValueError(f"it has {len(rows)} samples and had {self._sizes[block]}")
            return rows
        except Error:
            raise
        except (OSError, ValueError) as why:
            return Unread(path_text(source.name_of(block)), int(self._sizes[block]), path_text(str(why)))

    def close(self) -> None:
        """Ends the threads; blocks that are being read are waited for, unless their source gives up."""
        self._threads.close()
        self._loads.clear()


def rows_in_blocks(
    reader: BlockReader, columns: Sequence[str], blanked: bool, asked: Iterable[tuple[NDArray[np.int64], NDArray[np.uint64] | None]]
) -> Iterator[RowBatch]:
    """Those that are asked for, in the reader's order.

    Args:
        reader: closed at the end.
        columns: of the source.
        blanked: bad images are given, blank (``on_error="zero"``): their label is -1, their other columns None.
        asked: the loop's batches.
    """
    with contextlib.closing(reader):
        for ids, keys in asked:
            yield _batch_of(reader.take(ids), columns, blanked, ids, keys)


def rows_scattered(
    source: BlockSource, blanked: bool, stop: threading.Event, asked: Iterable[tuple[NDArray[np.int64], NDArray[np.uint64] | None]]
) -> Iterator[RowBatch]:
    """As ``rows_in_blocks``, by their numbers. ``stop``: as of ``BlockReader``."""
    try:
        for ids, keys in asked:
            yield _batch_of(source.rows(ids, stop), source.columns, blanked, ids, keys)
    finally:
        stop.set()


def _batch_of(
    rows: Sequence[Row | Unread], columns: Sequence[str], blanked: bool, ids: NDArray[np.int64], keys: NDArray[np.uint64] | None
) -> RowBatch:
    good = next((row for row in rows if isinstance(row, Row)), None)
    blank = tuple(-1 if name == "label" else None for name in columns)
    # Others are left out, or replaced by a good one of the batch, and so their columns are of its kinds.
    bad = Row(b"", blank if blanked or good is None else good.values, 0)
    unread = {position: row for position, row in enumerate(rows) if isinstance(row, Unread)}
    given = [row if isinstance(row, Row) else bad for row in rows]
    return RowBatch(ids.tolist() if keys is None else keys.tolist(), given, None, unread)
