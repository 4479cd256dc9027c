"""A batch is a lease: an object that sees its memory keeps the slot; nobody ever sees another batch's pixels."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any

import millrace
import numpy as np
import pytest
from millrace._wire import schema as _schema
from millrace.tensor import VERSIONED

from pictures import pixels_of, png
from processes import eventually


def free_slots(client: millrace.Client, session: millrace.Session) -> int:
    return next(s.slots_free for s in client.statistics().sessions if s.id == session.id)


def one(session: millrace.Session, number: int) -> millrace.Batch:
    return session.get(session.submit([png(number)]))


def test_release_gives_the_slot_back_at_once(client: millrace.Client, session: millrace.Session) -> None:
    batch = one(session, 0)
    assert free_slots(client, session) == 2

    assert batch.release() is True

    eventually(lambda: free_slots(client, session) == 3, "three slots are free")
    assert batch.release() is True
    assert batch.released


def test_use_after_release_is_an_exception(session: millrace.Session) -> None:
    batch = one(session, 0)
    images = batch.images
    image = batch.image(0)
    batch.release()

    uses: list[Callable[[], Any]] = [
        lambda: batch.images,
        lambda: batch.image(0),
        lambda: batch.labels,
        lambda: batch.records,
        lambda: images.numpy(),
        lambda: images[0],
        lambda: np.asarray(images),
        lambda: np.from_dlpack(images),
        lambda: images.__dlpack__(max_version=(1, 0)),
        lambda: image.numpy(),
    ]
    for use in uses:
        with pytest.raises(millrace.Released, match="was released"):
            use()
    assert "released" in repr(batch)
    assert "released" in repr(images)


def test_the_with_block_releases(session: millrace.Session) -> None:
    with one(session, 0) as batch:
        assert len(batch) == 1
    with pytest.raises(millrace.Released):
        _ = batch.images


VIEWS: dict[str, Callable[[millrace.Batch], Any]] = {
    "numpy()": lambda batch: batch.images.numpy(),
    "asarray": lambda batch: np.asarray(batch.images),
    "a slice": lambda batch: batch.images[0, 2:, ::2],
    "a view of a view": lambda batch: np.asarray(batch.images)[0].reshape(-1)[10:],
    "records": lambda batch: batch.records,
    "one image": lambda batch: batch.image(0).numpy(),
    "a memoryview": lambda batch: memoryview(batch.images.numpy()),
}
if VERSIONED:  # else DLPack is a copy
    VIEWS["from_dlpack"] = lambda batch: np.from_dlpack(batch.images)
    VIEWS["a capsule that nobody took"] = lambda batch: batch.images.__dlpack__(max_version=(1, 0))


@pytest.mark.parametrize("kind", VIEWS)
def test_views_keep_the_slot_after_release(kind: str, client: millrace.Client, session: millrace.Session) -> None:
    batch = one(session, 0)
    view = VIEWS[kind](batch)

    assert batch.release() is False

    # The other slots are used again and again; the one with the view never is.
    for number in range(1, 12):
        other = one(session, number)
        np.testing.assert_array_equal(other.images.numpy()[0], pixels_of(number))
        del other
    eventually(lambda: free_slots(client, session) == 2, "two slots are free")
    if isinstance(view, np.ndarray) and view.shape == (1, 32, 48, 3):
        np.testing.assert_array_equal(view[0], pixels_of(0))
    del view
    gc.collect()
    eventually(lambda: free_slots(client, session) == 3, f"the slot is free after {kind} was dropped")


@pytest.mark.parametrize("kind", VIEWS)
def test_views_outlive_batch_and_session(kind: str, client: millrace.Client, own_size: millrace.Recipe) -> None:
    session = client.session(own_size, batch=1, slots=1)
    number = session.id
    view = VIEWS[kind](one(session, 0))
    session.close()
    del session
    gc.collect()
    if isinstance(view, np.ndarray) and view.shape == (1, 32, 48, 3):
        np.testing.assert_array_equal(view[0], pixels_of(0))
    assert number in [s.id for s in client.statistics().sessions]
    del view
    gc.collect()
    eventually(lambda: number not in [s.id for s in client.statistics().sessions], "the daemon has dropped the session")


def test_the_last_view_of_a_closed_session_gives_its_memory_back_without_a_garbage_collection(
    client: millrace.Client, own_size: millrace.Recipe
) -> None:
    session = client.session(own_size, batch=1, slots=1)
    number = session.id
    view = one(session, 0).images.numpy()
    session.close()
    gc.disable()
    try:
        del view

        eventually(lambda: number not in [s.id for s in client.statistics().sessions], "the daemon has dropped the session")
    finally:
        gc.enable()


def test_collecting_the_batch_gives_the_slot_back(client: millrace.Client, session: millrace.Session) -> None:
    batch = one(session, 0)
    images = batch.images
    del batch
    assert free_slots(client, session) == 2
    np.testing.assert_array_equal(images.numpy()[0], pixels_of(0))
    del images
    eventually(lambda: free_slots(client, session) == 3, "the slot is free")


def test_views_are_read_only_where_that_was_asked_for(client: millrace.Client, own_size: millrace.Recipe) -> None:
    with client.session(own_size, batch=16, slots=3, writable=False) as session:
        batch = one(session, 0)
        views = [batch.images.numpy(), np.asarray(batch.images), batch.records]
        for view in [*views, np.from_dlpack(batch.images)] if VERSIONED else views:
            assert not view.flags.writeable
            with pytest.raises(ValueError):
                view.flags.writeable = True


def test_copies_are_the_callers(session: millrace.Session) -> None:
    batch = one(session, 0)
    copies = [np.array(batch.images), batch.images.numpy().copy(), np.asarray(batch.images, dtype=np.float32)]
    if VERSIONED:
        copies.append(np.from_dlpack(batch.images, copy=True))
    labels = batch.labels
    assert batch.release() is True
    for copy in copies:
        np.testing.assert_array_equal(copy[0], pixels_of(0))
    labels[0] = 5


def test_batches_that_nobody_takes_give_their_slots_back(client: millrace.Client, session: millrace.Session) -> None:
    dataset_batches = [session.submit([png(n)]) for n in range(3)]
    eventually(lambda: free_slots(client, session) == 0, "all slots are used")
    for number in dataset_batches:
        session.get(number)
    eventually(lambda: free_slots(client, session) == 3, "all slots are free")


def test_releases_from_many_threads(client: millrace.Client, session: millrace.Session) -> None:
    failures = []

    def work(offset: int) -> None:
        try:
            for number in range(offset, offset + 30):
                batch = session.get(session.submit([png(number % 60)]))
                np.testing.assert_array_equal(batch.images.numpy()[0], pixels_of(number % 60))
                del batch  # its slot is needed for what comes
        except BaseException as why:
            failures.append(why)

    threads = [threading.Thread(target=work, args=(10 * k,)) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    eventually(lambda: free_slots(client, session) == 3, "all slots are free")


def test_a_failed_batch_leaves_no_cycle_that_keeps_its_callers_batches(session: millrace.Session) -> None:
    def caller() -> None:
        batch = session.get(session.submit([png(0)]))
        view = batch.images.numpy()
        with pytest.raises(millrace.SampleFailed):
            session.get(session.submit([b"not an image"]))
        assert view.any()

    gc.collect()
    gc.disable()
    try:
        caller()
        assert session.leased == 0
    finally:
        gc.enable()


@pytest.mark.parametrize("slot_now", ["holds another batch", "is free", "was never there"])
def test_a_stale_handle_is_an_error_of_its_batch_and_shows_nobodys_pixels(
    slot_now: str, client: millrace.Client, own_size: millrace.Recipe
) -> None:
    with client.session(own_size, batch=1, slots=1) as session:
        first = one(session, 0)
        told = _schema.ServerMessage(completed=first._completed)
        told.completed.batch_id = 999
        first.release()
        eventually(lambda: free_slots(client, session) == 1, "the slot has come back")
        if slot_now == "holds another batch":
            first = one(session, 1)
        if slot_now == "was never there":
            told.completed.handle.slot = 1_000_000
        session._inbox.expect_batch(999, own_size, [])

        session._inbox.deliver(told)  # as if the daemon said it a second time, of another batch

        with pytest.raises(millrace.StaleHandle, match=r"slot \d+ does not hold this batch"):
            session.get(999)
        if slot_now == "holds another batch":
            np.testing.assert_array_equal(first.images.numpy()[0], pixels_of(1))
            first.release()
        np.testing.assert_array_equal(one(session, 2).images.numpy()[0], pixels_of(2))  # the session goes on
