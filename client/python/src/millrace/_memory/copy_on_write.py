"""A slot's memory as this process sees it: copy on write, or plainly shared.

    Window        private, readable and writable: a page that is written to becomes a copy of this process's own. The daemon's memory
                  never changes, and its descriptor could not change it.
      fresh()     drops the copies, so that the daemon's bytes show again: before a slot's next batch is shown
      keep()      makes a copy of every page, so that the slot can go back while arrays of the batch live on at the same addresses
    SharedWindow  a stretch of the shared read-only mapping

A page that was only read stays where it is: nothing is dropped, nothing has to be faulted in again. All of a slot's pages are mapped
when its first batch is shown, and not before, when the daemon may not have filled them.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from millrace._memory import page_map as _page_map
from millrace.errors import FailedPrecondition

_FIXED = 0x10  # MAP_FIXED
_POPULATE = 0x8000  # MAP_POPULATE
_POPULATE_READ, _POPULATE_WRITE = 22, 23  # madvise, since Linux 5.14
_LOCKED_AT_ONCE = 64 << 10  # bytes; what a process may always lock
_FAILED = ctypes.c_void_p(-1).value

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_libc.mprotect.argtypes = _libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_libc.mlock.argtypes = _libc.munlock.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


class SharedMapping:
    """Addresses for a whole file, which may be shorter for now; zeros but where it is shown. Thread-bound."""

    def __init__(self, file: int, size: int) -> None:
        """Raises OSError: there are no addresses for it. The descriptor remains the caller's, for as long as this lives."""
        self._file = file
        self.memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ)
        """All of it, read-only."""
        self._first: int = np.frombuffer(self.memory, np.uint8).ctypes.data

    def show(self, start: int, size: int, *, populate: bool) -> None:
        """Maps those bytes of the file, which must be there; every page at once with ``populate``. Raises OSError."""
        first = start - start % mmap.PAGESIZE
        flags = mmap.MAP_SHARED | _FIXED | (_POPULATE if populate else 0)
        if _libc.mmap(self._first + first, start + size - first, mmap.PROT_READ, flags, self._file, first) == _FAILED:
            raise _error("mapping shared memory")


class SharedWindow:
    """See the module. Immutable."""

    def __init__(self, shared: NDArray[np.uint8], start: int, size: int) -> None:
        self.array_interface: dict[str, Any] = _bytes_at(shared.ctypes.data + start, size, read_only=True)
        """NumPy's description of the slot's bytes."""

    def fresh(self, used: int) -> bool:
        """Nothing to do."""
        return False


class Window:
    """See the module. ``fresh`` and ``keep`` may be called from any thread, and others may read and write meanwhile."""

    def __init__(self, segment: int, start: int, size: int, *, tells: bool) -> None:
        """Maps ``size`` bytes at ``start`` of the file that descriptor ``segment`` is of. They need not be there yet: none is touched.

        ``tells``: whether the page map is to be trusted, see ``noticed``.

        Raises:
            OSError: they cannot be mapped.
        """
        self._before = start % mmap.PAGESIZE  # where pages are larger than the layout's 4096 bytes
        self._length = _whole_pages(self._before + size)
        # Python's own object keeps the addresses and unmaps them; it would keep a descriptor for each mapping of a file.
        self._reserved = mmap.mmap(-1, self._length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ)
        self._first: int = np.frombuffer(self._reserved, np.uint8).ctypes.data
        self._map(segment, start - self._before)
        self._tells = tells
        self._populated = False
        self.array_interface: dict[str, Any] = _bytes_at(self._first + self._before, size, read_only=False)
        """NumPy's description of the slot's bytes."""

    def fresh(self, used: int) -> bool:
        """Shows the daemon's memory in the first ``used`` bytes.

        Costs 0.4 to 0.6 ms where nothing was written to 38 MB. Where the kernel does not tell what was written, all is dropped.

        Returns:
            Whether something may have been written.

        Raises:
            FailedPrecondition: it cannot be done.
        """
        if not self._populated:
            self.populate()
        end = self._first + min(self._length, _whole_pages(self._before + used))
        copies = self._copies(self._first, end)
        for first, behind in copies:
            self._drop(first, behind)
        return bool(copies)

    def populate(self) -> None:
        """Maps every page, which must be there."""
        self._populated = True
        if _libc.madvise(self._first, self._length, _POPULATE_READ) != 0:  # before Linux 5.14: reading them does it
            np.frombuffer(self._reserved, np.uint8)[:: mmap.PAGESIZE].max()

    def keep(self, used: int) -> None:
        """Makes the first ``used`` bytes this process's own, as they are. Raises OSError (no memory)."""
        length = _whole_pages(self._before + used)
        if _libc.madvise(self._first, length, _POPULATE_WRITE) == 0:
            return
        if ctypes.get_errno() != errno.EINVAL:
            raise _error("copying a batch that is kept")
        for first in range(self._first, self._first + length, _LOCKED_AT_ONCE):  # locking writes to the pages, too
            part = min(_LOCKED_AT_ONCE, self._first + length - first)
            if _libc.mlock(first, part) != 0:
                raise _error("copying a batch that is kept")
            _libc.munlock(first, part)

    def notices(self) -> bool:
        """Tries on the first byte, which must be there, whether the kernel tells of what is written.

        Raises:
            FailedPrecondition: this kernel, or what stands for one, does not drop pages that were written to.
        """
        byte = ctypes.c_uint8.from_address(self._first + self._before)
        original, end = byte.value, self._first + mmap.PAGESIZE
        byte.value = original ^ 0xFF
        tells = self._copies(self._first, end) == [(self._first, end)]
        self._drop(self._first, end)
        if byte.value != original:
            raise FailedPrecondition("session: this kernel does not drop pages that were written to; open it with writable=False")
        return tells and not self._copies(self._first, end)

    def _map(self, segment: int, start: int) -> None:
        # In this order: a process that locks all that it maps (mlockall) would get a copy of every page at once.
        flags = mmap.MAP_PRIVATE | _FIXED
        if _libc.mmap(self._first, self._length, mmap.PROT_READ, flags, segment, start) == _FAILED:
            raise _error("mapping a slot")
        _libc.munlock(self._first, self._length)
        if _libc.mprotect(self._first, self._length, mmap.PROT_READ | mmap.PROT_WRITE) != 0:
            raise _error("making a slot's mapping writable")

    def _copies(self, first: int, end: int) -> list[_page_map.Range]:
        if self._tells:
            try:
                return _page_map.copied_ranges(first, end)
            except OSError:  # no descriptor free, /proc gone, ...
                pass
        return [(first, end)]

    def _drop(self, first: int, end: int) -> None:
        for _ in range(3):  # somebody may lock everything once more in between
            if _libc.madvise(first, end - first, mmap.MADV_DONTNEED) == 0:
                return
            _libc.munlock(self._first, self._length)  # locked pages (mlockall) are not dropped
        why = os.strerror(ctypes.get_errno())
        raise FailedPrecondition(f"pages that were written to cannot be dropped: {why}; open the session with writable=False")


def noticed(segment: int) -> bool:
    """Whether the page map tells what was written to a private mapping of that file; tried on its first page.

    Raises as ``Window`` and ``Window.notices``.
    """
    return Window(segment, 0, mmap.PAGESIZE, tells=True).notices()


def _bytes_at(address: int, size: int, *, read_only: bool) -> dict[str, Any]:
    return {"version": 3, "data": (address, read_only), "shape": (size,), "typestr": "|u1", "strides": None}


def _whole_pages(size: int) -> int:
    return -(-size // mmap.PAGESIZE) * mmap.PAGESIZE


def _error(doing: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, f"{doing}: {os.strerror(number)}")
