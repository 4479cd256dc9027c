"""Compressed Parquet files as a source in blocks: a block is a row group, read by pyarrow."""

from __future__ import annotations

import hashlib
import itertools
import os
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from millrace._blocks.source import BlockSource
from millrace.encoded import Row
from millrace.errors import InvalidRequest, Unsupported
from millrace.samples import Path


class _Group(NamedTuple):
    """A row group: its file and number there."""

    file: int
    number: int


class ParquetBlocks(BlockSource):
    """Row groups of Parquet files with a column of encoded images."""

    def __init__(
        self, files: Sequence[str], image: str, label: str | None = None, columns: Sequence[str] = (), classes: Sequence[str] = ()
    ) -> None:
        """Reads the files' footers.

        Args:
            files: paths, in the order of the samples.
            image: the column with the images: bytes, or Hugging Face's struct of ``bytes`` and ``path``.
            label: the column that becomes the label; None: none, every label is -1.
            columns: further ones that come with each batch.
            classes: the labels' names.

        Raises:
            InvalidRequest: a file has no such column, is no Parquet file, or there are no rows; says which.
            OSError: a file cannot be read.
            Unsupported: pyarrow is not installed.
        """
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError as why:
            raise Unsupported("Parquet files are read by pyarrow: pip install pyarrow") from why
        self._arrow, self._parquet = pyarrow, pyarrow.parquet
        self._files = [os.fspath(file) for file in files]
        self._image, self._label, self._others = image, label, tuple(columns)
        self.columns = (*(["label"] if label is not None else []), *columns)
        self.classes = tuple(classes)
        self._stamps: list[tuple[int, int]] = []
        self._groups: list[_Group] = []
        sizes, taken = [], []
        told = hashlib.sha256(repr((image, label, self.columns)).encode())
        for number, file in enumerate(self._files):
            self._stamps.append(_stamp(file))
            metadata, schema = self._footer(file)
            missing = [name for name in self._wanted() if name not in schema.names]
            if missing:
                raise InvalidRequest(f"Parquet: {file} has no column {', '.join(map(repr, missing))}; it has {', '.join(schema.names)}")
            for group in range(metadata.num_row_groups):
                of_group = metadata.row_group(group)
                if of_group.num_rows:
                    self._groups.append(_Group(number, group))
                    sizes.append(of_group.num_rows)
                    taken.append(self._bytes_of(of_group))
            told.update(repr((file, self._stamps[-1], sizes[len(sizes) - metadata.num_row_groups :])).encode("utf-8", "surrogateescape"))
        if not sizes:
            raise InvalidRequest(f"Parquet: {self._files or 'no file'}: there are no rows")
        self._sizes, self._taken = np.array(sizes, np.int64), np.array(taken, np.int64)
        self._fingerprint = told.hexdigest()

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Rows of each row group."""
        return self._sizes

    @property
    def block_bytes(self) -> NDArray[np.int64]:
        """Uncompressed, of the columns that are read."""
        return self._taken

    @property
    def fingerprint(self) -> str:
        """Of the files' names, sizes, times and row groups, and of the columns."""
        return self._fingerprint

    def name_of(self, block: int) -> str:
        """``train-0.parquet, row group 3``."""
        group = self._groups[block]
        return f"{self._files[group.file]}, row group {group.number}"

    def read(self, block: int, stop: threading.Event | None = None) -> list[Row]:
        """The images lie in the row group's own memory."""
        group = self._groups[block]
        file = self._files[group.file]
        if _stamp(file) != self._stamps[group.file]:
            raise ValueError("the file has changed since it was opened: it has another size or time")
        with self._parquet.ParquetFile(file, memory_map=False, pre_buffer=False) as opened:
            table = opened.read_row_group(group.number, columns=list(self._wanted()), use_threads=False)
        values = [table.column(name).to_pylist() for name in self._wanted()[1:]]
        rows = zip(*values, strict=True) if values else iter([()] * len(table))
        images = self._images(table.column(self._image))
        return [Row(image, tuple(row), 0) for image, row in zip(images, rows, strict=True)]

    def _wanted(self) -> tuple[str, ...]:
        return (self._image, *([self._label] if self._label is not None else []), *self._others)

    def _footer(self, file: str) -> tuple[Any, Any]:
        try:
            with self._parquet.ParquetFile(file) as opened:
                return opened.metadata, opened.schema_arrow
        except self._arrow.ArrowInvalid as why:
            raise InvalidRequest(f"Parquet: {file} cannot be read: {why}") from why

    def _bytes_of(self, group: Any) -> int:
        wanted = set(self._wanted())
        columns = (group.column(i) for i in range(group.num_columns))
        return sum(column.total_uncompressed_size for column in columns if column.path_in_schema.partition(".")[0] in wanted)

    def _images(self, column: Any) -> list[Any]:
        images: list[Any] = []
        for chunk in column.chunks:
            paths = None
            if self._arrow.types.is_struct(chunk.type):
                paths = chunk.field("path") if chunk.type.get_field_index("path") >= 0 else None
                chunk = chunk.field("bytes")
            if not (self._arrow.types.is_binary(chunk.type) or self._arrow.types.is_large_binary(chunk.type)):
                raise InvalidRequest(f"Parquet: the column {self._image!r} has {chunk.type}, and an image is a file's bytes")
            images += self._of_chunk(chunk, paths)
        return images

    def _of_chunk(self, chunk: Any, paths: Any) -> list[Any]:
        """Memoryviews of the chunk's buffer; a path where the bytes are missing, or no bytes, which is a bad image."""
        kind = np.int64 if self._arrow.types.is_large_binary(chunk.type) else np.int32
        _, ends, data = chunk.buffers()
        bounds = np.frombuffer(ends, kind)[chunk.offset : chunk.offset + len(chunk) + 1].tolist()
        view = memoryview(data).cast("B") if data is not None else memoryview(b"")
        images: list[Any] = [view[begin:end] for begin, end in itertools.pairwise(bounds)]
        if chunk.null_count:
            for i in np.flatnonzero(chunk.is_null().to_numpy(zero_copy_only=False)).tolist():
                path = paths[i].as_py() if paths is not None else None
                images[i] = Path(path) if path else b""
        return images


def _stamp(file: str) -> tuple[int, int]:
    status = os.stat(file)
    return status.st_size, status.st_mtime_ns
