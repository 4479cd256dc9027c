"""Trains a small network with Lightning: a LightningDataModule, validation, a checkpoint within the epoch, and going on from there.

    python train_lightning.py TRAIN VALIDATION --devices 2 --out run     # again with --resume: goes on after the checkpoint's batch

Lightning saves and loads the state of a loader that has one, so there is no code for it here. The processes share a daemon, which has to
run (the service, or `millrace.serve` in a program that starts this one); with --devices 1 and none running, it starts one.
"""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint

import millrace
import millrace.torch


class Pictures(lightning.LightningDataModule):
    """Class folders, for training and validation. Each loader finds its process's share when its loop begins."""

    def __init__(self, train: Path, validation: Path, batch: int, size: int) -> None:
        super().__init__()
        self.train, self.validation, self.batch, self.size = train, validation, batch, size

    def train_dataloader(self) -> millrace.torch.Loader:
        recipe = millrace.Recipe.train(self.size).normalised("float32")
        return millrace.torch.Loader(self.train, recipe, batch_size=self.batch, shuffle=True, seed=1, drop_last=True, resume=True)

    def val_dataloader(self) -> millrace.torch.Loader:
        recipe = millrace.Recipe.evaluate(self.size, self.size).normalised("float32")
        return millrace.torch.Loader(self.validation, recipe, batch_size=self.batch, shard_tail="uneven")


class Network(lightning.LightningModule):
    """Two convolutions and a classifier."""

    def __init__(self, classes: int, rate: float, ids: Path | None) -> None:
        super().__init__()
        self.save_hyperparameters("classes", "rate")
        self.rate, self.ids = rate, ids
        self.layers = torch.nn.Sequential(
            torch.nn.Conv2d(3, 16, 3, stride=2),
            torch.nn.ReLU(),
            torch.nn.Conv2d(16, 32, 3, stride=2),
            torch.nn.ReLU(),
            torch.nn.AdaptiveAvgPool2d(1),
            torch.nn.Flatten(),
            torch.nn.Linear(32, classes),
        )

    def training_step(self, batch: Any, number: int) -> torch.Tensor:
        images, labels = batch
        loss = torch.nn.functional.cross_entropy(self.layers(images), labels)
        self.log("loss", loss, prog_bar=True)
        self.note("train", self.trainer.train_dataloader, number)
        return loss

    def validation_step(self, batch: Any, number: int) -> None:
        images, labels = batch
        right = (self.layers(images).argmax(1) == labels).float()
        self.log("accuracy", right.mean(), prog_bar=True, sync_dist=True, batch_size=len(labels))
        self.note("validate", self.trainer.val_dataloaders, number)

    def note(self, doing: str, loader: Any, number: int) -> None:
        """A line for each batch: what it was for, the epoch, its number, and which pictures it had."""
        if self.ids is not None:
            with self.ids.with_name(f"{self.ids.name}.{self.global_rank}").open("a") as log:
                print(doing, self.current_epoch, number, *loader.batch.ids, file=log)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=self.rate, momentum=0.9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train", type=Path)
    parser.add_argument("validation", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="folder for the checkpoint, last.ckpt")
    parser.add_argument("--accelerator", default="auto")
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--size", type=int, default=128, help="of the crops, pixels (128)")
    parser.add_argument("--rate", type=float, default=0.02)
    parser.add_argument("--save-every", type=int, default=10, help="batches (10)")
    parser.add_argument("--stop-after", type=int, default=-1, help="batches in all, to try out going on; -1: to the end")
    parser.add_argument("--resume", action="store_true", help="go on from OUT/last.ckpt")
    parser.add_argument("--ids", type=Path, help="log the sample ids of every batch, a file for each process: IDS.RANK")
    given = parser.parse_args()
    with ExitStack() as stack:
        if given.devices == 1:
            stack.enter_context(millrace.serve([given.train, given.validation], reuse=True))
        pictures = Pictures(given.train, given.validation, given.batch, given.size)
        saving = ModelCheckpoint(given.out, save_last=True, save_top_k=0, every_n_train_steps=given.save_every)
        trainer = lightning.Trainer(
            accelerator=given.accelerator,
            devices=given.devices,
            strategy="ddp" if given.devices > 1 else "auto",
            max_epochs=given.epochs,
            max_steps=given.stop_after,
            callbacks=[saving],
            logger=False,
            log_every_n_steps=1,
        )
        with pictures.train_dataloader() as loader:
            classes = len(loader.classes)
        trainer.fit(Network(classes, given.rate, given.ids), pictures, ckpt_path="last" if given.resume else None)


if __name__ == "__main__":
    main()
