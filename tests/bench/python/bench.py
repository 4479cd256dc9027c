#!/usr/bin/env python3
"""The Python package's figures: medians, against peers from PyPI in the same run.

    config/setup.sh bench --python [--only client,throughput,...] [--data FOLDER] [--rounds 5] [--batches 100000]

client      time on the client's thread from next() to the tensor, the batch being ready: 256 x 3 x 224 x 224 uint8, against PyTorch's
            DataLoader with one worker, whose batch is ready as well
throughput  images/s of the PyTorch loader's epochs against `millrace run`, from nothing to the last batch, same daemon, same lanes: of the
            folder, of a list of its files, and of the folder in a RandomSampler's order
dataloader  images/s of the PyTorch loader against torch.utils.data.DataLoader with two workers on the same cores: ImageFolder, PIL,
            RandomResizedCrop 224, flip, ToTensor, Normalize, float32; five epochs of a fresh daemon, the first, the
            later ones, and one without the cache
augmented   the same with published augmentations: torchvision's new recipe, RandAugment, SimCLR's view and its two views, DINO's ten crops,
            and timm's A1 where timm is there; samples/s, however many views one has; only when it is asked for
processors  images/s of one millrace.hf.ImageProcessor (CLIP-L/336, an image a call) that 4 threads share, of one for each of them, and of
            one thread
one_image   us of one image's way beside what the daemon's stages take, p50 and p99 on an idle daemon with one lane: 32 x 32 pixels and a
            photograph of 200 KB, bytes with the request; that by path; that padded to 1 MB
in_place    what writable batches cost where nothing is written, all is, or batches are kept: 38 MB of pixels, a thread of the session's own
transformers  milliseconds and images/s of millrace.hf.from_pretrained beside transformers' own image processors; only when it is asked for
ray         images/s of a dataset of millrace.ray.read_images, against Ray Data's own reading and Pillow; only when it is asked for
shards      images/s of millrace.Shards beside webdataset's pipeline in a DataLoader and beside a list of the same files; us a member of
            their index; only when it is asked for
urls        MB/s of millrace.RemoteShards, each request taking 20 ms, beside s3fs alone; only when it is asked for
tables      images/s of Hugging Face's Arrow files by parts beside plain files, beside the input ring and beside `datasets` in a
            DataLoader, and of compressed Parquet files in blocks beside the same; only when it is asked for
steady      100,000 batches of 8 small images, half of them in epochs and half on request: resident memory and descriptors along the way
import      `python -c "import millrace"`, from the start of the process to its end, against `import numpy` and no import

setup.sh makes the virtual environment, installs the wheel and the peers, and sets MILLRACE_DAEMON and MILLRACE_CLI.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import types
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import millrace
import millrace.hf
import millrace.numpy
import millrace.torch
import numpy as np
import torch
import torchvision
from millrace._memory.copy_on_write import Window, noticed
from torchvision.transforms import v2

from augmented import augmented, beside_dataloader
from one_image import one_image


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    figures = "client,throughput,dataloader,one_image,in_place,processors,steady,import"
    parser.add_argument("--only", default=figures, help="which, with commas between")
    parser.add_argument("--data", type=Path, help="a folder of photographs; none: $MILLRACE_TEST_DATA/photos")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batches", type=int, default=100_000, help="of the steady state")
    parser.add_argument("--lanes", type=int, default=0, help="of the daemon; 0: one a core")
    parser.add_argument("--json", action="store_true", help="one JSON object at the end instead of lines")
    return parser.parse_args()


def photographs(given: argparse.Namespace) -> Path:
    folder = given.data or Path(os.environ.get("MILLRACE_TEST_DATA", "/nowhere"), "photos")
    if not folder.is_dir():
        raise SystemExit(f"no folder of photographs: {folder}; give one with --data, or its parent in MILLRACE_TEST_DATA")
    return folder


def repeated(source: Path, target: Path, times: int) -> Path:
    """``source``'s files so many times in one class folder; no two JPEG files have the same bytes, by which a daemon knows new ones."""
    folder = target / "class"
    folder.mkdir(parents=True)
    for path in sorted(path for path in source.rglob("*") if path.is_file()):
        for copy in range(times):
            _write_copy(path.read_bytes(), copy, folder / f"{copy}_{path.name}")
    return target


def _write_copy(file: bytes, number: int, path: Path) -> None:
    start, comment = b"\xff\xd8", b"\xff\xfe\x00\x04" + number.to_bytes(2, "big")
    path.write_bytes(start + comment + file[2:] if file.startswith(start) else file)


# --------------------------------------------------------------------------------------------------------------- client


def timed(iterator: Iterator[Any], ready: Callable[[], None], count: int) -> list[float]:
    """Microseconds of each ``next()``, called when ``ready`` returns; the batch before is dropped outside of it."""
    times = []
    for _ in range(count):
        ready()
        began = time.perf_counter_ns()
        item = next(iterator)
        times.append((time.perf_counter_ns() - began) / 1e3)
        assert item[0].shape == (256, 3, 224, 224)
        del item
    return times


def client(given: argparse.Namespace, place: Path) -> dict[str, Any]:
    rounds = 4 * given.rounds
    source = photographs(given)
    files = sum(path.is_file() for path in source.rglob("*"))
    data = repeated(source, place / "client", -(-256 * (rounds + 6) // files))  # more than are taken, so that all slots are full
    with millrace.serve(data, lanes=given.lanes) as daemon, millrace.connect(daemon.address) as connected:
        loader = millrace.torch.Loader(data, millrace.Recipe.train(224), batch_size=256, slots=4, drop_last=True, name="bench client")

        taken = 0

        def ready() -> None:  # the daemon has filled every slot and rests
            nonlocal taken
            taken += 1
            while not any(s.batches >= taken + 3 for s in connected.statistics().sessions if s.name == "bench client"):
                time.sleep(0.02)
            time.sleep(0.05)

        with loader:
            iterator = iter(loader)
            next(iterator)
            ours = timed(iterator, ready, rounds)

    pipeline = v2.Compose([v2.PILToTensor(), v2.RandomResizedCrop(224, antialias=True), v2.RandomHorizontalFlip()])
    dataset = torchvision.datasets.ImageFolder(str(data), pipeline)
    peer = torch.utils.data.DataLoader(dataset, 256, num_workers=1, drop_last=True)
    waiting = iter(peer)
    began = time.monotonic()
    next(waiting)
    longest = 1.5 * (time.monotonic() - began)
    theirs = timed(waiting, lambda: time.sleep(longest), given.rounds)
    return {"p50_us": statistics.median(ours), "p90_us": float(np.percentile(ours, 90)), "dataloader_p50_us": statistics.median(theirs)}


# ----------------------------------------------------------------------------------------------------------- throughput


def epochs_rate(dataset: Any, address: str, epochs: int, **options: Any) -> float:
    began, images = time.monotonic(), 0
    options = {"batch_size": 64, "slots": 4, "on_error": "skip", "address": address, **options}
    options.setdefault("transform", millrace.Recipe.train(224))
    with millrace.torch.Loader(dataset, **options) as loader:
        for _ in range(epochs):
            for _, labels in loader:
                images += len(labels)  # of several views one is counted
        return images / (time.monotonic() - began)


def loader_rate(data: Path, address: str, epochs: int) -> float:
    return epochs_rate(data, address, epochs, shuffle=True)


def list_rate(data: Path, address: str, epochs: int) -> float:
    return epochs_rate([(path, number) for number, path in enumerate(files_of(data))], address, epochs, shuffle=True)


def sampler_rate(data: Path, address: str, epochs: int) -> float:
    return epochs_rate(data, address, epochs, sampler=torch.utils.data.RandomSampler(files_of(data)))


@functools.cache
def files_of(data: Path) -> list[str]:
    return sorted(str(path) for path in data.rglob("*") if path.is_file())


def command_rate(data: Path, address: str, epochs: int) -> float:
    command = [os.environ["MILLRACE_CLI"], "run", "--socket", address, "--dataset", str(data), "--recipe", "train", "--size", "224"]
    command += ["--batch", "64", "--slots", "4", "--epochs", str(epochs), "--shuffle", "--on-error", "skip", "--json"]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(json.loads(answer.stdout)["images_per_second"])


def throughput(given: argparse.Namespace, place: Path) -> dict[str, Any]:
    data = repeated(photographs(given), place / "throughput", 10)
    files_of(data)
    ours = {"loader": loader_rate, "list": list_rate, "sampler": sampler_rate}
    rates: dict[str, list[float]] = {name: [] for name in (*ours, "command")}
    with millrace.serve(data, lanes=given.lanes) as daemon:
        loader_rate(data, daemon.address, 1)
        order = [*ours.items(), ("command", command_rate)]
        for number in range(given.rounds):  # who is first alternates
            for name, rate in order if number % 2 else reversed(order):
                rates[name].append(rate(data, daemon.address, 10))
    figures = {f"{name}_images_per_s": statistics.median(found) for name, found in rates.items()}
    for name in ours:
        ratio = statistics.median(one / other for one, other in zip(rates[name], rates["command"], strict=True))
        figures["ratio" if name == "loader" else f"{name}_ratio"] = ratio
    return figures


# ----------------------------------------------------------------------------------------------------------- dataloader


def dataloader(given: argparse.Namespace, place: Path) -> dict[str, Any]:
    data = repeated(photographs(given), place / "dataloader", 20)
    steps = [v2.RandomResizedCrop(224, antialias=True), v2.RandomHorizontalFlip(), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]
    transform = v2.Compose([*steps, v2.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))])
    return beside_dataloader(given, data, transform)


# ----------------------------------------------------------------------------------------------------------- processors

CLIP_336 = {"image_processor_type": "CLIPImageProcessor", "size": {"shortest_edge": 336}, "crop_size": 336}


def processors_rate(processors: list[millrace.hf.ImageProcessor], paths: list[Path], calls: int) -> float:
    """Images/s of a thread for each of ``processors``."""

    def work(thread: int) -> None:
        for number in range(thread, calls, len(processors)):
            assert processors[thread](paths[number % len(paths)]).pixel_values.shape == (1, 3, 336, 336)

    with ThreadPoolExecutor(len(processors)) as pool:
        began = time.monotonic()
        list(pool.map(work, range(len(processors))))
        return calls / (time.monotonic() - began)


def processors(given: argparse.Namespace, place: Path) -> dict[str, Any]:
    del place
    paths = sorted(path for path in photographs(given).rglob("*") if path.is_file())
    rates: dict[str, list[float]] = {"one_thread": [], "shared": [], "own": []}
    with millrace.serve(photographs(given), lanes=given.lanes):
        own = [millrace.hf.ImageProcessor.from_config(CLIP_336) for _ in range(4)]
        chosen = {"one_thread": own[:1], "shared": own[:1] * 4, "own": own}
        processors_rate(own, paths, len(paths))
        for number in range(given.rounds):  # who is first alternates
            for name in list(chosen) if number % 2 else reversed(chosen):
                rates[name].append(processors_rate(chosen[name], paths, 4 * len(paths)))
        for processor in own:
            processor.close()
    ratio = statistics.median(shared / each for shared, each in zip(rates["shared"], rates["own"], strict=True))
    return {**{f"{name}_images_per_s": statistics.median(found) for name, found in rates.items()}, "ratio": ratio}


# --------------------------------------------------------------------------------------------------------- transformers


def transformers(given: argparse.Namespace, place: Path) -> dict[str, Any]:
    del place
    program = Path(__file__).with_name("image_processors.py")  # a process of its own, where PyTorch has one thread
    command = [sys.executable, str(program), str(photographs(given)), "--rounds", str(given.rounds)]
    found: dict[str, Any] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return found


# ------------------------------------------------------------------------------------------------------------------ ray


def ray(given: argparse.Namespace, place: Path) -> dict[str, Any]:
    import ray_data

    return ray_data.run(given, repeated(photographs(given), place / "ray", 20))


# --------------------------------------------------------------------------------------------------------------- shards


def shards(given: argparse.Namespace, place: Path) -> dict[str, Any]:
    import shards as figures

    return figures.run(given, repeated(photographs(given), place / "files", 20), place)


# --------------------------------------------------------------------------------------------------------------- tables


def tables(given: argparse.Namespace, place: Path) -> dict[str, Any]:
    import tables as figures

    return figures.run(given, repeated(photographs(given), place / "files", 20), place)


# ----------------------------------------------------------------------------------------------------------------- urls


def urls(given: argparse.Namespace, place: Path) -> dict[str, Any]:
    import urls as figures

    return figures.run(given, repeated(photographs(given), place / "files", 20), place)


# ------------------------------------------------------------------------------------------------------------- in_place


def in_place(given: argparse.Namespace, _: Path) -> dict[str, Any]:
    rounds = 10 * given.rounds
    timings: dict[str, list[float]] = {}

    def note(what: str, work: Callable[[], Any]) -> None:
        began = time.perf_counter_ns()
        work()
        timings.setdefault(what, []).append((time.perf_counter_ns() - began) / 1e3)

    size = 256 * 3 * 224 * 224
    with open(os.memfd_create("slot"), "w+b", buffering=0) as slot:
        slot.write(os.urandom(size))
        window = Window(slot.fileno(), 0, size, tells=noticed(slot.fileno()))
        pixels = np.asarray(types.SimpleNamespace(__array_interface__=window.array_interface))
        for _ in range(rounds):
            pixels[::4096].sum()
            note("unwritten_us", lambda: window.fresh(size))
            pixels[0] = 1
            note("a_byte_written_us", lambda: window.fresh(size))
            note("first_write_us", lambda: pixels.fill(1))
            note("second_write_us", lambda: pixels.fill(2))
            note("written_us", lambda: window.fresh(size))
            note("read_again_us", lambda: pixels[::4096].sum())
            note("keep_us", lambda: window.keep(size))
            window.fresh(size)
            note("copy_us", lambda: pixels.copy())
    return {what: statistics.median(times) for what, times in timings.items()}


# --------------------------------------------------------------------------------------------------------------- steady


def resident() -> float:
    """MiB of this process's memory that is not shared with the daemon."""
    fields = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
    return (int(fields["RssAnon"].split()[0]) + int(fields["RssFile"].split()[0])) / 1024


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def steady(given: argparse.Namespace, place: Path) -> dict[str, Any]:
    small = place / "small" / "class"
    small.mkdir(parents=True)
    for number in range(64):
        pixels = torch.randint(0, 256, (3, 40, 40), dtype=torch.uint8, generator=torch.Generator().manual_seed(number))
        torchvision.io.write_jpeg(pixels, str(small / f"{number:02d}.jpg"))
    seen: list[tuple[int, float, int]] = []
    recipe = millrace.Recipe.train(32)
    with (
        millrace.serve(place, lanes=given.lanes) as daemon,
        millrace.connect(daemon.address) as connected,
        connected.session(recipe, batch=8, slots=4) as session,
    ):
        dataset = session.dataset(place / "small")
        done = 0
        while done < given.batches:
            done += on_request(session, dataset, 1000) if (done // 1000) % 2 else in_epochs(dataset, done, 1000)
            if done % max(1000, given.batches // 10) == 0:
                seen.append((done, resident(), descriptors()))
    first, last = seen[0], seen[-1]
    return {
        "batches": last[0],
        "rss_mib_at_a_tenth": first[1],
        "rss_mib_at_the_end": last[1],
        "growth_mib": last[1] - first[1],
        "descriptors": [first[2], last[2]],
    }


def in_epochs(dataset: millrace.Dataset, epoch: int, batches: int) -> int:
    done = 0
    while done < batches:
        for batch in dataset.epoch(epoch=epoch + done, shuffle=True, on_error="fail"):
            assert torch.from_dlpack(batch.images).shape[0] == 8
            done += 1
    return done


def on_request(session: millrace.Session, dataset: millrace.Dataset, batches: int) -> int:
    samples = [millrace.DatasetSample(dataset.id, number) for number in range(8)]
    waiting = [session.submit(samples) for _ in range(3)]
    for _ in range(batches):
        waiting.append(session.submit(samples))
        with session.get(waiting.pop(0)) as batch:
            assert batch.images.numpy().shape[0] == 8
            assert len(batch.labels) == 8
    for number in waiting:
        session.get(number).release()
    return batches


# --------------------------------------------------------------------------------------------------------------- import


def importing(given: argparse.Namespace, place: Path) -> dict[str, Any]:
    programs = {"all_ms": "import millrace", "numpy_ms": "import numpy", "interpreter_ms": "pass"}
    times: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(2 * given.rounds + 1):
        for name, program in programs.items():
            began = time.perf_counter_ns()
            subprocess.run([sys.executable, "-c", program], check=True, cwd=place)
            times[name].append((time.perf_counter_ns() - began) / 1e6)
    medians = {name: statistics.median(each[1:]) for name, each in times.items()}  # the first finds files that are not in memory
    return {"ms": medians["all_ms"] - medians["interpreter_ms"], **medians}


def augmented_figure(given: argparse.Namespace, place: Path) -> dict[str, Any]:
    return augmented(given, repeated(photographs(given), place / "augmented", 3))


FIGURES: dict[str, Callable[[argparse.Namespace, Path], dict[str, Any]]] = {
    "client": client,
    "throughput": throughput,
    "dataloader": dataloader,
    "augmented": augmented_figure,
    "processors": processors,
    "one_image": lambda given, _: one_image(given, photographs(given)),
    "transformers": transformers,
    "in_place": in_place,
    "ray": ray,
    "shards": shards,
    "tables": tables,
    "urls": urls,
    "steady": steady,
    "import": importing,
}


def main() -> None:
    given = arguments()
    os.environ["XDG_STATE_HOME"] = "/dev/null"  # no daemon finds what an earlier one kept
    chosen = given.only.split(",")
    unknown = [name for name in chosen if name not in FIGURES]
    if unknown:
        raise SystemExit(f"--only: {', '.join(unknown)}: there are {', '.join(FIGURES)}")
    results = {}
    for name in chosen:
        with tempfile.TemporaryDirectory() as place:
            results[name] = FIGURES[name](given, Path(place))
        if not given.json:
            shown = ", ".join(
                f"{key} {value:,.3f}" if isinstance(value, float) else f"{key} {value}" for key, value in results[name].items()
            )
            print(f"{name}: {shown}", flush=True)
    if given.json:
        json.dump(results, sys.stdout)
        print()


if __name__ == "__main__":
    main()
