"""Which of this process's own daemons ``millrace.connect()`` finds: MILLRACE_SOCKET, as daemons begin and end in any order."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Protocol

_SOCKET = "MILLRACE_SOCKET"


class Daemon(Protocol):
    """What has an address."""

    address: str


class Running:
    """The daemons of this process that run, and what MILLRACE_SOCKET was before each. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # collecting one daemon, at any moment, may end it
        self._before: dict[str, str | None] = {}  # by the address of the daemon that replaced it, in the order in which they began
        self._daemons: weakref.WeakValueDictionary[str, Daemon] = weakref.WeakValueDictionary()
        self._last: Daemon | None = None  # kept alive

    def began(self, daemon: Daemon) -> None:
        """``connect()`` finds it from now on."""
        with self._lock:
            self._before[daemon.address] = os.environ.get(_SOCKET)
            os.environ[_SOCKET] = daemon.address
            self._daemons[daemon.address] = daemon
            replaced, self._last = self._last, daemon
        del replaced  # and stopped, if nobody else has it

    def ended(self, daemon: Daemon) -> None:
        """``connect()`` finds what it would find if this one had never begun. Idempotent."""
        with self._lock:
            if daemon.address not in self._before:
                return
            before = self._before.pop(daemon.address)
            for later, what in list(self._before.items()):
                if what == daemon.address:
                    self._before[later] = before
            if os.environ.get(_SOCKET) == daemon.address:
                if before is None:
                    del os.environ[_SOCKET]
                else:
                    os.environ[_SOCKET] = before
            left = [self._daemons.get(address) for address in self._before]
            self._last = next((running for running in reversed(left) if running is not None), None)


RUNNING = Running()
