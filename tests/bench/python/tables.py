"""Tables: our loaders beside ``datasets`` in a DataLoader, beside plain files, and beside the input ring. For bench.py.

The same photographs, each with a label: as files, in Arrow files that ``datasets`` wrote (``save_to_disk``), in a ``Dataset`` in memory,
whose rows come by the input ring, and in Parquet files with zstd over the images, by row groups. All make 224 x 224 float32 of the
training recipe; all but the row groups, which are mixed in blocks, are truly shuffled. One daemon serves all of ours. The peer's two
workers stay, and its images are decoded by Pillow. All files are in the page cache.

first, packed     whether the daemon keeps nothing, or packed forms; of each:
hf_ratio          images/s of the Arrow files by parts over those of plain files
cpu_ratio         processor time an image of the training process by parts over that by the input ring
datasets_ratio    images/s of the Arrow files by parts over the peer's
blocks_ratio      images/s of the compressed Parquet files over the peer's
"""

from __future__ import annotations

import argparse
import functools
import resource
import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import datasets
import millrace
import millrace.torch
import pyarrow.parquet
import torch
from torchvision.transforms import v2

BATCH, WORKERS, CLASSES, SHARDS, ROWS = 64, 2, 1000, 4, 100
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
EPOCHS = 3  # of ours in a turn; one of the peer's takes longer
SETTLED = 2  # seconds after which the daemon trusts that a file stays as it is; the least that it takes
KEPT: dict[str, dict[str, Any]] = {"first": {"cache": "off"}, "packed": {"cache": "packed", "cache_at_once": True}}


class Pace(NamedTuple):
    """Of a turn: images/s, and processor time of this process in us an image, the daemon's and workers' apart."""

    rate: float
    processor: float


def run(given: argparse.Namespace, files: Path, place: Path) -> dict[str, Any]:
    """Medians, and medians of the ratios in pairs."""
    paths = sorted(str(path) for path in files.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
    in_memory, on_disk, parquet = _tables(paths, place)
    settings = place / "millrace.toml"
    settings.write_text(f"[cache]\ndisk = 0\nsettled_seconds = {SETTLED}\n[daemon]\nstate_dir = {str(place / 'state')!r}\n")
    sources = {"files": millrace.Samples(paths, _labels(paths)), "arrow": on_disk, "ring": in_memory, "blocks": parquet}
    read_by = {"files": "the daemon", "arrow": f"the daemon, as parts of {SHARDS} files"}
    read_by |= {"ring": "the loader, row by row", "blocks": "the loader, in blocks"}
    theirs = _peer(on_disk)
    time.sleep(SETTLED + 1)
    found: dict[str, Any] = {}
    with millrace.serve([files, place], lanes=given.lanes, arguments=["--config", str(settings)]) as daemon, ExitStack() as stack:
        for kept, cache in KEPT.items():
            turns: dict[str, Callable[[], Pace]] = {"peer": functools.partial(_pace, theirs, 1)}
            for who, source in sources.items():
                shuffle = "blocks" if who == "blocks" else True
                options: dict[str, Any] = {"batch_size": BATCH, "shuffle": shuffle, "dtype": "float32", **cache}
                loader = stack.enter_context(millrace.torch.Loader(source, millrace.Recipe.train(224), address=daemon.address, **options))
                _pace(loader, 2)
                if not loader.read_by.startswith(read_by[who]):
                    raise SystemExit(f"tables: {who} is read by {loader.read_by}")
                turns[who] = functools.partial(_pace, loader, EPOCHS)
            found[kept] = _compared(given.rounds, turns)
    return found


def _labels(paths: list[str]) -> list[int]:
    return [number % CLASSES for number in range(len(paths))]


def _tables(paths: list[str], place: Path) -> tuple[Any, Any, Any]:
    """A ``Dataset`` in memory, the same in Arrow files, and compressed Parquet files of the same rows."""
    datasets.disable_progress_bars()
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(num_classes=CLASSES)})
    images = [{"bytes": Path(path).read_bytes(), "path": None} for path in paths]
    in_memory = datasets.Dataset.from_dict({"image": images, "label": _labels(paths)}, features=features)
    in_memory.save_to_disk(place / "arrow", num_shards=SHARDS)
    (place / "parquet").mkdir()
    for number in range(SHARDS):
        rows = in_memory.shard(SHARDS, number).data.table
        pyarrow.parquet.write_table(rows, place / "parquet" / f"t-{number}.parquet", compression="zstd", row_group_size=ROWS)
    return in_memory, datasets.load_from_disk(place / "arrow"), millrace.Parquet(place / "parquet")


def _peer(on_disk: Any) -> Any:
    """The Arrow files in a DataLoader; its workers have started."""
    steps = [v2.RandomResizedCrop(224, antialias=True), v2.RandomHorizontalFlip(), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]
    transform = v2.Compose([*steps, v2.Normalize(MEAN, STD)])

    def transformed(rows: dict[str, list[Any]]) -> dict[str, list[Any]]:
        return {"image": [transform(image.convert("RGB")) for image in rows["image"]], "label": rows["label"]}

    rows = on_disk.with_transform(transformed)
    pairs = torch.utils.data.DataLoader(rows, BATCH, shuffle=True, num_workers=WORKERS, persistent_workers=True, collate_fn=_pair)
    _pace(pairs, 1)
    return pairs


def _pair(rows: list[dict[str, Any]]) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.stack([row["image"] for row in rows]), torch.tensor([row["label"] for row in rows])


def _pace(loader: Any, epochs: int) -> Pace:
    began, before, images = time.monotonic(), _processor(), 0
    for _ in range(epochs):
        images += sum(len(labels) for _, labels in loader)
    return Pace(images / (time.monotonic() - began), (_processor() - before) / images * 1e6)


def _processor() -> float:
    """Seconds of this process's own."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _compared(rounds: int, turns: dict[str, Callable[[], Pace]]) -> dict[str, float]:
    paces: dict[str, list[Pace]] = {who: [] for who in turns}
    for number in range(rounds):  # who is first alternates
        for who in list(turns) if number % 2 else reversed(turns):
            paces[who].append(turns[who]())

    def ratio(one: str, other: str, field: int) -> float:
        return statistics.median(a[field] / b[field] for a, b in zip(paces[one], paces[other], strict=True))

    ratios = {"hf_ratio": ratio("arrow", "files", 0), "cpu_ratio": ratio("arrow", "ring", 1)}
    ratios |= {"datasets_ratio": ratio("arrow", "peer", 0), "blocks_ratio": ratio("blocks", "peer", 0)}
    medians = {f"{who}_images_per_s": statistics.median(pace.rate for pace in found) for who, found in paces.items()}
    times = {f"{who}_cpu_us": statistics.median(pace.processor for pace in found) for who, found in paces.items() if who != "peer"}
    return {**ratios, **medians, **times}
