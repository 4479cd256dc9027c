"""Who may go on: so many callers at once, in the order in which they came, and now and then one of them alone."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from millrace._process.wakeup import Bell
from millrace.errors import DeadlineExceeded


class Turns:
    """``most`` places. Nobody overtakes: who waits to be alone is not kept waiting by those that come later. Thread-safe."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken = 0
        self._lock = threading.Lock()
        self._waiting: deque[Bell] = deque()  # a bell a caller: only the first one is woken

    @contextmanager
    def one(self, deadline: float) -> Iterator[None]:
        """Beside at most ``most - 1`` others. REQUIRES: the caller has no place yet.

        Raises:
            DeadlineExceeded: no place before ``deadline`` (as of ``time.monotonic``).
        """
        with self.some(1, deadline):
            yield

    @contextmanager
    def alone(self, deadline: float) -> Iterator[None]:
        """With nobody beside it. Raises, and requires, as ``one``."""
        with self.some(self._most, deadline):
            yield

    @contextmanager
    def some(self, wanted: int, deadline: float) -> Iterator[None]:
        """With so many places, at most ``most``. Raises, and requires, as ``one``."""
        self._take(wanted, deadline)
        try:
            yield
        finally:
            with self._lock:
                self._taken -= wanted
                self._wake_first()

    def _take(self, wanted: int, deadline: float) -> None:
        mine = Bell()
        try:
            with self._lock:
                self._waiting.append(mine)
            while not self._take_first(mine, wanted):
                left = deadline - time.monotonic()
                if left <= 0:
                    raise DeadlineExceeded("no turn in time")
                mine.wait(left)
        finally:
            with self._lock:
                self._waiting.remove(mine)
                self._wake_first()

    def _take_first(self, mine: Bell, wanted: int) -> bool:
        """Takes the places if it is that waiter's turn and they are free."""
        with self._lock:
            if self._waiting[0] is not mine or self._taken + wanted > self._most:
                return False
            self._taken += wanted
            return True

    def _wake_first(self) -> None:
        if self._waiting:
            self._waiting[0].ring()
