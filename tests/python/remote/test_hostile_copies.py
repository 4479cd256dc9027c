"""Folders of copies that others write to, too, and file systems that do not keep what tells a copy."""

from __future__ import annotations

import fcntl
import os
import threading
import warnings
from pathlib import Path
from typing import Any

import millrace
import pytest
from millrace._remote import copies as module
from millrace._remote.copies import Copies
from millrace._remote.objects import objects_of

from object_store import ObjectStore
from store_proxy import StoreProxy

DATA = bytes(range(256)) * 400


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILLRACE_REMOTE_PATIENCE", "0.5")
    monkeypatch.setattr(module, "_DECIDING", 0.3, raising=False)


@pytest.fixture
def copies(tmp_path: Path, object_store: ObjectStore, store_proxy: StoreProxy) -> Copies:
    url = object_store.put("hostile-copies/a.tar", DATA)
    return Copies(tmp_path / "copies", None, objects_of(url, (".tar",), "shards", store_proxy.options))


def held(path: Path) -> int:
    """As a process holds it that never goes on."""
    file = os.open(path, os.O_RDWR | os.O_CREAT)
    fcntl.flock(file, fcntl.LOCK_EX)
    return file


def content(copies: Copies, stop: threading.Event | None = None) -> bytes | None:
    """Of the object, by way of its copy."""
    found = copies.read(0, [(0, len(DATA))], stop)
    return None if found is None else bytes(found[0])


def soon(call: Any) -> Any:
    """What it returns; fails where it does not come to an end."""
    found: list[Any] = []
    stop = threading.Event()
    thread = threading.Thread(target=lambda: found.append(call(stop)), daemon=True)
    thread.start()
    thread.join(20)
    stop.set()
    assert found, "it does not come to an end"
    return found[0]


def test_a_lock_that_is_never_let_go_of(copies: Copies) -> None:
    lock = held(Path(copies.folder, module._LOCK))
    try:
        with pytest.warns(UserWarning, match="takes no more copies.*another process holds"):
            assert soon(lambda stop: content(copies, stop)) is None
        with pytest.raises(millrace.InvalidRequest, match="cannot be written to: another process holds"):
            Copies(copies.folder, None, copies._objects)
    finally:
        os.close(lock)


def test_a_process_that_is_forked_meanwhile_holds_no_lock(copies: Copies) -> None:
    inside, outside = os.pipe()
    with copies._deciding(threading.Event()):
        child = os.fork()
        if not child:
            os.close(outside)
            os.read(inside, 1)
            os._exit(0)
    try:
        assert soon(lambda stop: content(copies, stop)) == DATA
    finally:
        os.close(outside)
        os.waitpid(child, 0)
        os.close(inside)


def test_a_copy_of_a_process_that_never_goes_on(copies: Copies) -> None:
    part = Path(copies.folder, f".{copies._names[0]}.part")
    part.write_bytes(bytes(len(DATA) + 1))
    with part.open("r+b") as other:
        assert module._locked(other.fileno(), len(DATA))
        assert soon(lambda stop: content(copies, stop)) is None
    assert content(copies) == DATA
    assert copies.path(0) is not None
    assert not part.exists()


def test_what_stands_in_the_place_of_a_copy_under_way(copies: Copies) -> None:
    os.symlink("nowhere", Path(copies.folder, f".{copies._names[0]}.part"))
    os.symlink("/dev/null", Path(copies.folder, copies._names[0]))
    assert soon(lambda stop: content(copies, stop)) == DATA
    assert copies.path(0) is not None


def test_a_file_system_that_keeps_no_times(copies: Copies, store_proxy: StoreProxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "utime", lambda *_, **__: None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert soon(lambda stop: content(copies, stop)) is None
        assert content(copies) is None
    assert ["does not keep owner and time" in str(one.message) for one in caught] == [True]
    assert store_proxy.count("GET .*bytes") == 1
    assert not list(Path(copies.folder).glob("*.tar"))


def test_a_copy_is_on_the_disk_before_it_has_its_name(copies: Copies, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    fsync, rename = os.fsync, os.rename
    monkeypatch.setattr(os, "fsync", lambda file: (done.append("fsync"), fsync(file)))
    monkeypatch.setattr(os, "rename", lambda *paths: (done.append("rename"), rename(*paths)))
    assert content(copies) == DATA
    assert done == ["fsync", "rename"]


def test_users_have_copies_of_their_own(copies: Copies, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = copies._names
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    assert Copies(copies.folder, None, copies._objects)._names != mine
