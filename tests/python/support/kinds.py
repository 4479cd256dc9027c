"""The tests' pictures in every kind of dataset that holds files' bytes, as the libraries of each kind write them, and how each is opened.

Sample n has the pixels of ``pixels_of(n)``, the label ``n % CLASSES`` and the JSON ``json_of(n)``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import millrace

from pictures import png

CLASSES, SHARDS, ROWS = 7, 5, 40
WINDOW = 2 << 20
"""Bytes that ``shuffle="blocks"`` mixes: a few blocks of ROWS or of a shard of some 100 samples, or one of the daemon's."""


def json_of(number: int) -> dict[str, Any]:
    """What is beside the image and the label."""
    return {"n": number, "text": f"picture {number}"}


def write_all(place: Path, count: int) -> None:
    """Every kind in a folder of its own; needs datasets, pyarrow and webdataset."""
    _write_files(place / "files", count)
    for ending in ("tar", "tar.gz"):
        _write_shards(place / ending, ending, count)
    _write_tables(place, count)


def _write_files(folder: Path, count: int) -> None:
    folder.mkdir()
    for number in range(count):
        (folder / f"{number:06d}.png").write_bytes(png(number))


def _write_shards(folder: Path, ending: str, count: int) -> None:
    import webdataset

    folder.mkdir()
    with webdataset.ShardWriter(f"{folder}/t-%02d.{ending}", maxcount=-(-count // SHARDS), verbose=0) as writer:
        for n in range(count):
            writer.write({"__key__": f"{n:06d}", "png": png(n), "cls": n % CLASSES, "json": json_of(n)})


def _write_tables(place: Path, count: int) -> None:
    import datasets
    import pyarrow
    import pyarrow.parquet

    datasets.disable_progress_bars()
    features = {"image": datasets.Image(), "label": datasets.ClassLabel(num_classes=CLASSES)}
    features["json"] = {"n": datasets.Value("int64"), "text": datasets.Value("string")}
    rows = {"label": [n % CLASSES for n in range(count)], "json": [json_of(n) for n in range(count)]}
    images = [{"bytes": png(n), "path": None} for n in range(count)]
    table = datasets.Dataset.from_dict({"image": images, **rows}, features=datasets.Features(features))
    table.save_to_disk(place / "saved", num_shards=2)
    for folder in ("plain", "snappy", "pyarrow"):
        (place / folder).mkdir()
    for number in range(2):
        shard = table.shard(2, number)
        shard.to_parquet(place / "plain" / f"t-{number}.parquet")
        pyarrow.parquet.write_table(shard.data.table, place / "snappy" / f"t-{number}.parquet", compression="snappy", row_group_size=ROWS)
    by_pyarrow = pyarrow.table({"image": pyarrow.array([image["bytes"] for image in images], pyarrow.binary()), **rows})
    pyarrow.parquet.write_table(by_pyarrow, place / "pyarrow" / "t.parquet", compression={"image": "NONE"}, use_dictionary=["label"])
    _open_cache(place)


def _open_cache(place: Path) -> Any:
    """The Arrow file that ``datasets`` makes of Parquet files in its cache, the first time."""
    import datasets

    datasets.disable_progress_bars()
    files = sorted(str(path) for path in (place / "plain").iterdir())
    return millrace.Encoded(datasets.Dataset.from_parquet(files, cache_dir=str(place / "cache")), columns=["json"])


def _open_saved(place: Path) -> Any:
    import datasets

    return millrace.Encoded(datasets.load_from_disk(place / "saved"), columns=["json"])


def _open_files(place: Path) -> Any:
    paths = sorted(str(path) for path in (place / "files").iterdir())
    numbers = range(len(paths))
    return millrace.Samples(paths, {"label": [n % CLASSES for n in numbers], "json": [json_of(n) for n in numbers]})


class Kind(NamedTuple):
    """One of them.

    Attributes:
        open: gives what a loader takes, of the folder that ``write_all`` was given.
        read_by: how the loader's ``read_by`` begins.
        options: of the loader, for a shuffled epoch.
    """

    open: Callable[[Path], Any]
    read_by: str
    options: dict[str, Any]


_MIXED: dict[str, Any] = {"shuffle": True}
_IN_BLOCKS: dict[str, Any] = {"shuffle": "blocks", "window": WINDOW}
KINDS = {
    "files": Kind(_open_files, "the daemon", _MIXED),
    "shards": Kind(lambda place: millrace.Shards(place / "tar", columns=["json"]), "the daemon", _MIXED),
    "shards in blocks": Kind(lambda place: millrace.Shards(place / "tar", columns=["json"]), "the daemon", _IN_BLOCKS),
    "compressed shards": Kind(
        lambda place: millrace.CompressedShards(place / "tar.gz", columns=["json"]), "the loader, in blocks", _IN_BLOCKS
    ),
    "Arrow cache": Kind(_open_cache, "the daemon, as parts of 1 file", _MIXED),
    "save_to_disk": Kind(_open_saved, "the daemon, as parts of 2 files", _MIXED),
    "Parquet": Kind(lambda place: millrace.Parquet(place / "plain", columns=["json"]), "the daemon, as parts of 2 files", _MIXED),
    "compressed Parquet": Kind(lambda place: millrace.Parquet(place / "snappy", columns=["json"]), "the loader, in blocks", _IN_BLOCKS),
    "Parquet of pyarrow": Kind(
        lambda place: millrace.Parquet(place / "pyarrow", columns=["json"]), "the daemon, as parts of 1 file", _MIXED
    ),
}
