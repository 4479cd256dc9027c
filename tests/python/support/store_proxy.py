"""A proxy for HTTP that delays, refuses, cuts and hangs as tests tell it to, and counts what passes. In a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

_PIECE = 64 << 10


def options_of(url: str) -> dict[str, Any]:
    """``storage_options`` for the store, or the proxy, at this address."""
    return {"key": "a", "secret": "b", "client_kwargs": {"endpoint_url": url, "region_name": "us-east-1"}}


@dataclass
class Fault:
    """What befalls requests. Of several that fit a request the one that was added last does.

    Attributes:
        match: a regular expression that is searched for in ``"GET /bucket/key?query"``; with the range, where there is one:
            ``"GET /bucket/key bytes=0-99"``.
        status: this answer instead of the server's: 403, 404, 500, 503; 0: the server's.
        cut: bytes of the answer's body after which the connection is cut; None: it is not. 0 cuts before the answer's head as well.
        hang: no answer ever; the connection stays, until the client closes it or the fault is removed.
        delay: seconds before the request is passed on, beside the proxy's own.
        times: of how many requests at most; None: of all.
        share: of the requests that fit, which share is befallen, drawn by chance from ``seed``.
        seconds: for how long from now on.
        happened: how many requests it has befallen.
    """

    match: str = ""
    status: int = 0
    cut: int | None = None
    hang: bool = False
    delay: float = 0.0
    times: int | None = None
    share: float = 1.0
    seconds: float = float("inf")
    seed: int = 1
    happened: int = 0
    _until: float = field(init=False)
    _dice: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._until = time.monotonic() + self.seconds
        self._dice = random.Random(self.seed)

    def befalls(self, what: str) -> bool:
        if not re.search(self.match, what) or time.monotonic() > self._until or (self.times is not None and self.happened >= self.times):
            return False
        if self._dice.random() >= self.share:
            return False
        self.happened += 1
        return True


class StoreProxy:
    """The proxy. A context manager.

    Attributes:
        url: its address, ``http://127.0.0.1:...``.
        options: ``storage_options`` for the store behind it.
        delay: seconds before each request is passed on.
        requests: what was asked for, as ``Fault.match`` sees it.
        bytes: of answers' bodies, sent to clients.
        under_way: requests that have no answer yet.
        most: of them at the same time, at most.
    """

    def __init__(self, target: str) -> None:
        self.delay = 0.0
        self.requests: list[str] = []
        self.bytes = 0
        self.under_way = self.most = 0
        self._faults: list[Fault] = []
        self._host, self._port = urlsplit(target).hostname, urlsplit(target).port
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, name="test-store-proxy", daemon=True)
        self._thread.start()
        self._server: asyncio.Server = self._await(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        self.options: dict[str, Any] = options_of(self.url)

    def __enter__(self) -> StoreProxy:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.close()
        self._await(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def add(self, match: str = "", **options: Any) -> Fault:
        """A fault from now on, until ``clear()`` or its own end; ``Fault`` says which there are."""
        self._faults = [*self._faults, Fault(match, **options)]
        return self._faults[-1]

    @contextlib.contextmanager
    def fault(self, match: str = "", **options: Any) -> Iterator[Fault]:
        """A fault within a ``with``. Requests that hang are let go at its end: their connections are cut."""
        fault = self.add(match, **options)
        try:
            yield fault
        finally:
            self.remove(fault)

    def remove(self, fault: Fault) -> None:
        self._faults = [one for one in self._faults if one is not fault]

    def clear(self) -> None:
        """No faults, no delay, counts of zero."""
        self._faults = []
        self.delay, self.requests, self.bytes, self.most = 0.0, [], 0, 0

    def count(self, match: str) -> int:
        """How many requests it fits."""
        return sum(bool(re.search(match, one)) for one in self.requests)

    def _await(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(60)

    async def _end(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while await self._one(reader, writer):
                pass
            writer.close()  # once what was written is sent
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            writer.transport.abort()
        finally:
            self._tasks.discard(task)

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """A request. Whether another may follow."""
        head = await reader.readuntil(b"\r\n\r\n")
        headers = _headers(head)
        method, path, _ = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
        if headers.get("expect"):
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        what = f"{method} {path} {headers.get('range', '')}".rstrip()
        self.requests.append(what)
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            return await self._answered(method, what, head, body, reader, writer)
        finally:
            self.under_way -= 1

    async def _answered(
        self, method: str, what: str, head: bytes, body: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        fault = next((one for one in reversed(self._faults) if one.befalls(what)), Fault())
        await asyncio.sleep(self.delay + fault.delay)
        if fault.hang:
            while any(one is fault for one in self._faults) and not reader.at_eof():
                await asyncio.sleep(0.02)
            return False
        if fault.cut == 0:
            return False
        if fault.status:
            said = b"" if method == "HEAD" else _told(fault.status)
            head = f"HTTP/1.1 {fault.status} No\r\nContent-Type: application/xml\r\nContent-Length: {len(said)}\r\n\r\n".encode()
            writer.write(head + said)
            await writer.drain()
            return True
        return await self._passed_on(method, head, body, writer, fault)

    async def _passed_on(self, method: str, head: bytes, body: bytes, writer: asyncio.StreamWriter, fault: Fault) -> bool:
        there, to = await asyncio.open_connection(self._host, self._port, limit=1 << 20)
        try:
            lines = [line for line in head[:-4].split(b"\r\n") if not line.lower().startswith((b"connection:", b"expect:"))]
            to.write(b"\r\n".join([*lines, b"Connection: close", b"", b""]) + body)
            await to.drain()
            answer = await there.readuntil(b"\r\n\r\n")
            headers = _headers(answer)
            length = headers.get("content-length")
            lines = [line for line in answer[:-4].split(b"\r\n") if not line.lower().startswith(b"connection:")]
            writer.write(b"\r\n".join([*lines, b"Connection: keep-alive" if length else b"Connection: close", b"", b""]))
            left = 0 if method == "HEAD" else int(length) if length else 1 << 60
            allowed = left if fault.cut is None else min(left, fault.cut)
            while allowed:
                piece = await there.read(min(_PIECE, allowed))
                if not piece:
                    break
                writer.write(piece)
                await writer.drain()
                allowed -= len(piece)
                left -= len(piece)
                self.bytes += len(piece)
            if fault.cut is not None and left:
                return False
            return bool(length)
        finally:
            to.transport.abort()


def _headers(head: bytes) -> dict[str, str]:
    lines = head.decode("latin-1").split("\r\n")[1:]
    return {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines) if name}


def _told(status: int) -> bytes:
    """As S3 says it."""
    codes = {403: "AccessDenied", 404: "NoSuchKey", 500: "InternalError", 503: "SlowDown"}
    return f"<?xml version='1.0'?><Error><Code>{codes.get(status, 'Other')}</Code><Message>told by the test</Message></Error>".encode()
