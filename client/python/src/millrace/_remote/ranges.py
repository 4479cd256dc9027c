"""Reads of a store: many at once, tried again with growing pauses, and given up after some minutes without any success.

::

    a thread that reads a block --> calls --> 16 threads of the process --> fsspec
                 ^--- those that failed and may pass, again after a pause ---'
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TypeVar

from millrace._remote.causes import may_pass

T = TypeVar("T")

RANGE = 8 << 20
"""Bytes of a read."""
AT_ONCE = 16
"""Reads of this process at the same time."""
PATIENCE = 180.0
"""Seconds without any success, after which a failure that may pass is final. ``MILLRACE_REMOTE_PATIENCE`` says another number."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0  # seconds

_lock = threading.Lock()
_threads: tuple[int, ThreadPoolExecutor] | None = None


class Stopped(OSError):
    """The reader has been closed meanwhile."""


def patience() -> float:
    """Seconds."""
    try:
        return float(os.environ["MILLRACE_REMOTE_PATIENCE"])
    except (KeyError, ValueError):
        return PATIENCE


def all_done(calls: Sequence[Callable[[], T]], stop: threading.Event | None = None) -> list[T]:
    """What the calls return, in their order; ``AT_ONCE`` of them at the same time.

    Args:
        calls: each may be made several times, and by any thread.
        stop: once it is set, no call is begun any more.

    Raises:
        Stopped: it is set.
        Exception: what a call raised that cannot pass, or did not in time.
    """
    results: dict[int, T] = {}
    waiting = list(range(len(calls)))
    pause, success = _FIRST_PAUSE, time.monotonic()
    while waiting:
        if stop is not None and stop.is_set():
            raise Stopped("the loop has ended")
        # Submitted anew for each try: when the interpreter ends, submit() raises, and so nobody waits for retries.
        futures = {_pool().submit(_unless, stop, calls[number]): number for number in waiting}
        failed: BaseException | None = None
        for future in as_completed(futures):
            why = future.exception()
            if why is None:
                results[futures[future]] = future.result()
                success = time.monotonic()
            elif not may_pass(why):
                for other in futures:
                    other.cancel()
                raise why
            else:
                failed = why
        before, waiting = len(waiting), [number for number in waiting if number not in results]
        if failed is None:
            continue
        if time.monotonic() - success > patience():
            raise failed
        pause = _FIRST_PAUSE if len(waiting) < before else min(2 * pause, _LONGEST_PAUSE)
        (stop or threading.Event()).wait(pause * random.uniform(0.5, 1))
    return [results[number] for number in range(len(calls))]


def _unless(stop: threading.Event | None, call: Callable[[], T]) -> T:
    if stop is not None and stop.is_set():
        raise Stopped("the loop has ended")
    return call()


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
