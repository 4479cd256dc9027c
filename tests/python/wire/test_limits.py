"""What the daemon's settings allow is what the package takes for allowed, be it less or more than usual."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import millrace
import pytest
from millrace._wire import schema as _schema

from pictures import check_pixels, path_of, png
from processes import PATIENCE


@contextmanager
def session_with(tmp_path: Path, limits: str, recipe: millrace.Recipe, folder: Path) -> Iterator[millrace.Session]:
    settings = tmp_path / "millrace.toml"
    settings.write_text(f"[limits]\n{limits}")
    with (
        millrace.serve(folder.parent, lanes=1, arguments=["--config", str(settings)]) as daemon,
        millrace.connect(daemon.address) as client,
        client.session(recipe, batch=4) as session,
    ):
        yield session


def test_a_session_knows_its_daemons_limits(tmp_path: Path, own_size: millrace.Recipe, folder: Path) -> None:
    with session_with(tmp_path, 'inline_message = "2 MiB"\nsamples = 3\nring = "5 MiB"\n', own_size, folder) as session:
        assert session.limits == millrace.Limits(4 << 20, 2 << 20, 3, 5 << 20, 64, 16, 256)


def test_a_daemon_that_allows_more_gets_it(tmp_path: Path, own_size: millrace.Recipe, folder: Path) -> None:
    picture = png(7).ljust(2 << 20, b"\0")  # no decoder reads what follows the picture
    with session_with(tmp_path, 'inline_message = "2 MiB"\n', own_size, folder) as session:
        batch = session.get(session.submit([millrace.Sample(picture, id=7)]))
        check_pixels(batch)
        with pytest.raises(millrace.InvalidRequest, match=r"2097153 bytes .* takes 2097152 .*\(limits\.inline_message in its settings\)"):
            session.submit([picture + b"\0"])


def test_a_daemon_that_allows_less_is_not_sent_what_it_would_refuse(tmp_path: Path, own_size: millrace.Recipe, folder: Path) -> None:
    with session_with(tmp_path, 'inline_message = "1 KiB"\nsamples = 3\n', own_size, folder) as session:
        with pytest.raises(millrace.InvalidRequest, match=r"takes 1024 in a message \(limits\.inline_message"):
            session.submit([png(7).ljust(4096, b"\0")])
        with pytest.raises(
            millrace.InvalidRequest, match=r"4 samples in one batch, the daemon takes 3 \(limits\.samples in its settings\)"
        ):
            session.submit([path_of(folder, n) for n in range(4)])
        assert len(session.get(session.submit([path_of(folder, n) for n in range(3)]))) == 3


def test_a_request_that_fits_no_message_is_not_sent(session: millrace.Session) -> None:
    with pytest.raises(millrace.InvalidRequest, match=r"the daemon takes messages of at most 4194304; split the batch"):
        session.submit(["/" + "x" * 1000] * 5000)


def test_what_is_not_told_is_the_daemons_to_check(session: millrace.Session) -> None:
    """An older daemon, or one that tells of more than this package knows."""
    session.limits = millrace.Limits.told(_schema.OpenSessionReply())
    assert session.limits == millrace.Limits()
    with pytest.raises(millrace.InvalidRequest, match=r"messages of at most 4194304"):  # which would end the stream
        session.submit([b"x" * (5 << 20)])
    with pytest.raises(millrace.InvalidRequest, match=r"over the limit of .*\(limits\.inline_message\)"):
        session.get(session.submit([b"x" * ((1 << 20) + 1)]))


def test_a_batch_that_does_not_fit_its_slot_says_what_would(client: millrace.Client, own_size: millrace.Recipe, folder: Path) -> None:
    for recipe in (own_size, millrace.Recipe(packing="packed", layout="NHWC")):
        with client.session(recipe, slot_bytes=4096) as session:
            paths = [path_of(folder, n) for n in range(16)]
            with pytest.raises(millrace.ResourceExhausted, match="slot_bytes of at least") as small:
                session.get(session.submit(paths))
        assert small.value.slot_bytes > 4096
        with client.session(recipe, slot_bytes=small.value.slot_bytes) as session:
            assert len(session.get(session.submit(paths))) == 16
        with client.session(recipe, slot_bytes=small.value.slot_bytes - 1) as session, pytest.raises(millrace.ResourceExhausted):
            session.get(session.submit(paths))


def test_a_daemon_without_room_for_a_connection_says_so(tmp_path: Path, own_size: millrace.Recipe, folder: Path) -> None:
    """GRPC hands over the daemon's reason in words of its own, from which the package has to take it."""
    with session_with(tmp_path, "connections_per_user = 6\n", own_size, folder) as session, contextlib.ExitStack() as held:
        for _ in range(6 + 8):  # eight more are kept for administrators, of whom this user is one, for the daemon is his
            held.enter_context(contextlib.closing(stream := socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)))
            stream.connect(os.environ["MILLRACE_SOCKET"])

        def connect_often() -> None:  # a connection that has just ended may still be counted at first, and leave room for one of these
            for _ in range(6):
                held.enter_context(millrace.connect(timeout=PATIENCE))

        with pytest.raises(millrace.ResourceExhausted, match=r"has no room for this connection: .*connections of user.*raise limits"):
            connect_often()
        assert not session.closed
