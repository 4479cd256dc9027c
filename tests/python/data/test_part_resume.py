"""Epochs over parts of files: after a kill of the daemon, on another number of ranks, by samplers, and as rows of a source."""

from __future__ import annotations

import json
import os
import random
import signal
from pathlib import Path

import millrace
import millrace.numpy
import numpy as np
import pytest
from numpy.typing import NDArray

from pictures import COUNT, path_of

Seen = dict[int, NDArray[np.uint8]]


@pytest.fixture
def parts(folder: Path) -> list[tuple[millrace.Part, int]]:
    """The folder's pictures as parts of one file, each with its number for a label."""
    home = folder.parent / "resumed.parts"
    samples = []
    with home.open("wb") as file:
        for number in range(COUNT):
            file.write(os.urandom(100 + number))
            content = Path(path_of(folder, number)).read_bytes()
            samples.append((millrace.Part(str(home), file.tell(), len(content)), number))
            file.write(content)
    return samples


def loader_of(samples: object, address: str, recipe: millrace.Recipe, **options: object) -> millrace.numpy.Loader:
    given = {"batch_size": 4, "shuffle": True, "seed": 3, "address": address, **options}
    return millrace.numpy.Loader(samples=samples, transform=recipe, **given)  # type: ignore[arg-type]


def read(loader: millrace.numpy.Loader, batches: int | None, into: Seen) -> None:
    """Adds the images of so many batches by id; each comes once, with its label."""
    for count, (images, labels) in enumerate(loader, 1):
        batch = loader.batch
        assert batch is not None
        assert labels.tolist() == batch.ids.tolist()
        for number, image in zip(batch.ids.tolist(), images, strict=True):
            assert number not in into
            into[number] = np.array(image)
        if count == batches:
            return


def check(seen: Seen, samples: list[tuple[millrace.Part, int]], folder: Path, address: str, recipe: millrace.Recipe) -> None:
    """All of them, equal to the files that they were made of."""
    expected: Seen = {}
    with loader_of([(path_of(folder, number), number) for number in range(len(samples))], address, recipe, shuffle=False) as loader:
        read(loader, None, expected)
    assert sorted(seen) == sorted(expected)
    assert all(np.array_equal(seen[number], expected[number]) for number in expected)


def test_an_epoch_goes_on_after_a_kill_of_the_daemon(
    daemon: millrace.PrivateDaemon, folder: Path, parts: list[tuple[millrace.Part, int]], own_size: millrace.Recipe
) -> None:
    dice = random.Random(os.environ.get("MILLRACE_TEST_SEED", "4"))
    seen: Seen = {}
    batches = dice.randint(1, COUNT // 4 - 1)
    with millrace.serve(folder.parent, lanes=1) as killed, loader_of(parts, killed.address, own_size) as loader:
        read(loader, batches, seen)
        state = json.loads(json.dumps(loader.state_dict()))
        os.kill(killed.pid, signal.SIGKILL)
    assert len(seen) == batches * 4
    with loader_of(parts, daemon.address, own_size) as loader:
        loader.load_state_dict(state)
        read(loader, None, seen)
    check(seen, parts, folder, daemon.address, own_size)


def test_one_rank_goes_on_where_two_stopped(
    daemon: millrace.PrivateDaemon, folder: Path, parts: list[tuple[millrace.Part, int]], own_size: millrace.Recipe
) -> None:
    seen: Seen = {}
    state = None
    for rank in range(2):
        with loader_of(parts, daemon.address, own_size, rank=rank, world_size=2) as loader:
            read(loader, 3, seen)
            state = json.loads(json.dumps(loader.state_dict()))
    assert state is not None
    assert len(seen) == 24
    with loader_of(parts, daemon.address, own_size, rank=0, world_size=1) as loader:
        loader.load_state_dict(state)
        read(loader, None, seen)
    check(seen, parts, folder, daemon.address, own_size)


def test_a_sampler_draws_parts(daemon: millrace.PrivateDaemon, parts: list[tuple[millrace.Part, int]], own_size: millrace.Recipe) -> None:
    drawn = [7, 3, 59, 0, 12]
    seen: Seen = {}
    with loader_of(parts, daemon.address, own_size, shuffle=False, seed=0, sampler=drawn) as loader:
        read(loader, None, seen)
        shown = loader.dataset
    assert list(seen) == drawn
    assert shown.part_of(59) == parts[59][0]
    assert shown.path_of(59) == f"{parts[59][0].path}[{parts[59][0].offset}+{parts[59][0].length}]"


@pytest.mark.parametrize("labelled", [True, False])
def test_rows_of_a_source_may_be_parts(
    daemon: millrace.PrivateDaemon, folder: Path, parts: list[tuple[millrace.Part, int]], own_size: millrace.Recipe, labelled: bool
) -> None:
    seen: Seen = {}
    source = millrace.Encoded(parts if labelled else [part for part, _ in parts])
    with millrace.numpy.Loader(source, own_size, batch_size=4, address=daemon.address) as loader:
        for images, labels in loader:
            assert loader.batch is not None
            numbers = loader.batch.ids.tolist()
            assert labels.tolist() == (numbers if labelled else [-1] * len(numbers))
            seen.update(zip(numbers, map(np.array, images), strict=True))
    check(seen, parts, folder, daemon.address, own_size)
