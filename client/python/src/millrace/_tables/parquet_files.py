"""Parquet files as pyarrow opens them, with this package's messages; and which files a source names."""

from __future__ import annotations

import glob
import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from millrace._shards.sources import expanded
from millrace._tables.footers import Footer, footer_of
from millrace._tables.page_headers import Damaged
from millrace._tables.table_files import Changed, LocalTable, RemoteTable, named, remote_tables
from millrace._wire.messages import path_text
from millrace.errors import Error, FailedPrecondition, InvalidRequest, NotFound, Unsupported
from millrace.samples import AnyPath

_ENDINGS = (".parquet", ".parq", ".pq")
_BUFFER = 1 << 16


class ParquetFiles(NamedTuple):
    """Files of one schema.

    Attributes:
        paths: absolute.
        footers: of each.
        schema: pyarrow's, of the first.
        sizes: uint64 [F], bytes, when the footers were read.
        modified_ns: int64 [F], ``os.stat().st_mtime_ns`` then.
        tables: of each what reads its row groups. Behind URLs, the paths are names for people, and the times 0.
    """

    paths: tuple[str, ...]
    footers: tuple[Footer, ...]
    schema: Any
    sizes: NDArray[np.uint64]
    modified_ns: NDArray[np.int64]
    tables: tuple[LocalTable | RemoteTable, ...]

    @property
    def remote(self) -> bool:
        """Whether they lie behind URLs."""
        return isinstance(self.tables[0], RemoteTable)

    @property
    def rows(self) -> int:
        """Of all files."""
        return sum(sum(footer.rows) for footer in self.footers)

    def groups(self) -> list[tuple[int, int, int]]:
        """File, number in it, and rows of each row group, in the order of the rows."""
        return [(file, group, rows) for file, footer in enumerate(self.footers) for group, rows in enumerate(footer.rows)]

    def read_group(self, file: int, group: int, columns: Sequence[str]) -> Any:
        """Those columns of a row group, a pyarrow ``Table``.

        Raises:
            FailedPrecondition: the file has changed.
            InvalidRequest: the row group is damaged.
            NotFound: the file is gone.
        """
        name = path_text(self.paths[file])
        try:
            return self.tables[file].read(group, columns, None)
        except Changed as why:
            raise FailedPrecondition(f"Parquet: {name} has changed since it was opened; make the Parquet anew") from why
        except FileNotFoundError as why:
            raise NotFound(f"Parquet: there is no file {name}") from why
        except (OSError, ValueError) as why:
            raise InvalidRequest(f"Parquet: {name} cannot be read: {path_text(str(why))}") from why

    def classes_of(self, label: str) -> tuple[str, ...]:
        """The names of a class label that Hugging Face's ``datasets`` wrote down; else none."""
        try:
            features = json.loads((self.schema.metadata or {})[b"huggingface"])["info"]["features"]
            names = features[label]["names"] if features[label].get("_type") == "ClassLabel" else ()
        except (KeyError, TypeError, ValueError, AttributeError):
            return ()
        return tuple(map(str, names)) if isinstance(names, list) else ()


def opened_files(source: AnyPath | Sequence[AnyPath]) -> ParquetFiles:
    """Reads the footers of the files that are meant.

    Args:
        source: a file, several as ``train-*.parquet`` or ``train-{00..15}.parquet``, a folder, or a list of these.

    Raises:
        NotFound: there is no such file.
        InvalidRequest: one is no Parquet file, or has other columns than the first.
        Unsupported: pyarrow is not installed.
    """
    tables, schemas = [], []
    for path in _files_of(source):
        footer, status = _footer(path)
        tables.append(LocalTable(path, (status.st_size, status.st_mtime_ns), footer, pyarrow()))
        with opened_file(path) as file:
            schemas.append(file.schema_arrow)
    return _of_one_schema(tables, schemas, [table.stamp[1] for table in tables])


def opened_objects(source: Any, options: Mapping[str, Any] | None) -> ParquetFiles:
    """Reads the footers of the files behind URLs that are meant.

    Args:
        source: as ``objects_of``.
        options: fsspec's ``storage_options``.

    Raises:
        NotFound, PermissionDenied: one is not there, or cannot be read.
        OSError: a footer cannot be read.
        InvalidRequest, Unsupported: as ``opened_files``.
    """
    from millrace._remote.objects import objects_of

    arrow = pyarrow()
    tables = remote_tables(objects_of(source, _ENDINGS, "Parquet", options), arrow)
    return _of_one_schema(tables, [table.schema for table in tables], [0] * len(tables))


def _of_one_schema(tables: Sequence[LocalTable | RemoteTable], schemas: Sequence[Any], times: Sequence[int]) -> ParquetFiles:
    first = schemas[0].remove_metadata()
    for table, mine in zip(tables, schemas, strict=True):
        if not mine.remove_metadata().equals(first):
            told = f"{path_text(tables[0].name)} has {told_of(first)}"
            raise InvalidRequest(f"Parquet: {path_text(table.name)} has {told_of(mine)}, and {told}")
    sizes = np.array([table.stamp[0] for table in tables], np.uint64)
    paths = tuple(table.name for table in tables)
    return ParquetFiles(paths, tuple(table.footer for table in tables), schemas[0], sizes, np.array(times, np.int64), tuple(tables))


@contextmanager
def opened_file(path: str) -> Iterator[Any]:
    """Pyarrow's ``ParquetFile``; what goes wrong with it comes in this package's words.

    Raises:
        NotFound: there is none.
        InvalidRequest: it is no Parquet file, or damaged.
        Unsupported: pyarrow is not installed.
    """
    arrow, parquet = pyarrow()
    try:
        with named(path) as source, parquet.ParquetFile(source, memory_map=False, pre_buffer=False, buffer_size=_BUFFER) as file:
            yield file
    except Error:
        raise
    except FileNotFoundError as why:
        raise NotFound(f"Parquet: there is no file {path_text(path)}") from why
    except (arrow.ArrowException, OSError, EOFError, OverflowError, UnicodeError) as why:
        raise InvalidRequest(f"Parquet: {path_text(path)} cannot be read: {path_text(str(why))}") from why


def _footer(path: str) -> tuple[Footer, os.stat_result]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            status = os.fstat(descriptor)  # before it is read: what changes later is noticed
            if not stat.S_ISREG(status.st_mode):
                raise Damaged("it is no file")
            return footer_of(descriptor), status
        finally:
            os.close(descriptor)
    except FileNotFoundError as why:
        raise NotFound(f"Parquet: there is no file {path_text(path)}") from why
    except (Damaged, OSError) as why:
        raise InvalidRequest(f"Parquet: {path_text(path)} cannot be read: {path_text(str(why))}") from why


def pyarrow() -> tuple[Any, Any]:
    """The package and its Parquet. Raises Unsupported: it is not installed."""
    try:
        import pyarrow as arrow
        import pyarrow.parquet
    except ImportError as why:
        raise Unsupported("Parquet files are read by pyarrow: pip install pyarrow") from why
    return arrow, pyarrow.parquet


def python_values(values: Any, name: str) -> list[Any]:
    """Of an Arrow column. Raises InvalidRequest: Python has no such value, as of dates after the year 9999."""
    try:
        return values.to_pylist()  # type: ignore[no-any-return]
    except (ArithmeticError, ValueError) as why:
        raise InvalidRequest(f"Parquet: a value of the column {name!r} cannot be read: {path_text(str(why))}") from why


def told_of(schema: Any) -> str:
    """Its columns and their types, for people."""
    return path_text(", ".join(f"{field.name!r}: {field.type}" for field in schema)) or "no columns"


def _files_of(source: Any) -> Iterator[str]:
    if isinstance(source, (str, bytes, os.PathLike)):
        source = [source]
    found = False
    for each in source:
        path = os.path.abspath(os.fsdecode(each))
        if "://" in os.fsdecode(each):
            raise InvalidRequest(f"Parquet: URLs and files are not mixed: {path_text(os.fsdecode(each))} is a URL")
        if os.path.isdir(path):
            inside = sorted(name for name in os.listdir(path) if name.lower().endswith(_ENDINGS))
            some = [os.path.join(path, name) for name in inside]
        else:
            some = []
            for one in [path] if os.path.exists(path) else expanded(path):
                some += [one] if os.path.exists(one) or not glob.has_magic(one) else sorted(glob.glob(one, recursive=True))
        if not some:
            raise NotFound(f"Parquet: there are no files {path_text(path)}" + (" with .parquet at the end" if os.path.isdir(path) else ""))
        found = True
        yield from some
    if not found:
        raise InvalidRequest("Parquet: the list of files is empty")
