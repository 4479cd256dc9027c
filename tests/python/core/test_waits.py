"""How long a program waits for its batches, in what, and where its session's time goes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import millrace
import millrace.aio
import millrace.numpy
import pytest

from pictures import path_of


def statistics_of(client: millrace.Client, session: int) -> millrace.SessionStatistics:
    return next(one for one in client.statistics().sessions if one.id == session)


def when(client: millrace.Client, session: int, holds: Callable[[millrace.SessionStatistics], bool]) -> millrace.SessionStatistics:
    """The session's figures as soon as that holds of them."""
    deadline = time.monotonic() + 30
    while not holds(told := statistics_of(client, session)):
        assert time.monotonic() < deadline, told
        time.sleep(0.01)
    return told


def test_seconds_by_state_add_up_to_the_sessions_life(client: millrace.Client, own_size: millrace.Recipe, folder: Path) -> None:
    began = time.monotonic()
    with client.session(own_size, batch=4) as session:
        assert sum(len(batch) for batch in session.dataset(folder).epoch(batches=2)) == 8
        told = statistics_of(client, session.id)
        life = time.monotonic() - began
    assert 0 < told.seconds <= life
    assert sum(told.state_seconds.values()) == pytest.approx(told.seconds, rel=0.01)
    assert told.state_seconds.keys() == told.waited_seconds.keys()
    assert told.state_seconds["making"] > 0
    assert told.state_seconds["listing"] > 0
    assert told.state_seconds["device"] == 0


def test_each_batch_that_is_given_back_tells_how_long_it_was_waited_for(
    client: millrace.Client, own_size: millrace.Recipe, folder: Path
) -> None:
    with client.session(own_size, batch=4, slots=2) as session:
        for number in range(3):
            session.get(session.submit([path_of(folder, number)])).release()
        for batch in session.dataset(folder).epoch(batches=2):
            batch.release()
        del batch
        told = when(client, session.id, lambda one: one.waits_told == 5)
    waited = sum(told.waited_seconds.values())
    assert 0 < waited <= told.seconds


def test_a_wait_that_ends_without_a_batch_counts_for_the_next_one(client: millrace.Client, own_size: millrace.Recipe, folder: Path) -> None:
    with client.session(own_size, batch=4, slots=1) as session:
        held = session.get(session.submit([path_of(folder, 0)]))
        number = session.submit([path_of(folder, 1)])
        with pytest.raises(millrace.DeadlineExceeded):
            session.get(number, timeout=0.2)
        held.release()
        session.get(number).release()
        told = when(client, session.id, lambda one: one.waits_told == 2)
    assert told.waited_seconds["client"] > 0.15


def test_asyncio_tells_as_well(daemon: millrace.PrivateDaemon, client: millrace.Client, own_size: millrace.Recipe, folder: Path) -> None:
    async def run() -> millrace.SessionStatistics:
        async with await millrace.aio.connect(daemon.address) as other, await other.session(own_size, batch=4, slots=2) as session:
            (await session.get(await session.submit([path_of(folder, 0)]))).release()
            async for batch in session.epoch(await session.dataset(folder), batches=2):
                batch.release()
            return await asyncio.to_thread(when, client, session.session.id, lambda one: one.waits_told == 3)

    told = asyncio.run(run())
    assert sum(told.waited_seconds.values()) > 0


def test_a_cancelled_get_of_asyncio_counts_for_the_batch_that_comes(
    daemon: millrace.PrivateDaemon, client: millrace.Client, own_size: millrace.Recipe, folder: Path
) -> None:
    async def run() -> millrace.SessionStatistics:
        async with await millrace.aio.connect(daemon.address) as other, await other.session(own_size, batch=4, slots=1) as session:
            held = await session.get(await session.submit([path_of(folder, 0)]))
            number = await session.submit([path_of(folder, 1)])
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(session.get(number), 0.2)
            held.release()
            (await session.get(number)).release()
            return await asyncio.to_thread(when, client, session.session.id, lambda one: one.waits_told == 2)

    assert asyncio.run(run()).waited_seconds["client"] > 0.15


def test_what_an_event_loop_does_while_a_batch_is_there_is_no_wait(
    daemon: millrace.PrivateDaemon, client: millrace.Client, own_size: millrace.Recipe, folder: Path
) -> None:
    def is_made() -> bool:
        (session,) = client.statistics().sessions
        return session.batches == 1

    async def run() -> millrace.SessionStatistics:
        async with await millrace.aio.connect(daemon.address) as other, await other.session(own_size, batch=4, slots=1) as session:
            waiting = asyncio.create_task(session.get(await session.submit([path_of(folder, 0)])))
            await asyncio.sleep(0)  # the task asks
            while not is_made():
                pass
            time.sleep(1.0)  # in the event loop's thread
            (await waiting).release()
            return await asyncio.to_thread(when, client, session.session.id, lambda one: one.waits_told == 1)

    told = asyncio.run(run())
    # Less than the program did: the session was listed, read and made before.
    assert sum(told.waited_seconds.values()) < 0.9
    assert told.seconds > 1.0


def test_a_loader_of_encoded_images_tells_as_well(
    daemon: millrace.PrivateDaemon, client: millrace.Client, own_size: millrace.Recipe, folder: Path
) -> None:
    images = [{"image": {"bytes": Path(path_of(folder, number)).read_bytes(), "path": None}, "label": number} for number in range(8)]
    encoded = millrace.Encoded(images, image="image", label="label")
    with millrace.numpy.Loader(encoded, own_size, batch_size=4, address=daemon.address) as loader:
        loop = iter(loader)
        next(loop)
        next(loop)
        (session,) = client.statistics().sessions
        told = when(client, session.id, lambda one: one.waits_told >= 1)
    assert sum(told.waited_seconds.values()) > 0


def test_a_loader_tells_as_well(daemon: millrace.PrivateDaemon, client: millrace.Client, own_size: millrace.Recipe, folder: Path) -> None:
    loader = millrace.numpy.Loader(folder, own_size, batch_size=4, address=daemon.address)
    loop = iter(loader)
    next(loop)
    next(loop)
    (session,) = client.statistics().sessions
    when(client, session.id, lambda one: one.waits_told >= 1)
    loader.close()
