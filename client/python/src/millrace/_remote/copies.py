"""Copies of objects in a folder of this host, made in the background and shared by its processes.

::

    want(n) --> threads: room? --> .train-0-<digest>.tar.<random>.tmp, locked while its process lives --> train-0-<digest>.tar
                  one process decides at a time: .millrace-copies.lock

The digest is of URL and version. A copy has a time that is made of the digest, so one that somebody has written to is told from it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import hashlib
import os
import re
import secrets
import stat
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar
from urllib.parse import urlsplit

from millrace._process.warn import warn
from millrace._remote.causes import Replaced
from millrace._remote.objects import RemoteObject
from millrace._remote.ranges import RANGE
from millrace._wire.messages import path_text
from millrace.errors import InvalidRequest

T = TypeVar("T")

_AT_ONCE = 2  # objects of which copies are made at the same time
_PORTION = 4 * RANGE  # bytes: reads for a loop come before what of a copy has not been asked for yet
_PAUSE = 0.2  # seconds between looks at what another process copies
_LOCK = ".millrace-copies.lock"
_OURS = re.compile(r".*-[0-9a-f]{32}(\.tar|\.tar\.[0-9a-f]{8}\.tmp)")
_DIGITS = 32


class _Busy(Exception):
    """Another process copies it."""


class _NotRead(Exception):
    """The store fails: because of ``args[0]``."""


class Copies:
    """Copies of a source's objects. Thread-safe. A process that gets it by fork or pickle has threads of its own.

    Attributes:
        folder: absolute.
        whole: whether there may be room for all.
    """

    def __init__(self, folder: str | os.PathLike[str], most: int | None, objects: Sequence[RemoteObject]) -> None:
        """Makes the folder where it is not there.

        Args:
            folder: where.
            most: bytes of all copies in it, those of other processes, too; None: as many as the disk has.
            objects: of which.

        Raises:
            InvalidRequest: the folder cannot be made or written to, or ``most`` is none.
        """
        if most is not None and (not isinstance(most, int) or most < 0):
            raise InvalidRequest(f"copy_bytes: a number of bytes, not {most!r}")
        self.folder = os.path.abspath(os.fspath(folder))
        self.whole = most is None or most >= sum(one.size for one in objects)
        self._most, self._objects = most, objects
        self._names = [_name_of(one) for one in objects]
        self._anew()
        try:
            os.makedirs(self.folder, exist_ok=True)
            with self._deciding(threading.Event()):
                pass
        except OSError as why:
            raise InvalidRequest(f"copy_to: {path_text(self.folder)} cannot be written to: {why.strerror}") from why

    def _anew(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._wanted: set[int] = set()  # that are waiting or under way
        self._without: set[int] = set()  # for which there is no room
        self._threads: ThreadPoolExecutor | None = None
        self._told = False  # that no more can be written

    def __getstate__(self) -> dict[str, object]:
        gone = ("_lock", "_threads", "_wanted", "_without", "_told", "_process")
        return {name: value for name, value in self.__dict__.items() if name not in gone}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._anew()

    def path(self, number: int) -> str | None:
        """The copy of an object; None: there is none, or it is not what was written."""
        path = os.path.join(self.folder, self._names[number])
        try:
            found = os.lstat(path)
        except OSError:
            return None
        same = (found.st_size, found.st_mtime_ns, found.st_uid) == (self._objects[number].size, _time_of(path), os.geteuid())
        return path if same and stat.S_ISREG(found.st_mode) else None

    def want(self, number: int) -> None:
        """Has a copy of an object made in the background, if there is room, and as long as somebody has the source."""
        self._of_this_process()
        with self._lock:
            if self._told or number in self._wanted or number in self._without:
                return
            self._threads = self._threads or ThreadPoolExecutor(_AT_ONCE, "millrace-copies")
            with contextlib.suppress(RuntimeError):  # the interpreter ends
                self._threads.submit(_make, weakref.ref(self), number)
                self._wanted.add(number)

    def now(self, number: int, stop: threading.Event | None) -> str | None:
        """As ``path``; a copy is made before, or waited for, if there is room. Raises OSError: the object cannot be read."""
        self._of_this_process()
        stop = stop or threading.Event()
        found = self.path(number)
        while found is None and not stop.is_set() and not self._told and number not in self._without:
            try:
                self._made(number, stop)
            except _NotRead as failed:
                raise failed.args[0] from None
            found = self.path(number)
        return found

    def _of_this_process(self) -> None:
        if self._process != os.getpid():
            self._anew()

    def _make(self, number: int) -> None:
        """In a thread, which goes on with another object where this one has to wait."""
        try:
            self._made(number, threading.Event())
        except _NotRead:  # who reads it is told, and wants it again
            return
        finally:
            with self._lock:
                self._wanted.discard(number)
        if self.path(number) is None:
            self.want(number)

    def _made(self, number: int, stop: threading.Event) -> None:
        """Makes the copy, if nobody else does. Where there is no room the object is in ``_without`` afterwards. Raises _NotRead."""
        try:
            begun = self._begun(number, stop)
            if begun is not None:
                self._written(number, *begun, stop)
        except _Busy:
            stop.wait(_PAUSE)
        except Replaced:  # who reads it is told
            self._without.add(number)
        except OSError as why:
            self._tell(why.strerror or str(why))

    def _written(self, number: int, file: int, path: str, stop: threading.Event) -> None:
        """Raises Replaced; _NotRead; OSError: it cannot be written."""
        object_ = self._objects[number]
        try:
            for at in range(0, object_.size, _PORTION):
                portion = [(at, min(_PORTION, object_.size - at))]
                (data,) = _of_store(functools.partial(object_.read, portion, stop, look=False))
                written = 0
                while written < len(data):
                    written += os.pwrite(file, data[written:], at + written)
            _of_store(functools.partial(object_.check, stop))
            whole = os.path.join(self.folder, self._names[number])
            os.utime(file, ns=(_time_of(whole), _time_of(whole)))
            os.rename(path, whole)
        finally:
            with contextlib.suppress(OSError):
                os.unlink(path)
            os.close(file)

    def _begun(self, number: int, stop: threading.Event) -> tuple[int, str] | None:
        """A file for it, which is locked; None: the copy is there, or there is no room.

        Raises:
            _Busy: another process has one.
            OSError: none can be made, or the disk is full.
        """
        size, name = self._objects[number].size, self._names[number]
        with self._deciding(stop):
            if self.path(number) is not None:
                return None
            taken = 0
            for other, its_size in self._there():
                if other.startswith(f".{name}."):
                    raise _Busy
                taken += its_size if other != name else 0
            if self._most is not None and taken + size > self._most:
                self._without.add(number)
                return None
            free = os.statvfs(self.folder)
            if free.f_bavail * free.f_frsize < size:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            path = os.path.join(self.folder, f".{name}.{secrets.token_hex(4)}.tmp")
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.ftruncate(file, size)  # which others count
            except BaseException:
                os.unlink(path)
                os.close(file)
                raise
            return file, path

    def _there(self) -> Iterator[tuple[str, int]]:
        """Names and sizes of copies, and of those that are being made. What a process left that was killed is removed."""
        with os.scandir(self.folder) as entries:
            for entry in entries:
                if not _OURS.fullmatch(entry.name):
                    continue
                with contextlib.suppress(FileNotFoundError):
                    if entry.name.endswith(".tmp") and _is_left(entry.path):
                        os.unlink(entry.path)
                        continue
                    yield entry.name, entry.stat(follow_symlinks=False).st_size

    @contextlib.contextmanager
    def _deciding(self, stop: threading.Event) -> Iterator[None]:
        """One process at a time. Raises OSError."""
        file = os.open(os.path.join(self.folder, _LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        try:
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if stop.wait(0.01):
                        raise _Busy from None
            yield
        finally:
            os.close(file)

    def _tell(self, why: str) -> None:
        with self._lock:
            told, self._told = self._told, True
        if not told:
            warn(f"copy_to: {path_text(self.folder)} takes no more copies, and the rest is read without: {path_text(why)}")


def _make(copies: weakref.ref[Copies], number: int) -> None:
    there = copies()
    if there is not None and threading.main_thread().is_alive():
        there._make(number)


def _of_store(call: Callable[[], T]) -> T:
    try:
        return call()
    except OSError as why:
        raise _NotRead(why) from why


def _is_left(path: str) -> bool:
    """Whether the process that wrote it is gone."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    except OSError:  # another user's
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except OSError:
        return False
    finally:
        os.close(file)


def _name_of(object_: RemoteObject) -> str:
    """``train-0-<digest>.tar``."""
    last = urlsplit(object_.url).path.rpartition("/")[2]
    stem = re.sub(r"[^A-Za-z0-9_-]", "_", last[:-4] if last.lower().endswith(".tar") else last)[:100]
    return f"{stem}-{hashlib.sha256(object_.identity.encode('utf-8', 'surrogateescape')).hexdigest()[:_DIGITS]}.tar"


def _time_of(path: str) -> int:
    """Of a copy of that name, ns since 1970: a whole number of seconds, which every file system keeps."""
    digest = path[: -len(".tar")][-_DIGITS:]
    return (1_000_000_000 + 2 * (int(digest[:7], 16) % (1 << 27))) * 1_000_000_000
