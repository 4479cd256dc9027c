#!/usr/bin/env python3
"""L3 beside other lossless formats, and beside other decoders of PNG: the same pictures, a process each, one thread each.

    config/setup.sh bench --l3 [--quick] [--rounds N] [--data FOLDER]    # builds what it needs, then this
    tests/bench/peers/l3.py [--quick] ...                                # again, with what was built
    VENV/bin/python tests/bench/peers/l3.py [--quick] ...                # without config/setup.sh: VENV has requirements-l3.txt

Draws sets of pictures (l3_sets.py), converts them to L3 by `millrace convert --to l3`, has the others write theirs, and prints:
sizes by set, decoding, loading with decoding, epochs of `millrace run`, and each aim with what came of it. A miss fails nothing.

Rounds go round robin, and the first does not count. A time is the median over rounds of processor time, of whatever threads; a ratio
is the median of the ratios within rounds. Epochs are rates by the clock. GB are 10^9 bytes of pixels. --quick makes two
rounds and leaves out how fast screens are decoded: some two minutes on a quiet machine.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from l3_report import Measured, print_report
from roster import ROSTER, interpreter, why_missing

TOP = Path(__file__).resolve().parents[3]
HERE = Path(__file__).parent
SPEED_SETS = ("kodak", "photographs", "screens")
EPOCHS, EPOCH_COPIES = 3, 10
DALI = next(entry for entry in ROSTER if entry.name == "dali")
# All decode SPEED_SETS. True: this one loads files as well.
PEERS = {
    "libpng": True,
    "pillow": True,
    "kornia_rs": True,
    "dali": False,
    "qoi": False,
    "webp": True,
    "jpeg_xl_1": False,
    "jpeg_xl_3": False,
    "lz4": False,
}
READ_PNG = ("libpng", "pillow", "kornia_rs", "dali")
PROGRAMS = ("millrace", "millraced", "millrace_bench_l3")
OURS = ("png", "l3.avx512", "l3.avx2", "l3.scalar", "crop", "fast", "best")


class Process:
    """Answers a line with a line."""

    def __init__(self, name: str, command: list[str]) -> None:
        self.name = name
        settings = {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", **dict(DALI.settings)}
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
        self._process = subprocess.Popen(command, env={**os.environ, **settings}, **pipes)

    def ask(self, what: str, name: str) -> float | None:
        """None: it has no such thing."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{what} {name}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline().strip()
        if not answer:
            raise EOFError(f"{self.name} ended with status {self._process.wait()} at {what} {name}")
        return None if answer == "none" else float(answer)

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def start_peers(python: Path, environments: Path, folder: Path, notes: list[str]) -> list[Process]:
    started = []
    for name in PEERS:
        by = interpreter(DALI, environments) if name == "dali" else python
        reason = why_missing(DALI, environments) if name == "dali" else None
        peer = None if reason else Process(name, [str(by), str(HERE / "l3_peers.py"), name, str(folder)])
        try:
            if peer:
                peer.ask("size", "kodak")
                started.append(peer)
        except EOFError as why:
            reason = str(why)
        if reason:
            notes.append(f"Without {name}: {reason}.")
    return started


def wanted_passes(peers: list[Process], ours: Process, sets: tuple[str, ...], sizes: list[str]) -> list[tuple[Process, str, str]]:
    """What a round has, in its order: a set after the other, so that those that are compared lie close together."""
    passes = [(peer, "decode", name) for name in sets for peer in peers]
    passes += [(ours, what, name) for name in sets for what in OURS]
    passes += [(peer, "load", size) for size in sizes for peer in peers if PEERS[peer.name]]
    passes += [(ours, what, size) for size in sizes for what in ("load.png", "load.l3")]
    passes += [(ours, what, sizes[-1]) for what in ("l3.avx512", "l3.avx2", "crop")]
    return sorted(passes, key=lambda made: (*sets, *sizes).index(made[2]))


def measure(passes: list[tuple[Process, str, str]], rounds: int) -> dict[tuple[str, str, str], list[float]]:
    """Seconds by peer, pass and set, a number a round."""
    times: dict[tuple[str, str, str], list[float]] = {}
    for number in range(rounds + 1):
        say(f"round {number} of {rounds}")
        for process, what, name in passes:
            seconds = process.ask(what, name)
            if number > 0 and seconds is not None:
                times.setdefault((process.name, what, name), []).append(seconds)
    return times


def rates_of_epochs(programs: Path, folder: Path, cache: str) -> list[float]:
    """Images a second of each epoch of a daemon of its own."""
    command = [str(programs / "millrace"), "run", "--private", "--dataset", str(folder), "--recipe", "train", "--size", "224"]
    command += ["--epochs", str(EPOCHS), "--cache", cache, "--json"]
    told = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    if told["bad"]:
        raise SystemExit(f"{told['bad']} pictures of {folder} are bad")
    return [epoch["images_per_second"] for epoch in told["epochs"]]


def measure_epochs(programs: Path, folder: Path, rounds: int) -> dict[str, list[list[float]]]:
    pictures = sorted(folder.glob("*.png"))
    for number in range(1, EPOCH_COPIES):
        for path in pictures:
            shutil.copyfile(path, folder / f"{path.stem}_{number}.png")
    rates: dict[str, list[list[float]]] = {"off": [], "packed": []}
    for number in range(rounds):
        say(f"epochs, round {number + 1} of {rounds}")
        for cache, found in rates.items():
            found.append(rates_of_epochs(programs, folder, cache))
    return rates


def sizes_of(name: str, peers: list[Process], folder: Path) -> dict[str, float | None]:
    """Bytes of a set's files, by format; of pictures to be loaded those of PNG and L3."""
    say(f"sizes of {name}")
    sizes: dict[str, float | None] = {}
    for suffix in ("png", "l3"):
        sizes[suffix] = sum(path.stat().st_size for path in (folder / suffix / name).iterdir())
    if name[0].isdecimal():
        return sizes
    return sizes | {peer.name: peer.ask("size", name) for peer in peers if peer.name not in READ_PNG}


def say(what: str) -> None:
    print(f"l3.py: {what}", file=sys.stderr, flush=True)


def run(given: argparse.Namespace, folder: Path) -> Measured:
    say("draws pictures")
    if subprocess.run([str(given.python), str(HERE / "l3_sets.py"), str(given.data), str(folder)]).returncode != 0:
        raise SystemExit(f"{given.python} draws no pictures: config/setup.sh bench --l3 installs what it needs")
    about = json.loads((folder / "sets.json").read_text())
    say("converts them to L3")
    convert = [str(given.programs / "millrace"), "convert", "--to", "l3", "--effort", "best", str(folder / "png"), str(folder / "l3")]
    subprocess.run(convert, check=True, stdout=subprocess.DEVNULL)
    notes, epoch_rounds = list(about["notes"]), 1 if given.quick else 3
    peers = start_peers(given.python, given.environments, folder, notes)
    ours = Process("millrace", [str(given.programs / "millrace_bench_l3"), str(folder)])
    sizes = {found["name"]: sizes_of(found["name"], peers, folder) for found in about["sets"]}
    load_sizes = [found["name"] for found in about["sets"] if found["name"][0].isdecimal()]
    speed_sets = SPEED_SETS[:2] if given.quick else SPEED_SETS
    times = measure(wanted_passes(peers, ours, speed_sets, load_sizes), given.rounds or (2 if given.quick else 9))
    for process in (*peers, ours):
        process.close()
    return Measured(
        about["sets"], SPEED_SETS, load_sizes, sizes, times, measure_epochs(given.programs, folder / "epoch", epoch_rounds), notes
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few rounds, and less of them")
    parser.add_argument("--rounds", type=int, help="that count (default: 9; with --quick 2)")
    parser.add_argument("--data", type=Path, help="a folder with kodak and photos (default: $MILLRACE_TEST_DATA)")
    parser.add_argument("--programs", type=Path, default=TOP / "build" / "release" / "bin", help="where millrace and others are")
    parser.add_argument("--environments", type=Path, default=TOP / "build", help="where venv-peers-l3 is, and venv-peers with DALI")
    given = parser.parse_args()
    given.data = given.data or Path(os.environ.get("MILLRACE_TEST_DATA", TOP.parent / "shared" / "data"))
    own = given.environments / "venv-peers-l3" / "bin" / "python"
    given.python = own if own.exists() else Path(sys.executable)
    for name in PROGRAMS:
        if not (given.programs / name).exists():
            raise SystemExit(f"there is no {given.programs / name}: config/setup.sh bench --l3 builds it")
    with tempfile.TemporaryDirectory(prefix="millrace_l3_") as folder:
        print_report(run(given, Path(folder)))


if __name__ == "__main__":
    main()
