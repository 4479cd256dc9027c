"""Trains a small network with Keras 3, on PyTorch or JAX.

    KERAS_BACKEND=torch python train_keras.py TRAIN VALIDATION
    KERAS_BACKEND=jax python train_keras.py TRAIN VALIDATION --coordinator localhost:1234 --processes 2 --process 0    # and --process 1

With JAX Keras divides batches among processes (`keras.distribution`); each process's loader reads its share. With PyTorch it has no such
thing, so there it is one process. Several processes share a daemon, which has to run; with one process and none running, it starts one.
"""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import keras

import millrace
import millrace.keras


def loader(*arguments: Any, **options: Any) -> Any:
    if keras.backend.backend() == "torch":
        import millrace.torch

        return millrace.torch.Loader(*arguments, **options)
    import millrace.jax

    return millrace.jax.Loader(*arguments, **options)


def divide(given: argparse.Namespace) -> None:
    """Has Keras divide batches among processes. The shares of the data set are the loaders' business."""
    if keras.backend.backend() != "jax":
        raise SystemExit(f"Keras trains in several processes with JAX, not with {keras.backend.backend()}")
    keras.distribution.initialize(given.coordinator, given.processes, given.process)
    keras.distribution.set_distribution(keras.distribution.DataParallel(auto_shard_dataset=False))


class Log(keras.callbacks.Callback):  # type: ignore[misc]
    """Prints what every batch had."""

    def __init__(self, loader: Any) -> None:
        super().__init__()
        self.loader = loader

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        print("ids", self.loader.epoch, *self.loader.batch.ids, flush=True)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        print("loss", epoch, f"{logs['loss']:.6f}", f"{logs['val_loss']:.6f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train", type=Path)
    parser.add_argument("validation", type=Path)
    parser.add_argument("--coordinator", help="address of process 0, HOST:PORT")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--process", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=32, help="images in a step, of all processes together (32)")
    parser.add_argument("--size", type=int, default=64, help="of the crops, pixels (64)")
    parser.add_argument("--rate", type=float, default=0.1)
    parser.add_argument("--ids", action="store_true", help="print the sample ids of every batch, and the losses")
    given = parser.parse_args()
    with ExitStack() as stack:
        if given.processes > 1:
            divide(given)
        else:
            stack.enter_context(millrace.serve([given.train, given.validation], reuse=True))
        keras.utils.set_random_seed(0)
        keras.config.set_image_data_format("channels_first")
        each, normalised = given.batch // given.processes, millrace.Recipe.train(given.size).normalised("float32")
        train = stack.enter_context(loader(given.train, normalised, batch_size=each, shuffle=True, drop_last=True))
        fixed = millrace.Recipe.evaluate(given.size, given.size).normalised("float32")
        validation = stack.enter_context(loader(given.validation, fixed, batch_size=each, on_error="substitute"))
        model = keras.Sequential(
            [
                keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
                keras.layers.Conv2D(32, 3, strides=2, activation="relu"),
                keras.layers.GlobalAveragePooling2D(),
                keras.layers.Dense(len(train.classes)),
            ]
        )
        model.compile(keras.optimizers.SGD(given.rate), keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
        model.fit(
            millrace.keras.Dataset(train),
            validation_data=millrace.keras.Dataset(validation),
            epochs=given.epochs,
            callbacks=[Log(train)] if given.ids else [],
            verbose=0 if given.ids else "auto",
        )


if __name__ == "__main__":
    main()
