"""A real daemon, and pictures: those that are made here, and photographs where MILLRACE_TEST_DATA has some."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import millrace
import pytest

from pictures import make_pictures, photographs

PHOTOGRAPHS = 12


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Pictures of every kind that make trouble, see pictures.py."""
    return make_pictures(tmp_path_factory.mktemp("pictures"))


@pytest.fixture(scope="session")
def pictures(made: list[Path]) -> list[Path]:
    """Those, and a dozen photographs where there are any."""
    found = photographs()
    if not found:
        print("SKIPPED: photographs; set MILLRACE_TEST_DATA to a folder that has photos/")
    return made + found[:: max(1, len(found) // PHOTOGRAPHS)][:PHOTOGRAPHS]


@pytest.fixture(scope="session")
def client(pictures: list[Path]) -> Iterator[millrace.Client]:
    os.environ.pop("MILLRACE_SOCKET", None)
    roots = sorted({str(path.parent) for path in pictures})
    with millrace.serve(roots, lanes=2) as daemon, millrace.connect(daemon.address) as connected:
        yield connected
