"""Why a program waits for its batches: the daemon's findings, from clients, sessions, loaders and event loops."""

from __future__ import annotations

import asyncio
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import millrace
import millrace.aio
import millrace.numpy
import pytest


def when(why: Callable[[], millrace.Findings], code: str) -> millrace.Findings:
    """The findings as soon as that code is the first of them."""
    deadline = time.monotonic() + 30
    while (told := why()).findings[0].code != code:
        assert time.monotonic() < deadline, str(told)
        time.sleep(0.05)
    return told


def test_a_loop_that_computes_is_told_so(daemon: millrace.PrivateDaemon, own_size: millrace.Recipe, folder: Path) -> None:
    loader = millrace.numpy.Loader(folder, own_size, batch_size=2, address=daemon.address, job="resnet")
    with pytest.raises(millrace.FailedPrecondition, match="before its first loop"):
        loader.why()
    over = threading.Event()
    found: list[millrace.Findings] = []

    def look() -> None:
        time.sleep(0.5)
        try:
            found.append(when(loader.why, "loop_computes"))
        finally:
            over.set()

    looker: threading.Thread | None = None
    while not over.is_set():
        for _ in loader:
            if looker is None:
                looker = threading.Thread(target=look)
                looker.start()
            time.sleep(0.05)
            if over.is_set():
                break
    assert looker is not None
    looker.join()
    (told,) = found
    assert told.waited < 0.05
    assert told.waits_told
    assert told.job == "resnet"
    assert f' of user {os.getuid()}, job "resnet": ' in str(told).replace("\n ", "")
    assert told.findings[0].figures["loop_seconds_per_batch"] > 0.02
    assert "To do: " in str(told)
    assert all(len(line) <= 80 for line in str(told).splitlines())
    loader.close()
    with pytest.raises(millrace.FailedPrecondition, match="nor once it is closed"):
        loader.why()


class SlowRows:
    """An iterable of rows that takes its time."""

    def __init__(self, folder: Path) -> None:
        self._images = [path.read_bytes() for path in sorted(folder.rglob("*.png"))]

    def __iter__(self) -> Iterator[dict[str, bytes]]:
        for image in self._images * 100:
            time.sleep(0.01)
            yield {"png": image}


def test_a_source_of_bytes_that_is_slow_is_named(daemon: millrace.PrivateDaemon, own_size: millrace.Recipe, folder: Path) -> None:
    source = millrace.Encoded(SlowRows(folder), label="")
    with millrace.numpy.Loader(source, own_size, batch_size=4, address=daemon.address) as loader:
        deadline = time.monotonic() + 30
        for _ in loader:
            told = loader.why().findings[0]
            if told.code == "slow_source":
                break
            assert time.monotonic() < deadline, str(told)
    assert told.code == "slow_source", str(told)


def test_str_has_the_words_of_the_command_line(client: millrace.Client, daemon: millrace.PrivateDaemon, own_size: millrace.Recipe) -> None:
    with client.session(own_size, batch=2, name="train") as session:
        printed = subprocess.run(
            [millrace_program(), "why", str(session.id), "--socket", daemon.address], check=True, capture_output=True, text=True
        ).stdout
        told = session.why()
    assert told.name == told.job == "train"
    assert told.findings[0].code == "idle"
    assert without_figures(printed) == without_figures(f"{told}\n")


def test_every_session_is_told_of_and_one_that_is_gone_is_not_found(client: millrace.Client, own_size: millrace.Recipe) -> None:
    with client.session(own_size, batch=2) as first, client.session(own_size, batch=2) as second:
        assert {first.id, second.id} <= {one.id for one in client.why()}
        assert client.why(second.id)[0].id == second.id
    with pytest.raises(millrace.NotFound, match=f"no session {first.id}"):
        client.why(first.id)


def test_event_loops_ask_as_well(daemon: millrace.PrivateDaemon, own_size: millrace.Recipe) -> None:
    async def run() -> tuple[millrace.Findings, ...]:
        async with await millrace.aio.connect(daemon.address) as client, await client.session(own_size, batch=2) as session:
            return await client.why(session.session.id)

    (told,) = asyncio.run(run())
    assert told.findings[0].code == "idle"


def millrace_program() -> str:
    """The command line beside the daemon under test."""
    return str(Path(os.environ["MILLRACE_DAEMON"]).with_name("millrace"))


def without_figures(text: str) -> list[str]:
    return ["".join(c for c in word if not c.isdigit()) for word in text.split()]
