"""The commands `millraced` and `millrace`: each becomes the program of its name, with the same process id and arguments.

They are not the programs themselves: pip puts commands into a folder of its choosing, from where a program could not know the way to its
libraries.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Literal, NoReturn

from millrace_daemon import program


def _become(name: Literal["millraced", "millrace"]) -> NoReturn:
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by Python, and what is ignored stays so in the program
        signal.signal(ignored, signal.SIG_DFL)
    path = program(name)
    try:
        os.execv(path, [name, *sys.argv[1:]])
    except OSError as why:
        sys.exit(f"{name}: {path} cannot be started: {why.strerror}; is its file system mounted with noexec, or another machine's?")


def millraced() -> NoReturn:
    _become("millraced")


def millrace() -> NoReturn:
    _become("millrace")
