"""Parquet files as pyarrow opens them, with this package's messages; and which files a source names."""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from millrace._tables.footers import Footer, footer_of
from millrace._tables.page_headers import Damaged
from millrace._wire.messages import path_text
from millrace.errors import Error, InvalidRequest, NotFound, Unsupported
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
    """

    paths: tuple[str, ...]
    footers: tuple[Footer, ...]
    schema: Any
    sizes: NDArray[np.uint64]
    modified_ns: NDArray[np.int64]

    @property
    def rows(self) -> int:
        """Of all files."""
        return sum(sum(footer.rows) for footer in self.footers)

    def groups(self) -> list[tuple[int, int, int]]:
        """File, number in it, and rows of each row group, in the order of the rows."""
        return [(file, group, rows) for file, footer in enumerate(self.footers) for group, rows in enumerate(footer.rows)]

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
        source: a file, a pattern (``train-*.parquet``), a folder, or a list of these.

    Raises:
        NotFound: there is no such file.
        InvalidRequest: one is no Parquet file, or has other columns than the first.
        Unsupported: pyarrow is not installed.
    """
    paths = tuple(_files_of(source))
    footers, stamps, schema = [], [], None
    for path in paths:
        footer, status = _footer(path)
        stamps.append((status.st_size, status.st_mtime_ns))
        footers.append(footer)
        with opened_file(path) as file:
            mine = file.schema_arrow
            schema = mine if schema is None else schema
            if not mine.remove_metadata().equals(schema.remove_metadata()):
                raise InvalidRequest(f"Parquet: {path_text(path)} has {told_of(mine)}, and {path_text(paths[0])} has {told_of(schema)}")
    sizes, times = zip(*stamps, strict=True)
    return ParquetFiles(paths, tuple(footers), schema, np.array(sizes, np.uint64), np.array(times, np.int64))


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
        with parquet.ParquetFile(path, memory_map=False, pre_buffer=False, buffer_size=_BUFFER) as file:
            yield file
    except Error:
        raise
    except FileNotFoundError as why:
        raise NotFound(f"Parquet: there is no file {path_text(path)}") from why
    except (arrow.ArrowException, OSError, EOFError, OverflowError, UnicodeError) as why:
        raise InvalidRequest(f"Parquet: {path_text(path)} cannot be read: {path_text(str(why))}") from why


def _footer(path: str) -> tuple[Footer, os.stat_result]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return footer_of(descriptor), os.fstat(descriptor)
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
            raise InvalidRequest(f"Parquet: {path_text(os.fsdecode(each))} is a URL, and files are meant: copy it to this host")
        if os.path.isdir(path):
            inside = sorted(name for name in os.listdir(path) if name.lower().endswith(_ENDINGS))
            some = [os.path.join(path, name) for name in inside]
        else:
            some = [path] if os.path.exists(path) or not glob.has_magic(path) else sorted(glob.glob(path, recursive=True))
        if not some:
            raise NotFound(f"Parquet: there are no files {path_text(path)}" + (" with .parquet at the end" if os.path.isdir(path) else ""))
        found = True
        yield from some
    if not found:
        raise InvalidRequest("Parquet: the list of files is empty")
