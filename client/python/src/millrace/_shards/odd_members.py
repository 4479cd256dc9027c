"""Members of tar archives that have no plain header, by ``tarfile``: GNU's long names, sparse files, sizes in base 256, all of pax."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Callable
from typing import NamedTuple

_MOST = 1 << 22  # bytes that the headers of one member may have
_HARMLESS = frozenset(("comment", "mtime", "atime", "ctime", "uid", "gid", "uname", "gname"))


class Damage(NamedTuple):
    """Where a shard is damaged.

    Attributes:
        offset: in bytes.
        why: what is wrong there; for people.
    """

    offset: int
    why: str


class OddMember(NamedTuple):
    """A member, and where the next one begins.

    Attributes:
        name: as in the archive.
        offset: of its data.
        size: of its data.
        kind: ``""``: a regular file; else what it is.
        next: offset of what follows.
    """

    name: bytes
    offset: int
    size: int
    kind: str
    next: int


class OddMembers:
    """Reads members one at a time, wherever the walk has come to. Belongs to one thread."""

    def __init__(self, read: Callable[[int, int], bytes]) -> None:
        """``read``: so many bytes from an offset on, as ``os.pread``."""
        self._bytes = _Bounded(read)
        self._tar: tarfile.TarFile | None = None

    @property
    def only(self) -> bool:
        """Whether a global header has said something about all members that follow, so that no header is plain any more."""
        return self._tar is not None and not self._tar.pax_headers.keys() <= _HARMLESS

    def at(self, offset: int) -> OddMember | Damage:
        """The member whose headers begin there."""
        try:
            found = self._next(offset)
        except _TooLarge:
            return Damage(offset, "the headers of a member are longer than 4 MiB")
        except (tarfile.TarError, OSError, ValueError, OverflowError, RecursionError, LookupError, TypeError) as why:
            return Damage(offset, f"there is no tar header: {why}")
        if found is None:
            return Damage(offset, "there is no tar header")
        assert self._tar is not None
        if self._tar.offset <= offset or (found.isreg() and found.size < 0):
            return Damage(offset, "the size of a member is below 0")
        kind = "sparse" if found.issparse() else "" if found.isreg() else "folder" if found.isdir() else "link or device"
        name = found.name.encode("utf-8", "surrogateescape")
        return OddMember(name, found.offset_data, found.size, kind, self._tar.offset)

    def _next(self, offset: int) -> tarfile.TarInfo | None:
        self._bytes.left = _MOST
        if self._tar is None:
            self._bytes.seek(offset)
            self._tar = tarfile.TarFile(fileobj=self._bytes, encoding="utf-8", errors="surrogateescape")
        else:
            self._tar.offset = offset
        found = self._tar.next()
        self._tar.members.clear()  # type: ignore[attr-defined]
        return found


class _TooLarge(Exception):
    pass


class _Bounded(io.RawIOBase):
    """A file of which ``left`` bytes may be read."""

    def __init__(self, read: Callable[[int, int], bytes]) -> None:
        self._read, self._at, self.left = read, 0, _MOST

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if whence != os.SEEK_SET or offset < 0:
            raise ValueError("seek beyond the beginning")
        self._at = offset
        return offset

    def read(self, count: int = -1) -> bytes:
        if count < 0 or count > self.left:
            raise _TooLarge
        data = self._read(count, self._at)
        self._at += len(data)
        self.left -= len(data)
        return data
