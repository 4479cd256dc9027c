"""Reads of a store: many at once, each tried again with growing pauses, and given up after some minutes without any success.

::

    a thread that reads a block --> calls --> 16 threads of the process --> fsspec's loop
                 ^--- one that failed and may pass, again after a pause ---'

A thread that waits for calls can stop at any time: what is under way for it in fsspec's loop is cancelled then.
"""

from __future__ import annotations

import atexit
import heapq
import os
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from concurrent.futures import TimeoutError as FutureTimeoutError  # TimeoutError itself from Python 3.11 on
from typing import Any, TypeVar

from millrace._process.warn import warn
from millrace._remote.causes import may_pass, told

T = TypeVar("T")

RANGE = 8 << 20
"""Bytes of a read."""
AT_ONCE = 16
"""Reads of this process at the same time."""
PATIENCE = 90.0
"""Seconds without any success, after which a failure that may pass is final: less than a loop waits for a batch.
``MILLRACE_REMOTE_PATIENCE`` says another number."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0  # seconds
_SILENCE = 15.0  # seconds without success, after which it is told
_LOOK = 0.1  # seconds between looks whether anybody still wants it

_lock = threading.Lock()
_threads: tuple[int, ThreadPoolExecutor] | None = None
_of_thread = threading.local()
_program_ends = threading.Event()
# Threads of pools are waited for before atexit's functions run: those of this function run before that.
getattr(threading, "_register_atexit", atexit.register)(_program_ends.set)


class Stopped(OSError):
    """The reader has been closed meanwhile."""


def program_ends() -> bool:
    """Whether it does, so that nothing is waited for any more."""
    return _program_ends.is_set()


def patience() -> float:
    """Seconds."""
    try:
        return float(os.environ["MILLRACE_REMOTE_PATIENCE"])
    except (KeyError, ValueError):
        return PATIENCE


def all_done(calls: Sequence[Callable[[], T]], stop: threading.Event | None = None, what: str = "the store") -> list[T]:
    """What the calls return, in their order; ``AT_ONCE`` of them at the same time.

    Args:
        calls: each may be made several times, and by any thread. They wait for fsspec by ``result_of``.
        stop: once it is set, reading ends; the program's end sets it.
        what: is read, for people.

    Raises:
        Stopped: it is set. Calls that are under way are cancelled, and may still return a moment later.
        Exception: what a call raised that cannot pass, or did not in time.
    """
    work = _Work(calls, stop or threading.Event(), what)
    try:
        return work.done()
    finally:
        work.caller.go()


def result_of(future: Future[T], seconds: float) -> T:
    """What a coroutine returns. It is cancelled once nobody waits any more for the call that this thread makes.

    Raises:
        TimeoutError: it has not returned in so many seconds.
    """
    caller: _Caller | None = getattr(_of_thread, "caller", None)
    if caller is not None:
        caller.waits_for(future)
    try:
        return future.result(seconds)
    except FutureTimeoutError:
        if future.done():
            raise
        raise TimeoutError(f"no answer came within {seconds:.0f} s") from None
    finally:
        future.cancel()
        if caller is not None:
            caller.has(future)


class _Caller:
    """A thread that waits for calls, as those see it that make them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waits_for: set[Future[Any]] = set()
        self._gone = False

    def waits_for(self, future: Future[Any]) -> None:
        with self._lock:
            self._waits_for.add(future)
            gone = self._gone
        if gone:
            future.cancel()

    def has(self, future: Future[Any]) -> None:
        with self._lock:
            self._waits_for.discard(future)

    def go(self) -> None:
        with self._lock:
            self._gone = True
            under_way = list(self._waits_for)
        for future in under_way:
            future.cancel()


class _Work:
    """Calls of one caller: which wait, which are under way, and which are tried again when."""

    def __init__(self, calls: Sequence[Callable[[], Any]], stop: threading.Event, what: str) -> None:
        self.caller = _Caller()
        self._calls, self._stop, self._what = calls, stop, what
        self._results: dict[int, Any] = {}
        self._ready = deque(range(len(calls)))
        self._running: dict[Future[Any], int] = {}
        self._later: list[tuple[float, int]] = []  # a heap
        self._success = time.monotonic()
        self._warned = False

    def done(self) -> list[Any]:
        try:
            while len(self._results) < len(self._calls):
                if _program_ends.is_set():
                    self._stop.set()
                if self._stop.is_set():
                    raise Stopped("the loop has ended")
                self._begin()
                if self._running:
                    for future in wait(self._running, _LOOK, FIRST_COMPLETED).done:
                        self._look_at(future)
                else:
                    self._stop.wait(_LOOK)
            return [self._results[number] for number in range(len(self._calls))]
        finally:
            for future in self._running:
                future.cancel()

    def _begin(self) -> None:
        while self._later and self._later[0][0] <= time.monotonic():
            self._ready.append(heapq.heappop(self._later)[1])
        while self._ready and len(self._running) < AT_ONCE:
            number = self._ready.popleft()
            try:
                self._running[_pool().submit(self._called, self._calls[number])] = number
            except RuntimeError:  # the interpreter ends
                raise Stopped("the program ends") from None

    def _called(self, call: Callable[[], T]) -> T:
        """In a thread of the pool."""
        _of_thread.caller = self.caller
        try:
            return call()
        finally:
            _of_thread.caller = None

    def _look_at(self, future: Future[Any]) -> None:
        number = self._running.pop(future)
        why = future.exception()
        if why is None:
            self._results[number] = future.result()
            self._success = time.monotonic()
            return
        waited = time.monotonic() - self._success
        if not may_pass(why) or waited > patience():
            raise why
        if waited > _SILENCE and not self._warned:
            self._warned = True
            warn(f"{self._what} cannot be read since {waited:.0f} s; it is tried again for {patience():.0f} s in all: {told(why)}")
        pause = min(max(_FIRST_PAUSE, waited / 2), _LONGEST_PAUSE)  # as long as others succeed, the store is no busier than it was
        heapq.heappush(self._later, (time.monotonic() + pause * random.uniform(0.5, 1), number))


def _pool() -> ThreadPoolExecutor:
    """This process's: threads do not come along into a process that is forked."""
    global _threads
    with _lock:
        if _threads is None or _threads[0] != os.getpid():
            _threads = (os.getpid(), ThreadPoolExecutor(AT_ONCE, "millrace-ranges"))
        return _threads[1]


def _renew_lock() -> None:
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)
