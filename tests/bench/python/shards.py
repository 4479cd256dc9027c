"""Tar shards: our loader beside webdataset's pipeline in a DataLoader and beside plain files, and the making of indexes. For bench.py.

The shards are written by ``webdataset.ShardWriter``: photographs, each with a label. Both sides make 224 x 224 float32 of the training
recipe. Ours is truly shuffled. webdataset's has two workers that stay, shards in random order and a buffer of 1,000 samples; batches are
made in the workers. All files are in the page cache.

first_ratio, packed_ratio   images/s of the first epoch of a fresh daemon, and of its third, over webdataset's
parts_first, parts_packed   the same of ours over a list of the same files
disk_ratio                  the first epoch of a fresh daemon over webdataset's, both through a disk of 200 MB/s and 0.5 ms a request, new
                            to both
disk_blocks                 the same of ours with shuffle="blocks" over shuffle=True
index_us                    us a member to read 100,000 headers and write the index: members of 5 kB, a label and an image a sample
open_s                      seconds to open these by the index
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import millrace
import millrace.torch
import torch
import webdataset
from PIL import Image
from torchvision.transforms import v2

from slow_disk import mounted

BATCH, WORKERS = 64, 2
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
MEMBERS, MEMBER = 100_000, 5000
MB_PER_S, MS_PER_REQUEST = 200, 0.5


def run(given: argparse.Namespace, files: Path, place: Path) -> dict[str, Any]:
    """Medians, and medians of the ratios in pairs."""
    os.environ["XDG_CACHE_HOME"] = str(place / "cache")
    paths = sorted(str(path) for path in files.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
    shards = place / "shards"
    shards.mkdir()
    with webdataset.ShardWriter(str(shards / "train-%04d.tar"), maxcount=500, verbose=0) as writer:
        for number, path in enumerate(paths):
            writer.write({"__key__": f"{number:08d}", "jpg": Path(path).read_bytes(), "cls": number % 1000})
    rates: dict[str, list[float]] = {}
    for number in range(given.rounds):  # who is first alternates
        for who in (_shards, _files, _theirs) if number % 2 else (_theirs, _files, _shards):
            for name, rate in who(given, shards, paths).items():
                rates.setdefault(name, []).append(rate)
    pairs = {"first_ratio": ("shards_first", "webdataset"), "packed_ratio": ("shards_packed", "webdataset"),
             "parts_first": ("shards_first", "files_first"), "parts_packed": ("shards_packed", "files_packed")}  # fmt: skip
    ratios = {name: statistics.median(a / b for a, b in zip(rates[one], rates[other], strict=True)) for name, (one, other) in pairs.items()}
    medians = {f"{name}_images_per_s": statistics.median(found) for name, found in rates.items()}
    return {**ratios, **medians, **_slowly(given, shards, place), **_index(given, place)}


def _slowly(given: argparse.Namespace, shards: Path, place: Path) -> dict[str, Any]:
    """First epochs through a slow disk. Each finds it without pages."""
    if not os.access("/dev/fuse", os.W_OK) or os.getuid() or importlib.util.find_spec("mfusepy") is None:
        return {"disk_note": "left out: a slow disk is mounted by root, with /dev/fuse, fuse3 and mfusepy"}
    rates: dict[str, list[float]] = {}
    for number in range(given.rounds):
        for who in ("disk_true", "disk_shuffled_in_blocks", "disk_webdataset")[:: -1 if number % 2 else 1]:
            with mounted(shards, place / "slow", MB_PER_S, MS_PER_REQUEST) as slow:
                if who == "disk_webdataset":
                    (rate,) = _theirs(given, slow, [], _forget).values()
                else:
                    rate, _ = _ours(given, millrace.Shards(slow), slow, 1, "blocks" if "blocks" in who else True)
            rates.setdefault(who, []).append(rate)
    pairs = {"disk_ratio": ("disk_true", "disk_webdataset"), "disk_blocks": ("disk_shuffled_in_blocks", "disk_true")}
    ratios = {name: statistics.median(a / b for a, b in zip(rates[one], rates[other], strict=True)) for name, (one, other) in pairs.items()}
    return {**ratios, **{f"{name}_images_per_s": statistics.median(found) for name, found in rates.items()}}


def _forget(folder: Path) -> None:
    """The kernel's pages of the files in it."""
    for path in folder.iterdir():
        with open(path, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _shards(given: argparse.Namespace, shards: Path, paths: list[str]) -> dict[str, float]:
    del paths
    first, packed = _ours(given, millrace.Shards(shards), shards)
    return {"shards_first": first, "shards_packed": packed}


def _files(given: argparse.Namespace, shards: Path, paths: list[str]) -> dict[str, float]:
    del shards
    first, packed = _ours(given, millrace.Samples(paths, [number % 1000 for number in range(len(paths))]), Path(os.path.commonpath(paths)))
    return {"files_first": first, "files_packed": packed}


def _ours(given: argparse.Namespace, samples: Any, root: Path, epochs: int = 3, shuffle: Any = True) -> tuple[float, float]:
    """Of the first epoch, and of the last: of three the second packs what that takes."""
    with millrace.serve(root, lanes=given.lanes) as daemon:
        options: dict[str, Any] = {"batch_size": BATCH, "slots": 4, "address": daemon.address, "shuffle": shuffle, "on_error": "skip"}
        with millrace.torch.Loader(samples, millrace.Recipe.train(224), **options) as loader:
            rates = [_rate(loader) for _ in range(epochs)]
    return rates[0], rates[-1]


def _rate(loader: Any) -> float:
    began, images = time.monotonic(), 0
    for _, labels in loader:
        images += len(labels)
    return images / (time.monotonic() - began)


def _theirs(given: argparse.Namespace, shards: Path, paths: list[str], forget: Callable[[Path], None] = lambda _: None) -> dict[str, float]:
    """Of the second epoch; the first one starts the workers."""
    del given, paths
    steps = [v2.RandomResizedCrop(224, antialias=True), v2.RandomHorizontalFlip(), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]
    transform = v2.Compose([*steps, v2.Normalize(MEAN, STD)])
    urls = sorted(str(path) for path in shards.glob("*.tar"))
    pipeline = webdataset.WebDataset(urls, shardshuffle=len(urls), seed=1).shuffle(1000)
    pipeline = pipeline.map(lambda row: (transform(Image.open(io.BytesIO(row["jpg"])).convert("RGB")), int(row["cls"])))
    loader = torch.utils.data.DataLoader(pipeline.batched(BATCH), batch_size=None, num_workers=WORKERS, persistent_workers=True)
    _rate(loader)
    forget(shards)
    return {"webdataset": _rate(loader)}


def _index(given: argparse.Namespace, place: Path) -> dict[str, float]:
    path = place / "members.tar"
    with webdataset.TarWriter(str(path), mtime=7) as writer:
        for number in range(MEMBERS // 2):
            writer.write({"__key__": f"{number:08d}", "jpg": b"\xff" * MEMBER, "cls": number % 1000})
    made, opened = [], []
    for _ in range(given.rounds):
        path.with_suffix(".idx").unlink(missing_ok=True)
        for times in (made, opened):
            began = time.perf_counter()
            assert len(millrace.Shards(path)) == MEMBERS // 2
            times.append(time.perf_counter() - began)
    return {"index_us": statistics.median(made) / MEMBERS * 1e6, "open_s": statistics.median(opened)}
