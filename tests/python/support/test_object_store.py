"""The proxy before the store of objects does what tests tell it to: what it did not do, no test would find."""

from __future__ import annotations

import http.client
import time
import urllib.error
import urllib.request
from typing import Any

import pytest

from object_store import ObjectStore
from store_proxy import StoreProxy

DATA = bytes(range(256)) * 4000


def get(proxy: StoreProxy, path: str, **headers: str) -> bytes:
    with urllib.request.urlopen(urllib.request.Request(f"{proxy.url}/{path}", headers=headers), timeout=60) as answer:
        data: bytes = answer.read()
        return data


@pytest.fixture(name="path")
def an_object(object_store: ObjectStore) -> str:
    assert object_store.put("rig/a b/x.bin", DATA) == "s3://rig/a b/x.bin"
    return "rig/a%20b/x.bin"


def test_what_is_asked_for_is_passed_on_and_counted(store_proxy: StoreProxy, path: str) -> None:
    import fsspec

    files = fsspec.filesystem("s3", **store_proxy.options)
    whole = files.cat_file("rig/a b/x.bin")
    part = files.cat_file("rig/a b/x.bin", start=5, end=1005)

    assert (whole, part) == (DATA, DATA[5:1005])
    assert store_proxy.count("^GET /rig/a%20b/x.bin") == 2
    assert store_proxy.count("bytes=5-1004$") == 1
    assert store_proxy.bytes >= len(DATA) + 1000


def test_refusals_end_as_they_were_told(store_proxy: StoreProxy, path: str) -> None:
    refuse = store_proxy.add(r"^GET .*x\.bin", status=503, times=2)
    for _ in range(2):
        with pytest.raises(urllib.error.HTTPError, match="503"):
            get(store_proxy, path)

    assert get(store_proxy, path) == DATA
    assert refuse.happened == 2
    with store_proxy.fault(status=403, share=0.5):
        came = [status_of(store_proxy, path) for _ in range(40)]
    assert 5 < came.count(403) < 35
    assert set(came) == {200, 403}
    with store_proxy.fault(status=404, seconds=0.2):
        until = time.monotonic() + 60
        while status_of(store_proxy, path) == 404:
            assert time.monotonic() < until


def status_of(proxy: StoreProxy, path: str) -> int:
    try:
        get(proxy, path)
    except urllib.error.HTTPError as why:
        why.close()
        return why.code
    return 200


@pytest.mark.parametrize("cut", [0, 1, 70_000])
def test_connections_are_cut(store_proxy: StoreProxy, path: str, cut: int) -> None:
    errors: Any = (http.client.HTTPException, OSError)
    with store_proxy.fault(cut=cut), pytest.raises(errors) as told:
        get(store_proxy, path)

    if cut:
        assert isinstance(told.value, http.client.IncompleteRead)
        assert told.value.partial == DATA[:cut]


def test_a_request_waits_and_hangs(store_proxy: StoreProxy, path: str) -> None:
    store_proxy.delay = 0.1
    begun = time.monotonic()
    assert get(store_proxy, path, Range="bytes=0-9") == DATA[:10]
    assert time.monotonic() - begun >= 0.1

    with store_proxy.fault(hang=True), pytest.raises(TimeoutError):
        urllib.request.urlopen(f"{store_proxy.url}/{path}", timeout=0.3)
