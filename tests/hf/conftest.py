"""A real daemon, and pictures: those that are made here, and photographs where MILLRACE_TEST_DATA has some."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Iterator
from pathlib import Path

import millrace
import pytest
from skips import pytest_collectreport, pytest_runtest_logreport, skip  # noqa: F401, the first two are hooks

from pictures import make_pictures, photographs
from room import ROOMY

PHOTOGRAPHS = 12


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Pictures of every kind that make trouble, see pictures.py."""
    if not ROOMY:
        skip("large pictures: /dev/shm has less than 1 GiB free", "tests/hf")
    return make_pictures(tmp_path_factory.mktemp("pictures"), most_pixels=10_000_000 if ROOMY else 400_000)


@pytest.fixture(scope="session")
def pictures(made: list[Path]) -> list[Path]:
    """Those, and a dozen photographs where there are any."""
    found = photographs()
    if not found:
        skip("the images of photos: MILLRACE_TEST_DATA has none", "tests/hf")
    return made + found[:: max(1, len(found) // PHOTOGRAPHS)][:PHOTOGRAPHS]


@pytest.fixture(scope="session")
def client(pictures: list[Path]) -> Iterator[millrace.Client]:
    os.environ.pop("MILLRACE_SOCKET", None)
    roots = sorted({str(path.parent) for path in pictures})
    with millrace.serve(roots, lanes=2) as daemon, millrace.connect(daemon.address) as connected:
        yield connected


@pytest.fixture(autouse=True)
def memory_comes_back(client: millrace.Client) -> Iterator[None]:
    """A test begins when the daemon has got back what the one before held: with 64 MiB there is no room for both."""
    yield
    deadline = time.monotonic() + 300
    pause = 0.005
    while client.statistics().sessions and time.monotonic() < deadline:
        time.sleep(pause)  # what the test closed is about to end
        if client.statistics().sessions:
            gc.collect()  # what it did not close; beside PyTorch this takes longer than most tests
            pause = min(2 * pause, 0.3)
