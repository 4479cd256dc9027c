"""Reads a folder of class folders with Ray Data; the node's daemon makes the images.

    python ray_data.py FOLDER --size 224 --epochs 2     # on this machine, or on the cluster that $RAY_ADDRESS names

Prints each epoch's images/s, and how many images of each class there are.
"""

from __future__ import annotations

import argparse
import collections
import time

import ray

import millrace
import millrace.ray


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="every node has it at this path")
    parser.add_argument("--size", type=int, default=224, help="of the crops, pixels (224)")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--lanes", type=int, help="of each node's daemon, if one is started (as many as Ray has CPUs there)")
    return parser.parse_args()


def main() -> None:
    given = arguments()
    ray.init(logging_level="ERROR")
    names = millrace.ray.class_names(given.folder)
    dataset = millrace.ray.read_images(
        given.folder,
        millrace.Recipe.train(given.size),
        include_labels=True,
        shuffle="files",
        on_error="skip",
        daemon=millrace.ray.Daemon(lanes=given.lanes),
    )
    for epoch in range(given.epochs):  # each execution has its own order and crops
        began, seen = time.monotonic(), collections.Counter[str]()
        for batch in dataset.iter_batches(batch_size=given.batch, batch_format="numpy"):
            seen.update(names[label] for label in batch["label"])
        rate = seen.total() / (time.monotonic() - began)
        print(f"epoch {epoch}: {seen.total()} images, {rate:,.0f} images/s; {dict(sorted(seen.items()))}", flush=True)
    millrace.ray.stop_daemons()


if __name__ == "__main__":
    main()
