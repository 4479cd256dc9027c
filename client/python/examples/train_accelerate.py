"""Trains a small network with accelerate: two processes, gradient accumulation, and going on within the epoch.

    accelerate launch --num_processes 2 train_accelerate.py FOLDER --out run     # again with --resume: goes on after the saved batch
    torchrun --nproc-per-node 2 train_accelerate.py FOLDER --out run --cpu       # the same on the CPU

What differs from a script for DataLoader: `accelerator.prepare` leaves the loader as it is, so the loader is told the device, every process
reads its own share, and `batch_size` is one process's; `register_for_checkpointing` has it saved with everything else; in the place of
`accelerator.skip_first_batches(loader, n)` there is `loader.skip_first_batches(n)`, which reads nothing of what it leaves out.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from accelerate import Accelerator

import millrace
import millrace.torch


def network(classes: int) -> torch.nn.Module:
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3, stride=2),
        torch.nn.ReLU(),
        torch.nn.Conv2d(16, 32, 3, stride=2),
        torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(32, classes),
    )


def accuracy(accelerator: Accelerator, model: torch.nn.Module, loader: millrace.torch.Loader) -> float:
    """Of all processes, every picture once: sums, for shares that are not of one size cannot be gathered."""
    counts = torch.zeros(2, device=accelerator.device)
    with torch.inference_mode():
        for images, labels in loader:
            counts += torch.stack([(model(images).argmax(1) == labels).sum(), torch.tensor(len(labels), device=counts.device)])
    right, seen = accelerator.reduce(counts).tolist()
    assert seen == len(loader.dataset)
    return float(right / seen)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="folder for the saved state")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--accumulate", type=int, default=1, help="batches in a step of the optimiser; len(loader) is a multiple (1)")
    parser.add_argument("--size", type=int, default=128, help="of the crops, pixels (128)")
    parser.add_argument("--rate", type=float, default=0.02)
    parser.add_argument("--save-every", type=int, default=10, help="batches (10)")
    parser.add_argument("--stop-after", type=int, default=0, help="batches, to try out going on; 0: to the end")
    parser.add_argument("--resume", action="store_true", help="go on from OUT")
    parser.add_argument("--skip", type=int, default=0, help="begin after so many batches of the first epoch, without a saved state")
    parser.add_argument("--ids", type=Path, help="log the sample ids of every batch, a file for each process: IDS.RANK")
    given = parser.parse_args()

    accelerator = Accelerator(cpu=given.cpu, gradient_accumulation_steps=given.accumulate)
    torch.manual_seed(0)
    recipe = millrace.Recipe.train(given.size).normalised("float32")
    fixed = millrace.Recipe.evaluate(given.size, given.size).normalised("float32")
    train = millrace.torch.Loader(given.folder, recipe, batch_size=given.batch, shuffle=True, drop_last=True, device=accelerator.device)
    test = millrace.torch.Loader(given.folder, fixed, batch_size=given.batch, shard_tail="uneven", device=accelerator.device)
    model = network(len(train.classes))
    model, optimiser, train, test = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=given.rate), train, test)
    accelerator.register_for_checkpointing(train)
    if given.resume:
        accelerator.load_state(str(given.out))
    elif given.skip:
        train.skip_first_batches(given.skip)

    done = 0
    for epoch in range(train.epoch, given.epochs):
        train.set_epoch(epoch)
        for images, labels in train:
            with accelerator.accumulate(model):
                accelerator.backward(torch.nn.functional.cross_entropy(model(images), labels))
                optimiser.step()
                optimiser.zero_grad()
            done += 1
            if given.ids is not None:
                with given.ids.with_name(f"{given.ids.name}.{accelerator.process_index}").open("a") as log:
                    print(epoch, train.state_dict()["batches"], *train.batch.ids, file=log)
            if done % given.save_every == 0:
                accelerator.save_state(str(given.out))
            if done == given.stop_after:
                accelerator.end_training()
                return
        accelerator.print(f"epoch {epoch}: accuracy {accuracy(accelerator, model, test):.3f}")
    accelerator.end_training()


if __name__ == "__main__":
    main()
