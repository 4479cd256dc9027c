"""What the header of a mask's file says about whether the levels that the daemon gives are its classes."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from millrace._data.file_parts import source_at
from millrace._wire.messages import path_text
from millrace.errors import Unsupported
from millrace.samples import Part

_JPEG = b"\xff\xd8\xff"
_PNG = b"\x89PNG\r\n\x1a\n"
_READ = 26  # bytes: up to the colour type in IHDR
_BITS, _COLOUR = 24, 25
_GREY = 0
_NOT_CLASSES = {2: "RGB", 4: "grey with transparency", 6: "RGB with transparency"}
_CONVERT = 'convert it once: Image.fromarray(numpy.array(Image.open(path)).astype("uint8")).save(path)'


class MaskFiles:
    """Whose headers have been looked at. A file that took another's place, or was written to, is looked at again. 8 bytes a mask."""

    def __init__(self, paths: Sequence[str]) -> None:
        """``paths``: of the masks, or parts of files, by sample id."""
        self._paths = paths
        self._known: NDArray[np.int64] = np.zeros(len(paths), np.int64)

    def check(self, sample: int) -> str:
        """Refuses a grey PNG whose levels are not its numbers. All else is the daemon's to judge, and so is what this process cannot read.

        Args:
            sample: whose mask it is.

        Returns:
            Why the pair is bad all the same: what is there now is no file; else empty. Never waits for who writes to a pipe.

        Raises:
            Unsupported: says what it is, and how to convert it.
        """
        source = source_at(self._paths, sample)
        try:
            if int(self._known[sample]) == _version_of(os.stat(source.path if isinstance(source, Part) else source)):
                return ""
            begins, version = _beginning(source)
        except _NoFile as why:
            return str(why)
        except OSError:
            return ""
        wrong = _refused(begins)
        if wrong:
            raise Unsupported(f"the mask {path_text(self._paths[sample])} {wrong}; {_CONVERT}")
        self._known[sample] = version
        return ""


def kind_of_mask(source: str | Part) -> str:
    """Why the file of a mask that is an error has no classes, and what to do, where its header says so; else empty."""
    try:
        begins, _ = _beginning(source)
    except (_NoFile, OSError):
        return ""
    if begins.startswith(_JPEG):
        return "it is a JPEG file, whose levels are not exact: make the masks anew as PNG"
    kind = _NOT_CLASSES.get(begins[_COLOUR]) if begins.startswith(_PNG) and len(begins) == _READ else None
    return f"it is {kind}: convert it to a palette or grey, a class for each colour" if kind is not None else ""


class _NoFile(Exception):
    """A pipe, a device, a folder."""


def _version_of(status: os.stat_result) -> int:
    """A number, not 0, which another file has not, nor this one once it was written to."""
    if not stat.S_ISREG(status.st_mode):
        raise _NoFile("the mask is no regular file any more, which it was when the daemon read it")
    return hash((status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)) or 1


def _beginning(source: str | Part) -> tuple[bytes, int]:
    """And the file's version. Raises _NoFile, and OSError: this process cannot read it."""
    path, offset, length = source if isinstance(source, Part) else (source, 0, _READ)
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        version = _version_of(os.fstat(file))
        return os.pread(file, min(length, _READ), offset), version
    finally:
        os.close(file)


def _refused(begins: bytes) -> str:
    if not begins.startswith(_PNG) or len(begins) < _READ or begins[_COLOUR] != _GREY:
        return ""
    if begins[_BITS] == 1:
        return "is a grey PNG of 1 bit, whose levels are 0 and 255 where Pillow's mode 1 has 0 and 1"
    return "is a grey PNG of 16 bits, and classes have 8" if begins[_BITS] > 8 else ""
