"""The work: as many copies of the photographs as a pass has images, and the boxes and flips that Millrace draws for them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import millrace
from PIL import Image

from work import BATCH, SIDE

EPOCHS = 3
_JPEG = b"\xff\xd8\xff"


def prepare(source: Path, place: Path, images: int) -> Path:
    """Returns the file to give to the workers; makes it and ``images`` copies unless they are there.

    Photographs take turns; of more than ``images`` the first ones are taken.
    """
    photographs = [path for path in sorted(source.rglob("*")) if path.is_file() and _starts_with(path, _JPEG)][:images]
    if not photographs:
        raise SystemExit(f"no JPEG files in {source}")
    taken = [[path.name, path.stat().st_size] for path in photographs]
    description = {"source": str(source), "photographs": taken, "images": images, "epochs": EPOCHS}
    made = place / "work.json"
    if made.exists() and json.loads(made.read_text())["description"] == description:
        return made
    folder, warm = place / "photographs", place / "warm"
    for target, count in ((folder, images), (warm, len(photographs))):
        _copy(photographs, target, count)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    sizes = [_size(path) for path in files]
    work: dict[str, Any] = {"description": description, "folder": str(folder), "warm_folder": str(warm), "distinct": len(photographs)}
    work |= {"files": [str(path) for path in files], "sizes": sizes, "epochs": _drawn(folder, sizes)}
    made.write_text(json.dumps(work))
    return made


def _starts_with(path: Path, magic: bytes) -> bool:
    with path.open("rb") as file:
        return file.read(len(magic)) == magic


def _copy(photographs: list[Path], target: Path, count: int) -> None:
    shutil.rmtree(target, ignore_errors=True)
    (target / "class").mkdir(parents=True)
    for number in range(count):
        path = photographs[number % len(photographs)]
        shutil.copyfile(path, target / "class" / f"{number:05d}_{path.name}")


def _size(path: Path) -> tuple[int, int]:
    with Image.open(path) as picture:
        return picture.size


def _drawn(folder: Path, sizes: list[tuple[int, int]]) -> list[dict[str, Any]]:
    """Of each epoch; the daemon numbers files in the order of their names."""
    with (
        millrace.serve(folder) as daemon,
        millrace.connect(daemon.address) as client,
        client.session(millrace.Recipe.train(SIDE), batch=BATCH) as session,
    ):
        dataset = session.dataset(folder)
        return [_epoch(dataset, number, sizes) for number in range(EPOCHS)]


def _epoch(dataset: millrace.Dataset, number: int, sizes: list[tuple[int, int]]) -> dict[str, Any]:
    boxes: list[Any] = [None] * len(sizes)
    flips: list[Any] = [None] * len(sizes)
    for batch in dataset.epoch(epoch=number, on_error="fail"):
        with batch:
            for index, box, flip, size in zip(batch.ids, batch.boxes, batch.flips, batch.source_sizes, strict=True):
                if tuple(size) != tuple(sizes[index]):
                    raise SystemExit(f"the daemon's file {index} has {tuple(size)} pixels, not {sizes[index]}: another order?")
                boxes[index], flips[index] = [int(value) for value in box], bool(flip)
    return {"boxes": boxes, "flips": flips}
