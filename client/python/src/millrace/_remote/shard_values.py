"""Labels and columns of shards behind URLs: they are read with the images that they belong to."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from millrace._shards.fields import value_of
from millrace._shards.reads import Pieces
from millrace._shards.sources import label_extension
from millrace._shards.table import Table
from millrace._wire.messages import path_text
from millrace.errors import FailedPrecondition, InvalidRequest

Member = Callable[[Pieces, int], "bytes | memoryview | None"]
"""Gives the bytes of a sample's member, by the sample's number; None: it has none."""


class Values:
    """A column of members."""

    def __init__(self, pieces: Pieces, extension: str) -> None:
        self.pieces, self.extension = pieces, extension

    def value(self, sample: int, member: Member) -> Any:
        """Of a sample; None: it has no such member. Raises InvalidRequest: it is not what its extension says."""
        data = member(self.pieces, sample)
        return None if data is None else value_of(bytes(data), self.extension, self.pieces.name, sample)


class Numbers:
    """Labels that the indexes say. Those that happen to be read are compared."""

    def __init__(self, numbers: NDArray[np.int64], pieces: Pieces, kept: Sequence[str]) -> None:
        self._numbers, self._pieces, self._kept = numbers, pieces, kept

    def value(self, sample: int, member: Member) -> int:
        """Of a sample. Raises FailedPrecondition: the shard says another one, so that the index is not this shard's."""
        number, data = int(self._numbers[sample]), member(self._pieces, sample)
        if data is not None and _number(bytes(data)) != number:
            with contextlib.suppress(OSError):  # the user's copy of it
                os.unlink(self._kept[int(self._pieces.which[sample])])
            raise FailedPrecondition(
                f"shards: the label at {self._pieces.name(sample)} is {path_text(bytes(data[:40]))!r}, and the index says {number}: "
                "it is of another version of the shard. Make it anew (python -m millrace index), and upload it with the shard"
            )
        return number


class ReadLabels(Values):
    """Labels in members: whole numbers, or names of classes."""

    def __init__(self, pieces: Pieces, extension: str, classes: Sequence[str]) -> None:
        super().__init__(pieces, extension)
        self._count = len(classes)
        numbered = all(_number(name.encode()) is not None for name in classes)
        self._positions = {} if numbered else {name: number for number, name in enumerate(classes)}

    def value(self, sample: int, member: Member) -> int:
        """Of a sample. Raises InvalidRequest: it is neither."""
        data = bytes(member(self.pieces, sample) or b"")
        number = self._positions.get(data.decode("utf-8", "replace").strip()) if self._positions else None
        if number is None:
            number = _number(data)
        if number is None or (self._count and not -1 <= number < self._count):
            what = (
                f"none of the {self._count} classes" if self._count else "no whole number of 64 bits; for names of classes give the names"
            )
            raise InvalidRequest(f"shards: the {self.extension} at {self.pieces.name(sample)} is {path_text(data[:40])!r}, {what}")
        return number


Labels = Numbers | ReadLabels


def labels_in(table: Table, label: str | None, classes: Sequence[str]) -> Labels | None:
    """The labels of shards; None: they have none.

    Raises:
        InvalidRequest: some samples have none, or one does not fit the classes.
    """
    extension = label_extension(label)
    members = table.label_members(extension) if extension else None
    if members is None:
        if label:
            raise InvalidRequest(f'shards: no sample has a {label}; label="" reads no labels')
        if len(classes):
            raise InvalidRequest("classes: there are names of labels and no labels")
        return None
    if len(set(classes)) < len(classes):
        raise InvalidRequest("classes: a name is there twice")
    known = table.known_numbers(extension)
    if known is None:
        return ReadLabels(table.pieces(members), extension, classes)
    if len(classes) and len(known) and not -1 <= int(known.min()) <= int(known.max()) < len(classes):
        raise InvalidRequest(f"classes: there are {len(classes)} names, and labels from {known.min()} to {known.max()}")
    return Numbers(known, table.pieces(members), [shard.kept for shard in table.shards])


def _number(data: bytes) -> int | None:
    try:
        return int(np.int64(int(data)))
    except (ValueError, OverflowError):
        return None
