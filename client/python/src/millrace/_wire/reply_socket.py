"""A session's reply socket: messages without gRPC in between. Their frames are drawn in proto/shm/handoff_wire.h.

The daemon's replies come by it, and requests go by it the other way. The thread that submits writes the message
itself if no frame before it is half written; else it is queued, as all other messages are, for the stream's writer.
"""

from __future__ import annotations

import contextlib
import errno
import select
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from millrace._wire import schema as _schema
from millrace.errors import InternalError

if TYPE_CHECKING:
    from millrace._memory.lease import Outgoing

_LENGTH = struct.Struct("<I")
_LONGEST = 64 << 20  # the daemon's are far below
_AT_ONCE = 1 << 16
_MOST_PARTS = 512  # in one system call (IOV_MAX is 1024)
_PATIENCE = 0.005  # seconds that a caller waits for a daemon that reads
_LOOK_AGAIN = 1.0  # so late the writer notices at the latest that the socket was closed meanwhile


class QuietSocket(socket.socket):
    """Closed without a ResourceWarning when the interpreter collects it before its owner."""

    def __del__(self) -> None:
        self.close()


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
                if message:  # else an early wake-up: this thread is awake now
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


class Flush:
    """In a session's queue: frames wait for its writer."""


class Requests:
    """Thread-safe. A daemon that reads no more, or is gone, is what the session's reader hears of; here it is no error."""

    def __init__(self, replies: Replies, outgoing: Outgoing) -> None:
        self._replies = replies
        self._outgoing = outgoing
        self._lock = threading.RLock()  # a signal's handler may come in between, and submit
        self._waiting: deque[memoryview] = deque()  # frames, in order; of the first a part may have left
        self._writing = False  # bytes leave at this moment, and how many is not noted yet
        self.broken = False
        """Ctrl-C came then: half a frame may have left, behind which nothing makes sense. The socket is closed."""

    def send(self, parts: Sequence[bytes | memoryview]) -> None:
        """Writes a serialised ``ClientMessage``, which comes in pieces, after those before it, or queues it.

        Waits some milliseconds at most.
        """
        frame = [_LENGTH.pack(sum(map(len, parts))), *parts]
        with self._lock:
            if self._waiting or self._writing:
                self._waiting.append(memoryview(b"".join(frame)))
                self._outgoing.put(Flush)
            else:
                try:
                    self._begin(frame)
                    self._write_soon()
                finally:
                    if self._writing:
                        self.broken = True
                        self._replies.hang_up()
                    elif self._waiting:
                        self._outgoing.put(Flush)

    def _begin(self, frame: Sequence[bytes | memoryview]) -> None:
        self._writing = True
        sent = self._replies.write_some(frame[:_MOST_PARTS])
        if sent < sum(map(len, frame)):
            self._waiting.appendleft(memoryview(b"".join(frame))[sent:])
        self._writing = False

    def _write_soon(self) -> None:
        """As long as the daemon takes it: a large message needs more than one turn of both."""
        end = time.monotonic() + _PATIENCE
        while not self._write_waiting() and time.monotonic() < end:
            self._replies.wait_for_room(_PATIENCE)

    def write(self, message: bytes | type[Flush]) -> None:
        """For the session's writer: as ``send``, and waits until the daemon has taken this and what waits before it."""
        with self._lock:
            if isinstance(message, bytes):
                self._waiting.append(memoryview(_LENGTH.pack(len(message)) + message))
        while not self._write_waiting():
            self._replies.wait_for_room(_LOOK_AGAIN)

    def _write_waiting(self) -> bool:
        """Whether nothing is left."""
        with self._lock:
            while self._waiting and not self._writing:
                rest = self._waiting[0]
                self._writing = True
                rest = rest[self._replies.write_some([rest]) :]
                if rest:
                    self._waiting[0] = rest
                else:
                    self._waiting.popleft()
                self._writing = False
                if rest:
                    return False
        return True
