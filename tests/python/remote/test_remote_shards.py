"""Tar shards behind URLs: their indexes, their blocks, and loaders of them."""

from __future__ import annotations

import io
import os
import pickle
import re
import signal
import tarfile
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import millrace
import millrace.numpy
import numpy as np
import pytest
from millrace._blocks.order import block_order
from millrace._loader import block_epoch
from millrace._remote import shards as remote
from millrace._remote.objects import objects_of
from millrace._remote.ranges import RANGE
from millrace._remote.read_ahead import ReadAhead

from archives import write_tar
from object_store import ObjectStore
from pictures import COUNT, EACH, SIZE, pixels_of, png
from processes import eventually, python
from store_proxy import StoreProxy

OWN_SIZE = millrace.Recipe(resize=millrace.ExactSize(SIZE), layout="NHWC")
SHARDS = 3


def members(numbers: range) -> list[tuple[str, bytes]]:
    found = []
    for n in numbers:
        found += [(f"part/{n:04}.png", png(n)), (f"part/{n:04}.cls", b"%d" % (n // EACH))]
        found += [(f"part/{n:04}.JSON", b'{"number": %d}' % n)] if n % 2 else []
    return found


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("archives")
    each = COUNT // SHARDS
    return [write_tar(folder / f"train-{k}.tar", members(range(k * each, (k + 1) * each))) for k in range(SHARDS)]


@pytest.fixture(autouse=True)
def a_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of the test's own; and blocks that are small."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("MILLRACE_REMOTE_PATIENCE", "60")
    monkeypatch.setattr(remote, "BLOCK", 30_000)
    return tmp_path / "cache" / "millrace" / "shards"


@pytest.fixture
def bucket(request: pytest.FixtureRequest, object_store: ObjectStore, archives: list[Path]) -> Callable[..., str]:
    """Writes into a bucket of the test's own; the URL of its shards."""
    name = "".join(letter for letter in request.node.name.lower() if letter.isalnum())[:50]

    def put(*more: tuple[str, bytes]) -> str:
        for path in archives:
            object_store.put(f"{name}/{path.name}", path.read_bytes())
        for key, data in more:
            object_store.put(f"{name}/{key}", data)
        return f"s3://{name}/"

    return put


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
    assert not [thread for thread in threading.enumerate() if thread.name.startswith(("millrace-feed", "millrace-blocks"))]


def epoch_of(loader: Any) -> list[int]:
    """Ids, whose pixels and labels are looked at."""
    ids: list[int] = []
    for images, labels in loader:
        ids += loader.batch.ids.tolist()
        for number, image in zip(loader.batch.ids.tolist(), images, strict=True):
            assert np.array_equal(image, pixels_of(number))
        assert (labels["label"] if isinstance(labels, dict) else labels).tolist() == [n // EACH for n in loader.batch.ids.tolist()]
    return ids


def order_of(source: Any, epoch: int = 0, window: int = 200_000) -> list[int]:
    blocks = window // 2 // int(source.block_bytes.max())
    order: list[int] = block_order(source.sizes, blocks, 0, epoch).samples.tolist()
    return order


def test_an_epoch_is_the_documented_order(make: Any, bucket: Any, store_proxy: StoreProxy, a_cache: Path) -> None:
    url = bucket()
    source = millrace.RemoteShards(url + "train-{0..2}.tar", columns=["json", "__key__"], storage_options=store_proxy.options)
    assert len(source) == COUNT
    assert len(source.sizes) >= 9
    assert source.columns == ("label", "json", "__key__")
    assert len(list(a_cache.glob("*.idx"))) == SHARDS
    assert not list(a_cache.glob("*.lock"))
    loader = make(source)

    assert epoch_of(loader) == order_of(source)
    for _, labels in loader:
        for number, told, key in zip(loader.batch.ids.tolist(), labels["json"], labels["__key__"], strict=True):
            assert told == ({"number": number} if number % 2 else None)
            assert key == f"part/{number:04}"
    assert epoch_of(make(pickle.loads(pickle.dumps(source)), shuffle=False)) == list(range(COUNT))
    again = millrace.RemoteShards(url, columns="json;__key__", storage_options=store_proxy.options)
    assert again.fingerprint == source.fingerprint


def test_ranks_have_one_order_whatever_memory_they_see(
    make: Any, bucket: Any, store_proxy: StoreProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = iter([200_000, 70_000])
    monkeypatch.setattr(block_epoch, "usual_window", lambda: next(seen))
    source = millrace.RemoteShards(bucket(), storage_options=store_proxy.options)
    ranks = [epoch_of(make(source, rank=rank, world_size=2, window=None, shard_tail="uneven")) for rank in range(2)]
    assert sorted(ranks[0] + ranks[1]) == list(range(COUNT))


def test_blocks_are_parts_of_shards(bucket: Any, store_proxy: StoreProxy) -> None:
    source = millrace.RemoteShards(bucket(), storage_options=store_proxy.options)
    begin = 0
    store_proxy.clear()
    for block, size in enumerate(source.sizes):
        rows = source.read(block)
        assert [bytes(row.source) for row in rows] == [png(n) for n in range(begin, begin + size)]
        assert [row.values for row in rows] == [(n // EACH,) for n in range(begin, begin + size)]
        assert abs(sum(len(row.source) for row in rows) - source.block_bytes[block]) < 3_000 * size
        assert source.name_of(block).startswith("s3://testblocksarepartsofshards/train-")
        begin += size
    assert store_proxy.count("GET .* bytes=") == len(source.sizes)
    assert max(source.block_bytes) < 40_000


def test_the_index_beside_a_shard_is_taken(bucket: Any, archives: list[Path], store_proxy: StoreProxy, a_cache: Path) -> None:
    millrace.Shards(archives)  # writes them
    ours = [path.with_suffix(".idx").read_bytes() for path in archives]
    dalis = ours[1].split(b"#millrace-1 ")[0]
    url = bucket(("train-0.idx", ours[0]), ("train-1.idx", dalis), ("train-2.idx", ours[1]))  # the last one is another shard's
    store_proxy.clear()
    source = millrace.RemoteShards(url, columns="cls", storage_options=store_proxy.options)

    assert len(source) == COUNT
    whole = [sum("bytes=0-" in one and f"train-{k}.tar" in one and "511" not in one for one in store_proxy.requests) for k in range(SHARDS)]
    assert whole == [0, 0, 1]
    assert [row.values for block in range(len(source.sizes)) for row in source.read(block)] == [(n // EACH,) * 2 for n in range(COUNT)]
    assert len(list(a_cache.glob("*.idx"))) == SHARDS
    store_proxy.clear()
    assert millrace.RemoteShards(url, columns="cls", storage_options=store_proxy.options).fingerprint == source.fingerprint
    assert not store_proxy.count("GET .*(tar|idx)")


def test_a_damaged_shard_has_the_samples_before(bucket: Any, archives: list[Path], object_store: ObjectStore) -> None:
    url = bucket(("train-1.tar", archives[1].read_bytes()[:50_000]))
    with pytest.warns(millrace.ShardWarning, match=r"s3://.*train-1.tar is damaged at byte \d+, last member .*cut off"):
        source = millrace.RemoteShards(url, storage_options=object_store.options)

    assert COUNT - 20 < len(source) < COUNT
    with pytest.raises(millrace.InvalidRequest, match="is damaged at byte"):
        millrace.RemoteShards(url, storage_options=object_store.options, strict=True)


def test_what_is_refused(bucket: Any, object_store: ObjectStore, archives: list[Path], daemon: Any) -> None:
    def add(name: str, found: list[tuple[str, bytes]]) -> tuple[str, bytes]:
        return name, write_tar(archives[0].parent / "made", found).read_bytes()

    url = bucket(
        ("a/texts.tar", add("", [("1.png", png(0)), ("1.cls", b"ant"), ("2.png", png(1)), ("2.cls", b"bee")])[1]),
        ("b/some.tar", add("", [("1.png", png(0)), ("1.cls", b"1"), ("2.png", png(1))])[1]),
        ("c/none.tar", add("", [("1.txt", b"text")])[1]),
        ("d/packed.tar", b"\x1f\x8b" + bytes(600)),
    )
    options = {"storage_options": object_store.options}
    texts = millrace.RemoteShards(url + "a/", **options)
    with pytest.raises(millrace.InvalidRequest, match=r"the cls at s3://.*texts.tar\[\d+\+3\] is 'ant', no whole number"):
        texts.read(0)
    named = millrace.RemoteShards(url + "a/", classes=["bee", "ant"], **options)
    assert [row.values for row in named.read(0)] == [(1,), (0,)]
    with pytest.raises(millrace.InvalidRequest, match="none of the 1 classes"):
        millrace.RemoteShards(url + "a/", classes=["bee"], **options).read(0)
    with pytest.raises(millrace.InvalidRequest, match=r"1 of 2 samples have no cls, such as 2.png in s3://"):
        millrace.RemoteShards(url + "b/", **options)
    assert millrace.RemoteShards(url + "b/", label="", **options).columns == ()
    with pytest.raises(millrace.InvalidRequest, match=r"there is no image in s3://.*the members' extensions are txt"):
        millrace.RemoteShards(url + "c/", **options)
    with pytest.raises(millrace.InvalidRequest, match=r"packed.tar is compressed \(gzip\)"):
        millrace.RemoteShards(url + "d/", **options)
    with pytest.raises(millrace.NotFound, match=r"none-such\.tar cannot be opened: there is no such object"):
        millrace.RemoteShards(url + "none-such.tar", **options)
    with pytest.raises(millrace.InvalidRequest, match=r"give millrace.RemoteShards\('s3://b/x.tar'\)"):
        millrace.Shards("s3://b/x.tar")
    with pytest.raises(millrace.InvalidRequest, match=r"give millrace.RemoteShards\('s3://b/x.tar'\)"):
        millrace.numpy.Loader("s3://b/x.tar", OWN_SIZE, address=daemon.address)
    with pytest.raises(millrace.InvalidRequest, match='take shuffle="blocks"'):
        millrace.numpy.Loader(named, OWN_SIZE, shuffle=True, address=daemon.address)


def test_what_needs_single_images_is_refused(bucket: Any, object_store: ObjectStore, daemon: millrace.PrivateDaemon) -> None:
    url = bucket()
    source = millrace.RemoteShards(url, storage_options=object_store.options)

    class Subset:  # as PyTorch's
        __module__ = "torch.utils.data.dataset"
        dataset, indices = source, (1, 2)

    with pytest.raises(millrace.InvalidRequest, match=r"RemoteShards s3://.* is read in blocks, so no Subset"):
        millrace.numpy.Loader(Subset(), OWN_SIZE, address=daemon.address)
    with pytest.raises(millrace.InvalidRequest, match=r"Pairs: s3://.* is a URL"):
        millrace.Pairs.of_shards(url + "train-0.tar", image="png", mask="png")
    with pytest.raises(millrace.InvalidRequest, match="preview: give a folder"):
        millrace.preview(source)  # type: ignore[arg-type]


@pytest.mark.long
def test_processes_share_the_making_of_an_index(bucket: Any, store_proxy: StoreProxy, a_cache: Path) -> None:
    code = """
import sys, millrace
source = millrace.RemoteShards(sys.argv[1], storage_options=eval(sys.argv[2]))
print(len(source), source.fingerprint)
"""
    url = bucket()
    with store_proxy.fault("GET .*train-1.tar", hang=True) as hung, python(code, url, repr(store_proxy.options)) as killed:
        eventually(lambda: hung.happened > 0, "the process walks the second shard")
        os.killpg(killed.pid, signal.SIGKILL)
    store_proxy.clear()
    with python(code, url, repr(store_proxy.options)) as one, python(code, url, repr(store_proxy.options)) as two:
        said = {each.communicate()[0] for each in (one, two)}

    assert len(said) == 1
    assert said.pop().startswith(f"{COUNT} ")
    assert store_proxy.count("GET .*tar bytes=0-") <= SHARDS
    assert [path.suffix for path in a_cache.iterdir()] == [".idx"] * SHARDS


def test_resuming_and_other_ranks(make: Any, bucket: Any, object_store: ObjectStore) -> None:
    source = millrace.RemoteShards(bucket(), storage_options=object_store.options)
    two = [make(source, rank=rank, world_size=2, batch_size=4) for rank in range(2)]
    for one in map(iter, two):
        for _ in range(3):
            next(one)
    other = make(source)

    other.load_state_dict(two[1].state_dict())
    assert epoch_of(other) == order_of(source)[24:]


def test_a_replaced_shard_is_never_mixed_up(make: Any, bucket: Any, archives: list[Path], object_store: ObjectStore) -> None:
    url = bucket()
    source = millrace.RemoteShards(url, storage_options=object_store.options)
    changed = bytearray(archives[1].read_bytes())
    changed[2000:2010] = b"0123456789"
    object_store.put(f"{url[5:]}train-1.tar", bytes(changed))
    loader = make(source, on_error="skip")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ids = epoch_of(loader)

    assert any(re.search(r"train-1.tar\[.* cannot be read, so its .* s3://.*has been replaced", str(one.message)) for one in caught)
    assert sorted(ids) == [n for n in range(COUNT) if n // 20 != 1]
    assert millrace.RemoteShards(url, storage_options=object_store.options).fingerprint != source.fingerprint


def test_what_passes_is_borne(make: Any, bucket: Any, store_proxy: StoreProxy) -> None:
    url = bucket()
    store_proxy.add("GET .*train-0.tar", status=503, times=2)
    source = millrace.RemoteShards(url, storage_options=store_proxy.options)
    busy = store_proxy.add("GET .*tar", status=503, times=2)
    cut = store_proxy.add("GET .*tar", cut=7000, share=0.3, seed=2)

    assert sorted(epoch_of(make(source))) == list(range(COUNT))
    assert busy.happened
    assert cut.happened


@pytest.mark.parametrize("fault", [{"status": 503}, {"hang": True}])
def test_a_loop_that_ends_while_the_store_is_down_does_not_hang(
    make: Any,
    bucket: Any,
    store_proxy: StoreProxy,
    fault: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MILLRACE_REMOTE_PATIENCE", "1e9")
    source = millrace.RemoteShards(bucket(), storage_options=store_proxy.options)
    with store_proxy.fault("GET .*train-2.tar", **fault) as down:
        loader = make(source, window=10_000_000, shuffle=False)
        next(iter(loader))
        eventually(lambda: down.happened > 0, "a block is asked for while the store is down")
        loader.close()
        eventually(lambda: not [one for one in threading.enumerate() if one.name.startswith("millrace-blocks")], "its threads end")


@pytest.mark.parametrize("size", [100, 3 * RANGE + 777])
def test_reading_ahead_reads_what_is_there(object_store: ObjectStore, size: int) -> None:
    data = np.random.default_rng(size).bytes(size)
    url = object_store.put(f"ahead/{size}", data)
    (one,) = objects_of(url, (), "shards", object_store.options)
    places = sorted(np.random.default_rng(1).integers(0, size, 300).tolist())
    with ReadAhead(one, threading.Event()) as read:
        for at in [*places, size - 3, size, size + 10, 0, size // 2]:
            assert read(5000, at) == data[at : at + 5000]
            assert read(600, max(0, at - 512)) == data[max(0, at - 512) :][:600]


def test_large_members_are_passed_over(object_store: ObjectStore, store_proxy: StoreProxy, tmp_path: Path) -> None:
    path = tmp_path / "large.tar"
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
        for n in range(3):
            for name, size in ((f"{n}.mp4", 3 * RANGE), (f"{n}.png", len(png(n)))):
                member = tarfile.TarInfo(name)
                member.size = size
                archive.addfile(member, io.BytesIO(bytes(size) if "mp4" in name else png(n)))
    url = object_store.put("large/large.tar", path.read_bytes())
    store_proxy.clear()
    source = millrace.RemoteShards(url, storage_options=store_proxy.options)

    assert store_proxy.bytes < 3 * RANGE
    store_proxy.clear()
    assert [bytes(row.source) for block in range(len(source.sizes)) for row in source.read(block)] == [png(n) for n in range(3)]
    assert store_proxy.bytes < RANGE
