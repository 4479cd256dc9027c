"""The walk through tar archives: the same members as Python's tarfile finds, whatever the archive is."""

from __future__ import annotations

import functools
import os
import random
import shutil
import tarfile
from pathlib import Path

import pytest
from millrace._shards.headers import BLOCK
from millrace._shards.odd_members import Damage
from millrace._shards.walk import Walk
from skips import skip

from archives import by_tarfile, gnu_tar, random_tar, write_tar


def walked(path: Path) -> tuple[list[tuple[bytes, int, int]], Walk]:
    file = os.open(path, os.O_RDONLY)
    try:
        walk = Walk(functools.partial(os.pread, file), os.fstat(file).st_size)
        found = []
        for batch in walk.batches():
            found += zip(batch.names, batch.offsets, batch.sizes, strict=True)
            for offset, size, data in zip(batch.offsets, batch.sizes, batch.data, strict=True):
                assert data is None or data == os.pread(file, size, offset)
        return found, walk
    finally:
        os.close(file)


def check(first: int, count: int, tmp_path: Path) -> None:
    whole = 0
    for number in range(first, first + count):
        path = tmp_path / "a.tar"
        random_tar(path, random.Random(number))
        found, walk = walked(path)
        assert found == by_tarfile(path), f"archive {number}"
        whole += walk.damage is None
    assert 0.2 * count < whole < 0.9 * count


def test_archives_of_every_kind_sound_and_damaged(tmp_path: Path) -> None:
    check(0, 400, tmp_path)


@pytest.mark.long
def test_ten_thousand_archives(tmp_path: Path) -> None:
    check(1000, 10_000, tmp_path)


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.parametrize("size", [0, 10, 600, 20_000])
def test_many_members(tmp_path: Path, form: int, size: int) -> None:
    path = write_tar(tmp_path / "a.tar", [(f"{n:05d}.jpg", b"x" * size) for n in range(2500)], format=form, mtime=1.5)

    found, walk = walked(path)

    assert found == by_tarfile(path)
    assert (len(found), walk.damage) == (2500, None)


def test_what_the_program_tar_writes(tmp_path: Path) -> None:
    if shutil.which("tar") is None:
        skip("GNU tar is not installed: what it writes is not read")
    folder = tmp_path / "files"
    (folder / ("deep" * 20) / ("deeper" * 20)).mkdir(parents=True)
    for place in (folder, *folder.rglob("*")):
        (place / "1.jpg").write_bytes(b"j" * 700)
        (place / "1.cls").write_bytes(b"3")
    with open(folder / "holes.bin", "wb") as file:
        file.seek(1 << 22)
        file.write(b"end")
    os.symlink("1.jpg", folder / "link.jpg")
    os.link(folder / "1.jpg", folder / "same.jpg")
    deep, deeper = f"--exclude={'deep' * 20}", f"--exclude={'deeper' * 20}"  # names that the format has no room for
    pax = "--format=posix"
    for options in (
        *((), ("--sparse",), (pax,), (pax, "--sparse"), (pax, "--sparse", "--sparse-version=0.1")),
        *(("--format=v7", deep), ("--format=oldgnu", "--owner=:3000000"), ("--format=ustar", deeper)),
    ):
        path = gnu_tar(folder, tmp_path / "a.tar", *options)
        found, walk = walked(path)
        assert found == by_tarfile(path), options
        assert walk.damage is None
        assert walk.left_out == {"link or device": 2, **({"sparse": 1} if "--sparse" in options else {})}, options


def test_where_an_archive_is_damaged(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "a.tar", [(f"{n}.jpg", b"x" * 1000) for n in range(10)])
    whole = path.read_bytes()
    third = 2 * (BLOCK + 1024)
    for data, damage, last in (
        (whole[: third + 100], Damage(third, "a header is cut off"), b"1.jpg"),
        (whole[: third + BLOCK + 100], Damage(third, "its data are cut off"), b"2.jpg"),
        (whole[:third], Damage(third, "the archive ends without its end mark, so it is cut off"), b"1.jpg"),
        (whole[:third] + b"?" * BLOCK + whole[third + BLOCK :], Damage(third, "there is no tar header"), b"1.jpg"),
        (b"", Damage(0, "the archive ends without its end mark, so it is cut off"), b""),
    ):
        path.write_bytes(data)
        found, walk = walked(path)
        assert (walk.damage, walk.last) == (damage, last)
        assert len(found) == (2 if data else 0)


def test_headers_of_gigabytes_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    for kind in (tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.XGLTYPE):
        entry = tarfile.TarInfo("a.jpg")
        entry.type, entry.size = kind, 1 << 30
        with open(path, "wb") as file:
            file.write(entry.tobuf(tarfile.GNU_FORMAT))
            file.truncate(1 << 31)
        found, walk = walked(path)
        assert (found, walk.damage) == ([], Damage(0, "the headers of a member are longer than 4 MiB"))


@pytest.mark.parametrize("kind", [b"Z", b"S", b"V", b"D", b"0"])
@pytest.mark.parametrize("size", [1 << 62, (1 << 63) - BLOCK, 1 << 63, 1 << 80])
def test_sizes_that_no_file_has(tmp_path: Path, kind: bytes, size: int) -> None:
    path = write_tar(tmp_path / "a.tar", [("0.jpg", b"abc"), ("1.jpg", b"")])
    data = bytearray(path.read_bytes())
    header = data[2 * BLOCK : 3 * BLOCK]
    header[124:136], header[156:157], header[148:156] = b"\x80" + size.to_bytes(11, "big"), kind, b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    data[2 * BLOCK : 3 * BLOCK] = header
    path.write_bytes(data)
    found, walk = walked(path)
    assert found == [(b"0.jpg", BLOCK, 3)]
    assert (walk.damage, walk.last) == (Damage(2 * BLOCK, "its data are cut off"), b"1.jpg")
