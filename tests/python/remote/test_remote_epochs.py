"""Epochs of sources behind URLs, through a proxy that delays, cuts and refuses: nothing is lost, doubled or another's, on several ranks."""

from __future__ import annotations

import io
import json
import os
import random
import signal
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import millrace
import millrace.numpy
import numpy as np
import pytest
from millrace._remote import objects, requests
from millrace._remote import shards as remote_shards

from archives import write_tar
from object_store import ObjectStore
from pictures import png_of
from processes import python
from store_proxy import Fault, StoreProxy

RANKS = 4
SEVERAL = 7  # labels


@dataclass(frozen=True)
class Sea:
    """How much is read, and how rough it is.

    Attributes:
        epochs: of each kind of source.
        count: of pictures.
        side: of them, in pixels.
        block: bytes of a block of a shard.
        range_bytes: of a range.
        delay: seconds a request.
        share: of requests, of each fault.
        hangs: whether some requests have no answer, and the store refuses all of them for a second at times.
    """

    epochs: int
    count: int
    side: int
    block: int
    range_bytes: int
    delay: float
    share: float
    hangs: bool

    def faults(self, proxy: StoreProxy) -> list[Fault]:
        dice = random.Random(7)
        proxy.clear()
        proxy.delay = self.delay
        cuts = [0, 1, self.range_bytes - 1, dice.randrange(self.range_bytes), dice.randrange(self.range_bytes)]
        found = [proxy.add("^GET", cut=cut, share=self.share, seed=seed) for seed, cut in enumerate(cuts)]
        found += [proxy.add(status=status, share=self.share, seed=status) for status in (429, 500, 503)]
        if self.hangs:
            found.append(proxy.add("^GET", hang=True, share=self.share / 10))
        return found


CALM = Sea(epochs=2, count=60, side=40, block=50_000, range_bytes=20_000, delay=0.002, share=0.02, hangs=False)
ROUGH = Sea(epochs=20, count=120, side=300, block=2 << 20, range_bytes=512 << 10, delay=0.02, share=0.02, hangs=True)


@pytest.fixture(name="sea", params=["calm", pytest.param("rough", marks=pytest.mark.long)], scope="module")
def a_sea(request: pytest.FixtureRequest) -> Sea:
    return ROUGH if request.param == "rough" else CALM


@pytest.fixture(name="local", scope="module")
def local_shards(sea: Sea, folder: Path) -> list[Path]:
    """Three shards of pictures, beneath the daemon's root."""
    home = folder.parent / f"epochs-{sea.side}"
    home.mkdir()
    each = sea.count // 3
    return [write_tar(home / f"t-{k}.tar", members(sea, range(k * each, (k + 1) * each))) for k in range(3)]


def members(sea: Sea, numbers: range) -> Iterator[tuple[str, bytes]]:
    for n in numbers:
        yield f"{n:05}.png", picture(sea, n)
        yield f"{n:05}.cls", b"%d" % (n % SEVERAL)


def picture(sea: Sea, number: int) -> bytes:
    return png_of(np.random.default_rng(number).integers(0, 256, (sea.side, sea.side, 3), np.uint8))


@pytest.fixture(autouse=True)
def small_requests(sea: Sea, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(remote_shards, "BLOCK", sea.block)
    monkeypatch.setattr(objects, "RANGE", sea.range_bytes)
    monkeypatch.setattr(requests, "_ANSWER", 5.0)


Samples = list[tuple[int, int, int]]


def samples_of(loader: Any) -> Samples:
    """Id, label and checksum of the pixels of what an epoch, or what is left of it, gives."""
    seen = []
    for images, labels in loader:
        for number, label, image in zip(loader.batch.ids.tolist(), labels.tolist(), images, strict=True):
            seen.append((number, label, zlib.crc32(image)))
    return seen


@pytest.fixture(name="loader")
def make_loader(sea: Sea, daemon: millrace.PrivateDaemon) -> Iterator[Callable[..., Any]]:
    recipe = millrace.Recipe(resize=millrace.ExactSize(millrace.Size(sea.side, sea.side)), layout="NHWC")
    made = []

    def loader(source: Any, **options: Any) -> Any:
        given = {"batch_size": 4, "address": daemon.address, "seed": 5, **options}
        made.append(millrace.numpy.Loader(source, recipe, **given))
        return made[-1]

    yield loader
    for one in made:
        one.close()


def shards(store: ObjectStore, local: list[Path], sea: Sea, options: dict[str, Any]) -> Any:
    for path in local:
        store.put(f"epochs-{sea.side}/{path.name}", path.read_bytes())
    return millrace.RemoteShards(f"s3://epochs-{sea.side}/", storage_options=options)


def copied(store: ObjectStore, local: list[Path], sea: Sea, options: dict[str, Any]) -> Any:
    """Later epochs are out of the copies."""
    return millrace.RemoteShards(shards(store, local, sea, options).shards, storage_options=options, copy_to=local[0].parent / "copies")


def partly_copied(store: ObjectStore, local: list[Path], sea: Sea, options: dict[str, Any]) -> Any:
    """One of the shards has room."""
    most = max(path.stat().st_size for path in local)
    urls = shards(store, local, sea, options).shards
    return millrace.RemoteShards(urls, storage_options=options, copy_to=local[0].parent / "some copies", copy_bytes=most)


def compressed(store: ObjectStore, local: list[Path], sea: Sea, options: dict[str, Any]) -> Any:
    for path in local:
        store.put(f"epochs-{sea.side}/{path.name}.gz", zlib.compress(path.read_bytes(), 1, wbits=31))
    return millrace.CompressedShards(f"s3://epochs-{sea.side}/t-*.tar.gz", storage_options=options)


def tables(store: ObjectStore, local: list[Path], sea: Sea, options: dict[str, Any]) -> Any:
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: Parquet files are not tried")
    import pyarrow.parquet as pq

    each = sea.count // len(local)
    for k in range(len(local)):
        numbers = range(k * each, (k + 1) * each)
        table = pa.table({"image": pa.array([picture(sea, n) for n in numbers]), "label": [n % SEVERAL for n in numbers]})
        out = io.BytesIO()
        pq.write_table(table, out, row_group_size=7)
        store.put(f"epochs-{sea.side}/t-{k}.parquet", out.getvalue())
    return millrace.Parquet(f"s3://epochs-{sea.side}/t-*.parquet", storage_options=options)


def files(store: ObjectStore, local: list[Path], sea: Sea, options: dict[str, Any]) -> Any:
    del local
    urls = [store.put(f"epochs-{sea.side}/{n:05}.png", picture(sea, n)) for n in range(sea.count)]
    return millrace.RemoteFiles([(url, n % SEVERAL) for n, url in enumerate(urls)], storage_options=options)


@pytest.mark.parametrize("kind", [shards, copied, partly_copied, compressed, pytest.param(tables, marks=pytest.mark.torch), files])
def test_epochs_of_several_ranks_are_those_of_the_local_source(
    kind: Callable[..., Any], sea: Sea, local: list[Path], object_store: ObjectStore, store_proxy: StoreProxy, loader: Any
) -> None:
    expected = samples_of(loader(millrace.Shards(local), shuffle=False))
    assert [number for number, _, _ in expected] == list(range(sea.count))
    faults = sea.faults(store_proxy)
    source = kind(object_store, local, sea, store_proxy.options)

    window = 32 * sea.block if kind is not files else 16 << 20
    ranks = [loader(source, shuffle="blocks", window=window, rank=rank, world_size=RANKS) for rank in range(RANKS)]
    with ThreadPoolExecutor(RANKS) as threads:
        for _ in range(sea.epochs):
            if sea.hangs:
                store_proxy.add(status=503, seconds=1.0)
            parts = list(threads.map(samples_of, ranks))
            assert [len(part) for part in parts] == [sea.count // RANKS] * RANKS
            assert sorted(sample for part in parts for sample in part) == expected
    assert sum(fault.happened for fault in faults) >= sea.epochs


TRAINER = """
import json, sys, zlib
import millrace, millrace.numpy
from millrace._remote import shards as remote
given = json.loads(sys.argv[1])
remote.BLOCK = given["block"]
source = millrace.RemoteShards(given["url"], storage_options=given["options"], copy_to=given["copies"])
size = millrace.ExactSize(millrace.Size(given["side"], given["side"]))
options = dict(batch_size=4, seed=5, shuffle="blocks", window=32 * given["block"], address=given["address"])
with millrace.numpy.Loader(source, millrace.Recipe(resize=size, layout="NHWC"), **options) as loader:
    if given["state"]:
        loader.load_state_dict(given["state"])
    while True:
        for images, labels in loader:
            rows = [[n, label, zlib.crc32(image)] for n, label, image in zip(loader.batch.ids.tolist(), labels.tolist(), images)]
            print(json.dumps([rows, loader.state_dict()]), flush=True)
"""


@pytest.mark.long
def test_trainers_that_are_killed_while_they_copy_lose_nothing(
    sea: Sea, local: list[Path], object_store: ObjectStore, store_proxy: StoreProxy, loader: Any, daemon: millrace.PrivateDaemon
) -> None:
    """Each goes on where the one before was killed. No half copy has a whole one's name at any time."""
    expected = samples_of(loader(millrace.Shards(local), shuffle=False))
    sea.faults(store_proxy)
    home = local[0].parent / "copies of the killed"
    given: dict[str, Any] = {
        "url": list(shards(object_store, local, sea, store_proxy.options).shards), "options": store_proxy.options, "copies": str(home),
        "block": sea.block, "side": sea.side, "address": daemon.address, "state": None,
    }  # fmt: skip
    dice = random.Random(os.environ.get("MILLRACE_TEST_SEED", "3"))
    contents = [path.read_bytes() for path in local]
    seen: list[tuple[int, int, int]] = []
    kills = 0
    while len(seen) < sea.epochs * sea.count:
        with python(TRAINER, json.dumps(given)) as trainer:
            assert trainer.stdout is not None
            for _ in range(dice.randrange(2 * sea.count // 4)):
                line = trainer.stdout.readline()
                assert line.endswith("\n"), trainer.communicate()
                rows, given["state"] = json.loads(line)
                seen += [tuple(row) for row in rows]
            trainer.send_signal(signal.SIGKILL)
            kills += 1
        assert all(path.read_bytes() in contents for path in home.glob("*.tar"))
        if kills % 3 == 0:  # later trainers copy as well
            for path in sorted(home.glob("*.tar"))[:2]:
                path.unlink()
    for epoch in range(sea.epochs):
        assert sorted(seen[epoch * sea.count : (epoch + 1) * sea.count]) == expected
    assert kills >= sea.epochs / 2
