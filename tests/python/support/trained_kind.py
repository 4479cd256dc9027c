"""A program that trains on one kind of dataset, and writes each batch down together with the state behind it, in one line of JSON.

    trained_kind.py KIND PLACE SOCKET LOG RANK WORLD_SIZE EPOCHS

It goes on where LOG ends. Lines of its standard input say how many lines LOG may have until it waits for the next of them.
"""

from __future__ import annotations

import json
import sys
import zlib
from pathlib import Path
from typing import Any

import millrace
import millrace.numpy

from kinds import KINDS

BATCH = 32
"""Of all ranks together."""


def train(kind: str, place: Path, socket: str, log: Path, rank: int, world_size: int, epochs: int) -> None:
    """Until so many epochs are in ``log``."""
    lines = log.read_text().splitlines() if log.exists() else []
    allowed, options = 0, {**KINDS[kind].options, "batch_size": BATCH // world_size, "seed": 3, "address": socket}
    source = KINDS[kind].open(place)
    ranks = {"rank": rank, "world_size": world_size}
    with millrace.numpy.Loader(source, millrace.Recipe.train(24), resume=True, **options, **ranks) as loader, log.open("a") as out:
        if lines:
            loader.load_state_dict(json.loads(lines[-1])["state"])
        done = len(lines)
        for epoch in range(loader.epoch, epochs):
            loader.set_epoch(epoch)
            for images, labels in loader:
                line = json.dumps({"epoch": epoch, "samples": samples_of(loader, images, labels), "state": loader.state_dict()})
                while done >= allowed:
                    allowed = int(sys.stdin.readline())
                print(line, file=out, flush=True)
                done += 1
            assert loader.read_by.startswith(KINDS[kind].read_by), loader.read_by


def samples_of(loader: Any, images: Any, labels: Any) -> list[Any]:
    """Id, label, JSON and checksum of each image."""
    each = zip(loader.batch.ids.tolist(), labels["label"].tolist(), labels["json"], images, strict=True)
    return [[n, label, value, zlib.crc32(image.tobytes())] for n, label, value, image in each]


if __name__ == "__main__":
    kind, place, socket, log, *numbers = sys.argv[1:]
    while True:
        written = Path(log).stat().st_size if Path(log).exists() else 0
        try:
            train(kind, Path(place), socket, Path(log), *map(int, numbers))
            break
        except millrace.DaemonUnavailable:  # killed before the first batch: the loader has never had one
            if written != Path(log).stat().st_size:
                raise
