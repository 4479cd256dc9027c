"""Processor time and memory of a process with all its descendants, from /proc."""

from __future__ import annotations

import os
import threading
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")


def parse_stat(text: str) -> tuple[int, float]:
    """From the text of /proc/PID/stat: the parent, and seconds of processor time, reaped children's included (proc(5))."""
    fields = text[text.rindex(")") + 2 :].split()  # from field 3 on: the name may hold anything
    return int(fields[1]), sum(int(field) for field in fields[11:15]) / _TICK


def parse_pss(text: str) -> int:
    """Bytes, from the text of /proc/PID/smaps_rollup."""
    return next((1024 * int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")), 0)


def _text(path: Path) -> str | None:
    try:
        return path.read_text()
    except OSError:  # it has ended meanwhile
        return None


def _stats() -> dict[int, tuple[int, float]]:
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and (text := _text(entry / "stat")):
            found[int(entry.name)] = parse_stat(text)
    return found


def tree(root: int, parents: dict[int, int]) -> set[int]:
    """``root`` and all that descend from it."""
    children: dict[int, list[int]] = {}
    for process, parent in parents.items():
        children.setdefault(parent, []).append(process)
    found, waiting = set(), [root]
    while waiting:
        process = waiting.pop()
        found.add(process)
        waiting += children.get(process, [])
    return found


def processor_seconds(root: int) -> float:
    stats = _stats()
    return sum(stats[process][1] for process in tree(root, {p: s[0] for p, s in stats.items()}) if process in stats)


def proportional_set_size(root: int) -> int:
    """Bytes: what several processes share counts once."""
    stats = _stats()
    texts = (_text(Path(f"/proc/{process}/smaps_rollup")) for process in tree(root, {p: s[0] for p, s in stats.items()}))
    return sum(parse_pss(text) for text in texts if text)


class PeakMemory:
    """The highest proportional set size between entering and leaving, looked at every 50 ms."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.bytes = 0

    def _watch(self) -> None:
        while True:
            self.bytes = max(self.bytes, proportional_set_size(self._root))
            if self._stop.wait(0.05):
                return

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
