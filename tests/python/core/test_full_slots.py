"""Who keeps so many batches that no slot is left gets them as copies, and one warning."""

from __future__ import annotations

import asyncio
import gc
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import millrace
import millrace.aio
import millrace.numpy
import numpy as np
import pytest
from millrace._core import full_slots as _full_slots
from millrace._core.inbox import PENDING
from millrace._memory import copy_on_write as _copy_on_write

from pictures import COUNT, SIZE, check_pixels, pixels_of, png
from processes import eventually

OWN_SIZE = millrace.Recipe(resize=millrace.ExactSize(SIZE), layout="NHWC")


@pytest.fixture
def make(daemon: millrace.PrivateDaemon, folder: Path) -> Iterator[Callable[..., millrace.numpy.Loader]]:
    made = []

    def loader(**options: Any) -> millrace.numpy.Loader:
        made.append(millrace.numpy.Loader(folder, OWN_SIZE, batch_size=4, address=daemon.address, **options))
        return made[-1]

    yield loader
    for one in made:
        one.close()


def in_order(kept: Any) -> bool:
    """Whether these are the images of a whole epoch that was not shuffled."""
    images = np.concatenate([images for images, _ in kept])
    return len(images) == COUNT and all((image == pixels_of(number)).all() for number, image in enumerate(images))


def marked(number: int, images: Any) -> Any:
    images[1] = number
    return images


def free_slots(client: millrace.Client, session: millrace.Session) -> int:
    return next(s.slots_free for s in client.statistics().sessions if s.id == session.id)


@pytest.mark.parametrize("slots", [1, 2, 3, 4, 14])
def test_list_of_a_loader(make: Any, slots: int) -> None:
    with pytest.warns(millrace.SlotsHeld, match=f"all {slots} slots .* are held") as told:
        kept = list(make(slots=slots))
    assert [warning.filename for warning in told] == [__file__]
    assert in_order(kept)
    for images, _ in kept:
        images[:] = 0
    assert not any(images.any() for images, _ in kept)


def test_what_fits_into_the_slots_is_not_copied(make: Any) -> None:
    loader = make(slots=15)
    kept = list(loader)
    assert in_order(kept)
    assert loader._session.leased == 15


def test_keeping_a_part_of_every_batch(make: Any) -> None:
    with pytest.warns(millrace.SlotsHeld):
        kept = [images[:, 0, 0, 0] for images, _ in make()]
    np.testing.assert_array_equal(np.concatenate(kept), [pixels_of(number)[0, 0, 0] for number in range(COUNT)])


def test_an_ordinary_loop_is_told_nothing(make: Any) -> None:
    for slots in (2, 3):
        loader = make(slots=slots)
        for _ in range(3):
            for images, labels in loader:
                assert (images.shape[0], labels.shape[0]) == (4, 4)


def test_a_prefetch_deeper_than_there_are_slots(make: Any) -> None:
    def prefetched(loader: Any) -> Iterator[Any]:
        queue: deque[Any] = deque()
        for item in loader:
            queue.append(item)
            if len(queue) == 5:
                yield queue.popleft()
        yield from queue

    with pytest.warns(millrace.SlotsHeld):
        assert in_order((images.copy(), labels) for images, labels in prefetched(make(slots=4)))


def test_later_epochs_after_one_that_was_kept(make: Any, client: millrace.Client) -> None:
    loader = make(slots=3)
    with pytest.warns(millrace.SlotsHeld) as told:
        kept = [list(loader), list(loader)]
    assert len(told) == 1  # a session
    assert in_order(kept[0])
    assert in_order(kept[1])
    del kept
    gc.collect()
    eventually(lambda: free_slots(client, loader._session) == 3, "three slots are free")  # and nothing went back twice
    for _ in range(3):
        for images, _ in loader:
            check_pixels(loader.batch)
            images[:] = 1
    del images
    eventually(lambda: loader._session.leased == 0 and free_slots(client, loader._session) == 3, "all slots are free")


def test_what_was_written_stays_written_in_kept_batches(make: Any) -> None:
    with pytest.warns(millrace.SlotsHeld):
        kept = [marked(number, images) for number, (images, _) in enumerate(make(slots=3))]
    for number, images in enumerate(kept):
        assert (images[1] == number).all()
        np.testing.assert_array_equal(images[2], pixels_of(4 * number + 2))


def test_kept_batches_that_go_leave_others_as_they_are(make: Any) -> None:
    loader = make(slots=3)
    for _ in range(2):
        for images, _ in loader:
            images[:] = 1
    del images
    ends: list[Any] = []  # alive, as where another thread waits and looks who holds the slots

    def watched(number: int, images: Any) -> Any:
        ends.extend(loader._session._segment.leases)
        return marked(number, images)

    with pytest.warns(millrace.SlotsHeld):
        kept = [watched(number, images) for number, (images, _) in enumerate(loader)]
    last = kept[-1]  # in a slot that older ones were in
    del kept
    gc.collect()
    for _ in loader:
        check_pixels(loader.batch)
    assert (last[1] == 14).all()
    np.testing.assert_array_equal(last[2], pixels_of(4 * 14 + 2))


def test_kept_batches_know_what_is_in_them(dataset: millrace.Dataset) -> None:
    with pytest.warns(millrace.SlotsHeld):
        batches = list(dataset.epoch(batch=16))
    assert [number for batch in batches for number in batch.ids] == list(range(COUNT))
    for batch in batches:
        check_pixels(batch)
        assert batch.release() is True
        with pytest.raises(millrace.Released):
            _ = batch.images


@pytest.fixture
def dataset(session: millrace.Session, folder: Path) -> millrace.Dataset:
    return session.dataset(folder)


def test_get_with_every_slot_held(client: millrace.Client, session: millrace.Session) -> None:
    held = [session.get(session.submit([png(n)])) for n in range(session.slots)]
    views = [batch.images.numpy() for batch in held]
    with pytest.warns(millrace.SlotsHeld):
        last = session.get(session.submit([png(9)]))
    for number, (batch, view) in enumerate(zip(held, views, strict=True)):
        assert batch.images.numpy().ctypes.data == view.ctypes.data
        np.testing.assert_array_equal(view[0], pixels_of(number))
    np.testing.assert_array_equal(last.images.numpy()[0], pixels_of(9))
    del held, views, batch, view, last
    eventually(lambda: free_slots(client, session) == session.slots, "all slots are free")


def test_what_needs_no_slot_waits_in_peace(session: millrace.Session) -> None:
    held = [session.get(session.submit([png(n)])) for n in range(session.slots)]
    with pytest.raises(millrace.DeadlineExceeded):
        session._wait(lambda: PENDING, 2.5, "dataset")
    assert session.leased == len(held)  # none was copied


@pytest.mark.usefixtures("slots_are_waited_for")
def test_another_thread_lets_go_meanwhile(session: millrace.Session) -> None:
    held = [session.get(session.submit([png(n)])) for n in range(session.slots)]
    letting_go = threading.Timer(0.3, held.clear)
    letting_go.start()
    assert len(session.get(session.submit([png(9)]))) == 1  # and no warning, which would be an error
    letting_go.join()


def test_read_only_batches_are_not_copied(client: millrace.Client, own_size: millrace.Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_full_slots, "SHARED", 0.1)  # long before its time is over
    with client.session(own_size, batch=1, slots=2, writable=False) as session:
        held = [session.get(session.submit([png(n)])) for n in range(2)]
        number = session.submit([png(9)])
        with pytest.warns(millrace.SlotsHeld, match="release them"), pytest.raises(millrace.DeadlineExceeded, match="holds all 2 slots"):
            session.get(number, timeout=2.5)
        held.clear()
        assert len(session.get(number)) == 1


def test_asyncio(daemon: millrace.PrivateDaemon, own_size: millrace.Recipe) -> None:
    async def run() -> list[millrace.Batch]:
        async with await millrace.aio.connect(daemon.address) as client, await client.session(own_size, slots=2) as session:
            return [await session.get(await session.submit([png(number)])) for number in range(4)]

    with pytest.warns(millrace.SlotsHeld):
        batches = asyncio.run(run())
    for number, batch in enumerate(batches):
        np.testing.assert_array_equal(batch.images.numpy()[0], pixels_of(number))


def test_batches_in_cycles_of_garbage_are_collected_instead(make: Any) -> None:
    gc.collect()
    gc.disable()
    try:
        for images, _ in make(slots=3):
            cycle: list[Any] = [images]
            cycle.append(cycle)
            del images, cycle
    finally:
        gc.enable()


def test_batches_that_wait_to_be_taken_are_not_copied(session: millrace.Session, dataset: millrace.Dataset) -> None:
    """One thread and two epochs: what the daemon reads ahead of the other is its own to take, however much it is."""
    other = dataset.epoch(batch=4)
    eventually(lambda: session.leased == session.slots, "all slots are full")
    first = dataset.epoch(batch=4)
    with pytest.raises(millrace.DeadlineExceeded, match="holds all 3 slots"):
        first.next(timeout=2.5)
    assert session.leased == session.slots
    first.stop()
    assert sum(len(batch) for batch in other) == COUNT


def test_batches_that_wait_to_be_taken_are_not_taken(session: millrace.Session) -> None:
    numbers = [session.submit([png(n)]) for n in range(session.slots)]
    eventually(lambda: session.leased == session.slots, "all slots are full")
    held = deque[millrace.Batch]()
    for number in numbers:
        assert not session._inbox.all_taken()
        held.append(session.get(number))
    assert session._inbox.all_taken()
    held.popleft()
    assert not session._inbox.all_taken()


@pytest.mark.parametrize("madvise", ["as it is", "before Linux 5.14"])
def test_copies_outlive_the_daemon(folder: Path, madvise: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if madvise != "as it is":
        monkeypatch.setattr(_copy_on_write, "_POPULATE_READ", 0x7FFF)
        monkeypatch.setattr(_copy_on_write, "_POPULATE_WRITE", 0x7FFF)
    with millrace.serve(folder, lanes=2) as daemon, warnings.catch_warnings():
        warnings.simplefilter("ignore", millrace.SlotsHeld)
        with millrace.numpy.Loader(folder, OWN_SIZE, batch_size=4, slots=3, address=daemon.address) as loader:
            kept = list(loader)
    gc.collect()
    assert in_order(kept)


def test_mappings_go_with_the_batches(make: Any) -> None:
    def mappings() -> int:
        return sum("deleted" in line for line in Path("/proc/self/maps").read_text().splitlines())

    loader = make(slots=3)
    next(iter(loader))
    before = mappings()
    with pytest.warns(millrace.SlotsHeld):
        kept = list(loader)
    assert mappings() > before
    del kept
    gc.collect()
    eventually(lambda: mappings() <= before, "the mappings are gone")


def test_a_warning_that_is_an_error_breaks_nothing(make: Any) -> None:
    loader = make(slots=3)
    kept: list[Any] = []
    with pytest.raises(millrace.SlotsHeld):
        kept.extend(loader)
    assert len(kept) == 3
    del kept
    gc.collect()
    assert in_order((images.copy(), None) for images, _ in loader)
