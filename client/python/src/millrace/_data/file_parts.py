"""Samples that are parts of files, as columns: there may be tens of millions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from millrace.errors import InvalidRequest
from millrace.samples import Part, Path, part_bounds

WHOLE = (1 << 64) - 1
"""In ``FileParts.lengths``, with the offset 0: the whole file, however long it is when it is read."""
UNKNOWN = WHOLE
"""In ``FileParts.sizes``: the file's size and time are not known."""


@dataclass(frozen=True)
class FileParts(Sequence[str]):
    """N samples, each a part of one of F files, or a whole file. As a sequence: their names for people. Immutable.

    Attributes:
        files: absolute paths as ``os`` has them [F], each once.
        which: uint32 [N], the position in ``files``.
        offsets: uint64 [N], bytes from the file's start.
        lengths: uint64 [N], bytes; ``WHOLE``: the whole file. ``offsets + lengths`` are below 2**63.
        sizes: uint64 [F], bytes of each file when its parts were found, ``UNKNOWN`` of one of which they are not; None: of none. The
            daemon fails the samples of a file that has another size or time now.
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

    @staticmethod
    def of(given: Sequence[Any], absolute: Callable[[list[Any]], Sequence[str]]) -> FileParts:
        """Of a list of parts, with whole files among them, or not.

        Args:
            given: ``Part``s and paths.
            absolute: what makes paths absolute; raises InvalidRequest for what is none.

        Raises:
            InvalidRequest: an offset or a length that is none; says which sample's.
        """
        numbers: dict[Any, int] = {}
        which, offsets, lengths = np.zeros(len(given), np.uint32), np.zeros(len(given), np.uint64), np.full(len(given), WHOLE, np.uint64)
        for sample, one in enumerate(given):
            path = one
            if isinstance(one, Part):
                path = one.path
                try:
                    offsets[sample], lengths[sample] = part_bounds(one)
                except InvalidRequest as why:
                    raise InvalidRequest(f"samples: sample {sample}: {why}") from None
            elif isinstance(one, Path):
                path = one.path
            try:
                which[sample] = numbers.setdefault(path, len(numbers))
            except TypeError:
                raise InvalidRequest(f"samples: sample {sample} is a {type(path).__name__}; a sample is a path or a Part") from None
        return FileParts(absolute(list(numbers)), which, offsets, lengths)

    @staticmethod
    def joined(several: Sequence[Sequence[str]]) -> FileParts:
        """Lists one after the other, each of parts or of paths."""
        lists = [each if isinstance(each, FileParts) else _whole(each) for each in several]
        begins = np.cumsum([0, *(len(each.files) for each in lists)])
        known = any(each.sizes is not None for each in lists)
        named = any(each.members is not None for each in lists)
        return FileParts(
            [file for each in lists for file in each.files],
            np.concatenate([each.which + np.uint32(begin) for each, begin in zip(lists, begins, strict=False)]),
            np.concatenate([each.offsets for each in lists]),
            np.concatenate([each.lengths for each in lists]),
            np.concatenate([_or_all(each.sizes, UNKNOWN, each) for each in lists]) if known else None,
            np.concatenate([_or_all(each.modified_ns, 0, each) for each in lists]) if known else None,
            [name for each in lists for name in each.members or [""] * len(each)] if named else None,
        )

    def whole_files(self) -> list[str]:
        """The paths of the samples that are whole files."""
        return [self.files[which] for which in self.which[self.lengths == WHOLE].tolist()]

    def source_of(self, sample: int) -> Part | str:
        """What the sample is: a part, or the path of a whole file."""
        return self.part_of(sample) or self.files[self.which[sample]]

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
        file, part = str(self.files[self.which[sample]]), self.part_of(sample)
        if part is None:
            return file
        member = f" {self.members[sample]}" if self.members is not None and self.members[sample] else ""
        return f"{file}[{part.offset}+{part.length}]{member}"


def _or_all(known: NDArray[Any] | None, value: int, parts: FileParts) -> NDArray[Any]:
    return known if known is not None else np.full(len(parts.files), value, np.int64 if value == 0 else np.uint64)


def _whole(paths: Sequence[str]) -> FileParts:
    count = len(paths)
    return FileParts(list(paths), np.arange(count, dtype=np.uint32), np.zeros(count, np.uint64), np.full(count, WHOLE, np.uint64))


def source_at(paths: Sequence[str], sample: int) -> Part | str:
    """One sample of a list of parts or of paths."""
    return paths.source_of(sample) if isinstance(paths, FileParts) else paths[sample]


def file_at(paths: Sequence[str], sample: int) -> str:
    """The file that one sample of a list lies in."""
    return paths.files[paths.which[sample]] if isinstance(paths, FileParts) else paths[sample]


def of_paths(paths: Sequence[str]) -> Sequence[str]:
    """Those of the samples whose names are files' names: not the parts."""
    return paths.whole_files() if isinstance(paths, FileParts) else paths
