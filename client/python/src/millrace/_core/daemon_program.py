"""Which millraced a private daemon is."""

from __future__ import annotations

import os
import shutil

from millrace.errors import NotFound


def find(given: str | None) -> str:
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
