"""The training program under torchrun: two processes with DistributedDataParallel, killed, and resumed by as many and by fewer."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import time
from pathlib import Path

import millrace
import pytest

from held_training import held_at
from pictures import COUNT
from processes import Script

pytest.importorskip("torchvision", reason="PyTorch and torchvision are not installed: training by several processes is not tried")
pytestmark = pytest.mark.torch
TRAIN = Path(__file__).parents[3] / "client" / "python" / "examples" / "train.py"
PATIENCE = 240.0


def train(daemon: millrace.PrivateDaemon, folder: Path, ranks: int, *arguments: object, variables: dict[str, str] | None = None) -> Script:
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)] if ranks > 1 else []
    fixed = ["--size", "32", "--epochs", "2", "--device", "cpu", "--resume", "--save-every", "2"]
    environment = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE")}
    environment |= {"OMP_NUM_THREADS": "1", "MILLRACE_SOCKET": daemon.address, **(variables or {})}
    command = [sys.executable, *launcher, str(TRAIN), str(folder), *fixed, *map(str, arguments)]
    with (Path(arguments[-1].parent) / "log").open("w") as log:  # type: ignore[attr-defined]
        return Script(command, env=environment, stdout=log, stderr=log, text=True, start_new_session=True)


def children(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(ValueError, OSError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(fields[1]) == pid and fields[0] != "Z":
                found.append(int(entry.name))
    return found


def killed_at(process: Script, log: Path, lines: int) -> None:
    """Kills every rank when rank 0 has logged so many batches."""
    with process:
        until = time.monotonic() + PATIENCE
        while process.poll() is None and time.monotonic() < until and not (log.exists() and log.read_text().count("\n") >= lines):
            time.sleep(0.005)
        ranks = children(process.pid)
        for pid in ranks:
            with contextlib.suppress(ProcessLookupError):  # torchrun ends one whose neighbour has died
                os.kill(pid, signal.SIGKILL)
        assert process.wait(PATIENCE) != 0
        assert len(ranks) == 2


def batches_of(path: Path, epoch: int, before: int = 1000) -> list[int]:
    rows = [list(map(int, line.split())) for line in path.read_text().splitlines()]
    return [n for row in rows if row[0] == epoch and row[1] < before for n in row[2:]]


@pytest.mark.long
def test_ranks_that_are_killed_resume_as_many_or_fewer(daemon: millrace.PrivateDaemon, folder: Path, tmp_path: Path) -> None:
    checkpoint, ids, alone = tmp_path / "run.pt", tmp_path / "ids", tmp_path / "alone"
    ranks = [tmp_path / f"ids.{rank}" for rank in range(2)]
    again = ["--batch", 5, "--checkpoint", checkpoint, "--ids", ids]

    for lines in (3, 6 + 3):
        held = held_at(tmp_path, ranks[0], lines + 1)
        killed_at(train(daemon, folder, 2, *again, variables=held), ranks[0], lines)
    saved = torch_load(checkpoint)["loader"]
    assert (saved["epoch"], saved["batches"]) in ((1, 2), (1, 4))
    assert sorted(batches_of(ranks[0], 0) + batches_of(ranks[1], 0)) == list(range(COUNT))

    shutil.copyfile(checkpoint, tmp_path / "copy.pt")
    with train(daemon, folder, 1, "--batch", 7, "--checkpoint", tmp_path / "copy.pt", "--ids", tmp_path / "none") as refused:
        assert refused.wait(PATIENCE) == 1
    assert "choose batch_size=10" in (tmp_path / "log").read_text()

    with train(daemon, folder, 1, "--batch", 10, "--checkpoint", checkpoint, "--ids", alone) as one:
        assert one.wait(PATIENCE) == 0, (tmp_path / "log").read_text()
    before = [n for path in ranks for n in batches_of(path, 1, saved["batches"])]
    assert sorted(before + batches_of(alone, 1)) == list(range(COUNT))


def torch_load(path: Path) -> dict[str, dict[str, int]]:
    import torch

    return dict(torch.load(path))
