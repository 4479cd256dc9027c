"""A daemon and the ranks of a training (``trained_kind``), to be killed and started again."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import Any

from processes import Script, eventually, python
from restartable import Restartable

PROGRAM = "import runpy; runpy.run_module('trained_kind', run_name='__main__')"
Lines = list[dict[str, Any]]


class KilledRanks:
    """Both of them. A context manager, which leaves no process behind."""

    def __init__(self, data: Path, place: Path, epochs: int) -> None:
        """Starts the daemon.

        Args:
            data: what ``write_all`` wrote.
            place: an empty folder.
            epochs: of the training.
        """
        self._data, self._place, self._epochs = data, place, epochs
        self._ranks: list[Script] = []
        self.daemon = Restartable(data, place / "s")
        self.lines: Lines = []
        """What all ranks have had, as if it were one: a line a step."""

    def __enter__(self) -> KilledRanks:
        return self

    def __exit__(self, *_: object) -> None:
        self._end_ranks()
        self.daemon.kill()

    def start(self, kind: str, world_size: int) -> None:
        """Ranks that go on after ``lines``."""
        for rank in range(world_size):
            self._log(rank).write_text("".join(json.dumps(line) + "\n" for line in self.lines))
            arguments = [kind, self._data, self.daemon.socket, self._log(rank), rank, world_size, self._epochs]
            self._ranks.append(python(PROGRAM, *map(str, arguments)))

    def allow(self, steps: int) -> None:
        """They wait when they have had so many."""
        for rank in self._ranks:
            assert rank.stdin is not None
            rank.stdin.write(f"{steps}\n")
            rank.stdin.flush()

    def wait_for(self, steps: int) -> None:
        """Until each has had so many."""

        def there() -> bool:
            for number, rank in enumerate(self._ranks):
                assert rank.poll() in (None, 0), rank.communicate()
                if len(self._had(number)) < steps:
                    return False
            return True

        eventually(there, f"each rank has had {steps} batches")

    def finish(self, steps: int) -> None:
        """Until they have ended by themselves, after so many."""
        self.allow(steps)
        for rank in self._ranks:
            _, errors = rank.communicate()
            assert rank.returncode == 0, errors
        self.kill(random.Random())

    def kill(self, dice: random.Random) -> None:
        """The ranks. What they have had in step is kept: the state of any of them, and their samples by turns."""
        count = len(self._ranks)
        self._end_ranks()
        had = [[json.loads(line) for line in self._had(number)] for number in range(count)]
        for step in list(zip(*had, strict=False))[len(self.lines) :]:
            in_turn = itertools.chain.from_iterable(zip(*(line["samples"] for line in step), strict=True))
            self.lines.append({**dice.choice(step), "samples": list(in_turn)})

    def _end_ranks(self) -> None:
        for rank in self._ranks:
            rank.kill()
            rank.communicate()
        self._ranks = []

    def _log(self, rank: int) -> Path:
        return self._place / f"rank {rank}"

    def _had(self, rank: int) -> list[str]:
        """Its whole lines."""
        return self._log(rank).read_text().split("\n")[:-1]
