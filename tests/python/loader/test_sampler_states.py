"""What a sampler draws from, and what a state with a sampler is of."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import millrace
import millrace.numpy
import numpy as np
import pytest

from pictures import COUNT, path_of

RECIPE = millrace.Recipe(resize=millrace.ExactSize(millrace.Size(8, 8)))


@pytest.mark.parametrize("stream", ["random", "numpy"])
def test_samplers_of_pythons_and_numpys_generators_give_what_they_would_give_dataloader(
    daemon: millrace.PrivateDaemon, folder: Path, stream: str
) -> None:
    class Drawing:
        def __iter__(self) -> Iterator[int]:
            order = list(range(COUNT))
            random.shuffle(order) if stream == "random" else np.random.shuffle(order)
            return iter(order)

    random.seed(3), np.random.seed(3)
    expected = list(Drawing())
    random.seed(3), np.random.seed(3)
    with millrace.numpy.Loader(folder, RECIPE, sampler=Drawing(), address=daemon.address) as loader:
        epochs = [[int(number) for _ in loader for number in loader.batch.ids] for _ in range(2)]
    assert epochs[0] == expected != epochs[1]


def test_a_state_with_a_sampler_is_of_its_seed_and_dataset(daemon: millrace.PrivateDaemon, folder: Path) -> None:
    def made(dataset: Any, seed: int) -> millrace.numpy.Loader:
        return millrace.numpy.Loader(dataset, RECIPE, batch_size=8, sampler=list(range(COUNT)), seed=seed, address=daemon.address)

    with made(folder, 1) as first, made(folder, 2) as other_seed, made([(path_of(folder, 0), 0)] * COUNT, 1) as other_files:
        next(iter(first))
        for other, said in ((other_seed, "seed was 1 and is 2"), (other_files, "another dataset")):
            other.load_state_dict(first.state_dict())
            with pytest.raises(millrace.FailedPrecondition, match=said):
                next(iter(other))
