"""Objects of stores: which are meant by URLs, patterns and folders, and their bytes by ranges."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from millrace._remote.causes import Cut, Replaced, may_pass, status_of, to_show, told
from millrace._remote.memory import room_for
from millrace._remote.ranges import RANGE, Stopped, all_done
from millrace._remote.requests import info_of, listed, range_into
from millrace._remote.store import Store, shown, unsigned, version_of
from millrace._shards.sources import expanded
from millrace.errors import Error, InvalidRequest, NotFound, PermissionDenied

T = TypeVar("T")

_MOST = 100_000  # objects


@dataclass(frozen=True)
class RemoteObject:
    """An object as it was when it was looked up. It may be pickled.

    Attributes:
        url: of it.
        store: where it is.
        size: in bytes.
        version: what tells it from the one that replaces it; empty: the store says nothing, then its size alone does.
    """

    url: str
    store: Store
    size: int
    version: str

    @property
    def name(self) -> str:
        """For people."""
        return shown(self.url)

    def __repr__(self) -> str:
        return f"<RemoteObject {self.name} of {self.size} bytes>"

    @property
    def identity(self) -> str:
        """Of this version, for fingerprints and names of what is kept of it. A URL that is signed anew stays the same object."""
        return f"{unsigned(self.url) if self.version else self.url} {self.size} {self.version}"

    def read(self, pieces: Sequence[tuple[int, int]], stop: threading.Event | None = None, *, look: bool = True) -> list[memoryview]:
        """The bytes of pieces, all of one version of the object.

        Args:
            pieces: of each where it begins and how long it is, within the object.
            stop: once it is set, reading ends.
            look: whether to look afterwards if the object is the same; else the caller does: ``check``.

        Returns:
            Of each its bytes, read-only.

        Raises:
            OSError: they cannot be read; says URL and cause.
            ValueError: the object is another one now.
        """
        buffers = [room_for(length) for _, length in pieces]
        calls = []
        for (begin, length), buffer in zip(pieces, buffers, strict=True):
            for at in range(0, length, RANGE):
                calls.append(functools.partial(self._into, buffer[at : at + RANGE], begin + at))
        versions = self._tried(lambda: all_done(calls, stop, self.name))
        if look and not (self.version and versions and all(version == self.version for version in versions)):
            self.check(stop)
        return [buffer.toreadonly() for buffer in buffers]

    def check(self, stop: threading.Event | None = None) -> None:
        """Raises as ``read``: the object is gone, or another one now."""
        self._tried(lambda: all_done([self._look], stop, self.name))

    def _look(self) -> None:
        info = info_of(self.store, self.store.path(self.url))
        if (info["size"], version_of(info)) != (self.size, self.version):
            raise self._replaced()

    def _replaced(self) -> Replaced:
        return Replaced(f"{self.name} has been replaced since it was opened: it has another size or {self.version.partition(' ')[0]}")

    def _into(self, out: memoryview, begin: int) -> str:
        """Fills it; the version of what came."""
        length, version = range_into(self.store, self.store.path(self.url), begin, out)
        if self.store.s3 and version and version != self.version:  # web servers may name a version otherwise here than where it was opened
            raise self._replaced()
        if length < len(out):
            self._look()  # a shorter object gives less, however often it is asked
            raise Cut(f"{length} bytes came of {len(out)}")
        return version

    def _tried(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except (Error, Replaced, Stopped):
            raise
        except Exception as why:
            if status_of(why) == 416:  # the range lies beyond its end
                raise Replaced(f"{self.name} has been replaced since it was opened: it is shorter now") from None
            raise OSError(f"{self.name} cannot be read: {told(why)}") from to_show(why)


def is_remote(source: Any) -> bool:
    """Whether it is a URL, or a list that begins with one."""
    if isinstance(source, str):
        return "://" in source
    return isinstance(source, Sequence) and bool(len(source)) and isinstance(source[0], str) and "://" in source[0]


def objects_of(source: Any, endings: tuple[str, ...], what: str, options: Mapping[str, Any] | None = None) -> list[RemoteObject]:
    """The objects that are meant, each once, in order.

    Args:
        source: a URL; with ``{0000..0099}`` or ``{a,b}`` several, in this order; with ``*`` those that there are, and of a folder those in
            it with these endings, both in the order of their names; or a list of these.
        endings: of names, lower case.
        what: for messages: ``"shards"``.
        options: fsspec's ``storage_options``.

    Raises:
        InvalidRequest: none is meant, or one twice.
        NotFound, PermissionDenied: one is not there, or cannot be read with these credentials; says which.
        Unsupported: a scheme that is not read, or a package that is missing.
    """
    given = [source] if isinstance(source, str) else list(source) if isinstance(source, Iterable) else []
    found: dict[str, RemoteObject] = {}
    for one in given:
        if not isinstance(one, str) or "://" not in one:
            raise InvalidRequest(f"{what}: URLs and files are not mixed: {shown(str(one))} is no URL")
        store = Store.of(one, options)
        for object_ in _meant(store, one, endings, what):
            if object_.url in found:
                raise InvalidRequest(f"{what}: {object_.name} is there twice; name each once")
            found[object_.url] = object_
    if not found:
        raise InvalidRequest(f"{what}: there are none")
    if len(found) > _MOST:
        raise InvalidRequest(f"{what}: there are more than {_MOST}")
    return list(found.values())


def _meant(store: Store, url: str, endings: tuple[str, ...], what: str) -> Iterator[RemoteObject]:
    urls = expanded(url)
    patterns = [one for one in urls if "*" in one]
    if patterns:
        for one in urls:
            yield from _matching(store, one, what) if "*" in one else _looked_up(store, [one], endings, what)
    else:
        yield from _looked_up(store, urls, endings, what)


def _looked_up(store: Store, urls: Sequence[str], endings: tuple[str, ...], what: str) -> Iterator[RemoteObject]:
    calls = [functools.partial(_info_or_folder, store, url) for url in urls]
    for url, info in zip(urls, _asked(lambda: all_done(calls, what=shown(urls[0])), urls[0], what), strict=True):
        if info.get("type") == "directory":
            yield from _in_folder(store, url, endings, what)
        else:
            yield _object(store, url, info)


def _in_folder(store: Store, url: str, endings: tuple[str, ...], what: str) -> list[RemoteObject]:
    (infos,) = _asked(lambda: all_done([lambda: listed(store, "ls", store.path(url))], what=shown(url)), url, what)
    named = {str(info["name"]): info for info in infos if info.get("type") != "directory"}
    wanted = {name: info for name, info in named.items() if name.partition("?")[0].lower().endswith(endings)}
    if not wanted:
        raise NotFound(f"{what}: there is no {endings[0]} in {shown(url)}")
    return _listed(store, wanted, what)


def _matching(store: Store, url: str, what: str) -> list[RemoteObject]:
    (infos,) = _asked(lambda: all_done([lambda: listed(store, "glob", store.path(url))], what=shown(url)), url, what)
    wanted = {name: info for name, info in infos.items() if info.get("type") != "directory"}
    if not wanted:
        raise NotFound(f"{what}: there is no {shown(url)}")
    return _listed(store, wanted, what)


def _listed(store: Store, infos: Mapping[str, Mapping[str, Any]], what: str) -> list[RemoteObject]:
    names = sorted(infos)
    short = [name for name in names if not isinstance(infos[name].get("size"), int) or not version_of(infos[name])]
    calls = [functools.partial(info_of, store, name) for name in short]
    known = {**infos, **dict(zip(short, _asked(lambda: all_done(calls), store.url(names[0]), what), strict=True))}
    return [_object(store, store.url(name), known[name]) for name in names]


def _object(store: Store, url: str, info: Mapping[str, Any]) -> RemoteObject:
    return RemoteObject(url, store, int(info["size"]), version_of(info))


def _asked(call: Callable[[], T], url: str, what: str) -> T:
    try:
        return call()
    except Error:
        raise
    except Exception as why:
        status = status_of(why)
        kind: type[Error] = InvalidRequest
        if status in (401, 403) or (isinstance(why, PermissionError) and not status):
            kind = PermissionDenied
        elif status == 404 or (isinstance(why, FileNotFoundError) and not may_pass(why)):
            kind = NotFound
        raise kind(f"{what}: {_named(why, url)} cannot be opened: {told(why)}") from to_show(why)


def _named(error: BaseException, url: str) -> str:
    """The URL that a failure is about: of several it tells which."""
    return shown(getattr(error, "millrace_url", url))


def _info_or_folder(store: Store, url: str) -> Mapping[str, Any]:
    if url.endswith("/"):
        return {"type": "directory"}
    try:
        return info_of(store, store.path(url), folders=True)
    except Exception as why:
        why.millrace_url = url  # type: ignore[attr-defined]
        raise
