"""Which file an address of this process's memory belongs to: Arrow files are mapped, so that says where in a file a value lies."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_LINE = re.compile(rb"([0-9a-f]+)-([0-9a-f]+) \S+ ([0-9a-f]+) \S+ [1-9][0-9]* +(/.*)")


class MappedFiles(NamedTuple):
    """The mappings of files, in the order of their addresses.

    Attributes:
        begins: uint64 [M], the first address.
        ends: uint64 [M], the address after the last.
        offsets: uint64 [M], where in the file the mapping begins.
        which: uint32 [M], the position in ``paths``.
        paths: the files, each once, as ``os`` has them.
    """

    begins: NDArray[np.uint64]
    ends: NDArray[np.uint64]
    offsets: NDArray[np.uint64]
    which: NDArray[np.uint32]
    paths: tuple[str, ...]

    def holding(self, addresses: NDArray[np.uint64], lengths: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The mapping of each run of bytes; -1: none holds all of it."""
        if not len(self.begins):
            return np.full(len(addresses), -1, np.int64)
        found = np.searchsorted(self.begins, addresses, side="right").astype(np.int64) - 1
        at = np.maximum(found, 0)
        inside = (found >= 0) & (addresses <= self.ends[at]) & (lengths <= self.ends[at] - np.minimum(addresses, self.ends[at]))
        return np.where(inside, found, -1)


def mapped_files() -> MappedFiles:
    """Those of this process now. Neighbours that go on with the same file count as one mapping."""
    with open("/proc/self/maps", "rb") as file:
        found = [(int(a, 16), int(b, 16), int(c, 16), path) for a, b, c, path in _LINE.findall(file.read())]
    merged: list[tuple[int, int, int, bytes]] = []
    for begin, end, offset, path in found:
        if merged:
            before = merged[-1]
            if before[1] == begin and before[3] == path and before[2] + before[1] - before[0] == offset:
                merged[-1] = (before[0], end, before[2], path)
                continue
        merged.append((begin, end, offset, path))
    paths = {path: number for number, path in enumerate(dict.fromkeys(each[3] for each in merged))}
    return MappedFiles(
        np.array([each[0] for each in merged], np.uint64),
        np.array([each[1] for each in merged], np.uint64),
        np.array([each[2] for each in merged], np.uint64),
        np.array([paths[each[3]] for each in merged], np.uint32),
        tuple(os.fsdecode(path.replace(b"\\012", b"\n")) for path in paths),
    )
