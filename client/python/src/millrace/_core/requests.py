"""A session's requests over its reply socket, the other way: the messages of the gRPC stream, without gRPC in between.

Who submits writes the message itself if no frame before it is half written; else it is queued, as all other messages are, for the stream's
writer. Frames are drawn in proto/shm/handoff_wire.h.
"""

from __future__ import annotations

import struct
import threading
import time
from collections import deque
from collections.abc import Sequence

from millrace._memory.lease import Outgoing
from millrace._wire.replies import Replies

_LENGTH = struct.Struct("<I")
_MOST_PARTS = 512  # in one system call (IOV_MAX is 1024)
_PATIENCE = 0.005  # seconds that a caller waits for a daemon that reads
_LOOK_AGAIN = 1.0  # so late the writer notices at the latest that the socket was closed meanwhile


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
