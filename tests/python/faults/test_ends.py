"""How sessions end and how daemons do: a client that closes is told from one that dies, a daemon that stops from one that is gone."""

from __future__ import annotations

import gc
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import millrace
import pytest

from pictures import pixels_of, png, png_of
from processes import PATIENCE, eventually, python
from test_faults import CONSUMER, EXITS

DIED = "millrace_sessions_reclaimed_total"


def died(client: millrace.Client, before: set[int]) -> float:
    """The daemon's count, once all sessions but those of `before` have ended."""
    eventually(lambda: {s.id for s in client.statistics().sessions} <= before, "the daemon has dropped the sessions")
    return client.statistics().metrics[DIED].value


@pytest.fixture
def mine(folder: Path) -> Iterator[millrace.PrivateDaemon]:
    """A daemon whose figures nobody else moves."""
    with millrace.serve(folder.parent, lanes=1) as running:
        yield running


def test_sessions_that_are_closed_or_collected_do_not_count_as_died(mine: millrace.PrivateDaemon, own_size: millrace.Recipe) -> None:
    with millrace.connect(mine.address) as client:
        with client.session(own_size, batch=4) as session:
            kept = session.get(session.submit([png(0)]))
            session.submit([png(1)])
        client.session(own_size, batch=4)  # dropped at once
        with pytest.raises(RuntimeError, match="ours"), client.session(own_size, batch=4):
            raise RuntimeError("ours")
        kept.release()
        del kept, session
        gc.collect()
        assert died(client, set()) == 0


@pytest.mark.parametrize("left", EXITS)
def test_interpreter_exit_does_not_count_as_died(left: str, mine: millrace.PrivateDaemon, folder: Path) -> None:
    code = f"import sys, threading, millrace; from pictures import png; recipe = millrace.Recipe.train(24); {EXITS[left]}"
    with python(code, mine.address, str(folder)) as process:
        process.communicate()
    assert process.returncode == 0
    with millrace.connect(mine.address) as client:
        assert died(client, set()) == 0


LOOPS = """
import atexit, sys, threading, time

# The last thing: what was registered first.
atexit.register(lambda: print([t.name for t in threading.enumerate() if t.name.startswith("millrace-")], flush=True))
import os, signal, millrace, millrace.numpy

class Slow(millrace.numpy.Loader):
    def _convert(self, batch, labels):  # in a thread of the session's
        print("at work", flush=True)
        time.sleep(0.3)
        return super()._convert(batch, labels)

class Rows:
    def __iter__(self):
        for k in range(1000):
            time.sleep(0.3)
            yield {"image": open(sys.argv[3], "rb").read(), "label": k}

recipe, options = millrace.Recipe.train(24), {"batch_size": 2, "address": sys.argv[1]}
"""
FORGOTTEN = {
    "epoch": "loop = iter(Slow(sys.argv[2], recipe, **options)); next(loop)",
    "source": "loop = iter(millrace.numpy.Loader(millrace.Encoded(Rows(), image='image', label='label'), recipe, **options)); next(loop)",
    "session that was let go of": "session = millrace.connect(sys.argv[1]).session(recipe, batch=4); del session",
}


@pytest.mark.parametrize("what", FORGOTTEN)
def test_no_thread_is_at_work_when_the_interpreter_ends(what: str, mine: millrace.PrivateDaemon, folder: Path) -> None:
    with python(LOOPS + FORGOTTEN[what], mine.address, str(folder), str(next(folder.rglob("*.png")))) as process:
        told, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    assert told.splitlines()[-1] == "[]"
    assert what != "epoch" or "at work" in told


OPEN = """
import ctypes, sys
import millrace, millrace.numpy

folder, images, masks = sys.argv[1:]
recipe, options = millrace.Recipe.train(24), {"batch_size": 2, "transform": millrace.Recipe.train(24)}

def order():
    try:
        while True:
            yield [0, 1]
    finally:
        print("order closed", flush=True)

def batches():
    with millrace.serve(folder) as daemon, millrace.connect(daemon.address) as client, client.session(recipe, batch=2) as session:
        with session.dataset(folder).epoch() as epoch:
            yield from epoch

# As an extension does that keeps what it knows of a program: modules are emptied one by one, this package's before the program's own.
ctypes.pythonapi.Py_IncRef(ctypes.py_object(list(sys.modules.values())))
with millrace.serve([folder, images, masks]) as daemon:
    """
FIRST = "loop = iter(loader); x, y = next(loop)"
PAIRS = "pairs = millrace.Pairs.of_folders(images, masks)"
LEFT_OPEN = {
    "a loader": f"loader = millrace.numpy.Loader(folder, shuffle=True, **options); {FIRST}",
    "a loader with a sampler": f"loader = millrace.numpy.Loader(folder, sampler=range(9), **options); {FIRST}",
    "pairs": f"{PAIRS}; loader = millrace.numpy.Loader(pairs, shuffle=True, **options); {FIRST}",
    "pairs with a sampler": f"{PAIRS}; loader = millrace.numpy.Loader(pairs, sampler=range(9), **options); {FIRST}",
    "an epoch in an order": (
        "session = millrace.connect().session(recipe, batch=2); epoch = session.dataset(folder).epoch(order=order()); next(epoch)"
    ),
    "a loader and its daemon, in a forked child, too": (
        f"loader = millrace.numpy.Loader(folder, **options); {FIRST}; import os; child = os.fork(); assert not child or os.wait()[1] == 0"
    ),
    "a generator around an epoch": "loop = batches(); batch = next(loop)",
}


@pytest.mark.parametrize("what", LEFT_OPEN)
def test_what_a_program_leaves_open_at_its_end_is_ended_quietly(what: str, folder: Path, tmp_path: Path) -> None:
    """On its top level, where variables are collected when the package's modules are empty."""
    place = tmp_path / "pairs"
    for name in ("images", "masks"):
        (place / name).mkdir(parents=True)
        for number in range(9):
            (place / name / f"{number}.png").write_bytes(png_of(pixels_of(number)[..., : 3 if name == "images" else 1]))
    with python(OPEN + LEFT_OPEN[what], str(folder), str(place / "images"), str(place / "masks")) as process:
        told, errors = process.communicate()
    assert (process.returncode, errors) == (0, "")
    assert told == ("order closed\n" if "order" in what else "")


def test_the_interpreter_ends_while_the_daemon_hangs(mine: millrace.PrivateDaemon, folder: Path) -> None:
    code = f"{LOOPS}{FORGOTTEN['epoch']}\nos.kill({mine.pid}, signal.SIGSTOP)"
    with python(code, mine.address, str(folder)) as process:
        told, _ = process.communicate(timeout=300)
    os.kill(mine.pid, signal.SIGCONT)
    assert process.returncode == 0
    assert told.splitlines()[-1] == "[]"


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupt_is_a_clean_end_and_a_kill_is_none(by: signal.Signals, mine: millrace.PrivateDaemon, folder: Path) -> None:
    with python(CONSUMER, mine.address, str(folder)) as consumer:
        assert consumer.stdout is not None
        assert consumer.stdout.readline() == "begun\n"
        consumer.send_signal(by)
        consumer.communicate()
    with millrace.connect(mine.address) as client:
        assert died(client, set()) == (1 if by == signal.SIGKILL else 0)


def test_a_forked_child_says_no_goodbye_for_its_parent(mine: millrace.PrivateDaemon, own_size: millrace.Recipe) -> None:
    code = (
        "import os, sys, millrace\n"
        "s = millrace.connect(sys.argv[1]).session(millrace.Recipe.train(24), batch=4)\n"
        "if os.fork() == 0:\n    del s\n    os._exit(0)\n"
        "os.wait()\nprint('forked', flush=True)\nsys.stdin.readline()\n"
    )
    with python(code, mine.address) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "forked\n"
        parent.kill()
    with millrace.connect(mine.address) as client:
        assert died(client, set()) == 1


def test_closing_is_bounded_while_the_daemon_hangs(mine: millrace.PrivateDaemon, own_size: millrace.Recipe) -> None:
    session = millrace.connect(mine.address).session(own_size, batch=4)
    os.kill(mine.pid, signal.SIGSTOP)
    closing = threading.Thread(target=session.close)
    closing.start()
    closing.join(PATIENCE)  # without a bound: for ever
    os.kill(mine.pid, signal.SIGCONT)
    assert not closing.is_alive()


@pytest.mark.usefixtures("slots_are_waited_for")
def test_a_daemon_that_stops_says_so_and_one_that_is_killed_does_not(folder: Path, own_size: millrace.Recipe) -> None:
    for by, said, unsaid in (signal.SIGTERM, "millraced is stopping", "gone away"), (signal.SIGKILL, "gone away", "stopping"):
        with millrace.serve(folder.parent, lanes=1) as daemon, millrace.connect(daemon.address) as client:
            session = client.session(own_size, batch=1, slots=1)
            held = session.get(session.submit([png(0)]))
            number = session.submit([png(1)])  # waits for the only slot
            os.kill(daemon.pid, by)
            with pytest.raises(millrace.DaemonUnavailable, match=said) as raised:
                session.get(number)
            assert unsaid not in str(raised.value)
            held.release()


def test_a_daemon_that_drains_says_so_to_every_caller(folder: Path, own_size: millrace.Recipe) -> None:
    with millrace.serve(folder.parent, lanes=1, arguments=["--fake", "delay_us=60000000"]) as daemon:
        client = millrace.connect(daemon.address)
        session = client.session(own_size, batch=1)
        session.submit([png(0)], backend="fake")
        eventually(lambda: client.statistics().metrics["millrace_samples_in_flight"].value == 1, "the image is being made")
        os.kill(daemon.pid, signal.SIGTERM)
        eventually(lambda: not pings(client), "the daemon drains")
        for call in (lambda: client.session(own_size, batch=1), client.ping, lambda: millrace.connect(daemon.address)):
            with pytest.raises(millrace.DaemonUnavailable, match="millraced is stopping") as raised:
                call()
            assert "systemctl" not in str(raised.value)
        os.kill(daemon.pid, signal.SIGKILL)  # the image would take a minute, so that it drains until here


def pings(client: millrace.Client) -> bool:
    try:
        client.ping()
    except millrace.DaemonUnavailable:
        return False
    return True
