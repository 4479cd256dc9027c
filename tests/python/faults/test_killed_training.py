"""Training on every kind of dataset, killed at random batches: what came is the epochs, each sample once, to the bit.

MILLRACE_TEST_KILLS says how often the trainer, the daemon or both are killed, MILLRACE_TEST_SEED when.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kinds import CLASSES, KINDS, json_of, write_all
from processes import Script, eventually, python
from restartable import Restartable
from trained_kind import BATCH

pytestmark = [pytest.mark.torch, pytest.mark.long]  # these packages are there where PyTorch is
for package in ("datasets", "pyarrow", "webdataset"):
    pytest.importorskip(package, reason=f"{package} is not installed: training on what it writes is not killed")

COUNT = 600  # no whole number of batches, of blocks, or of either for two ranks
EACH = -(-COUNT // BATCH)
KILLS = int(os.environ.get("MILLRACE_TEST_KILLS", "6"))
EPOCHS = 2 + KILLS // 10
PROGRAM = "import runpy; runpy.run_module('trained_kind', run_name='__main__')"
Lines = list[dict[str, Any]]
WHOLE: dict[str, Lines] = {}  # of each kind, once


@pytest.fixture(scope="module", name="place")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("kinds")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        write_all(folder, COUNT)
        yield folder


@pytest.fixture(name="rig")
def rig_of_the_place(place: Path, tmp_path: Path) -> Iterator[Rig]:
    with ExitStack() as stack:
        rig = Rig(place, tmp_path)
        stack.callback(rig.close)
        yield rig


class Rig:
    """A daemon, and the ranks of a training."""

    def __init__(self, place: Path, tmp: Path) -> None:
        self._place, self._tmp = place, tmp
        self.daemon = Restartable(place, tmp / "s")
        self.ranks: list[Script] = []
        self.lines: Lines = []
        """What all ranks have had, as if it were one."""

    def close(self) -> None:
        for rank in self.ranks:
            rank.kill()
            rank.communicate()
        self.daemon.kill()

    def start(self, kind: str, world_size: int) -> None:
        """Ranks that go on after ``lines``."""
        for rank in range(world_size):
            self._log(rank).write_text("".join(json.dumps(line) + "\n" for line in self.lines))
            arguments = [kind, self._place, self.daemon.socket, self._log(rank), rank, world_size, EPOCHS]
            self.ranks.append(python(PROGRAM, *map(str, arguments)))

    def allow(self, lines: int) -> None:
        for rank in self.ranks:
            assert rank.stdin is not None
            rank.stdin.write(f"{lines}\n")
            rank.stdin.flush()

    def wait_for(self, lines: int) -> None:
        """Until each rank has had so many batches."""

        def there() -> bool:
            for number, rank in enumerate(self.ranks):
                assert rank.poll() in (None, 0), rank.communicate()
                if len(self._had(number)) < lines:
                    return False
            return True

        eventually(there, f"each rank has had {lines} batches")

    def finish(self) -> None:
        """Until the ranks have ended by themselves."""
        self.allow(EPOCHS * EACH)
        for rank in self.ranks:
            _, errors = rank.communicate()
            assert rank.returncode == 0, errors
        self._join(random.Random(1))

    def kill_ranks(self, dice: random.Random) -> None:
        for rank in self.ranks:
            rank.kill()
            rank.communicate()
        self._join(dice)

    def _join(self, dice: random.Random) -> None:
        """What they have had in step is kept: the state of any of them, and their samples by turns."""
        had = [[json.loads(line) for line in self._had(number)] for number in range(len(self.ranks))]
        for step in list(zip(*had, strict=False))[len(self.lines) :]:
            in_turn = itertools.chain.from_iterable(zip(*(line["samples"] for line in step), strict=True))
            self.lines.append({**dice.choice(step), "samples": list(in_turn)})
        self.ranks = []

    def _log(self, rank: int) -> Path:
        return self._tmp / f"rank {rank}"

    def _had(self, rank: int) -> list[str]:
        """Its whole lines."""
        return self._log(rank).read_text().split("\n")[:-1]


def without_a_kill(rig: Rig, kind: str) -> Lines:
    """Of one rank."""
    if kind not in WHOLE:
        rig.start(kind, 1)
        rig.finish()
        WHOLE[kind], rig.lines = rig.lines, []
    return WHOLE[kind]


@pytest.mark.parametrize("worlds", [[1], [2, 1]], ids=["one rank", "two ranks and one by turns"])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "files"])
def test_what_came_is_the_epochs(rig: Rig, kind: str, worlds: list[int]) -> None:
    files, whole = without_a_kill(rig, "files"), without_a_kill(rig, kind)
    for epoch in range(EPOCHS):
        known, had = (sorted(sample for line in lines if line["epoch"] == epoch for sample in line["samples"]) for lines in (files, whole))
        assert [sample[:3] for sample in had] == [[n, n % CLASSES, json_of(n)] for n in range(COUNT)]
        assert had == known
    seed = os.environ.get("MILLRACE_TEST_SEED", "4")
    dice, world_sizes, killed = random.Random(seed), itertools.cycle(worlds), Counter[str]()
    rig.start(kind, next(world_sizes))
    victims = itertools.cycle([["ranks"], ["daemon"], ["ranks", "daemon"], ["daemon", "ranks"]])
    for at in sorted(dice.sample(range(EPOCHS * EACH), KILLS)):
        rig.allow(at + 2)  # it goes on meanwhile
        rig.wait_for(at)
        time.sleep(dice.uniform(0, 0.02))
        killing = next(victims)
        for victim in killing:
            rig.daemon.kill() if victim == "daemon" else rig.kill_ranks(dice)
        if "daemon" in killing:
            rig.daemon.start()
        if "ranks" in killing:
            rig.start(kind, next(world_sizes))
        killed[" and ".join(sorted(killing))] += 1
    rig.finish()
    print(f"{kind}, {worlds}: killed {dict(killed)}")
    assert [line["samples"] for line in rig.lines] == [line["samples"] for line in whole], f"seed {seed}"
