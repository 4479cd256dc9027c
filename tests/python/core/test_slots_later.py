"""Sessions whose slots are still being filled, and those for which there is no room later."""

from __future__ import annotations

import contextlib
import resource
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import millrace
import numpy as np
import pytest
from millrace._memory import copy_on_write as _copy_on_write

from pictures import SIZE, check_pixels, png
from processes import eventually

OWN_SIZE = millrace.Recipe(resize=millrace.ExactSize(SIZE), layout="NHWC")
MIB = 1 << 20


def one(session: millrace.Session, number: int) -> millrace.Batch:
    return session.get(session.submit([millrace.Sample(png(number), id=number)], on_error="fail"))


def statistics_of(client: millrace.Client, session: millrace.Session) -> millrace.SessionStatistics:
    return next(s for s in client.statistics().sessions if s.id == session.id)


@contextlib.contextmanager
def short_of_room(most: int) -> Iterator[None]:
    """What is started here makes no file longer than that, shared memory among them."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture
def client_short_of_room(folder: Path) -> Iterator[millrace.Client]:
    """Of a daemon that has room for 128 MiB a session."""
    with short_of_room(128 * MIB):
        daemon = millrace.serve(folder, lanes=2)
    with daemon, millrace.connect(daemon.address) as client:
        yield client


@pytest.mark.parametrize("writable", [True, False])
def test_a_large_session_serves_while_it_is_being_filled(client: millrace.Client, writable: bool) -> None:
    for _ in range(20):  # it may all be filled already when this process has its next turn, but not every time
        with client.session(OWN_SIZE, slots=64, slot_bytes=32 * MIB, writable=writable) as session:
            memory = session.memory()
            assert not memory[MIB :: 64 * 1024].any()  # no SIGBUS, wherever the daemon is
            batch = one(session, 3)
            was_being_filled = statistics_of(client, session).slots_not_ready > 0
            check_pixels(batch)
            assert not memory[-1]
            assert session.slots == 64
            del batch, memory
        if was_being_filled:
            return
    raise AssertionError("the first batch came when all slots had been filled")


@pytest.mark.parametrize("writable", [True, False])
def test_a_batch_waits_for_a_slot_that_is_being_filled(client: millrace.Client, writable: bool) -> None:
    with client.session(OWN_SIZE, slots=1, slot_bytes=256 * MIB, writable=writable) as session:
        check_pixels(one(session, 5))
        check_pixels(one(session, 6))


def test_a_slot_is_mapped_once_when_its_first_batch_comes(client: millrace.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[int] = []
    populated: list[_copy_on_write.Window] = []
    show, populate = _copy_on_write.SharedMapping.show, _copy_on_write.Window.populate

    def showing(self: Any, start: int, size: int, *, populate: bool) -> None:
        shown.append(start)
        show(self, start, size, populate=populate)

    def populating(self: Any) -> None:
        populated.append(self)
        populate(self)

    monkeypatch.setattr(_copy_on_write.SharedMapping, "show", showing)
    monkeypatch.setattr(_copy_on_write.Window, "populate", populating)
    with client.session(OWN_SIZE, batch=1, slots=4) as session:
        before = len(shown)
        held = [one(session, 0), one(session, 1)]
        assert len(shown) - before == len(populated) == 2
        del held
        for number in range(6):
            check_pixels(one(session, number))
        assert len(shown) - before == len(populated) == len({id(window) for window in populated}) <= 4


def test_slots_without_room_are_a_warning_once_and_the_others_serve(client_short_of_room: millrace.Client) -> None:
    client = client_short_of_room
    with client.session(OWN_SIZE, slots=10, slot_bytes=20 * MIB) as session:
        eventually(lambda: session.slots == 6, "four slots are withdrawn")
        with pytest.warns(millrace.SlotsWithdrawn, match=r"has 6 slots and not 10: .*/dev/shm") as told:
            kept = [one(session, 0)]
        assert [warning.filename for warning in told] == [__file__]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            kept += [one(session, number) for number in range(1, 6)]
        assert (session.slots, statistics_of(client, session).slots_withdrawn) == (6, 4)
        with pytest.warns(millrace.SlotsHeld, match="all 6 slots"):  # else it would wait for the four that never come
            kept.append(one(session, 6))
        for batch in kept:
            check_pixels(batch)


def test_a_warning_that_is_an_error_loses_no_batch(client_short_of_room: millrace.Client) -> None:
    client = client_short_of_room
    with client.session(OWN_SIZE, slots=10, slot_bytes=20 * MIB) as session, warnings.catch_warnings():
        warnings.simplefilter("error", millrace.SlotsWithdrawn)
        eventually(lambda: session.slots == 6, "four slots are withdrawn")
        number = session.submit([millrace.Sample(png(3), id=3)], on_error="fail")
        with pytest.raises(millrace.SlotsWithdrawn):
            session.get(number)
        check_pixels(session.get(number))


def test_where_no_slot_finds_room_every_batch_says_so(client_short_of_room: millrace.Client) -> None:
    client = client_short_of_room
    with client.session(OWN_SIZE, slots=2, slot_bytes=200 * MIB) as session, warnings.catch_warnings():
        warnings.simplefilter("ignore", millrace.SlotsWithdrawn)
        for _ in range(2):
            with pytest.raises(millrace.ResourceExhausted, match=r"no slot .* could be filled.*/dev/shm"):
                one(session, 0)
        assert session.slots == 0


def test_memory_that_is_read_whole_is_what_the_batches_show(client: millrace.Client) -> None:
    with client.session(OWN_SIZE, batch=1, slots=2, writable=False) as session:
        images = one(session, 4).images.numpy()
        address, size = session.slot_of(images.ctypes.data)
        start = address - session.memory().ctypes.data
        np.testing.assert_array_equal(session.memory()[start : start + images.nbytes], images.reshape(-1))
        assert size >= images.nbytes
        assert address <= images.ctypes.data < address + size
