"""Shards: what their samples are, by webdataset's rules, and what is said of bad ones. No daemon is asked."""

from __future__ import annotations

import copy
import gzip
import os
import pickle
import re
import warnings
from pathlib import Path
from typing import Any

import millrace
import millrace.numpy
import numpy as np
import pytest

from archives import write_tar

IMAGE = b"\xff\xd8 an image, which nobody decodes here"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def shard(path: Path, first: int = 0, count: int = 3) -> Path:
    """Samples with an image, a label and JSON."""
    members = []
    for n in range(first, first + count):
        members += [(f"a/{n:04d}.cls", b"%d" % (n * 10)), (f"a/{n:04d}.jpg", IMAGE + b"%d" % n), (f"a/{n:04d}.json", b'{"n": %d}' % n)]
    return write_tar(path, members)


def data_of(shards: Any) -> list[bytes]:
    found = []
    for n in range(len(shards)):
        part = shards.paths.part_of(n)
        with open(part.path, "rb") as file:
            file.seek(part.offset)
            found.append(file.read(part.length))
    return found


def test_samples_and_their_labels(tmp_path: Path) -> None:
    path = shard(tmp_path / "a.tar")

    shards = millrace.Shards(path)

    assert len(shards) == 3
    assert shards.labels.tolist() == [0, 10, 20]
    assert shards.labels.dtype == np.int64
    assert data_of(shards) == [IMAGE + b"0", IMAGE + b"1", IMAGE + b"2"]
    assert shards[1] == (f"{path}[4608+{len(IMAGE) + 1}] a/0001.jpg", 10)
    assert (shards.shards, shards.left_out) == ((str(path),), {})
    assert repr(shards) == f"<millrace.Shards {path}: 3>"
    assert millrace.Shards(path, label="").labels is None
    assert millrace.Shards(str(path), image="json;jpg").paths[0].endswith("a/0000.json")


def test_several_shards(tmp_path: Path) -> None:
    for number in range(12):
        shard(tmp_path / f"t-{number:02d}.tar", number, 1)
    (tmp_path / "t-00.txt").write_text("beside them")
    every = [IMAGE + b"%d" % n for n in range(12)]

    some = [f"{tmp_path}/t-0?.tar", tmp_path / "t-10.tar", os.fsencode(tmp_path / "t-11.tar")]
    for source in (tmp_path, f"{tmp_path}/t-{{00..11}}.tar", f"{tmp_path}/t-*.tar", some, os.fsencode(tmp_path)):
        shards = millrace.Shards(source)
        assert data_of(shards) == every
        assert shards.labels.tolist() == [n * 10 for n in range(12)]
    assert data_of(millrace.Shards(f"{tmp_path}/t-0{{3..1}}.tar")) == [every[3], every[2], every[1]]
    assert data_of(millrace.Shards(f"{tmp_path}/t-{{0{{2,1}},11}}.tar")) == [every[2], every[1], every[11]]
    shard(tmp_path / "{x}.tar", 12, 1)
    shard(tmp_path / "{1,2}.tar", 13, 1)
    assert data_of(millrace.Shards([tmp_path / "{x}.tar", tmp_path / "{1,2}.tar"])) == [IMAGE + b"12", IMAGE + b"13"]
    assert data_of(millrace.Shards(f"{tmp_path}/{{x}}*.tar")) == [IMAGE + b"12"]


@pytest.mark.parametrize(("source", "error", "text"), [
    ("{}/none.tar", millrace.NotFound, "none.tar is not there"),
    ("{}/none-*.tar", millrace.NotFound, "no file .*none-"),
    ("{}/t-{{00..02}}.tar", millrace.NotFound, "t-01.tar is not there"),
    ("{}/empty", millrace.NotFound, "no .tar file in the folder"),
    ("s3://bucket/t.tar", millrace.InvalidRequest, r"is a URL: give millrace\.RemoteShards\('s3://bucket/t\.tar'\)"),
    ("s3://bucket/t.tar.gz", millrace.InvalidRequest, r"is a URL: give millrace\.CompressedShards\("),
    ("pipe:cat t.tar", millrace.InvalidRequest, r"is a command: give its URL to millrace\.RemoteShards"),
    ("", millrace.InvalidRequest, "no path"),
    ("{}/{{0..99999999999}}.tar", millrace.InvalidRequest, "more than 100000"),
    ("{}/{{0..9999999999999999999}}.tar", millrace.InvalidRequest, "too large"),
    ("{}/{{0..999}}{{0..999}}{{0..9}}.tar", millrace.InvalidRequest, "more than 100000"),
    ("{}/pipe.tar", millrace.InvalidRequest, "no regular file"),
])  # fmt: skip
def test_sources_that_are_none(tmp_path: Path, source: str, error: Any, text: str) -> None:
    (tmp_path / "empty").mkdir()
    os.mkfifo(tmp_path / "pipe.tar")
    shard(tmp_path / "t-00.tar")
    with pytest.raises(error, match=text):
        millrace.Shards(source.format(tmp_path))
    with pytest.raises(millrace.InvalidRequest, match="twice"):
        millrace.Shards([tmp_path / "t-00.tar", f"{tmp_path}/t-*.tar"])
    for given in (7, [], [7]):
        with pytest.raises(millrace.InvalidRequest, match="shards: "):
            millrace.Shards(given)


def test_the_rules_of_keys(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "a.tar", [
        ("a.b/1.jpg", IMAGE), ("a.b/1.seg.png", b"mask"), ("a.b/1.JSON", b"[1]"),
        ("../2.JPG", b"upper"), ("/3.png", b"png"), ("3.webp", b"webp"), ("3.jpg", b"other key"),
        (".hidden.jpg", b"h"), ("d/.hidden.jpg", b"h"), ("__meta__/1.jpg", b"m"), ("README", b"r"), ("4.", b"no image"), ("4.jpg", IMAGE),
        ("name with blanks.jpg", b"blanks"), ("5%20.jpg", b"percent"), ("6\n.jpg", b"newline"),
    ])  # fmt: skip

    shards = millrace.Shards(path, columns=["json", "__key__", "seg.png"])

    assert shards.labels["__key__"].taken(np.arange(8)) == ["a.b/1", "../2", "/3", "3", "4", "name with blanks", "5%20", "6\n"]
    assert list(shards.labels["json"]) == [[1]] + [None] * 7
    assert shards.labels["seg.png"][0] == b"mask"
    assert data_of(shards) == [IMAGE, b"upper", b"png", b"other key", IMAGE, b"blanks", b"percent", b"newline"]
    assert shards.paths[7].endswith(r"6\n.jpg")
    assert shards.left_out == {"hidden": 3, "without an extension": 1}
    assert data_of(millrace.Shards(path)) == data_of(shards)  # by the index


def test_a_member_that_comes_twice_is_counted_once(tmp_path: Path) -> None:
    members = [("1.jpg", IMAGE), ("1.cls", b"3"), ("1.cls", b"4"), ("1.jpg", IMAGE), ("2.jpg", IMAGE), ("2.cls", b"5")]
    path = write_tar(tmp_path / "a.tar", members)
    with pytest.warns(millrace.ShardWarning, match="2 keys have a member twice"):
        shards = millrace.Shards(path, image="jpg", columns=["cls", "jpg"])
    assert shards.labels["label"].tolist() == [3, 5]


def test_keys_without_an_image(tmp_path: Path) -> None:
    members = [("1.jpg", IMAGE), ("2.txt", b"t"), ("1.txt", b"again"), ("3.jpg", IMAGE), ("3.jpg", b"second"), ("1.jpg", b"third")]
    path = write_tar(tmp_path / "a.tar", members)
    told = r"2 keys have no image \(jpg\), such as that of 2.txt in .*a.tar"

    for _ in range(2):  # walked, and by the index
        with pytest.warns(millrace.ShardWarning, match=told) as seen:
            shards = millrace.Shards(path, image="jpg")
        assert data_of(shards) == [IMAGE, IMAGE, b"third"]
        assert "1 keys have a member twice, of which the first counts; 2 keys come again" in str(seen[0].message)
        with pytest.raises(millrace.InvalidRequest, match=told + ".*strict=True"):
            millrace.Shards(path, image="jpg", strict=True)
    with pytest.raises(
        millrace.InvalidRequest, match=r"no image in .*a.tar: the members' extensions are jpg, txt; name the image's in image="
    ):
        millrace.Shards(path, image="png")
    with pytest.raises(millrace.InvalidRequest, match="there is no member at all"):
        millrace.Shards(write_tar(tmp_path / "empty.tar", []))


def test_a_column_that_no_sample_has_is_told(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "a.tar", [("1.jpg", IMAGE), ("1.json", b"{}"), ("2.jpg", IMAGE)])
    with pytest.warns(millrace.ShardWarning, match=r"no sample has a jsn \(columns=\), so each has None"):
        shards = millrace.Shards(path, columns=["json", "jsn"])
    assert [label for _, label in shards] == [{"json": {}, "jsn": None}, {"json": None, "jsn": None}]
    with pytest.raises(millrace.InvalidRequest, match="no sample has a jsn"):
        millrace.Shards(path, columns=["jsn"], strict=True)


def test_labels_of_all_kinds(tmp_path: Path) -> None:
    def made(*labels: bytes) -> Path:
        members = [member for n, label in enumerate(labels) for member in ((f"{n}.jpg", IMAGE), (f"{n}.cls", label))]
        return write_tar(tmp_path / "l.tar", members)

    for labels in ([b"1", b" 2\n", b"-3"], [b"%020d" % 4, b"%025d" % 5]):
        shards = millrace.Shards(made(*labels))
        assert shards.labels.tolist() == [int(label) for label in labels]
    path = made(b"cat", b"ant\n", b"cat")
    with pytest.raises(millrace.InvalidRequest, match=r"the cls at .*l.tar\[1536\+3\] is 'cat', no whole number of 64 bits; .* classes="):
        millrace.Shards(path)
    shards = millrace.Shards(path, classes="sorted")
    assert (shards.classes, shards.labels.tolist()) == (("ant", "cat"), [1, 0, 1])
    with pytest.raises(millrace.InvalidRequest, match="no whole number of 64 bits"):
        millrace.Shards(made(b"1", b"9223372036854775808"))
    with pytest.raises(millrace.InvalidRequest, match="too long for a label"):
        millrace.Shards(made(b"1", b"1" * 5000))
    with pytest.raises(millrace.InvalidRequest, match=r"1 of 2 samples have no cls, such as 1.jpg in .*l.tar; label=\"\" reads no labels"):
        millrace.Shards(write_tar(tmp_path / "l.tar", [("0.jpg", IMAGE), ("0.cls", b"1"), ("1.jpg", IMAGE)]))
    with pytest.raises(millrace.InvalidRequest, match="no sample has a other"):
        millrace.Shards(path, label="other")
    path = made(b"1")
    for options in ({"image": []}, {"image": "/"}, {"label": "."}, {"columns": [7]}):
        with pytest.raises(millrace.InvalidRequest, match="extension"):
            millrace.Shards(path, **options)


def test_columns_are_read_when_they_are_asked_for(tmp_path: Path) -> None:
    members = []
    for n in range(300):
        members += [(f"{n}.jpg", IMAGE), (f"{n}.txt", f"é {n}".encode()), (f"{n}.bin", bytes(n)), (f"{n}.id", b"%d" % n)]
        members += [(f"{n}.meta.json", b"{" if n == 7 else b"[%d]" % n)] if n != 3 else []
    write_tar(tmp_path / "a.tar", members[:700])
    write_tar(tmp_path / "b.tar", members[700:])

    with pytest.warns(millrace.ShardWarning, match="1 keys have no image"):  # the sample that the cut between them divides
        shards = millrace.Shards(tmp_path, columns=["txt", "bin", "id", "meta.json"])

    columns: Any = shards.labels
    assert "label" not in columns
    order = np.random.default_rng(1).permutation(300)
    assert columns["txt"].taken(order) == [None if n == 140 else f"é {n}" for n in order]
    some = order[(order != 7) & (order != 140)]
    assert columns["meta.json"].taken(some) == [None if n == 3 else [n] for n in some.tolist()]
    assert columns["id"].taken(some) == some.tolist()
    assert columns["bin"].narrowed(some)[5] == bytes(int(some[5]))
    assert columns["bin"][-1] == bytes(299)
    with pytest.raises(millrace.InvalidRequest, match=r"the meta.json at .*a.tar\[\d+\+1\] cannot be read as such: "):
        columns["meta.json"][7]
    for made in (pickle.loads(pickle.dumps(shards)), copy.copy(shards)):
        assert made.labels["txt"][9] == "é 9"
    with open(tmp_path / "b.tar", "ab") as file:
        file.write(bytes(512))
    with pytest.raises(millrace.FailedPrecondition, match=r"b.tar was written to after its index was made"):
        columns["txt"][299]
    assert columns["txt"][0] == "é 0"
    os.remove(tmp_path / "a.tar")
    with pytest.raises(millrace.NotFound, match=r"a.tar is not there any more"):
        columns["txt"][0]


def test_a_damaged_shard_gives_what_is_before(tmp_path: Path) -> None:
    path = shard(tmp_path / "a.tar", 0, 5)
    shard(tmp_path / "b.tar", 5, 1)
    whole = path.read_bytes()
    path.write_bytes(whole[: 2 * 3072 + 1024 + 520])
    told = r"a.tar is damaged at byte 7168, last member a/0002.jpg: its data are cut off; the samples before it are there"

    for _ in range(2):
        with pytest.warns(millrace.ShardWarning, match=told + "; 1 keys have no image"):
            shards = millrace.Shards(tmp_path)
        assert data_of(shards) == [IMAGE + b"%d" % n for n in (0, 1, 5)]
        assert not (tmp_path / "a.idx").exists()
        with pytest.raises(millrace.InvalidRequest, match=told + r".*\(strict=True\)"):
            millrace.Shards(tmp_path, strict=True)
    path.write_bytes(whole)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(millrace.Shards(tmp_path, strict=True)) == 6


@pytest.mark.parametrize("begins", [gzip.compress(b"x"), b"\x28\xb5\x2f\xfd....", b"BZh9...."])
def test_compressed_shards_are_refused(tmp_path: Path, begins: bytes) -> None:
    (tmp_path / "a.tar.gz").write_bytes(begins)
    assert len(millrace.Shards(write_tar(tmp_path / "b.tar", [("BZh9.jpg", IMAGE)]))) == 1
    with pytest.raises(millrace.InvalidRequest, match=r"is compressed \(.*none can be read alone. Unpack it once: "):
        millrace.Shards(tmp_path)


@pytest.mark.parametrize(
    ("name", "kind"), [("x.tar", "Shards"), ("x-{0..1}.tar", "Shards"), ("x.tar.gz", "CompressedShards"), ("x.PARQUET", "Parquet")]
)
def test_a_loader_says_what_stands_for_a_container(name: str, kind: str) -> None:
    with pytest.raises(millrace.InvalidRequest, match=rf"give millrace.{kind}\('/d/{re.escape(name)}'\)"):
        millrace.numpy.Loader(f"/d/{name}")
