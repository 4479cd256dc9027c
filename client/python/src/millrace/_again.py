"""What a daemon that was just ending did not grant is asked for again.

Where a service manager keeps the daemon's sockets open, the next connection waits there for the next daemon. Where nobody listens any more
this costs a refused connection.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

from millrace._handoff import left
from millrace.errors import DaemonUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_AGAIN = 2

T = TypeVar("T")


def asked_again(ask: Callable[[float], T], timeout: float) -> T:
    """What ``ask(seconds that are left)`` returns; asked again, twice at most, when the daemon was not there. Then the first error counts."""
    deadline = time.monotonic() + timeout
    try:
        return ask(timeout)
    except DaemonUnavailable as why:
        first = why
    for _ in range(_MOST_AGAIN):
        if time.monotonic() >= deadline:
            break
        try:
            return ask(left(deadline))
        except DaemonUnavailable:
            continue
    raise first
