"""The asyncio twin, against the same daemon."""

from __future__ import annotations

import asyncio
from pathlib import Path

import millrace
import millrace.aio
import pytest

from pictures import COUNT, check_pixels, path_of, png


def test_batches_are_awaited(daemon: millrace.PrivateDaemon, own_size: millrace.Recipe, folder: Path) -> None:
    async def one(session: millrace.aio.AsyncSession, number: int) -> None:
        sample = millrace.Sample(path_of(folder, number), id=number)
        batch = await session.get(await session.submit([sample]))
        assert batch.ids.tolist() == [number]
        check_pixels(batch)

    async def run() -> None:
        async with (
            await millrace.aio.connect(daemon.address) as client,
            await client.session(own_size, batch=1, slots=3) as session,
        ):
            assert await client.ping() > 0
            assert (await client.devices())[0].backend == "cpu"
            await asyncio.gather(*(one(session, number) for number in range(COUNT)))

    asyncio.run(run())


@pytest.mark.usefixtures("slots_are_waited_for")
def test_the_loop_goes_on_while_a_batch_is_awaited(daemon: millrace.PrivateDaemon, own_size: millrace.Recipe) -> None:
    async def run() -> int:
        async with await millrace.aio.connect(daemon.address) as client, await client.session(own_size, slots=1) as session:
            held = await session.get(await session.submit([png(0)]))
            number = await session.submit([png(1)])
            waiting = asyncio.create_task(session.get(number))
            turns = 0
            for _ in range(20):
                await asyncio.sleep(0.005)
                turns += 1
            assert not waiting.done()
            held.release()
            check = await waiting
            assert len(check) == 1
            return turns

    assert asyncio.run(run()) == 20


def test_a_cancelled_wait_takes_nothing(daemon: millrace.PrivateDaemon, own_size: millrace.Recipe) -> None:
    async def run() -> None:
        async with await millrace.aio.connect(daemon.address) as client, await client.session(own_size, slots=1) as session:
            held = await session.get(await session.submit([png(0)]))
            number = await session.submit([png(1)])
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(session.get(number), 0.05)
            with pytest.raises(millrace.DeadlineExceeded, match="holds all 1 slots"):
                await session.get(number, timeout=0.05)
            held.release()
            assert len(await session.get(number)) == 1

    asyncio.run(run())


def test_epochs(daemon: millrace.PrivateDaemon, own_size: millrace.Recipe, folder: Path) -> None:
    async def run() -> list[int]:
        seen: list[int] = []
        async with await millrace.aio.connect(daemon.address) as client, await client.session(own_size, batch=16) as session:
            dataset = await session.dataset(folder)
            async with session.epoch(dataset, shuffle=True) as epoch:
                assert await epoch.shape() == (4, 0, COUNT)
                async for batch in epoch:
                    check_pixels(batch)
                    seen += batch.ids.tolist()
                    position = epoch.position
                    assert position == batch.position
            with pytest.raises(millrace.Cancelled):
                await epoch.shape()
        return seen

    assert sorted(asyncio.run(run())) == list(range(COUNT))


def test_errors_arrive(daemon: millrace.PrivateDaemon, own_size: millrace.Recipe, tmp_path: Path) -> None:
    async def run() -> None:
        with pytest.raises(millrace.DaemonUnavailable):
            await millrace.aio.connect(tmp_path / "nobody.sock")
        async with await millrace.aio.connect(daemon.address) as client:
            session = await client.session(own_size)
            with pytest.raises(millrace.SampleFailed):
                await session.get(await session.submit([b"bad"]))
            ring = await session.ring(1 << 16)
            assert len(await session.get(await session.submit([ring.put(png(0))]))) == 1
            await session.close()
            with pytest.raises(millrace.Cancelled):
                await session.get()

    asyncio.run(run())
