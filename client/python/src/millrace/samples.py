"""Where encoded images are. Values, accepted by ``Session.submit``."""

from __future__ import annotations

import operator
import os
from dataclasses import dataclass
from typing import NamedTuple

from millrace.errors import InvalidRequest
from millrace.recipe import Box, Size
from millrace.ring import RingRoom


class Path(NamedTuple):
    """A file beneath one of the daemon's roots, readable by this process's user. A relative path is made absolute.

    Any file's name: as ``bytes``, or as the ``str`` that ``os`` makes of it (``os.fsdecode``).
    """

    path: str | bytes


class Part(NamedTuple):
    """The bytes ``[offset, offset + length)`` of a file, which are an encoded image: a member of a tar archive, a value in an Arrow file.

    The file is as of ``Path``. Offset and length are in bytes, at least 0; their sum is below 2**63.
    """

    path: str | bytes | os.PathLike[str] | os.PathLike[bytes]
    offset: int
    length: int


_BOUND = 1 << 63


def part_bounds(part: Part) -> tuple[int, int]:
    """Offset and length.

    Raises:
        InvalidRequest: one is no whole number, or negative, or their sum is too large; says what it is.
    """
    try:
        offset, length = operator.index(part.offset), operator.index(part.length)
    except TypeError:
        raise InvalidRequest(f"a Part's offset and length are whole numbers, not {part.offset!r} and {part.length!r}") from None
    if offset < 0 or length < 0 or offset + length >= _BOUND:
        raise InvalidRequest(f"a Part's offset and length are at least 0 and their sum is below 2**63; they are {offset} and {length}")
    return offset, length


class DatasetSample(NamedTuple):
    """One image of an open dataset: ``Dataset.id`` and a number below ``len(dataset)``."""

    dataset: int
    sample: int


AnyPath = str | bytes | os.PathLike[str] | os.PathLike[bytes]
"""Where a file or folder is named and nothing else can be meant: as ``os`` takes it."""

Source = Path | Part | str | os.PathLike[str] | os.PathLike[bytes] | bytes | bytearray | memoryview | RingRoom | DatasetSample
"""A path, a part of a file, a file's bytes (of one batch at most ``Session.limits.inline_bytes``, else a ring), room in the ring, or an
image of a dataset.

``bytes`` are a file's content; a path of ``bytes`` is ``Path(b"...")``.
"""


@dataclass(frozen=True)
class Sample:
    """One encoded image, and what is to come back with its pixels.

    Attributes:
        source: where it is.
        id: comes back and keys the random choices; None: a dataset's sample number, else the position in the batch.
        label: comes back; None: the dataset's own of a ``DatasetSample``, else -1.
        box: overrides the recipe's crop.
        size: overrides what the recipe's resize would make of the crop; its filter stays.
    """

    source: Source
    id: int | None = None
    label: int | None = None
    box: Box | None = None
    size: Size | None = None
