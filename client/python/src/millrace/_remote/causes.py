"""What a store's failure means: whether trying again may help, and how it is told."""

from __future__ import annotations

import re

from millrace._wire.messages import path_text
from millrace.errors import Error

_AGAIN = (408, 425, 429)  # of HTTP's 4xx: the server asks for another try
_FINAL = (FileNotFoundError, PermissionError, IsADirectoryError, ImportError, NotImplementedError, TypeError)
_FINAL_NAMES = frozenset(("NoCredentialsError", "PartialCredentialsError", "ParamValidationError", "InvalidURL", "NonHttpUrlClientError"))
_USER = re.compile(r"(\w://)[^\s/?#'\"]*@")
_QUERY = re.compile(r"(\w://[^?'\"<>\n]*\?)[^\s'\"<>]*")
_STATUSES = {401: "the store wants credentials", 403: "the store refuses it to these credentials", 404: "there is no such object"}


class Replaced(ValueError):
    """The object is another one than when the source was opened."""


class Cut(OSError):
    """Another number of bytes came than was asked for."""


def may_pass(error: BaseException) -> bool:
    """Whether another try may bring what this one did not: a busy server, a connection that was cut, no answer in time."""
    status = status_of(error)
    if status:
        return status >= 500 or status in _AGAIN
    if isinstance(error, (Replaced, Error)) or not isinstance(error, Exception):
        return False
    first = _chain(error)[-1]  # fsspec says FileNotFoundError of a server that does not answer, too
    return not isinstance(first, _FINAL) and not any(type(one).__name__ in _FINAL_NAMES for one in _chain(error))


def status_of(error: BaseException) -> int:
    """HTTP's status; 0: it says none."""
    for one in _chain(error, contexts=True):  # s3fs says no cause of what it has of HEAD
        response = getattr(one, "response", None)
        found = getattr(one, "status", None) or getattr(response, "status_code", None)
        if isinstance(response, dict):
            found = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        if isinstance(found, int):
            return found
    return 0


def told(error: BaseException) -> str:
    """For people, on one line."""
    status = status_of(error)
    if status in _STATUSES:
        return f"{_STATUSES[status]} ({status})"
    first = _chain(error)[-1]
    if isinstance(first, FileNotFoundError):
        return _STATUSES[404]
    if isinstance(first, PermissionError):
        return _STATUSES[403]
    text = path_text(without_secrets(" ".join(str(first).split()))[:300])
    return f"{type(first).__name__}: {text}" if text else type(first).__name__


def without_secrets(text: str) -> str:
    """Of URLs in it the queries, which may hold signatures, and users with their passwords are left out."""
    return _QUERY.sub(r"\1...", _USER.sub(r"\1", text))


def to_show(error: BaseException) -> BaseException | None:
    """What may be shown as the cause in a traceback: the error, unless a text of it holds what may be secret."""
    texts = [str(one) for one in _chain(error, contexts=True)]
    return error if texts == [without_secrets(text) for text in texts] else None


def _chain(error: BaseException, *, contexts: bool = False) -> list[BaseException]:
    """The error and its causes; or what it was raised for, where it has none."""
    found = [error]
    while len(found) < 8:
        last = found[-1]
        before = last.__cause__ or (last.__context__ if contexts and not last.__suppress_context__ else None)
        if before is None:
            break
        found.append(before)
    return found
