"""A shard behind a URL as a walk through its headers reads it: in order, mostly, and some bytes of each member."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType

from millrace._remote.objects import RemoteObject
from millrace._remote.ranges import AT_ONCE, RANGE

_BEHIND = 2  # ranges that are kept, for what is read once more
_FIRST_PIECE, _LARGEST_PIECE = 64 << 10, 2 << 20  # bytes


class ReadAhead:
    """Called with a size and an offset it gives bytes as ``os.pread`` does, within ``with``. Belongs to one thread.

    It fetches ranges ahead, the more the longer reading goes on in order. Where more than a range is passed over, members are large: then
    it fetches small pieces around what is asked for, until these grow together.
    """

    def __init__(self, object_: RemoteObject, stop: threading.Event) -> None:
        """``stop``: once it is set, reads raise OSError."""
        self._object, self._stop = object_, stop
        self._threads = ThreadPoolExecutor(AT_ONCE, "millrace-ahead")
        self._ranges: dict[int, Future[memoryview]] = {}
        self._last, self._ahead = -1, 1
        self._piece, self._piece_at, self._grows = memoryview(b""), 0, 0  # _grows: the next piece's bytes; 0: ranges are read

    def __enter__(self) -> ReadAhead:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._ranges.clear()

    def __call__(self, size: int, at: int) -> bytes:
        """Fewer bytes at the end. Raises OSError."""
        size = min(size, self._object.size - at)
        if size <= 0:
            return b""
        first, last = at // RANGE, (at + size - 1) // RANGE
        if first > self._last + 1:
            self._passed_over()
        self._last = max(self._last, last)
        if self._grows:
            return self._of_piece(size, at)
        return self._of_ranges(size, at, first, last)

    def _passed_over(self) -> None:
        for waiting in self._ranges.values():
            waiting.cancel()
        self._ranges.clear()
        self._ahead, self._grows = 1, _FIRST_PIECE

    def _of_piece(self, size: int, at: int) -> bytes:
        begin = at - self._piece_at
        if begin < 0 or begin + size > len(self._piece):
            length = min(max(size, self._grows), self._object.size - at)
            (self._piece,) = self._object.read([(at, length)], self._stop, look=False)
            self._piece_at, begin = at, 0
            self._grows = 2 * self._grows if self._grows < _LARGEST_PIECE else 0
        return bytes(self._piece[begin : begin + size])

    def _of_ranges(self, size: int, at: int, first: int, last: int) -> bytes:
        if last not in self._ranges:
            self._ahead = min(2 * self._ahead, AT_ONCE)
        most = (self._object.size - 1) // RANGE
        for number in range(first, min(last + self._ahead, most + 1)):
            if number not in self._ranges:
                self._ranges[number] = self._threads.submit(self._fetch, number)
        for number in [number for number in self._ranges if number < first - _BEHIND]:
            del self._ranges[number]
        if first == last:
            begin = at - first * RANGE
            return bytes(self._ranges[first].result()[begin : begin + size])
        whole = b"".join(self._ranges[number].result() for number in range(first, last + 1))
        return whole[at - first * RANGE :][:size]

    def _fetch(self, number: int) -> memoryview:
        begin = number * RANGE
        return self._object.read([(begin, min(RANGE, self._object.size - begin))], self._stop, look=False)[0]
