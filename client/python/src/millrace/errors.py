"""What can go wrong, one class a cause. Every message says what to do.

All derive from :class:`Error`; where Python has a class for the cause (``TimeoutError``, ``PermissionError``, ...) ours derives from
that one too, so that code which knows nothing of Millrace catches it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = [
    "Cancelled",
    "DaemonUnavailable",
    "DeadlineExceeded",
    "Error",
    "FailedPrecondition",
    "Forked",
    "InternalError",
    "InvalidRequest",
    "NotFound",
    "PermissionDenied",
    "Released",
    "ResourceExhausted",
    "SampleError",
    "SampleFailed",
    "SlotsHeld",
    "SlotsWithdrawn",
    "StaleHandle",
    "Unsupported",
]


@dataclass(frozen=True)
class SampleError:
    r"""One image that did not come out as asked. A value.

    Attributes:
        index: its position in the batch as it was asked for.
        sample_id: its id.
        source: for people: its path, or what else names it; what is not printable UTF-8 is written ``\xNN``.
        code: gRPC's name of the cause: ``"INVALID_ARGUMENT"``, ``"NOT_FOUND"``, ...
        message: what is wrong with it.
        path: the file, for ``open`` and ``os``; ``os.fsencode`` gives its bytes. None: the sample is no file.
    """

    index: int
    sample_id: int
    source: str
    code: str
    message: str
    path: str | None = None

    def __str__(self) -> str:
        return f"sample {self.index} ({self.source}): {self.message}"


class Error(Exception):
    """Anything that this package raises about the daemon or a request.

    Attributes:
        code: gRPC's name of the cause, the same in every language: ``"UNAVAILABLE"``, ``"INVALID_ARGUMENT"``, ...
        batch_id: of the submitted batch or the batch of an epoch that failed; None when it is about something else.
        sample_errors: the images at fault, when a batch failed because of them.
    """

    code = "UNKNOWN"

    def __init__(self, message: str, *, batch_id: int | None = None, sample_errors: Sequence[SampleError] = ()) -> None:
        super().__init__(message)
        self.batch_id = batch_id
        self.sample_errors = tuple(sample_errors)


class InvalidRequest(Error, ValueError):
    """The request is malformed; the message names the field."""

    code = "INVALID_ARGUMENT"


class NotFound(Error, LookupError):
    """No such file, folder, dataset, batch or program."""

    code = "NOT_FOUND"


class PermissionDenied(Error, PermissionError):
    """This user may not: connect, or read that file. The words are the same whether the file exists or not."""

    code = "PERMISSION_DENIED"


class ResourceExhausted(Error):
    """A budget of the daemon is used up, or the input ring is full; the message says which and how to raise it.

    Attributes:
        slot_bytes: with which the batch would have fitted its slot; 0: it is about something else, or the daemon is older and does not say.
    """

    code = "RESOURCE_EXHAUSTED"
    slot_bytes = 0


class DeadlineExceeded(Error, TimeoutError):
    """It took longer than allowed."""

    code = "DEADLINE_EXCEEDED"


class Cancelled(Error):
    """It was given up: cancelled, stopped, or the session was closed under it."""

    code = "CANCELLED"


class FailedPrecondition(Error):
    """Right once, not any more: a position of another dataset, versions that do not fit, nothing to wait for."""

    code = "FAILED_PRECONDITION"


class Released(FailedPrecondition):
    """The batch was released: its memory may hold another one by now, so it cannot be read any more."""


class StaleHandle(FailedPrecondition):
    """The slot of shared memory does not hold this batch any more."""


class Forked(FailedPrecondition):
    """The object belongs to the process that forked this one; connect anew in the child."""


class DaemonUnavailable(Error, ConnectionError):
    """No daemon answers, or it went away. Connect again once it runs; an epoch goes on from its position."""

    code = "UNAVAILABLE"


class Unsupported(Error, NotImplementedError):
    """A well-formed wish that this version does not fulfil."""

    code = "UNIMPLEMENTED"


class InternalError(Error):
    """A bug of Millrace or a failure of the host; the message says where."""

    code = "INTERNAL"


class SampleFailed(Error):
    """A batch or an epoch came to nothing because of bad images: with ``on_error="fail"``, none was good, or too many were bad.

    ``sample_errors`` has them; of an epoch it has an example.
    """

    code = "INVALID_ARGUMENT"


class SlotsHeld(RuntimeWarning):
    """The program keeps so many batches that no slot is left for the next one: they are copied, or nothing comes. Once a session."""


class SlotsWithdrawn(RuntimeWarning):
    """The host has no room for all slots that the session was opened with; it goes on with those that there are. Once a session."""


_BY_CODE: dict[str, type[Error]] = {
    cls.code: cls
    for cls in (
        InvalidRequest,
        NotFound,
        PermissionDenied,
        ResourceExhausted,
        DeadlineExceeded,
        Cancelled,
        FailedPrecondition,
        DaemonUnavailable,
        Unsupported,
        InternalError,
    )
}
_BY_CODE["UNAUTHENTICATED"] = PermissionDenied

CODE_NAMES: tuple[str, ...] = (
    "OK",
    "INVALID_ARGUMENT",
    "NOT_FOUND",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "DEADLINE_EXCEEDED",
    "CANCELLED",
    "FAILED_PRECONDITION",
    "UNAVAILABLE",
    "UNIMPLEMENTED",
    "INTERNAL",
)
"""The names of the codes that shared memory and the hand-off socket hold as numbers (proto/base/error.h), by number."""


def error_class(code: str) -> type[Error]:
    """The class for gRPC's name of a code; :class:`InternalError` for one that this version does not know."""
    return _BY_CODE.get(code, InternalError)
