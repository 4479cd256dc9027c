"""Where the values of an uncompressed column of bytes lie in a Parquet file: its pages are walked, and the lengths within them read."""

from __future__ import annotations

import os
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from millrace._tables.byte_ranges import NotParts
from millrace._tables.page_headers import DATA_PAGE, DATA_PAGE_V2, DICTIONARY_PAGE, PLAIN, RLE, Damaged, Page, page_of

_HEADER = 1 << 10  # bytes that are read for a header at first
_HEADERS = 1 << 20  # at most: statistics may hold whole values
_SMALL = 16 << 10  # bytes a value; pages of smaller ones are read whole
_WHOLE = 64 << 20  # bytes of a page that is read whole, at most


class Chunk(NamedTuple):
    """A column's part of a row group.

    Attributes:
        file: a descriptor.
        begin: of its pages, bytes from the file's start.
        end: after them.
        rows: of the row group.
        deepest: the definition level of a value that is there; 0: all are.
    """

    file: int
    begin: int
    end: int
    rows: int
    deepest: int


def values_of(chunk: Chunk) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.bool_]]:
    """Offsets and lengths in the file [rows], and which rows have no value.

    Raises:
        Damaged: it is no such chunk, or values lie outside of their page.
        NotParts: values are encoded.
        OSError: the file cannot be read.
    """
    found = [(np.zeros(0, np.uint64), np.zeros(0, np.uint64), np.zeros(0, bool))]
    row, at = 0, chunk.begin
    while row < chunk.rows:
        page = _header(chunk, at)
        at += page.header
        if page.size > chunk.end - at:
            raise Damaged("a page is longer than its column")
        if page.kind == DICTIONARY_PAGE:
            raise NotParts("its images are in a dictionary")
        if page.kind in (DATA_PAGE, DATA_PAGE_V2):
            if page.encoding != PLAIN or (chunk.deepest and page.levels != RLE):
                raise NotParts("its images are encoded")
            if page.uncompressed != page.size or page.repetition_bytes or page.values > min(chunk.rows - row, (page.size + 1) << 16):
                raise Damaged("a page has other sizes, or more rows, than its column")
            there, skipped = _levels(chunk, page, at)
            rows = np.flatnonzero(there)
            offsets, lengths = np.zeros(page.values, np.uint64), np.zeros(page.values, np.uint64)
            offsets[rows], lengths[rows] = _plain(chunk.file, at + skipped, at + page.size, len(rows))
            found.append((offsets, lengths, ~there))
            row += page.values
        at += page.size
    whole = [np.concatenate(each) for each in zip(*found, strict=True)]
    return whole[0], whole[1], whole[2]


def _header(chunk: Chunk, at: int) -> Page:
    size = _HEADER
    while True:
        data = os.pread(chunk.file, min(size, max(0, chunk.end - at)), at)
        try:
            return page_of(data)
        except Damaged:
            if len(data) < size or size >= _HEADERS:
                raise
            size *= 32


def _levels(chunk: Chunk, page: Page, at: int) -> tuple[NDArray[np.bool_], int]:
    """Which rows have a value, and the bytes that say so."""
    if not chunk.deepest:
        if page.level_bytes:
            raise Damaged("a page has levels that its column has not")
        return np.ones(page.values, bool), 0
    skipped, size = 0, page.level_bytes
    if page.kind == DATA_PAGE:
        if page.size < 4:
            raise Damaged("a page ends within its levels")
        skipped, size = 4, int.from_bytes(os.pread(chunk.file, 4, at), "little")
    if size > page.size - skipped:
        raise Damaged("a page ends within its levels")
    levels = _runs(os.pread(chunk.file, size, at + skipped), chunk.deepest.bit_length(), page.values)
    return levels == chunk.deepest, skipped + size


def _runs(data: bytes, bits: int, count: int) -> NDArray[np.uint8]:
    """Levels as Parquet's hybrid of runs and packed bits has them; ``bits`` each, at most 8."""
    levels = np.zeros(count, np.uint8)
    done, at = 0, 0
    while done < count:
        head = shift = 0
        while True:
            if at >= len(data) or shift > 35:
                raise Damaged("the levels of a page do not end")
            head |= (data[at] & 127) << shift
            shift, at = shift + 7, at + 1
            if data[at - 1] < 128:
                break
        number = head >> 1
        if not number:
            raise Damaged("the levels of a page have an empty run")
        if head & 1:
            packed = np.frombuffer(data[at : at + number * bits], np.uint8)
            values = np.unpackbits(packed, bitorder="little")
            found = values[: len(values) // bits * bits].reshape(-1, bits) @ (1 << np.arange(bits)).astype(np.uint8)
            taken = min(number * 8, count - done)
            if len(found) < taken:
                raise Damaged("the levels of a page do not end")
            levels[done : done + taken] = found[:taken]
            at += number * bits
        else:
            taken = min(number, count - done)
            if at >= len(data):
                raise Damaged("the levels of a page do not end")
            levels[done : done + taken] = data[at]
            at += 1
        done += taken
    return levels


def _plain(file: int, begin: int, end: int, count: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Of each value in ``[begin, end)`` of the file: 4 bytes say its length, then it comes."""
    size = end - begin
    if count * 4 > size:
        raise Damaged("a page has more values than it can hold")
    whole = os.pread(file, size, begin) if count and size // count <= _SMALL and size <= _WHOLE else None
    offsets, lengths, at = [], [], 0
    for _ in range(count):
        told = os.pread(file, 4, begin + at) if whole is None else whole[at : at + 4]
        length = int.from_bytes(told, "little")
        at += 4
        if len(told) < 4 or length > size - at:
            raise Damaged("a value is longer than its page")
        offsets.append(begin + at)
        lengths.append(length)
        at += length
    return np.array(offsets, np.uint64), np.array(lengths, np.uint64)
