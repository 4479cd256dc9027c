"""Recipes that people train with, each image made by the GPU alone: bit for bit what the processor makes.

    recipes.py FOLDER [COUNT]

FOLDER has JPEG photographs; COUNT of them are taken (default 48), again from the first where there are fewer. $MILLRACE_DAEMON is the
daemon's program. Requests are pinned, so that no other backend makes an image in the place of the one that is asked.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import millrace
import numpy as np
from frameworks import serving
from millrace import recipes, steps

BATCH = 16


def randaugment() -> millrace.Recipe:
    return dataclasses.replace(millrace.Recipe.train(224), steps=(steps.RandAugment(),)).normalised("float16")


RECIPES = {
    "imagenet_v2": recipes.imagenet_v2(),
    "a1": recipes.a1(),
    "randaugment": randaugment(),
    "simclr": recipes.simclr(),
    "letterbox": recipes.letterbox(320),
}


def photographs(folder: Path, count: int) -> list[Path]:
    found = sorted(path for path in folder.rglob("*") if path.suffix.lower() in {".jpg", ".jpeg"})
    assert found, f"{folder} has no photographs"
    return [found[number % len(found)] for number in range(count)]


def made(session: millrace.Session, files: list[Path], backend: str) -> Iterator[tuple[millrace.Batch, list[np.ndarray]]]:
    """Batches by that backend; its images, view by view, as bytes. Samples that come twice are drawn anew."""
    for first in range(0, len(files), BATCH):
        samples = [millrace.Sample(str(path), id=first + i) for i, path in enumerate(files[first : first + BATCH])]
        with session.get(session.submit(samples, seed=11, backend=backend)) as batch:
            assert not batch.errors, f"{backend}: {batch.errors}"
            tensors = batch.views or (batch.images,)
            yield batch, [np.ascontiguousarray(tensor.bits()).view(np.uint8).copy() for tensor in tensors]


def compare(client: millrace.Client, name: str, recipe: millrace.Recipe, files: list[Path]) -> None:
    begun = time.monotonic()
    with client.session(recipe, BATCH, 1) as here, client.session(recipe, BATCH, 1) as there:
        for (_, expected), (_, tensors) in zip(made(here, files, "cpu"), made(there, files, "cuda:0"), strict=True):
            for view, (one, other) in enumerate(zip(expected, tensors, strict=True)):
                np.testing.assert_array_equal(other, one, f"{name}, view {view}", strict=True)
    took = time.monotonic() - begun
    print(f"{name}: {len(files)} photographs, every tensor made by cuda:0 and equal to the processor's, {took:.0f} s", flush=True)


def main() -> None:
    folder = Path(sys.argv[1])
    files = photographs(folder, int(sys.argv[2]) if len(sys.argv) > 2 else 48)
    with serving(str(folder)) as daemon:
        client = millrace.connect(daemon.address)
        for name, recipe in RECIPES.items():
            compare(client, name, recipe, files)
        made_by = client.statistics().metrics["millrace_samples_total"].values
        assert made_by["cuda:0"] == made_by["cpu"] == len(files) * len(RECIPES), made_by


if __name__ == "__main__":
    main()
