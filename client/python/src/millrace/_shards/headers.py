"""Headers of tar archives, many at once: which are plain, so that their bytes say all about their members."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

BLOCK = 512  # bytes: of a header, and what data are padded to

_NAME, _PREFIX, _PREFIX_END = 100, 345, 500
_MODE, _UID, _GID, _SIZE, _MTIME, _CHECKSUM, _KIND, _MAGIC, _MAJOR, _MINOR = 100, 108, 116, 124, 136, 148, 156, 257, 329, 337
_USTAR, _GNU = b"ustar\x0000", b"ustar  \0"

_fields = [(_MODE, 8), (_UID, 8), (_GID, 8), (_SIZE, 12), (_MTIME, 12), (_MAJOR, 8), (_MINOR, 8)]
_COLUMNS = np.concatenate([np.arange(begin, begin + length) for begin, length in _fields])
_BEGINS = np.cumsum([0, *(length for _, length in _fields)])[:-1]
_WITHIN = np.setdiff1d(np.arange(len(_COLUMNS)), _BEGINS)  # digits that have another before them in their field
_SIZE_BEGIN = int(_BEGINS[3])
_DIGIT, _END, _OTHER, _BINARY = 0, 1, 2, 3
_CLASSES = np.full(256, _OTHER, np.uint8)
_CLASSES[48:56], _CLASSES[[0, 32]], _CLASSES[[128, 255]] = _DIGIT, _END, _BINARY
_EIGHTS = 8 ** np.arange(5, -1, -1, dtype=np.uint32)


def is_header(block: bytes) -> bool:
    """Whether the block says that it is one, of POSIX or GNU tar."""
    return block[_MAGIC : _MAGIC + 5] == _USTAR[:5]


def table_of(headers: Sequence[bytes]) -> NDArray[np.uint8]:
    """The headers as rows [N, 512]."""
    return np.frombuffer(b"".join(headers), np.uint8).reshape(-1, BLOCK)


def plain(table: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Of each header whether it is plain: of POSIX ustar or GNU tar, its checksum fits, and its numbers are octal digits.

    Owners and times may be in base 256.

    What is not plain may be right all the same: ``tarfile`` decides that.
    """
    magic = np.ascontiguousarray(table[:, _MAGIC : _MAGIC + 8]).view(np.uint64)[:, 0]
    gnu = magic == np.frombuffer(_GNU, np.uint64)[0]
    good: NDArray[np.bool_] = (magic == np.frombuffer(_USTAR, np.uint64)[0]) | (gnu & (table[:, _PREFIX] == 0))
    digits = table[:, _CHECKSUM : _CHECKSUM + 6] - np.uint8(48)
    good &= (digits < 8).all(1) & (table[:, _CHECKSUM + 6] == 0)
    own = table[:, _CHECKSUM : _CHECKSUM + 8].sum(1, dtype=np.uint32)
    good &= table.sum(1, dtype=np.uint32) - own + 8 * 32 == digits @ _EIGHTS

    classes = _CLASSES[table[:, _COLUMNS]]
    good &= (classes[:, _SIZE_BEGIN : _SIZE_BEGIN + 11] == _DIGIT).all(1) & (classes[:, _SIZE_BEGIN + 11] == _END)
    ordered = classes[:, _WITHIN] >= classes[:, _WITHIN - 1]  # digits and what ends them, in this order
    known = classes <= _END
    if ordered.all() and known.all():
        return good
    good &= [_sane(row) for row in classes]
    return good


def _sane(classes: NDArray[np.uint8]) -> bool:
    """Of one header with numbers in base 256, as owners with large numbers have."""
    for begin, (name, length) in zip(_BEGINS, _fields, strict=True):
        field = classes[begin : begin + length]
        if name != _SIZE and field[0] == _BINARY:
            continue
        if (field > _END).any() or (np.diff(field.astype(np.int8)) < 0).any():
            return False
    return True


def names_of(table: NDArray[np.uint8]) -> list[bytes]:
    """The members' names, with the prefixes of ustar."""
    field = table[:, :_NAME]
    names: list[bytes] = np.ascontiguousarray(field).view(f"S{_NAME}")[:, 0].tolist()
    filled = field != 0
    for row in np.flatnonzero((filled[:, 1:] & ~filled[:, :-1]).any(1)):  # bytes after the name's end
        names[row] = names[row].partition(b"\0")[0]
    for row in np.flatnonzero(table[:, _PREFIX]):
        names[row] = table[row, _PREFIX:_PREFIX_END].tobytes().partition(b"\0")[0] + b"/" + names[row]
    return names
