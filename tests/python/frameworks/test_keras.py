"""Keras 3: the example with both backends and in two processes; what a pass of Keras's is to a loader."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
from pathlib import Path

import millrace
import millrace.numpy
import pytest

from pictures import COUNT

if importlib.util.find_spec("keras") is None:  # importing it here would choose a backend
    pytest.skip("Keras is not installed: millrace.keras is not tested", allow_module_level=True)
pytestmark = pytest.mark.long
EXAMPLE = Path(__file__).parents[3] / "client" / "python" / "examples" / "train_keras.py"


def together(daemon: millrace.PrivateDaemon, backend: str, *commands: list[object]) -> list[str]:
    """What the programs print, which run at the same time."""
    environment = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE")}
    environment |= {"KERAS_BACKEND": backend, "JAX_PLATFORMS": "cpu", "MILLRACE_SOCKET": daemon.address, "OMP_NUM_THREADS": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    running = [subprocess.Popen([sys.executable, *map(str, each)], env=environment, text=True, **pipes) for each in commands]  # type: ignore[call-overload]
    outputs = [process.communicate(timeout=900) for process in running]
    assert [process.returncode for process in running] == [0] * len(running), outputs
    return [output for output, _ in outputs]


def ids_of(output: str) -> list[list[list[int]]]:
    """Of both epochs the ids of every batch."""
    rows = [list(map(int, line.split()[1:])) for line in output.splitlines() if line.startswith("ids ")]
    return [[row[1:] for row in rows if row[0] == epoch] for epoch in range(2)]


def losses_of(output: str) -> list[float]:
    return [float(number) for line in output.splitlines() if line.startswith("loss ") for number in line.split()[2:]]


@pytest.mark.parametrize(
    "backend", [pytest.param("torch", marks=[pytest.mark.torch, pytest.mark.smoke]), pytest.param("jax", marks=pytest.mark.jax)]
)
def test_an_epoch_of_keras_is_one_of_the_loader(daemon: millrace.PrivateDaemon, folder: Path, backend: str) -> None:
    (output,) = together(daemon, backend, [EXAMPLE, folder, folder, "--batch", 8, "--size", 24, "--ids"])

    recipe = millrace.Recipe.train(24)
    with millrace.numpy.Loader(folder, recipe, batch_size=8, shuffle=True, drop_last=True, address=daemon.address) as loader:
        assert ids_of(output) == [[loader.batch.ids.tolist() for _ in loader] for _ in range(2)]  # type: ignore[union-attr]
    assert len(losses_of(output)) == 4


@pytest.mark.jax
def test_two_processes_of_jax_compute_what_one_does(daemon: millrace.PrivateDaemon, folder: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        coordinator = f"127.0.0.1:{free.getsockname()[1]}"
    command: list[object] = [EXAMPLE, folder, folder, "--batch", 12, "--size", 24, "--ids"]

    (one,) = together(daemon, "jax", command)
    both = together(
        daemon, "jax", *([*command, "--coordinator", coordinator, "--processes", 2, "--process", number] for number in range(2))
    )

    assert losses_of(both[0]) == losses_of(both[1]) == pytest.approx(losses_of(one), rel=1e-4)
    for epoch in range(2):
        assert sorted(n for output in both for row in ids_of(output)[epoch] for n in row) == list(range(COUNT))


@pytest.mark.torch
def test_several_processes_of_torch_are_refused_by_the_example(daemon: millrace.PrivateDaemon, folder: Path) -> None:
    environment = {**os.environ, "KERAS_BACKEND": "torch", "MILLRACE_SOCKET": daemon.address}
    command = [sys.executable, str(EXAMPLE), str(folder), str(folder), "--processes", "2"]
    told = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert (told.returncode, "with JAX, not with torch" in told.stderr) == (1, True)


PASSES = """
import sys
import keras, numpy as np
import millrace, millrace.keras, millrace.numpy, millrace.torch

def model():
    made = keras.Sequential([keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(3)])
    made.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    return made

class Seen(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.ids = []
    def on_train_batch_end(self, batch, logs=None):
        self.ids.append((loader.epoch, *loader.batch.ids.tolist()))
    def on_epoch_end(self, epoch, logs=None):
        self.ids.append("end")

recipe = millrace.Recipe.train(24).normalised("float32")
options = {"batch_size": 10, "shuffle": True}
with millrace.numpy.Loader(sys.argv[1], recipe, **options) as reference:
    whole = [[(epoch, *reference.batch.ids.tolist()) for _ in reference] for epoch in range(4)]

def fitted(**arguments):
    seen = Seen()
    model().fit(data, callbacks=[seen], verbose=0, **arguments)
    return seen.ids

with millrace.torch.Loader(sys.argv[1], recipe, **options) as loader:
    data = millrace.keras.Dataset(loader)
    assert len(data) == data.num_batches == 6
    # Building the model takes a batch and ends the pass; the epoch is whole all the same.
    assert fitted(epochs=2, class_weight={0: 1.0, 1: 2.0, 2: 3.0}) == [*whole[0], "end", *whole[1], "end"]
    # With steps_per_epoch an epoch of the loader's is several of Keras's.
    loader.set_epoch(0)
    assert fitted(epochs=3, steps_per_epoch=3) == [*whole[0][:3], "end", *whole[0][3:], "end", *whole[1][:3], "end"]
    # A state within an epoch: the rest of it, then the next one.
    loader.load_state_dict({"version": 1, "epoch": 2, "batches": 4, "position": ""})
    data = millrace.keras.Dataset(loader)
    assert fitted(epochs=1) == [*whole[2][4:], *whole[3][:4], "end"]
    for refused in ({"y": np.zeros(60)}, {"sample_weight": np.zeros(60)}):
        try:
            model().fit(data, verbose=0, **refused)
        except ValueError as why:
            assert "PyDataset" in str(why)
        else:
            raise AssertionError(refused)

loader = millrace.torch.Loader(sys.argv[1], millrace.Recipe.evaluate(24, 24).normalised("float32"), batch_size=10)
with loader:
    data, net = millrace.keras.Dataset(loader), model()
    assert net.predict(data, verbose=0).shape == (60, 3)
    once = net.evaluate(data, verbose=0)
    assert net.evaluate(data, verbose=0) == once
    assert net.evaluate(data, steps=2, verbose=0) == net.evaluate(data, steps=2, verbose=0) != once
try:
    millrace.keras.Dataset(sys.argv[1])
except millrace.InvalidRequest as why:
    assert "takes a loader" in str(why)
print("done")
"""


@pytest.mark.torch
def test_passes_that_are_ended_early_cut_into_steps_or_resumed(daemon: millrace.PrivateDaemon, folder: Path) -> None:
    assert together(daemon, "torch", ["-c", PASSES, folder]) == ["done\n"]


@pytest.mark.torch
def test_a_pass_does_not_run_into_the_next_epoch_where_whole_batches_are_left_out(daemon: millrace.PrivateDaemon, folder: Path) -> None:
    program = """if True:
        import sys, warnings
        import millrace.keras, millrace.torch
        warnings.simplefilter("ignore")
        files = sorted(str(path) for path in __import__("pathlib").Path(sys.argv[1]).rglob("*.png"))
        files[10:20] = [file + ".gone.png" for file in files[10:20]]
        loader = millrace.torch.Loader([(file, 0) for file in files], millrace.Recipe.evaluate(32, 24), batch_size=10, on_error="skip")
        passed, taken = millrace.keras.Dataset(loader), 0
        try:
            for index in range(2 * len(passed)):
                passed[index]
                taken += 1
        except millrace.FailedPrecondition as why:
            print(taken, why)
    """
    environment = {**os.environ, "KERAS_BACKEND": "torch", "MILLRACE_SOCKET": daemon.address}
    done = subprocess.run([sys.executable, "-c", program, folder], env=environment, capture_output=True, text=True, timeout=900, check=True)
    assert done.stdout.startswith("5 "), done.stdout
    assert "1 batches less than Keras expects" in done.stdout
