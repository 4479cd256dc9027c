"""The images of a Hugging Face ``Dataset`` as parts of its Arrow files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from millrace._data.file_parts import WHOLE, FileParts
from millrace._tables.byte_ranges import ByteRanges, NotParts, ranges_of
from millrace._tables.mapped_files import MappedFiles, mapped_files
from millrace._wire.messages import path_text
from millrace.errors import InvalidRequest

_COMPARED = 3  # images of each file
_ENDS = 64  # bytes of an image's beginning and end


def parts_of(dataset: Any, image: str) -> FileParts:
    """Of each row, in the dataset's order, where its image is.

    Args:
        dataset: a ``datasets.Dataset``.
        image: its column.

    Raises:
        NotParts: the rows do not lie in files, or not as they are; says why.
        InvalidRequest: a row has no image; says which.
    """
    table = dataset.data
    if image not in table.column_names:
        raise NotParts(f"the table has no column {image!r}")
    ranges = ranges_of(table.column(image).chunks, image)
    if dataset._indices is not None:
        chosen = dataset._indices.column(0).to_numpy().astype(np.int64)
        if len(chosen) and (chosen.min() < 0 or chosen.max() >= len(ranges.lengths)):
            raise InvalidRequest("loader: the dataset is damaged: its indices lie outside of its table")
        ranges = _taken(ranges, chosen)
    lost = [row for row, path in zip(ranges.missing.tolist(), ranges.paths, strict=True) if not path]
    if lost:
        raise InvalidRequest(f"loader: {image!r} of row {lost[0]} is None, and of {len(lost)} rows in all: leave them out of the dataset")
    return _located(ranges, mapped_files())


def _taken(ranges: ByteRanges, rows: NDArray[np.int64]) -> ByteRanges:
    addresses, lengths = ranges.addresses[rows], ranges.lengths[rows]
    if not len(ranges.missing):
        return ByteRanges(addresses, lengths, ranges.missing, ranges.paths)
    missing = np.flatnonzero(np.isin(rows, ranges.missing))
    places = np.searchsorted(ranges.missing, rows[missing]).tolist()
    return ByteRanges(addresses, lengths, missing, [ranges.paths[place] for place in places])


def _located(ranges: ByteRanges, mapped: MappedFiles) -> FileParts:
    count = len(ranges.lengths)
    if not count:
        raise NotParts("the dataset is empty")
    holding = mapped.holding(ranges.addresses, ranges.lengths)
    whole = np.zeros(count, bool)
    whole[ranges.missing] = True
    if (holding[~whole] < 0).any():
        raise NotParts("its rows lie in memory, or compressed, and not in a file as they are")
    used, place = np.unique(mapped.which[holding[~whole]], return_inverse=True)
    files = [mapped.paths[number] for number in used.tolist()]
    which, offsets, lengths = np.zeros(count, np.uint32), np.zeros(count, np.uint64), ranges.lengths.copy()
    which[~whole] = place
    within = holding[~whole]
    offsets[~whole] = ranges.addresses[~whole] - mapped.begins[within] + mapped.offsets[within]
    stamps = [_stamp(file) for file in files]
    _compare(files, which, offsets, ranges, np.flatnonzero(~whole))
    if len(ranges.missing):
        if len(files):
            stamps = []  # files that are whole are as they are when they are read
        _add_whole(files, which, lengths, ranges)
    sizes, times = ([each[k] for each in stamps] for k in (0, 1))
    known = len(stamps) == len(files)
    return FileParts(
        files, which, offsets, lengths, np.array(sizes, np.uint64) if known else None, np.array(times, np.int64) if known else None
    )


def _add_whole(files: list[str], which: NDArray[np.uint32], lengths: NDArray[np.uint64], ranges: ByteRanges) -> None:
    numbers = {file: number for number, file in enumerate(files)}
    for row, path in zip(ranges.missing.tolist(), ranges.paths, strict=True):
        if path and "://" in path:
            raise NotParts(f"row {row} of its table names a URL, {path_text(path)}")
        path = os.path.abspath(path or "")
        if path not in numbers:
            numbers[path] = len(files)
            files.append(path)
        which[row], lengths[row] = numbers[path], WHOLE


def _stamp(file: str) -> tuple[int, int]:
    try:
        status = os.stat(file)
    except OSError as why:
        raise NotParts(f"its file {path_text(file)} is no longer there: {why.strerror}") from why
    return status.st_size, status.st_mtime_ns


def _compare(
    files: Sequence[str], which: NDArray[np.uint32], offsets: NDArray[np.uint64], ranges: ByteRanges, rows: NDArray[np.int64]
) -> None:
    """Some images of each file with what the mapping has: a file of that name may be another one by now, or seen by another name.

    Raises:
        NotParts: one is another.
    """
    import pyarrow as pa

    order = rows[np.argsort(which[rows], kind="stable")]
    begins = np.searchsorted(which[order], np.arange(len(files) + 1))
    for number, file in enumerate(files):
        mine = order[begins[number] : begins[number + 1]]
        chosen = mine[np.linspace(0, len(mine) - 1, min(_COMPARED, len(mine))).astype(np.int64)]
        try:
            with open(file, "rb", buffering=0) as opened:
                for row in chosen.tolist():
                    length = int(ranges.lengths[row])
                    for begin in (0, max(0, length - _ENDS)):
                        size = min(_ENDS, length - begin)
                        there = os.pread(opened.fileno(), size, int(offsets[row]) + begin)
                        if there != pa.foreign_buffer(int(ranges.addresses[row]) + begin, size).to_pybytes():
                            raise NotParts(f"{path_text(file)} is another file than the one that the table has")
        except OSError as why:
            raise NotParts(f"{path_text(file)} cannot be read: {why.strerror}") from why
