"""A small HTTP endpoint that classifies uploaded pictures; what arrives within a few milliseconds becomes one batch.

    python serve.py --port 8000 [--weights resnet18.pth]
    curl --data-binary @cat.jpg http://localhost:8000/classify

The daemon decodes, resizes and normalises in its own process, so this one's interpreter lock is free for the model. A bad picture is its
own request's error (400) and costs the others nothing. Without a running daemon it starts a private one. If the daemon goes away, requests
are told so (503), as is who asks for GET /health, and a second later it goes on with the one that runs then, or with a private one.

Daemon and PyTorch would each take a thread a core, and keep each other waiting. So on a CPU a private daemon gets a quarter of the cores
(--lanes) and PyTorch the others (--threads); beside a daemon that runs already PyTorch gets what that leaves, and at least half.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from http import HTTPStatus
from typing import Any

import torch
import torchvision

import millrace
import millrace.aio

LARGEST = 32 << 20  # bytes of a picture
RING = 256 << 20  # bytes

Submitted = tuple[int, list[asyncio.Future[Any]]]  # a batch's number, and who waits for its pictures


class Classifier:
    """Gathers pictures into batches: of those that wait when the one before has been taken, at most so many."""

    def __init__(self, model: Any, batch: int, wait: float) -> None:
        self._model, self._batch, self._wait = model, batch, wait
        self._session: millrace.aio.AsyncSession | None = None
        self._waiting: asyncio.Queue[tuple[bytes, asyncio.Future[Any]]] = asyncio.Queue(4 * batch)
        self._submitted: asyncio.Queue[Submitted] = asyncio.Queue(1)  # what the daemon works on while the model works on the one before

    @property
    def ready(self) -> bool:
        """Whether there is a daemon."""
        return self._session is not None

    async def classify(self, encoded: bytes) -> list[tuple[int, float]]:
        """The five likeliest classes with their probabilities. Raises millrace.Error for a picture that is none, and without a daemon."""
        if not self.ready:
            raise millrace.DaemonUnavailable("there is no daemon at the moment; ask again")
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        await self._waiting.put((encoded, answer))
        return await answer  # type: ignore[no-any-return]

    async def run(self, session: millrace.aio.AsyncSession, ring: millrace.Ring) -> None:
        """Serves until the session ends, and raises what it ended with; or until it is cancelled."""
        self._session, self._ring = session, ring
        tasks = [asyncio.create_task(work()) for work in (self._submit_all, self._answer_all)]
        try:
            await asyncio.gather(*tasks)
        finally:
            self._session = None
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            gone = millrace.DaemonUnavailable("the daemon has gone; ask again")
            while not self._submitted.empty():
                fail(self._submitted.get_nowait()[1], gone)
            while not self._waiting.empty():
                fail([self._waiting.get_nowait()[1]], gone)

    async def _submit_all(self) -> None:
        assert self._session is not None
        while True:
            gathered = await self._gather()
            answers = [answer for _, answer in gathered]
            try:
                rooms = [self._ring.put(encoded) for encoded, _ in gathered]
                await self._submitted.put((await self._session.submit(rooms, on_error="zero", priority="high"), answers))
            except BaseException as why:
                fail(answers, why)
                if not isinstance(why, Exception) or isinstance(why, millrace.DaemonUnavailable):
                    raise

    async def _gather(self) -> list[tuple[bytes, asyncio.Future[Any]]]:
        gathered = [await self._waiting.get()]
        deadline = asyncio.get_running_loop().time() + self._wait
        while len(gathered) < self._batch and (left := deadline - asyncio.get_running_loop().time()) > 0:
            try:
                gathered.append(await asyncio.wait_for(self._waiting.get(), left))
            except asyncio.TimeoutError:
                break
        return gathered

    async def _answer_all(self) -> None:
        while True:
            number, answers = await self._submitted.get()
            try:
                await self._answer(number, answers)
            except BaseException as why:
                fail(answers, why)
                if not isinstance(why, Exception) or isinstance(why, millrace.DaemonUnavailable):
                    raise

    async def _answer(self, number: int, answers: list[asyncio.Future[Any]]) -> None:
        assert self._session is not None
        with await self._session.get(number) as batch:
            bad = {error.index: error for error in batch.errors}
            top = await asyncio.to_thread(self._infer, batch)
        for index, answer in enumerate(answers):
            if answer.done():
                continue  # the client has gone
            if index in bad:
                answer.set_exception(millrace.InvalidRequest(bad[index].message))
            else:
                answer.set_result(top[index])

    def _infer(self, batch: millrace.Batch) -> list[list[tuple[int, float]]]:
        with torch.inference_mode():
            device = next(self._model.parameters()).device
            likely = self._model(torch.from_dlpack(batch.images).to(device)).softmax(1).topk(5)
        return [list(zip(row, shares, strict=True)) for row, shares in zip(likely.indices.tolist(), likely.values.tolist(), strict=True)]


def fail(answers: list[asyncio.Future[Any]], why: BaseException) -> None:
    if not isinstance(why, Exception):
        why = millrace.Cancelled("the server ends, or its session has")
    for answer in answers:
        if not answer.done():
            answer.set_exception(why)


class Endpoint:
    """Just enough HTTP/1.1: POST /classify with a picture as body, GET /health."""

    def __init__(self, classifier: Classifier) -> None:
        self._classifier = classifier

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            status, answer = await self._respond(reader)
        except (asyncio.IncompleteReadError, ConnectionError, ValueError, asyncio.LimitOverrunError):
            status, answer = HTTPStatus.BAD_REQUEST, {"error": "not an HTTP request"}
        body = json.dumps(answer).encode() + b"\n"
        fields = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close"
        head = f"HTTP/1.1 {status.value} {status.phrase}\r\n{fields}\r\n\r\n"
        try:
            writer.write(head.encode() + body)
            await writer.drain()
            writer.close()
            await writer.wait_closed()
        except ConnectionError:
            pass

    async def _respond(self, reader: asyncio.StreamReader) -> tuple[HTTPStatus, dict[str, Any]]:
        request, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        if request.startswith("GET /health "):
            if not self._classifier.ready:
                return HTTPStatus.SERVICE_UNAVAILABLE, {"status": "waiting for the daemon"}
            return HTTPStatus.OK, {"status": "serving"}
        if not request.startswith("POST /classify "):
            return HTTPStatus.NOT_FOUND, {"error": "POST /classify with a picture as body"}
        length = int(headers.get("content-length", "0"))
        if not 1 <= length <= LARGEST:
            return HTTPStatus.REQUEST_ENTITY_TOO_LARGE, {"error": f"send 1 to {LARGEST} bytes, with Content-Length"}
        try:
            top = await self._classifier.classify(await reader.readexactly(length))
        except (millrace.InvalidRequest, millrace.SampleFailed) as why:
            return HTTPStatus.BAD_REQUEST, {"error": str(why)}
        except millrace.Error as why:
            return HTTPStatus.SERVICE_UNAVAILABLE, {"error": str(why)}
        return HTTPStatus.OK, {"classes": [{"class": number, "probability": share} for number, share in top]}


def lanes_of(given: argparse.Namespace, cores: int) -> int:
    """Lanes for a daemon of our own; 0: one a core, where the model is not on the CPU."""
    if given.lanes or given.device != "cpu":
        return int(given.lanes)
    return max(1, cores // 4)


def threads_of(given: argparse.Namespace, cores: int, lanes: int) -> int:
    """Threads for PyTorch beside a daemon of so many lanes."""
    return int(given.threads) or max(1, cores - lanes, cores // 2)


def load_model(given: argparse.Namespace) -> Any:
    torch.manual_seed(0)
    model = torchvision.models.get_model(given.model, weights=None)
    if given.weights:
        model.load_state_dict(torch.load(given.weights, map_location="cpu"))
    return model.eval().to(given.device)


async def with_a_daemon(given: argparse.Namespace, classifier: Classifier, began: Callable[[str], None]) -> None:
    """Serves until the daemon goes away. Starts one if none runs."""
    recipe = millrace.Recipe.evaluate(256, 224).normalised("float32")
    async with AsyncExitStack() as stack:
        cores = len(os.sched_getaffinity(0))
        stack.enter_context(millrace.serve(reuse=True, lanes=lanes_of(given, cores)))
        client = await stack.enter_async_context(await millrace.aio.connect())
        lanes = sum(device.lanes for device in await client.devices() if device.backend == "cpu")
        torch.set_num_threads(threads_of(given, cores, lanes))
        session = await stack.enter_async_context(await client.session(recipe, batch=given.batch, slots=4, name="serve.py"))
        ring = await session.ring(RING)
        began(f"{cores} cores: {lanes} lanes, {torch.get_num_threads()} threads of PyTorch")
        await classifier.run(session, ring)


async def run(given: argparse.Namespace) -> None:
    classifier = Classifier(load_model(given), given.batch, given.wait_ms / 1000)
    server = await asyncio.start_server(Endpoint(classifier).serve, given.host, given.port)

    def began(shares: str) -> None:
        print("{}; listening on http://{}:{}/classify".format(shares, *server.sockets[0].getsockname()[:2]), flush=True)

    async with server:
        while True:
            try:
                await with_a_daemon(given, classifier, began)
            except millrace.DaemonUnavailable as why:
                print(why, file=sys.stderr, flush=True)
                await asyncio.sleep(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000, help="0: any (8000)")
    parser.add_argument("--model", default="resnet18", help="of torchvision.models (resnet18)")
    parser.add_argument("--weights", help="its state_dict, saved by torch.save; none: random, to try things out")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--lanes", type=int, default=0, help="of a daemon that it starts (0: a quarter of the cores)")
    parser.add_argument("--threads", type=int, default=0, help="of PyTorch (0: one for each core that is left)")
    parser.add_argument("--batch", type=int, default=16, help="pictures at most in one (16)")
    parser.add_argument("--wait-ms", type=float, default=3.0, help="how long the first waits for others (3)")
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
