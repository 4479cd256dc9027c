"""Samples that are parts of files, as columns: there may be tens of millions."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray

from millrace.errors import InvalidRequest
from millrace.samples import Part

WHOLE = (1 << 64) - 1
"""In ``FileParts.lengths``, with the offset 0: the whole file, however long it is when it is read."""


@dataclass(frozen=True)
class FileParts(Sequence[str]):
    """N samples, each a part of one of F files, or a whole file. As a sequence: their names for people. Immutable.

    Attributes:
        files: absolute paths as ``os`` has them [F], each once.
        which: uint32 [N], the position in ``files``.
        offsets: uint64 [N], bytes from the file's start.
        lengths: uint64 [N], bytes; ``WHOLE``: the whole file. ``offsets + lengths`` are below 2**63.
        sizes: uint64 [F], bytes of each file when its parts were found; None: not known. The daemon fails the samples of a file that has
            another size or time now.
        modified_ns: int64 [F], ``os.stat().st_mtime_ns`` then; None together with ``sizes``.
        members: the samples' names within their files [N] (of an archive), for people; None: they have none.
    """

    files: Sequence[str]
    which: NDArray[np.uint32]
    offsets: NDArray[np.uint64]
    lengths: NDArray[np.uint64]
    sizes: NDArray[np.uint64] | None = None
    modified_ns: NDArray[np.int64] | None = None
    members: Sequence[str] | None = None

    def __post_init__(self) -> None:
        """Checks the shapes; raises InvalidRequest."""
        count = len(self.which)
        if len(self.offsets) != count or len(self.lengths) != count or (self.members is not None and len(self.members) != count):
            raise InvalidRequest("samples: files, offsets and lengths of parts are one for each sample")
        known = [column for column in (self.sizes, self.modified_ns) if column is not None]
        if len(known) == 1 or any(len(column) != len(self.files) for column in known):
            raise InvalidRequest("samples: sizes and times of files are one for each file, both or neither")

    def part_of(self, sample: int) -> Part | None:
        """The part that the sample is; None: a whole file."""
        length = int(self.lengths[sample])
        return None if length == WHOLE else Part(self.files[self.which[sample]], int(self.offsets[sample]), length)

    def taken(self, ids: NDArray[np.int64]) -> FileParts:
        """Those samples, in that order; of the same files."""
        members = self.members
        if members is not None:
            members = [members[sample] for sample in ids.tolist()]
        return FileParts(self.files, self.which[ids], self.offsets[ids], self.lengths[ids], self.sizes, self.modified_ns, members)

    def __len__(self) -> int:
        return len(self.which)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        """The file, and of a part which: ``/data/shard.tar[1536+48211]``, and its member if that is known."""
        if isinstance(index, slice):
            return [self._name(sample) for sample in range(*index.indices(len(self)))]
        return self._name(range(len(self))[index])

    def __iter__(self) -> Iterator[str]:
        return map(self._name, range(len(self)))

    def _name(self, sample: int) -> str:
        file, part = self.files[self.which[sample]], self.part_of(sample)
        if part is None:
            return os.fspath(file)
        member = "" if self.members is None else f" {self.members[sample]}"
        return f"{file}[{part.offset}+{part.length}]{member}"
