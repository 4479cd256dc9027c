"""The interpreter's end: the package's threads end before it.

A thread that is at work then is ended by unwinding its stack, as soon as it asks for the interpreter's lock; where C++ stands in between,
as in a callback that was preparing a batch with PyTorch, that is ``std::terminate`` for the whole process. So whatever has a thread ends
it in time, if it was forgotten.
"""

from __future__ import annotations

import atexit
import os
import time
import weakref
from typing import Any, Protocol

_PATIENCE = 3.0  # seconds, for all together: a program that ends does not wait for a daemon that hangs


class Threaded(Protocol):
    """What has a thread."""

    def end_at_exit(self) -> None:
        """Tells the thread to end. Returns at once."""

    def join(self, timeout: float) -> None:
        """Waits until the thread has ended, at most ``timeout`` seconds."""


_alive: weakref.WeakSet[Any] = weakref.WeakSet()


def register(thing: Threaded) -> None:
    """``thing`` is ended at the interpreter's end, if it is still there."""
    _alive.add(thing)


def _end_all() -> None:
    end, things = time.monotonic() + _PATIENCE, list(_alive)
    for thing in things:
        thing.end_at_exit()
    for thing in things:
        thing.join(max(0.0, end - time.monotonic()))


atexit.register(_end_all)
os.register_at_fork(after_in_child=_alive.clear)  # the threads are the parent's
