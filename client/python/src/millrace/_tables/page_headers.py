"""Headers of Parquet's data pages: the few fields that say where values lie. They are Thrift's compact protocol."""

from __future__ import annotations

from typing import Any, NamedTuple

_DEEPEST = 8
_BOOLEANS, _BYTE, _INTEGERS, _DOUBLE, _BINARY, _LISTS, _MAP, _STRUCT = (1, 2), 3, (4, 5, 6), 7, 8, (9, 10), 11, 12
DATA_PAGE, INDEX_PAGE, DICTIONARY_PAGE, DATA_PAGE_V2 = range(4)
PLAIN, RLE = 0, 3


class Damaged(Exception):
    """The bytes are no page of Parquet's."""


class Page(NamedTuple):
    """A page, as its header says.

    Attributes:
        kind: ``DATA_PAGE``, ...
        header: bytes of the header.
        size: bytes after the header, as they lie in the file.
        uncompressed: bytes of them once they are uncompressed.
        values: rows, those without a value included.
        encoding: of the values.
        levels: the encoding of the definition levels, of v1; of v2 always RLE.
        level_bytes: of the definition levels, of v2; of v1 0: the page says it.
        repetition_bytes: likewise of the repetition levels.
    """

    kind: int
    header: int
    size: int
    uncompressed: int
    values: int
    encoding: int
    levels: int
    level_bytes: int
    repetition_bytes: int


def struct_of(data: bytes) -> dict[int, Any]:
    """All fields of a struct by their numbers: numbers, bytes, lists and structs; others are None.

    Raises:
        Damaged: it is none.
    """
    try:
        return _Reader(data).struct(0)
    except IndexError as why:
        raise Damaged("it does not end") from why


def page_of(data: bytes) -> Page:
    """The page whose header these bytes begin with.

    Raises:
        Damaged: there is no whole header.
    """
    reader = _Reader(data)
    try:
        fields = reader.struct(0)
    except IndexError as why:
        raise Damaged("the header of a page does not end") from why
    kind, uncompressed, size = (_number(fields, field) for field in (1, 2, 3))
    old, new = fields.get(5, {}), fields.get(8, {})
    if kind == DATA_PAGE:
        return Page(kind, reader.at, size, uncompressed, _number(old, 1), _number(old, 2), _number(old, 3), 0, 0)
    if kind == DATA_PAGE_V2:
        return Page(kind, reader.at, size, uncompressed, _number(new, 1), _number(new, 4), RLE, _number(new, 5), _number(new, 6))
    return Page(kind, reader.at, size, uncompressed, 0, 0, 0, 0, 0)


def _number(fields: Any, field: int) -> int:
    value = fields.get(field) if isinstance(fields, dict) else None
    if not isinstance(value, int) or value < 0:
        raise Damaged("the header of a page lacks a number")
    return value


class _Reader:
    """Reads structs; raises IndexError at the end of the bytes."""

    def __init__(self, data: bytes) -> None:
        self._data, self.at = data, 0

    def struct(self, depth: int) -> dict[int, Any]:
        if depth > _DEEPEST:
            raise Damaged("the header of a page is nested too deep")
        found: dict[int, Any] = {}
        field = 0
        while head := self._byte():
            step, kind = head >> 4, head & 15
            field = field + step if step else self._signed()
            found[field] = bool(kind == 1) if kind in _BOOLEANS else self._value(kind, depth)
        return found

    def _value(self, kind: int, depth: int) -> Any:
        if kind in _INTEGERS:
            return self._signed()
        if kind == _STRUCT:
            return self.struct(depth + 1)
        if kind in _BOOLEANS or kind == _BYTE:
            self._skip(1)
        elif kind == _DOUBLE:
            self._skip(8)
        elif kind == _BINARY:
            length = self._unsigned()
            begin = self.at
            self._skip(length)
            return self._data[begin : self.at]
        elif kind in _LISTS:
            head = self._byte()
            return self._values(head & 15, self._unsigned() if head >> 4 == 15 else head >> 4, depth)
        elif kind == _MAP:
            count = self._unsigned()
            kinds = self._byte() if count else 0
            for _ in range(self._bounded(count)):
                self._value(kinds >> 4, depth + 1)
                self._value(kinds & 15, depth + 1)
        else:
            raise Damaged("the header of a page has a field of no known type")
        return None

    def _values(self, kind: int, count: int, depth: int) -> list[Any]:
        if depth > _DEEPEST:
            raise Damaged("the header of a page is nested too deep")
        return [self._value(kind, depth + 1) for _ in range(self._bounded(count))]

    def _bounded(self, count: int) -> int:
        if count > len(self._data):
            raise Damaged("the header of a page does not end")
        return count

    def _byte(self) -> int:
        self.at += 1
        return self._data[self.at - 1]

    def _skip(self, count: int) -> None:
        self.at += count
        if self.at > len(self._data):
            raise IndexError

    def _unsigned(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise Damaged("the header of a page has too long a number")

    def _signed(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)
