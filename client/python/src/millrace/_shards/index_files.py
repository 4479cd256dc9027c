"""Where indexes of shards are kept: beside the shard, else in the user's cache.

Those that are missing are made, by a host's processes together.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import stat
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from millrace._shards.index import Index, NoIndex, index_of, is_dalis
from millrace._shards.odd_members import Damage
from millrace._shards.shard_file import ShardFile
from millrace._wire.messages import path_text

_THREADS = 8
_PATIENCE = 60.0  # seconds for another process that makes an index; then it is made here, too
_PAUSE = 0.02  # seconds
_LEFT = 600.0  # seconds after which a file that is being written was left by a process that was killed
_UNDER_WAY = re.compile(r"\.(.+)\.[0-9]+\.[0-9a-f]{8}\.tmp")
_LARGEST = 1 << 32  # bytes of an index file


class Indexed(NamedTuple):
    """A shard whose members are known.

    Attributes:
        path: absolute.
        size: in bytes, as the index has it.
        modified_ns: likewise.
        members: its index; of a damaged shard those before the damage.
        damage: where it is damaged; None: it is whole. Damaged shards have no index file.
        last: the last member's name before the damage.
        kept: the index file; empty: none could be written.
        made: whether the index was made now.
    """

    path: str
    size: int
    modified_ns: int
    members: Index
    damage: Damage | None = None
    last: bytes = b""
    kept: str = ""
    made: bool = False

    def damaged(self) -> str:
        """Where it is damaged, for people."""
        assert self.damage is not None
        last = f", last member {path_text(self.last)}" if self.last else ""
        return f"{path_text(self.path)} is damaged at byte {self.damage.offset}{last}: {self.damage.why}"


def beside(shard: str) -> str:
    """The file in which DALI's ``wds2idx`` keeps the index: ``train.idx`` of ``train.tar``."""
    return (shard[:-4] if shard.lower().endswith(".tar") else shard) + ".idx"


def in_cache(shard: str) -> str:
    """The file for a shard beside which none can be."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(cache):
        cache = os.path.expanduser("~/.cache")
    digest = hashlib.sha256(os.fsencode(shard)).hexdigest()[:32]
    return os.path.join(cache, "millrace", "shards", f"{digest}.idx")


def indexed(shards: Sequence[str], told: Callable[[int], None], *, anew: bool = False) -> list[Indexed]:
    """The indexes of shards, read or made.

    Args:
        shards: absolute paths, each once.
        told: is called with how many indexes there are so far, by one thread at a time.
        anew: make all of them.

    Raises:
        Error: a shard is not there, cannot be read, or is none.
        OSError: likewise.
    """
    with ThreadPoolExecutor(min(_THREADS, len(shards)), "millrace-shards") as threads:
        read = [None] * len(shards) if anew else list(threads.map(_read, shards))
        found = {one.path: one for one in read if one is not None}
        _remove_left([shard for shard in shards if shard not in found])
        making = _Making([shard for shard in shards if shard not in found], found, told, anew)
        waited = making.run(1)
        if waited:  # for the disk, mostly: several requests at once help
            for each in [threads.submit(making.run) for _ in range(_THREADS)]:
                each.result()
        else:
            making.run()
    return [found[shard] for shard in shards]


def _read(shard: str) -> Indexed | None:
    with ShardFile(shard) as opened:
        return _read_of(opened)


def _read_of(shard: ShardFile) -> Indexed | None:
    for path in (beside(shard.path), in_cache(shard.path)):
        with contextlib.suppress(OSError, NoIndex):
            index, modified_ns = index_in(path)
            told = index.told
            same = told is not None and (told.size, told.modified_ns) == (shard.size, shard.modified_ns)
            newer = told is None and modified_ns >= shard.modified_ns
            if (same or newer) and shard.fits(index):
                return Indexed(shard.path, shard.size, shard.modified_ns, index, kept=path)
    return None


def index_in(path: str) -> tuple[Index, int]:
    """The index in a file, and the file's time. Raises OSError; NoIndex: it is none."""
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    with open(file, "rb", buffering=0) as opened:
        status = os.fstat(file)
        if status.st_size > _LARGEST or not stat.S_ISREG(status.st_mode):
            raise NoIndex("it is no regular file, or too large")
        return index_of(opened.readall()), status.st_mtime_ns


def _remove_left(shards: Sequence[str]) -> None:
    """Removes what processes that were killed left of the indexes of these shards."""
    files = {path for shard in shards for path in (beside(shard), in_cache(shard))}
    for folder in {os.path.dirname(path) for path in files}:
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                named = _UNDER_WAY.fullmatch(entry.name)
                if named is None or os.path.join(folder, named[1]) not in files:
                    continue
                with contextlib.suppress(OSError):
                    if time.time() - entry.stat(follow_symlinks=False).st_mtime > _LEFT:
                        os.unlink(entry.path)


class _Making:
    """Makes indexes until none is missing; several threads may run it. A shard that another process has locked comes last again."""

    def __init__(self, missing: Sequence[str], found: dict[str, Indexed], told: Callable[[int], None], anew: bool) -> None:
        self._missing, self._found, self._told, self._anew = deque(missing), found, told, anew
        self._began: dict[str, float] = {}  # waiting for others
        self._one_tells = threading.Lock()

    def run(self, most: int | None = None) -> bool:
        """Makes all, or at most so many. Whether more than half of the time went by without this thread's working."""
        began, worked = time.monotonic(), time.thread_time()
        while most is None or most > 0:
            try:
                shard = self._missing.popleft()
            except IndexError:
                break
            made = self._make(shard)
            if made is None:
                self._missing.append(shard)
                time.sleep(_PAUSE)
            else:
                with self._one_tells:
                    self._found[shard] = made
                    self._told(len(self._found))
            most = most if most is None else most - 1
        return time.thread_time() - worked < (time.monotonic() - began) / 2

    def _make(self, path: str) -> Indexed | None:
        """None: another process makes it."""
        with ShardFile(path) as shard, shard.locked() as ours:
            since = self._began.setdefault(path, time.monotonic())
            if not ours and time.monotonic() - since < _PATIENCE:
                return None
            known = None if self._anew else _read_of(shard)
            return known or make(shard)


def make(shard: ShardFile) -> Indexed:
    """Reads the shard, and keeps its index unless it is damaged."""
    text, damage, last = shard.walked()
    kept = ""
    if damage is None:
        places = [beside(shard.path)] if is_dalis(text) and _is_free(beside(shard.path)) else []
        for path in (*places, in_cache(shard.path)):
            with contextlib.suppress(OSError):
                write_whole(path, text)
                kept = path
                break
    return Indexed(shard.path, shard.size, shard.modified_ns, index_of(text), damage, last, kept, True)


def _is_free(path: str) -> bool:
    """Whether nothing is there but an index, if anything: programs of other kinds have files of that name, too."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            return False
        return not status.st_size or os.pread(file, 16, 0).startswith((b"v1.", b"millrace-"))
    except OSError:
        return False
    finally:
        os.close(file)


def write_whole(path: str, data: bytes) -> None:
    """Puts a file there that is whole at any moment, or leaves what was there. Raises OSError."""
    folder, name = os.path.split(path)
    if path.startswith(os.path.dirname(in_cache(path)) + os.sep):
        os.makedirs(folder, 0o700, exist_ok=True)
    other = os.path.join(folder, f".{name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    nameless = True
    try:
        file = os.open(folder, os.O_WRONLY | os.O_TMPFILE | os.O_CLOEXEC, 0o666)  # until it is whole, so that a kill leaves nothing
    except OSError:  # not on every file system
        file, nameless = os.open(other, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666), False
    try:
        with open(file, "wb", buffering=0) as opened:
            rest = memoryview(data)
            while rest:
                rest = rest[opened.write(rest) :]
            os.fsync(file)
            if nameless:
                os.link(f"/proc/self/fd/{file}", other, src_dir_fd=file)  # with src_dir_fd links are followed
        os.rename(other, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(other)
        raise
