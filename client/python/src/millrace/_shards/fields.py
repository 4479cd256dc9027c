"""Columns of shards' samples that are read when they are asked for: JSON, texts, numbers, other members' bytes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from millrace._shards.reads import Pieces
from millrace._wire.messages import path_text
from millrace.errors import InvalidRequest

_JSON, _TEXTS, _NUMBERS = ("json", "jsn"), ("txt", "text", "transcript"), ("cls", "cls2", "class", "count", "index", "inx", "id")


class Fields(Sequence[Any]):
    """Members of N samples. ``[i]`` reads sample i's at its offset.

    As webdataset decodes them by the last part of their extension: ``json``: what it says; ``txt``: a ``str`` of UTF-8; ``cls`` and the
    like: an ``int``; all else: ``bytes``. None: the sample has no such member.
    """

    def __init__(self, pieces: Pieces, extension: str) -> None:
        self.pieces, self.extension = pieces, extension

    def __len__(self) -> int:
        return len(self.pieces)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> Fields: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return self.narrowed(np.arange(len(self))[index])
        return self.taken(np.array([range(len(self))[index]]))[0]

    def taken(self, ids: NDArray[np.int64]) -> list[Any]:
        """The values of those samples, read together.

        Raises:
            InvalidRequest: one is not what its extension says; names it.
            Error: as ``Pieces.read``.
        """
        pieces = self.pieces.taken(ids)
        name = pieces.name
        return [None if data is None else value_of(data, self.extension, name, number) for number, data in enumerate(pieces.read())]

    def narrowed(self, ids: NDArray[np.int64]) -> Fields:
        """The column of those samples, unread."""
        return Fields(self.pieces.taken(ids), self.extension)


def value_of(data: bytes, extension: str, name: Callable[[int], str], number: int) -> Any:
    """What a member says, as ``Fields`` has it.

    Args:
        data: the member's.
        extension: of it, lower case.
        name: makes a name for people of ``number``.
        number: which of the members it is.

    Raises:
        InvalidRequest: it is not what its extension says; names it.
    """
    kind = extension.rpartition(".")[2]
    try:
        if kind in _JSON:
            return json.loads(data)
        if kind in _TEXTS:
            return data.decode()
        return int(data) if kind in _NUMBERS else data
    except (ValueError, RecursionError) as why:
        raise InvalidRequest(f"shards: the {extension} at {name(number)} cannot be read as such: {why}") from why


class Names(Sequence[str]):
    """Names of N members, their bytes one after the other. ``[i]`` is a text for people."""

    def __init__(self, data: NDArray[np.uint8], ends: NDArray[np.int64]) -> None:
        self._data, self._ends = data, ends

    @staticmethod
    def of(names: Iterable[bytes]) -> Names:
        """Those names."""
        given = list(names)
        return Names(np.frombuffer(b"".join(given), np.uint8), np.cumsum([len(name) for name in given], dtype=np.int64))

    @staticmethod
    def joined(parts: Sequence[Names]) -> Names:
        """One after the other."""
        begins = np.cumsum([0, *(len(part._data) for part in parts)])
        ends = [part._ends + begin for part, begin in zip(parts, begins, strict=False)]
        return Names(np.concatenate([part._data for part in parts]), np.concatenate(ends))

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Names: ...
    def __getitem__(self, index: int | slice) -> str | Names:
        if isinstance(index, slice):
            return self.taken(np.arange(len(self))[index])
        return path_text(self.raw(range(len(self))[index]))

    def raw(self, number: int) -> bytes:
        """One, as it is in the archive."""
        begin = int(self._ends[number - 1]) if number else 0
        return self._data[begin : int(self._ends[number])].tobytes()

    def taken(self, ids: NDArray[np.int64]) -> Names:
        """Those, in that order."""
        begins = np.where(ids > 0, self._ends[ids - 1], 0)
        return gathered(self._data, begins, self._ends[ids])


class Keys(Sequence[str]):
    """The samples' keys: of ``a/b.c.jpg`` it is ``a/b``."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def __len__(self) -> int:
        return len(self._names)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Keys: ...
    def __getitem__(self, index: int | slice) -> str | Keys:
        if isinstance(index, slice):
            return Keys(self._names[index])
        name = self._names.raw(range(len(self))[index])
        return name[: name.find(b".", name.rfind(b"/") + 1)].decode("utf-8", "surrogateescape")

    def taken(self, ids: NDArray[np.int64]) -> list[str]:
        """Those of these samples."""
        return [self[number] for number in ids.tolist()]


def gathered(data: NDArray[np.uint8], begins: NDArray[np.int64], ends: NDArray[np.int64]) -> Names:
    """The names that lie there."""
    lengths = ends - begins
    after = np.cumsum(lengths)
    total = int(after[-1]) if len(after) else 0
    places = np.arange(total, dtype=np.int64) + np.repeat(begins - (after - lengths), lengths)
    return Names(data[places], after)
