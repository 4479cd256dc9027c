"""A folder seen through a slow disk: a FUSE file system that answers so many bytes a second, and each request after a delay.

    python slow_disk.py FOLDER MOUNTPOINT MB_PER_S MS_PER_REQUEST

Reading ahead and the page cache are the kernel's, as on any disk; a new mount begins without pages. Several requests wait at the same time.
"""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

REQUEST = 1 << 20  # bytes, at most


@contextmanager
def mounted(folder: Path, place: Path, mb_per_s: float, ms: float) -> Iterator[Path]:
    """The folder as ``place``, which is made. Raises RuntimeError: it cannot be mounted; says why."""
    place.mkdir(exist_ok=True)
    command = [sys.executable, __file__, str(folder), str(place), str(mb_per_s), str(ms)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            while not os.path.ismount(place):
                if process.poll() is not None:
                    assert process.stderr is not None
                    raise RuntimeError(f"no slow disk: {process.stderr.read().strip()[-300:]}")
                time.sleep(0.01)
            yield place
        finally:
            subprocess.run(["fusermount3", "-u", "-z", str(place)], check=False, capture_output=True)
            process.kill()  # a file that is still open would keep it


def main(folder: str, place: str, mb_per_s: float, ms: float) -> None:
    """Serves it until it is unmounted."""
    import mfusepy

    class Disk(mfusepy.Operations):  # type: ignore[misc]
        """Read-only."""

        def __init__(self) -> None:
            self._lock, self._free = threading.Lock(), 0.0

        def init_with_config(self, info: Any, config: Any) -> None:
            del config
            if info is not None:
                info.max_readahead = REQUEST

        def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:
            del fh
            try:
                found = os.lstat(folder + path)
            except OSError as why:
                raise mfusepy.FuseOSError(why.errno or errno.EIO) from why
            names = ("st_mode", "st_nlink", "st_size", "st_uid", "st_gid", "st_mtime", "st_atime", "st_ctime")
            return {name: getattr(found, name) for name in names}

        def readdir(self, path: str, fh: int) -> list[str]:
            del fh
            return [".", "..", *os.listdir(folder + path)]

        def open(self, path: str, flags: int) -> int:
            return os.open(folder + path, flags & ~os.O_DIRECT)

        def release(self, path: str, fh: int) -> int:
            del path
            os.close(fh)
            return 0

        def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
            del path
            now = time.monotonic()
            with self._lock:  # the disk gives its bytes one after the other; its delay is each request's own
                self._free = max(now, self._free) + size / (mb_per_s * 1e6)
                ready = max(self._free, now + ms / 1e3)
            data = os.pread(fh, size, offset)
            time.sleep(max(0.0, ready - time.monotonic()))
            return data

    mfusepy.FUSE(Disk(), place, foreground=True, ro=True, allow_other=True, nothreads=False, max_read=REQUEST)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4]))
