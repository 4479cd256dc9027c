"""Which members shards behind URLs have: by the index beside each, or in the user's cache; else the shard is read once, as a stream.

::

    $XDG_CACHE_HOME/millrace/shards --none--> train-0000.idx beside the shard --none--> the shard's headers
              ^---------------------------------------- written -----------------------------'
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit, urlunsplit

from millrace._remote.causes import Replaced, may_pass
from millrace._remote.objects import RemoteObject, objects_of
from millrace._remote.ranges import AT_ONCE
from millrace._remote.read_ahead import ReadAhead
from millrace._shards.index import Index, NoIndex, index_of, lies_within
from millrace._shards.index_files import Indexed, beside, in_cache, index_in, write_whole
from millrace._shards.shard_file import fits, refuse_compressed, walked
from millrace.errors import FailedPrecondition, InvalidRequest, NotFound, PermissionDenied

_MAKING = 2  # shards that are walked at once: each fetches many ranges ahead
_PATIENCE = 600.0  # seconds for another process that makes an index; then it is made here, too
_PAUSE = 0.1  # seconds
_MORE = 4096  # bytes that an index may have beside those of its shard


def indexed(objects: Sequence[RemoteObject], told: Callable[[int], None]) -> list[Indexed]:
    """The indexes of shards, read or made.

    Args:
        objects: the shards, each once.
        told: is called with how many indexes there are so far, by one thread at a time.

    Raises:
        InvalidRequest: one is compressed.
        FailedPrecondition: one was replaced meanwhile.
        OSError: one cannot be read.
    """
    stop = threading.Event()
    making = _Making(told, stop)
    try:
        with ThreadPoolExecutor(min(AT_ONCE, len(objects)), "millrace-shards") as threads:
            try:
                waiting = [threads.submit(making.look, number, one) for number, one in enumerate(objects)]
                for each in waiting:
                    each.result()
                waiting = [threads.submit(making.run) for _ in range(_MAKING)]
                for each in waiting:
                    each.result()
            except BaseException:
                stop.set()
                raise
    except Replaced as why:
        raise FailedPrecondition(f"shards: {why}") from why
    return [making.found[number] for number in range(len(objects))]


class _Making:
    """Of the indexes of one opening. Several threads may run it; a shard that another process has locked comes last again."""

    def __init__(self, told: Callable[[int], None], stop: threading.Event) -> None:
        self._told, self._stop = told, stop
        self.found: dict[int, Indexed] = {}
        self._missing: deque[tuple[int, RemoteObject]] = deque()
        self._began: dict[int, float] = {}  # waiting for others
        self._one_tells = threading.Lock()

    def look(self, number: int, object_: RemoteObject) -> None:
        """Reads the index of a shard, if there is one."""
        known = _kept(object_) or _beside(object_, self._stop)
        if known is None:
            self._missing.append((number, object_))
        else:
            self._have(number, known)

    def run(self) -> None:
        """Makes those that are missing."""
        while not self._stop.is_set():
            try:
                number, object_ = self._missing.popleft()
            except IndexError:
                return
            made = self._make(number, object_)
            if made is None:
                self._missing.append((number, object_))
                self._stop.wait(_PAUSE)
            else:
                self._have(number, made)

    def _have(self, number: int, one: Indexed) -> None:
        with self._one_tells:
            self.found[number] = one
            self._told(len(self.found))

    def _make(self, number: int, object_: RemoteObject) -> Indexed | None:
        """None: another process makes it."""
        since = self._began.setdefault(number, time.monotonic())
        with _locked(in_cache(object_.identity)) as ours:
            if not ours and time.monotonic() - since < _PATIENCE:
                return None
            return _kept(object_) or _walked(object_, self._stop)


def _kept(object_: RemoteObject) -> Indexed | None:
    """What the cache has for this version."""
    path = in_cache(object_.identity)
    with contextlib.suppress(OSError, NoIndex):
        index, _ = index_in(path)
        if object_.version and _is_of(index, object_) and lies_within(index, object_.size):
            return Indexed(object_.name, object_.size, 0, index, kept=path)
    return None


def _beside(object_: RemoteObject, stop: threading.Event) -> Indexed | None:
    """What lies beside the shard, which its user may have made before it was copied there: so of its times nothing is taken."""
    try:
        found = objects_of(index_url(object_.url), (".idx",), "shards", dict(object_.store.options))[0]
    except (NotFound, PermissionDenied):  # S3 refuses to say that there is none, to who may not list
        return None
    except InvalidRequest as why:
        if why.__cause__ is not None and may_pass(why.__cause__):
            raise OSError(str(why)) from why
        return None
    if found.size > object_.size + _MORE:
        return None
    (data,) = found.read([(0, found.size)], stop)
    text = bytes(data)
    with contextlib.suppress(NoIndex):
        index = index_of(text)

        def read(size: int, at: int) -> bytes:
            return bytes(object_.read([(at, size)], stop, look=False)[0])

        if _is_of(index, object_) and fits(index, object_.size, read):
            return Indexed(object_.name, object_.size, 0, index, kept=_keep(object_, text))
    return None


def index_url(url: str) -> str:
    """``s3://bucket/train.idx`` of ``s3://bucket/train.tar``."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc, beside(parts.path), parts.query, parts.fragment))


def _is_of(index: Index, object_: RemoteObject) -> bool:
    return index.told is None or index.told.size == object_.size


def _walked(object_: RemoteObject, stop: threading.Event) -> Indexed:
    with ReadAhead(object_, stop) as read:
        refuse_compressed(read, object_.name)
        text, damage, last = walked(read, object_.size, 0)
    object_.check(stop)
    kept = _keep(object_, text) if damage is None else ""
    return Indexed(object_.name, object_.size, 0, index_of(text), damage, last, kept, True)


def _keep(object_: RemoteObject, text: bytes) -> str:
    """Where it is; empty: it could be written nowhere."""
    path = in_cache(object_.identity)
    try:
        write_whole(path, text)
    except OSError:
        return ""
    return path


@contextlib.contextmanager
def _locked(index: str) -> Iterator[bool]:
    """Holds the lock of who makes an index, which ends with the process. False: another process has it."""
    lock = f"{index[: -len('.idx')]}.lock"
    try:
        os.makedirs(os.path.dirname(lock), 0o700, exist_ok=True)
        file = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:  # no cache: each process makes it
        yield True
        return
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        except OSError:  # a file system without locks
            pass
        try:
            yield True
        finally:
            with contextlib.suppress(OSError):
                os.unlink(lock)  # who waits for it looks for the index first
    finally:
        os.close(file)
