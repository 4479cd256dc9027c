"""A session's two ways: its gRPC stream, which begins it and says why it ends, and its reply socket, for all else.

A thread of ours reads the socket. Requests go by it, too, from the thread that makes them. What destructors put into the queue, and what
has to wait, is written by a thread of gRPC's.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from millrace._core.inbox import EpochEnd, Inbox
from millrace._memory.gpu_work import GpuWork
from millrace._memory.lease import LeaseEnd, Outgoing
from millrace._process import exit as _exit
from millrace._process.wakeup import Bell
from millrace._wire import schema as _schema
from millrace._wire.calls import call_error, gone
from millrace._wire.reply_socket import Flush, Replies, Requests
from millrace.errors import Cancelled, Error, FailedPrecondition, InternalError

if TYPE_CHECKING:
    from millrace._memory.segment import Segment
    from millrace._wire.grpc import grpc

_TICKET_METADATA = "millrace-ticket-bin"  # says from the stream's beginning whose it is
_UNSENT_MOST = 4096  # messages that the daemon was too slow to take


class _Close:
    """The last thing in the queue."""


class Wire:
    """See the module. Thread-safe; ``close_soon`` may be called from destructors."""

    def __init__(
        self,
        path: str,
        channel: grpc.Channel,
        inbox: Inbox,
        outgoing: Outgoing,
        ticket: bytes,
        replies: Replies,
    ) -> None:
        self._path = path
        self._channel = channel
        self._inbox = inbox
        self._outgoing = outgoing
        self._replies = replies
        self._requests = Requests(replies, outgoing)
        stream = channel.stream_stream(
            "/millrace.v1.Sessions/Stream",
            request_serializer=_serialised,
            response_deserializer=_schema.ServerMessage.FromString,
        )
        self.farewell: Callable[[], object] = self.close_soon
        """What ends the session at the interpreter's end, if it is open. Returns at once."""
        self._exiting = False
        self._begun = Bell()
        self._reader = threading.Thread(target=self._read, name="millrace-reader", daemon=True)
        try:
            self._reader.start()  # before gRPC's own: its calls hang when they are collected without their threads
        except RuntimeError as why:
            raise FailedPrecondition(f"session: {why}; open it earlier, or keep the main thread until it is closed") from why
        self._call: Any = None
        try:
            self._call = stream(_queued(outgoing, inbox, self._requests, ticket), metadata=((_TICKET_METADATA, ticket),))
        finally:
            self._begun.ring()
        _exit.register(self)

    def send(self, message: Any) -> None:
        """Queues a ``ClientMessage``. Takes no lock, for destructors send, too."""
        self._outgoing.put(message)

    def send_now(self, parts: Sequence[bytes | memoryview]) -> None:
        """Sends a message's bytes, in pieces, from this thread if it can, and refers to them no more. Waits some milliseconds at most."""
        try:
            self._requests.send(parts)
        finally:
            if self._requests.broken:
                self._inbox.close(Cancelled("the session was interrupted (Ctrl-C) while it sent a request; open a new one"))

    @property
    def congested(self) -> bool:
        """Whether the daemon takes messages too slowly for more to be queued."""
        return self._outgoing.qsize() >= _UNSENT_MOST

    def close_soon(self) -> None:
        """Ends the stream once what is queued has left. Returns at once."""
        self._outgoing.put(_Close)

    def close(self, timeout: float) -> None:
        """Ends the stream and waits until its threads are gone, at most ``timeout`` seconds."""
        self._inbox.close(Cancelled("the session was closed"))
        self._outgoing.put(_Close)
        self._break_off()
        if threading.current_thread() is not self._reader:
            self._reader.join(timeout)

    def _break_off(self) -> None:
        if (call := self._call) is not None:
            call.cancel()
        self._replies.hang_up()

    def end_at_exit(self) -> None:
        """As ``close_soon``, for a session that is still open."""
        self._exiting = True
        self.farewell()

    def join(self, timeout: float) -> None:
        """Waits until the session has ended, at most ``timeout`` seconds, of which the daemon has the first half."""
        self._reader.join(timeout / 2)
        if self._reader.is_alive():
            self._break_off()
            self._reader.join(timeout / 2)

    def after_fork_in_child(self) -> None:
        """Lets go of the reply socket; gRPC is left alone."""
        self._replies.after_fork_in_child()

    def _read(self) -> None:
        self._begun.wait(threading.TIMEOUT_MAX)
        if self._call is None:
            return
        error = self._read_until_its_end(self._call)
        # The call dies here and now: its destructor takes a lock, which at the interpreter's end a thread may hold that is no more.
        self._call = None
        self._outgoing.put(_Close)
        self._inbox.close(error, wake=not self._exiting)  # at the interpreter's end threads that wait would say what they got
        self._replies.close()
        self._channel.close()

    def _read_until_its_end(self, call: Any) -> Error:
        from millrace._wire.grpc import grpc

        try:
            for attached in call:  # once; then the stream says why it ends
                self._inbox.deliver(attached)
                for message in self._replies:
                    self._inbox.deliver(message)
            return gone(self._path, None)
        except grpc.RpcError as why:
            why.__traceback__ = None  # it is the call itself, and in a frame of it
            return call_error(why, self._path, "the daemon ended the session")
        except Exception as why:  # ours; a caller that waits must not wait for ever
            why.__traceback__ = None  # likewise
            call.cancel()
            return why if isinstance(why, Error) else InternalError(f"reading the daemon's replies failed: {why!r}; please report it")


def _queued(outgoing: Outgoing, inbox: Inbox, requests: Requests, ticket: bytes) -> Iterator[Any]:
    """Attach, for the stream. Until its end requests are written to the socket."""
    work = GpuWork(outgoing)
    yield _schema.ClientMessage(attach={"ticket": ticket})
    try:
        while (message := work.next()) is not _Close:
            if isinstance(message, EpochEnd):
                if not inbox.leave_epoch(message):
                    continue
                message = _schema.ClientMessage(stop_epoch={"stream_id": message.stream})
            elif isinstance(message, LeaseEnd) and message.kept:
                continue
            requests.write(message if message is Flush else _serialised(message))
    except Error as why:  # CUDA's: what was to be given back may be in use for ever
        inbox.close(FailedPrecondition(f"the session ended, for nobody can say whether its slots are in use on the GPU: {why}"))
    finally:
        work.drop()


def _serialised(message: Any) -> bytes:
    if isinstance(message, bytes):
        return message
    if isinstance(message, LeaseEnd):
        message.give_back()
        message = message.message()
    return message.SerializeToString()  # type: ignore[no-any-return]


def outgoing_queue() -> Outgoing:
    """An empty queue for a session's stream."""
    return queue.SimpleQueue()


def leave(segment: Segment, wire: Wire) -> None:
    """The session's end, where nobody closed it."""
    segment.say_goodbye()
    wire.close_soon()
