"""The images of uncompressed Parquet files as parts of these files."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from millrace._data.file_parts import WHOLE, FileParts
from millrace._tables.byte_ranges import NotParts
from millrace._tables.chunk_values import Chunk, values_of
from millrace._tables.page_headers import Damaged
from millrace._tables.parquet_files import ParquetFiles, opened_file, pyarrow
from millrace._wire.messages import path_text
from millrace.errors import InvalidRequest

_PLAIN = {"PLAIN", "RLE", "BIT_PACKED"}
_COMPARED = 4  # images of each row group
_DEEPEST = 255
_BYTE_ARRAY = 6


def parts_of(files: ParquetFiles, content: str, paths: str | None) -> FileParts:
    """Of each row where its image is.

    Args:
        files: with the column.
        content: the column of bytes as Parquet calls it: ``image.bytes``.
        paths: the column of paths beside it; None: there is none.

    Raises:
        NotParts: images are compressed or encoded; says where.
        InvalidRequest: a file is damaged, or a row has no image; says which.
    """
    which, offsets, lengths = [], [], []
    names = list(files.paths)
    numbers: dict[str, int] = {}
    begin = 0
    for number, path in enumerate(files.paths):
        with opened_file(path) as file:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                _check_same(files, number, descriptor)
                for group in range(len(files.footers[number].groups)):
                    chunk = _chunk(files, number, group, content, descriptor)
                    at, long, missing = _values(chunk, path, group)
                    _compare(file, group, content, descriptor, at, long, missing)
                    mine = np.full(chunk.rows, number, np.uint32)
                    if missing.any():
                        holes = np.flatnonzero(missing)
                        mine[holes] = _whole_files(file, group, paths, holes, begin, names, numbers)
                        at[holes], long[holes] = 0, WHOLE
                    which.append(mine)
                    offsets.append(at)
                    lengths.append(long)
                    begin += chunk.rows
            finally:
                os.close(descriptor)
    if not begin:
        raise InvalidRequest(f"Parquet: {path_text(files.paths[0])} has no rows")
    known = len(names) == len(files.paths)  # files that are whole are as they are when they are read
    return FileParts(
        names,
        np.concatenate(which),
        np.concatenate(offsets),
        np.concatenate(lengths),
        files.sizes if known else None,
        files.modified_ns if known else None,
    )


def _check_same(files: ParquetFiles, number: int, descriptor: int) -> None:
    status = os.fstat(descriptor)
    if (status.st_size, status.st_mtime_ns) != (int(files.sizes[number]), int(files.modified_ns[number])):
        raise InvalidRequest(f"Parquet: {path_text(files.paths[number])} has changed while it was opened")


def _chunk(files: ParquetFiles, number: int, group: int, content: str, descriptor: int) -> Chunk:
    footer = files.footers[number]
    column = footer.groups[group].get(content)
    where = f"{path_text(files.paths[number])}, row group {group}"
    if column is None:
        raise NotParts(f"{where}: it has no column {content!r} of its own")
    if column.codec != "UNCOMPRESSED":
        raise NotParts(f"{where}: its images are compressed ({column.codec})")
    if not set(column.encodings) <= _PLAIN:
        raise NotParts(f"{where}: its images are encoded ({', '.join(column.encodings)})")
    deepest = footer.levels.get(content, -1)
    if column.kind != _BYTE_ARRAY or not column.alone or not 0 <= deepest <= _DEEPEST:
        raise NotParts(f"{where}: its images are no plain bytes")
    begin, end, rows = column.begin, column.begin + column.size, footer.rows[group]
    size = int(files.sizes[number])
    if not 0 <= begin <= end <= size or not 0 <= rows <= (end - begin + 1) << 16 or column.values != rows:
        raise InvalidRequest(f"Parquet: {where}: the file is damaged: its images lie outside of it")
    return Chunk(descriptor, begin, end, rows, deepest)


def _values(chunk: Chunk, path: str, group: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.bool_]]:
    try:
        return values_of(chunk)
    except Damaged as why:
        raise InvalidRequest(f"Parquet: {path_text(path)}, row group {group}, is damaged: {why}") from why


def _compare(
    file: Any, group: int, content: str, descriptor: int, at: NDArray[np.uint64], long: NDArray[np.uint64], missing: NDArray[np.bool_]
) -> None:
    """The first images of the row group with what pyarrow reads. Raises NotParts: one is another."""
    batches = file.iter_batches(batch_size=_COMPARED, row_groups=[group], columns=[content], use_threads=False)
    batch = next(batches, None)
    values = [] if batch is None or not batch.num_columns else batch.column(0).to_pylist()
    if len(values) != min(_COMPARED, len(at)):
        raise NotParts(f"row group {group}: pyarrow reads another number of images")
    for row, value in enumerate(values):
        inner = value.get("bytes") if isinstance(value, dict) else value
        there = None if missing[row] else os.pread(descriptor, int(long[row]), int(at[row]))
        if inner != there:
            raise NotParts(f"row group {group}: an image is not where it was found")


def _whole_files(
    file: Any, group: int, paths: str | None, holes: NDArray[np.int64], begin: int, names: list[str], numbers: dict[str, int]
) -> list[int]:
    arrow, _ = pyarrow()
    told: list[str | None] = [None] * len(holes)
    if paths is not None:
        table = file.read_row_group(group, columns=[paths], use_threads=False)
        table.validate(full=True)  # texts that are no UTF-8, too
        name = paths.removesuffix(".path")
        column = arrow.concat_arrays(table.column(name).chunks) if name in table.column_names else arrow.nulls(0)
        if len(column) <= holes[-1]:
            raise InvalidRequest(f"Parquet: row {begin + int(holes[-1])} has no image: its path cannot be read")
        told = [value.get("path") if isinstance(value, dict) else value for value in column.take(arrow.array(holes)).to_pylist()]
    found: list[int] = []
    for hole, path in zip(holes.tolist(), told, strict=True):
        if not path or not isinstance(path, str) or "://" in path:
            raise InvalidRequest(f"Parquet: row {begin + hole} has no image: neither bytes nor a file's path; leave such rows out")
        absolute = os.path.abspath(path)
        if absolute not in numbers:
            numbers[absolute] = len(names)
            names.append(absolute)
        found.append(numbers[absolute])
    return found
