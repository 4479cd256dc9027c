"""Single images behind URLs: what comes is what the list says, and one that is missing is one bad image."""

from __future__ import annotations

import functools
import http.server
import json
import os
import re
import threading
import warnings
from pathlib import Path
from typing import Any

import millrace
import numpy as np
import pytest
from millrace._remote import files as remote_files

from object_store import ObjectStore
from pictures import CLASSES, COUNT, EACH, pixels_of, png
from sources import OWN_SIZE, make_loader, seen_of  # noqa: F401, a fixture
from store_proxy import StoreProxy

WHOLE = [(n, n // EACH, pixels_of(n).tobytes()) for n in range(COUNT)]


@pytest.fixture(name="bucket", scope="module")
def pictures_in_the_store(object_store: ObjectStore) -> str:
    """The pictures, one to an object: ``ant/0.png``; and one object with all of them."""
    made = f"files-{os.urandom(4).hex()}"
    for n in range(COUNT):
        object_store.put(f"{made}/{name_of(n)}", png(n))
    object_store.put(f"{made}/all.bin", b"".join(png(n) for n in range(COUNT)))
    return made


def name_of(number: int) -> str:
    return f"{CLASSES[number // EACH]}/{number}.png"


def urls_of(bucket: str) -> list[str]:
    return [f"s3://{bucket}/{name_of(n)}" for n in range(COUNT)]


def parts_of(bucket: str) -> list[millrace.Part]:
    begins = np.cumsum([0, *(len(png(n)) for n in range(COUNT))]).tolist()
    return [millrace.Part(f"s3://{bucket}/all.bin", begins[n], len(png(n))) for n in range(COUNT)]


def test_lists_in_turn_and_shuffled(make: Any, bucket: str, store_proxy: StoreProxy) -> None:
    urls = urls_of(bucket)
    files = millrace.RemoteFiles([(url, n // EACH) for n, url in enumerate(urls)], storage_options=store_proxy.options)

    assert (len(files), files.sizes.tolist(), files.columns, files.path_of(7)) == (COUNT, [COUNT], ("label",), urls[7])
    assert files.name_of(0) == f"{urls[0]} and {COUNT - 1} more"
    loader = make(files)
    assert seen_of(loader) == WHOLE
    assert loader.read_by == "the loader, in blocks"
    assert len(store_proxy.requests) == COUNT  # one for each, and none to look at it
    shuffled = seen_of(make(files, shuffle="blocks", seed=3))
    assert sorted(shuffled) == WHOLE
    assert shuffled != WHOLE
    with pytest.raises(millrace.InvalidRequest, match=r'shuffle=True cannot .*take shuffle="blocks"'):
        make(files, shuffle=True)


def test_loops_go_on_where_they_were(make: Any, bucket: str, object_store: ObjectStore) -> None:
    def loader(rank: int, ranks: int, files: int = COUNT) -> Any:
        source = millrace.RemoteFiles(
            [(url, n // EACH) for n, url in enumerate(urls_of(bucket)[:files])], storage_options=object_store.options
        )
        return make(source, shuffle="blocks", seed=3, rank=rank, world_size=ranks)

    whole = seen_of(loader(0, 1))
    several = [loader(rank, 2) for rank in range(2)]
    before = [seen_of(one, 2) for one in several]
    assert sorted(before[0] + before[1]) == sorted(whole[:32])
    state = several[1].state_dict()
    alone = loader(0, 1)
    alone.load_state_dict(state)
    assert seen_of(alone) == whole[32:]
    fewer = loader(0, 1, COUNT - 1)
    fewer.load_state_dict(state)
    with pytest.raises(millrace.FailedPrecondition, match="saved with another"):
        seen_of(fewer)


def test_columns_classes_and_parts(make: Any, bucket: str, object_store: ObjectStore) -> None:
    given = {
        "path": [part if n % 2 else url for n, (part, url) in enumerate(zip(parts_of(bucket), urls_of(bucket), strict=True))],
        "label": [CLASSES[n // EACH] for n in range(COUNT)],
        "box": np.arange(2 * COUNT, dtype=np.float32).reshape(COUNT, 2),
        "caption": [f"picture {n}" for n in range(COUNT)],
    }
    files = millrace.RemoteFiles(given, classes="sorted", storage_options=object_store.options)
    assert (files.classes, files.columns) == (CLASSES, ("label", "box", "caption"))
    assert files.path_of(1) == f"s3://{bucket}/all.bin[{len(png(0))}+{len(png(1))}]"
    at = 0
    for images, labels in make(files):
        numbers = range(at, at + len(images))
        assert labels["label"].tolist() == [n // EACH for n in numbers]
        assert labels["box"].dtype == np.float32
        assert labels["box"].tolist() == [[2 * n, 2 * n + 1] for n in numbers]
        assert list(labels["caption"]) == [f"picture {n}" for n in numbers]
        assert images.tobytes() == b"".join(pixels_of(n).tobytes() for n in numbers)
        at += len(images)
    assert at == COUNT
    alone = millrace.RemoteFiles(urls_of(bucket), storage_options=object_store.options)
    assert {label for _, label, _ in seen_of(make(alone))} == {-1}
    others = millrace.RemoteFiles(urls_of(bucket)[1:], storage_options=object_store.options)
    assert len({files.fingerprint, alone.fingerprint, others.fingerprint}) == 3


@pytest.mark.parametrize("where", ["beside the images", "on this host"])
def test_manifests(make: Any, bucket: str, object_store: ObjectStore, tmp_path: Path, where: str) -> None:
    relative = where == "beside the images"
    begin = "./../" if relative else f"s3://{bucket}/"
    csv = "image,breed,length,offset\n" + "".join(f"{begin}{name_of(n)},{CLASSES[n // EACH]},,\n" for n in range(COUNT))
    parts = [{"path": begin + "all.bin", "offset": part.offset, "length": part.length} for part in parts_of(bucket)]
    jsonl = "".join(json.dumps({**part, "label": n // EACH}) + "\n" for n, part in enumerate(parts))
    for name, text, how in (("list.csv", csv, {"label_column": "breed"}), ("list.jsonl", jsonl, {})):
        if relative:
            place = object_store.put(f"{bucket}/lists/{name}", text.encode())
        else:
            place = str(tmp_path / name)
            Path(place).write_text(text)
        files = millrace.RemoteFiles(place, storage_options=object_store.options, **how)
        assert seen_of(make(files)) == WHOLE
        assert files.classes == (CLASSES if how else ())
    (tmp_path / "relative.csv").write_text("path,label\nant/0.png,5\n")
    files = millrace.RemoteFiles(str(tmp_path / "relative.csv"), root=f"s3://{bucket}", storage_options=object_store.options)
    assert files.path_of(0) == f"s3://{bucket}/ant/0.png"


def test_what_is_missing_is_one_bad_image(make: Any, bucket: str, object_store: ObjectStore, store_proxy: StoreProxy) -> None:
    urls: list[Any] = urls_of(bucket)
    urls[3] = f"s3://{bucket}/ant/none.png"
    urls[5] = object_store.put(f"{bucket}/ant/empty.png", b"")
    whole = sum(len(png(n)) for n in range(COUNT))
    urls[7] = millrace.Part(f"s3://{bucket}/all.bin", whole - 10, 11)
    urls[8] = millrace.Part(f"s3://{bucket}/all.bin", whole + 10, 11)
    urls[9] = millrace.Part(f"s3://{bucket}/all.bin", 0, 1 << 40)
    urls[11] = millrace.Part(f"s3://{bucket}/all.bin", 5, 0)
    store_proxy.add(r"^GET .*/ant/12\.png", status=403)
    files = millrace.RemoteFiles([(url, n // EACH) for n, url in enumerate(urls)], storage_options=store_proxy.options)

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        seen = seen_of(make(files, on_error="skip"))
    assert seen == [one for one in WHOLE if one[0] not in (3, 5, 7, 8, 9, 11, 12)]
    told = [str(one.message) for one in said if "objects cannot be read" in str(one.message)]
    assert len(told) == 1
    assert told[0].startswith(f"loader: 5 of {COUNT} objects cannot be read and are bad images: {urls[3]}: there is no such object (404); ")
    ends = f"s3://{bucket}/all.bin[{whole - 10}+11]: the object ends before byte {whole + 1}; "
    assert ends in told[0]
    assert f"s3://{bucket}/ant/12.png: the store refuses it to these credentials (403)" in told[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [n for n, label, _ in seen_of(make(files, on_error="zero")) if label == n // EACH] == list(range(COUNT))


def test_failures_of_the_store(make: Any, bucket: str, store_proxy: StoreProxy, monkeypatch: pytest.MonkeyPatch) -> None:
    files = millrace.RemoteFiles([(url, n // EACH) for n, url in enumerate(urls_of(bucket))], storage_options=store_proxy.options)
    store_proxy.add("^GET .*png", status=503, share=0.2)
    store_proxy.add("^GET .*png", cut=100, times=5)
    store_proxy.add("^GET .*png", cut=0, times=5)
    assert seen_of(make(files)) == WHOLE

    store_proxy.clear()
    monkeypatch.setenv("MILLRACE_REMOTE_PATIENCE", "0.5")
    store_proxy.add(r"^GET .*/ant/3\.png", cut=50)  # whenever it is asked for
    with pytest.warns(millrace.BadImageWarning) as said:
        assert seen_of(make(files, on_error="skip")) == [one for one in WHOLE if one[0] != 3]
    assert any(f"1 of {COUNT} objects cannot be read and are bad images: s3://{bucket}/ant/3.png: " in str(one.message) for one in said)
    store_proxy.add("^GET ", status=503)
    with pytest.raises(OSError, match="SlowDown"):
        files.read(0)


def test_objects_that_take_several_requests(bucket: str, object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    large = os.urandom((9 << 20) + 7)
    url = object_store.put(f"{bucket}/large.bin", large)
    exact = object_store.put(f"{bucket}/exact.bin", large[: 8 << 20])
    given = [url, exact, millrace.Part(url, 5, 9 << 20), millrace.Part(url, 8 << 20, 9 << 20)]
    files = millrace.RemoteFiles(given, storage_options=object_store.options)
    expected = [large, large[: 8 << 20], large[5 : 5 + (9 << 20)], b""]
    with pytest.warns(millrace.BadImageWarning, match="1 of 4 .*the object ends before byte 17825792"):
        assert [bytes(row.source) for row in files.read(0)] == expected  # type: ignore[arg-type]
    monkeypatch.setattr(remote_files, "_LARGEST", 9 << 20)
    with pytest.warns(millrace.BadImageWarning, match="2 of 4 .*large.bin: it has 9437191 bytes, and an image has at most 9437184"):
        assert files.read(0)[0].source == b""


def test_blocks_are_bounded_by_bytes() -> None:
    parts = [millrace.Part("https://host/all.bin", 0, length) for length in [1 << 20] * 40 + [1 << 30] + [100] * 100 + [1 << 40]]
    files = millrace.RemoteFiles(parts)
    assert files.sizes.tolist() == [32, 8, 1, 64, 37]
    assert files.block_bytes.tolist() == [32 << 20, 8 << 20, 1 << 30, 6400, 3600 + (128 << 10)]
    assert millrace.RemoteFiles(["https://host/1.jpg"] * 7, typical_bytes=20 << 20).sizes.tolist() == [1] * 7


class Plain(http.server.SimpleHTTPRequestHandler):
    """A server that knows no ranges and no versions."""

    def log_message(self, *_: Any) -> None:
        """Nothing."""


def test_a_plain_server(make: Any, folder: Path) -> None:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Plain, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            found = sorted(folder.glob("*/*.png"))[:10]
            assert len(found) == 10
            host = f"http://user:word@127.0.0.1:{server.server_address[1]}"
            files = millrace.RemoteFiles([f"{host}/{path.relative_to(folder)}?signature=5" for path in found])
            assert [bytes(row.source) for row in files.read(0)] == [path.read_bytes() for path in found]  # type: ignore[arg-type]
            assert files.path_of(0) == f"http://127.0.0.1:{server.server_address[1]}/{found[0].relative_to(folder)}?..."
        finally:
            server.shutdown()


def test_what_is_no_list_of_urls(tmp_path: Path, object_store: ObjectStore) -> None:
    (tmp_path / "list.csv").write_text("path,label\na.png,5\n")
    for given, named, told in (
        ([], {}, "there are none"),
        (["s3://a/b.png", "/data/b.png"], {}, r"'/data/b\.png' is no URL; files of this host are millrace\.Samples"),
        (["s3://a/b.png", 7], {}, "not a int"),
        ([("s3://a/b.png", 1, 2)], {}, "has 3 values"),
        ({"url": ["s3://a/b.png"]}, {}, 'in "path"'),
        ({"path": ["s3://a/b.png"], "label": [1, 2]}, {}, "2 values for 1 sample"),
        ([millrace.Part("s3://a/b.png", -1, 5)], {}, "at least 0"),
        (["b.png"], {"root": "/data"}, "root is a URL, not /data"),
        (["../b.png", "/b.png"], {"root": "s3://a"}, r"'/b\.png' is no URL and no path beneath root="),
        (["ftp://a/b.png"], {}, "URLs are read of the schemes"),
        (["s3://a/b.png"], {"label_column": "x"}, "are for manifests"),
        (["s3://a/b.png"], {"typical_bytes": 0}, "at least 1"),
        ("s3://a/b.tar", {}, r"a manifest of them .*shards are millrace\.RemoteShards"),
        (str(tmp_path / "list.csv"), {}, r"'a\.png' is no URL"),
    ):
        with pytest.raises((millrace.InvalidRequest, millrace.Unsupported), match=told):
            millrace.RemoteFiles(given, **named)  # type: ignore[arg-type]
    object_store.put("lists/one.csv", b"path,label\na.png,5\nb.png\n")
    with pytest.raises(millrace.InvalidRequest, match=r"s3://lists/one\.csv:3: 1 cells, the first line has 2"):
        millrace.RemoteFiles("s3://lists/one.csv", storage_options=object_store.options)
    with pytest.raises(millrace.NotFound, match=r"RemoteFiles: s3://lists/two\.csv cannot be opened: there is no such object"):
        millrace.RemoteFiles("s3://lists/two.csv", storage_options=object_store.options)


def test_classes_for_files_of_this_host_name_those_for_urls() -> None:
    for url, told in (
        ("s3://bucket/train", "millrace.RemoteShards, millrace.Parquet or millrace.RemoteFiles"),
        ("s3://bucket/a.tar", "millrace.RemoteShards('s3://bucket/a.tar')"),
        ("https://host/a.tgz?key=5", "millrace.CompressedShards('https://host/a.tgz?key=5')"),
        ("hf://datasets/a/b/x.parquet", "millrace.Parquet('hf://datasets/a/b/x.parquet')"),
        ("s3://bucket/train.csv", "millrace.RemoteFiles('s3://bucket/train.csv')"),
    ):
        with pytest.raises(millrace.InvalidRequest, match=f"is a URL, and the daemon reads none: give {re.escape(told)}"):
            millrace.numpy.Loader(url, OWN_SIZE)
    with pytest.raises(millrace.InvalidRequest, match=r"s3://b/t\.csv is a URL: give millrace\.RemoteFiles\('s3://b/t\.csv'\)"):
        millrace.read_manifest("s3://b/t.csv")
    with pytest.raises(millrace.InvalidRequest, match=r"sample 1, s3://b/x\.jpg, is a URL.*give millrace\.RemoteFiles"):
        millrace.Samples.of(["/data/y.jpg", "s3://b/x.jpg"])
