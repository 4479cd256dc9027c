"""The hand-off socket: who we are goes over it, and descriptors. Its messages are drawn in proto/shm/handoff_wire.h."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import struct
import time
from collections.abc import Iterator

from millrace._process import fork as _fork
from millrace._wire.address import HANDOFF_SUFFIX, cannot_reach, connect, no_answer
from millrace._wire.reply_socket import QuietSocket, Replies
from millrace.errors import CODE_NAMES, DaemonUnavailable, DeadlineExceeded, FailedPrecondition, InternalError, error_class

_MAGIC = 0x4D524831  # "1HRM"
_VERSION = 2
_HELLO, _RING_REQUEST, _GOODBYE, _LET_GO = 1, 2, 3, 4
_WANTS_REPLY_SOCKET = 1  # a flag of Hello
_WELCOME, _SEGMENT, _RING, _REFUSED, _MEMORY = 1, 2, 3, 4, 5
_DESCRIPTORS = {_SEGMENT: 2, _RING: 1, _MEMORY: 1}  # that come with an answer
_REQUEST = struct.Struct("<IIIIQ")
_REPLY = struct.Struct("<IIII16sQ200s")
_SAME_VERSION = "install the Python package and millraced of the same version"


class HandoffConnection:
    """One connection to the hand-off socket: one session's life line. Its end, however it comes, gives everything back.

    Not thread-safe.
    """

    def __init__(self, path: str, deadline: float) -> None:
        """Connects and asks for a ticket.

        Args:
            path: of the gRPC socket.
            deadline: ``time.monotonic()`` after which to give up.

        Raises:
            DaemonUnavailable, PermissionDenied, FailedPrecondition: as they say.
        """
        path += HANDOFF_SUFFIX
        self._socket: QuietSocket | None = None
        self._replies: Replies | None = None
        self._pid = os.getpid()
        self._said_goodbye = False
        _fork.register(self)
        self._socket = QuietSocket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
        try:
            connect(self._socket, path, left(deadline))
        except OSError as why:
            self._drop()
            raise cannot_reach(path, why) from why
        except BaseException:
            self._drop()
            raise
        try:
            self._send(_HELLO, deadline, flags=_WANTS_REPLY_SOCKET)
            self.ticket = self._receive(_WELCOME, deadline)[0]
        except DeadlineExceeded as late:
            self.close()
            raise no_answer(path.removesuffix(HANDOFF_SUFFIX)) from late
        except BaseException:
            self.close()
            raise

    def receive_segment(self, deadline: float) -> tuple[int, int]:
        """The descriptor of the session's shared memory, now the caller's, and its bytes. From then on there is ``take_replies``."""
        (fd, replies), size, _ = self._receive_descriptors(_SEGMENT, deadline)
        self._replies = Replies(replies)
        return fd, size

    def receive_memory(self, deadline: float) -> tuple[int, int, bytes]:
        """The descriptor of a GPU's memory, now the caller's, its bytes and the GPU's UUID. After ``receive_segment``."""
        (fd,), size, uuid = self._receive_descriptors(_MEMORY, deadline)
        return fd, size, uuid

    def take_replies(self) -> Replies:
        """The session's reply socket, to the first who takes it, after ``receive_segment``."""
        replies, self._replies = self._replies, None
        if replies is None:
            raise InternalError("hand-off: the reply socket was taken before")
        return replies

    def request_ring(self, size: int, deadline: float) -> int:
        """The writable descriptor, now the caller's, of an input ring of ``size`` bytes that the daemon makes."""
        self._send(_RING_REQUEST, deadline, ring_bytes=size)
        (fd,), made, _ = self._receive_descriptors(_RING, deadline)
        if made != size:
            os.close(fd)
            raise InternalError(f"hand-off: a ring of {made} bytes came, {size} were asked for")
        return fd

    def has_ended(self) -> bool:
        """Whether the daemon has closed it, or is gone. Waits for nothing."""
        if (connected := self._socket) is None:
            return True
        try:
            return connected.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
        except OSError as why:
            return not isinstance(why, BlockingIOError)

    def say_goodbye(self) -> None:
        """Tells the daemon that the session ends because its client wants it to; the memory stays until the connection closes.

        Waits for nothing. Idempotent; nothing happens in a forked child, whose parent goes on.
        """
        if self._socket is None or self._said_goodbye or os.getpid() != self._pid:
            return
        self._said_goodbye = True
        self._tell(_GOODBYE)

    def let_go(self) -> None:
        """Tells the daemon that nothing here uses the session's memory on a GPU any more, or ever will; as ``say_goodbye``, at the end."""
        if self._socket is not None and os.getpid() == self._pid:
            self._tell(_LET_GO)

    def after_fork_in_child(self) -> None:
        """Would keep the parent's session alive for as long as the child lives."""
        self.close()

    def close(self) -> None:
        """Gives the session back, with a goodbye. Idempotent."""
        self.say_goodbye()
        self._drop()
        self._replies = None

    __del__ = close

    def _drop(self) -> None:
        ended, self._socket = self._socket, None
        if ended is not None:
            ended.close()

    @contextlib.contextmanager
    def _connected(self, deadline: float) -> Iterator[socket.socket]:
        if (connected := self._socket) is None:
            raise OSError(errno.EBADF, "the connection is closed")
        connected.settimeout(left(deadline))
        try:
            yield connected
        finally:
            connected.settimeout(None)

    def _tell(self, kind: int) -> None:
        if (connected := self._socket) is not None:
            with contextlib.suppress(OSError):  # a daemon that takes no more, or is gone, need not hear it
                connected.send(_REQUEST.pack(_MAGIC, _VERSION, kind, 0, 0), socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)

    def _send(self, kind: int, deadline: float, *, flags: int = 0, ring_bytes: int = 0) -> None:
        request = _REQUEST.pack(_MAGIC, _VERSION, kind, flags, ring_bytes)
        try:
            with self._connected(deadline) as connected:
                connected.send(request)
        except OSError as why:
            raise _broken("sending", why) from why

    def _receive_descriptors(self, expected: int, deadline: float) -> tuple[list[int], int, bytes]:
        ticket, size, fds = self._receive(expected, deadline)
        if len(fds) < _DESCRIPTORS[expected]:
            _close_all(fds)
            raise InternalError("hand-off: the daemon's message lacks a descriptor (is this process out of them? ulimit -n)")
        return fds, size, ticket

    def _receive(self, expected: int, deadline: float) -> tuple[bytes, int, list[int]]:
        try:
            with self._connected(deadline) as connected:
                data, fds, _, _ = socket.recv_fds(connected, _REPLY.size, 4, socket.MSG_CMSG_CLOEXEC)
        except OSError as why:
            raise _broken("receiving", why) from why
        wanted = fds[: _DESCRIPTORS.get(expected, 0)]
        _close_all(fds[len(wanted) :])
        try:
            ticket, size = _checked(data, expected)
        except BaseException:
            _close_all(wanted)
            raise
        return ticket, size, wanted


def _close_all(fds: list[int]) -> None:
    for fd in fds:
        os.close(fd)


def _checked(data: bytes, expected: int) -> tuple[bytes, int]:
    if not data:
        raise DaemonUnavailable("hand-off: the daemon closed the connection; it may be stopping, try again")
    if len(data) != _REPLY.size or _REPLY.unpack(data)[0] != _MAGIC:
        raise FailedPrecondition(
            f"hand-off: this is not a Millrace daemon's socket, or one of a version that does not fit; {_SAME_VERSION}"
        )
    _, version, kind, code, ticket, size, message = _REPLY.unpack(data)
    if version != _VERSION:
        raise FailedPrecondition(f"hand-off: the daemon speaks version {version}, this package version {_VERSION}; {_SAME_VERSION}")
    if kind == _REFUSED:
        name = CODE_NAMES[code] if 1 <= code < len(CODE_NAMES) else "INTERNAL"
        raise error_class(name)(message.split(b"\0")[0].decode("utf-8", "replace"))
    if kind != expected:
        raise InternalError(f"hand-off: an answer of kind {kind} came out of turn")
    return ticket, size


def left(deadline: float) -> float:
    """Seconds until ``deadline`` (as of ``time.monotonic``), for calls to which 0 means no limit."""
    return max(1e-6, deadline - time.monotonic())


def _broken(doing: str, why: OSError) -> Exception:
    if isinstance(why, (TimeoutError, BlockingIOError)):
        return DeadlineExceeded(f"hand-off: {doing}: the daemon did not answer in time")
    return DaemonUnavailable(f"hand-off: {doing}: {why.strerror}; the daemon may be stopping, try again")
