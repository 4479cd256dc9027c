"""What work costs the daemon, as it says: of a session, of a job, of a user."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from millrace._wire import schema
from millrace._wire.calls import channel_to, unary
from millrace.errors import DaemonUnavailable


@dataclass(frozen=True)
class Cost:
    """What work took, or a part of it; costs can be added. CPU seconds are the kernel's, of threads and processes."""

    lane_cpu_seconds: float = 0.0
    """Of CPU lanes."""
    fetch_cpu_seconds: float = 0.0
    """Of the threads that list and read."""
    control_cpu_seconds: float = 0.0
    """Of the control thread."""
    process_cpu_seconds: float = 0.0
    """Of decoder processes, and of those that own devices."""
    file_bytes: int = 0
    """Read from files."""
    kept_bytes: int = 0
    """Read from what is kept, in memory or on disk, in place of files."""
    images: int = 0
    """Made."""
    tensor_bytes: int = 0
    """Handed over."""
    memory_byte_seconds: float = 0.0
    """Memory for tensors, by the time that it was held."""
    saved_lane_seconds: float = 0.0
    """Lane time that first accesses of the same files would have taken more."""
    waited_seconds: float = 0.0
    """Of programs, as their clients say."""

    @property
    def cpu_seconds(self) -> float:
        """All CPU seconds."""
        return self.lane_cpu_seconds + self.fetch_cpu_seconds + self.control_cpu_seconds + self.process_cpu_seconds

    def __add__(self, other: Cost) -> Cost:
        """Of both."""
        return Cost(**{field.name: getattr(self, field.name) + getattr(other, field.name) for field in fields(self)})


def cost_of(message: Any) -> Cost:
    """A ``Cost`` of the protocol's."""
    return Cost(**{field.name: getattr(message, field.name) for field in fields(Cost)})


def session_cost(path: str, session: int, timeout: float) -> Cost | None:
    """Of the daemon's session of that number; None: the daemon is older and does not say.

    Raises:
        DaemonUnavailable: it has no such session, or is gone.
    """
    channel = channel_to(path)
    try:
        reply = unary(channel, "/millrace.v1.Statistics/Get", b"", schema.GetStatisticsReply, path, timeout)
    finally:
        channel.close()
    for one in reply.sessions:
        if one.session_id == session:
            return cost_of(one.cost) if one.HasField("cost") else None
    raise DaemonUnavailable("cost: the daemon has no such session any more")
