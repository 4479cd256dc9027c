"""Footers of Parquet files: the few fields that say where columns lie. pyarrow's accessors end the process on damaged ones."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from millrace._tables.page_headers import Damaged, struct_of

END = 8
"""Bytes at the end of a file: the footer's length, and ``PAR1``."""
_DEEPEST = 32  # of the schema's nesting
_ROWS = 10  # 1 << so many rows a byte of the file, at most: of one image for all rows there may be many
_CODECS = ("UNCOMPRESSED", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW")
_ENCODINGS = ("PLAIN", "", "PLAIN_DICTIONARY", "RLE", "BIT_PACKED", "DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY",
              "RLE_DICTIONARY", "BYTE_STREAM_SPLIT")  # fmt: skip


class ColumnChunk(NamedTuple):
    """A column of a row group.

    Attributes:
        kind: the number of its physical type.
        codec: ``UNCOMPRESSED``, ``SNAPPY``, ...
        encodings: of its pages.
        values: rows, those without a value included.
        begin: of its data pages, bytes from the file's start.
        first: of all its pages, that of its dictionary included.
        size: bytes of its pages in the file.
        uncompressed: bytes of them.
        alone: no dictionary, in no other file, and no other column of this path.
    """

    kind: int
    codec: str
    encodings: tuple[str, ...]
    values: int
    begin: int
    first: int
    size: int
    uncompressed: int
    alone: bool


class Footer(NamedTuple):
    """Of a file.

    Attributes:
        rows: of each row group.
        groups: of each row group its columns by their path: ``image.bytes``.
        levels: of each column the definition level of a value that is there; -1: it is repeated.
    """

    rows: tuple[int, ...]
    groups: tuple[dict[str, ColumnChunk], ...]
    levels: dict[str, int]

    def bytes_of(self, group: int, name: str) -> int:
        """Of a column of a row group, with what is nested in it, uncompressed."""
        return sum(chunk.uncompressed for path, chunk in self.groups[group].items() if path == name or path.startswith(f"{name}."))


def footer_of(descriptor: int) -> Footer:
    """The footer of an open file.

    Raises:
        Damaged: it has none.
        OSError: it cannot be read.
    """
    size = os.fstat(descriptor).st_size
    length = footer_length(os.pread(descriptor, END, max(0, size - END)), size)
    return footer_in(os.pread(descriptor, length, size - END - length), size)


def footer_length(end: bytes, size: int) -> int:
    """The footer's bytes, which come before the ``END`` last ones of a file of that size. Raises Damaged: it has none."""
    length = int.from_bytes(end[:4], "little")
    if len(end) < END or end[4:] != b"PAR1" or length > size - END:
        raise Damaged("there is no footer of Parquet's at its end")
    return length


def footer_in(data: bytes, size: int) -> Footer:
    """The footer that these bytes of a file of that size are. Raises Damaged: they are none."""
    fields = struct_of(data)
    try:
        levels = _levels(fields[2])
        groups = tuple(_chunks(group[1]) for group in fields.get(4, []))
        rows = tuple(group[3] for group in fields.get(4, []))
    except (KeyError, TypeError, AttributeError, IndexError, ValueError, StopIteration) as why:
        raise Damaged(f"its footer lacks something: {why!r}") from why
    if any(not isinstance(number, int) or number < 0 for number in rows) or sum(rows) != fields.get(3):
        raise Damaged("its footer has a wrong number of rows")
    if sum(rows) > (size + 1) << _ROWS:
        raise Damaged(f"its footer has {sum(rows)} rows, and the file {size} bytes")
    return Footer(rows, groups, levels)


def _chunks(columns: Any) -> dict[str, ColumnChunk]:
    found: dict[str, ColumnChunk] = {}
    for each in columns:
        path, chunk = _path(each), _chunk(each)
        if path in found:
            chunk = chunk._replace(uncompressed=chunk.uncompressed + found[path].uncompressed, alone=False)
        found[path] = chunk
    return found


def _path(chunk: Any) -> str:
    return b".".join(chunk[3][3]).decode()


def _chunk(chunk: Any) -> ColumnChunk:
    told = chunk[3]
    numbers = tuple(told[field] for field in (1, 5, 9, 7, 6, 4))
    if any(not isinstance(number, int) or number < 0 for number in numbers):
        raise ValueError("a number")
    kind, values, begin, size, uncompressed, codec = numbers
    names = tuple(_ENCODINGS[number] for number in told[2])
    dictionary = told.get(11)
    first = dictionary if isinstance(dictionary, int) and 0 < dictionary < begin else begin
    return ColumnChunk(kind, _CODECS[codec], names, values, begin, first, size, uncompressed, 11 not in told and not chunk.get(1))


def _levels(schema: Any) -> dict[str, int]:
    elements = iter(schema)
    found: dict[str, int] = {}

    def walk(path: str, level: int, count: int, depth: int) -> None:
        if depth > _DEEPEST:
            raise Damaged("its schema is nested too deep")
        for _ in range(count):
            element = next(elements, None)
            if element is None:
                raise Damaged("its schema does not end")
            name, repetition, children = element[4].decode(), element.get(3, 0), element.get(5, 0)
            inner = -1 if level < 0 or repetition == 2 else level + (repetition == 1)
            if children:
                walk(f"{path}{name}.", inner, children, depth + 1)
            else:
                found[path + name] = inner

    root: dict[int, Any] = next(elements)
    walk("", 0, root.get(5, 0), 0)
    return found
