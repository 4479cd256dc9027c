"""A process's own daemons: which millraced they are, and which of them ``millrace.connect()`` finds.

That is what MILLRACE_SOCKET says, as daemons begin and end in any order.
"""

from __future__ import annotations

import os
import shutil
import threading
import weakref
from typing import Protocol

from millrace.errors import NotFound

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


def program_of(given: str | None) -> str:
    """The absolute path of the first that is said or there: what was given, $MILLRACE_DAEMON, this Python environment's, the one in $PATH.

    Raises:
        NotFound: there is none, or the one that was named may not be run.
    """
    named = given or os.environ.get("MILLRACE_DAEMON")
    if named:
        if os.path.isfile(named) and os.access(named, os.X_OK):
            return os.path.abspath(named)
        raise NotFound(f"private daemon: {named} is not a program that this user may run")
    found = _of_this_environment() or shutil.which("millraced")
    if found is None:
        raise NotFound(
            "private daemon: no millraced in this Python environment, nor in $PATH: `pip install millrace-daemon` brings one; "
            "or set MILLRACE_DAEMON to it"
        )
    return os.path.abspath(found)


def _of_this_environment() -> str | None:
    """That of the package millrace-daemon, which was installed to go with this one; a service's in $PATH may be of any version."""
    try:
        import millrace_daemon
    except ImportError:
        return None
    found: str = millrace_daemon.program("millraced")
    if os.access(found, os.X_OK):
        return found
    raise NotFound(f"private daemon: {found} is not a program that this user may run: `pip install --force-reinstall millrace-daemon`")
