"""What a daemon that was just ending did not grant is asked for again.

Where a service manager keeps the daemon's sockets open, the next connection waits there for the next daemon. Where nobody listens any more
this costs a refused connection.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

from millrace._core.session_wire import gone
from millrace._wire.handoff import HandoffConnection, left
from millrace.errors import Cancelled, DaemonUnavailable, Error

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_AGAIN = 2

T = TypeVar("T")


def told_of(why: BaseException, path: str, connection: HandoffConnection) -> BaseException:
    """What to raise when opening a session failed with ``why``: the next daemon knows no ticket of one that has ended meanwhile."""
    if not isinstance(why, Error) or not (isinstance(why, Cancelled) or connection.has_ended()):
        return why
    return gone(path, f"while the session was opened: {why}")


def asked_again(ask: Callable[[float], T], timeout: float) -> T:
    """What ``ask(seconds that are left)`` returns. While no daemon is there it is asked again, twice; then the first error counts."""
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
