"""The call that opens a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millrace._wire import schema
from millrace._wire.calls import OPENING, SLOTS_LATER, unary
from millrace._wire.handoff import left
from millrace.errors import InvalidRequest

if TYPE_CHECKING:
    from millrace._wire.grpc import grpc


def open_session(channel: grpc.Channel, request: Any, path: str, deadline: float) -> Any:
    """The daemon's reply. An older one, which keeps no costs, is not told of a job. Raises Errors."""
    method = f"/millrace.v1.{OPENING}"

    def ask() -> Any:
        return unary(channel, method, request.SerializeToString(), schema.OpenSessionReply, path, left(deadline), SLOTS_LATER)

    try:
        return ask()
    except InvalidRequest as why:
        number = request.DESCRIPTOR.fields_by_name["job"].number
        if not request.job or f"{number}: a field of OpenSessionRequest that" not in str(why):
            raise
        request.ClearField("job")
        return ask()
