"""A daemon that tests kill and start again."""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest


class Restartable:
    """A daemon on a socket of its own that can be killed and started again."""

    def __init__(self, folder: Path, socket: Path) -> None:
        self.socket = str(socket)
        program = os.environ.get("MILLRACE_DAEMON") or "millraced"
        self._command = [program, "--socket", self.socket, "--root", str(folder), "--lanes", "1"]
        self._running = threading.Event()
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert self._process.stdout is not None
        assert b"listening on" in self._process.stdout.readline()
        self._running.set()

    def kill(self) -> None:
        assert self._running.wait(300)
        self._running.clear()
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


@pytest.fixture
def restartable(folder: Path) -> Iterator[Restartable]:
    with tempfile.TemporaryDirectory() as place:
        daemon = Restartable(folder, Path(place, "s"))
        yield daemon
        daemon.kill()
