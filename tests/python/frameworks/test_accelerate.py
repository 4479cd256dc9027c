"""accelerate: the example on two processes, stopped within the epoch and resumed; what `prepare` and `skip_first_batches` do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import millrace
import pytest

from pictures import COUNT

accelerate = pytest.importorskip("accelerate", reason="accelerate is not installed: its example is not run")
pytestmark = pytest.mark.torch
EXAMPLE = Path(__file__).parents[3] / "client" / "python" / "examples" / "train_accelerate.py"


def run(daemon: millrace.PrivateDaemon, folder: Path, place: Path, *arguments: object) -> str:
    environment = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE", "LOCAL_RANK")}
    environment |= {"OMP_NUM_THREADS": "1", "MILLRACE_SOCKET": daemon.address}
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(EXAMPLE), str(folder), "--cpu"]
    command += ["--out", "run", "--batch", "5", "--size", "32", "--save-every", "2", "--accumulate", "2", "--ids", "ids"]
    told = subprocess.run(
        [*command, *map(str, arguments)], cwd=place, env=environment, capture_output=True, text=True, timeout=900, check=False
    )
    assert told.returncode == 0, told.stdout + told.stderr
    return told.stdout


def rows(place: Path, epoch: int) -> list[list[list[int]]]:
    """Of each process the rows of that epoch: the number of the batch, and its ids."""
    logs = [(place / f"ids.{rank}").read_text().splitlines() for rank in range(2)]
    lines = [[list(map(int, line.split())) for line in log] for log in logs]
    return [[row[1:] for row in log if row[0] == epoch] for log in lines]


@pytest.mark.long
def test_two_processes_stop_within_an_epoch_and_go_on(daemon: millrace.PrivateDaemon, folder: Path, tmp_path: Path) -> None:
    run(daemon, folder, tmp_path, "--stop-after", 4)
    assert [len(log) for log in rows(tmp_path, 0)] == [4, 4]

    told = run(daemon, folder, tmp_path, "--resume")

    for epoch in range(2):
        assert f"epoch {epoch}: accuracy" in told
        logs = rows(tmp_path, epoch)
        assert [[row[0] for row in log] for log in logs] == [[1, 2, 3, 4, 5, 6]] * 2
        assert sorted(n for log in logs for row in log for n in row[1:]) == list(range(COUNT))


@pytest.mark.long
def test_two_processes_that_leave_batches_out(daemon: millrace.PrivateDaemon, folder: Path, tmp_path: Path) -> None:
    run(daemon, folder, tmp_path, "--skip", 4, "--epochs", 1)

    logs = rows(tmp_path, 0)
    assert [[row[0] for row in log] for log in logs] == [[5, 6]] * 2
    assert len({n for log in logs for row in log for n in row[1:]}) == 20


@pytest.fixture
def loader(daemon: millrace.PrivateDaemon, folder: Path) -> Any:
    import millrace.torch

    with millrace.torch.Loader(folder, millrace.Recipe.train(24), batch_size=5, shuffle=True, address=daemon.address) as made:
        yield made


def test_prepare_leaves_a_loader_as_it_is(loader: Any) -> None:
    assert accelerate.Accelerator(cpu=True).prepare(loader) is loader


@pytest.mark.filterwarnings("ignore")
def test_accelerates_own_skipping_is_refused_with_what_to_do(loader: Any) -> None:
    with pytest.raises(millrace.Unsupported, match=r"loader\.skip_first_batches\(n\)"):
        next(iter(accelerate.skip_first_batches(loader, 2)))

    assert len(list(loader.skip_first_batches(2))) == len(loader) - 2


@pytest.mark.filterwarnings("ignore")
def test_a_mixed_loader_is_prepared_and_checkpointed_as_the_loader_is(daemon: millrace.PrivateDaemon, folder: Path, tmp_path: Path) -> None:
    from millrace.torch import CutMix, Loader, Mixed, MixUp

    recipe = millrace.Recipe.train(24).normalised("float32")
    mixed = Mixed(Loader(folder, recipe, batch_size=5, shuffle=True, address=daemon.address), [MixUp(), CutMix()], 3)
    accelerator = accelerate.Accelerator(cpu=True)
    assert accelerator.prepare(mixed) is mixed
    accelerator.register_for_checkpointing(mixed)
    with pytest.raises(millrace.Unsupported, match=r"loader\.skip_first_batches\(n\)"):
        next(iter(accelerate.skip_first_batches(mixed, 2)))
    whole = [(images.clone(), targets.clone()) for images, targets in mixed]
    mixed.set_epoch(0)
    for number, _ in enumerate(mixed):
        if number == 3:
            accelerator.save_state(str(tmp_path / "state"))
            break
    mixed.set_epoch(7)

    accelerator.load_state(str(tmp_path / "state"))

    rest = list(mixed)
    assert (len(rest), mixed.epoch) == (len(whole) - 4, 1)
    for one, other in zip(rest, whole[4:], strict=True):
        assert one[0].equal(other[0])
        assert one[1].equal(other[1])
    mixed.close()
