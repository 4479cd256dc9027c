"""Where the daemon listens, and what to say when it does not."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import struct

from millrace.errors import DaemonUnavailable, Error, InvalidRequest, PermissionDenied, Unsupported

DEFAULT_SOCKET = "/run/millrace/millrace.sock"
HANDOFF_SUFFIX = ".handoff"
NAMED_BY = "in connect()"
"""Where the message of a daemon that cannot be reached says that another socket is named."""
LONGEST_SOCKET_PATH = 107 - len(HANDOFF_SUFFIX)  # of sockaddr_un.sun_path, without the final zero


def resolve(address: str | os.PathLike[str] | None) -> str:
    """The path of the daemon's socket: ``address`` (a path or ``unix:PATH``), else $MILLRACE_SOCKET, else the service's.

    Raises:
        InvalidRequest: longer than the path of a socket may be.
        Unsupported: an address on another host.
    """
    text = os.fspath(address) if address is not None else ""
    text = text or os.environ.get("MILLRACE_SOCKET") or DEFAULT_SOCKET
    if text.startswith("unix:"):
        text = text.removeprefix("unix:")
        text = text[2:] if text.startswith("//") else text
    elif "/" not in text and ":" in text:
        raise Unsupported(f"address {text}: this version reaches the daemon on its own host only; give a socket's path, or unix:PATH")
    if not 1 <= len(os.fsencode(text)) <= LONGEST_SOCKET_PATH:
        raise InvalidRequest(f"address {text}: a socket's path has 1 to {LONGEST_SOCKET_PATH} bytes")
    return os.path.abspath(text)


def connect(connecting: socket.socket, path: str, seconds: float) -> None:
    """Connects, and waits for its turn where many others connect.

    Raises:
        OSError: as connect(2) says; TimeoutError: not in time.
    """
    connecting.setblocking(True)  # with a timeout of Python's own, connect(2) would fail at once while the queue is full
    timeout = struct.pack("ll", int(seconds), int(seconds % 1 * 1e6) + 1)
    connecting.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, timeout)
    try:
        connecting.connect(path)
    except BlockingIOError as late:
        raise TimeoutError from late


def no_answer(path: str) -> DaemonUnavailable:
    """The exception for a socket where somebody listens, or a service manager does for a daemon that is to come, and nobody answers."""
    return DaemonUnavailable(
        f"the daemon at unix:{path}: no answer in time; it may be starting again: then a new session goes on from the epoch's position. "
        "If that lasts, millraced does not start or hangs: `journalctl -u millraced` says why"
    )


def cannot_reach(path: str, why: OSError) -> Error:
    """The exception for a socket that cannot be connected to, or for what else is in its place."""
    text = f"cannot reach the daemon at unix:{path}: "
    with contextlib.suppress(OSError):
        mode = os.stat(path).st_mode
        if not stat.S_ISSOCK(mode):
            found = "a folder" if stat.S_ISDIR(mode) else "no socket"
            return DaemonUnavailable(
                f"{text}that is {found}; name the daemon's socket {NAMED_BY} or MILLRACE_SOCKET, such as {DEFAULT_SOCKET}"
            )
    text += why.strerror or "no answer in time"
    if isinstance(why, PermissionError):
        return PermissionDenied(f"{text}; join the group that owns the socket (sudo usermod -aG millrace $USER, then log in again)")
    return DaemonUnavailable(
        f"{text}; start it with `systemctl start millraced`, name another socket {NAMED_BY} or MILLRACE_SOCKET, "
        "or start a private one with millrace.serve()"
    )
