"""Single requests to a store, by fsspec: what an object is now, and a range of it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any

from millrace._remote.ranges import result_of
from millrace._remote.store import Store

_ANSWER = 120.0  # seconds for one request
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
    data: bytes = _awaited(files, _by_http(files, path, begin, end)) if store.http else _done(files, "cat_file", path, start=begin, end=end)
    if len(data) > end - begin:
        raise NotImplementedError(_NO_RANGES)
    return data


async def _by_http(files: Any, url: str, begin: int, end: int) -> bytes:
    """As fsspec's ``_cat_file``, which would fetch the whole file where the server knows no ranges."""
    options = {**files.kwargs, "headers": {**files.kwargs.get("headers", {}), "Range": f"bytes={begin}-{end - 1}"}}
    session = await files.set_session()
    async with session.get(files.encode_url(url), **options) as answer:
        if answer.status == 404:
            raise FileNotFoundError(url)
        answer.raise_for_status()
        if answer.status != 206 and (begin or answer.content_length != end):
            raise NotImplementedError(_NO_RANGES)
        data: bytes = await answer.read()
        return data


def _done(files: Any, method: str, *args: Any, **options: Any) -> Any:
    """A call of fsspec's, which can be given up where it is a coroutine."""
    if not getattr(files, "async_impl", False):
        return getattr(files, method)(*args, **options)
    return _awaited(files, getattr(files, f"_{method}")(*args, **options))


def _awaited(files: Any, coroutine: Coroutine[Any, Any, Any]) -> Any:
    return result_of(asyncio.run_coroutine_threadsafe(coroutine, files.loop), _ANSWER)
