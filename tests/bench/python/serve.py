#!/usr/bin/env python3
"""examples/serve.py beside the same HTTP server that decodes and resizes in its own process: requests/s, p50 and p99 milliseconds.

    OMP_NUM_THREADS=1 python serve.py [--photographs DIR] [--model mean] [--rounds 5] [--seconds 3] [--clients 1,4,16,64]

The others run the same endpoint, the same batches and the same model, and decode each picture in a thread pool as soon as it has come:
"pillow" as torchvision's datasets do (PIL, then v2.Resize, CenterCrop, ToTensor, Normalize), "torchvision" with decode_image and v2's
transforms on tensors, which let go of the interpreter's lock. Each server is a process of its own, given one thread for PyTorch; all
are kept running, and asked one after another, in turned order, every round. A client is a connection that sends its next picture when
the answer to the one before has come; each picture has other bytes after its end, so that nobody has seen it before. The ratio is the
median over the rounds of requests/s against each of the others, the lower one.

The usual model, "mean", is a layer over the mean colours: a server's model is on a GPU, and what is compared is what remains for the CPU.
Any of torchvision's takes the same CPU's time from all three, --model shufflenet_v2_x0_5 the least.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import os
import secrets
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

EXAMPLE = Path(__file__).resolve().parents[3] / "client" / "python" / "examples" / "serve.py"
SIDES = ("millrace", "pillow", "torchvision")
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def decoder(side: str) -> Callable[[bytes], Any]:
    """What makes a picture's bytes a tensor [3, 224, 224] of float32."""
    import io

    import torch
    from PIL import Image
    from torchvision.io import ImageReadMode, decode_image
    from torchvision.transforms import v2

    rest = [v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]
    if side == "pillow":
        by_pillow = v2.Compose([v2.Resize(256), v2.CenterCrop(224), v2.ToImage(), *rest])
        return lambda encoded: by_pillow(Image.open(io.BytesIO(encoded)).convert("RGB"))
    on_tensors = v2.Compose([v2.Resize(256, antialias=True), v2.CenterCrop(224), *rest])
    return lambda encoded: on_tensors(decode_image(torch.frombuffer(bytearray(encoded), dtype=torch.uint8), ImageReadMode.RGB))


def the_example() -> Any:
    """Its module, which knows the model "mean" beside torchvision's."""
    import torch

    spec = importlib.util.spec_from_file_location("example", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    of_torchvision = example.load_model

    def load_model(given: argparse.Namespace) -> Any:
        if given.model != "mean":
            return of_torchvision(given)
        return torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(4), torch.nn.Flatten(), torch.nn.Linear(48, 1000)).eval()

    example.load_model = load_model
    return example


def serve_in_process(side: str, model: str, threads: int) -> None:
    """The example's server, but for where the pictures are decoded."""
    import torch

    example = the_example()
    decode, pool = decoder(side), ThreadPoolExecutor(threads)

    class InProcess(example.Classifier):  # type: ignore[misc, name-defined]
        async def classify(self, encoded: bytes) -> Any:
            return await super().classify(await asyncio.get_running_loop().run_in_executor(pool, decode, encoded))

        async def run(self) -> None:
            while True:
                gathered = await self._gather()
                pictures = torch.stack([picture for picture, _ in gathered])
                top = await asyncio.to_thread(self._infer, argparse.Namespace(images=pictures))
                for (_, answer), classes in zip(gathered, top, strict=True):
                    answer.set_result(classes)

    async def run() -> None:
        torch.set_num_threads(1)
        given = argparse.Namespace(model=model, weights="", device="cpu")
        classifier = InProcess(None, None, example.load_model(given), 16, 0.003)
        server = await asyncio.start_server(example.Endpoint(classifier).serve, "127.0.0.1", 0)
        print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", flush=True)
        await classifier.run()

    asyncio.run(run())


@contextmanager
def server(side: str, given: argparse.Namespace) -> Iterator[int]:
    """One that runs; its port."""
    command = [__file__, "--side", side, "--model", given.model, "--lanes", str(given.lanes)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if "http://" not in line:
            raise SystemExit(f"{side}: the server did not start")
        yield int(line.rsplit(":", 1)[1].partition("/")[0])
    finally:
        process.terminate()
        process.wait()


async def asked(port: int, picture: bytes) -> float:
    """Seconds of one request."""
    begun = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"POST /classify HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(picture) + picture)
    answer = await reader.read()
    writer.close()
    if not answer.startswith(b"HTTP/1.1 200"):
        raise SystemExit(f"the server answered {answer[:200]!r}")
    return time.perf_counter() - begun


async def load(port: int, pictures: list[bytes], clients: int, seconds: float) -> tuple[float, list[float]]:
    """Requests/s of so many clients for so long, and how long each took."""
    took: list[float] = []
    begun = time.perf_counter()

    async def client(first: int) -> None:
        number = first
        while time.perf_counter() - begun < seconds:
            took.append(await asked(port, pictures[number % len(pictures)] + secrets.token_bytes(8)))
            number += clients

    await asyncio.gather(*(client(first) for first in range(clients)))
    return len(took) / (time.perf_counter() - begun), took


def at(seconds: list[float], percent: int) -> float:
    """A percentile, in milliseconds."""
    return sorted(seconds)[min(len(seconds) - 1, percent * len(seconds) // 100)] * 1000


def run(given: argparse.Namespace) -> dict[str, float]:
    """The figures; prints a line for each number of clients."""
    pictures = [path.read_bytes() for path in sorted(given.photographs.iterdir())]
    figures: dict[str, float] = {}
    with ExitStack() as stack:
        ports = {side: stack.enter_context(server(side, given)) for side in SIDES}
        for port in ports.values():
            asyncio.run(load(port, pictures, 4, 1))
        for clients in map(int, given.clients.split(",")):
            rates: dict[str, list[float]] = {side: [] for side in SIDES}
            took: dict[str, list[float]] = {side: [] for side in SIDES}
            for number in range(given.rounds):
                for side in SIDES[number % 3 :] + SIDES[: number % 3]:
                    rate, seconds = asyncio.run(load(ports[side], pictures, clients, given.seconds))
                    rates[side].append(rate)
                    took[side] += seconds
            pairs = {side: zip(rates["millrace"], rates[side], strict=True) for side in SIDES[1:]}
            ratio = min(statistics.median(ours / other for ours, other in pair) for pair in pairs.values())
            words = [
                f"{side} {statistics.median(rates[side]):.0f}/s, p50 {at(took[side], 50):.1f}, p99 {at(took[side], 99):.1f} ms"
                for side in SIDES
            ]
            print(f"{clients} clients: {'; '.join(words)}; {ratio:.2f} times the faster; load {os.getloadavg()[0]:.1f}", flush=True)
            figures[f"serve.{clients}.ratio"] = ratio
            for side in SIDES:
                figures[f"serve.{clients}.{side}"] = statistics.median(rates[side])
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photographs", type=Path, default=Path(os.environ.get("MILLRACE_TEST_DATA", "/nowhere"), "photos"))
    parser.add_argument("--model", default="mean", help="that, or one of torchvision.models")
    parser.add_argument("--lanes", type=int, default=len(os.sched_getaffinity(0)), help="of the daemon; the others' threads (the cores)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each server and round (3)")
    parser.add_argument("--clients", default="1,4,16,64")
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.side == "millrace":
        own = ["--port", "0", "--model", given.model, "--device", "cpu", "--threads", "1", "--lanes", str(given.lanes)]
        sys.argv = [str(EXAMPLE), *own]
        the_example().main()
    elif given.side:
        serve_in_process(given.side, given.model, given.lanes)
    elif not given.photographs.is_dir():
        raise SystemExit(f"no folder of photographs: {given.photographs}; give one with --photographs, or its parent in MILLRACE_TEST_DATA")
    else:
        run(given)


if __name__ == "__main__":
    main()
