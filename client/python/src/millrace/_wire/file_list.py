"""A list of files as the daemon takes it: the folder that all have in common, and parts of what comes after it. Pure functions."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from millrace._wire.messages import path_bytes
from millrace.errors import InvalidRequest
from millrace.samples import AnyPath

_FILES = 16_384  # of a part: 1 MiB of ordinary paths
_ZERO, _SLASH, _DOT = b"\0/."
_ODD = (b"/./", b"/../", b"/.\0", b"/..\0")  # in paths that are not in their shortest form


class NotBeneath(Exception):
    """Not all of the files lie beneath the folder: some are written with ``..``, or relative."""


class Part(NamedTuple):
    """Some of the files: as of ``ListFiles``."""

    paths: bytes
    """Beneath the folder, each with a zero byte after it."""
    labels: list[int]
    """As many; or none."""
    files: int


def label_array(labels: Any, files: int) -> NDArray[np.int64] | None:
    """The labels as int64 [files]; None: none.

    Raises:
        InvalidRequest: they are no integers, or not as many as files.
    """
    if labels is None:
        return None
    given = np.asarray(labels)
    if given.shape != (files,):
        raise InvalidRequest(f"dataset: labels must be one for each of the {files} files; their shape is {given.shape}")
    if files and given.dtype.kind not in "iu":
        raise InvalidRequest(
            f"dataset: labels are integers; these are {given.dtype}. Keep others by sample id, and look them up by batch.ids"
        )
    if given.dtype == np.uint64 and files and int(given.max()) > np.iinfo(np.int64).max:
        raise InvalidRequest("dataset: a label is more than 64 bits with a sign hold")
    return given.astype(np.int64)


def common_folder(paths: Sequence[AnyPath]) -> bytes:
    """A folder that all paths lie beneath if they are absolute and in their shortest form; ``b"/"`` where that is not found quickly."""
    try:
        ends = path_bytes(min(paths)), path_bytes(max(paths))  # type: ignore[type-var]
    except (TypeError, ValueError):  # of several types, or of one without an order; what is none is told of later, with its number
        return b"/"
    return os.path.commonpath([os.path.dirname(end) for end in ends])


def parts(paths: Sequence[AnyPath], labels: NDArray[np.int64] | None, folder: bytes, most_bytes: int) -> Iterator[Part]:
    """The files part by part, in order.

    Args:
        paths: as the caller gave them.
        labels: of each; None: none.
        folder: what ``common_folder`` said.
        most_bytes: of a part's paths.

    Raises:
        InvalidRequest: a path that is none; says which.
        NotBeneath: see there; ``b"/"`` will do.
    """
    at, step = 0, _FILES
    while at < len(paths):
        some = paths[at : at + step]
        told = joined(some, folder, at)
        if len(told) > most_bytes and len(some) > 1:
            step = max(1, len(some) // 2)
            continue
        yield Part(told, [] if labels is None else labels[at : at + len(some)].tolist(), len(some))
        at += len(some)


def joined(some: Iterable[AnyPath], folder: bytes, first: int) -> bytes:
    """Paths beneath the folder, with a zero byte after each.

    Args:
        some: paths.
        folder: what ``common_folder`` said.
        first: the number of the first one in the caller's list, for messages.

    Raises:
        InvalidRequest, NotBeneath: as ``parts``.
    """
    some = list(some)
    prefix = b"\0" if folder == b"/" else b"\0" + folder
    told = _quickly(some)
    if told is None or told.count(prefix + b"/") != len(some):
        told = b"\0".join(_slowly(path, first + number) for number, path in enumerate(some))
        told = b"\0" + told + b"\0"
        if told.count(prefix + b"/") != len(some):
            raise NotBeneath
    return told.replace(prefix + b"/", b"\0")[1:]


def _quickly(some: list[Any]) -> bytes | None:
    """Absolute paths in their shortest form, all of one type, with a zero byte before, between and after them; None: some are not."""
    told: bytes
    if isinstance(some[0], str):
        try:
            told = os.fsencode("\0" + "\0".join(some) + "\0")
        except (TypeError, UnicodeError):
            return None
    elif isinstance(some[0], bytes):
        try:
            told = b"\0" + b"\0".join(some) + b"\0"
        except TypeError:
            return None
    else:
        return None
    return told if _are_plain(told, len(some)) else None


def _are_plain(told: bytes, files: int) -> bool:
    letters = np.frombuffer(told, np.uint8)
    ends, slashes = letters == _ZERO, letters == _SLASH
    if np.count_nonzero(ends) != files + 1 or np.count_nonzero(ends[:-1] & slashes[1:]) != files:
        return False  # a zero byte within a path, or one that is relative
    if (slashes[:-1] & (slashes[1:] | ends[1:])).any():
        return False
    if not (slashes[:-1] & (letters[1:] == _DOT)).any():
        return True
    return not any(odd in told for odd in _ODD)


def _slowly(path: Any, number: int) -> bytes:
    try:
        told = path_bytes(path)
    except TypeError as why:
        raise InvalidRequest(f"dataset: file {number} of the list is a {type(path).__name__}, not a path") from why
    except ValueError as why:  # a URL, or a text that is no file's name
        raise InvalidRequest(f"dataset: file {number} of the list: {why}") from None
    if b"\0" in told:
        raise InvalidRequest(f"dataset: file {number} of the list has a zero byte in its path")
    return told
