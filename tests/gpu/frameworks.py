"""Tensors that lie in a GPU's memory, as programs have them: bit for bit what the host's memory has.

    frameworks.py numpy|torch|jax|cupy|sessions|resume FOLDER

FOLDER has folders of pictures. $MILLRACE_DAEMON is the daemon's program. Exit status 77: the framework is not here, or sees no GPU.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import millrace
import millrace.numpy
import numpy as np

DTYPES = ("uint8", "float16", "float32")
EPOCHS = 2
SESSIONS = 20
SKIPPED = 77
IS_REAL = Path("/dev/nvidiactl").exists()


def skip(why: str) -> None:
    print(f"not run: {why}")
    sys.exit(SKIPPED)


def framework(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        skip(str(error))


def sees_none(name: str) -> None:
    """On a machine with a GPU that is a failure of the machine's, not to be overlooked."""
    assert not IS_REAL, f"{name} sees no GPU, and /dev/nvidiactl is here"
    skip(f"{name} sees no GPU: its loaders were compared on the processor")


def recipe(dtype: str, layout: str = "NCHW") -> millrace.Recipe:
    return dataclasses.replace(millrace.Recipe.train(96), layout=layout).normalised(dtype)


@contextlib.contextmanager
def serving(folder: str) -> Iterator[millrace.PrivateDaemon]:
    """A daemon whose GPU may take its time: the simulated one clears memory with the host's processors."""
    with tempfile.TemporaryDirectory() as place:
        settings = Path(place) / "settings.toml"
        settings.write_text('[cuda]\nhang_milliseconds = 300000\nmemory = "512 MiB"\n')
        with millrace.serve(folder, cuda="yes", arguments=["--config", str(settings)], timeout=120) as daemon:
            yield daemon


def epochs_of(make: Callable[..., Any], to_host: Callable[[Any], Any], **options: Any) -> list[Any]:
    """All images of ``EPOCHS`` shuffled epochs, on the host, as bytes."""
    with make(batch_size=8, shuffle=True, seed=7, slots=3, **options) as loader:
        return [np.array(to_host(images), order="C").view(np.uint8) for _ in range(EPOCHS) for images, _ in loader]


def compare(what: str, here: list[Any], there: list[Any]) -> None:
    assert len(here) == len(there) > 0, (what, len(here), len(there))
    for number, (one, other) in enumerate(zip(here, there, strict=True)):
        np.testing.assert_array_equal(one, other, f"{what}: batch {number} differs", strict=True)
    print(f"{what}: {len(here)} batches equal")


def run_numpy(folder: str, daemon: millrace.PrivateDaemon) -> None:
    for dtype in DTYPES:
        for layout in ("NCHW", "NHWC"):
            images = {}
            for memory in ("host", "cuda:0"):
                client = millrace.connect(daemon.address)
                with client.session(recipe(dtype, layout), 8, 2, memory=memory) as session:
                    dataset = session.dataset(folder)
                    epoch = session.epoch(dataset, batch=8, seed=3, shuffle=True)
                    images[memory] = [np.ascontiguousarray(batch.images.bits()).view(np.uint8) for batch in epoch]
            compare(f"numpy {dtype} {layout}", images["host"], images["cuda:0"])


def run_torch(folder: str, daemon: millrace.PrivateDaemon) -> None:
    torch = framework("torch")
    loaders = importlib.import_module("millrace.torch")
    device = "cuda:0" if torch.cuda.is_available() else "cpu"
    for dtype in DTYPES:
        for form in (torch.contiguous_format, torch.channels_last):

            def make(on: str, dtype: str = dtype, form: Any = form, **options: Any) -> Any:
                return loaders.Loader(folder, recipe(dtype), device=on, memory_format=form, address=daemon.address, **options)

            def host(images: Any) -> Any:
                return images.cpu().contiguous().numpy()

            here = epochs_of(lambda **options: make("cpu", **options), host)
            there = epochs_of(lambda **options: make(device, **options), host)
            compare(f"torch {dtype} {form} on {device}", here, there)
    if device == "cpu":
        sees_none("torch")
    held_stream(folder, daemon, torch, loaders)
    captured_graph(folder, daemon, torch, loaders)


def held_stream(folder: str, daemon: millrace.PrivateDaemon, torch: Any, loaders: Any) -> None:
    """What a stream does late with a batch is done with that batch, also when the loop has gone on."""
    with loaders.Loader(folder, recipe("uint8"), device="cuda:0", address=daemon.address, batch_size=8, slots=2) as loader:
        expected = [images.clone() for images, _ in loader]
        loader.set_epoch(0)  # the same one again
        stream, copies = torch.cuda.Stream(), []
        for images, _ in loader:
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                torch.cuda._sleep(200_000_000)  # some 100 ms
                copies.append(images.clone())
            images.record_stream(stream)
            torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()
    for number, (one, other) in enumerate(zip(expected, copies, strict=True)):
        assert torch.equal(one, other), f"batch {number} was overwritten under a stream"
    print(f"torch held stream: {len(copies)} batches equal")


def captured_graph(folder: str, daemon: millrace.PrivateDaemon, torch: Any, loaders: Any) -> None:
    """Batches come and go on the default stream while another one is captured."""
    numbers, graph = torch.arange(1024, device="cuda:0", dtype=torch.float32), torch.cuda.CUDAGraph()
    with loaders.Loader(folder, recipe("float16"), device="cuda:0", address=daemon.address, batch_size=8, slots=3) as loader:
        batches = iter(loader)
        next(batches)
        torch.cuda.synchronize()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            doubled = numbers * 2
            with torch.cuda.stream(torch.cuda.default_stream()):
                next(batches)
        for _ in batches:
            pass
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(doubled, numbers * 2)
    print("torch graph: captured while batches came")


def run_jax(folder: str, daemon: millrace.PrivateDaemon) -> None:
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    jax = framework("jax")
    loaders = importlib.import_module("millrace.jax")
    gpus = [device for device in jax.devices() if device.platform == "gpu"]
    device = gpus[0] if gpus else jax.devices("cpu")[0]
    for dtype in DTYPES:

        def make(on: Any, dtype: str = dtype, **options: Any) -> Any:
            return loaders.Loader(folder, recipe(dtype), device=on, address=daemon.address, **options)

        here = epochs_of(lambda **options: make(jax.devices("cpu")[0], **options), np.asarray)
        compare(f"jax {dtype} on {device}", here, epochs_of(lambda **options: make(device, **options), np.asarray))
    if not gpus:
        sees_none("JAX")


def run_cupy(folder: str, daemon: millrace.PrivateDaemon) -> None:
    cupy = framework("cupy")
    if cupy.cuda.runtime.getDeviceCount() == 0:
        sees_none("CuPy")
    client = millrace.connect(daemon.address)
    found: dict[str, list[Any]] = {"host": [], "cuda:0": []}
    for memory, images in found.items():
        with client.session(recipe("float32"), 8, 2, memory=memory) as session:
            for batch in session.epoch(session.dataset(folder), batch=8, seed=3, shuffle=True):
                array = batch.images.numpy() if memory == "host" else cupy.asnumpy(cupy.asarray(batch.images))
                images.append(np.ascontiguousarray(array).view(np.uint8))
    compare("cupy float32", found["host"], found["cuda:0"])


def owner_of(daemon: millrace.PrivateDaemon) -> int:
    """The process that has the first GPU."""
    for entry in sorted(Path("/proc").glob("[0-9]*"), key=lambda place: int(place.name)):
        with contextlib.suppress(OSError):
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == daemon.pid and (entry / "comm").read_text().startswith("millrace-cuda"):
                return int(entry.name)
    raise AssertionError("the daemon has no millrace-cuda")


def figure(pid: int, name: str) -> int:
    """KiB of /proc/PID/status."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith(name + ":")), 0)


def run_sessions(folder: str, daemon: millrace.PrivateDaemon) -> None:
    """Twenty sessions with their memory on the GPU leave the daemon and the owner of the GPU as large as the first few did."""
    client, owner = millrace.connect(daemon.address), owner_of(daemon)
    sizes = []
    for _ in range(SESSIONS):
        with client.session(recipe("float16"), 8, 3, memory="cuda:0") as session:
            for batch in session.epoch(session.dataset(folder), batch=8, seed=1, shuffle=True):
                batch.images.numpy()
        sizes.append((figure(daemon.pid, "VmRSS"), figure(owner, "VmRSS")))
    print(f"millraced {sizes[0][0]} -> {sizes[-1][0]} KiB; millrace-cuda {sizes[0][1]} -> {sizes[-1][1]} KiB")
    print(f"most: millraced {figure(daemon.pid, 'VmHWM')} KiB, millrace-cuda {figure(owner, 'VmHWM')} KiB")
    early, late = (max(sum(size) for size in part) for part in (sizes[: SESSIONS // 2], sizes[SESSIONS // 2 :]))
    assert late < early * 1.25 + 64 * 1024, sizes


def run_resume(folder: str, daemon: millrace.PrivateDaemon) -> None:
    """The GPU's process is killed in the middle of an epoch: a loader goes on, and loses and doubles nothing."""

    def images(kill: bool) -> list[Any]:
        options: dict[str, Any] = {"batch_size": 4, "slots": 2, "seed": 5, "shuffle": True, "resume": True, "address": daemon.address}
        found = []
        with millrace.numpy.Loader(folder, recipe("uint8"), **options) as loader:
            for number, (batch, _) in enumerate(loader):
                found.append(np.array(batch).view(np.uint8))
                if kill and number == 2:
                    os.kill(owner_of(daemon), signal.SIGKILL)
        return found

    compare("resume", images(kill=False), images(kill=True))
    client = millrace.connect(daemon.address)
    until = time.monotonic() + 120
    while not all(device.ready for device in client.devices()):
        assert time.monotonic() < until, "the GPU has not come back within two minutes"
        time.sleep(0.1)
    print("resume: the GPU is back")


def main() -> None:
    runs = {
        "numpy": run_numpy,
        "torch": run_torch,
        "jax": run_jax,
        "cupy": run_cupy,
        "sessions": run_sessions,
        "resume": run_resume,
    }
    if len(sys.argv) != 3 or sys.argv[1] not in runs:
        sys.exit(str(__doc__))
    with serving(sys.argv[2]) as daemon:
        runs[sys.argv[1]](sys.argv[2], daemon)


if __name__ == "__main__":
    main()
