"""What every test of the Python package uses: a real daemon, a folder of pictures that the tests make themselves, a session.

The daemon is $MILLRACE_DAEMON, else `millraced` in $PATH; without one every test fails.
"""

from __future__ import annotations

import functools
import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import millrace
import millrace.aio
import pytest
from millrace._core import full_slots as _full_slots
from skips import pytest_collectreport, pytest_runtest_logreport  # noqa: F401, hooks

from gpu_clients import Run, run
from gpus import patient, simulated
from object_store import object_store, one_proxy, store_proxy  # noqa: F401, fixtures
from pictures import SIZE, make_folder
from restartable import restartable  # noqa: F401, a fixture

# A job in a shell's background ignores SIGINT, and so would the programs that tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Leaves what the imports made out of each gc.collect() of a test, which takes half a second with PyTorch and JAX otherwise."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    gc.unfreeze()


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three classes (ant, bee, cat) of 20 PNG each; see pictures.py for what is in them."""
    return make_folder(tmp_path_factory.mktemp("pictures"))


@pytest.fixture(scope="session")
def daemon(folder: Path) -> Iterator[millrace.PrivateDaemon]:
    os.environ.pop("MILLRACE_SOCKET", None)
    with millrace.serve(folder.parent, lanes=2) as running:
        yield running


@pytest.fixture(scope="module")
def gpu_daemon(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[millrace.PrivateDaemon]:
    """A daemon that has a simulated GPU, as have the processes that begin meanwhile."""
    gpus = tmp_path_factory.mktemp("gpus")
    with (
        simulated(gpus, STRICT=0, DELAY_US=20),
        millrace.serve(folder.parent, lanes=1, cuda="yes", timeout=300, arguments=patient(gpus)) as running,
    ):
        yield running


@pytest.fixture
def in_client(gpu_daemon: millrace.PrivateDaemon, folder: Path) -> Run:
    """Runs code in a client of that daemon's."""
    return functools.partial(run, gpu_daemon, folder)


@pytest.fixture
def client(daemon: millrace.PrivateDaemon) -> Iterator[millrace.Client]:
    with millrace.connect(daemon.address) as connected:
        yield connected


@pytest.fixture
def own_size() -> millrace.Recipe:
    """The pictures as they are: their pixels are known exactly."""
    return millrace.Recipe(resize=millrace.ExactSize(SIZE), layout="NHWC")


@pytest.fixture
def slots_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A caller that waits while all slots are held goes on waiting: on a busy machine what gives one back may take more than 2 s."""
    for module in (_full_slots, millrace.aio):
        monkeypatch.setattr(module, "SHARED", 600.0)


@pytest.fixture
def session(client: millrace.Client, own_size: millrace.Recipe) -> Iterator[millrace.Session]:
    with client.session(own_size, batch=16, slots=3) as opened:
        yield opened
    gc.collect()
