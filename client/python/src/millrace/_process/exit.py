"""The interpreter's end: the package's threads end before it, and so do loops and epochs that were left open.

A thread that is at work then is ended by unwinding its stack, as soon as it asks for the interpreter's lock; where C++ stands in between,
as in a callback that was preparing a batch with PyTorch, that is ``std::terminate`` for the whole process. So whatever has a thread ends
it in time, if it was forgotten.

A loop that a program leaves open in a module's variable is ended when that variable is, and by then the modules that it would work with
may be empty. So it is ended here, while they are whole.
"""

from __future__ import annotations

import atexit
import contextlib
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


class Open(Protocol):
    """What would do something when it is collected, unless it has ended."""

    def end_at_exit(self) -> None:
        """Ends it, as far as nobody is at work with it. Returns at once; nothing happens when it is collected then."""


_alive: weakref.WeakSet[Any] = weakref.WeakSet()
_open: weakref.WeakSet[Any] = weakref.WeakSet()


def register(thing: Threaded) -> None:
    """``thing`` is ended at the interpreter's end, if it is still there."""
    _alive.add(thing)


def register_open(thing: Open) -> None:
    """``thing`` is ended at the interpreter's end, if it is still there; in a forked child, too."""
    _open.add(thing)


def _end_all() -> None:
    end, things = time.monotonic() + _PATIENCE, list(_alive)
    for thing in things:
        thing.end_at_exit()
    with contextlib.ExitStack() as stack:  # all of it is done, from the last one on: what is open may run a sampler's code, which may raise
        for thing in things:
            stack.callback(_join, thing, end)
        for loop in list(_open):  # no thread waits for them any more
            stack.callback(loop.end_at_exit)


def _join(thing: Threaded, end: float) -> None:
    thing.join(max(0.0, end - time.monotonic()))


atexit.register(_end_all)
os.register_at_fork(after_in_child=_alive.clear)  # the threads are the parent's
