"""Tar archives that tests make, with members of every kind."""

from __future__ import annotations

import contextlib
import io
import os
import random
import subprocess
import tarfile
from pathlib import Path
from typing import Any


def write_tar(path: Path, members: Any, *, format: int = tarfile.USTAR_FORMAT, mtime: float = 7) -> Path:  # noqa: A002, tarfile's name
    """An archive of (name, data) pairs."""
    with tarfile.open(path, "w", format=format, encoding="utf-8", errors="surrogateescape") as archive:
        for name, data in members:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime = len(data), mtime
            archive.addfile(entry, io.BytesIO(data))
    return path


def by_tarfile(path: Path) -> list[tuple[bytes, int, int]]:
    """Name, offset and size of the regular, whole, unsparse members, up to where ``tarfile`` gives up."""
    found, size = [], path.stat().st_size
    try:
        with tarfile.open(path, "r:", encoding="utf-8", errors="surrogateescape") as archive:
            for entry in archive:
                if entry.isreg() and not entry.issparse():
                    if entry.size < 0 or entry.offset_data + entry.size > size:
                        break
                    found.append((entry.name.encode("utf-8", "surrogateescape"), entry.offset_data, entry.size))
    except (tarfile.TarError, OSError, ValueError, OverflowError, LookupError, RecursionError, MemoryError):
        pass
    return found


def random_tar(path: Path, dice: random.Random) -> None:
    """An archive of any format with members of any kind, often damaged, cut, or followed by more."""
    form = dice.choice([tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
    headers = {"comment": "made"} if form == tarfile.PAX_FORMAT and dice.random() < 0.1 else None
    if headers and dice.random() < 0.3:
        headers = {"path": "all/alike.jpg"}
    with tarfile.open(path, "w", format=form, pax_headers=headers, encoding="utf-8", errors="surrogateescape") as archive:
        for number in range(dice.randrange(12)):
            _add(archive, number, form, dice)
    data = bytearray(path.read_bytes())
    for _ in range(dice.choice([0, 0, 1, 1, 3])):
        _damage(data, dice)
    path.write_bytes(data)


def _add(archive: tarfile.TarFile, number: int, form: int, dice: random.Random) -> None:
    long = dice.choice(["", "", "", "d/" * 30, "directory/" * 11])
    name = f"{long}{dice.choice(['', 'a/', '../', './', '.'])}{number:04d}.{dice.choice(['jpg', 'cls', 'JSON', 'seg.png', 'é', ''])}"
    entry = tarfile.TarInfo(name)
    entry.mtime = dice.choice([0, 7, 1.5, 10**9]) if form == tarfile.PAX_FORMAT else dice.choice([0, 7])
    entry.uid = dice.choice([0, 1000, 3_000_000]) if form != tarfile.USTAR_FORMAT else 1000
    entry.uname = dice.choice(["", "bigdata", "ü"])
    regular = [*[tarfile.REGTYPE] * 12, tarfile.AREGTYPE, tarfile.CONTTYPE]
    entry.type = dice.choice([*regular, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
    if form == tarfile.PAX_FORMAT and dice.random() < 0.2:
        entry.pax_headers = dice.choice([{"comment": "a\nb"}, {"SCHILY.xattr.user.a": "b"}, {"own": "c"}, {"path": f"other{number}.jpg"}])
    if entry.type in (tarfile.SYMTYPE, tarfile.LNKTYPE):
        entry.linkname = "to" * dice.choice([1, 80 if form != tarfile.USTAR_FORMAT else 1])
    data = dice.randbytes(dice.choice([0, 1, 3, 511, 512, 513, 5000])) if entry.isreg() else b""
    entry.size = len(data)
    with contextlib.suppress(ValueError):  # a name too long for ustar
        archive.addfile(entry, io.BytesIO(data))


def _damage(data: bytearray, dice: random.Random) -> None:
    if not data:
        return
    what, at = dice.randrange(6), dice.randrange(len(data))
    if what == 0:
        data[at] ^= 1 << dice.randrange(8)
    elif what == 1:
        del data[at:]
    elif what == 2:
        data[at : at + dice.choice([1, 512])] = dice.randbytes(dice.choice([1, 512]))
    else:  # a header's field, with a checksum that fits
        at -= at % 512
        field, length = dice.choice([(0, 100), (100, 8), (108, 8), (124, 12), (136, 12), (156, 1), (257, 8), (329, 8), (345, 155)])
        value = dice.choice([b"\0" * length, b"7" * length, b"-0000000001\0", b"00000000_10\0", b"\x80" + bytes(length - 1), b" 0000644 \0",
                             b"\xff" * length, b"x", b"L", b"g", b"S", b"\0\0garbage", dice.randbytes(length)])[:length]  # fmt: skip
        data[at + field : at + field + len(value)] = value
        header = data[at : at + 512]
        if len(header) == 512:
            header[148:156] = b" " * 8
            data[at + 148 : at + 156] = b"%06o\0 " % (sum(header) & 0o777777)


def gnu_tar(folder: Path, target: Path, *options: str) -> Path:
    """What the program ``tar`` makes of a folder."""
    subprocess.run(["tar", *options, "-cf", os.fspath(target), "-C", os.fspath(folder), "."], check=True)
    return target
