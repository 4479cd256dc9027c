"""Parquet files, each in one piece on this host or behind a URL, as ``ParquetBlocks`` reads row groups of them."""

from __future__ import annotations

import os
import threading
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from millrace._tables.footers import END, Footer, footer_in, footer_length
from millrace._tables.page_headers import Damaged
from millrace._wire.messages import path_text
from millrace.errors import InvalidRequest

if TYPE_CHECKING:
    from millrace._remote.objects import RemoteObject

_TAIL = 64 << 10  # bytes of a file that are read first: mostly the whole footer
_AT_ONCE = 16  # files
_GAP = 1 << 20  # bytes between two columns that are rather read than skipped


@contextmanager
def named(path: str) -> Iterator[Any]:
    """What pyarrow opens: the path, or an open file where its name is no UTF-8."""
    try:
        path.encode()
    except UnicodeEncodeError:
        with open(path, "rb") as file:
            yield file
        return
    yield path


class Changed(ValueError):
    """The file is another one than when its footer was read."""


class LocalTable(NamedTuple):
    """A file of this host's.

    Attributes:
        name: its path.
        stamp: its size and time when its footer was read.
        footer: its footer.
        arrow: pyarrow, and its Parquet.
    """

    name: str
    stamp: tuple[int, int]
    footer: Footer
    arrow: tuple[Any, Any]

    @property
    def on_host(self) -> bool:
        """Whether its paths are of this host."""
        return True

    def read(self, group: int, columns: Sequence[str], stop: threading.Event | None) -> Any:
        """Those columns of a row group, as ``TableFile``."""
        self._check_same()
        try:
            with named(self.name) as source:
                return _read(source, {}, self, group, columns)
        finally:
            self._check_same()

    def _check_same(self) -> None:
        status = os.stat(self.name)
        if (status.st_size, status.st_mtime_ns) != self.stamp:
            raise Changed("the file has changed since it was opened: it has another size or time")


class RemoteTable(NamedTuple):
    """An object of a store. Of a row group the wanted columns' ranges are fetched, nothing else.

    Attributes:
        object: where it is.
        footer: its footer.
        schema: pyarrow's.
        metadata: pyarrow's footer, which it need not read again.
        arrow: pyarrow, and its Parquet.
    """

    object: RemoteObject
    footer: Footer
    schema: Any
    metadata: Any
    arrow: tuple[Any, Any]

    @property
    def name(self) -> str:
        """Its URL, for people."""
        return self.object.name

    @property
    def stamp(self) -> tuple[int, str]:
        """Its size and version."""
        return self.object.size, self.object.version

    @property
    def on_host(self) -> bool:
        """Whether its paths are of this host."""
        return False

    def read(self, group: int, columns: Sequence[str], stop: threading.Event | None) -> Any:
        """Those columns of a row group, as ``TableFile``."""
        ranges = self._ranges(group, columns)
        views = self.object.read([(begin, end - begin) for begin, end in ranges], stop)
        source = _Fetched(self.object, {begin: view for (begin, _), view in zip(ranges, views, strict=True)}, stop)
        return _read(self.arrow[0].PythonFile(source, mode="r"), {"metadata": self.metadata}, self, group, columns)

    def _ranges(self, group: int, columns: Collection[str]) -> list[tuple[int, int]]:
        """Begins and ends, in order, those in one that lie close together."""
        ranges: list[tuple[int, int]] = []
        chunks = self.footer.groups[group]
        for begin, end in sorted((c.first, c.first + c.size) for path, c in chunks.items() if path.partition(".")[0] in columns):
            if end > self.object.size:
                raise ValueError(f"its footer has a column up to byte {end}, and it has {self.object.size} bytes")
            if ranges and begin - ranges[-1][1] <= _GAP:
                ranges[-1] = (ranges[-1][0], max(end, ranges[-1][1]))
            else:
                ranges.append((begin, end))
        return ranges


def _read(file: Any, options: dict[str, Any], table: LocalTable | RemoteTable, group: int, columns: Sequence[str]) -> Any:
    arrow, parquet = table.arrow
    try:
        with parquet.ParquetFile(file, memory_map=False, pre_buffer=False, **options) as opened:
            found = opened.read_row_group(group, columns=list(columns), use_threads=False)
        found.validate(full=True)  # texts that are no UTF-8, too
    except ValueError:
        raise
    except (arrow.ArrowException, OSError, EOFError, OverflowError) as why:
        raise ValueError(str(why)) from why
    if len(found) != table.footer.rows[group]:
        raise ValueError(f"row group {group} has {len(found)} rows, its footer tells of others")
    return found


def remote_tables(objects: Sequence[RemoteObject], arrow: tuple[Any, Any]) -> list[RemoteTable]:
    """Reads their footers, of many at once.

    Raises:
        InvalidRequest: one is no Parquet file; says which.
        OSError: one cannot be read; says URL and cause.
    """
    with ThreadPoolExecutor(_AT_ONCE, "millrace-footers") as threads:
        return list(threads.map(lambda one: _remote_table(one, arrow), objects))


def _remote_table(object_: RemoteObject, arrow: tuple[Any, Any]) -> RemoteTable:
    data, size = _tail(object_, min(_TAIL, object_.size)), object_.size
    try:
        length = footer_length(data[-END:], size)
    except Damaged as why:
        raise _unreadable(object_, why) from why
    if length + END > len(data):
        data = _tail(object_, length + END)
    data = data[len(data) - END - length :]
    try:
        footer = footer_in(data[:length], size)
        with arrow[1].ParquetFile(arrow[0].BufferReader(b"PAR1" + data)) as opened:
            return RemoteTable(object_, footer, opened.schema_arrow, opened.metadata, arrow)
    except (Damaged, arrow[0].ArrowException, OSError, EOFError, OverflowError, UnicodeError) as why:
        raise _unreadable(object_, why) from why


def _tail(object_: RemoteObject, length: int) -> bytes:
    return bytes(object_.read([(object_.size - length, length)])[0])


def _unreadable(object_: RemoteObject, why: Exception) -> InvalidRequest:
    return InvalidRequest(f"Parquet: {object_.name} cannot be read: {path_text(' '.join(str(why).split()))}")


class _Fetched:
    """What pyarrow takes for a file. What it asks for beside the fetched ranges is fetched then."""

    closed = False

    def __init__(self, object_: RemoteObject, ranges: dict[int, memoryview], stop: threading.Event | None) -> None:
        self._object, self._ranges, self._stop, self._at = object_, ranges, stop, 0

    def read(self, length: int = -1) -> memoryview:
        """The next bytes, as a file's."""
        left = max(0, self._object.size - self._at)
        length = left if length < 0 else min(length, left)
        begin, self._at = self._at, self._at + length
        for first, view in self._ranges.items():
            if first <= begin and begin + length <= first + len(view):
                return view[begin - first : begin - first + length]
        return self._object.read([(begin, length)], self._stop)[0]

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """As a file's."""
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._object.size}[whence]
        return self._at

    def tell(self) -> int:
        """As a file's."""
        return self._at

    def readable(self) -> bool:
        """As a file's."""
        return True

    def seekable(self) -> bool:
        """As a file's."""
        return True

    def close(self) -> None:
        """As a file's."""
        self.closed = True
