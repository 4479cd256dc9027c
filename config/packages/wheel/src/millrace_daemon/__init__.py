"""Where the wheel's programs are. `millrace.serve()` asks here; on the command line they are `millraced` and `millrace`.

>>> millrace_daemon.program("millraced")
'/home/me/venv/lib/python3.11/site-packages/millrace_daemon/bin/millraced'
"""

from __future__ import annotations

import os
from typing import Literal

__all__ = ["program", "settings"]

_HERE = os.path.dirname(os.path.abspath(__file__))


def program(name: Literal["millraced", "millrace"]) -> str:
    """The absolute path of a program of this wheel. It finds its libraries and its helper programs from where it lies."""
    return os.path.join(_HERE, "bin", name)


def settings() -> str:
    """The absolute path of the commented settings, for a copy that ``millraced --config`` is given. Every setting in it has its default."""
    return os.path.join(_HERE, "millrace.toml")
