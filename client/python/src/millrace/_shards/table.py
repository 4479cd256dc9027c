"""Samples of many shards as columns: the places of their images, labels and other members."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from millrace._core.listing_bar import ListingBar
from millrace._data.file_parts import FileParts
from millrace._process.warn import warn
from millrace._shards.fields import Fields, Names, gathered
from millrace._shards.index_files import Indexed, indexed
from millrace._shards.reads import Pieces
from millrace._shards.sources import ShardWarning, shards_of
from millrace._wire.messages import path_text
from millrace.errors import InvalidRequest

_SHOWN = 3  # examples in a warning
_LONGEST_LABEL = 4096  # bytes


class _Column(NamedTuple):
    """Of each shard: the members with an extension, by sample, -1 for none; and their numbers, where the index has them."""

    members: list[NDArray[np.int64]]
    numbers: list[NDArray[np.int64] | None]


@dataclass
class Table:
    """The samples of shards that have an image.

    Attributes:
        shards: with their indexes.
        samples: of each shard, those that have an image [n].
        images: of these the images' members [n].
        found: what else is in the shards, in words, by how often.
        empty: columns that no sample has.
        asked: the extensions whose members that come twice are counted there.
    """

    shards: list[Indexed]
    samples: list[NDArray[np.int64]] = field(default_factory=list)
    images: list[NDArray[np.int64]] = field(default_factory=list)
    found: Counter[str] = field(default_factory=Counter)
    empty: list[str] = field(default_factory=list)
    asked: set[str] = field(default_factory=set)

    def parts(self, members: Sequence[NDArray[np.int64]] | None = None) -> FileParts:
        """The images as parts of files, or other members of the same samples."""
        pieces = self.pieces(self.images if members is None else members)
        named = [self._names(shard, some) for shard, some in zip(self.shards, self.images if members is None else members, strict=True)]
        return FileParts(
            pieces.files,
            pieces.which,
            pieces.offsets.astype(np.uint64),
            pieces.lengths.astype(np.uint64),
            pieces.sizes.astype(np.uint64),
            pieces.modified_ns,
            Names.joined(named),
        )

    def _names(self, shard: Indexed, members: NDArray[np.int64]) -> Names:
        index = shard.members
        if index.escaped:
            return Names.of(map(index.name, members.tolist()))
        return gathered(np.frombuffer(index.text, np.uint8), index.begins[4 * members + 3], index.ends[4 * members + 3])

    def pieces(self, members: Sequence[NDArray[np.int64]]) -> Pieces:
        """Where members lie, of each shard those of some samples, -1: there is none."""
        indexes = [shard.members for shard in self.shards]
        offsets, lengths = [], []
        for index, some in zip(indexes, members, strict=True):
            there = some >= 0
            offsets.append(np.where(there, index.offsets[some], 0) if len(index.offsets) else np.zeros(len(some), np.int64))
            lengths.append(np.where(there, index.sizes[some], -1) if len(index.sizes) else np.full(len(some), -1, np.int64))
        return Pieces(
            [shard.path for shard in self.shards],
            np.array([shard.size for shard in self.shards], np.int64),
            np.array([shard.modified_ns for shard in self.shards], np.int64),
            np.repeat(np.arange(len(members), dtype=np.uint32), [len(some) for some in members]),
            np.concatenate(offsets),
            np.concatenate(lengths),
        )

    def members(self, extension: str) -> list[NDArray[np.int64]]:
        """Of each shard the samples' members with that extension, -1: none."""
        found = []
        for shard, samples in zip(self.shards, self.samples, strict=True):
            members, twice = shard.members.chosen([extension.encode()])
            self.found[_TWICE] += 0 if extension in self.asked else twice
            found.append(members[samples])
        self.asked.add(extension)
        return found

    def column(self, extension: str) -> Fields:
        """A column that is read when it is asked for."""
        members = self.members(extension)
        if not any((some >= 0).any() for some in members):
            self.empty.append(extension)
        return Fields(self.pieces(members), extension)

    def labels(self, extension: str, texts: bool) -> Any:
        """The samples' labels: int64 [N], or with ``texts`` what they are, whole numbers or else a list of texts; None: no sample has one.

        Raises:
            InvalidRequest: some samples have no such member, or it is no number; names the first.
        """
        members = self.label_members(extension)
        if members is None:
            return None
        known = self.known_numbers(extension)
        if known is not None:
            return known
        pieces = self.pieces(members)
        if int(pieces.lengths.max()) > _LONGEST_LABEL:
            raise InvalidRequest(f"shards: the {extension} at {pieces.name(int(pieces.lengths.argmax()))} is too long for a label")
        data = pieces.read()
        try:
            return np.fromiter(map(int, data), np.int64, len(data))  # type: ignore[arg-type]
        except (ValueError, OverflowError):
            return [_text(each, pieces, number) for number, each in enumerate(data)] if texts else _refuse(data, pieces, extension)

    def label_members(self, extension: str) -> list[NDArray[np.int64]] | None:
        """As ``members``; None: no sample has one. Raises InvalidRequest: some have none; names the first."""
        members = self.members(extension)
        missing = [np.flatnonzero(some < 0) for some in members]
        without, count = sum(map(len, missing)), sum(map(len, members))
        if without == count:
            return None
        if without:
            number = next(number for number, some in enumerate(missing) if len(some))
            image = self.shards[number].members.name(int(self.images[number][missing[number][0]]))
            raise InvalidRequest(
                f"shards: {without} of {count} samples have no {extension}, such as {path_text(image)} in "
                f'{path_text(self.shards[number].path)}; label="" reads no labels'
            )
        return members

    def known_numbers(self, extension: str) -> NDArray[np.int64] | None:
        """The numbers in the members with that extension, as the indexes say them; None: one does not."""
        known = [self._numbers(shard, samples, extension) for shard, samples in zip(self.shards, self.samples, strict=True)]
        said = [numbers for numbers in known if numbers is not None]
        return np.concatenate(said) if len(said) == len(known) else None

    def _numbers(self, shard: Indexed, samples: NDArray[np.int64], extension: str) -> NDArray[np.int64] | None:
        if not len(samples):
            return np.zeros(0, np.int64)
        told = shard.members.told
        for name, numbers in told.numbers.items() if told is not None else ():
            if name.lower() == extension:
                return numbers[samples]
        return None

    def report(self, strict: bool) -> None:
        """Warns of what the shards have beside good samples.

        Raises:
            InvalidRequest: with ``strict``, instead.
        """
        damaged = [shard for shard in self.shards if shard.damage is not None]
        told = [f"{shard.damaged()}; the samples before it are there" for shard in damaged[:_SHOWN]]
        if len(damaged) > _SHOWN:
            told.append(f"{len(damaged) - _SHOWN} more shards are damaged")
        told += [f"{count} {what}" for what, count in self.found.items() if count]
        told += [f"no sample has a {column} (columns=), so each has None" for column in self.empty]
        if not told:
            return
        text = "; ".join(told)
        if strict:
            raise InvalidRequest(f"shards: {text} (strict=True)")
        warn(f"shards: {text}; strict=True refuses them", ShardWarning)


_TWICE = "keys have a member twice, of which the first counts"
_AGAIN = "keys come again after others, and each time they are a sample of their own"


def _text(data: bytes | None, pieces: Pieces, number: int) -> str:
    try:
        return (data or b"").decode().strip()
    except UnicodeDecodeError:
        raise InvalidRequest(f"shards: the label at {pieces.name(number)} is no UTF-8") from None


def _refuse(data: Sequence[bytes | None], pieces: Pieces, extension: str) -> Any:
    for number, each in enumerate(data):
        try:
            np.int64(int(each or b""))
        except (ValueError, OverflowError):
            said = path_text((each or b"")[:40])
            raise InvalidRequest(
                f"shards: the {extension} at {pieces.name(number)} is {said!r}, no whole number of 64 bits; for names of classes give "
                'classes="sorted" or the names'
            ) from None
    raise AssertionError  # one of them was none before


def opened(source: Any, image: Sequence[str]) -> Table:
    """The table of what ``source`` names, with the images of these extensions, the first that a sample has.

    Raises:
        Error: a shard is not there, cannot be read, or is none; or no sample has an image.
    """
    paths = shards_of(source)
    with ListingBar(f"{len(paths)} shards", "indexing", " shards") as bar:
        return table_of(indexed(paths, bar), image)


def table_of(shards: list[Indexed], image: Sequence[str]) -> Table:
    """As ``opened``, of shards whose members are known."""
    table = Table(shards, asked=set(image))
    wanted = [extension.encode() for extension in image]
    without, example = 0, ""
    for shard in shards:
        members, twice = shard.members.chosen(wanted)
        samples = np.flatnonzero(members >= 0)
        if len(samples) < len(members):
            first = int(shard.members.first[int((members < 0).argmax())])
            example = example or f"{path_text(shard.members.name(first))} in {path_text(shard.path)}"
            without += len(members) - len(samples)
        table.found[_TWICE] += twice
        table.found[_AGAIN] += shard.members.told.again if shard.members.told is not None else 0
        table.samples.append(samples)
        table.images.append(members[samples])
    if without:
        table.found[f"keys have no image ({', '.join(image[:4])}{', ...' if len(image) > 4 else ''}), such as that of {example}"] = without
    if not sum(map(len, table.samples)):
        extensions = sorted(set().union(*(shard.members.extensions() for shard in shards[:10])))
        has = (
            f"the members' extensions are {', '.join(extensions[:10])}; name the image's in image="
            if extensions
            else "there is no member at all"
        )
        broken = next((f"; {shard.damaged()}" for shard in shards if shard.damage is not None), "")
        raise InvalidRequest(
            f"shards: there is no image in {path_text(shards[0].path)}{' and the others' if len(shards) > 1 else ''}: {has}{broken}"
        )
    return table
