"""A training loop beside the daemon, and fed by it: what a step takes.

    beside.py training|soak FOLDER

FOLDER has folders of pictures. $MILLRACE_DAEMON is the daemon's program. training: the median step of ResNet-50 in bfloat16 on tensors that
are there already, alone, beside a daemon that another program keeps busy on the same GPU, and on the daemon's batches. soak: three minutes
of epochs while the process that has the GPU is killed again and again; every tensor is compared. $MILLRACE_SOAK_SECONDS: another time.
Exit status 77: what it needs is not here.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import itertools
import os
import random
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import millrace
import millrace.numpy
import numpy as np

BATCH = 128
STEPS = 60
SKIPPED = 77


def skip(why: str) -> None:
    print(f"not run: {why}")
    sys.exit(SKIPPED)


@contextlib.contextmanager
def busy(folder: str, daemon: millrace.PrivateDaemon) -> Iterator[None]:
    """Another process that takes images from the GPU as fast as they come."""
    program = str(Path(os.environ["MILLRACE_DAEMON"]).parent / "millrace")
    command = [program, "run", "--socket", daemon.address, "--dataset", folder, "--epochs", "100000", "--batch", "256", "--json"]
    with subprocess.Popen([*command, "--backend", "cuda", "--memory", "cuda:0"], stdout=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.kill()


def step_of(torch: Any, model: Any, optimiser: Any, images: Any, labels: Any) -> None:
    with torch.autocast("cuda", torch.bfloat16):
        loss = torch.nn.functional.cross_entropy(model(images), labels)
    optimiser.zero_grad(set_to_none=True)
    loss.backward()
    optimiser.step()


def median_step(torch: Any, train: Any, batches: Iterator[Any]) -> float:
    """Milliseconds, without waiting for the batch."""
    took = []
    for images, labels in itertools.islice(batches, STEPS):
        begun = time.perf_counter()
        train(images, labels)
        torch.cuda.synchronize()
        took.append(time.perf_counter() - begun)
    return statistics.median(took[STEPS // 6 :]) * 1000


def images_per_second(torch: Any, train: Any, batches: Iterator[Any]) -> float:
    """Of a loop that trains, waiting included, once it is under way."""
    begun, count = 0.0, 0
    for step, (images, labels) in enumerate(itertools.islice(batches, STEPS)):
        train(images, labels)
        if step < STEPS // 6:
            torch.cuda.synchronize()
            begun = time.perf_counter()
        else:
            count += len(images)
    torch.cuda.synchronize()
    return count / (time.perf_counter() - begun)


def training(folder: str) -> None:
    try:
        torch, torchvision = importlib.import_module("torch"), importlib.import_module("torchvision")
    except ImportError as error:
        skip(str(error))
    if not torch.cuda.is_available():
        skip("torch sees no GPU")
    loaders = importlib.import_module("millrace.torch")
    model = torchvision.models.resnet50().cuda().to(memory_format=torch.channels_last)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01)
    images = torch.rand(BATCH, 3, 224, 224, device="cuda").to(memory_format=torch.channels_last)
    labels = torch.zeros(BATCH, dtype=torch.int64, device="cuda")

    def train(images: Any, labels: Any) -> None:
        step_of(torch, model, optimiser, images, labels)

    def fed(daemon: millrace.PrivateDaemon) -> Iterator[Any]:
        recipe = millrace.Recipe.train(224).normalised("float16")
        options: dict[str, Any] = {"device": "cuda:0", "memory_format": torch.channels_last, "address": daemon.address, "shuffle": True}
        with loaders.Loader(folder, recipe, batch_size=BATCH, slots=4, drop_last=True, **options) as loader:
            while True:
                yield from loader

    alone = median_step(torch, train, itertools.repeat((images, labels)))
    print(f"step alone: {alone:.2f} ms")
    with millrace.serve(folder, cuda="yes", timeout=120) as daemon:
        idle = median_step(torch, train, itertools.repeat((images, labels)))
        print(f"beside an idle daemon: {idle:.2f} ms, {idle / alone:.3f} x")
        with busy(folder, daemon):
            beside = median_step(torch, train, itertools.repeat((images, labels)))
        print(f"beside a busy daemon: {beside:.2f} ms, {beside / alone:.3f} x")
        rate = images_per_second(torch, train, fed(daemon))
        print(f"fed by the daemon: {rate:.0f} images/s; alone {BATCH / alone * 1000:.0f}")


def owners_of(daemon: millrace.PrivateDaemon) -> list[int]:
    """The processes that have its GPUs."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(fields[1]) == daemon.pid and (entry / "comm").read_text().startswith("millrace-cuda"):
                found.append(int(entry.name))
    return found


def soak(folder: str) -> None:
    """Random recipes and kills: every tensor is the one that the processor makes."""
    draw = random.Random(int(os.environ.get("MILLRACE_SEED", "1")))
    over = threading.Event()

    def kill(daemon: millrace.PrivateDaemon) -> None:
        while not over.wait(draw.uniform(2, 10)):
            for owner in owners_of(daemon):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(owner, signal.SIGKILL)
                    killed.append(owner)

    compared, killed = 0, list[int]()
    until = time.monotonic() + float(os.environ.get("MILLRACE_SOAK_SECONDS", "180"))
    with millrace.serve(folder, cuda="yes", timeout=120) as daemon:
        killer = threading.Thread(target=kill, args=(daemon,))
        killer.start()
        try:
            while time.monotonic() < until:
                side, dtype = draw.choice([48, 96, 224]), draw.choice(["uint8", "float16", "float32"])
                recipe = dataclasses.replace(millrace.Recipe.train(side), layout=draw.choice(["NCHW", "NHWC"])).normalised(dtype)
                seed = draw.getrandbits(32)
                made = []
                for backend in ("", "cpu"):
                    with millrace.connect(daemon.address).session(recipe, 16, 2) as session:
                        epoch = session.epoch(session.dataset(folder), batch=16, seed=seed, shuffle=True, backend=backend)
                        made.append([np.array(batch.images.bits(), order="C").view(np.uint8) for batch in epoch])
                for one, other in zip(*made, strict=True):
                    assert np.array_equal(one, other), (recipe, seed)
                    compared += len(one)
        finally:
            over.set()
            killer.join()
    print(f"soak: {compared} images equal to the processor's, {len(killed)} kills")
    assert compared
    assert killed


def main() -> None:
    runs = {"training": training, "soak": soak}
    if len(sys.argv) != 3 or sys.argv[1] not in runs:
        sys.exit(str(__doc__))
    runs[sys.argv[1]](sys.argv[2])


main()
