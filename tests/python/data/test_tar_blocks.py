"""Compressed tar shards as a source in blocks."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import warnings
from pathlib import Path
from typing import Any

import millrace
import numpy as np
import pytest
from millrace._blocks.order import block_order
from millrace._blocks.tar import CompressedShards, _kept_at

from pictures import EACH, pixels_of, png
from sources import make_loader  # noqa: F401, a fixture


def shard(path: Path, numbers: range) -> str:
    with tarfile.open(path, "w:" + path.suffix[1:]) as archive:

        def add(name: str, data: bytes) -> None:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))

        for n in numbers:
            add(f"part/{n:04}.png", png(n))
            add(f"part/{n:04}.cls", b"%d" % (n // EACH))
            add(f"part/{n:04}.JSON", b'{"number": %d}' % n)
        add("part/none.txt", b"a key without an image")
        link = tarfile.TarInfo("part/link.png")
        link.type, link.linkname = tarfile.SYMTYPE, "../../etc/passwd"
        archive.addfile(link)
    return str(path)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return [shard(tmp_path / f"{name}.tar.{kind}", at) for name, kind, at in (("a", "gz", range(20)), ("b", "bz2", range(20, 33)))]


def test_shards_in_turn_and_shuffled(make: Any, files: list[str]) -> None:
    source = CompressedShards(files, "jpg;png", columns=["json"])

    assert source.sizes.tolist() == [20, 13]
    order = block_order(source.sizes, 2, 0, 0).samples.tolist()
    for shuffle, expected in ((False, list(range(33))), ("blocks", order)):
        ids: list[int] = []
        for images, labels in (loader := make(source, shuffle=shuffle)):
            ids += loader.batch.ids.tolist()
            for number, image, label, told in zip(loader.batch.ids.tolist(), images, labels["label"], labels["json"], strict=True):
                assert np.array_equal(image, pixels_of(number))
                assert (label, told) == (number // EACH, {"number": number})
        assert ids == expected


def test_counts_are_kept_until_the_shard_changes(files: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    first = CompressedShards(files)

    def never(*_: Any) -> Any:
        raise AssertionError("a shard was read")

    with monkeypatch.context() as patched:
        patched.setattr(CompressedShards, "_samples", never)
        again = CompressedShards(files)
        assert (again.sizes.tolist(), again.fingerprint) == ([20, 13], first.fingerprint)
        os.utime(files[0])
        with pytest.raises(AssertionError, match="a shard was read"):
            CompressedShards(files)
    with pytest.raises(ValueError, match="has changed since its samples were counted"):
        first.read(0)


@pytest.mark.parametrize(
    "text",
    ["[1e400, 1, 1, 1]", "[%d, %d, 1" + "0" * 30 + ", 5]", "[%d, %d, 1" + "0" * 15 + ", 5]", "[%d, %d, 3, 1" + "0" * 30 + "]", "[" * 9999],
)
def test_counts_that_no_shard_has_are_counted_anew(files: list[str], text: str) -> None:
    CompressedShards(files)
    status = os.stat(files[0])
    kept = _kept_at(files[0], sorted(CompressedShards(files)._wanted), CompressedShards(files)._images)
    kept.write_text(text % (status.st_size, status.st_mtime_ns) if "%" in text else text)
    assert CompressedShards(files).sizes.tolist() == [20, 13]


def test_headers_without_end_are_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = shard(tmp_path / "a.tar.gz", range(3))
    with gzip.open(path) as packed:
        whole = packed.read()
    for kind in (tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME):
        header = tarfile.TarInfo("a")
        header.type, header.size = kind, 1 << 30
        with gzip.open(path, "wb") as packed:
            packed.write(whole[: whole.index(b"part/none")] + header.tobuf(tarfile.USTAR_FORMAT) + bytes(1 << 20))
        with pytest.warns(UserWarning, match="the headers of a member are longer than 4 MiB"):
            assert CompressedShards(path).sizes.tolist() == [2]  # the last one may lack members


def test_a_cut_shard_has_the_samples_before_the_cut(files: list[str]) -> None:
    whole = Path(files[0]).read_bytes()
    for kept in (len(whole) // 2, len(whole) // 4):
        Path(files[0]).write_bytes(whole[:kept])
        with pytest.warns(UserWarning, match=r"a\.tar\.gz is damaged after part/"):
            source = CompressedShards(files)
        samples = int(source.sizes[0])
        assert 0 < samples < 20
        rows = source.read(0)
        assert [bytes(row.source) for row in rows] == [png(n) for n in range(samples)]  # type: ignore[arg-type]


def test_damage_within_an_intact_compression_is_noticed_and_told_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    plain = Path(shard(tmp_path / "a.tar", range(20))).read_bytes()
    header = plain.index(b"part/0007.png")
    for number, (data, why) in enumerate(
        (
            (plain[:header] + b"\xff" * 512 + plain[header + 512 :], "there is no tar header: bad checksum"),
            (plain[: header + 100], "there is no tar header: truncated header"),
            (plain[:header], "the archive ends without its end mark, so it is cut off"),
        )
    ):
        file = tmp_path / f"{number}.tar.gz"
        file.write_bytes(gzip.compress(data))
        for _ in range(2):  # counted, and as it was counted
            with pytest.warns(
                millrace.ShardWarning, match=f"{file.name} is damaged after part/0005, so it has the 6 samples before: {why}"
            ):
                source = CompressedShards(file)
        assert [bytes(row.source) for row in source.read(0)] == [png(n) for n in range(6)]  # type: ignore[arg-type]


def test_columns_that_some_samples_have_not(files: list[str]) -> None:
    source = CompressedShards(files, label="", columns="json;txt;__key__")

    assert source.columns == ("json", "txt", "__key__")
    assert source.read(1)[0].values == ({"number": 20}, None, "part/0020")


def test_what_is_no_shard_and_labels_that_are_none(files: list[str], tmp_path: Path) -> None:
    (tmp_path / "text.tar.gz").write_text("nothing of the kind")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(millrace.InvalidRequest, match=r"no sample with an image \(jpg, .*name its extension"):
            CompressedShards([str(tmp_path / "text.tar.gz")])
    with pytest.raises(millrace.InvalidRequest, match="no sample with an image"):
        CompressedShards(files, image="tiff")
    with pytest.raises(millrace.NotFound, match=r"none\.tar\.gz is not there"):
        CompressedShards(tmp_path / "none.tar.gz")
    with pytest.raises(millrace.InvalidRequest, match=r"a\.tar\.gz, part/0000: it has no label \(class\)"):
        CompressedShards(files, label="class").read(0)


def test_zstd(make: Any, files: list[str], tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    with tarfile.open(files[0]) as archive, tarfile.open(tmp_path / "plain.tar", "w") as plain:
        for member in archive:
            plain.addfile(member, archive.extractfile(member) if member.isfile() else None)
    packed = str(tmp_path / "c.tar.zst")
    with pyarrow.output_stream(packed, compression="zstd") as stream:
        stream.write((tmp_path / "plain.tar").read_bytes())

    source = CompressedShards([packed])
    assert [bytes(row.source) for row in source.read(0)] == [png(n) for n in range(20)]  # type: ignore[arg-type]
