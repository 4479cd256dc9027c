#!/usr/bin/env python3
"""The first day on a GPU, in three commands of at most ten minutes each.

    KIT/day1.py correct|speed|beside OUT

  correct  the kernels against the CPU's tensors, files and packed forms mixed; compute-sanitizer's tools; the conformance suite; the tests
           of the hand-over, as root also to other users and namespaces; NumPy, PyTorch, JAX, CuPy; kills; memory
  speed    the kernels alone, beside nvJPEG where that is installed; images/s by memory, element type, lanes and cache; what an image costs
           the host; DALI, where it is installed
  beside   a training step alone, beside the daemon, and fed by it; then three minutes of epochs with kills

Every step has a line (name; ok, failed or skipped; seconds), on the terminal and in OUT/WHAT.tsv, and a log in OUT/WHAT-logs.tar.gz. A step
that fails does not keep the next from running. Exit status: 1 a step failed; 77 there is no GPU for this process.
With LD_LIBRARY_PATH=.../tests/support/cuda_driver/lib it runs on the simulated driver: a rehearsal, whose figures mean nothing.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

KIT = Path(__file__).resolve().parent
IMAGES = KIT / "images"
SKIPPED = 77
IS_REAL = Path("/dev/nvidiactl").exists()
COPIES = 100 if IS_REAL else 1
"""Of each photograph, so that an epoch takes seconds."""
PATIENCE = 1 if IS_REAL else 10
"""A simulated GPU computes with the host's processors."""
MINUTES = 9.5


class Day:
    """Steps, each a program with a limit of time, all together within ``MINUTES``."""

    def __init__(self, name: str, out: Path, work: Path) -> None:
        self.failed: list[str] = []
        self._table, self._logs, self._out, self._name = out / f"{name}.tsv", out / f"{name}-logs", out, name
        self._ends = time.monotonic() + 60 * MINUTES * PATIENCE
        self.root, self.work = work / "kit", work
        shutil.rmtree(self._logs, ignore_errors=True)
        self._logs.mkdir()
        self._table.write_text("")

    def step(self, name: str, limit: int, *command: str | Path) -> None:
        left = self._ends - time.monotonic()
        if left < 5:
            return self.skip(name, "the day is over")
        log, begun, within = self._logs / f"{name}.log", time.monotonic(), min(limit * PATIENCE, left)
        how = "ok"
        with log.open("ab") as output:
            try:
                how = self._run(command, output, within)
            except OSError as error:
                how = f"failed ({error})"
        self._say(name, how, time.monotonic() - begun)
        if how != "ok":
            print("".join(f"    {line}\n" for line in log.read_text(errors="replace").splitlines()[-12:]), end="", flush=True)

    @staticmethod
    def _run(command: tuple[str | Path, ...], output: IO[bytes], within: float) -> str:
        """In a session of its own, so that all of it ends: compute-sanitizer runs its target as a child."""
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        ) as process:
            try:
                status = process.wait(within)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                return f"failed (after {within:.0f} s)"
        return {0: "ok", SKIPPED: "skipped"}.get(status, f"failed ({status})")

    def skip(self, name: str, why: str) -> None:
        (self._logs / f"{name}.log").write_text(f"{why}\n")
        self._say(name, f"skipped ({why})", 0)

    def _say(self, name: str, how: str, seconds: float) -> None:
        if how.startswith("failed"):
            self.failed.append(name)
        line = f"{name}\t{how}\t{seconds:.1f} s"
        print(line, flush=True)
        with self._table.open("a") as table:
            table.write(f"{line}\n")

    def keep_logs(self) -> None:
        """One file in the place of many."""
        with tarfile.open(self._out / f"{self._name}-logs.tar.gz", "w:gz") as archive:
            archive.add(self._logs, "logs")
        shutil.rmtree(self._logs)

    def benchmark(self, name: str, limit: int, *arguments: str | Path, under: tuple[str, ...] = ()) -> None:
        """The kernels' own program, which calls NVIDIA's runtime: the simulated driver has none."""
        program = self.root / "bin/bench"
        if not program.exists():
            self.skip(name, "the kit has no benchmark of the kernels")
        elif not IS_REAL:
            self.skip(name, "it needs a GPU that is not simulated")
        elif under and shutil.which(under[0]) is None:
            self.skip(name, f"{under[0]} is not here")
        else:
            self.step(name, limit, *under, program, IMAGES, *arguments)


def correct(day: Day) -> None:
    python = sys.executable
    checked = ("--checksums", KIT / "checksums.txt", "--only-check")
    mixed = (*checked, "--packed", KIT / "packed")
    day.step("facts", 120, "sh", "-c", "uname -a; ldd --version | head -n 1; nproc; nvidia-smi -q; millrace-cuda")
    day.step("doctor", 60, "millrace", "doctor", "--private", "--cuda", "yes")
    day.benchmark("kernels", 120, *checked)
    day.benchmark("kernels-mixed", 120, *mixed, "--repeat", "10")
    for tool in ("memcheck", "racecheck", "synccheck", "initcheck"):
        under = ("compute-sanitizer", "--tool", tool, "--error-exitcode", "9")
        day.benchmark(f"sanitizer-{tool}", 60, *mixed, "--every", "20", under=under)
    day.step("conformance", 150, "millrace_conformance")
    day.step("hand-over", 180, "millrace_system_cuda", "[gpu]", "--durations", "yes")
    for name in ("numpy", "torch", "jax", "cupy", "sessions", "resume"):
        day.step(f"python-{name}", 90, python, KIT / "frameworks.py", name, IMAGES)
    day.step("python-recipes", 120, python, KIT / "recipes.py", IMAGES / "photos", "500" if IS_REAL else "48")


def many_photographs(day: Day) -> Path:
    many = day.work / "many"
    many.mkdir()
    for number, photo in itertools.product(range(COPIES), sorted((IMAGES / "photos").iterdir())):
        shutil.copy(photo, many / f"{number}-{photo.name}")
    return many


def speed(day: Day) -> None:
    many = many_photographs(day)
    day.benchmark("kernels", 150)
    for lanes in (1, 2, 4):
        with serving(day.work, f"[cuda]\nlanes = {lanes}\n", many) as socket:
            command = ["millrace", "run", "--socket", socket, "--backend", "cuda", "--dataset", many, "--epochs", "3", "--shuffle"]
            for memory, dtype, cache in itertools.product(("host", "cuda:0"), ("uint8", "float16"), ("off", "packed")):
                further = ["--batch", "256", "--slots", "4", "--memory", memory, "--dtype", dtype, "--cache", cache]
                day.step(f"images-lanes{lanes}-{memory}-{dtype}-{cache}", 30, *command, *further)
    day.step("host-cost", 60, "env", "SIM_CUDA_INSTANT=1", "millrace_bench_host_cost", "cuda", IMAGES / "photos")  # of the host alone
    day.step("dali", 60, sys.executable, KIT / "dali_peer.py", IMAGES / "photos")


def beside(day: Day) -> None:
    day.step("training", 300, sys.executable, KIT / "beside.py", "training", many_photographs(day))
    day.step("soak", 240, sys.executable, KIT / "beside.py", "soak", IMAGES)


@contextlib.contextmanager
def serving(work: Path, settings: str, folder: Path) -> Iterator[Path]:
    """The socket of a daemon with those settings."""
    config, socket = work / "settings.toml", work / "speed.sock"
    config.write_text(settings)
    command = ["millraced", "--config", config, "--cuda", "yes", "--socket", socket, "--root", folder]
    with (work / "millraced.log").open("ab") as log, subprocess.Popen(command, stdout=log, stderr=log) as daemon:
        until = time.monotonic() + 120
        ping = ["millrace", "ping", "--alive", "--socket", socket]
        while subprocess.run(ping, capture_output=True, check=False).returncode != 0 and daemon.poll() is None and time.monotonic() < until:
            time.sleep(0.1)
        try:
            yield socket
        finally:
            daemon.kill()


DAYS: dict[str, Callable[[Day], None]] = {"correct": correct, "speed": speed, "beside": beside}


def unpack(work: Path) -> None:
    subprocess.run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=KIT, check=True)
    with tarfile.open(KIT / "programs.tar.xz") as archive:
        archive.extractall(work / "kit", filter="data")
    with zipfile.ZipFile(next(KIT.glob("millrace-*.whl"))) as wheel:
        wheel.extractall(work / "python")


def wrapped(work: Path) -> Path:
    """The programs' folder: each begins with the kit's libraries, which a Python of the machine's must not get."""
    folder = work / "wrapped"
    folder.mkdir()
    for program in (work / "kit").glob("[bt]*/*"):
        path = f"${{LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}}{work}/kit/lib"
        (folder / program.name).write_text(f'#!/bin/sh\nLD_LIBRARY_PATH={path} exec {program} "$@"\n')
        (folder / program.name).chmod(0o755)
    return folder


def prepend(name: str, place: Path) -> None:
    os.environ[name] = os.pathsep.join(filter(None, (str(place), os.environ.get(name))))


def main() -> int:
    if len(sys.argv) != 3 or sys.argv[1] not in DAYS:
        print(__doc__, file=sys.stderr)
        return 0 if {"-h", "--help", "help"} & set(sys.argv) else 2
    out = Path(sys.argv[2]).resolve()
    out.mkdir(parents=True, exist_ok=True)
    os.umask(0o022)  # the tests' other users read what is unpacked
    with tempfile.TemporaryDirectory(prefix="millrace-day1-") as place:
        work = Path(place)
        work.chmod(0o755)
        unpack(work)
        prepend("PATH", wrapped(work))
        prepend("PYTHONPATH", work / "python")
        daemon = {"MILLRACE_DAEMON": str(work / "wrapped/millraced"), "MILLRACE_TEST_DATA": str(IMAGES)}
        os.environ.update(daemon, XDG_STATE_HOME="/dev/null", NO_COLOR="1")
        if subprocess.run(["millrace-cuda"], check=False).returncode != 0:
            print("day1.py: there is no GPU for this process", file=sys.stderr)
            return SKIPPED
        day = Day(sys.argv[1], out, work)
        DAYS[sys.argv[1]](day)
        day.keep_logs()
    print("no step failed" if not day.failed else f"failed: {', '.join(day.failed)}")
    return 1 if day.failed else 0


if __name__ == "__main__":
    sys.exit(main())
