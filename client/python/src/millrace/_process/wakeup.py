"""What a thread waits at until another one wakes it, or Ctrl-C ends the waiting.

Not threading.Condition, nor what is made of it: their methods are Python code, in which Ctrl-C may come where a lock was just
released, or is about to be, so that the program ends with "release unlocked lock" in place of KeyboardInterrupt, or hangs. A ``with``
on a plain lock, and waiting for one, are single steps.
"""

from __future__ import annotations

import threading


class Bell:
    """Of one waiter. Rung while nobody waits it is heard by the next ``wait``, once."""

    __slots__ = ("_silent",)

    def __init__(self) -> None:
        self._silent = threading.Lock()
        self._silent.acquire()

    def ring(self) -> None:
        """Wakes the waiter. REQUIRES: no other thread rings it meanwhile."""
        if self._silent.locked():
            self._silent.release()

    def wait(self, seconds: float) -> None:
        """Returns when it has been rung, or after so many seconds; 0 or fewer: at once."""
        self._silent.acquire(timeout=min(max(seconds, 0), threading.TIMEOUT_MAX))
