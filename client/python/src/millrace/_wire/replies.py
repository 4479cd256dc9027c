"""A session's reply socket: messages without gRPC in between. Their frames are drawn in proto/shm/handoff_wire.h."""

from __future__ import annotations

import contextlib
import errno
import select
import socket
import struct
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from millrace._wire import schema as _schema
from millrace._wire.quiet_socket import QuietSocket
from millrace.errors import InternalError

_LENGTH = struct.Struct("<I")
_LONGEST = 64 << 20  # the daemon's are far below
_AT_ONCE = 1 << 16


class Replies:
    """The client's end of the socket. One thread iterates; all else may be called from any."""

    def __init__(self, fd: int) -> None:
        """Takes the descriptor over."""
        self._socket: QuietSocket | None = QuietSocket(socket.AF_UNIX, socket.SOCK_STREAM, 0, fd)
        self._lock = threading.RLock()  # a signal's handler may come in between, and submit

    def __iter__(self) -> Iterator[Any]:
        """Every ``ServerMessage``, until the daemon has closed its end or ``hang_up`` was called.

        Raises:
            InternalError: what comes is no message.
        """
        waiting = bytearray()
        while chunk := self._read():
            waiting += chunk
            begin = 0
            while (message := _frame_at(waiting, begin)) is not None:
                begin += _LENGTH.size + len(message)
                if message:  # else a heads-up: this thread is awake now
                    yield _parsed(message)
            del waiting[:begin]

    def _read(self) -> bytes:
        if (reading := self._socket) is None:
            return b""
        try:
            return reading.recv(_AT_ONCE)
        except ConnectionResetError:  # the daemon closed it before it had read all that was sent to it
            return b""

    def write_some(self, parts: Sequence[bytes | memoryview]) -> int:
        """Writes what the socket has room for now, and says how many bytes; all, where the daemon reads no more or is gone."""
        with self._lock:
            if self._socket is not None:
                try:
                    return self._socket.sendmsg(parts, (), socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
                except ConnectionError:
                    pass
                except OSError as why:  # no room, or no memory for it at the moment
                    if why.errno not in (errno.EAGAIN, errno.ENOBUFS, errno.ENOMEM, errno.EINTR):
                        raise
                    return 0
        return sum(map(len, parts))

    def wait_for_room(self, seconds: float) -> None:
        """Until there is some again, or the daemon is gone, or so many seconds have passed."""
        waiting, full = select.poll(), self._socket
        if full is not None and (fd := full.fileno()) >= 0:
            waiting.register(fd, select.POLLOUT)
            waiting.poll(seconds * 1000)

    def hang_up(self) -> None:
        """Ends the iteration, wherever it waits. Idempotent."""
        with self._lock, contextlib.suppress(OSError):  # the daemon may have hung up before
            if self._socket is not None:
                self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Gives the descriptor back. REQUIRES: nobody iterates any more. Idempotent."""
        with self._lock:
            self.after_fork_in_child()

    def after_fork_in_child(self) -> None:
        """As ``close``, for a forked child, whose parent goes on iterating and may have held the lock."""
        ended, self._socket = self._socket, None
        if ended is not None:
            ended.close()

    __del__ = close


def _frame_at(waiting: bytearray, begin: int) -> bytes | None:
    """The frame's content, if all of it has come."""
    content = begin + _LENGTH.size
    if len(waiting) < content:
        return None
    (length,) = _LENGTH.unpack_from(waiting, begin)
    if length > _LONGEST:
        raise InternalError(f"the daemon announces a message of {length} bytes; please report it with the daemon's version")
    return bytes(waiting[content : content + length]) if len(waiting) - content >= length else None


def _parsed(message: bytes) -> Any:
    try:
        return _schema.ServerMessage.FromString(message)
    except Exception as why:
        raise InternalError("the daemon sent what is no message; please report it with the daemon's version") from why
