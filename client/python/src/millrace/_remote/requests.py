"""Single requests to a store, by fsspec: what an object is now, and a range of it."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from typing import Any

from millrace._remote.causes import Cut
from millrace._remote.ranges import result_of
from millrace._remote.store import Store, version_of

_ANSWER = 120.0  # seconds for one request
_PIECE = 1 << 20  # bytes that are taken from a connection at once, at most
_RANGE = re.compile(r"\s*bytes\s+(\d{1,20})-")
_NO_RANGES = "the server gives the whole file where a range is asked for"


def info_of(store: Store, path: str, *, folders: bool = False) -> Mapping[str, Any]:
    """As it is now: its ``size``, an int, and what tells its version; of a folder, which ``folders`` allows, that it is one."""
    files = store.files()
    files.invalidate_cache()
    info: Mapping[str, Any] = _done(files, "info", path)
    if info.get("type") == "directory":
        if folders:
            return info
        raise IsADirectoryError("it is a folder")
    if not isinstance(info.get("size"), int):
        raise NotImplementedError("the server does not say how large it is")
    return info


def listed(store: Store, method: str, path: str) -> Any:
    """What fsspec's ``ls`` or ``glob`` gives, with what it knows of each."""
    return _done(store.files(), method, path, detail=True)


def range_of(store: Store, path: str, begin: int, end: int) -> bytes:
    """The bytes from ``begin`` up to ``end``, which are some; fewer where the object ends before.

    Raises:
        NotImplementedError: the server gives the whole object where a range is asked for.
    """
    files = store.files()
    if store.http or store.s3:
        found: bytes = _awaited(files, (_by_http if store.http else _by_s3)(files, path, begin, end))
        return found
    data: bytes = _done(files, "cat_file", path, start=begin, end=end)
    if len(data) > end - begin:
        raise NotImplementedError(_NO_RANGES)
    return data


def range_into(store: Store, path: str, begin: int, out: memoryview) -> tuple[int, str]:
    """Fills ``out``, which has some bytes, from there on. Once it has raised, nothing is written any more.

    Returns:
        How many bytes came, fewer where the object ends before; and their version, as ``version_of``, or empty: the store does not say.

    Raises:
        NotImplementedError: the server gives the whole object where a range is asked for.
    """
    files = store.files()
    if store.http or store.s3:
        told: tuple[int, str] = _awaited(files, (_into_by_http if store.http else _into_by_s3)(files, path, begin, out))
        return told
    data = range_of(store, path, begin, begin + len(out))
    out[: len(data)] = data
    return len(data), ""


async def _by_http(files: Any, url: str, begin: int, end: int) -> bytes:
    """As fsspec's ``_cat_file``, which would take whatever the server sends."""
    async with _asked_by_http(files, url, begin, end) as answer:
        return await _collected(end - begin, answer.content.read)


async def _by_s3(files: Any, path: str, begin: int, end: int) -> bytes:
    async with _asked_by_s3(files, path, begin, end) as answer:
        return await _collected(end - begin, answer["Body"].read)


async def _into_by_http(files: Any, url: str, begin: int, out: memoryview) -> tuple[int, str]:
    async with _asked_by_http(files, url, begin, begin + len(out)) as answer:
        return await _filled(out, answer.content.read), version_of(answer.headers)


@contextlib.asynccontextmanager
async def _asked_by_http(files: Any, url: str, begin: int, end: int) -> AsyncIterator[Any]:
    options = {**files.kwargs, "headers": {**files.kwargs.get("headers", {}), "Range": f"bytes={begin}-{end - 1}"}}
    session = await files.set_session()
    async with session.get(files.encode_url(url), **options) as answer:
        if answer.status == 404:
            raise FileNotFoundError(url)
        answer.raise_for_status()
        if answer.status != 206 and (begin or answer.content_length is None or answer.content_length > end):
            raise NotImplementedError(_NO_RANGES)
        _check_range(answer.headers.get("Content-Range"), begin)
        yield answer


async def _into_by_s3(files: Any, path: str, begin: int, out: memoryview) -> tuple[int, str]:
    """As s3fs's ``_cat_file``, less a copy, and with the version."""
    async with _asked_by_s3(files, path, begin, begin + len(out)) as answer:
        return await _filled(out, answer["Body"].read), version_of(answer)


@contextlib.asynccontextmanager
async def _asked_by_s3(files: Any, path: str, begin: int, end: int) -> AsyncIterator[Any]:
    bucket, key, version = files.split_path(path)
    options = {"VersionId": version} if version else {}
    answer = await files._call_s3("get_object", Bucket=bucket, Key=key, Range=f"bytes={begin}-{end - 1}", **options)
    try:
        _check_range(answer.get("ContentRange"), begin)
        yield answer
    finally:
        answer["Body"].close()


def _check_range(told: str | None, begin: int) -> None:
    """Raises Cut: another range came than was asked for, as of a cache on the way."""
    found = _RANGE.match(told or "")
    if found and int(found[1]) != begin:
        raise Cut(f"the range from byte {int(found[1])} on came, and that from {begin} on was asked for")


async def _collected(most: int, read: Callable[[int], Awaitable[bytes]]) -> bytes:
    """Raises NotImplementedError: more comes."""
    pieces, count = [], 0
    while data := await read(_PIECE):
        count += len(data)
        if count > most:
            raise NotImplementedError(_NO_RANGES)
        pieces.append(data)
    return b"".join(pieces)


async def _filled(out: memoryview, read: Callable[[int], Awaitable[bytes]]) -> int:
    """How many bytes came."""
    at = 0
    while data := await read(_PIECE):
        if at + len(data) > len(out):
            raise NotImplementedError(_NO_RANGES)
        out[at : at + len(data)] = data
        at += len(data)
    return at


def _done(files: Any, method: str, *args: Any, **options: Any) -> Any:
    """A call of fsspec's, which can be given up where it is a coroutine."""
    if not getattr(files, "async_impl", False):
        return getattr(files, method)(*args, **options)
    return _awaited(files, getattr(files, f"_{method}")(*args, **options))


def _awaited(files: Any, coroutine: Coroutine[Any, Any, Any]) -> Any:
    return result_of(asyncio.run_coroutine_threadsafe(coroutine, files.loop), _ANSWER)
