"""The same for asyncio: ``async with await millrace.aio.connect() as client``. One implementation of the protocol serves both.

    >>> async with await millrace.aio.connect() as client, await client.session(recipe, batch=8) as session:
    ...     batch = await session.get(await session.submit([jpeg]))

Objects belong to the event loop that made them. Batches, datasets, rings and errors are those of the package itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from millrace._core.batch import Batch
from millrace._core.dataset import Dataset
from millrace._core.epoch import Epoch, EpochShape
from millrace._core.findings import Findings
from millrace._core.full_slots import SHARED
from millrace._core.inbox import PENDING
from millrace._core.session import PATIENCE, Session
from millrace._memory.lease import LeaseEnd
from millrace._wire import address as _address
from millrace.client import Client, Device, Statistics
from millrace.errors import Error
from millrace.ring import Ring
from millrace.samples import AnyPath

__all__ = ["AsyncClient", "AsyncEpoch", "AsyncSession", "connect"]


class AsyncEpoch:
    """An epoch as an asynchronous iterator of ``Batch``; as ``millrace.Epoch``."""

    def __init__(self, session: AsyncSession, epoch: Epoch) -> None:
        self._session = session
        self._epoch = epoch

    @property
    def position(self) -> bytes:
        """After the batch that came last: goes on after it."""
        return self._epoch.position

    async def shape(self, timeout: float = PATIENCE) -> EpochShape:
        """How many batches and samples it has. Raises as ``Epoch.shape``."""
        found: EpochShape | Error = await self._session._wait(self._epoch._take_shape, timeout, "epoch")
        if isinstance(found, Error):
            raise found
        return found

    async def next(self, timeout: float | None = None) -> Batch | None:
        """The next batch; None at the end. Raises as ``Epoch.next``."""
        patience = self._epoch.timeout if timeout is None else timeout
        waits = self._session.session._inbox.waits
        return self._epoch._took(await waits.awaited(self._session._wait(self._epoch._take_next, patience, "epoch", SHARED)))

    def stop(self) -> None:
        """No batch comes any more. Idempotent."""
        self._epoch.stop()

    def __aiter__(self) -> AsyncEpoch:
        return self

    async def __anext__(self) -> Batch:
        batch = await self.next()
        if batch is None:
            raise StopAsyncIteration
        return batch

    async def __aenter__(self) -> AsyncEpoch:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()


class AsyncSession:
    """A session whose waiting is awaited; parameters and errors are those of ``millrace.Session``."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def session(self) -> Session:
        """The session itself."""
        return self._session

    async def submit(self, samples: Any, **options: Any) -> int:
        """Asks for a batch; its number for ``get``. As ``Session.submit``."""
        return self._session.submit(samples, **options)

    async def get(self, batch_id: int | None = None, timeout: float | None = None) -> Batch:
        """That batch, or whichever has ended first. As ``Session.get``. A cancelled call takes nothing."""
        take, patience = self._session._inbox.take_batch, PATIENCE if timeout is None else timeout
        outcome: Batch | Error = await self._session._inbox.waits.awaited(self._wait(lambda: take(batch_id), patience, "get", SHARED))
        if isinstance(outcome, Error):
            try:
                raise outcome
            finally:
                del outcome  # as in Session.get
        return outcome

    def cancel(self, batch_id: int) -> None:
        """Drops a batch. As ``Session.cancel``."""
        self._session.cancel(batch_id)

    async def ring(self, size: int) -> Ring:
        """Shared memory for encoded images. As ``Session.ring``."""
        return await asyncio.to_thread(self._session.ring, size)

    async def dataset(self, path: AnyPath, *arguments: Any, **options: Any) -> Dataset:
        """Lists a folder tree. As ``Session.dataset``."""
        return await asyncio.to_thread(self._session.dataset, path, *arguments, **options)

    def epoch(self, dataset: Dataset, **options: Any) -> AsyncEpoch:
        """Begins one pass over a dataset. As ``Session.epoch``."""
        return AsyncEpoch(self, self._session.epoch(dataset, **options))

    async def close(self) -> None:
        """Cancels what is under way and ends the session. Idempotent."""
        await asyncio.to_thread(self._session.close)

    async def _wait(self, take: Callable[[], Any], timeout: float, what: str, grace: float | None = None) -> Any:
        self._session._check_fork()
        inbox, loop, arrived = self._session._inbox, asyncio.get_running_loop(), asyncio.Event()
        deadline = time.monotonic() + timeout
        held: list[LeaseEnd] = []

        def wake() -> None:
            with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
                loop.call_soon_threadsafe(arrived.set)

        inbox.watch(wake)
        try:
            while True:
                arrived.clear()
                inbox.tell()
                found = inbox.look(take)
                if found is not PENDING:
                    return found
                left = max(0.0, deadline - time.monotonic())
                try:
                    await asyncio.wait_for(arrived.wait(), min(left, inbox.pause(grace)))
                except asyncio.TimeoutError:
                    if time.monotonic() >= deadline:
                        raise inbox.too_late(timeout, what) from None
                    held = await asyncio.to_thread(inbox.relieve, held)
        finally:
            inbox.unwatch(wake)

    async def __aenter__(self) -> AsyncSession:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()


class AsyncClient:
    """A connection to the daemon whose waiting is awaited; as ``millrace.Client``."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @property
    def path(self) -> str:
        """Of the socket that it is connected to."""
        return self._client.path

    async def session(self, *arguments: Any, **options: Any) -> AsyncSession:
        """Opens a session. As ``Client.session``."""
        return AsyncSession(await asyncio.to_thread(self._client.session, *arguments, **options))

    async def ping(self, timeout: float = 5.0) -> float:
        """Seconds of one round trip to the daemon. As ``Client.ping``."""
        return await asyncio.to_thread(self._client.ping, timeout)

    async def statistics(self, timeout: float = 5.0) -> Statistics:
        """What the daemon has done and holds."""
        return await asyncio.to_thread(self._client.statistics, timeout)

    async def why(self, session: int = 0, timeout: float = 5.0) -> tuple[Findings, ...]:
        """What bounds a session now, or with 0 each one. As ``Client.why``."""
        return await asyncio.to_thread(self._client.why, session, timeout)

    async def devices(self, timeout: float = 5.0) -> tuple[Device, ...]:
        """The host's preprocessing devices."""
        return await asyncio.to_thread(self._client.devices, timeout)

    async def close(self) -> None:
        """Ends the connection; sessions go on."""
        self._client.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()


async def connect(address: str | os.PathLike[str] | None = None, timeout: float = 5.0) -> AsyncClient:
    """Connects to the host's daemon. As ``millrace.connect``."""
    return AsyncClient(await asyncio.to_thread(Client, _address.resolve(address), timeout))
