"""A shard as a file: what it is, and its index made anew or compared with it."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from types import TracebackType

from millrace._shards import headers
from millrace._shards.index import Index, lies_within, text_of
from millrace._shards.keys import Grouping
from millrace._shards.odd_members import Damage
from millrace._shards.walk import Walk
from millrace._wire.messages import path_text
from millrace.errors import FailedPrecondition, InvalidRequest, NotFound, PermissionDenied

_COMPRESSED = (
    (b"\x1f\x8b", "gzip", "gunzip"),
    (b"\x28\xb5\x2f\xfd", "Zstandard", "unzstd"),
    (b"\xfd7zXZ\0", "xz", "unxz"),
    (b"BZh", "bzip2", "bunzip2"),
    (b"\x04\x22\x4d\x18", "LZ4", "unlz4"),
)
_CHECKED = 4  # headers that are compared with an index


Read = Callable[[int, int], bytes]
"""So many bytes of a shard, from an offset on; fewer at its end. Raises OSError."""


class ShardFile:
    """An open shard, within ``with``. Belongs to one thread.

    Attributes:
        path: absolute, as ``os`` has it.
        size: in bytes, when it was opened.
        modified_ns: when it was opened.
    """

    def __init__(self, path: str) -> None:
        """Opens it. Raises NotFound, PermissionDenied, InvalidRequest: it is no regular file, or is compressed; OSError."""
        self.path = path
        try:
            self._file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise NotFound(f"shards: {path_text(path)} is not there") from None
        except PermissionError:
            raise PermissionDenied(f"shards: {path_text(path)} cannot be read by this user") from None
        try:
            status = os.fstat(self._file)
            if not stat.S_ISREG(status.st_mode):
                raise InvalidRequest(f"shards: {path_text(path)} is no regular file")
            self.size, self.modified_ns = status.st_size, status.st_mtime_ns
            self._read = functools.partial(os.pread, self._file)
            refuse_compressed(self._read, path)
        except BaseException:
            os.close(self._file)
            raise

    def __enter__(self) -> ShardFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        os.close(self._file)

    def walked(self) -> tuple[bytes, Damage | None, bytes]:
        """As ``walked`` of the module. Raises FailedPrecondition: it was written to meanwhile."""
        found = walked(self._read, self.size, self.modified_ns)
        status = os.fstat(self._file)
        if (status.st_size, status.st_mtime_ns) != (self.size, self.modified_ns):
            raise FailedPrecondition(f"shards: {path_text(self.path)} was written to while it was read; open it once it is whole")
        return found

    def fits(self, index: Index) -> bool:
        """As ``fits`` of the module."""
        return fits(index, self.size, self._read)

    @contextlib.contextmanager
    def locked(self) -> Iterator[bool]:
        """Holds the lock of who makes its index, which ends with the process. False: another process has it."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        except OSError:  # a file system without locks: each process makes it
            yield True
            return
        try:
            yield True
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)


def refuse_compressed(read: Read, path: str) -> None:
    """Raises InvalidRequest: the shard is compressed."""
    begins = read(headers.BLOCK, 0)
    if headers.is_header(begins):  # of a member whose name begins alike
        return
    for magic, name, program in _COMPRESSED:
        if begins.startswith(magic):
            raise InvalidRequest(
                f"shards: {path_text(path)} is compressed ({name}): its members have no places of their own in the file, so none "
                f"can be read alone. Unpack it once: {program} {path_text(path)}. Images are compressed already, so the shard "
                "grows little. millrace.CompressedShards reads it as it is, anew in each epoch"
            )


def walked(read: Read, size: int, modified_ns: int) -> tuple[bytes, Damage | None, bytes]:
    """Reads all headers of a shard.

    Returns:
        The text of its index; where it is damaged, else None; and the last member's name.

    Raises:
        OSError: it cannot be read.
    """
    walk, found = Walk(read, size), Grouping()
    for batch in walk.batches():
        found.add(batch)
    left_out = Counter(found.left_out)
    left_out.update(walk.left_out)
    return text_of(found, size, modified_ns, dict(left_out)), walk.damage, walk.last


def fits(index: Index, size: int, read: Read) -> bool:
    """Whether the members lie within a shard of that size, and some of their headers say the same."""
    if not lies_within(index, size):
        return False
    count = len(index.offsets)
    return all(_fits(index, place * (count - 1) // (_CHECKED - 1), read) for place in range(_CHECKED if count else 0))


def _fits(index: Index, member: int, read: Read) -> bool:
    header = read(headers.BLOCK, int(index.offsets[member]) - headers.BLOCK)
    if len(header) < headers.BLOCK:
        return False
    table = headers.table_of([header])
    if not headers.plain(table)[0]:
        return False
    name = index.name(member)
    shown = len(name) <= 100 and name.isascii()  # else the header before says it
    return int(header[124:135], 8) == index.sizes[member] and (not shown or headers.names_of(table)[0] == name)
