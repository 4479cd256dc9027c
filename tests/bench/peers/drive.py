"""A worker process, seen from the bench."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import threading
from pathlib import Path
from typing import Any

from roster import Entry, interpreter


class Failed(Exception):
    """The peer cannot go on; says why in one line."""


class Worker:
    """Starts at once; ``wait_ready`` waits for it. Any failure ends the process."""

    def __init__(self, entry: Entry, cores: tuple[int, ...], work: Path, environments: Path, log: Path) -> None:
        command = [str(interpreter(entry, environments)), str(Path(__file__).with_name("worker.py")), entry.name]
        command += [",".join(map(str, cores)), str(work)]
        settings = {"OMP_NUM_THREADS": str(len(cores)), "PYTHONDONTWRITEBYTECODE": "1", **dict(entry.settings)}
        self._log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env={**os.environ, **settings}, text=True
            )
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()
        self.about: dict[str, Any] = {}

    @property
    def pid(self) -> int:
        return self._process.pid

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put("")

    def wait_ready(self, patience: float = 300) -> None:
        self.about = self._take(patience)

    def ask(self, action: str, patience: float = 120, **what: Any) -> Any:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # if it has ended, its last words are in the queue
            print(json.dumps({"action": action, **what}), file=self._process.stdin, flush=True)
        return self._take(patience)

    def _take(self, patience: float) -> dict[str, Any]:
        try:
            line = self._answers.get(timeout=patience)
        except queue.Empty:
            self.close(0)
            raise Failed(f"no answer within {patience:.0f} s") from None
        answer: dict[str, Any] = json.loads(line) if line else {"failed": self._last_line()}
        if "failed" in answer:
            self.close()
            raise Failed(answer["failed"])
        return answer

    def _last_line(self) -> str:
        lines = self._log.read_text(errors="replace").strip().splitlines()
        status = self._process.wait()
        return f"ended with status {status}: {lines[-1] if lines else 'no message'}"

    def close(self, patience: float = 10) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
