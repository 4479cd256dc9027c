"""Trains a small network with JAX under jit, the batches divided among processes and their devices.

    python train_jax.py FOLDER                                                        # one process
    python train_jax.py FOLDER --coordinator localhost:1234 --processes 2 --process 0 # and at the same time the same with --process 1

Each process's loader reads its share of an epoch. Its device is a sharding over all processes, so what comes is a global array of which
each process has a part, and jit adds the gradients up. The processes of a host share a daemon, which has to run (the service, or
`millrace.serve` in a program that starts these); with one process and none running, it starts one.
"""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import millrace
import millrace.jax


def parameters(classes: int) -> dict[str, jax.Array]:
    """Two convolutions and a classifier; the same in every process."""
    keys = jax.random.split(jax.random.key(0), 3)
    shapes = {"first": (16, 3, 3, 3), "second": (32, 16, 3, 3), "last": (32, classes)}
    return {name: 0.1 * jax.random.normal(key, shape) for key, (name, shape) in zip(keys, shapes.items(), strict=True)}


def loss_of(weights: Any, images: jax.Array, labels: jax.Array) -> jax.Array:
    for name in ("first", "second"):
        images = jax.nn.relu(jax.lax.conv(images, weights[name], (2, 2), "SAME"))
    likely = jax.nn.log_softmax(images.mean((2, 3)) @ weights["last"])
    return -jnp.take_along_axis(likely, labels[:, None], axis=1).mean()


@partial(jax.jit, donate_argnums=0)
def step(weights: Any, images: jax.Array, labels: jax.Array, rate: float) -> tuple[Any, jax.Array]:
    loss, gradients = jax.value_and_grad(loss_of)(weights, images, labels)
    return jax.tree.map(lambda weight, gradient: weight - rate * gradient, weights, gradients), loss


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--coordinator", help="address of process 0, HOST:PORT")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--process", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=32, help="images in a step, of all processes together (32)")
    parser.add_argument("--size", type=int, default=64, help="of the crops, pixels (64)")
    parser.add_argument("--rate", type=float, default=0.1)
    parser.add_argument("--ids", action="store_true", help="print the sample ids of every batch")
    given = parser.parse_args()
    with ExitStack() as stack:
        if given.processes > 1:
            jax.config.update("jax_cpu_collectives_implementation", "gloo")  # has no effect on other devices
            jax.distributed.initialize(given.coordinator, given.processes, given.process)
            stack.callback(jax.distributed.shutdown)
        else:
            stack.enter_context(millrace.serve(given.folder, reuse=True))
        mesh = Mesh(jax.devices(), "data")
        divided, everywhere = NamedSharding(mesh, PartitionSpec("data")), NamedSharding(mesh, PartitionSpec())
        recipe = millrace.Recipe.train(given.size).normalised("float32")
        loader = millrace.jax.Loader(
            given.folder, recipe, batch_size=given.batch // given.processes, shuffle=True, drop_last=True, device=divided
        )
        with loader:
            weights = jax.jit(partial(parameters, len(loader.classes)), out_shardings=everywhere)()
            for epoch in range(given.epochs):
                for images, labels in loader:
                    weights, loss = step(weights, images, labels, given.rate)
                    if given.ids:
                        print("ids", epoch, *loader.batch.ids)
                    del images, labels  # their slot can be filled again
                    print(f"loss {epoch} {float(loss):.6f}", flush=True)


if __name__ == "__main__":
    main()
