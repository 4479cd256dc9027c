"""Copies of shards behind URLs: who makes them, what they hold, and epochs out of them."""

from __future__ import annotations

import os
import re
import signal
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import millrace
import millrace.numpy
import numpy as np
import pytest
from millrace._loader.permutation import permutation
from millrace._remote import shards as remote
from millrace._remote.copies import Copies
from millrace._remote.objects import objects_of
from millrace._remote.ranges import RANGE

from archives import write_tar
from object_store import ObjectStore
from pictures import COUNT, EACH, SIZE, pixels_of, png
from processes import eventually, python
from store_proxy import StoreProxy

OWN_SIZE = millrace.Recipe(resize=millrace.ExactSize(SIZE), layout="NHWC")
SHARDS = 3


@pytest.fixture(autouse=True)
def a_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("MILLRACE_REMOTE_PATIENCE", "60")
    monkeypatch.setattr(remote, "BLOCK", 30_000)


@pytest.fixture
def url(request: pytest.FixtureRequest, object_store: ObjectStore, tmp_path: Path) -> str:
    name = "".join(letter for letter in request.node.name.lower() if letter.isalnum())[:50]
    each = COUNT // SHARDS
    for k in range(SHARDS):
        members = [pair for n in range(k * each, (k + 1) * each) for pair in member(n)]
        object_store.put(f"{name}/train-{k}.tar", write_tar(tmp_path / "made.tar", members).read_bytes())
    return f"s3://{name}/"


def member(n: int) -> list[tuple[str, bytes]]:
    return [(f"{n:04}.png", png(n)), (f"{n:04}.cls", b"%d" % (n // EACH)), (f"{n:04}.txt", b"picture %d" % n)]


@pytest.fixture
def copies(folder: Path, tmp_path: Path) -> Path:
    """A folder beneath the daemon's root."""
    return folder.parent / f"copies of {tmp_path.name}"


@pytest.fixture
def make(daemon: millrace.PrivateDaemon) -> Iterator[Any]:
    made: list[millrace.numpy.Loader] = []

    def loader(source: Any, **options: Any) -> millrace.numpy.Loader:
        given = {"batch_size": 8, "shuffle": "blocks", "window": 200_000, "address": daemon.address, **options}
        made.append(millrace.numpy.Loader(source, OWN_SIZE, **given))
        return made[-1]

    yield loader
    for one in made:
        one.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith(("millrace-feed", "millrace-rows"))]


def epoch_of(loader: Any) -> list[int]:
    """Ids, whose pixels and labels are looked at."""
    ids: list[int] = []
    for images, labels in loader:
        batch = loader.batch.ids.tolist()
        ids += batch
        for number, image in zip(batch, images, strict=True):
            assert np.array_equal(image, pixels_of(number))
        assert labels["label"].tolist() == [n // EACH for n in batch]
        assert labels["txt"] == [f"picture {n}" for n in batch]
    return ids


def copied(folder: Path) -> list[Path]:
    return sorted(folder.glob("train-*.tar"))


def shuffled(epoch: int) -> list[int]:
    order: list[int] = permutation(COUNT, 0, epoch).tolist()
    return order


def test_later_epochs_are_wholly_shuffled(make: Any, url: str, copies: Path, store_proxy: StoreProxy) -> None:
    source = millrace.RemoteShards(url, columns="txt", copy_to=copies, storage_options=store_proxy.options)
    plain = millrace.RemoteShards(url, columns="txt", storage_options=store_proxy.options)
    store_proxy.clear()
    loader = make(source)

    first = epoch_of(loader)
    assert len(copied(copies)) == SHARDS
    assert store_proxy.count("GET .*tar bytes=") == SHARDS  # each byte once
    store_proxy.clear()
    assert [epoch_of(loader), epoch_of(loader)] == [shuffled(1), shuffled(2)]
    assert not store_proxy.requests
    assert epoch_of(make(plain)) == first
    assert source.fingerprint == plain.fingerprint


def test_what_is_not_copied_yet_is_read_meanwhile(make: Any, url: str, copies: Path, store_proxy: StoreProxy) -> None:
    source = millrace.RemoteShards(url, columns="txt", copy_to=copies, storage_options=store_proxy.options)
    loader = make(source)
    loader.set_epoch(1)
    with store_proxy.fault(r"GET .*tar bytes=0-\d{6}$", hang=True) as copying:  # a whole shard
        assert epoch_of(loader) == shuffled(1)
        assert copying.happened
        assert not copied(copies)
    eventually(lambda: len(copied(copies)) == SHARDS, "all are copied")
    store_proxy.clear()
    assert epoch_of(loader) == shuffled(2)
    assert not store_proxy.requests


def test_a_state_with_copies_is_not_taken_for_one_without(make: Any, url: str, copies: Path, object_store: ObjectStore) -> None:
    source = millrace.RemoteShards(url, columns="txt", copy_to=copies, storage_options=object_store.options)
    loader = make(source)
    loader.set_epoch(3)
    loop = iter(loader)
    for _ in range(3):
        next(loop)
    state = loader.state_dict()
    other = make(source, window=None)
    other.load_state_dict(state)
    assert epoch_of(other) == shuffled(3)[24:]
    two = [make(source, rank=rank, world_size=2, batch_size=4) for rank in range(2)]
    for one in two:
        one.load_state_dict(state)
    assert [epoch_of(one) for one in two] == [shuffled(3)[24 + rank :: 2] for rank in range(2)]

    without = make(millrace.RemoteShards(url, columns="txt", storage_options=object_store.options))
    without.load_state_dict(state)
    with pytest.raises(millrace.FailedPrecondition, match="image by image"):
        next(iter(without))


def test_each_range_is_fetched_once(object_store: ObjectStore, store_proxy: StoreProxy, copies: Path) -> None:
    size = 5 * RANGE + 777
    data = np.random.default_rng(5).bytes(size)
    url = object_store.put("ranges/a.tar", data)
    objects = objects_of(url, (), "shards", store_proxy.options)
    several = [Copies(copies, None, objects) for _ in range(3)]  # as of three processes
    store_proxy.clear()
    with ThreadPoolExecutor(6) as threads:
        pieces = [(begin, min(3_000_000, size - begin)) for begin in range(0, size, 3_000_000)]
        waiting = [(piece, threads.submit(one.read, 0, [piece], None)) for piece in pieces for one in several]
        for (begin, length), each in waiting:
            found = each.result()
            assert found is not None
            assert bytes(found[0]) == data[begin : begin + length]

    assert store_proxy.count("GET .*a.tar bytes=") == 6
    (whole,) = copies.glob("a-*.tar")
    assert whole.read_bytes() == data
    assert several[0].path(0) == str(whole)
    assert sorted(path.name for path in copies.iterdir()) == [".millrace-copies.lock", whole.name]


def test_copies_have_their_bound(make: Any, url: str, copies: Path, object_store: ObjectStore) -> None:
    options: dict[str, Any] = {"columns": "txt", "copy_to": copies, "storage_options": object_store.options}
    with pytest.raises(millrace.InvalidRequest, match="say in copy_to"):
        millrace.RemoteShards(url, copy_bytes=1, storage_options=object_store.options)
    source = millrace.RemoteShards(url, copy_bytes=400_000, **options)
    loader = make(source)
    in_blocks = make(millrace.RemoteShards(url, columns="txt", storage_options=object_store.options))

    assert [epoch_of(loader) for _ in range(2)] == [epoch_of(in_blocks) for _ in range(2)]
    assert len(copied(copies)) == 2
    make(millrace.RemoteShards(url, copy_bytes=400_000, **options))
    assert epoch_of(make(source)) != []
    assert len(copied(copies)) == 2


def test_a_full_disk_is_told_once(make: Any, url: str, copies: Path, object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    source = millrace.RemoteShards(url, columns="txt", copy_to=copies, storage_options=object_store.options)

    def full(file: int, data: Any, at: int) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    loader = make(source)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert sorted(epoch_of(loader)) == list(range(COUNT))
        assert epoch_of(loader) == shuffled(1)
    told = [str(one.message) for one in caught if "copy_to" in str(one.message)]
    assert len(told) == 1
    assert re.search("takes no more copies, and the rest is read without: No space left on device", told[0])
    assert copied(copies) == []


def test_a_changed_copy_is_made_anew(make: Any, url: str, copies: Path, object_store: ObjectStore) -> None:
    source = millrace.RemoteShards(url, columns="txt", copy_to=copies, storage_options=object_store.options)
    loader = make(source)
    epoch_of(loader)
    paths = copied(copies)
    data = paths[1].read_bytes()
    with paths[1].open("r+b") as file:
        file.write(bytes(100_000))
    paths[2].unlink()

    assert epoch_of(loader) == shuffled(1)
    eventually(lambda: epoch_of(loader) != [] and copied(copies) == paths and paths[1].read_bytes() == data, "both are made anew")


def test_copies_outside_of_the_roots_are_refused(make: Any, url: str, object_store: ObjectStore, tmp_path: Path) -> None:
    source = millrace.RemoteShards(url, copy_to="/var/tmp", storage_options=object_store.options)
    with pytest.raises(millrace.PermissionDenied, match=r"copy_to: the daemon does not read /var/tmp, .*they are"):
        next(iter(make(source)))
    (tmp_path / "file").touch()
    with pytest.raises(millrace.InvalidRequest, match=r"copy_to: .*file cannot be written to"):
        millrace.RemoteShards(url, copy_to=tmp_path / "file", storage_options=object_store.options)


@pytest.mark.parametrize("epoch", [0, 1])
def test_a_loop_that_waits_for_a_store_is_interrupted(make: Any, url: str, copies: Path, store_proxy: StoreProxy, epoch: int) -> None:
    loader = make(millrace.RemoteShards(url, columns="txt", copy_to=copies, storage_options=store_proxy.options))
    loader.set_epoch(epoch)

    def interrupt() -> None:
        eventually(lambda: hung.happened > 0, "the loop waits")
        signal.pthread_kill(main, signal.SIGINT)

    main = threading.get_ident()
    with store_proxy.fault("GET .*tar bytes", hang=True) as hung:
        helper = threading.Thread(target=interrupt)
        helper.start()
        with pytest.raises(KeyboardInterrupt):
            next(iter(loader))
        helper.join()
        assert not [thread for thread in threading.enumerate() if thread.name.startswith("millrace-feed")]


COPYING = """
import sys, millrace
source = millrace.RemoteShards(sys.argv[1], columns="txt", copy_to=sys.argv[2], storage_options=eval(sys.argv[3]))
for block in range(len(source.sizes)):
    assert len(source.read(block)) == source.sizes[block]
print("read", flush=True)
"""


@pytest.mark.long
def test_processes_share_copies_and_go_on_with_those_of_a_killed_one(make: Any, url: str, copies: Path, store_proxy: StoreProxy) -> None:
    millrace.RemoteShards(url, storage_options=store_proxy.options)  # so that the index is in the cache
    store_proxy.clear()
    arguments = url, str(copies), repr(store_proxy.options)
    with store_proxy.fault("GET .*train-1.tar bytes", hang=True) as hung, python(COPYING, *arguments) as killed:
        eventually(lambda: hung.happened > 0, "the process copies the second shard")
        assert len(list(copies.glob(".train-1*.part"))) == 1
        os.killpg(killed.pid, signal.SIGKILL)
    assert len(copied(copies)) == 1

    with python(COPYING, *arguments) as one, python(COPYING, *arguments) as two:
        said = [each.communicate() for each in (one, two)]
    assert [out for out, _ in said] == ["read\n"] * 2, said
    assert len(copied(copies)) == SHARDS
    assert not list(copies.glob(".*.part"))
    assert store_proxy.count("GET .*tar bytes=") <= SHARDS + 1
