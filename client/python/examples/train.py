"""Trains a ResNet on a folder of class folders, tar shards or a list, with a checkpoint within the epoch and exact resumption.

    python train.py FOLDER --epochs 2 --checkpoint run.pt     # again with --resume: goes on after the batch of the checkpoint
    python train.py '/data/train-{0000..0099}.tar'            # tar shards (or a folder of them), with a whole number as .cls of each sample
    python train.py /data/train.jsonl                         # a list of files beneath /data: .jsonl, .csv, .tsv
    torchrun --nproc-per-node 4 train.py FOLDER ...           # every rank its share; --resume with another number of ranks: see below
    python train.py FOLDER --augment                          # RandAugment and erasing by the daemon, MixUp and CutMix of its batches
    python train.py FOLDER --loader torchvision --workers 4   # torchvision's own loader, for comparison

Without a running daemon it starts a private one (but not under torchrun, whose ranks share one).

A checkpoint of some ranks is resumed by others, more or fewer: at the beginning of an epoch always, within it where a batch of theirs
begins where the old ones ended. So with twice the ranks halve --batch, and a step has as many images as before; else the error says
what fits.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import zlib
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TextIO

import torch
import torchvision
from torchvision.transforms import v2

import millrace
import millrace.torch
from millrace.torch import CutMix, Mixed, MixUp


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "folder", metavar="DATA", type=Path, help="a folder of class folders; tar shards: 'train-{0000..0099}.tar'; or a list"
    )
    parser.add_argument("--model", default="resnet18", help="of torchvision.models (resnet18)")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--size", type=int, default=224, help="of the crops, pixels (224)")
    parser.add_argument("--rate", type=float, default=0.02, help="learning rate (0.02)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--memory", help="where the daemon puts the images: host, or cuda:0 as it names its GPUs (that of --device)")
    parser.add_argument("--augment", action="store_true", help="RandAugment, random erasing, MixUp and CutMix")
    parser.add_argument("--loader", choices=["millrace", "torchvision"], default="millrace")
    parser.add_argument("--workers", type=int, default=2, help="processes of torchvision's loader (2)")
    parser.add_argument("--checkpoint", type=Path, help="written every --save-every batches and at the end of each epoch")
    parser.add_argument("--save-every", type=int, default=10, help="batches (10)")
    parser.add_argument("--resume", action="store_true", help="go on from --checkpoint if it exists")
    parser.add_argument("--ids", type=Path, help="log the sample ids of every batch, a line each; of several ranks, to IDS.RANK")
    parser.add_argument("--checksums", action="store_true", help="log one of images and targets before the ids, too")
    given = parser.parse_args()
    if given.resume and given.checkpoint is None:
        parser.error("--resume needs --checkpoint")
    if given.loader == "torchvision" and (given.checkpoint or given.ids):
        parser.error("torchvision's loader has no state within an epoch: --checkpoint and --ids are for --loader millrace")
    if given.loader == "torchvision" and are_shards(given.folder):
        parser.error("tar shards are for --loader millrace")
    if given.loader == "torchvision" and given.augment:
        parser.error("--augment is for --loader millrace")
    return given


def are_shards(data: Path) -> bool:
    return data.suffix == ".tar" or (data.is_dir() and any(data.glob("*.tar")))


def classes_of(dataset: Any) -> int:
    """How many classes there are: by their names, else by the labels."""
    return len(dataset.classes) or int(dataset.labels.max()) + 1


def transform(size: int, augment: bool) -> v2.Compose:
    return v2.Compose(
        [
            v2.ToImage(),
            v2.RandomResizedCrop(size, antialias=True),
            v2.RandomHorizontalFlip(),
            *([v2.RandAugment()] if augment else []),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225]),
            *([v2.RandomErasing(0.25)] if augment else []),
        ]
    )


def millrace_loader(given: argparse.Namespace, stack: ExitStack) -> millrace.torch.Loader:
    if world_size() == 1:  # ranks share a daemon that runs before them
        gpus = "yes" if (given.memory or "").startswith("cuda") else "auto" if given.device.startswith("cuda") else "no"
        root = given.folder if given.folder.is_dir() else given.folder.parent
        stack.enter_context(millrace.serve(root, reuse=True, cuda=gpus))
    options: dict[str, Any] = {"batch_size": given.batch, "shuffle": True, "drop_last": True, "seed": given.seed, "resume": True}
    data = millrace.Shards(given.folder) if are_shards(given.folder) else given.folder
    loader = millrace.torch.Loader(data, transform(given.size, given.augment), device=given.device, memory=given.memory, **options)
    return stack.enter_context(loader)


def torchvision_loader(given: argparse.Namespace) -> torch.utils.data.DataLoader[Any]:
    dataset = torchvision.datasets.ImageFolder(str(given.folder), transform(given.size, augment=False))
    return torch.utils.data.DataLoader(dataset, given.batch, shuffle=True, drop_last=True, num_workers=given.workers)


def world_size() -> int:
    """Ranks that torchrun has started; 1 without it."""
    return int(os.environ.get("WORLD_SIZE", "1"))


class Training:
    """Model, optimiser and where they are; saved and loaded together with the loader's state."""

    def __init__(self, given: argparse.Namespace, loader: Any, classes: int) -> None:
        torch.manual_seed(given.seed)
        self.given = given
        self.loader = loader
        self.model = torchvision.models.get_model(given.model, weights=None, num_classes=classes).to(given.device)
        self.forward: Any = self.model
        if world_size() > 1:
            torch.distributed.init_process_group("nccl" if given.device == "cuda" else "gloo")
            self.forward = torch.nn.parallel.DistributedDataParallel(self.model)
        self.optimiser = torch.optim.SGD(self.model.parameters(), lr=given.rate, momentum=0.9)
        self.epoch = 0

    def step(self, images: Any, labels: Any) -> float:
        loss = torch.nn.functional.cross_entropy(self.forward(images), labels)
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        return float(loss.detach())

    def save(self) -> None:
        """Replaces the checkpoint in one go, so that a kill at any time leaves the old one or the new one."""
        if self.given.checkpoint is None or int(os.environ.get("RANK", "0")) != 0:
            return
        parts = {"model": self.model, "optimiser": self.optimiser, "loader": self.loader}
        fresh = self.given.checkpoint.with_suffix(".new")
        torch.save({name: part.state_dict() for name, part in parts.items()}, fresh)
        fresh.replace(self.given.checkpoint)

    def load(self) -> None:
        saved = torch.load(self.given.checkpoint, map_location=self.given.device)
        self.model.load_state_dict(saved["model"])
        self.optimiser.load_state_dict(saved["optimiser"])
        self.loader.load_state_dict(saved["loader"])
        self.epoch = saved["loader"]["epoch"]


def open_ids(given: argparse.Namespace, training: Training) -> TextIO | None:
    """The log of ids, without what was trained on after the checkpoint and before the kill."""
    if given.ids is None:
        return None
    path = given.ids if world_size() == 1 else given.ids.with_name(f"{given.ids.name}.{os.environ['RANK']}")
    state = training.loader.state_dict()
    kept = []
    if given.resume and path.exists():
        done = (state["epoch"], state["batches"])
        kept = [line for line in path.read_text().splitlines() if tuple(map(int, line.split()[:2])) < done]
    path.write_text("".join(line + "\n" for line in kept))
    return path.open("a", buffering=1)


def checksum_of(images: torch.Tensor, targets: torch.Tensor) -> int:
    """What a resumed run has to have in common with one that was not interrupted."""
    return zlib.crc32(targets.cpu().numpy().tobytes(), zlib.crc32(images.cpu().numpy().tobytes()))


def show(epoch: int, batch: int, batches: int, loss: float, rate: float) -> None:
    line = f"epoch {epoch}  {batch}/{batches}  loss {loss:.3f}  {rate:.0f} images/s"
    if sys.stderr.isatty():
        filled = 24 * batch // batches
        print(f"\r[{'#' * filled}{'.' * (24 - filled)}] {line} ", end="\n" if batch == batches else "", file=sys.stderr, flush=True)
    elif batch in (1, batches) or batch % 50 == 0:
        print(line, file=sys.stderr, flush=True)


def train_epoch(training: Training, ids: TextIO | None) -> None:
    given, loader = training.given, training.loader
    began, seen = time.monotonic(), 0
    mixed = Mixed(loader, [MixUp(0.2), CutMix()], classes_of(loader.dataset), given.seed) if given.augment else loader
    for count, (images, labels) in enumerate(mixed, 1):
        batch = loader.state_dict()["batches"] if given.loader == "millrace" else count  # more than ``count`` after a checkpoint
        loss = training.step(images.to(given.device), labels.to(given.device))
        seen += len(labels)
        if ids is not None:
            checksum = [checksum_of(images, labels)] if given.checksums else []
            print(training.epoch, batch - 1, *checksum, *loader.batch.ids, file=ids)
        if batch % given.save_every == 0:
            training.save()
        show(training.epoch, batch, len(loader), loss, seen / (time.monotonic() - began))


def main() -> None:
    given = arguments()
    if world_size() > 1 and given.device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    with ExitStack() as stack:
        loader: Any = millrace_loader(given, stack) if given.loader == "millrace" else torchvision_loader(given)
        training = Training(given, loader, classes_of(loader.dataset))
        if given.resume and given.checkpoint.exists():
            training.load()
        ids = open_ids(given, training)
        while training.epoch < given.epochs:
            if given.loader == "millrace":
                loader.set_epoch(training.epoch)
            train_epoch(training, ids)
            training.epoch += 1
            training.save()


if __name__ == "__main__":
    main()
