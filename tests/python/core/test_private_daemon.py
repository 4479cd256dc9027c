"""A daemon of one's own: found, started, told about, stopped; nothing is left behind."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import signal
import socket
import sys
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import millrace
import pytest

from processes import python


def gone(pid: int) -> bool:
    for _ in range(3000):  # a minute
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True  # its parent is gone, and nobody has collected it yet
        time.sleep(0.02)
    return False


def test_it_serves_and_stops(folder: Path) -> None:
    with millrace.serve(str(folder), lanes=1) as daemon:
        assert os.environ["MILLRACE_SOCKET"] == daemon.address
        with millrace.connect() as client:
            assert client.statistics().pid == daemon.pid
        pid = daemon.pid
        place = Path(daemon.address).parent
        assert place.stat().st_mode & 0o777 == 0o700
    assert gone(pid)
    assert not place.exists()
    assert os.environ.get("MILLRACE_SOCKET") != daemon.address
    assert daemon.stop() == 0


def test_a_root_is_known_by_the_name_that_was_given_and_by_its_real_one(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder.parent)
    named = tmp_path / "link" / folder.name
    picture = next(path.relative_to(folder) for path in sorted(folder.rglob("*.png")))

    with millrace.serve(str(named), lanes=1), millrace.connect() as client, client.session(millrace.Recipe.train(16), batch=2) as session:
        batch = session.get(session.submit([millrace.Path(str(named / picture)), millrace.Path(str(folder.resolve() / picture))]))

        assert len(batch) == 2


def test_it_does_not_speak_to_its_owners_service_manager(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        monkeypatch.setenv("WATCHDOG_USEC", "100000")

        with millrace.serve(lanes=1), millrace.connect() as client:
            client.ping()

        manager.setblocking(False)
        with pytest.raises(BlockingIOError):
            manager.recv(4096)


def test_one_that_another_has_replaced_stops_when_it_is_collected() -> None:
    daemon = millrace.serve()
    pid = daemon.pid
    with millrace.serve() as another:
        del daemon
        assert gone(pid)
        with millrace.connect() as client:
            assert client.statistics().pid == another.pid


NOBODY_KEEPS_IT = """
import gc, millrace
pid = millrace.serve(lanes=1).pid
gc.collect()
with millrace.connect() as client:
    assert client.statistics().pid == pid
print(pid)
"""


def test_one_that_nobody_keeps_lives_until_the_process_ends() -> None:
    with python(NOBODY_KEEPS_IT) as process:
        output, errors = process.communicate()

    assert (process.returncode, errors) == (0, "")
    assert gone(int(output))


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
@pytest.mark.parametrize("before", [None, "/somebody/elses.sock"])
def test_in_whatever_order_they_stop_the_last_one_that_runs_is_found(
    order: tuple[int, ...], before: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MILLRACE_SOCKET", raising=False)
    if before:
        monkeypatch.setenv("MILLRACE_SOCKET", before)
    daemons = [millrace.serve(lanes=1) for _ in range(3)]
    addresses = [daemon.address for daemon in daemons]

    for stopping in order:
        daemons[stopping].stop()
        addresses[stopping] = ""
        assert os.environ.get("MILLRACE_SOCKET") == next((address for address in reversed(addresses) if address), before)


def test_the_one_that_is_found_again_lives_on_without_a_reference() -> None:
    daemon = millrace.serve(lanes=1)
    pid = daemon.pid
    millrace.serve(lanes=1).stop()
    del daemon
    with millrace.connect() as client:
        assert client.statistics().pid == pid

    millrace.serve(lanes=1).stop()  # it was replaced, and nobody has it
    assert gone(pid)


def test_what_the_program_has_set_itself_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with millrace.serve(lanes=1):
        monkeypatch.setenv("MILLRACE_SOCKET", "/set/by/hand.sock")
    assert os.environ["MILLRACE_SOCKET"] == "/set/by/hand.sock"


def test_a_folder_that_its_owner_removes_meanwhile_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real = os.scandir

    @contextlib.contextmanager
    def listed_and_then_removed(path: str) -> Iterator[Iterator[os.DirEntry[str]]]:
        another = tmp_path / "millrace-another"
        another.mkdir(0o700)
        with real(path) as listed:
            entries = list(listed)
        another.rmdir()
        yield iter(entries)

    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(os, "scandir", listed_and_then_removed)
    with millrace.serve(lanes=1) as daemon:
        assert daemon.address.startswith(str(tmp_path))


def test_killed_daemon_reports_its_signal() -> None:
    with millrace.serve() as daemon:
        os.kill(daemon.pid, signal.SIGKILL)
        assert daemon.stop() == 128 + signal.SIGKILL


def test_no_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(millrace.NotFound, match="is not a program"):
        millrace.serve(program=str(tmp_path / "none"))
    monkeypatch.delenv("MILLRACE_DAEMON", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "millrace_daemon", None)
    with pytest.raises(millrace.NotFound, match=r"pip install millrace-daemon.*MILLRACE_DAEMON"):
        millrace.serve()


def _says_its_name(path: Path) -> str:
    """A program that says where it is and ends."""
    path.parent.mkdir(parents=True)
    path.write_text("#!/bin/sh\necho this is $0 >&2\n")
    path.chmod(0o755)
    return str(path)


def test_the_one_that_is_named_comes_before_the_environments_and_that_before_the_one_in_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given, named, of_pip, in_path = (_says_its_name(tmp_path / name / "millraced") for name in ("given", "named", "of_pip", "in_path"))
    package = types.ModuleType("millrace_daemon")
    monkeypatch.setattr(package, "program", lambda name: of_pip if name == "millraced" else "", raising=False)
    monkeypatch.setitem(sys.modules, "millrace_daemon", package)
    monkeypatch.setenv("MILLRACE_DAEMON", named)
    monkeypatch.setenv("PATH", f"{Path(in_path).parent}:{os.environ['PATH']}")

    def started(program: str | None = None) -> str:
        with pytest.raises(millrace.DaemonUnavailable) as why:
            millrace.serve(program=program)
        return re.findall(r"this is (\S+)", str(why.value))[0]

    assert started(given) == given
    assert started() == named
    monkeypatch.delenv("MILLRACE_DAEMON")
    assert started() == of_pip
    monkeypatch.setitem(sys.modules, "millrace_daemon", None)
    assert started() == in_path


def test_an_environments_daemon_that_is_broken_is_not_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package = types.ModuleType("millrace_daemon")
    monkeypatch.setattr(package, "program", lambda name: str(tmp_path / name), raising=False)
    monkeypatch.setitem(sys.modules, "millrace_daemon", package)
    monkeypatch.delenv("MILLRACE_DAEMON", raising=False)

    with pytest.raises(millrace.NotFound, match="force-reinstall millrace-daemon"):
        millrace.serve()


def test_no_root(tmp_path: Path) -> None:
    with pytest.raises(millrace.NotFound, match="missing is not a folder"):
        millrace.serve(tmp_path / "missing")


def test_a_daemon_that_refuses_to_start_says_why() -> None:
    with pytest.raises(millrace.DaemonUnavailable, match=r"ended before it listened; it says: .*frobnicate"):
        millrace.serve(arguments=["--frobnicate"])


def test_it_is_started_only_if_none_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    with millrace.serve() as running:
        with millrace.serve(reuse=True) as reused:
            assert (reused.address, reused.pid) == (running.address, running.pid)
        with millrace.connect(running.address) as client:
            assert client.ping() > 0  # it was left alone
        monkeypatch.setenv("MILLRACE_SOCKET", "/nowhere/s")
        with millrace.serve(reuse=True) as another:
            assert another.pid != running.pid


# It looks at its signals all the while. A read() that lasts until the end of the input may never see one that came just before it began.
OWNER = """
import millrace, select, sys
daemon = millrace.serve()
print(daemon.pid, daemon.address, flush=True)
while not select.select([sys.stdin], [], [], 0.05)[0]:
    pass
"""


@pytest.mark.parametrize("end", ["exit", "kill", "interrupt"])
def test_it_does_not_outlive_its_owner(end: str) -> None:
    with python(OWNER) as owner:
        assert owner.stdout is not None
        assert owner.stdin is not None
        pid, address = owner.stdout.readline().split()
        if end == "exit":
            owner.stdin.close()
        else:
            owner.send_signal(signal.SIGKILL if end == "kill" else signal.SIGINT)
    assert gone(int(pid))
    if end == "kill":
        millrace.serve().stop()  # sweeps what the killed one left
    assert not Path(address).parent.exists()


@pytest.mark.parametrize("cuda", [True, "on", None])
def test_whether_gpus_decode_is_one_of_three_words(folder: Path, cuda: Any) -> None:
    with pytest.raises(millrace.InvalidRequest, match=r'cuda is "no", "auto" or "yes", not'):
        millrace.serve(folder, cuda=cuda)
