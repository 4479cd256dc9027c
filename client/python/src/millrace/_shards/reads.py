"""Pieces of many files, read together: what is in memory at once, what is not by threads, so that a slow disk has several requests."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from millrace._wire.messages import path_text
from millrace.errors import FailedPrecondition, InvalidRequest, NotFound, PermissionDenied

_THREADS = 16
_NOWAIT = getattr(os, "RWF_NOWAIT", 0)


@dataclass(frozen=True)
class Pieces:
    """Pieces of files [N]. Immutable.

    Attributes:
        files: absolute paths [F].
        sizes: int64 [F], bytes of each file when the pieces were found.
        modified_ns: int64 [F], likewise.
        which: uint32 [N], the position in ``files``.
        offsets: int64 [N], bytes from the file's start.
        lengths: int64 [N], bytes; -1: there is no such piece.
    """

    files: Sequence[str]
    sizes: NDArray[np.int64]
    modified_ns: NDArray[np.int64]
    which: NDArray[np.uint32]
    offsets: NDArray[np.int64]
    lengths: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.which)

    def taken(self, ids: NDArray[np.int64]) -> Pieces:
        """Those pieces, in that order."""
        return Pieces(self.files, self.sizes, self.modified_ns, self.which[ids], self.offsets[ids], self.lengths[ids])

    def name(self, piece: int) -> str:
        """For people."""
        file = path_text(self.files[self.which[piece]])
        return f"{file}[{self.offsets[piece]}+{self.lengths[piece]}]"

    def read(self) -> list[bytes | None]:
        """The bytes of each; None: there is no such piece.

        Raises:
            FailedPrecondition: a file is another one now, or was written to.
            NotFound, PermissionDenied: it is gone, or may not be read any more.
            InvalidRequest: the disk fails; names the piece.
        """
        found: list[bytes | None] = [None] * len(self)
        there = np.flatnonzero(self.lengths >= 0)
        ordered = there[np.argsort(self.which[there], kind="stable")]
        if not len(ordered):
            return found
        cuts = np.flatnonzero(np.diff(self.which[ordered])) + 1
        open_files: list[int] = []
        try:
            waiting: list[tuple[int, int]] = []
            for some in np.split(ordered, cuts):
                file = self._opened(int(self.which[some[0]]))
                open_files.append(file)
                late = self._from_memory(file, some, found)
                waiting += [(file, piece) for piece in late]
                if not late:
                    os.close(open_files.pop())
                if len(open_files) >= _THREADS * 8:
                    self._by_threads(waiting, found)
                    waiting = []
                    while open_files:
                        os.close(open_files.pop())
            self._by_threads(waiting, found)
        finally:
            for file in open_files:
                os.close(file)
        return found

    def _opened(self, number: int) -> int:
        path = self.files[number]
        try:
            file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise NotFound(f"shards: {path_text(path)} is not there any more") from None
        except PermissionError:
            raise PermissionDenied(f"shards: {path_text(path)} cannot be read any more by this user") from None
        status = os.fstat(file)
        if (status.st_size, status.st_mtime_ns) != (self.sizes[number], self.modified_ns[number]):
            os.close(file)
            raise FailedPrecondition(f"shards: {path_text(path)} was written to after its index was made; open the shards anew")
        return file

    def _from_memory(self, file: int, pieces: NDArray[np.int64], found: list[bytes | None]) -> list[int]:
        """Reads what the kernel has in memory; the rest's numbers."""
        late: list[int] = []
        for piece, offset, length in zip(pieces.tolist(), self.offsets[pieces].tolist(), self.lengths[pieces].tolist(), strict=True):
            data = bytearray(length)
            try:
                if not length or os.preadv(file, [data], offset, _NOWAIT) == length:
                    found[piece] = bytes(data)
                    continue
            except OSError:  # it would wait, or the file system does not say
                pass
            late.append(piece)
        return late

    def _by_threads(self, waiting: list[tuple[int, int]], found: list[bytes | None]) -> None:
        def one(file: int, piece: int) -> None:
            found[piece] = self._whole(file, piece)

        if len(waiting) == 1:
            one(*waiting[0])
        elif waiting:
            with ThreadPoolExecutor(min(_THREADS, len(waiting)), "millrace-shards") as threads:
                list(threads.map(one, *zip(*waiting, strict=True)))

    def _whole(self, file: int, piece: int) -> bytes:
        offset, left = int(self.offsets[piece]), int(self.lengths[piece])
        parts: list[bytes] = []
        try:
            while left > 0 and (data := os.pread(file, left, offset)):
                parts.append(data)
                offset, left = offset + len(data), left - len(data)
        except OSError as why:
            raise InvalidRequest(f"shards: {self.name(piece)} cannot be read: {why.strerror}") from why
        if left:
            raise FailedPrecondition(f"shards: {self.name(piece)} is cut off: the file was written to after its index was made")
        return b"".join(parts)
