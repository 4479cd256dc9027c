"""Trains with Ray Train: each worker's images come from Ray Data, or from its own loader and the daemon of its node.

python ray_train.py FOLDER --input dataset --workers 2
python ray_train.py FOLDER --input loader --workers 2
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from typing import Any

import ray
import ray.train
import ray.train.torch
import torch

import millrace
import millrace.ray
import millrace.torch


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="class folders; every node has it at this path")
    parser.add_argument("--input", choices=["dataset", "loader"], default="dataset")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--storage", help="where Ray Train keeps its results (its default)")
    return parser.parse_args()


def from_dataset(config: dict[str, Any], epoch: int) -> Iterator[tuple[Any, Any]]:
    """This worker's shard. Ray Data has read, balanced and moved it, to whichever node this is."""
    del epoch  # an execution of the dataset is one
    for batch in ray.train.get_dataset_shard("train").iter_torch_batches(batch_size=config["batch"]):
        yield batch["image"], batch["label"]


def from_loader(config: dict[str, Any], epoch: int) -> Iterator[tuple[Any, Any]]:
    """This rank's share, in shared memory of this node's daemon. The loader asks torch.distributed for the rank."""
    options: dict[str, Any] = {"batch_size": config["batch"], "shuffle": True, "dtype": "float32", "resume": True}
    address = config["daemon"].address_here()
    with millrace.torch.Loader(config["folder"], millrace.Recipe.train(config["size"]), address=address, **options) as loader:
        loader.set_epoch(epoch)
        yield from loader


def train(config: dict[str, Any]) -> None:
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 7, stride=4), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(4), torch.nn.Flatten())
    model = ray.train.torch.prepare_model(torch.nn.Sequential(model, torch.nn.Linear(128, config["classes"])))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.02)
    batches = {"dataset": from_dataset, "loader": from_loader}[config["input"]]
    for epoch in range(config["epochs"]):
        images_seen, loss = 0, torch.zeros(())
        for images, labels in batches(config, epoch):
            loss = torch.nn.functional.cross_entropy(model(images), labels)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            images_seen += len(labels)
        total = torch.tensor(images_seen)
        torch.distributed.all_reduce(total)
        ray.train.report({"epoch": epoch, "images": int(total), "loss": float(loss.detach())})
        if ray.train.get_context().get_world_rank() == 0:
            print(f"epoch {epoch}: {int(total)} images, loss {float(loss.detach()):.3f}", flush=True)


def main() -> None:
    given = arguments()
    ray.init(logging_level="ERROR")
    daemon = millrace.ray.Daemon(lanes=1, num_cpus=0.5)
    config = {
        **vars(given),
        "folder": os.path.abspath(given.folder),
        "classes": len(millrace.ray.class_names(given.folder)),
        "daemon": daemon,
    }
    datasets = {}
    if given.input == "dataset":
        recipe = millrace.Recipe.train(given.size).normalised("float32")
        datasets["train"] = millrace.ray.read_images(given.folder, recipe, include_labels=True, shuffle="files", daemon=daemon)
    trainer = ray.train.torch.TorchTrainer(
        train,
        train_loop_config=config,
        datasets=datasets,
        scaling_config=ray.train.ScalingConfig(num_workers=given.workers, resources_per_worker={"CPU": 0.5}),
        run_config=ray.train.RunConfig(storage_path=given.storage),
    )
    trainer.fit()
    millrace.ray.stop_daemons()


if __name__ == "__main__":
    main()
