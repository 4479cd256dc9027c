"""Connecting, and what is said when it does not work."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import millrace
import pytest
from millrace._wire import address as _address
from millrace._wire import handoff as _handoff

from pictures import png
from processes import eventually


def test_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MILLRACE_SOCKET", raising=False)
    assert _address.resolve(None) == "/run/millrace/millrace.sock"
    monkeypatch.setenv("MILLRACE_SOCKET", "/tmp/other.sock")
    assert _address.resolve(None) == "/tmp/other.sock"
    assert _address.resolve("unix:/a/b") == "/a/b"
    assert _address.resolve("unix:///a/b") == "/a/b"
    assert _address.resolve(Path("/a/b")) == "/a/b"
    with pytest.raises(millrace.Unsupported, match="own host only"):
        _address.resolve("example.org:5000")
    with pytest.raises(millrace.InvalidRequest, match="1 to 99 bytes"):
        _address.resolve("/" + "x" * 99)


def test_no_daemon(tmp_path: Path) -> None:
    with pytest.raises(millrace.DaemonUnavailable, match=r"nobody\.sock: No such file.*systemctl start millraced.*millrace\.serve"):
        millrace.connect(tmp_path / "nobody.sock")


def test_what_is_no_socket_is_named_as_such(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "closed").mkdir(mode=0o500)  # who is not root may not write there
    for name, what in (("", "a folder"), ("closed", "a folder"), ("file", "no socket")):
        with pytest.raises(millrace.DaemonUnavailable, match=f"{name}: that is {what}; name the daemon's socket in connect"):
            millrace.connect(tmp_path / name)


@contextlib.contextmanager
def held(path: Path, kind: socket.SocketKind) -> Iterator[int]:
    """A listening socket as a service manager has it."""
    with socket.socket(socket.AF_UNIX, kind) as listening:
        listening.bind(str(path))
        listening.listen()
        yield listening.fileno()


def test_a_client_waits_for_a_daemon_whose_sockets_somebody_holds(tmp_path: Path) -> None:
    path = tmp_path / "s"
    start = 'exec 103<&"$2" 104<&"$3"; exec 3<&103 4<&104; LISTEN_PID=$$ LISTEN_FDS=2 exec "$0" --socket "$1"'
    with (
        held(path, socket.SOCK_STREAM) as first,
        held(tmp_path / "s.handoff", socket.SOCK_SEQPACKET) as second,
        ThreadPoolExecutor() as pool,
    ):
        client = pool.submit(millrace.connect, path, timeout=300)
        assert not client.done()
        program = os.environ.get("MILLRACE_DAEMON", "millraced")
        command = ["bash", "-c", start, program, str(path), str(first), str(second)]
        with subprocess.Popen(command, pass_fds=(first, second)) as daemon:
            try:
                with client.result() as connected, connected.session(millrace.Recipe.train(32), batch=1, slots=1) as session:
                    assert session.id > 0
            finally:
                daemon.terminate()


def test_a_daemon_that_never_answers_is_said_to_hang_or_not_to_start(tmp_path: Path) -> None:
    path = tmp_path / "s"
    says = r"unix:.*/s: no answer in time; .*`journalctl -u millraced` says why"
    with held(path, socket.SOCK_STREAM), held(tmp_path / "s.handoff", socket.SOCK_SEQPACKET):
        with pytest.raises(millrace.DaemonUnavailable, match=says):
            millrace.connect(path, timeout=0.2)
        with pytest.raises(millrace.DaemonUnavailable, match=says):
            _handoff.HandoffConnection(str(path), time.monotonic() + 0.2)


def test_every_error_is_also_pythons(tmp_path: Path) -> None:
    with pytest.raises(ConnectionError):
        millrace.connect(tmp_path / "nobody.sock")
    assert issubclass(millrace.DeadlineExceeded, TimeoutError)
    assert issubclass(millrace.PermissionDenied, PermissionError)
    assert issubclass(millrace.InvalidRequest, ValueError)
    assert issubclass(millrace.NotFound, LookupError)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may connect to everything")
def test_no_right_to_connect(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s"))
        listening.listen()
        os.chmod(tmp_path / "s", 0)
        with pytest.raises(millrace.PermissionDenied, match="usermod -aG millrace"):
            millrace.connect(tmp_path / "s")


def test_something_else_listens(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s"))
        listening.listen()
        with pytest.raises(millrace.Error):
            millrace.connect(tmp_path / "s", timeout=0.5)


def test_client_asks_the_daemon(client: millrace.Client, session: millrace.Session) -> None:
    assert 0 < client.ping() < 60
    (cpu,) = client.devices()
    assert (cpu.backend, cpu.ready, cpu.lanes) == ("cpu", True, 2)
    session.get(session.submit([png(0)]))
    statistics = client.statistics()
    assert statistics.uptime > 0
    mine = next(s for s in statistics.sessions if s.id == session.id)
    assert (mine.pid, mine.slots, mine.samples) == (os.getpid(), 3, 1)
    made = statistics.metrics["millrace_samples_total"]
    assert made.counter
    assert (made.label, made.values) == ("backend", {"cpu": made.value})
    assert statistics.metrics["millrace_batches_completed_total"].values[str(os.getuid())] >= 1
    latency = statistics.metrics["millrace_batch_latency_seconds"]
    assert latency.buckets[-1][1] == latency.value >= 1
    longest = next(below for below, count in latency.buckets if count == latency.value)
    assert longest < 60
    assert latency.sum < longest * latency.value


def test_session_is_named_in_the_statistics(client: millrace.Client, own_size: millrace.Recipe) -> None:
    with client.session(own_size, batch=1, name="resnet50 rank 3"):
        assert "resnet50 rank 3" in [s.name for s in client.statistics().sessions]


def test_budgets_are_named(client: millrace.Client, own_size: millrace.Recipe) -> None:
    with pytest.raises(millrace.ResourceExhausted, match="segments"):
        client.session(own_size, batch=1, slot_bytes=1 << 39)
    with pytest.raises((millrace.InvalidRequest, millrace.ResourceExhausted), match="slots"):
        client.session(own_size, batch=1, slots=100_000)
    with pytest.raises(millrace.InvalidRequest):
        client.session(own_size, batch=1, slots=-1)
    with pytest.raises(millrace.InvalidRequest, match="batch must be at least 1"):
        client.session(own_size, batch=0)


def test_closing_is_idempotent_and_final(client: millrace.Client, own_size: millrace.Recipe) -> None:
    session = client.session(own_size, batch=1)
    batch = session.get(session.submit([png(0)]))
    session.close()
    session.close()
    assert session.closed
    for use in (lambda: session.submit([png(0)]), session.get, lambda: session.dataset("/"), lambda: session.ring(10)):
        with pytest.raises(millrace.Cancelled, match="was closed"):
            use()
    assert len(batch.images) == 1


def test_sessions_leave_no_descriptor_or_thread(client: millrace.Client, own_size: millrace.Recipe) -> None:
    import threading

    def open_and_close() -> None:
        with client.session(own_size, batch=1) as session:
            session.get(session.submit([png(0)])).release()
            session.ring(4096)

    sessions = 20
    open_and_close()
    descriptors, threads = len(os.listdir("/proc/self/fd")), threading.active_count()
    for _ in range(sessions):
        open_and_close()
    # gRPC's threads come with descriptors of their own, and go in their own time; what a session leaves would be there once for each.
    eventually(lambda: len(os.listdir("/proc/self/fd")) < descriptors + sessions // 2, "the sessions' descriptors are gone")
    eventually(lambda: threading.active_count() <= threads + 1, "the sessions' threads are gone")
