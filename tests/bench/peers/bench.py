#!/usr/bin/env python3
"""Millrace beside other ways from JPEG files to normalised tensors, on the same files, boxes and cores.

    config/setup.sh bench --peers [--only PEERS] [--rounds 5] [--batches 20] [--data FOLDER] [--out FOLDER] [--resume] [--publish]

train   RandomResizedCrop 224, flip, normalise; boxes and flips are those that Millrace draws, given to every peer that takes them
infer   resize 256, centre crop 224, normalise

Each peer is a process of its own, set as its documentation advises and pinned to one core, then another pinned to two; Millrace's client
and daemon share these cores. Rounds go round robin. A pass begins with nothing read ahead and ends with the last batch; the passes
of all peers are of the same images, in whole batches of which each core can have as many as the others. Before them each peer is warmed up
until its passes get no faster. Results: results.json, results.md and results.svg in --out.

MILLRACE_BENCH_CONFIG names a settings file for Millrace's daemon, for example one with cpu.target.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from draw import prepare
from drive import Failed, Worker
from figures import settled
from plot import draw_plot
from processes import PeakMemory
from report import Results, published, write_markdown
from roster import ROSTER, Entry, why_missing
from work import RECIPES, Work, pass_images, read_work

PIXELS = 64  # photographs whose pixels are compared
LONGEST_WARM_UP = 10  # passes


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="peers, with commas between: " + ", ".join(entry.name for entry in ROSTER))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batches", type=int, default=20, help="of 64 images in a pass, made up to a multiple of the cores")
    parser.add_argument("--cores", default="1,2", help="how many, with commas between")
    parser.add_argument("--data", type=Path, help="a folder of photographs; none: $MILLRACE_TEST_DATA/photos")
    parser.add_argument("--out", type=Path, default=Path("build/bench-peers"), help="where results and the copies of the photographs go")
    parser.add_argument("--environments", type=Path, default=Path("build"), help="where the virtual environments are")
    parser.add_argument("--resume", action="store_true", help="go on with a run that was interrupted, with the same options")
    parser.add_argument("--publish", action="store_true", help="also put the results into tests/bench/README.md")
    return parser.parse_args()


def photographs(given: argparse.Namespace) -> Path:
    folder = given.data or Path(os.environ.get("MILLRACE_TEST_DATA", "/nowhere"), "photos")
    if not folder.is_dir():
        raise SystemExit(f"no folder of photographs: {folder}; give one with --data, or its parent in MILLRACE_TEST_DATA")
    return Path(folder).resolve()


def chosen(only: str) -> list[Entry]:
    names = [name for name in only.split(",") if name]
    unknown = set(names) - {entry.name for entry in ROSTER}
    if unknown:
        raise SystemExit(f"--only: {', '.join(sorted(unknown))}: there are {', '.join(entry.name for entry in ROSTER)}")
    return [entry for entry in ROSTER if not names or entry.name in names]


def core_sets(counts: str) -> list[tuple[int, ...]]:
    """The last cores that this process may use: interrupts mostly go to the first."""
    allowed = sorted(os.sched_getaffinity(0))
    wanted = [int(count) for count in counts.split(",")]
    return [tuple(allowed[-count:]) for count in wanted if count <= len(allowed)]


class Bench:
    """The workers of one run, and what they have measured."""

    def __init__(self, given: argparse.Namespace, work_file: Path, results: Results) -> None:
        self._given, self._work_file, self._results = given, work_file, results
        self._work: Work = read_work(work_file)
        self._workers: dict[tuple[str, int], Worker] = {}
        self._began = time.monotonic()

    def say(self, text: str) -> None:
        print(f"[{time.monotonic() - self._began:4.0f} s] {text}", file=sys.stderr, flush=True)

    def start(self, entries: list[Entry]) -> None:
        for entry in entries:
            why = why_missing(entry, self._given.environments)
            if why is not None:
                self._give_up(entry.name, why)
                continue
            for cores in core_sets(self._given.cores):
                log = self._given.out / "logs" / f"{entry.name}.{len(cores)}.log"
                self._workers[entry.name, len(cores)] = Worker(entry, cores, self._work_file, self._given.environments, log)
        for (name, cores), worker in list(self._workers.items()):
            with self._surviving(name):
                worker.wait_ready()
                self._results.about[name] = worker.about
                self.say(f"{name}, {cores} cores: ready")

    @contextlib.contextmanager
    def _surviving(self, name: str) -> Iterator[None]:
        """A peer that fails leaves the run; the others go on."""
        try:
            yield
        except Failed as why:
            self._give_up(name, str(why))

    def _give_up(self, name: str, why: str) -> None:
        self.say(f"{name}: {why}")
        self._results.failures[name] = why
        for key in [key for key in self._workers if key[0] == name]:
            self._workers.pop(key).close(0)

    def warm_up(self) -> None:
        for (name, cores), worker in list(self._workers.items()):
            with self._surviving(name):
                for recipe in worker.about["recipes"]:
                    self._warm_up(worker, f"{name}, {cores} cores, {recipe}", recipe)
        self.say("warm")

    def _warm_up(self, worker: Worker, who: str, recipe: str) -> None:
        rates: list[float] = []
        while not settled(rates) and len(rates) < LONGEST_WARM_UP:
            last = worker.ask("warm_up", recipe=recipe)["passes"][-1]
            rates.append(last["images"] / last["seconds"])
        self.say(f"{who}: {'warm' if settled(rates) else 'not settled'} after {len(rates)} passes")

    def round(self, number: int) -> None:
        for cores in sorted({cores for _, cores in self._workers}):
            for recipe in RECIPES:
                for (name, own), worker in list(self._workers.items()):
                    if own != cores or recipe not in worker.about["recipes"] or self._results.has(number, name, cores, recipe):
                        continue
                    with self._surviving(name):
                        for found in worker.ask("timed", recipe=recipe, number=number, count=len(self._work.files))["passes"]:
                            self._results.add(number, name, cores, recipe, found)
        self.say(f"round {number + 1} of {self._given.rounds} done")

    def memory(self) -> None:
        """In passes of their own: looking at it costs time."""
        for (name, cores), worker in list(self._workers.items()):
            with self._surviving(name), PeakMemory(worker.pid) as peak:
                worker.ask("timed", recipe="train", number=0, count=len(self._work.files))
            self._results.memory[name, cores] = peak.bytes
        self.say("memory done")

    def differences(self) -> None:
        """To Pillow's pixels of the same boxes, in steps of 1/255."""
        with tempfile.TemporaryDirectory(dir=self._given.out) as place:
            reference = Path(place, "pillow")
            for (name, cores), worker in sorted(self._workers.items(), key=lambda item: item[0][0] != "pillow"):
                folder = Path(place, name)
                if cores != min(count for _, count in self._workers) or folder.exists():
                    continue
                folder.mkdir()
                with self._surviving(name):
                    worker.ask("pixels", folder=str(folder), count=min(PIXELS, self._work.distinct))
                    self._compare(name, folder, reference)
        self.say("pixels done")

    def _compare(self, name: str, folder: Path, reference: Path) -> None:
        for made in sorted(folder.glob("*.npy")):
            recipe, row, _ = made.name.split(".")
            expected = reference / f"{recipe}..npy"
            other_epoch = row in ("indexed", "packed") and recipe == "train"  # whose crops are others
            if expected.exists() and not other_epoch and recipe in self._results.about[name]["given_boxes"]:
                error = np.abs(np.load(made) - np.load(expected))
                self._results.differences[name, row, recipe] = (float(error.mean()), float(error.max()))
            if folder != reference:
                made.unlink()  # the next one needs the room

    def close(self) -> None:
        for worker in self._workers.values():
            worker.close()


def processor() -> str:
    fields = dict(line.split(":", 1) for line in Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines())
    known = {key.strip(): value.strip() for key, value in fields.items()}
    return f"{known.get('model name', 'unknown processor')}, model {known.get('model', '?')}"


def conditions(given: argparse.Namespace, work: Work) -> dict[str, Any]:
    return {
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0)),
        "python": sys.version.split()[0],
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        "load": [round(value, 1) for value in os.getloadavg()],
        "rounds": given.rounds,
        "images": len(work.files),
        "file_bytes": sum(Path(file).stat().st_size for file in work.files),
    }


def main() -> None:
    given = arguments()
    entries = chosen(given.only)
    given.out.mkdir(parents=True, exist_ok=True)
    given.out = given.out.resolve()
    images = pass_images(given.batches, [len(cores) for cores in core_sets(given.cores)])
    work_file = prepare(photographs(given), given.out, images)
    results = Results(given.out / "passes.jsonl", conditions(given, read_work(work_file)), resume=given.resume)
    bench = Bench(given, work_file, results)
    try:
        bench.start(entries)
        bench.warm_up()
        for number in range(given.rounds):
            bench.round(number)
        bench.memory()
        bench.differences()
    finally:
        bench.close()
    summary = results.summary()
    (given.out / "results.json").write_text(json.dumps(summary, indent=1))
    (given.out / "results.md").write_text(write_markdown(summary))
    (given.out / "results.svg").write_text(draw_plot(summary))
    if given.publish:
        page = Path(__file__).parents[1] / "README.md"
        page.write_text(published(page.read_text(), f"![images per second of each peer](peers/results.svg)\n\n{write_markdown(summary)}"))
        Path(__file__).with_name("results.svg").write_text(draw_plot(summary))
    print(write_markdown(summary))


if __name__ == "__main__":
    main()
