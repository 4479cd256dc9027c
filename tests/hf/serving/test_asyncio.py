"""A processor called from asyncio: as often at once as it has slots, and calls that are cancelled leave nothing behind."""

from __future__ import annotations

import asyncio
import copy
import gc
import os
import signal
import time
from pathlib import Path
from typing import Any

import millrace
import numpy as np
import pytest
from millrace.hf import ImageProcessor

from folders import both

CLIP = {"image_processor_type": "CLIPImageProcessor"}


def test_a_call_gives_what_it_gives_to_a_thread(client: millrace.Client, made: list[Path]) -> None:
    async def gather(processor: ImageProcessor) -> list[Any]:
        return await asyncio.gather(*(processor.acall(path, size=250, copy=True) for path in made))

    with ImageProcessor.from_config(CLIP, client=client, slots=3) as processor:
        results = asyncio.run(gather(processor))

        for path, got in zip(made, results, strict=True):
            np.testing.assert_array_equal(got.pixel_values, processor(path, size=250).pixel_values)


def test_the_drop_in_has_it_too(client: millrace.Client, made: list[Path], tmp_path: Path) -> None:
    with both(client, "clip_vit_base_patch32", tmp_path) as (ours, _):
        got = asyncio.run(ours.acall(made[-1], return_tensors="np", size=300, timeout=300.0))

        np.testing.assert_array_equal(got["pixel_values"], ours(made[-1], return_tensors="np", size=300)["pixel_values"])


def test_errors_come_as_from_a_call(client: millrace.Client, made: list[Path]) -> None:
    with ImageProcessor.from_config(CLIP, client=client) as processor:
        with pytest.raises(millrace.SampleFailed, match=r"images\[1\]"):
            asyncio.run(processor.acall([made[-1], b"not an image"]))
        with pytest.raises(millrace.Unsupported, match="key do_sharpen"):
            asyncio.run(processor.acall(made[-1], do_sharpen=True))


def test_cancelled_calls_leave_no_slot_taken(made: list[Path]) -> None:
    async def cancelled(processor: ImageProcessor, count: int) -> None:
        calls = [asyncio.create_task(processor.acall(made[:4])) for _ in range(count)]
        await asyncio.sleep(0.2)
        for call in calls:
            call.cancel()
        for outcome in await asyncio.gather(*calls, return_exceptions=True):
            assert isinstance(outcome, asyncio.CancelledError)

    daemon = millrace.serve(made[0].parent, lanes=1)
    with daemon, millrace.connect(daemon.address) as client, ImageProcessor.from_config(CLIP, client=client, slots=2) as processor:
        processor(made[:1], copy=True)
        os.kill(daemon.pid, signal.SIGSTOP)  # so that none ends before it is cancelled
        try:
            began = time.monotonic()
            asyncio.run(cancelled(processor, 8))
            assert time.monotonic() - began < 60
        finally:
            os.kill(daemon.pid, signal.SIGCONT)

        again = processor(made[:1], timeout=300).pixel_values
        assert again.shape == (1, 3, 224, 224)
        del again
        deadline = time.monotonic() + 240
        while not all(session.slots_free == session.slots for session in client.statistics().sessions):
            gc.collect()
            assert time.monotonic() < deadline, client.statistics().sessions
            time.sleep(0.01)


def test_a_copy_has_threads_of_its_own(client: millrace.Client, made: list[Path]) -> None:
    with ImageProcessor.from_config(CLIP, client=client) as processor:
        first = asyncio.run(processor.acall(made[-1], copy=True))
        with copy.deepcopy(processor) as other:
            np.testing.assert_array_equal(asyncio.run(other.acall(made[-1])).pixel_values, first.pixel_values)
            assert other._aside._threads is not processor._aside._threads
