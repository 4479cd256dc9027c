"""The loaders: one implementation, so most is tested with NumPy's, and the framework's own part with each framework."""

from __future__ import annotations

import json
import os
import pickle
import random
import threading
import time
from pathlib import Path
from typing import Any

import millrace
import millrace.numpy
import numpy as np
import pytest

from folder_loaders import OWN_SIZE, ids_of, make_loader  # noqa: F401, a fixture
from pictures import CLASSES, COUNT, EACH, SIZE, pixels_of, png
from restartable import Restartable


def test_it_yields_images_and_labels(make: Any) -> None:
    loader = make(OWN_SIZE)
    assert len(loader) == 8
    assert loader.classes == CLASSES
    seen = 0
    for images, labels in loader:
        for image, label, number in zip(images, labels, loader.batch.ids, strict=True):
            np.testing.assert_array_equal(image, pixels_of(int(number)))
            assert label == number // EACH
            seen += 1
    assert seen == COUNT


def test_the_transform_by_default_does_not_depend_on_shuffle(make: Any) -> None:
    pixels: dict[bool, dict[int, bytes]] = {}
    for shuffle in (False, True):
        loader = make(transform=None, shuffle=shuffle)
        assert loader.recipe == millrace.Recipe.evaluate(256, 224)
        for images, labels in loader:
            assert (images.shape[1:], images.dtype, labels.dtype) == ((3, 224, 224), np.uint8, np.int64)
            pairs = zip(loader.batch.ids.tolist(), images, strict=True)
            pixels.setdefault(shuffle, {}).update((number, image.tobytes()) for number, image in pairs)
            assert not loader.batch.flips.any()
    assert pixels[False] == pixels[True]
    images, _ = next(iter(make(dtype="float32")))
    assert images.dtype == np.float32
    assert 0 <= images.min() < images.max() <= 1


@pytest.mark.parametrize("batch_size", [1, 7, 20, 60, 64])
@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("world_size", [1, 7])
@pytest.mark.parametrize("shard_tail", ["pad", "drop", "uneven"])
def test_length_is_how_many_there_are(make: Any, batch_size: int, drop_last: bool, world_size: int, shard_tail: str) -> None:
    for rank in {0, world_size - 1}:
        loader = make(OWN_SIZE, batch_size=batch_size, drop_last=drop_last, rank=rank, world_size=world_size, shard_tail=shard_tail)
        if len(loader) == 0:
            with pytest.raises(millrace.InvalidRequest):
                ids_of(loader)
        else:
            assert len(list(map(len, (labels for _, labels in loader)))) == len(loader)


def test_epochs_count_up_or_are_set(make: Any) -> None:
    loader = make(OWN_SIZE, shuffle=True, seed=3)
    epochs = [ids_of(loader) for _ in range(3)]
    assert len({tuple(order) for order in epochs}) == 3
    assert loader.epoch == 3
    loader.set_epoch(1)
    assert ids_of(loader) == epochs[1]
    assert ids_of(loader) == epochs[2]
    for _ in loader:  # leaving an epoch early ends it
        break
    assert ids_of(make(OWN_SIZE, shuffle=True, seed=3)) == epochs[0]


def test_an_epoch_set_within_a_loop_is_the_next_ones(make: Any) -> None:
    loader = make(OWN_SIZE, shuffle=True, seed=3)
    epochs = [ids_of(loader) for _ in range(6)]
    loader.set_epoch(1)
    seen = []
    for _ in loader:
        seen += loader.batch.ids.tolist()
        loader.set_epoch(5)

    assert [seen, ids_of(loader)] == [epochs[1], epochs[5]]


def test_a_loop_that_another_ended_says_so(make: Any) -> None:
    loader = make(OWN_SIZE)
    first = iter(loader)
    next(first)
    assert len(ids_of(loader)) == COUNT
    for _ in range(2):
        with pytest.raises(millrace.FailedPrecondition, match="another loop over this loader has begun"):
            next(first)
    with pytest.raises(millrace.FailedPrecondition, match="another loop over this loader has begun"):
        list(zip(loader, loader, strict=True))


def test_a_look_at_the_next_batch_within_a_loop_does_not_end_it_unnoticed(make: Any) -> None:
    loader = make(OWN_SIZE)

    with pytest.raises(millrace.FailedPrecondition, match="make a second loader"):
        list(map(len, (next(iter(loader)) for _ in loader)))


def test_a_loop_that_has_ended_stays_at_its_end_when_another_begins(make: Any) -> None:
    loader = make(OWN_SIZE)
    ended, closed = iter(loader), None
    assert sum(1 for _ in ended) == 8
    closed = iter(loader)
    next(closed)
    closed.close()

    assert len(ids_of(loader)) == COUNT
    assert [next(ended, None), next(closed, None)] == [None, None]


@pytest.mark.parametrize("taken", [0, 1, 3, 7, 8])
def test_a_state_resumes_exactly(make: Any, taken: int) -> None:
    recipe = millrace.Recipe.train(24)

    def read(loader: Any, batches: int | None) -> list[tuple[int, bytes]]:
        seen = []
        for count, (images, _) in enumerate(loader, 1):
            seen += [(int(n), image.tobytes()) for n, image in zip(loader.batch.ids, images, strict=True)]
            if count == batches:
                break
        return seen

    reference = make(recipe, shuffle=True, seed=11)
    whole = [read(reference, None), read(reference, None)]

    first = make(recipe, shuffle=True, seed=11)
    before = read(first, taken) if taken else []
    if taken:
        time.sleep(0.05)  # the daemon reads ahead meanwhile; that must not count
    state = json.loads(json.dumps(first.state_dict()))
    second = make(recipe, shuffle=True, seed=11)
    second.load_state_dict(state)
    assert second.state_dict() == state
    second.set_epoch(state["epoch"])  # as training loops do
    after = read(second, None)

    if taken == 8:  # all were taken, but the loop has not seen the end
        assert (before, after) == (whole[0], [])
        after = read(second, None)
        assert after == whole[1]
    else:
        assert before + after == whole[0]
        assert read(second, None) == whole[1]


def test_the_state_between_epochs_is_the_next_epochs_beginning(make: Any) -> None:
    loader = make(OWN_SIZE, shuffle=True)
    ids_of(loader)
    state = loader.state_dict()
    assert (state["epoch"], state["batches"]) == (1, 0)
    other = make(OWN_SIZE, shuffle=True)
    other.load_state_dict(state)
    assert ids_of(other) == ids_of(loader)


def test_one_ranks_state_resumes_every_rank(make: Any) -> None:
    def shares(taken: int | None, state: Any) -> tuple[list[int], Any]:
        seen, kept = [], None
        for rank in range(4):
            loader = make(OWN_SIZE, shuffle=True, batch_size=4, rank=rank, world_size=4)
            if state is not None:
                loader.load_state_dict(state)
            for count, _ in enumerate(loader, 1):
                seen += loader.batch.ids.tolist()
                if count == taken:
                    break
            if rank == 0:
                kept = loader.state_dict()
        return seen, kept

    before, state = shares(2, None)
    after, _ = shares(None, state)
    assert sorted(before + after) == list(range(COUNT))


def test_setting_another_epoch_discards_a_loaded_state(make: Any) -> None:
    loader = make(OWN_SIZE)
    next(iter(loader))
    other = make(OWN_SIZE)
    other.load_state_dict(loader.state_dict())
    other.set_epoch(5)
    assert len(ids_of(other)) == COUNT


def test_numpys_numbers_are_numbers_and_states_stay_plain(make: Any) -> None:
    loader = make(OWN_SIZE, batch_size=np.int64(16))
    loader.set_epoch(np.int64(2))
    next(iter(loader))

    assert (type(loader.batch_size), type(loader.epoch), len(loader)) == (int, int, 4)
    assert json.loads(json.dumps(loader.state_dict())) == loader.state_dict()
    assert loader.state_dict()["epoch"] == 2


@pytest.mark.parametrize("epoch", [None, "1", 1.0, True])
def test_an_epoch_that_is_no_number_is_refused(make: Any, epoch: Any) -> None:
    with pytest.raises(millrace.InvalidRequest, match="set_epoch: epoch is a whole number"):
        make(OWN_SIZE).set_epoch(epoch)


def test_ranks_from_the_environment(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "3")
    seen: list[int] = []
    for rank in range(3):
        monkeypatch.setenv("RANK", str(rank))
        loader = make(OWN_SIZE, shuffle=True)
        assert (loader.rank, loader.world_size, loader.samples) == (rank, 3, 20)
        seen += ids_of(loader)
    assert sorted(seen) == list(range(COUNT))
    with pytest.raises(millrace.InvalidRequest, match="together"):
        make(OWN_SIZE, rank=1)
    monkeypatch.setenv("RANK", "first")
    with pytest.raises(millrace.InvalidRequest, match="RANK"):
        len(make(OWN_SIZE))


def test_wrong_arguments(make: Any, daemon: millrace.PrivateDaemon) -> None:
    with pytest.raises(millrace.InvalidRequest, match="one size"):
        make(millrace.Recipe.thumbnail(32))
    with pytest.raises(millrace.InvalidRequest, match="not packed"):
        make(millrace.Recipe(resize=millrace.ExactSize(SIZE), packing="packed"))
    with pytest.raises(millrace.InvalidRequest, match="one of them"):
        millrace.numpy.Loader()
    with pytest.raises(millrace.InvalidRequest, match="batch"):
        len(make(OWN_SIZE, batch_size=0))
    with pytest.raises(millrace.DaemonUnavailable):
        iter(make(OWN_SIZE, address="/nowhere/s")).__next__()


def test_bad_files(daemon: millrace.PrivateDaemon, folder: Path) -> None:
    broken = folder.parent / "broken for loaders"
    (broken / "ant").mkdir(parents=True, exist_ok=True)
    for number in range(12):
        (broken / "ant" / f"{number:02d}.png").write_bytes(b"bad" if 4 <= number < 9 else png(number))
    options: dict[str, Any] = {"batch_size": 4, "address": daemon.address}
    with millrace.numpy.Loader(broken, OWN_SIZE, on_error="skip", **options) as loader, pytest.warns(millrace.BadImageWarning):
        assert [len(labels) for _, labels in loader] == [4, 3]  # nothing is left of the second
    with (
        millrace.numpy.Loader(broken, OWN_SIZE, on_error="fail", **options) as loader,
        pytest.raises(millrace.SampleFailed, match=r"0[4-7]\.png"),  # whichever of its batch is found first
    ):
        ids_of(loader)


def test_loaders_travel_to_other_processes(make: Any) -> None:
    loader = make(OWN_SIZE, shuffle=True)
    order = ids_of(loader)
    copy = pickle.loads(pickle.dumps(loader))
    copy.set_epoch(0)
    assert ids_of(copy) == order
    copy.close()


def test_an_epoch_goes_on_after_the_daemon_was_restarted(restartable: Restartable, folder: Path) -> None:
    dice = random.Random(os.environ.get("MILLRACE_TEST_SEED", "4"))
    recipe = millrace.Recipe.train(24)
    options: dict[str, Any] = {"batch_size": 4, "shuffle": True, "seed": 2, "address": restartable.socket}

    def read(loader: millrace.numpy.Loader, kills: set[int]) -> list[tuple[int, bytes]]:
        seen = []
        for count, (images, _) in enumerate(loader):
            seen += [(int(n), image.tobytes()) for n, image in zip(loader.batch.ids, images, strict=True)]
            if count in kills:
                restartable.kill()
                threading.Timer(dice.uniform(0, 0.6), restartable.start).start()
        return seen

    with millrace.numpy.Loader(folder, recipe, **options) as loader:
        whole = read(loader, set())
    with millrace.numpy.Loader(folder, recipe, resume=True, **options) as loader:
        resumed = read(loader, {0, dice.randrange(2, 8), 12, 14})

    assert len(whole) == COUNT
    assert resumed == whole


def take_the_rest(loader: Any, iterator: Any, seen: list[int]) -> None:
    for _ in iterator:
        seen += loader.batch.ids.tolist()


def test_without_resume_the_loop_ends_and_a_new_one_goes_on(restartable: Restartable, folder: Path) -> None:
    with millrace.numpy.Loader(folder, OWN_SIZE, batch_size=4, address=restartable.socket) as loader:
        iterator = iter(loader)
        next(iterator)
        seen = loader.batch.ids.tolist()
        restartable.kill()
        with pytest.raises(millrace.DaemonUnavailable, match="goes on from its position"):
            take_the_rest(loader, iterator, seen)  # what had arrived still comes
        state = loader.state_dict()
        restartable.start()
        loader.load_state_dict(state)
        assert seen + ids_of(loader) == list(range(COUNT))


def test_a_loop_that_failed_is_repeated(restartable: Restartable, folder: Path) -> None:
    options: dict[str, Any] = {"batch_size": 4, "shuffle": True, "seed": 5, "address": restartable.socket}
    with millrace.numpy.Loader(folder, OWN_SIZE, **options) as loader:
        epochs = [ids_of(loader), ids_of(loader)]
        loader.set_epoch(0)
        iterator = iter(loader)
        next(iterator)
        restartable.kill()
        with pytest.raises(millrace.DaemonUnavailable):
            take_the_rest(loader, iterator, [])
        state = loader.state_dict()
        for _ in range(2):  # a loop that never got as far as a batch, too
            with pytest.raises(millrace.DaemonUnavailable):
                ids_of(loader)
        restartable.start()

        assert (loader.epoch, state["epoch"]) == (0, 0)
        assert state["batches"] >= 1  # where the loop was, for who saves it
        assert [ids_of(loader), ids_of(loader)] == epochs


@pytest.mark.parametrize("epoch_is_set", [False, True])
def test_a_failed_loop_that_began_within_an_epoch_begins_there_again(restartable: Restartable, folder: Path, epoch_is_set: bool) -> None:
    with millrace.numpy.Loader(folder, OWN_SIZE, batch_size=4, address=restartable.socket) as loader:
        iterator = iter(loader)
        for _ in range(3):
            next(iterator)
        loader.load_state_dict(loader.state_dict())
        iterator = iter(loader)
        next(iterator)
        restartable.kill()
        with pytest.raises(millrace.DaemonUnavailable):
            take_the_rest(loader, iterator, [])
        restartable.start()
        if epoch_is_set:  # as training loops do
            loader.set_epoch(0)

        assert ids_of(loader) == list(range(12, COUNT))
        assert loader.epoch == 1


def test_a_bad_image_does_not_make_the_next_loop_another_epoch(daemon: millrace.PrivateDaemon, folder: Path) -> None:
    broken = folder.parent / "one broken"
    (broken / "ant").mkdir(parents=True, exist_ok=True)
    for number in range(8):
        (broken / "ant" / f"{number}.png").write_bytes(png(number) if number != 6 else b"bad")
    with millrace.numpy.Loader(broken, OWN_SIZE, batch_size=2, on_error="fail", address=daemon.address) as loader:
        with pytest.raises(millrace.SampleFailed):
            ids_of(loader)
        (broken / "ant" / "6.png").write_bytes(png(6))

        assert ids_of(loader) == list(range(8))
        assert loader.epoch == 1


def test_resuming_gives_up_in_time(restartable: Restartable, folder: Path) -> None:
    options: dict[str, Any] = {"batch_size": 4, "address": restartable.socket, "resume": True, "resume_within": 0.5}
    with millrace.numpy.Loader(folder, OWN_SIZE, **options) as loader:
        iterator = iter(loader)
        next(iterator)
        restartable.kill()
        began = time.monotonic()
        with pytest.raises(millrace.DaemonUnavailable):
            list(map(len, iterator))
        assert time.monotonic() - began > 0.4
        restartable.start()
