"""Training on every kind of dataset, killed at random batches: what came is the epochs, each sample once, to the bit.

MILLRACE_TEST_KILLS says how often the ranks, the daemon or both are killed for each kind, MILLRACE_TEST_SEED when.
"""

from __future__ import annotations

import itertools
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from killed_ranks import KilledRanks, Lines
from kinds import CLASSES, KINDS, json_of, write_all
from trained_kind import BATCH

pytestmark = [pytest.mark.torch, pytest.mark.long]  # these packages are there where PyTorch is
for package in ("datasets", "PIL", "pyarrow", "webdataset"):
    pytest.importorskip(package, reason=f"{package} is not installed: training on what it writes is not killed")

COUNT = 600  # no whole number of batches or of blocks
KILLS = int(os.environ.get("MILLRACE_TEST_KILLS", "4"))
EPOCHS = 2 + KILLS // 10
STEPS = EPOCHS * -(-COUNT // BATCH)


@pytest.fixture(scope="module", name="data")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("kinds")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        write_all(folder, COUNT)
        yield folder


@pytest.fixture(scope="module", name="whole")
def without_a_kill(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Lines]:
    """Gives what one rank has of a kind, each sample once an epoch, and the same of all kinds."""
    known: dict[str, Lines] = {}

    def of(kind: str) -> Lines:
        if kind not in known:
            with KilledRanks(data, tmp_path_factory.mktemp("whole"), EPOCHS) as ranks:
                ranks.start(kind, 1)
                ranks.finish(STEPS)
                known[kind] = ranks.lines
        return known[kind]

    return of


def epochs_of(lines: Lines) -> list[list[list[object]]]:
    """The samples of each epoch in the order of their ids."""
    return [sorted(sample for line in lines if line["epoch"] == epoch for sample in line["samples"]) for epoch in range(EPOCHS)]


@pytest.mark.parametrize("worlds", [[1], [2, 1]], ids=["one rank", "two ranks and one by turns"])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "files"])
def test_what_came_is_the_epochs(data: Path, whole: Callable[[str], Lines], tmp_path: Path, kind: str, worlds: list[int]) -> None:
    expected = whole(kind)
    assert epochs_of(expected) == epochs_of(whole("files"))
    for epoch in epochs_of(expected):
        assert [sample[:3] for sample in epoch] == [[n, n % CLASSES, json_of(n)] for n in range(COUNT)]
    seed = os.environ.get("MILLRACE_TEST_SEED", "4")
    dice, world_sizes, killed = random.Random(seed), itertools.cycle(worlds), Counter[str]()
    victims = itertools.cycle([["ranks"], ["daemon"], ["ranks", "daemon"], ["daemon", "ranks"]])
    with KilledRanks(data, tmp_path, EPOCHS) as ranks:
        ranks.start(kind, next(world_sizes))
        for at in sorted(dice.sample(range(STEPS), KILLS)):
            ranks.allow(at + 2)  # it goes on meanwhile
            ranks.wait_for(at)
            time.sleep(dice.uniform(0, 0.02))
            killing = next(victims)
            for victim in killing:
                ranks.daemon.kill() if victim == "daemon" else ranks.kill(dice)
            if "daemon" in killing:
                ranks.daemon.start()
            if "ranks" in killing:
                ranks.start(kind, next(world_sizes))
            killed[" and ".join(sorted(killing))] += 1
        ranks.finish(STEPS)
    print(f"{kind}, ranks {worlds}, {STEPS} batches: killed {dict(killed)}")
    assert [line["samples"] for line in ranks.lines] == [line["samples"] for line in expected], f"seed {seed}"
