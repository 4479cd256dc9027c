"""Batches may be written to: what is written is this process's own, and gone when the slot shows its next batch."""

from __future__ import annotations

import asyncio
import ctypes
import mmap
import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import millrace
import millrace.aio
import millrace.numpy
import numpy as np
import pytest
from millrace._memory import copy_on_write as _copy_on_write
from millrace._memory import page_map as _page_map
from millrace.tensor import VERSIONED

from pictures import COUNT, SIZE, check_pixels, pixels_of, png
from processes import MODULES, PATIENCE, eventually

OWN_SIZE = millrace.Recipe(resize=millrace.ExactSize(SIZE), layout="NHWC")
BATCH = 16  # 18 pages of pixels; the last one has records behind them
PAGE = mmap.PAGESIZE
READ_ONLY = 1  # DLPACK_FLAG_BITMASK_READ_ONLY

DICE = random.Random(os.environ.get("MILLRACE_TEST_SEED", "15"))


def one(session: millrace.Session, number: int) -> millrace.Batch:
    return session.get(session.submit([png((number + k) % COUNT) for k in range(BATCH)]))


def expected(number: int) -> Any:
    return np.stack([pixels_of((number + k) % COUNT) for k in range(BATCH)])


def flag_of(capsule: Any) -> int:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.c_uint64.from_address(get(capsule, b"dltensor_versioned") + 24).value


# What of a batch's bytes is overwritten; each gets the flat pixels.


def _scattered(flat: Any) -> None:
    for _ in range(5):
        first = DICE.randrange(len(flat))
        flat[first : first + DICE.randrange(1, 3 * PAGE)] ^= DICE.randrange(1, 256)


def _edges(flat: Any) -> None:
    beginning = -flat.ctypes.data % PAGE
    for edge in range(beginning, len(flat), PAGE):
        flat[max(0, edge - 1)] ^= 0xFF
        flat[edge] ^= 0xFF


def _every_other_page(flat: Any) -> None:
    flat[:: 2 * PAGE] ^= 0xFF


def _all(flat: Any) -> None:
    flat[:] = 0xAB


def _first(flat: Any) -> None:
    flat[0] ^= 0xFF


def _last(flat: Any) -> None:
    flat[-1] ^= 0xFF


def _nothing(flat: Any) -> None:
    flat.sum()


def _anything(flat: Any) -> None:
    DICE.choice([_scattered, _edges, _every_other_page, _all, _first, _last, _nothing])(flat)


@pytest.fixture(params=["scanned", "read", "not told"])
def page_map(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How the kernel tells what was written: as Linux 6.7 can, as older ones do, or not at all."""
    if request.param == "read":
        monkeypatch.setattr(_page_map, "_SCAN_REQUEST", 0)
    if request.param == "not told":
        monkeypatch.setattr(_page_map, "_PATH", "/nowhere/pagemap")
    return str(request.param)


WRITES = [_scattered, _edges, _every_other_page, _all, _first, _last, _anything]


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.usefixtures("page_map")
def test_later_batches_show_the_daemons_pixels(daemon: millrace.PrivateDaemon, folder: Path, write: Callable[[Any], None]) -> None:
    with millrace.numpy.Loader(folder, OWN_SIZE, batch_size=BATCH, slots=3, address=daemon.address, shuffle=True) as loader:
        for _ in range(6):
            for images, labels in loader:
                batch = loader.batch
                assert batch is not None
                check_pixels(batch)
                write(images.reshape(-1))
                labels[:] = -7
                del images, labels, batch


def test_kinds_of_writes_in_place(session: millrace.Session) -> None:
    for number in range(12):
        images = one(session, number).images
        np.testing.assert_array_equal(images.numpy(), expected(number))
        array, other = images.numpy(), np.asarray(images)
        third = np.from_dlpack(images) if VERSIONED else images.numpy()  # NumPy before 2.1 takes DLPack's memory for read-only
        array -= 1
        other[0] = 0
        np.multiply(third, 3, out=third)
        memoryview(array)[1, 2, 3, 0] = 9
        with open("/dev/zero", "rb", buffering=0) as zeros:
            zeros.readinto(memoryview(array[2]))
        assert array[1, 2, 3, 0] == 9
        assert not array[2].any()


def test_the_daemons_memory_never_changes(session: millrace.Session) -> None:
    batch = one(session, 0)
    images = batch.images.numpy()
    memory = session.memory()
    before = memory.copy()
    start = bytes(memory).index(images.tobytes())

    _all(images.reshape(-1))

    assert (images == 0xAB).all()
    np.testing.assert_array_equal(memory, before)
    np.testing.assert_array_equal(memory[start : start + images.nbytes].reshape(images.shape), expected(0))
    assert not memory.flags.writeable


def test_flags_tell_the_truth(client: millrace.Client) -> None:
    for writable in (True, False):
        with client.session(OWN_SIZE, batch=BATCH, writable=writable) as session:
            batch = one(session, 0)
            for view in (batch.images.numpy(), np.asarray(batch.images), batch.image(3).numpy()):
                assert view.flags.writeable is writable
            assert np.from_dlpack(batch.images).flags.writeable is (writable and VERSIONED)
            if VERSIONED:  # else a capsule cannot say so
                assert (flag_of(batch.images.__dlpack__(max_version=(1, 0))) & READ_ONLY == 0) is writable
            assert not batch.records.flags.writeable
            for copied in (batch.labels, batch.ids, batch.boxes, batch.sizes, batch.status, batch.flips):
                assert copied.flags.writeable
            del view


def test_read_only_batches_lie_in_the_sessions_memory(client: millrace.Client) -> None:
    with client.session(OWN_SIZE, batch=BATCH, writable=False) as session:
        images = one(session, 0).images.numpy()
        assert np.shares_memory(images, session.memory())
        with pytest.raises(ValueError, match="read-only"):
            images -= 1
        with pytest.raises(ValueError):
            images.flags.writeable = True


def test_consumers_before_dlpack_1_share_what_is_writable(session: millrace.Session) -> None:
    images = one(session, 0).images
    assert np.asarray(images).ctypes.data == np.from_dlpack(images).ctypes.data
    capsule = images.__dlpack__(max_version=(0, 8), copy=False)
    assert '"dltensor"' in repr(capsule)


def test_writes_of_another_thread_up_to_the_end(client: millrace.Client) -> None:
    with client.session(OWN_SIZE, batch=BATCH, slots=2) as session:
        for number in range(60):
            batch = one(session, number)
            np.testing.assert_array_equal(batch.images.numpy(), expected(number))
            begun, enough = threading.Event(), threading.Event()

            def scribble(flat: Any, begun: threading.Event = begun, enough: threading.Event = enough) -> None:
                while not enough.is_set():
                    flat[:] = DICE.randrange(256)
                    begun.set()

            writer = threading.Thread(target=scribble, args=(batch.images.numpy().reshape(-1),))
            writer.start()
            assert begun.wait(PATIENCE)
            assert batch.release() is False  # the thread has a view
            del batch
            enough.set()
            writer.join()


def test_written_views_live_on_after_release(session: millrace.Session) -> None:
    batch = one(session, 0)
    view = batch.images.numpy()
    view[0] = 5
    assert batch.release() is False
    for number in range(1, 12):
        np.testing.assert_array_equal(one(session, number).images.numpy(), expected(number))
        view[1] = number
    assert (view[0] == 5).all()
    assert (view[1] == 11).all()
    np.testing.assert_array_equal(view[2:], expected(0)[2:])


def test_what_is_written_between_batches_is_gone_as_well(client: millrace.Client) -> None:
    """By code that kept an address, or by a process that locks its memory."""
    with client.session(OWN_SIZE, batch=BATCH, slots=1) as session:
        for number in range(8):
            images = one(session, number).images.numpy()
            np.testing.assert_array_equal(images, expected(number))
            address, size = images.ctypes.data, images.nbytes
            del images
            ctypes.memset(address, 0xCD, size)  # free, and not the next batch's yet


def test_pages_that_were_only_read_stay(client: millrace.Client) -> None:
    with client.session(OWN_SIZE, batch=BATCH, slots=1) as session:
        images = one(session, 0).images.numpy()
        images.sum()
        first = images.ctypes.data // PAGE
        pages = images.nbytes // PAGE
        del images
        batch = one(session, 1)
        with open("/proc/self/pagemap", "rb") as page_map:
            entries = np.frombuffer(os.pread(page_map.fileno(), 8 * pages, 8 * first), np.uint64)
        assert (entries >> np.uint64(63)).all()
        np.testing.assert_array_equal(batch.images.numpy(), expected(1))


def test_where_batches_are_written_to_copies_go_with_them(client: millrace.Client) -> None:
    with client.session(OWN_SIZE, batch=BATCH, slots=1) as session:
        for number in range(3):
            images = None
            images = one(session, number).images.numpy()
            _all(images.reshape(-1))
        assert images is not None
        first = images.ctypes.data
        end = first + images.nbytes // PAGE * PAGE
        assert _page_map.copied_ranges(first, end) == [(first, end)]
        del images
        eventually(lambda: _page_map.copied_ranges(first, end) == [], "its pages are given back")  # although no batch has come since


def test_records_are_not_the_callers_to_change(session: millrace.Session) -> None:
    batch = one(session, 3)
    images = batch.images.numpy()
    _all(images.reshape(-1))
    assert batch.ids.tolist() == list(range(BATCH))
    assert batch.records["width"].tolist() == [SIZE.width] * BATCH


@pytest.mark.usefixtures("page_map")
@pytest.mark.parametrize("written", [[], [0], [39], [3, 4, 5], list(range(0, 40, 2)), list(range(100)), list(range(0, 200, 2))])
def test_the_page_map_tells_copies_from_pages_of_the_file(tmp_path: Path, written: list[int], page_map: str) -> None:
    pages = 200
    path = tmp_path / "file"
    path.write_bytes(b"\1" * pages * PAGE)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE) as mapped:
        view = np.frombuffer(mapped, np.uint8)
        view[::PAGE].sum()
        for page in written:
            view[page * PAGE + 7] = 2
        first = view.ctypes.data
        if page_map == "not told":
            with pytest.raises(OSError, match="nowhere"):
                _page_map.copied_ranges(first, first + pages * PAGE)
        else:
            found = _page_map.copied_ranges(first, first + pages * PAGE)
            covered = {page for start, end in found for page in range((start - first) // PAGE, (end - first) // PAGE)}
            assert covered >= set(written)
            assert bool(found) is bool(written)
            if page_map == "scanned" and len(written) < 30:
                assert covered == set(written)
        del view


def test_a_kernel_that_drops_nothing_is_noticed(client: millrace.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_copy_on_write.Window, "_drop", lambda *_: None)
    with pytest.raises(millrace.FailedPrecondition, match="writable=False"):
        client.session(OWN_SIZE, batch=BATCH)
    with client.session(OWN_SIZE, batch=BATCH, writable=False) as session:
        check_pixels(one(session, 0))


def test_memory_that_cannot_be_dropped_costs_that_batch_alone(client: millrace.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    with client.session(OWN_SIZE, batch=BATCH, slots=1) as session:
        one(session, 0).images.numpy()[:] = 1
        with monkeypatch.context() as broken:
            broken.setattr(mmap, "MADV_DONTNEED", 0x7FFF)
            with pytest.raises(millrace.FailedPrecondition, match="cannot be dropped: Invalid argument") as failed:
                one(session, 1)
        assert session.leased == 0
        np.testing.assert_array_equal(one(session, 2).images.numpy(), expected(2))
        del failed


def test_a_page_map_that_lies_is_not_believed(client: millrace.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_page_map, "copied_ranges", lambda start, end: [])
    with client.session(OWN_SIZE, batch=BATCH, slots=1) as session:
        for number in range(4):
            images = one(session, number).images.numpy()
            np.testing.assert_array_equal(images, expected(number))
            _all(images.reshape(-1))
            del images


LOCKING = """
import ctypes, sys
import millrace, numpy as np
from pictures import pixels_of, png
libc = ctypes.CDLL(None, use_errno=True)
CURRENT, FUTURE = 1, 2
def lock(flags):
    assert libc.mlockall(flags) == 0, ctypes.get_errno()
def locked():
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmLck")).split()[1])
when = sys.argv[2]
if when == "before":
    lock(CURRENT | FUTURE)
with millrace.connect(sys.argv[1]) as client:
    recipe = millrace.Recipe(resize=millrace.ExactSize(millrace.Size(48, 32)), layout="NHWC")
    with client.session(recipe, batch=4, slots=2) as session:
        if when == "after opening":
            lock(CURRENT | FUTURE)
        for number in range(12):
            if when == "between batches":
                lock(CURRENT)
            elif when == "for a moment":
                lock(CURRENT)
                libc.munlockall()
            with session.get(session.submit([png(number + k) for k in range(4)])) as batch:
                images = batch.images.numpy()
                if when == "with batches in hand":
                    lock(CURRENT | FUTURE)
                assert when == "for a moment" or locked() > 0
                for k, image in enumerate(images):
                    np.testing.assert_array_equal(image, pixels_of(number + k))
                if number % 3:
                    images[:] = 0xAB
                del images, image
print("right")
"""


@pytest.mark.parametrize("when", ["before", "after opening", "with batches in hand", "between batches", "for a moment"])
def test_a_process_that_locks_its_memory(client: millrace.Client, when: str) -> None:
    answer = _child(LOCKING, client.path, when)
    if "AssertionError: 12" in answer.stderr or "AssertionError: 1\n" in answer.stderr:
        pytest.skip("this user may not lock memory")
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "right\n", "")


FORKING = """
import os, sys
import millrace, numpy as np
from pictures import pixels_of, png
client = millrace.connect(sys.argv[1])
recipe = millrace.Recipe(resize=millrace.ExactSize(millrace.Size(48, 32)), layout="NHWC")
session = client.session(recipe, batch=4, slots=1)
for number in range(4):
    batch = session.get(session.submit([png(number + k) for k in range(4)]))
    images = batch.images.numpy()
    for k, image in enumerate(images):
        np.testing.assert_array_equal(image, pixels_of(number + k))
    images[0] = 1
    if os.fork() == 0:
        images[0] = 2
        images[1] = 2
        os._exit(0 if (images[:2] == 2).all() else 1)
    assert os.wait()[1] == 0
    assert (images[0] == 1).all()
    np.testing.assert_array_equal(images[1], pixels_of(number + 1))
    images[2] = 3
    del batch, images, image
print("right", flush=True)
os._exit(0)
"""


def test_a_childs_writes_are_its_own(client: millrace.Client) -> None:
    answer = _child(FORKING, client.path)
    assert (answer.returncode, answer.stdout) == (0, "right\n"), answer.stderr


def _child(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(MODULES), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-X", "faulthandler", "-c", code, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)


def test_asyncio(client: millrace.Client, daemon: millrace.PrivateDaemon) -> None:
    async def run() -> None:
        async with await millrace.aio.connect(daemon.address) as client, await client.session(OWN_SIZE, slots=1) as session:
            for number in range(4):
                batch = await session.get(await session.submit([png(number)]))
                images = batch.images.numpy()
                np.testing.assert_array_equal(images[0], pixels_of(number))
                images[:] = 0
                del batch, images

    asyncio.run(run())


def test_no_descriptor_and_no_mapping_stays(client: millrace.Client) -> None:
    def counts() -> tuple[int, int]:
        return len(os.listdir("/proc/self/fd")), sum("deleted" in line for line in Path("/proc/self/maps").read_text().splitlines())

    before = counts()
    sessions = 20
    for _ in range(sessions):
        with client.session(OWN_SIZE, batch=BATCH) as session:
            one(session, 0).images.numpy()[:] = 1
        del session
    # gRPC's threads come with descriptors of their own, and go in their own time; what a session leaves would be there once for each
    eventually(lambda: all(now < then + sessions // 2 for now, then in zip(counts(), before, strict=True)), "no session leaves anything")
