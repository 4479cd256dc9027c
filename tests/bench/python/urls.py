"""Tar shards behind URLs: our loader beside s3fs alone, which reads the same objects and makes nothing of them. For bench.py.

The store is range_server.py, in a process of its own: each request takes 20 ms, the bytes come from the page cache. Nothing limits the
connections but the processors that both sides share with the server: its part of a core is among the figures. s3fs reads 16 ranges of 8 MiB
at once. Ours are whole epochs, shuffled by blocks, from the first call to the last batch; a window of 128 MiB; the daemon keeps nothing.

ratio               MB/s of RemoteShards over s3fs's, a median of pairs: BMP files of 224 x 224, which take no decoding
photos_ratio        the same of photographs, RandomResizedCrop 224: decoding them takes most of both cores
mb_per_s, alone_mb_per_s, photos_mb_per_s, photos_alone_mb_per_s    medians
client, daemon, server    of a core, which each process took in our epochs of the former
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import statistics
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fsspec
import millrace
import millrace.numpy
import numpy as np

REQUEST = 0.02  # seconds
RANGE, AT_ONCE = 8 << 20, 16
SHARDS, SIDE, EACH = 8, 224, 800
WINDOW = 128 << 20  # of data that is smaller than usual: an epoch begins once half a window has been read


def run(given: argparse.Namespace, files: Path, place: Path) -> dict[str, float]:
    """The figures."""
    os.environ["XDG_CACHE_HOME"] = str(place / "cache")
    photographs = sorted(path for path in files.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
    store = place / "store"
    store.mkdir()
    for shard in range(SHARDS):
        with tarfile.open(store / f"plain-{shard}.tar", "w") as archive:
            _fill(archive, place, shard)
        with tarfile.open(store / f"photos-{shard}.tar", "w") as archive:
            for number, path in enumerate(photographs[shard::SHARDS]):
                archive.add(path, f"{number:06}.jpg")
    with _served(store) as (pid, options), millrace.serve(store, lanes=given.lanes) as daemon:
        plain = _pairs(given, "plain", options, daemon, pid, millrace.Recipe(resize=millrace.ExactSize(millrace.Size(SIDE, SIDE))))
        photos = _pairs(given, "photos", options, daemon, pid, millrace.Recipe.train(SIDE))
    return {**plain, **{f"photos_{name}": value for name, value in photos.items() if name not in ("client", "daemon", "server")}}


def _fill(archive: tarfile.TarFile, place: Path, shard: int) -> None:
    """Pictures without compression, 150 kB each."""
    dice, path = np.random.default_rng(shard), place / "picture.bmp"
    head = b"BM" + (54 + 3 * SIDE * SIDE).to_bytes(4, "little") + bytes(4) + (54).to_bytes(4, "little")
    head += b"".join(value.to_bytes(4, "little") for value in (40, SIDE, SIDE, 1 | 24 << 16, 0, 3 * SIDE * SIDE, 2835, 2835, 0, 0))
    for number in range(EACH):
        path.write_bytes(head + dice.bytes(3 * SIDE * SIDE))
        archive.add(path, f"{number:06}.bmp")


@contextmanager
def _served(store: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    command = [sys.executable, str(Path(__file__).parent / "range_server.py"), str(store), str(REQUEST)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{int(server.stdout.readline())}"
        yield server.pid, {"key": "a", "secret": "b", "client_kwargs": {"endpoint_url": url, "region_name": "us-east-1"}}
        server.kill()


def _pairs(
    given: argparse.Namespace, name: str, options: dict[str, Any], daemon: millrace.PrivateDaemon, server: int, recipe: millrace.Recipe
) -> dict[str, float]:
    shards = millrace.RemoteShards(f"s3://bucket/{name}-{{0..{SHARDS - 1}}}.tar", storage_options=options)
    sizes = dict(zip(shards.shards, _sizes(shards.shards, options), strict=True))
    megabytes = sum(sizes.values()) / 1e6
    found: dict[str, list[float]] = {"mb_per_s": [], "alone_mb_per_s": [], "client": [], "daemon": [], "server": []}
    with millrace.numpy.Loader(
        shards, recipe, batch_size=64, shuffle="blocks", window=WINDOW, cache="off", address=daemon.address
    ) as loader:
        for _ in loader:  # opens the session, and warms up
            pass
        for number in range(given.rounds):  # who is first alternates
            for ours in (True, False) if number % 2 else (False, True):
                before, began = _used(daemon.pid, server), time.monotonic()
                if ours:
                    assert sum(len(images) for images, *_ in loader) == len(shards)
                else:
                    _alone(sizes, options)
                took = time.monotonic() - began
                found["mb_per_s" if ours else "alone_mb_per_s"].append(megabytes / took)
                if ours:
                    for who, seconds in _used(daemon.pid, server).items():
                        found[who].append((seconds - before[who]) / took)
    ratio = statistics.median(a / b for a, b in zip(found["mb_per_s"], found["alone_mb_per_s"], strict=True))
    return {"ratio": ratio, **{what: statistics.median(values) for what, values in found.items()}}


def _sizes(urls: tuple[str, ...], options: dict[str, Any]) -> list[int]:
    store = fsspec.filesystem("s3", **options)
    return [store.size(url) for url in urls]


def _alone(sizes: dict[str, int], options: dict[str, Any]) -> None:
    store = fsspec.filesystem("s3", config_kwargs={"max_pool_connections": AT_ONCE}, **options)

    async def all_ranges() -> None:
        room = asyncio.Semaphore(AT_ONCE)

        async def one(url: str, begin: int, end: int) -> None:
            async with room:
                assert len(await store._cat_file(url, start=begin, end=end)) == end - begin

        ranges = [(url, at, min(at + RANGE, size)) for url, size in sizes.items() for at in range(0, size, RANGE)]
        await asyncio.gather(*(one(*each) for each in ranges))

    fsspec.asyn.sync(store.loop, all_ranges)


def _used(daemon: int, server: int) -> dict[str, float]:
    """Seconds of a processor."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    return {"client": own.ru_utime + own.ru_stime, "daemon": _of_process(daemon), "server": _of_process(server)}


def _of_process(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
