"""Python processes that tests start: what hangs is reported with where it hangs, and ended with all that it has started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

MODULES = Path(__file__).parent
"""The folder of what the programs of tests import."""
PATIENCE = 300.0
"""Seconds that a process has for its end, and whatever else is waited for to come about."""


class Script(subprocess.Popen[str]):
    """A process in a process group of its own. A context manager, which leaves nothing of the group behind."""

    def communicate(self, input: str | None = None, timeout: float | None = PATIENCE) -> tuple[str, str]:  # noqa: A002, as Popen has it
        """As ``Popen.communicate``, but never without an end.

        Raises:
            AssertionError: it did not end in time. Says where each process of its group was, and what they wrote; they are killed.
        """
        try:
            return super().communicate(input, timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the process did not end within {timeout} s\n{self._autopsy()}") from None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            if kind is None:
                self.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the process did not end within {PATIENCE} s\n{self._autopsy()}") from None
        finally:
            self._end_group()
            super().__exit__(kind, error, trace)

    def _group(self) -> list[int]:
        """Its processes that live, those that it forked, too."""
        members = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(ValueError, OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[2]) == self.pid and fields[0] != "Z":
                    members.append(int(entry.name))
        return members

    def _autopsy(self) -> str:
        """Where each of them is: what the kernel says, and Python's traceback, which faulthandler writes on SIGABRT."""
        lines = [f"process {pid}: {state_of(pid)}" for pid in self._group()]
        for pid in self._group():  # one after the other: they write into the same pipe
            self._abort(pid)
        try:
            output, errors = super().communicate(timeout=10)
        except subprocess.TimeoutExpired:  # it is stopped, or in the kernel for good
            self._end_group()
            output, errors = super().communicate()
        self._end_group()  # their pipes are closed a moment before they are gone
        return "\n".join([*lines, "its output:", output or "", "its errors:", errors or ""])

    def _abort(self, pid: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGABRT)
        until = time.monotonic() + 20
        while pid in self._group() and time.monotonic() < until:
            time.sleep(0.01)

    def _send_group(self, number: signal.Signals) -> None:
        for pid in self._group():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def _end_group(self) -> None:
        while self._group():
            self._send_group(signal.SIGKILL)


def eventually(condition: Callable[[], bool], what: str) -> None:
    """Waits until it is true, and looks as often as is good for the processes that work on it beside this one."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"within {PATIENCE} s it never came true that {what}"
        time.sleep(0.01)


def state_of(pid: int) -> str:
    """Name, state and place in the kernel of each of its threads."""
    threads = []
    with contextlib.suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            name, _, rest = (thread / "stat").read_text().partition("(")[2].rpartition(")")
            threads.append(f"{name} {rest.split()[0]} in {(thread / 'wchan').read_text()}")
    return ", ".join(threads) or "gone"


def python(code: str, *arguments: str, **options: Any) -> Script:
    """A process that runs ``code``, which may import what lies in MODULES."""
    paths = filter(None, [str(MODULES), os.environ.get("PYTHONPATH")])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-X", "faulthandler", "-W", "error", "-c", code, *arguments]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return Script(command, env=environment, text=True, start_new_session=True, **{**pipes, **options})
