"""Calls from asyncio: in threads of the processor's own, and given up when nobody awaits them any more."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from millrace._core.session import Session
from millrace._process import fork as _fork
from millrace.errors import Cancelled, Error

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

T = TypeVar("T")


class Abandonment:
    """One call, which another thread may end: its batch is cancelled in the daemon, and no other one begins. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._given_up = False
        self._batch: tuple[Session, int] | None = None

    def check(self) -> None:
        """Raises Cancelled if the call was given up."""
        if self._given_up:
            raise Cancelled("the call was cancelled")

    def waits_for(self, session: Session, batch_id: int) -> None:
        """The call waits for that batch now."""
        with self._lock:
            self._batch = (session, batch_id)
            if self._given_up:
                self._cancel()

    def give_up(self) -> None:
        """Nobody waits for the call any more."""
        with self._lock:
            self._given_up = True
            self._cancel()

    def _cancel(self) -> None:
        if self._batch is not None:
            session, batch_id = self._batch
            with suppress(Error):  # closed, or gone: then nothing is under way
                session.cancel(batch_id)


class Aside:
    """``most`` threads, made when they are needed. Thread-safe; a copy of it, and a forked child's, has threads of its own."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._threads: ThreadPoolExecutor | None = None
        _fork.register(self)

    def __reduce__(self) -> tuple[type[Aside], tuple[int]]:
        return Aside, (self._most,)

    async def run(self, call: Callable[[Abandonment], T]) -> T:
        """What ``call`` returns or raises. Cancelled, it gives up the call and does not wait for its thread."""
        import asyncio  # 30 ms, for those only who have it already
        from concurrent.futures import ThreadPoolExecutor

        abandonment = Abandonment()
        with self._lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(self._most, "millrace-processor")
            threads = self._threads
        try:
            return await asyncio.get_running_loop().run_in_executor(threads, call, abandonment)
        except asyncio.CancelledError:
            abandonment.give_up()
            raise

    def close(self) -> None:
        """Lets the threads end once they have nothing to do. Another run makes new ones."""
        with self._lock:
            threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown(wait=False)

    def after_fork_in_child(self) -> object:
        """The threads are the parent's."""
        kept, self._threads, self._lock = self._threads, None, threading.Lock()
        return kept
