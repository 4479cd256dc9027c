"""gRPC calls to the daemon, and what is said and done when one fails.

What a daemon that was just ending did not grant is asked for again. Where a service manager keeps the daemon's sockets open, the next
connection waits there for the next daemon. Where nobody listens any more this costs a refused connection.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any, TypeVar

from millrace._process import fork as _fork
from millrace._wire.handoff import HandoffConnection, left
from millrace.errors import Cancelled, DaemonUnavailable, Error, ResourceExhausted, error_class

if TYPE_CHECKING:
    from collections.abc import Callable

    from millrace._wire.grpc import grpc

_NO_ROOM = re.compile(r"Error code: 11; Debug Text: (.*?)\)?$")  # a GOAWAY, as gRPC words it
_OWN_WORDS_METADATA = "millrace-own-words"  # of an UNAVAILABLE that the daemon itself answers with, not gRPC
SLOTS_LATER = (("millrace-slots-later", "1"),)
"""Metadata of the call that opens a session: this client can do with slots that are filled later, see _memory/segment.py."""
OPENING = "Sessions/Open"
"""What begins the message of an error from the call that opens a session."""
NEXT_SESSION = "; once it runs again open a new session; an epoch goes on from its position"
"""What ends the message of a daemon that went away: what the user of a session does about it."""
_OPTIONS = [
    ("grpc.enable_http_proxy", 0),
    ("grpc.enable_retries", 0),
    ("grpc.max_receive_message_length", 16 << 20),
    ("grpc.use_local_subchannel_pool", 1),
]
_MOST_AGAIN = 2
T = TypeVar("T")


def channel_to(path: str) -> grpc.Channel:
    """A channel to the daemon's socket; nothing is connected before the first call."""
    _fork.check_grpc()
    from millrace._wire.grpc import grpc  # here, because loading it takes as long as all that is ours

    return grpc.insecure_channel(f"unix:{path}", options=_OPTIONS)


def call_error(why: grpc.RpcError, path: str, doing: str) -> Error:
    """The exception for a call that failed."""
    from millrace._wire.grpc import grpc

    code = why.code()
    if code is grpc.StatusCode.UNAVAILABLE:
        if full := _NO_ROOM.search(why.details() or ""):
            return ResourceExhausted(f"the daemon at unix:{path} has no room for this connection: {full[1]}")
        if any(key == _OWN_WORDS_METADATA for key, _ in why.trailing_metadata() or ()):
            return DaemonUnavailable(f"the daemon at unix:{path}: {why.details()}")
        return gone(path, why.details())
    return error_class(code.name)(f"{doing}: {why.details()}")


def gone(path: str, reason: str | None) -> DaemonUnavailable:
    """The exception for a daemon that went away."""
    return DaemonUnavailable(f"the daemon at unix:{path} has gone away ({reason or 'the connection closed'}){NEXT_SESSION}")


def unary(
    channel: grpc.Channel, method: str, request: bytes, reply: Any, path: str, timeout: float, metadata: tuple[tuple[str, str], ...] = ()
) -> Any:
    """One call: serialised request in, parsed reply out. Raises Errors."""
    from millrace._wire.grpc import grpc

    call = channel.unary_unary(method, request_serializer=None, response_deserializer=reply.FromString if reply else None)
    try:
        return call(request, timeout=timeout, metadata=metadata)
    except grpc.RpcError as why:
        raise call_error(why, path, method.rpartition(".")[2]) from None


def told_of(why: BaseException, path: str, connection: HandoffConnection) -> BaseException:
    """What to raise when opening a session failed with ``why``: the next daemon knows no ticket of one that has ended meanwhile."""
    if not isinstance(why, Error) or not (isinstance(why, Cancelled) or connection.has_ended()):
        return why
    return gone(path, f"while the session was opened: {why}")


def asked_again(ask: Callable[[float], T], timeout: float) -> T:
    """What ``ask(seconds that are left)`` returns. While no daemon is there it is asked again, twice; then the first error counts."""
    deadline = time.monotonic() + timeout
    try:
        return ask(timeout)
    except DaemonUnavailable as why:
        first = why
    for _ in range(_MOST_AGAIN):
        if time.monotonic() >= deadline:
            break
        try:
            return ask(left(deadline))
        except DaemonUnavailable:
            continue
    raise first
