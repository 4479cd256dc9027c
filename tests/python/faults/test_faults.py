"""Processes that die, fork and are interrupted: no hang, no leak, no zombie, and an exception that says what to do."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import millrace
import numpy as np
import pytest

from pictures import COUNT, check_pixels, pixels_of, png
from processes import PATIENCE, eventually, python


def test_kill_of_the_daemon_at_random_points(folder: Path, own_size: millrace.Recipe) -> None:
    dice = random.Random(os.environ.get("MILLRACE_TEST_SEED", "4"))
    for _ in range(8):
        daemon = millrace.serve(folder, lanes=1)
        with daemon, millrace.connect(daemon.address) as client, client.session(own_size, batch=4) as session:
            kill = threading.Timer(dice.uniform(0, 0.15), os.kill, (daemon.pid, signal.SIGKILL))
            kill.start()
            kept: list[millrace.Batch] = []
            with pytest.raises(millrace.DaemonUnavailable, match="open a new session"):
                read_for_ever(session, folder, kept)
            kill.join()
            with pytest.raises(millrace.DaemonUnavailable):
                session.submit([png(0)])
            with pytest.raises(millrace.DaemonUnavailable):
                client.ping()
            for batch in kept:
                check_pixels(batch)  # stays readable


def read_for_ever(session: millrace.Session, folder: Path, kept: list[millrace.Batch]) -> None:
    while True:
        for batch in session.dataset(folder).epoch():
            check_pixels(batch)
            kept[:] = [batch]


@pytest.mark.usefixtures("slots_are_waited_for")
def test_every_waiting_thread_learns_that_the_daemon_is_gone(own_size: millrace.Recipe) -> None:
    with millrace.serve(lanes=1) as daemon, millrace.connect() as client, client.session(own_size, batch=1, slots=1) as session:
        held = session.get(session.submit([png(0)]))
        numbers = [session.submit([png(1)]) for _ in range(4)]
        outcomes: list[object] = []

        def wait(number: int) -> None:
            try:
                outcomes.append(session.get(number))
            except millrace.Error as why:
                outcomes.append(type(why))

        threads = [threading.Thread(target=wait, args=(number,)) for number in numbers]
        for thread in threads:
            thread.start()
        time.sleep(0.1)
        os.kill(daemon.pid, signal.SIGKILL)
        for thread in threads:
            thread.join(PATIENCE)
        assert outcomes == [millrace.DaemonUnavailable] * 4
        np.testing.assert_array_equal(held.images.numpy()[0], pixels_of(0))


CONSUMER = """
import sys, millrace
from pathlib import Path
recipe = millrace.Recipe.train(24)
with millrace.connect(sys.argv[1]) as client, client.session(recipe, batch=4, name="to be killed") as session:
    dataset = session.dataset(sys.argv[2])
    print("begun", flush=True)
    epoch = 0
    while True:
        for batch in dataset.epoch(epoch=epoch, shuffle=True):
            keep = batch.images.numpy()
        epoch += 1
"""


def test_kill_of_the_client_at_random_points(client: millrace.Client, folder: Path) -> None:
    dice = random.Random(os.environ.get("MILLRACE_TEST_SEED", "4"))
    before = {s.id for s in client.statistics().sessions}
    for _ in range(6):
        with python(CONSUMER, client.path, str(folder)) as consumer:
            assert consumer.stdout is not None
            assert consumer.stdout.readline() == "begun\n"
            time.sleep(dice.uniform(0, 0.1))
            consumer.kill()
    eventually(lambda: {s.id for s in client.statistics().sessions} <= before, "the daemon has dropped the killed sessions")


@pytest.mark.usefixtures("slots_are_waited_for")
def test_interrupt_while_waiting(client: millrace.Client, own_size: millrace.Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    with client.session(own_size, batch=1, slots=1) as session:
        held = session.get(session.submit([png(0)]))
        number = session.submit([png(1)])
        look = session._inbox._look_until

        def looking(*arguments: Any) -> Any:
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
            return look(*arguments)

        monkeypatch.setattr(session._inbox, "_look_until", looking)  # nobody is interrupted before he waits
        with pytest.raises(KeyboardInterrupt):
            session.get(number)  # without it: as long as the only slot is held
        monkeypatch.undo()
        held.release()
        assert len(session.get(number)) == 1  # nothing is broken


def test_interrupt_ends_a_program_at_once(client: millrace.Client, folder: Path) -> None:
    with python(CONSUMER, client.path, str(folder)) as consumer:
        assert consumer.stdout is not None
        assert consumer.stdout.readline() == "begun\n"
        time.sleep(0.1)
        consumer.send_signal(signal.SIGINT)
        _, errors = consumer.communicate()
    assert consumer.returncode == -signal.SIGINT, errors
    assert errors.strip().endswith("KeyboardInterrupt")
    assert "Exception ignored" not in errors


@pytest.mark.parametrize("part", [slice(0, 5), pytest.param(slice(5, 20), marks=pytest.mark.long)], ids=["some", "others"])
def test_interrupt_at_any_call(client: millrace.Client, folder: Path, part: slice) -> None:
    """It ends the program with a KeyboardInterrupt: none is lost in a destructor, none finds a lock in the wrong state."""
    seed = os.environ.get("MILLRACE_TEST_SEED", "5")
    program = [sys.executable, str(Path(__file__).with_name("interrupted.py")), client.path, str(folder)]
    for at in random.Random(seed).sample(range(1, 1200), 20)[part]:
        ended = subprocess.run([*program, str(at)], capture_output=True, text=True, timeout=2 * PATIENCE, check=False)
        where = f"call {at}, seed {seed}: {ended.stderr}"
        assert ended.stdout == "interrupted\n", where
        assert ended.returncode == -signal.SIGINT, where
        assert ended.stderr.strip().endswith("KeyboardInterrupt"), where
        assert "Exception ignored" not in ended.stderr, where


EXITS = {
    "open session": "session = millrace.connect(sys.argv[1]).session(recipe, batch=4)",
    "batch": "session = millrace.connect(sys.argv[1]).session(recipe, batch=4); batch = session.get(session.submit([png(0)]))",
    "array": "session = millrace.connect(sys.argv[1]).session(recipe, batch=4); a = session.get(session.submit([png(0)])).images.numpy()",
    "epoch": "session = millrace.connect(sys.argv[1]).session(recipe, batch=4); e = session.dataset(sys.argv[2]).epoch(); next(e)",
    "in a thread": "threading.Thread(target=lambda: list(zip(range(3), millrace.connect(sys.argv[1]).session(recipe, batch=4)"
    ".dataset(sys.argv[2]).epoch()))).start()",
    "blocked": "s = millrace.connect(sys.argv[1]).session(recipe, batch=1, slots=1); b = s.get(s.submit([png(0)])); n = s.submit([png(1)]);"
    "threading.Thread(target=s.get, args=(n,), daemon=True).start()",
    "cycle": "s = millrace.connect(sys.argv[1]).session(recipe, batch=4); b = s.get(s.submit([png(0)])); l = [b, s]; l.append(l)",
}


# Python 3.12.0 and 3.12.1 refuse to start threads while they wait for others at the end.
if (3, 12) <= sys.version_info < (3, 12, 2):
    del EXITS["in a thread"]


@pytest.mark.parametrize("left", EXITS)
def test_interpreter_exit_with_things_left_open(left: str, client: millrace.Client, folder: Path) -> None:
    before = {s.id for s in client.statistics().sessions}
    code = f"import sys, threading, millrace; from pictures import png; recipe = millrace.Recipe.train(24); {EXITS[left]}"
    with python(code, client.path, str(folder)) as process:
        _, errors = process.communicate()
    assert (process.returncode, errors) == (0, "")
    eventually(lambda: {s.id for s in client.statistics().sessions} <= before, "the daemon has dropped the session")


FORKING = """
import faulthandler, os, signal, sys, time
import millrace
from pictures import COUNT, png
client = millrace.connect(sys.argv[1])
session = client.session(millrace.Recipe.train(24), batch=4)
dataset = session.dataset(sys.argv[2])
epoch = dataset.epoch()
batch = next(epoch)
images = batch.images
ring = session.ring(4096)
child = os.fork()
if child == 0:
    faulthandler.register(signal.SIGALRM, chain=True)  # says where it hangs, and ends it
    signal.alarm(240)
    uses = [
        lambda: session.submit([png(0)]), session.get, lambda: next(epoch), lambda: batch.images, lambda: batch.labels, images.numpy,
        lambda: session.dataset(sys.argv[2]), client.ping, client.session, client.statistics, lambda: millrace.connect(sys.argv[1]),
        lambda: session.ring(10),
    ]
    told = 0
    for use in uses:
        try:
            use()
        except millrace.Forked as why:
            assert "fork" in str(why)
            told += 1
        else:
            print("not told by use", uses.index(use), flush=True)
    session.close(); batch.release(); epoch.stop(); dataset.close(); client.close()
    del batch, images, epoch, dataset, session, client, ring
    sys.exit(0 if told == len(uses) else 9)
_, status = os.waitpid(child, 0)
assert status == 0, f"the child ended with status {status}"
held = len(batch)
del batch, images
assert held + sum(len(b) for b in epoch) == COUNT  # the parent goes on
session.close()
"""


def test_a_forked_child_is_told_and_the_parent_goes_on(client: millrace.Client, folder: Path) -> None:
    with python(FORKING, client.path, str(folder)) as process:
        output, errors = process.communicate()
    assert process.returncode == 0, output + errors


FORKING_FIRST = """
import faulthandler, os, signal, sys
import millrace
from pictures import COUNT
def count():
    with millrace.connect(sys.argv[1]) as client, client.session(millrace.Recipe.train(24), batch=4) as session:
        return sum(len(batch) for batch in session.dataset(sys.argv[2]).epoch())
children = []
for _ in range(3):
    child = os.fork()
    if child == 0:
        faulthandler.register(signal.SIGALRM, chain=True)
        signal.alarm(240)
        sys.exit(0 if count() == COUNT else 9)
    children.append(child)
assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
assert count() == COUNT
"""


WORKERS = """
import os, sys, time, millrace
most = 0
with millrace.connect(sys.argv[1]) as client, client.session(millrace.Recipe.train(24), batch=1) as session:
    for _ in range(20):
        child = os.fork()
        if child == 0:
            time.sleep(0.01)
            os._exit(len(os.listdir("/proc/self/task")))
        most = max(most, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(most, os.environ.get("GRPC_ENABLE_FORK_SUPPORT"))
"""


@pytest.mark.parametrize("setting", [None, "0"])
def test_a_connected_process_forks_without_a_word_and_its_children_have_one_thread(
    client: millrace.Client, monkeypatch: pytest.MonkeyPatch, setting: str | None
) -> None:
    monkeypatch.delenv("GRPC_ENABLE_FORK_SUPPORT", raising=False)
    if setting is not None:
        monkeypatch.setenv("GRPC_ENABLE_FORK_SUPPORT", setting)

    with python(WORKERS, client.path) as parent:
        output, errors = parent.communicate()

    assert (parent.returncode, output, errors) == (0, f"1 {setting}\n", "")  # and the environment is as it was


def test_children_of_a_parent_that_is_not_connected_connect(client: millrace.Client, folder: Path) -> None:
    with python(FORKING_FIRST, client.path, str(folder)) as process:
        output, errors = process.communicate()
    assert process.returncode == 0, output + errors


LONG_LIVED_CHILD = """
import os, sys, time
import millrace
client = millrace.connect(sys.argv[1])
session = client.session(millrace.Recipe.train(24), batch=4, name="parent of a child")
if os.fork() == 0:
    sys.stdin.read()
    os._exit(0)
print("forked", flush=True)
time.sleep(60)
"""


def test_a_child_does_not_keep_its_dead_parents_session(client: millrace.Client) -> None:
    def there() -> bool:
        return "parent of a child" in [s.name for s in client.statistics().sessions]

    with python(LONG_LIVED_CHILD, client.path) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "forked\n"
        assert there()
        parent.kill()
        parent.wait()
        eventually(lambda: not there(), "the session is gone although the child lives")
        assert parent.stdin is not None
        parent.stdin.close()  # ends the child


@pytest.mark.usefixtures("slots_are_waited_for")
def test_threads_share_a_session(session: millrace.Session, folder: Path) -> None:
    dataset = session.dataset(folder)
    seen: list[int] = []
    failures: list[BaseException] = []

    def work(first: int) -> None:
        try:
            for number in range(first, COUNT, 6):
                batch = session.get(session.submit([millrace.DatasetSample(dataset.id, number)]))
                check_pixels(batch)
                seen.extend(batch.ids.tolist())
                del batch
        except BaseException as why:
            failures.append(why)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert sorted(seen) == list(range(COUNT))


RANK = """
import sys, millrace
with millrace.connect(sys.argv[1]) as client, client.session(millrace.Recipe.train(24), batch=4) as session:
    for batch in session.dataset(sys.argv[2]).epoch(shuffle=True, seed=9, rank=int(sys.argv[3]), world_size=4):
        print(*batch.ids)
"""


def test_four_processes_with_four_ranks(client: millrace.Client, folder: Path) -> None:
    ranks = [python(RANK, client.path, str(folder), str(rank)) for rank in range(4)]
    seen: list[int] = []
    for process in ranks:
        output, errors = process.communicate()
        assert (process.returncode, errors) == (0, "")
        seen += map(int, output.split())
    assert sorted(seen) == list(range(COUNT))
