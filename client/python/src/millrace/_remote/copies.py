"""Copies of objects in a folder of this host, which grow as their bytes are needed, and which its processes share.

::

    read(pieces) --> .train-0-<digest>.tar.part --once it has all--> train-0-<digest>.tar
    want(object) -'   ranges of 8 MiB, each fetched once by the reader that locks it first; and of each a byte: it is there

The digest is of URL, version and user. A copy has a time that is made of the digest, so one that somebody has written to is told from it.
One process at a time makes files and names: it has locked ``.millrace-copies.lock``.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import re
import stat
import struct
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

from millrace._process.warn import warn
from millrace._remote.objects import RemoteObject
from millrace._remote.ranges import RANGE, Stopped, patience, program_ends
from millrace._wire.messages import path_text
from millrace.errors import InvalidRequest

_AT_ONCE = 2  # objects that are copied in the background at the same time
_PORTION = 4  # ranges: reads for a loop come before what of a copy has not been asked for yet
_PAUSE = 0.05  # seconds between looks at what another reader fetches
_DECIDING = 30.0  # seconds for another process to decide, which takes a moment
_LOCK = ".millrace-copies.lock"
_OURS = re.compile(r".*-[0-9a-f]{32}\.tar(\.part)?")
_DIGITS = 32
_SECOND = 1_000_000_000  # ns
_FLOCK = "hhqqi4x"  # struct flock


class _NotWritten(Exception):
    """The disk fails; says why."""


class _Stuck(Exception):
    """Another process fetches it, and does not come to an end."""


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
        same = (found.st_size, found.st_uid) == (self._objects[number].size, os.geteuid()) and _has_stamp(found, path)
        return path if same and stat.S_ISREG(found.st_mode) else None

    def read(self, number: int, pieces: Sequence[tuple[int, int]], stop: threading.Event | None) -> list[memoryview] | None:
        """As ``RemoteObject.read``, by way of the copy: what it lacks is fetched.

        None: there is no room for one; or another process fetches it and does not come to an end.
        """
        stop = stop or threading.Event()
        try:
            file = self._opened(number, stop)
            if file is None:
                return None
            try:
                self._fetch(number, file, _ranges_of(pieces), stop)
                return _in_file(file, pieces)
            finally:
                os.close(file)
        except _NotWritten as why:
            self._tell(str(why))
            return None
        except _Stuck:
            return None

    def there(self, number: int, pieces: Sequence[tuple[int, int]]) -> list[memoryview] | None:
        """As ``read``, of what has been fetched already. None: some is not."""
        try:
            file = os.open(self._part(number), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            return None
        try:
            known = self._known(number, file)
            is_there = self._is_ours(number, file) and all(known[place] for place in _ranges_of(pieces))
            return _in_file(file, pieces) if is_there else None
        except OSError:
            return None
        finally:
            os.close(file)

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

    def _of_this_process(self) -> None:
        if self._process != os.getpid():
            self._anew()

    def _make(self, number: int) -> None:
        """In a thread."""
        try:
            whole = range(-(-self._objects[number].size // RANGE))
            for first in whole[::_PORTION]:
                portion = whole[first : first + _PORTION]
                if self.read(number, [(place * RANGE, 1) for place in portion], None) is None:
                    return
        except (OSError, ValueError):  # who reads it is told, and wants it again
            pass
        finally:
            with self._lock:
                self._wanted.discard(number)

    def _fetch(self, number: int, file: int, ranges: Sequence[int], stop: threading.Event) -> None:
        """So that these ranges are in the file. Raises as ``RemoteObject.read``; _NotWritten; _Stuck."""
        object_, until = self._objects[number], time.monotonic() + patience()
        while True:
            known = self._known(number, file)
            missing = [place for place in ranges if not known[place]]
            if not missing:
                break
            mine = [place for place in missing if _locked(file, object_.size + place)]
            try:
                known = self._known(number, file)
                lacking = [place for place in mine if not known[place]]
                if lacking:
                    pieces = [(place * RANGE, min(RANGE, object_.size - place * RANGE)) for place in lacking]
                    for place, data in zip(lacking, object_.read(pieces, stop), strict=True):
                        _write(file, data, place * RANGE)
                        _write(file, memoryview(b"\1"), object_.size + place)
            finally:
                for place in mine:
                    _unlock(file, object_.size + place)
            if mine:
                until = time.monotonic() + patience()
            elif time.monotonic() > until:
                raise _Stuck
            elif stop.wait(_PAUSE) or program_ends():
                raise Stopped("the loop has ended")
        if all(known):
            self._finish(number, file, stop)

    def _known(self, number: int, file: int) -> bytes:
        """Of each range whether it is in the file."""
        size = self._objects[number].size
        count = -(-size // RANGE)
        found = os.pread(file, count, size)
        return found if len(found) == count else b"\1" * count  # else it is whole, and its end has been cut off

    def _finish(self, number: int, file: int, stop: threading.Event) -> None:
        """Gives a whole copy its name, unless it has it."""
        part, size = self._part(number), self._objects[number].size
        whole = os.path.join(self.folder, self._names[number])
        try:
            with self._deciding(stop), contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.lstat(part), os.fstat(file)):
                    os.ftruncate(file, size)
                    os.fsync(file)  # after a loss of power what has that name and time is whole
                    _stamp(file, whole)
                    if os.fstat(file).st_uid != os.geteuid() or not _has_stamp(os.fstat(file), whole):
                        raise OSError(errno.ENOTSUP, "the file system does not keep owner and time of a file")
                    os.rename(part, whole)
        except Stopped:
            raise
        except OSError as why:
            raise _NotWritten(why.strerror) from why

    def _part(self, number: int) -> str:
        return os.path.join(self.folder, f".{self._names[number]}.part")

    def _is_ours(self, number: int, file: int) -> bool:
        found, size = os.fstat(file), self._objects[number].size
        return stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and found.st_size in (size, size + -(-size // RANGE))

    def _opened(self, number: int, stop: threading.Event) -> int | None:
        """The copy, as far as it is there, or a new one; None: there is no room. Raises _NotWritten; Stopped."""
        self._of_this_process()
        if self._told or number in self._without:
            return None
        flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            with self._deciding(stop):
                for path in filter(None, (self.path(number), self._part(number))):
                    with contextlib.suppress(FileNotFoundError):
                        if os.path.islink(path):
                            os.unlink(path)
                        file = os.open(path, flags)
                        if self._is_ours(number, file):
                            return file
                        os.close(file)
                        os.unlink(path)
                size, name = self._objects[number].size, self._names[number]
                if self._most is not None and size + sum(its for other, its in self._there() if other != name) > self._most:
                    self._without.add(number)
                    return None
                free = os.statvfs(self.folder)
                if free.f_bavail * free.f_frsize < size:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                file = os.open(self._part(number), flags | os.O_CREAT | os.O_EXCL, 0o666)
                os.ftruncate(file, size + -(-size // RANGE))  # which others count
                return file
        except Stopped:
            raise
        except OSError as why:
            raise _NotWritten(why.strerror) from why

    def _there(self) -> Iterator[tuple[str, int]]:
        """Names and sizes of copies, those that grow, too."""
        with os.scandir(self.folder) as entries:
            for entry in entries:
                if _OURS.fullmatch(entry.name):
                    with contextlib.suppress(FileNotFoundError):
                        yield entry.name, entry.stat(follow_symlinks=False).st_size

    @contextlib.contextmanager
    def _deciding(self, stop: threading.Event) -> Iterator[None]:
        """One process at a time. Raises OSError; Stopped."""
        file = os.open(os.path.join(self.folder, _LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        try:
            until = time.monotonic() + _DECIDING
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if stop.wait(0.01) or program_ends():
                        raise Stopped("the loop has ended") from None
                    if time.monotonic() > until:
                        raise OSError(errno.EBUSY, f"another process holds {_LOCK}") from None
            try:
                yield
            finally:
                fcntl.flock(file, fcntl.LOCK_UN)  # a process that was forked meanwhile would hold it, too
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


def _ranges_of(pieces: Sequence[tuple[int, int]]) -> list[int]:
    """Those that hold the pieces."""
    found = {place for begin, length in pieces if length for place in range(begin // RANGE, (begin + length - 1) // RANGE + 1)}
    return sorted(found)


def _in_file(file: int, pieces: Sequence[tuple[int, int]]) -> list[memoryview]:
    found = []
    for begin, length in pieces:
        data = bytearray(length)
        at = 0
        while at < length:
            came = os.preadv(file, [memoryview(data)[at:]], begin + at)
            if not came:
                raise OSError("the copy has been cut")
            at += came
        found.append(memoryview(data).toreadonly())
    return found


def _write(file: int, data: memoryview, at: int) -> None:
    try:
        written = 0
        while written < len(data):
            written += os.pwrite(file, data[written:], at + written)
    except OSError as why:
        raise _NotWritten(why.strerror) from why


def _locked(file: int, at: int) -> bool:
    """Locks a byte for this open file, until it is closed or its process ends. False: another reader has."""
    try:
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, at, 1, 0))
    except (BlockingIOError, PermissionError):
        return False
    except OSError as why:
        raise _NotWritten(why.strerror) from why
    return True


def _unlock(file: int, at: int) -> None:
    fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack(_FLOCK, fcntl.F_UNLCK, os.SEEK_SET, at, 1, 0))


def _name_of(object_: RemoteObject) -> str:
    """``train-0-<digest>.tar``. Each user has another one, and takes none of another's."""
    last = urlsplit(object_.url).path.rpartition("/")[2]
    stem = re.sub(r"[^A-Za-z0-9_-]", "_", last[:-4] if last.lower().endswith(".tar") else last)[:100]
    told = f"{object_.identity} {os.geteuid()}"
    return f"{stem}-{hashlib.sha256(told.encode('utf-8', 'surrogateescape')).hexdigest()[:_DIGITS]}.tar"


def _stamp(file: int, name: str) -> None:
    """Gives a whole copy its time: a recent one, which those that clear disks leave alone, with a fraction of a second of its own.

    Where the disk keeps no fractions it is a whole second long ago.
    """
    fraction, second = _times_of(name)
    recent = int(time.time()) * _SECOND + fraction
    os.utime(file, ns=(recent, recent))
    if os.fstat(file).st_mtime_ns != recent:
        os.utime(file, ns=(second, second))


def _has_stamp(found: os.stat_result, name: str) -> bool:
    fraction, second = _times_of(name)
    return found.st_mtime_ns % _SECOND == fraction or found.st_mtime_ns == second


def _times_of(name: str) -> tuple[int, int]:
    digest = int(name[: -len(".tar")][-_DIGITS:][:15], 16)
    return 1 + digest % (_SECOND - 1), (1_000_000_000 + 2 * (digest % (1 << 27))) * _SECOND
