"""Servers, indexes and manifests that lie."""

from __future__ import annotations

import hashlib
import http.server
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import millrace
import pytest
from millrace._remote import files as remote_files
from millrace._remote.objects import objects_of
from millrace._shards.shard_file import walked

from archives import write_tar
from object_store import ObjectStore
from pictures import png

Answer = Callable[[http.server.BaseHTTPRequestHandler], None]


@pytest.fixture(autouse=True)
def impatient(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILLRACE_REMOTE_PATIENCE", "0.5")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@contextmanager
def served(answer: Answer) -> Iterator[str]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self)

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()


def send(request: http.server.BaseHTTPRequestHandler, data: bytes, shift: int = 0, **headers: str) -> None:
    """As a server with ranges does; of others than it is asked for, where ``shift`` says so."""
    asked = request.headers.get("Range")
    begin, end = 0, len(data)
    if asked:
        begin, last = map(int, asked.removeprefix("bytes=").split("-"))
        begin, end = begin + shift, min(last + 1 + shift, len(data))
    request.send_response(206 if asked else 200)
    for name, value in {**headers, "Accept-Ranges": "bytes", "Content-Length": str(end - begin)}.items():
        request.send_header(name.replace("_", "-"), value)
    if asked:
        request.send_header("Content-Range", f"bytes {begin}-{end - 1}/{len(data)}")
    request.end_headers()
    if request.command == "GET":
        request.wfile.write(data[begin:end])


def shard(folder: Path, numbers: range, labels: Callable[[int], int] = int) -> bytes:
    members = [pair for n in numbers for pair in ((f"{n:04}.cls", b"%d" % labels(n)), (f"{n:04}.png", png(n)))]
    return write_tar(folder / "made.tar", members).read_bytes()


def images_of(source: Any) -> list[bytes]:
    return [bytes(row.source) for block in range(len(source.sizes)) for row in source.read(block)]


def test_another_range_than_was_asked_for_is_not_taken() -> None:
    data = bytes(range(256)) * 16
    with served(lambda request: send(request, data, 512, ETag='"1"')) as url:
        (found,) = objects_of(f"{url}/a.tar", (".tar",), "shards")
        with pytest.raises(
            OSError, match=r"a\.tar cannot be read: Cut: the range from byte 612 on came, and that from 100 on was asked for"
        ):
            found.read([(100, 50)])


def test_no_more_is_taken_than_was_asked_for() -> None:
    sent: list[int] = []

    def flood(request: http.server.BaseHTTPRequestHandler) -> None:
        request.send_response(206)
        request.end_headers()
        for number in range(200):
            request.wfile.write(bytes(1 << 20))
            sent.append(number)

    with served(flood) as url:
        files = millrace.RemoteFiles([millrace.Part(f"{url}/a.png", 0, 1000)])
        with pytest.warns(millrace.BadImageWarning):
            assert images_of(files) == [b""]
    assert len(sent) < 100


def test_images_that_are_much_larger_than_they_are_taken_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_files, "_BYTES", 10_000)
    with served(lambda request: send(request, bytes(5000))) as url:
        files = millrace.RemoteFiles([f"{url}/{number}.png" for number in range(4)], typical_bytes=100)
        with pytest.warns(UserWarning, match="0.png and 3 more have 5000 bytes each.* give typical_bytes=5000$"):
            files.read(0)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            files.read(0)
            millrace.RemoteFiles([f"{url}/{number}.png" for number in range(4)], typical_bytes=5000).read(0)


def test_what_a_query_names_is_not_taken_for_another(tmp_path: Path) -> None:
    """Of the same size and time, from a server that has nothing else for a version."""
    shards = {str(k): shard(tmp_path, range(4 * k, 4 * k + 4)) for k in range(2)}
    assert len(shards["0"]) == len(shards["1"])

    def answer(request: http.server.BaseHTTPRequestHandler) -> None:
        asked = parse_qs(urlsplit(request.path).query)
        if request.path.startswith("/get?") and asked["shard"][0] in shards:
            send(request, shards[asked["shard"][0]], Last_Modified="Wed, 21 Oct 2015 07:28:00 GMT")
        else:
            request.send_error(404)

    with served(answer) as url:
        urls = [f"{url}/get?shard={k}&X-Amz-Signature={k}" for k in range(2)]
        for k in range(2):
            source = millrace.RemoteShards(urls[k], copy_to=tmp_path / "copies")
            list(source.read(0))
            copy = source.read(0)[0].source.path
            assert Path(copy).read_bytes() == shards[str(k)]
        anew = millrace.RemoteShards(f"{url}/get?shard=1&X-Amz-Signature=anew")
        assert anew.fingerprint == millrace.RemoteShards(urls[1]).fingerprint
        assert anew.fingerprint != millrace.RemoteShards(urls[0]).fingerprint


@pytest.mark.parametrize("copied", [False, True])
def test_labels_of_an_index_that_is_older_than_the_shard(tmp_path: Path, object_store: ObjectStore, copied: bool) -> None:
    now = shard(tmp_path, range(20), lambda n: 9 - n % 10)
    before = shard(tmp_path, range(20), lambda n: n % 10)
    bucket = f"stale-index-{copied}".lower()
    url = object_store.put(f"{bucket}/a.tar", now)
    object_store.put(f"{bucket}/a.idx", walked(lambda size, at: before[at : at + size], len(before), 0)[0])
    options: dict[str, Any] = {"storage_options": object_store.options, **({"copy_to": tmp_path / "copies"} if copied else {})}

    source = millrace.RemoteShards(url, **options)
    with pytest.raises(
        millrace.FailedPrecondition, match=r"the label at s3://stale-index.*a\.tar\[.* is '[0-9]', and the index says [0-9]: "
    ):
        source.read(0)
    object_store.put(f"{bucket}/a.idx", walked(lambda size, at: now[at : at + size], len(now), 0)[0])
    assert [row.values for row in millrace.RemoteShards(url, **options).read(0)] == [(9 - n % 10,) for n in range(20)]


def test_options_do_not_go_where_a_manifest_sends_them() -> None:
    seen: dict[str, list[Any]] = {"own": [], "other": []}

    def other(request: http.server.BaseHTTPRequestHandler) -> None:
        seen["other"].append(request.headers.get("X-Token"))
        send(request, png(1))

    with served(other) as other_url:

        def own(request: http.server.BaseHTTPRequestHandler) -> None:
            seen["own"].append(request.headers.get("X-Token"))
            send(request, f"path\n{other_url}/a.png\nb.png\n".encode() if request.path.endswith(".csv") else png(0))

        with served(own) as own_url:
            options = {"headers": {"X-Token": "geheim"}}
            files = millrace.RemoteFiles(f"{own_url}/list.csv", storage_options=options)
            assert images_of(files) == [png(1), png(0)]
            assert set(seen["own"]) == {"geheim"}
            assert set(seen["other"]) == {None}
            assert images_of(millrace.RemoteFiles([f"{other_url}/a.png"], storage_options=options)) == [png(1)]
            assert seen["other"][-1] == "geheim"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("file:///etc/passwd", "URLs are read of the schemes"),
        ("local:///etc/passwd", "URLs are read of the schemes"),
        ("/etc/passwd", "no URL"),
        ("simplecache::s3://bucket/a.png", "URLs are read of the schemes"),
    ],
)
def test_files_of_this_host_in_a_manifest(object_store: ObjectStore, line: str, told: str) -> None:
    name = hashlib.sha256(line.encode()).hexdigest()[:20]
    url = object_store.put(f"manifest-{name}/list.csv", f"path\n{line}\n".encode())
    with pytest.raises(millrace.Error, match=told):
        millrace.RemoteFiles(url, storage_options=object_store.options)
