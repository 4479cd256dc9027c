"""Programs that stop in the middle and wait to be killed there, however seldom somebody looks at their log."""

from __future__ import annotations

import os
from pathlib import Path

HOLD = """
import builtins, os, signal
plain, log, lines = builtins.print, os.environ["HELD_LOG"], int(os.environ["HELD_AT"])

def held(*words, file=None, **options):
    plain(*words, file=file, **options)
    if str(getattr(file, "name", "")) == log:
        with open(log) as written:
            count = len(written.readlines())
        while count >= lines:
            signal.pause()

builtins.print = held
"""


def held_at(place: Path, log: Path, lines: int) -> dict[str, str]:
    """Variables for the environment of a Python program that goes no further once it has printed so many lines into ``log``.

    Args:
        place: a folder of the test's own.
        log: its lines are whole as soon as they are printed.
        lines: how many.
    """
    hook = place / "held"
    hook.mkdir(exist_ok=True)
    (hook / "sitecustomize.py").write_text(HOLD)
    path = os.pathsep.join(filter(None, [str(hook), os.environ.get("PYTHONPATH")]))
    return {"PYTHONPATH": path, "HELD_LOG": str(log), "HELD_AT": str(lines)}
