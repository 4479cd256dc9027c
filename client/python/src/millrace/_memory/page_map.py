"""Which pages of a private mapping of a file are copies of this process's own: the kernel's page map of the process says.

A page that was written to has become anonymous memory; one that was only read is still the file's, or not there at all. Present or
swapped out, and not the file's: a copy. That also holds for copies that were merged with others (KSM), and huge pages of the file are the
file's.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import struct

import numpy as np

Range = tuple[int, int]
"""Of addresses: the first, and one past the last."""

_PATH = "/proc/self/pagemap"

# linux/fs.h: struct pm_scan_arg {size, flags, start, end, walk_end, vec, vec_len, max_pages, category_inverted, category_mask,
# category_anyof_mask, return_mask}, and struct page_region {start, end, categories}; all u64.
_SCAN = struct.Struct("=12Q")
_SCAN_REQUEST = 3 << 30 | _SCAN.size << 16 | ord("f") << 8 | 16  # _IOWR('f', 16, struct pm_scan_arg)
_FILE, _PRESENT, _SWAPPED = 1 << 2, 1 << 3, 1 << 4
_REGIONS = 32


def copied_ranges(start: int, end: int) -> list[Range]:
    """The copies between two addresses, whole pages both, in order; where there are many of them, also what lies between.

    Raises:
        OSError: the kernel does not tell.
    """
    page_map = os.open(_PATH, os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            return _scanned(page_map, start, end)
        except OSError:  # before Linux 6.7
            return _read(page_map, start, end)
    finally:
        os.close(page_map)


def _scanned(page_map: int, start: int, end: int) -> list[Range]:
    regions = (ctypes.c_uint64 * (3 * _REGIONS))()
    arguments = bytearray(
        _SCAN.pack(_SCAN.size, 0, start, end, 0, ctypes.addressof(regions), _REGIONS, 0, _FILE, _FILE, _PRESENT | _SWAPPED, 0)
    )
    found = fcntl.ioctl(page_map, _SCAN_REQUEST, arguments)
    walked = _SCAN.unpack(arguments)[4]
    ranges = [(regions[3 * n], regions[3 * n + 1]) for n in range(found)]
    if walked < end:  # there was no room for more
        ranges.append((walked, end))
    return ranges


def _read(page_map: int, start: int, end: int) -> list[Range]:
    first, pages = start // mmap.PAGESIZE, (end - start) // mmap.PAGESIZE
    entries = np.frombuffer(os.pread(page_map, 8 * pages, 8 * first), np.uint64)
    if len(entries) != pages:
        raise OSError("the page map ends early")
    there, of_file = entries >> np.uint64(62) != 0, entries >> np.uint64(61) & np.uint64(1) != 0
    (copies,) = np.nonzero(there & ~of_file)
    if not len(copies):
        return []
    return [(start + int(copies[0]) * mmap.PAGESIZE, start + (int(copies[-1]) + 1) * mmap.PAGESIZE)]
