"""Objects of stores by ranges, through s3fs and a proxy that makes what goes wrong. No daemon is asked."""

from __future__ import annotations

import http.server
import json
import os
import pickle
import random
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import millrace
import numpy as np
import pytest
from millrace._remote import objects, ranges, requests
from millrace._remote.causes import Replaced, without_secrets
from millrace._remote.memory import room_for
from millrace._remote.objects import RemoteObject, objects_of
from millrace._remote.store import Store, shown

from object_store import ObjectStore, needs_a_store
from processes import eventually, python
from store_proxy import StoreProxy

DATA = random.Random(1).randbytes(1_000_003)
SMALL = 64 << 10  # bytes of a range, in these tests


@pytest.fixture(autouse=True)
def ranges_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    needs_a_store()
    monkeypatch.setattr(objects, "RANGE", SMALL)


@pytest.fixture(name="impatient")
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILLRACE_REMOTE_PATIENCE", "0.3")


@pytest.fixture(name="object_")
def an_object(object_store: ObjectStore, store_proxy: StoreProxy) -> RemoteObject:
    return opened(object_store.put("objects/d/a.tar", DATA), store_proxy)


def opened(url: str, proxy: StoreProxy) -> RemoteObject:
    (found,) = objects_of(url, (".tar",), "shards", proxy.options if url.startswith("s3://") else {})
    return found


def whole(object_: RemoteObject, stop: threading.Event | None = None) -> bytes:
    (data,) = object_.read([(0, object_.size)], stop)
    return bytes(data)


# ------------------------------------------------------------------------------------------------------- what is read


def test_pieces_are_read_by_ranges_many_at_once(object_: RemoteObject, store_proxy: StoreProxy) -> None:
    store_proxy.clear()
    store_proxy.delay = 0.1
    pieces = [(5, 700_000), (999_000, 1003), (0, 1), (17, 0), (3 * SMALL, SMALL)]
    came = object_.read(pieces)

    assert [bytes(one) for one in came] == [DATA[at : at + length] for at, length in pieces]
    assert all(one.readonly for one in came)
    assert store_proxy.count("^GET") == -(-700_000 // SMALL) + 3
    assert store_proxy.count("^HEAD") == 0  # the answers say of which version they are
    assert 8 <= store_proxy.most <= ranges.AT_ONCE  # s3fs alone has ten connections


def test_sixteen_reads_have_sixteen_connections(object_: RemoteObject, store_proxy: StoreProxy) -> None:
    store_proxy.clear()
    with store_proxy.fault("^GET", hang=True), ThreadPoolExecutor(3) as threads:
        stop = threading.Event()
        reads = [threads.submit(whole, object_, stop) for _ in range(3)]  # 48 ranges
        eventually(lambda: store_proxy.under_way == ranges.AT_ONCE, "16 requests are under way")
        stop.set()
    assert all(isinstance(one.exception(), ranges.Stopped) for one in reads)
    assert store_proxy.most == ranges.AT_ONCE


@pytest.mark.parametrize("source", ["objects/l/*.tar", "objects/l/", "objects/l", "objects/l/{a,b c}.tar"])
def test_what_urls_mean(object_store: ObjectStore, store_proxy: StoreProxy, source: str) -> None:
    for name in ("b c.tar", "a.tar", "sub/d.tar", "e.txt"):
        object_store.put(f"objects/l/{name}", name.encode())

    found = objects_of(f"s3://{source}", (".tar",), "shards", store_proxy.options)

    assert [one.name for one in found] == ["s3://objects/l/a.tar", "s3://objects/l/b c.tar"]
    assert [whole(one) for one in found] == [b"a.tar", b"b c.tar"]


def test_plain_http(object_store: ObjectStore, store_proxy: StoreProxy) -> None:
    object_store.put("objects/d/a b.tar", DATA)
    url = f"{store_proxy.url}/objects/d/a b.tar"
    object_ = opened(url, store_proxy)
    with store_proxy.fault("^GET", status=503, times=3), store_proxy.fault("^GET", cut=1000, times=3):
        assert whole(object_) == DATA
    assert object_.version.startswith("ETag ")

    object_store.put("objects/d/a b.tar", DATA[::-1])
    with pytest.raises(Replaced, match="has been replaced since it was opened"):
        whole(object_)
    store_proxy.add("^(GET|HEAD)", status=403)
    with pytest.raises(OSError, match=r"/objects/d/a b\.tar cannot be read: the store refuses it to these credentials \(403\)"):
        whole(object_)


def test_memory_is_used_again_once_no_view_of_it_is_left() -> None:
    size = 2 << 20
    first = room_for(size)
    place = np.frombuffer(first, np.uint8).ctypes.data
    first[:] = b"a" * size
    part = first.toreadonly()[100:105]
    del first
    others = [room_for(size - number) for number in range(3)]
    for one in others:
        one[:] = b"b" * len(one)
    assert bytes(part) == b"aaaaa"

    del part
    assert np.frombuffer(room_for(size), np.uint8).ctypes.data == place
    assert [len(room_for(length)) for length in (0, 1, size // 3, 40 << 20)] == [0, 1, size // 3, 40 << 20]


# ----------------------------------------------------------------------------------------------------- what may pass


def test_cuts_anywhere_and_refusals_for_a_while_pass(object_: RemoteObject, store_proxy: StoreProxy) -> None:
    dice = random.Random(2)
    cuts = [store_proxy.add("^GET", cut=cut, share=0.05, seed=cut) for cut in [0, 1, SMALL - 1, *(dice.randrange(SMALL) for _ in range(5))]]
    refusals = [store_proxy.add("", status=status, times=2) for status in (500, 503, 429)]
    for _ in range(2):
        assert whole(object_) == DATA

    assert sum(one.happened for one in cuts) > 4
    assert all(one.happened for one in refusals)


def test_a_store_that_refuses_all_for_a_second_is_waited_for(object_: RemoteObject, store_proxy: StoreProxy) -> None:
    refusal = store_proxy.add(status=503, seconds=1.0)

    assert whole(object_) == DATA
    assert refusal.happened >= ranges.AT_ONCE


def test_opening_waits_for_a_store_as_well(object_store: ObjectStore, store_proxy: StoreProxy) -> None:
    object_store.put("objects/w/a.tar", b"a")
    for source in ("a.tar", "*.tar", ""):
        refusal = store_proxy.add(status=503, times=3)
        (found,) = objects_of(f"s3://objects/w/{source}", (".tar",), "shards", store_proxy.options)
        assert (found.size, refusal.happened) == (1, 3)


def test_a_store_that_refuses_for_longer_than_the_limit_is_an_error(
    object_: RemoteObject, store_proxy: StoreProxy, impatient: None
) -> None:
    with store_proxy.fault(status=503), pytest.raises(OSError, match=r"^s3://objects/d/a\.tar cannot be read: ClientError: .*SlowDown"):
        whole(object_)
    with store_proxy.fault(cut=100), pytest.raises(OSError, match=r"^s3://objects/d/a\.tar cannot be read: ."):
        whole(object_)
    with (
        store_proxy.fault(status=503),
        pytest.raises(millrace.InvalidRequest, match=r"^shards: s3://objects/d/a\.tar cannot be opened: .*503"),
    ):
        opened("s3://objects/d/a.tar", store_proxy)
    assert whole(object_) == DATA


def test_no_answer_is_waited_for_up_to_a_limit(
    object_: RemoteObject, store_proxy: StoreProxy, impatient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "_ANSWER", 0.2)
    with store_proxy.fault("^GET .*bytes=0-", hang=True, times=1) as hang:
        assert whole(object_) == DATA
    assert hang.happened
    with (
        store_proxy.fault("^GET", hang=True),
        pytest.raises(OSError, match=r"a\.tar cannot be read: TimeoutError: no answer came within 0 s"),
    ):
        whole(object_)


def test_a_store_that_is_silent_for_long_is_told_of_once(
    object_: RemoteObject, store_proxy: StoreProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranges, "_SILENCE", 0.2)
    store_proxy.add(status=503, seconds=0.7)
    with pytest.warns(UserWarning, match=r"s3://objects/d/a\.tar cannot be read since 0 s; it is tried again for 90 s in all: ") as told:
        assert whole(object_) == DATA
    assert len(told) == 1


# -------------------------------------------------------------------------------------------------- what does not pass


@pytest.mark.parametrize(
    ("status", "told"), [(403, r"the store refuses it to these credentials \(403\)"), (404, r"there is no such object \(404\)")]
)
def test_what_a_store_refuses_for_good_is_said_at_once(object_: RemoteObject, store_proxy: StoreProxy, status: int, told: str) -> None:
    store_proxy.clear()
    with store_proxy.fault("^GET", status=status), pytest.raises(OSError, match=rf"^s3://objects/d/a\.tar cannot be read: {told}$"):
        whole(object_)
    assert store_proxy.count("^GET") <= ranges.AT_ONCE + 1  # none of them twice


@pytest.mark.parametrize("source", ["a.tar", "*.tar", "", "{a,b}.tar"])
def test_what_cannot_be_opened_is_said(object_store: ObjectStore, store_proxy: StoreProxy, source: str) -> None:
    object_store.put("objects/d/a.tar", DATA)
    with (
        store_proxy.fault(status=403),
        pytest.raises(millrace.PermissionDenied, match=r"^shards: s3://objects/d/.* cannot be opened: the store refuses it to these cred"),
    ):
        objects_of(f"s3://objects/d/{source}", (".tar",), "shards", store_proxy.options)


@pytest.mark.parametrize(
    "source", ["objects/d/no.tar", "objects/d/no*.tar", "objects/no/", "no-such-bucket/a.tar", "no-such-bucket/", "no-such-bucket/*"]
)
def test_what_is_not_there(object_store: ObjectStore, store_proxy: StoreProxy, source: str) -> None:
    object_store.put("objects/d/a.tar", DATA)
    with pytest.raises(millrace.NotFound, match=r"^shards: .*s3://" + source.replace("*", r"\*")):
        objects_of(f"s3://{source}", (".tar",), "shards", store_proxy.options)


def test_of_several_urls_the_one_that_is_not_there_is_named(object_: RemoteObject, store_proxy: StoreProxy) -> None:
    with pytest.raises(millrace.NotFound, match=r"^shards: s3://objects/d/b\.tar cannot be opened: there is no such object"):
        objects_of("s3://objects/d/{a,b}.tar", (".tar",), "shards", store_proxy.options)


def test_an_object_that_goes_is_an_error(object_: RemoteObject, object_store: ObjectStore) -> None:
    object_store.remove("objects/d/a.tar")
    with pytest.raises(OSError, match=r"^s3://objects/d/a\.tar cannot be read: there is no such object \(404\)$"):
        whole(object_)


@pytest.mark.parametrize("size", [len(DATA), len(DATA) + 5, len(DATA) - 5, 70_000, 1, 0])
def test_a_replaced_object_is_never_read(object_: RemoteObject, object_store: ObjectStore, store_proxy: StoreProxy, size: int) -> None:
    object_store.put("objects/d/a.tar", bytes(size))
    store_proxy.clear()
    for pieces in ([(0, len(DATA))], [(0, 10)], [(len(DATA) - 10, 10)]):
        with pytest.raises(Replaced, match=r"^s3://objects/d/a\.tar has been replaced since it was opened: it "):
            object_.read(pieces)
    assert store_proxy.count("^GET") <= -(-len(DATA) // SMALL) + 2  # no range twice


def test_an_object_that_is_replaced_while_it_is_read(object_: RemoteObject, object_store: ObjectStore, store_proxy: StoreProxy) -> None:
    store_proxy.clear()
    store_proxy.add(r"^GET .*bytes=(?!0-)", delay=0.2)
    with ThreadPoolExecutor(1) as thread:
        reading = thread.submit(whole, object_)
        eventually(lambda: store_proxy.count("^GET") > 1, "reading has begun")
        object_store.put("objects/d/a.tar", DATA[::-1])
        with pytest.raises(Replaced, match="it has another size or ETag"):
            reading.result()


@pytest.fixture(name="simple")
def a_simple_server(tmp_path: Path) -> Iterator[str]:
    """Python's own web server, which knows no ranges."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments, directory=os.fspath(tmp_path))

        def log_message(self, *_: object) -> None:
            pass

    (tmp_path / "a.tar").write_bytes(DATA)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/a.tar"
        server.shutdown()
        thread.join()


def test_a_server_without_ranges(simple: str, tmp_path: Path) -> None:
    (object_,) = objects_of(simple, (".tar",), "shards")
    assert object_.version.startswith("Last-Modified ")
    with pytest.raises(
        OSError, match=r"/a\.tar cannot be read: NotImplementedError: the server gives the whole file where a range is asked"
    ):
        object_.read([(10, 20)])

    (tmp_path / "a.tar").write_bytes(b"small")  # one range is all of it
    (object_,) = objects_of(simple, (".tar",), "shards")
    assert whole(object_) == b"small"


# -------------------------------------------------------------------------------------------------------- ends and forks


@pytest.mark.parametrize("fault", [{"status": 503}, {"hang": True}])
def test_stop_ends_what_is_under_way(object_: RemoteObject, store_proxy: StoreProxy, fault: dict[str, Any]) -> None:
    """Both limits are minutes."""
    stop = threading.Event()
    store_proxy.clear()
    with ThreadPoolExecutor(1) as thread, store_proxy.fault("^GET", **fault) as befalls:
        reading = thread.submit(whole, object_, stop)
        eventually(lambda: befalls.happened >= ranges.AT_ONCE, "all ranges are asked for")
        stop.set()
        assert isinstance(reading.exception(60), ranges.Stopped)
        eventually(lambda: store_proxy.under_way == 0, "no request is left")
    assert whole(object_) == DATA  # no thread is held up


SCRIPT = """
import json, os, pickle, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
from millrace._remote.memory import room_for
from millrace._remote.objects import objects_of
(object_,) = objects_of(sys.argv[1], (".tar",), "shards", json.loads(sys.argv[2]))
def length():
    return sum(map(len, object_.read([(0, object_.size)])))
"""
READS_AT_ITS_END = """
threads = ThreadPoolExecutor(2)
for _ in range(2):
    threads.submit(length)
print("begun", flush=True)
sys.stdin.readline()
"""
FORKS = """
print(length(), flush=True)
child = os.fork()
if child == 0:
    print(length(), len(pickle.loads(pickle.dumps(object_)).read([(5, 100)])[0]), flush=True)
    os._exit(0)
print(os.waitpid(child, 0)[1], length(), flush=True)
"""


def test_a_program_ends_while_reads_are_under_way(object_: RemoteObject, store_proxy: StoreProxy) -> None:
    """Both limits are minutes."""
    refuses = store_proxy.add("^GET", status=503)
    with store_proxy.fault("^GET", hang=True, share=0.3) as hangs, python(SCRIPT + READS_AT_ITS_END, *script_arguments(object_)) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        eventually(lambda: refuses.happened > 0 and hangs.happened > 0, "requests are under way")
        output, errors = process.communicate("end\n", timeout=60)
        assert (process.returncode, output, errors) == (0, "", "")


def script_arguments(object_: RemoteObject) -> tuple[str, str]:
    return object_.url, json.dumps(dict(object_.store.options))


def test_a_forked_process_reads_and_its_parent_goes_on(object_: RemoteObject) -> None:
    with python(SCRIPT + FORKS, *script_arguments(object_)) as process:
        output, errors = process.communicate()
    assert (output.split(), errors) == ([str(len(DATA)), str(len(DATA)), "100", "0", str(len(DATA))], "")


def test_objects_are_pickled(object_: RemoteObject) -> None:
    copy = pickle.loads(pickle.dumps(object_))
    assert (copy, whole(copy)) == (object_, DATA)


# -------------------------------------------------------------------------------------------------------------- secrets


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://host/a.tar?X-Amz-Signature=geheim&b=c", "https://host/a.tar?..."),
        ("https://host/a b.tar?sig=ge heim", "https://host/a b.tar?..."),
        ("https://me:geheim@host:8/a.tar", "https://host:8/a.tar"),
        ("https://me:ge@heim@host/a@b.tar", "https://host/a@b.tar"),
        ("s3://bucket/a#1[2].tar", "s3://bucket/a#1[2].tar"),
        ("https://[x/a.tar?geheim", "https://[x/a.tar?..."),
        ("s3://bucket/a\n\x1b[31m\udcff.tar", r"s3://bucket/a\n\x1b[31m\xff.tar"),
    ],
)
def test_names_have_no_secrets(url: str, name: str) -> None:
    assert shown(url) == name
    assert "geheim" not in without_secrets(f"cannot read '{url}' (error)") or " " in url


@pytest.mark.parametrize("fault", [{"status": 403}, {"status": 404}, {"status": 503}, {"status": 400}, {"cut": 0}, {"cut": 50}])
@pytest.mark.parametrize("form", ["{0}/objects/d/a.tar?X-Amz-Signature=geheim", "{1}me:geheim@{2}/objects/d/a.tar"])
def test_errors_have_no_secrets(object_: RemoteObject, store_proxy: StoreProxy, impatient: None, fault: dict[str, Any], form: str) -> None:
    scheme, _, host = store_proxy.url.rpartition("/")
    url = form.format(store_proxy.url, scheme + "/", host)
    found = opened(url, store_proxy)
    texts = [repr(found), str(found), found.name, repr(found.store)]
    calls: list[Callable[[], Any]] = [lambda: whole(found), lambda: opened(url, store_proxy)][
        : 1 if fault.get("cut") else 2
    ]  # HEAD has no body
    with store_proxy.fault(**fault):
        for call in calls:
            with pytest.raises(Exception, match=r"objects/d/a\.tar") as told:
                call()
            texts.append("".join(traceback.format_exception(told.value)))
    assert not [text for text in texts if "geheim" in text]


def test_options_are_not_shown(object_: RemoteObject) -> None:
    options = {"key": "mine", "secret": "geheim"}
    assert "geheim" not in repr(Store.of("s3://bucket/a", options))
    with pytest.raises(millrace.InvalidRequest, match=r"s3://: the store cannot be opened with these storage_options: .*not both"):
        Store.of("s3://bucket/a", {**options, "username": "me"})
