"""How things end in a GPU's memory: sessions, the interpreter, the daemon. The GPU is simulated (gpus.py)."""

from __future__ import annotations

from pathlib import Path

import millrace
import pytest

from gpu_clients import Run, run
from gpus import patient, simulated


def test_sessions_that_were_closed_leave_nothing_behind(in_client: Run) -> None:
    in_client("""
stream = Cuda().stream()

def use():
    with one_batch() as (opened, batch):
        batch.images.used_by(stream)
        check_pixels(batch)
        del batch

def left():
    gc.collect()
    return [len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task")), len(Path("/proc/self/maps").read_text().splitlines())]

for _ in range(5):
    use()
time.sleep(0.5)
before = left()
for _ in range(50):
    use()
now = left()
soon(lambda: all(now <= then + 25 for now, then in zip(left(), before)), f"{before} became {now}")  # gRPC's threads come and go
""")


def test_the_next_session_has_that_memory_but_not_while_a_stream_uses_it(in_client: Run) -> None:
    in_client("""
cuda = Cuda()
gate, stream = Gate(cuda), cuda.stream()

def large():
    return session(slot_bytes=1200 << 20)  # of 2 GiB there is no other one

def again():
    try:
        with large() as opened:
            check_pixels(opened.get(ask(opened, 1)))
        return True
    except millrace.ResourceExhausted as why:
        assert "cuda.tensors" in str(why)
        return False

with large() as opened:
    batch = opened.get(ask(opened, 1))
    batch.images.used_by(stream)
    gate.hold(stream)
    del batch
    soon(lambda: opened.leased == 0, "nobody refers to it")
del opened
gc.collect()
assert not again(), "it was given away while the stream may read it"
gate.open()
soon(again, "it does not come again")
soon(again, "it comes once only")
with large() as opened:
    kept = opened.get(ask(opened, 1))
del opened
assert not again(), "it was given away while there is a batch in it"
check_pixels(kept)
del kept
soon(again, "it does not come again")
""")


def test_consumers_let_go_at_the_interpreters_end(in_client: Run) -> None:
    in_client("""
import atexit

class AtEnd:
    def __init__(self, consumed):
        self.consumed = consumed

    def __del__(self):
        self.consumed.let_go()

stream = Cuda().stream()
opened = session(slots=4)
batches = [opened.get(ask(opened, number)) for number in range(4)]
first, second, third, last = (Consumed(batch.images.__dlpack__(stream=stream, max_version=(1, 0))) for batch in batches)
never_consumed = batches[0].images.__dlpack__(stream=stream)
atexit.register(first.let_go)
of_this_module, sys.of_another = AtEnd(second), AtEnd(third)
deleter = ctypes.cast(last.managed.deleter, ctypes.c_void_p)
ctypes.CDLL(None).__cxa_atexit(deleter, ctypes.c_void_p(last._at), None)  # as a C++ library's static objects do, when Python is gone
""")


def test_asyncio(in_client: Run) -> None:
    in_client("""
import asyncio
import millrace.aio

async def main():
    stream, seen = Cuda().stream(), 0
    async with await millrace.aio.connect(sys.argv[1]) as client, await client.session(OWN_SIZE, 4, 2, memory="cuda:0") as opened:
        batch = await opened.get(await opened.submit([millrace.Sample(path_of(FOLDER, n), id=n) for n in range(4)]))
        assert isinstance(batch.images, millrace.DeviceTensor)
        check_pixels(batch)
        batch.images.used_by(stream)
        del batch
        async with opened.epoch(await opened.dataset(FOLDER), batch=4) as epoch:
            async for batch in epoch:
                check_pixels(batch)
                batch.images.used_by(stream)
                seen += len(batch)
    check_pixels(batch)  # outlives its session
    assert seen == COUNT

asyncio.run(main())
""")


def test_a_daemon_that_is_killed_leaves_batches_as_they_are(folder: Path, tmp_path: Path) -> None:
    with (
        simulated(tmp_path, STRICT=0),
        millrace.serve(folder.parent, lanes=1, cuda="yes", timeout=300, arguments=patient(tmp_path)) as doomed,
    ):
        run(
            doomed,
            folder,
            """
cuda = Cuda()
stream = cuda.stream()
opened = session(slots=3)
batch, other = opened.get(ask(opened, 1)), opened.get(ask(opened, 2))
address = batch.images.data_ptr
numbers = [ask(opened, 3, 4) for _ in range(20)]
os.kill(daemon, signal.SIGKILL)
try:
    for number in numbers:
        opened.get(number, timeout=300)
except millrace.DaemonUnavailable:
    pass
else:
    raise AssertionError
check_pixels(batch)
check_pixels(other)
consumed = Consumed(batch.images.__dlpack__(stream=stream))
del batch, other
opened.close()
del opened
np.testing.assert_array_equal(cuda.read(address, 32 * 48 * 3, stream).reshape(32, 48, 3), pixels_of(1))
try:
    session()
except millrace.DaemonUnavailable:
    pass
else:
    raise AssertionError
consumed.let_go()
soon(lambda: not cuda.is_mapped(address), "it stays mapped")
""",
        )


def test_a_session_whose_memory_streams_may_use_for_ever_ends_at_the_daemon(in_client: Run) -> None:
    in_client("""
os.environ["SIM_CUDA_STRICT_HANDLES"] = "0"  # the stream is refused: NVIDIA's driver may do anything with it
cuda = Cuda()
stream = cuda.stream()
opened = session()
batch = opened.get(ask(opened, 1))
address = batch.images.data_ptr
batch.images.used_by(stream)
cuda.call("cuStreamDestroy_v2", ctypes.c_void_p(stream))
del batch
opened.close()
del opened
gc.collect()
soon(lambda: not client.statistics().sessions, "the daemon keeps the session")
assert cuda.is_mapped(address)
""")


def test_a_forked_child_keeps_no_session_whose_memory_is_unmapped_later(in_client: Run) -> None:
    in_client("""
cuda = Cuda()
gate, stream = Gate(cuda), cuda.stream()
opened = session()
batch = opened.get(ask(opened, 1))
batch.images.used_by(stream)
gate.hold(stream)
del batch
opened.close()
del opened
gc.collect()
reading, writing = os.pipe()
child = os.fork()
if child == 0:
    os.close(writing)
    os.read(reading, 1)  # until its parent has seen that it keeps nothing
    os._exit(0)
os.close(reading)
gate.open()
soon(lambda: not client.statistics().sessions, "the child keeps the session")
os.close(writing)
assert os.waitpid(child, 0)[1] == 0
""")


def test_what_could_not_be_mapped_is_not_charged(in_client: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIM_CUDA_FAULTS", "import:*:1=2")
    in_client("""
half = {"slots": 2, "slot_bytes": 520 << 20}  # half of what there is, and a little
try:
    session(**half)
except millrace.ResourceExhausted as why:
    assert "cuMemImportFromShareableHandle: CUDA_ERROR_OUT_OF_MEMORY" in str(why), why
else:
    raise AssertionError
with session(**half) as opened:
    check_pixels(opened.get(ask(opened, 1)))
""")
