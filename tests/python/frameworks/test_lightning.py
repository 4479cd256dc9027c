"""Lightning: the example on two processes, stopped within the epoch and resumed; a loader that is made before `fit` starts them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import millrace
import pytest

from pictures import COUNT

pytest.importorskip("lightning", reason="Lightning is not installed: its example is not run")
pytestmark = [pytest.mark.torch, pytest.mark.long]  # test_view_loaders.py trains with Lightning in less
EXAMPLE = Path(__file__).parents[3] / "client" / "python" / "examples" / "train_lightning.py"


def run(daemon: millrace.PrivateDaemon, place: Path, *command: object) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE", "LOCAL_RANK")}
    environment |= {"OMP_NUM_THREADS": "1", "MILLRACE_SOCKET": daemon.address}
    told = subprocess.run(
        [sys.executable, *map(str, command)], cwd=place, env=environment, capture_output=True, text=True, timeout=900, check=False
    )
    assert told.returncode == 0, told.stdout + told.stderr


def rows(path: Path, doing: str, epoch: int) -> list[list[int]]:
    lines = [line.split() for line in path.read_text().splitlines()]
    return [list(map(int, line[2:])) for line in lines if line[:2] == [doing, str(epoch)]]


def test_two_processes_stop_within_an_epoch_and_go_on(daemon: millrace.PrivateDaemon, folder: Path, tmp_path: Path) -> None:
    fixed = [EXAMPLE, folder, folder, "--accelerator", "cpu", "--devices", 2, "--out", tmp_path / "run"]
    fixed += ["--batch", 5, "--size", 32, "--save-every", 2, "--ids", tmp_path / "ids"]
    run(daemon, tmp_path, *fixed, "--stop-after", 4)
    ranks = [tmp_path / f"ids.{rank}" for rank in range(2)]
    assert [len(rows(path, "train", 0)) for path in ranks] == [4, 4]

    run(daemon, tmp_path, *fixed, "--resume")

    for path in ranks:
        assert [row[0] for row in rows(path, "train", 0)] == [0, 1, 2, 3, 4, 5]
        assert [row[0] for row in rows(path, "train", 1)] == [0, 1, 2, 3, 4, 5]
    for epoch in range(2):
        trained = [n for path in ranks for row in rows(path, "train", epoch) for n in row[1:]]
        validated = [n for path in ranks for row in rows(path, "validate", epoch)[-6:] for n in row[1:]]
        assert sorted(trained) == sorted(validated) == list(range(COUNT))
    assert rows(ranks[0], "train", 0) != rows(ranks[0], "train", 1)


MADE_BEFORE = """
import sys
import lightning, torch
import millrace, millrace.torch

class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)
    def training_step(self, batch, number):
        with open(f"ids.{self.global_rank}", "a") as log:
            print("train", self.current_epoch, number, *loader.batch.ids, file=log)
        return torch.nn.functional.cross_entropy(self.layer(batch[0].mean((2, 3))), batch[1])
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

loader = millrace.torch.Loader(sys.argv[1], millrace.Recipe.train(24).normalised("float32"), batch_size=8, shuffle=True)
trainer = lightning.Trainer(accelerator="cpu", devices=2, strategy="ddp", max_epochs=2, logger=False, enable_checkpointing=False)
trainer.fit(Model(), loader)
loader.close()
"""


def test_a_loader_that_was_made_before_the_processes(daemon: millrace.PrivateDaemon, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(MADE_BEFORE)

    run(daemon, tmp_path, "program.py", folder)

    for epoch in range(2):
        ids = [n for rank in range(2) for row in rows(tmp_path / f"ids.{rank}", "train", epoch) for n in row[1:]]
        assert sorted(ids) == list(range(COUNT))


MIXED = """
import hashlib, sys
import lightning, torch
from lightning.pytorch.callbacks import ModelCheckpoint
import millrace, millrace.torch
from millrace.torch import CutMix, Mixed, MixUp

folder, log, most, resumed = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4] == "resume"

def digest(tensor):
    return hashlib.sha256(tensor.contiguous().numpy().tobytes()).hexdigest()

class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)
    def training_step(self, batch, number):
        images, targets = batch
        ids = self.trainer.train_dataloader.batch.ids
        with open(log, "a") as file:
            print(self.current_epoch, number, digest(images), digest(targets), *ids, file=file)
        return torch.nn.functional.cross_entropy(self.layer(images.mean((2, 3))), targets)
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

loader = millrace.torch.Loader(folder, millrace.Recipe.train(24).normalised("float32"), batch_size=8, shuffle=True)
mixed = Mixed(loader, [MixUp(0.4), CutMix()], 3)
saving = ModelCheckpoint("checkpoints", save_last=True, save_top_k=0, every_n_train_steps=3)
trainer = lightning.Trainer(accelerator="cpu", devices=1, max_epochs=2, max_steps=most, callbacks=[saving], logger=False)
trainer.fit(Model(), mixed, ckpt_path="last" if resumed else None)
mixed.close()
"""


def test_a_mixed_loader_goes_on_within_an_epoch(daemon: millrace.PrivateDaemon, folder: Path, tmp_path: Path) -> None:
    """Checkpoints are after batches 3, 6, ... of all: the one that is resumed is within the second epoch of 8 batches."""
    (tmp_path / "program.py").write_text(MIXED)
    run(daemon, tmp_path, "program.py", folder, "whole", -1, "begin")
    whole = (tmp_path / "whole").read_text().splitlines()
    assert [line.split()[:2] for line in whole] == [[str(epoch), str(number)] for epoch in range(2) for number in range(8)]
    assert len({line.split()[3] for line in whole}) > 8  # of targets; those of one class alone stay what they are
    (tmp_path / "checkpoints" / "last.ckpt").unlink()

    run(daemon, tmp_path, "program.py", folder, "parts", 12, "begin")
    run(daemon, tmp_path, "program.py", folder, "parts", -1, "resume")

    assert (tmp_path / "parts").read_text().splitlines() == whole
