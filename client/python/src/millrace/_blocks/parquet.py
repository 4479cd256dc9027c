"""Parquet files as a source in blocks: a block is a row group, read by pyarrow."""

from __future__ import annotations

import hashlib
import itertools
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from millrace._blocks.source import BlockSource
from millrace._loader.bad_images import BadImageWarning
from millrace._process.warn import warn
from millrace._tables.parquet_files import pyarrow, python_values
from millrace.encoded import Row
from millrace.errors import InvalidRequest
from millrace.samples import Path

_LEAST = 3  # row groups behind URLs that are read at the same time


class TableFile(Protocol):
    """A Parquet file, wherever it is."""

    @property
    def name(self) -> str:
        """For people."""

    @property
    def stamp(self) -> tuple[Any, ...]:
        """What tells it from the one that replaces it."""

    @property
    def footer(self) -> Any:
        """Its ``Footer``."""

    @property
    def on_host(self) -> bool:
        """Whether the paths in it are those of this host's files."""

    def read(self, group: int, columns: Sequence[str], stop: threading.Event | None) -> Any:
        """Those columns of a row group, as pyarrow's ``Table``.

        Raises:
            OSError: they cannot be read.
            ValueError: they are damaged, or the file is another one now.
        """


class _Group(NamedTuple):
    """A row group: its file and number there."""

    file: TableFile
    number: int


class ParquetBlocks(BlockSource):
    """Row groups of Parquet files with a column of encoded images."""

    def __init__(
        self, files: Sequence[TableFile], image: str, label: str | None = None, columns: Sequence[str] = (), classes: Sequence[str] = ()
    ) -> None:
        """Reads nothing.

        Args:
            files: in the order of the samples; with these columns, and with rows.
            image: the column with the images: bytes, or Hugging Face's struct of ``bytes`` and ``path``.
            label: the column that becomes the label; None: none, every label is -1.
            columns: further ones that come with each batch.
            classes: the labels' names.
        """
        self._image, self._label, self._others = image, label, tuple(columns)
        self.columns = (*(["label"] if label is not None else []), *columns)
        self.classes = tuple(classes)
        self._groups: list[_Group] = []
        sizes, taken = [], []
        told = hashlib.sha256(repr((image, label, self.columns)).encode())
        for file in files:
            rows = [count for count in file.footer.rows if count]
            for group in (number for number, count in enumerate(file.footer.rows) if count):
                self._groups.append(_Group(file, group))
                taken.append(sum(file.footer.bytes_of(group, name) for name in set(self._wanted())))
            sizes += rows
            told.update(repr((file.name, file.stamp, rows)).encode("utf-8", "surrogateescape"))
        self._sizes, self._taken = np.array(sizes, np.int64), np.array(taken, np.int64)
        self._fingerprint = told.hexdigest()
        if not files[0].on_host:  # so many that their ranges are about as many as a store is asked for at the same time
            from millrace._remote.ranges import AT_ONCE, RANGE

            self.at_once = min(AT_ONCE, max(_LEAST, AT_ONCE * RANGE // max(1, int(self._taken.mean()))))

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
        return f"{group.file.name}, row group {group.number}"

    def read(self, block: int, stop: threading.Event | None = None) -> list[Row]:
        """The images lie in the row group's own memory."""
        group = self._groups[block]
        table = group.file.read(group.number, self._wanted(), stop)
        values = [python_values(table.column(name), name) for name in self._wanted()[1:]]
        if self._label is not None and None in values[0]:
            raise InvalidRequest(
                f"Parquet: {self.name_of(block)}: the label {self._label!r} of its row {values[0].index(None)} is None: leave such rows "
                "out, or give Parquet(..., label=None) for none"
            )
        rows = zip(*values, strict=True) if values else iter([()] * len(table))
        images = self._images(table.column(self._image))
        if not group.file.on_host:
            self._without_paths(images, self.name_of(block))
        return [Row(image, tuple(row), 0) for image, row in zip(images, rows, strict=True)]

    def _wanted(self) -> tuple[str, ...]:
        return (self._image, *([self._label] if self._label is not None else []), *self._others)

    def _without_paths(self, images: list[Any], name: str) -> None:
        """Makes bad images of those that are paths only; raises InvalidRequest: all are."""
        paths = [number for number, image in enumerate(images) if isinstance(image, Path)]
        if not paths:
            return
        told = f"{name} has paths and no bytes, as of row {paths[0]} {images[paths[0]].path!r}"
        if len(paths) == len(images):
            raise InvalidRequest(f"Parquet: {told}: behind a URL images are bytes; millrace.RemoteFiles takes images' URLs")
        for number in paths:
            images[number] = b""
        warn(f"Parquet: {told}, so {len(paths)} of its {len(images)} samples are bad images", BadImageWarning)

    def _images(self, column: Any) -> list[Any]:
        types = pyarrow()[0].types
        images: list[Any] = []
        for chunk in column.chunks:
            paths = None
            if types.is_struct(chunk.type):
                paths = chunk.field("path") if chunk.type.get_field_index("path") >= 0 else None
                chunk = chunk.field("bytes")
            if not (types.is_binary(chunk.type) or types.is_large_binary(chunk.type)):
                raise InvalidRequest(f"Parquet: the column {self._image!r} has {chunk.type}, and an image is a file's bytes")
            images += self._of_chunk(chunk, paths)
        return images

    def _of_chunk(self, chunk: Any, paths: Any) -> list[Any]:
        """Memoryviews of the chunk's buffer; a path where the bytes are missing, or no bytes, which is a bad image."""
        kind = np.int64 if pyarrow()[0].types.is_large_binary(chunk.type) else np.int32
        _, ends, data = chunk.buffers()
        bounds = np.frombuffer(ends, kind)[chunk.offset : chunk.offset + len(chunk) + 1].tolist()
        view = memoryview(data).cast("B") if data is not None else memoryview(b"")
        images: list[Any] = [view[begin:end] for begin, end in itertools.pairwise(bounds)]
        if chunk.null_count:
            for i in np.flatnonzero(chunk.is_null().to_numpy(zero_copy_only=False)).tolist():
                path = paths[i].as_py() if paths is not None else None
                images[i] = Path(path) if path else b""
        return images
