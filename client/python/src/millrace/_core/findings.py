"""Why programs wait for their batches: what the daemon says of it, as values, and how it is asked."""

from __future__ import annotations

import os
import textwrap
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from millrace._wire import schema
from millrace._wire.calls import channel_to, unary
from millrace._wire.handoff import HandoffConnection, left
from millrace._wire.messages import path_text
from millrace.errors import FailedPrecondition

if TYPE_CHECKING:
    from millrace._wire.grpc import grpc

_COLUMNS = 80
_INDENT = " " * 8


@dataclass(frozen=True)
class Finding:
    """One cause of waiting; ``str()`` has its words."""

    code: str
    """``"slow_disk"``: for programs, for good; further ones may come. daemon/doc/why.md has them."""
    share: float
    """Of the time that the program waited, 0 to 1."""
    text: str
    """What it is, in words and figures."""
    advice: str
    """What to change."""
    images_per_second: float
    """What the program would reach without it; 0: not known."""
    figures: dict[str, float] = field(default_factory=dict)
    """By name, in bytes, seconds or counts: ``"disk_bytes_per_second"``."""
    paths: tuple[str, ...] = ()
    """Slow files, or a root, as ``os.fsdecode`` has them; only for the session's user and administrators."""

    def __str__(self) -> str:
        head = f"{100 * self.share:4.0f} %  {self.code}"
        if self.images_per_second > 0:
            head += f": {_rate(self.images_per_second)} images/s without it"
        words = [head, _wrapped(self.text, _INDENT, _INDENT), _wrapped(f"To do: {self.advice}", _INDENT, _INDENT)]
        return "\n".join(words + [_INDENT + path_text(path) for path in self.paths])


@dataclass(frozen=True)
class Findings:
    """What bounds a session; ``str()`` has the words of ``millrace why``."""

    id: int
    """The session's number."""
    name: str
    uid: int
    job: str
    seconds: float
    """That it looks back over."""
    images_per_second: float
    waited: float
    """Share of that time that the program waited, 0 to 1."""
    waits_told: bool
    """False: the client does not say how long the program waits; then shares are of the session's time."""
    findings: tuple[Finding, ...]
    """The dearest first; of a session that does not wait, one that says so."""

    def __str__(self) -> str:
        name = f' "{self.name}"' if self.name else ""
        job = f', job "{self.job}"' if self.job not in ("", self.name) else ""
        head = (
            f"session {self.id}{name} of user {self.uid}{job}: {_rate(self.images_per_second)} images/s in the last {self.seconds:.0f} s, "
        )
        if self.waits_told:
            head += f"its program waited {100 * self.waited:.0f} % of them"
        else:
            head += f"it was at work for {100 * self.waited:.0f} % of them (its client does not say how long it waits)"
        return "\n".join([_wrapped(head, "", "  "), *map(str, self.findings)])


def _rate(images: float) -> str:
    digits = 0 if images >= 100 else 1 if images >= 10 else 2
    return f"{images:.{digits}f}"


def _wrapped(text: str, begin: str, indent: str) -> str:
    return textwrap.fill(text, _COLUMNS, initial_indent=begin, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _findings(message: Any) -> Findings:
    found = tuple(
        Finding(
            one.code,
            one.share,
            one.text,
            one.advice,
            one.images_per_second,
            {figure.name: figure.value for figure in one.figures},
            tuple(os.fsdecode(path) for path in one.paths),
        )
        for one in message.findings
    )
    return Findings(
        message.session_id,
        message.name,
        message.uid,
        message.job,
        message.seconds,
        message.images_per_second,
        message.waited,
        message.waits_told,
        found,
    )


def explain(path: str, channel: grpc.Channel, session: int, timeout: float) -> tuple[Findings, ...]:
    """What bounds the session, or with 0 every one. ``path``: of the socket. Raises ``NotFound``: there is no such session."""
    deadline = time.monotonic() + timeout
    connection = HandoffConnection(path, deadline)
    try:
        request = schema.ExplainRequest(session_id=session, ticket=connection.ticket).SerializeToString()
        reply = unary(channel, "/millrace.v1.Statistics/Explain", request, schema.ExplainReply, path, left(deadline))
    finally:
        connection.close()
    return tuple(_findings(one) for one in reply.sessions)


class SaysWhy:
    """A session that says what its program waits for."""

    id: int
    _path: str

    def why(self, timeout: float = 5.0) -> Findings:
        """What bounds this session now, over the last 20 seconds: the dearest cause first, in words and figures.

        Raises:
            NotFound: the session is closed.
        """
        channel = channel_to(self._path)
        try:
            return explain(self._path, channel, self.id, timeout)[0]
        finally:
            channel.close()


class LoaderSaysWhy:
    """A loader that says what its loop waits for."""

    _session: Any

    def why(self, timeout: float = 5.0) -> Findings:
        """What the running loop waits for, and what to change: ``print(loader.why())``. As ``Session.why``.

        Raises:
            FailedPrecondition: it is not connected: no loop has begun, or it was closed.
        """
        if self._session is None:
            raise FailedPrecondition("loader: nothing is known before its first loop begins, nor once it is closed")
        findings: Findings = self._session.why(timeout)
        return findings
