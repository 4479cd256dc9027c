"""Clients of a daemon that has simulated GPUs: each is a process that begins with their driver (gpus.py)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import millrace

from processes import PATIENCE, python

Run = Callable[[str], None]
"""Runs code in a client of its own, which begins with BEGIN; raises AssertionError if it fails."""

BEGIN = """
import contextlib, ctypes, gc, os, signal, sys, threading, time, warnings
from pathlib import Path
import millrace
import numpy as np
from gpus import UUID, Consumed, Cuda, Gate
from pictures import COUNT, SIZE, check_pixels, path_of, pixels_of

FOLDER = Path(sys.argv[2])
OWN_SIZE = millrace.Recipe(resize=millrace.ExactSize(SIZE), layout="NHWC")
client = millrace.connect(sys.argv[1])

def session(recipe=OWN_SIZE, batch=4, slots=1, memory="cuda:0", **options):
    return client.session(recipe, batch, slots, memory=memory, **options)

def ask(opened, *numbers, **options):
    return opened.submit([millrace.Sample(path_of(FOLDER, n), id=n) for n in numbers], **options)

@contextlib.contextmanager
def one_batch():
    with session() as opened:  # of one slot, which the batch has
        yield opened, opened.get(ask(opened, 1))

def soon(condition, what):
    until = time.monotonic() + 240
    while not condition():
        assert time.monotonic() < until, what
        time.sleep(0.005)

def owners():
    found = []  # the processes of the daemon that have its GPUs
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(fields[1]) == daemon and (entry / "comm").read_text().startswith("millrace-cuda") and fields[0] != "Z":
                found.append(int(entry.name))
    return found

daemon = client.statistics().pid
"""


def run(daemon: millrace.PrivateDaemon, folder: Path, code: str, timeout: float = PATIENCE) -> None:
    with python(BEGIN + code, daemon.address, str(folder)) as process:
        _, errors = process.communicate(timeout=timeout)
    assert process.returncode == 0, f"{errors}\n{daemon.log()}"
