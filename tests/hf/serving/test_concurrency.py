"""Several calls of one processor at once: their order, their memory, and what becomes of them when the session changes under them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import millrace
import numpy as np
import pytest
from millrace.hf import ImageProcessor, workshop
from millrace.hf.turns import Turns

from room import needs_room

QWEN = {"image_processor_type": "Qwen2VLImageProcessor"}
CLIP = {"image_processor_type": "CLIPImageProcessor"}
PATIENCE = 300.0


def soon() -> float:
    return time.monotonic() + PATIENCE


@pytest.fixture
def together(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Lets nobody through ``Session.get`` before so many callers are in it."""

    def require(callers: int) -> None:
        barrier, get = threading.Barrier(callers), millrace.Session.get

        def waiting(self: millrace.Session, *arguments: Any) -> millrace.Batch:
            barrier.wait(PATIENCE)
            return get(self, *arguments)

        monkeypatch.setattr(millrace.Session, "get", waiting)

    return require


def test_calls_of_several_threads_are_under_way_at_once(client: millrace.Client, made: list[Path], together: Callable[[int], None]) -> None:
    with ImageProcessor.from_config(CLIP, client=client, slots=4) as processor:
        expected = [processor([path], copy=True).pixel_values for path in made[:4]]
        together(4)

        with ThreadPoolExecutor(4) as pool:
            results = list(pool.map(lambda path: processor([path]).pixel_values, made[:4]))

    for result, wanted in zip(results, expected, strict=True):
        np.testing.assert_array_equal(result, wanted)


def test_one_session_serves_all_threads(client: millrace.Client, made: list[Path]) -> None:
    with ImageProcessor.from_config(CLIP, client=client, slots=2, name="shared") as processor:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda path: processor([path], copy=True), made * 2))

        sessions = [session for session in client.statistics().sessions if session.name == "shared"]
        assert [session.slots for session in sessions] == [2]


def test_results_of_many_threads_are_each_ones_own(client: millrace.Client, made: list[Path]) -> None:
    with ImageProcessor.from_config(CLIP, client=client, slots=2) as processor:
        expected = [processor([path], copy=True).pixel_values for path in made]
        with ThreadPoolExecutor(8) as pool:
            results = list(pool.map(lambda path: processor([path]).pixel_values, made * 3))  # all of them kept, most as copies

    for result, wanted in zip(results, expected * 3, strict=True):
        np.testing.assert_array_equal(result, wanted)


@needs_room
def test_slots_grow_while_other_calls_are_under_way(client: millrace.Client, made: list[Path]) -> None:
    small, large = made[6:7], made[-1:]  # 29 x 27 and 500 x 333
    config = {**QWEN, "min_pixels": 3136, "max_pixels": 2_000_000}
    calls = [small, large, large * 4, small * 3, large * 12, small, large * 20, small] * 2
    with ImageProcessor.from_config(config, client=client, slots=3) as alone:
        expected = [alone(call, copy=True).pixel_values for call in calls]

    with ImageProcessor.from_config(config, client=client, slots=3, name="grows") as processor, ThreadPoolExecutor(6) as pool:
        results = list(pool.map(lambda call: processor(call, copy=True).pixel_values, calls))
        deadline = soon()
        while len([session for session in client.statistics().sessions if session.name == "grows"]) > 1:
            assert time.monotonic() < deadline, "the daemon still has a session that was replaced"

    for result, wanted in zip(results, expected, strict=True):
        np.testing.assert_array_equal(result, wanted)


@needs_room
def test_encoded_images_of_several_calls_share_the_ring(client: millrace.Client, made: list[Path]) -> None:
    large = [path.read_bytes() for path in made if path.suffix == ".png"]
    assert sum(map(len, large)) > 1 << 20
    calls = [large * times for times in (1, 3, 2, 4, 1, 3, 2, 4)]
    with ImageProcessor.from_config(CLIP, client=client, slots=4) as processor:
        expected = [processor(call, copy=True).pixel_values for call in calls]
        with ThreadPoolExecutor(8) as pool:
            results = list(pool.map(lambda call: processor(call, copy=True).pixel_values, calls))

    for result, wanted in zip(results, expected, strict=True):
        np.testing.assert_array_equal(result, wanted)


def test_closing_waits_for_the_calls_under_way(client: millrace.Client, made: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    processor = ImageProcessor.from_config(CLIP, client=client, slots=2, name="closes")
    processor(made[:1], copy=True)
    under_way, go_on, get = threading.Barrier(3), threading.Event(), millrace.Session.get

    def waiting(self: millrace.Session, *arguments: Any) -> millrace.Batch:
        under_way.wait(PATIENCE)
        assert go_on.wait(PATIENCE)
        return get(self, *arguments)

    monkeypatch.setattr(millrace.Session, "get", waiting)
    with ThreadPoolExecutor(3) as pool:
        calls = [pool.submit(processor, made[:1]) for _ in range(2)]
        under_way.wait(PATIENCE)
        closing = pool.submit(processor.close)
        assert wait([closing], timeout=0.2).not_done
        go_on.set()
        closing.result(PATIENCE)

    assert [call.result().pixel_values.shape for call in calls] == [(1, 3, 224, 224)] * 2
    assert not processor._workshop._session


def test_calls_that_gave_up_leave_no_slot_behind(client: millrace.Client, made: list[Path]) -> None:
    with ImageProcessor.from_config(CLIP, client=client, slots=2) as processor:
        processor(made[:1], copy=True)
        for _ in range(6):
            late = (millrace.DeadlineExceeded, millrace.DaemonUnavailable)  # the second where it ends while the session is opened
            with pytest.raises(late, match=r"not finished within|no answer in time"):
                processor(made, timeout=0.0005)

        assert processor(made[:1], timeout=PATIENCE).pixel_values.shape == (1, 3, 224, 224)


@needs_room
def test_a_call_that_bad_images_ended_leaves_the_ring_as_it_was(client: millrace.Client, made: list[Path]) -> None:
    encoded = [path.read_bytes() for path in made if path.suffix == ".png"] * 4
    failures = []
    with ImageProcessor.from_config(CLIP, client=client, slots=2) as processor:
        for _ in range(8):
            with pytest.raises(millrace.SampleFailed) as failed:
                processor([*encoded, b"not an image"])
            failures.append(failed.value)  # and with it whatever its traceback holds
        ring = processor._workshop._ring
        assert ring is not None

        assert ring.allocate(len(ring)).length == len(ring)


# ------------------------------------------------------------------------------------------------------- daemons, processes


def test_a_processor_connects_anew_after_the_daemon_has_gone(made: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MILLRACE_SOCKET", raising=False)
    processor = ImageProcessor.from_config(CLIP)
    with millrace.serve(made[0].parent, lanes=1) as first:
        expected = processor(made[:1], copy=True).pixel_values
        os.kill(first.pid, signal.SIGKILL)
        first.stop()
    with pytest.raises(millrace.DaemonUnavailable, match="call again once it runs"):
        processor(made[:1])

    with millrace.serve(made[0].parent, lanes=1), processor:
        np.testing.assert_array_equal(processor(made[:1], copy=True).pixel_values, expected)


def test_the_timeout_is_kept_while_a_session_is_opened(made: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workshop, "_OPENING", 1e6)  # a processor that keeps to this instead is stopped with the whole run
    daemon = millrace.serve(made[0].parent, lanes=1)
    with daemon, millrace.connect(daemon.address) as client, ImageProcessor.from_config(CLIP, client=client) as processor:
        os.kill(daemon.pid, signal.SIGSTOP)
        try:
            with pytest.raises(millrace.DaemonUnavailable, match=r"no answer in time.*call again once it runs"):
                processor(made[:1], timeout=1)
        finally:
            os.kill(daemon.pid, signal.SIGCONT)

        assert processor(made[:1]).pixel_values.shape == (1, 3, 224, 224)


FORKING = """
import os, sys, threading
import millrace
from millrace.hf import ImageProcessor, workshop

processor = ImageProcessor.from_config({"image_processor_type": "CLIPImageProcessor"}, client=millrace.connect(sys.argv[1]), slots=2)
expected = processor(sys.argv[2], copy=True).pixel_values
stop = threading.Event()

def work():
    while not stop.is_set():
        assert (processor(sys.argv[2]).pixel_values == expected).all()

threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for _ in range(10):
    child = os.fork()
    if child == 0:
        try:
            processor(sys.argv[2], timeout=5)
        except millrace.Forked as why:
            os._exit(7 if "make the processor in the child" in str(why) else 8)
        finally:
            os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
stop.set()
for thread in threads:
    thread.join()
processor.close()
print("the parent went on")
"""


def test_a_forked_child_is_told_while_threads_of_the_parent_call(client: millrace.Client, made: list[Path]) -> None:
    ended = subprocess.run([sys.executable, "-c", FORKING, client.path, str(made[-1])], capture_output=True, text=True, timeout=300)

    assert (ended.returncode, ended.stdout) == (0, "the parent went on\n"), ended.stderr


# ---------------------------------------------------------------------------------------------------------------- the turns


def started(target: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=target, daemon=True)
    thread.start()
    return thread


@pytest.fixture
def turns() -> Turns:
    return Turns(2)


@pytest.fixture
def queued(turns: Turns) -> Iterator[Callable[[Callable[[], None]], threading.Thread]]:
    """Starts a thread and returns when it waits for its turn."""
    threads = []

    def start(target: Callable[[], None]) -> threading.Thread:
        before, deadline = len(turns._waiting), soon()
        threads.append(started(target))
        while len(turns._waiting) == before:
            assert time.monotonic() < deadline, "it does not wait for its turn"
            time.sleep(0.001)
        return threads[-1]

    yield start
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()


def test_places_are_given_in_the_order_of_asking(turns: Turns, queued: Callable[[Callable[[], None]], threading.Thread]) -> None:
    order: list[int] = []

    def take(number: int) -> Callable[[], None]:
        def run() -> None:
            with turns.alone(soon()) if number == 1 else turns.one(soon()):
                order.append(number)

        return run

    with turns.one(soon()), turns.one(soon()):
        for number in range(5):
            queued(take(number))
        assert order == []

    deadline = soon()
    while len(order) < 5:
        assert time.monotonic() < deadline, order
        time.sleep(0.001)
    assert order[:2] == [0, 1]
    assert sorted(order) == [0, 1, 2, 3, 4]


def test_who_is_alone_has_nobody_beside_it(turns: Turns) -> None:
    inside, together = [0], []
    lock = threading.Lock()

    def run(number: int) -> None:
        for _ in range(200):
            with turns.alone(soon()) if number == 0 else turns.one(soon()):
                with lock:
                    inside[0] += 1
                    together.append((number, inside[0]))
                with lock:
                    inside[0] -= 1

    threads = [started(lambda number=number: run(number)) for number in range(4)]  # type: ignore[misc]
    for thread in threads:
        thread.join(PATIENCE)

    assert len(together) == 800
    assert max(count for _, count in together) <= 2
    assert {count for number, count in together if number == 0} == {1}


def test_a_turn_that_does_not_come_in_time_lets_the_next_one_pass(turns: Turns) -> None:
    with turns.one(soon()):
        with pytest.raises(millrace.DeadlineExceeded), turns.alone(time.monotonic() + 0.01):
            pass
        with turns.one(soon()):
            pass
