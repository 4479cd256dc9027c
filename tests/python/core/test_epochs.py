"""Datasets and epochs: order, shards, positions, what ends them."""

from __future__ import annotations

import contextlib
import gc
import itertools
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import millrace
import millrace.numpy
import numpy as np
import pytest

from pictures import CLASSES, COUNT, EACH, check_pixels


@pytest.fixture
def dataset(session: millrace.Session, folder: Path) -> millrace.Dataset:
    return session.dataset(folder, extensions=["png"])


def ids_of(epoch: millrace.Epoch) -> list[int]:
    return [int(number) for batch in epoch for number in batch.ids]


def test_dataset_knows_its_classes(session: millrace.Session, folder: Path) -> None:
    seen: list[int] = []
    dataset = session.dataset(folder, progress=seen.append)
    assert dataset.classes == CLASSES
    assert len(dataset) == COUNT
    assert dataset.fingerprint == session.dataset(folder).fingerprint
    assert all(isinstance(files, int) for files in seen)
    with pytest.raises(millrace.NotFound, match="no files of the extensions jpg"):
        session.dataset(folder, extensions=[".JPG"])


def test_a_folder_of_containers_says_what_stands_for_them(daemon: millrace.PrivateDaemon, folder: Path) -> None:
    for name, told in (
        ("a.tar", "Shards"),
        ("a.tar.gz", "CompressedShards"),
        ("a.parquet", "Parquet"),
        ("dataset_info.json", "datasets.load_from_disk"),
    ):
        made = folder.parent / f"containers {name}"
        made.mkdir(exist_ok=True)
        (made / name).touch()
        with (
            millrace.numpy.Loader(made, millrace.Recipe.evaluate(8, 8), address=daemon.address) as loader,
            pytest.raises(millrace.NotFound, match=rf"the dataset is empty: .*{told}\("),
        ):
            len(loader)


def test_dataset_that_cannot_be_opened(session: millrace.Session, folder: Path) -> None:
    with pytest.raises(millrace.PermissionDenied):
        session.dataset("/etc")
    with pytest.raises((millrace.PermissionDenied, millrace.NotFound)):
        session.dataset(folder / "not_there")


def test_an_epoch_brings_every_picture_once(dataset: millrace.Dataset) -> None:
    epoch = dataset.epoch()
    assert epoch.shape() == (4, 0, COUNT)
    seen = []
    for number, batch in enumerate(epoch):
        assert batch.id == number
        check_pixels(batch)
        np.testing.assert_array_equal(batch.labels, batch.ids // EACH)
        seen += batch.ids.tolist()
    assert seen == list(range(COUNT))
    assert epoch.next() is None


def test_shuffling_depends_on_seed_and_epoch(dataset: millrace.Dataset) -> None:
    first = ids_of(dataset.epoch(shuffle=True, seed=1, epoch=2))
    assert sorted(first) == list(range(COUNT))
    assert first != sorted(first)
    assert ids_of(dataset.epoch(shuffle=True, seed=1, epoch=2)) == first
    assert ids_of(dataset.epoch(shuffle=True, seed=1, epoch=3)) != first
    assert ids_of(dataset.epoch(shuffle=True, seed=2, epoch=2)) != first


def test_drop_last_and_batch_and_batches(dataset: millrace.Dataset) -> None:
    assert [len(batch) for batch in dataset.epoch(batch=11)] == [11, 11, 11, 11, 11, 5]
    assert [len(batch) for batch in dataset.epoch(batch=11, drop_last=True)] == [11] * 5
    assert [len(batch) for batch in dataset.epoch(batch=11, batches=2)] == [11, 11]


@pytest.mark.parametrize("interrupted_after", [0, 1, 3, 9])
def test_resuming_gives_the_same_ids_order_and_pixels(client: millrace.Client, folder: Path, interrupted_after: int) -> None:
    recipe = millrace.Recipe.train(24)
    options = {"shuffle": True, "seed": 5, "epoch": 1, "batch": 6}

    def run(position: bytes, stop_after: int | None) -> tuple[list[tuple[int, bytes]], bytes]:
        """(id, pixels) of each image, and where it stopped."""
        with client.session(recipe, batch=6) as session:
            epoch = session.dataset(folder).epoch(position=position, **options)
            seen = []
            for batch in itertools.islice(epoch, stop_after):
                seen += [(int(n), image.tobytes()) for n, image in zip(batch.ids, batch.images.numpy(), strict=True)]
            return seen, epoch.position

    whole, _ = run(b"", None)
    before, position = run(b"", interrupted_after)
    after, _ = run(position, None)

    assert len(whole) == COUNT
    assert before + after == whole


def test_positions_of_something_else_are_refused(session: millrace.Session, dataset: millrace.Dataset, folder: Path) -> None:
    position = next(dataset.epoch(seed=1)).position
    with pytest.raises(millrace.FailedPrecondition):
        next(dataset.epoch(seed=2, position=position))
    with pytest.raises(millrace.FailedPrecondition):
        next(session.dataset(folder / "ant").epoch(seed=1, position=position))
    with pytest.raises((millrace.InvalidRequest, millrace.FailedPrecondition)):
        next(dataset.epoch(position=b"nonsense"))


def test_four_ranks_share_the_samples(dataset: millrace.Dataset) -> None:
    shares = [ids_of(dataset.epoch(shuffle=True, seed=3, rank=rank, world_size=4)) for rank in range(4)]
    assert [len(share) for share in shares] == [COUNT // 4] * 4
    assert sorted(itertools.chain(*shares)) == list(range(COUNT))


def test_shard_tails(dataset: millrace.Dataset) -> None:
    def lengths(tail: str) -> list[int]:
        return [len(ids_of(dataset.epoch(rank=rank, world_size=7, shard_tail=tail))) for rank in range(7)]

    assert lengths("pad") == [9] * 7
    assert lengths("drop") == [8] * 7
    assert lengths("uneven") == [9, 9, 9, 9, 8, 8, 8]


def test_stopping_in_the_middle(client: millrace.Client, session: millrace.Session, dataset: millrace.Dataset) -> None:
    for _ in range(5):
        with dataset.epoch(batch=4) as epoch:
            next(epoch)
        assert epoch.next() is None
        with pytest.raises(millrace.Cancelled, match="was stopped"):
            epoch.shape()
    assert ids_of(dataset.epoch()) == list(range(COUNT))


def test_an_epoch_that_is_dropped_stops(dataset: millrace.Dataset) -> None:
    for _ in range(5):
        next(dataset.epoch(batch=4))
    assert ids_of(dataset.epoch()) == list(range(COUNT))


def test_two_epochs_at_once_share_the_slots(dataset: millrace.Dataset) -> None:
    epochs = [dataset.epoch(batch=10), dataset.epoch(batch=10, shuffle=True)]
    with ThreadPoolExecutor(2) as pool:  # one alone might wait for slots that hold the other's batches
        one, other = pool.map(ids_of, epochs)
    assert one == list(range(COUNT))
    assert sorted(other) == list(range(COUNT))


def test_bad_files_fail_one_batch_or_are_skipped(session: millrace.Session, folder: Path) -> None:
    broken = folder.parent / "broken"
    broken.mkdir(exist_ok=True)
    for number in range(12):
        good = (folder / "ant" / f"{number:04d}.png").read_bytes()
        (broken / f"{number:04d}.png").write_bytes(good[:60] if number == 5 else good)

    epoch = session.dataset(broken).epoch(batch=4, on_error="fail")
    lengths = [len(next(epoch))]
    with pytest.raises(millrace.SampleFailed, match=r"0005\.png") as caught:
        next(epoch)
    assert caught.value.batch_id == 1
    lengths += [len(batch) for batch in epoch]  # it goes on
    assert lengths == [4, 4]

    batches = list(session.dataset(broken).epoch(batch=4, on_error="skip"))
    assert [len(batch) for batch in batches] == [4, 3, 4]
    assert batches[1].errors[0].source.endswith("0005.png")


def test_a_failed_epoch_that_is_dropped_gives_its_slots_back(session: millrace.Session, folder: Path) -> None:
    """At once: not only when somebody looks for cycles of references."""
    broken = folder.parent / "broken_first"
    broken.mkdir(exist_ok=True)
    (broken / "0000.png").write_bytes(b"no picture")
    gc.disable()
    try:
        epoch = session.dataset(broken).epoch(batch=1, on_error="fail")
        with contextlib.suppress(millrace.SampleFailed):
            epoch.next()
        held = weakref.ref(epoch)
        del epoch
        assert held() is None
    finally:
        gc.enable()


def test_keeping_every_batch_is_explained(dataset: millrace.Dataset) -> None:
    with pytest.raises(millrace.DeadlineExceeded, match="holds all 3 slots"):
        list(dataset.epoch(timeout=0.3, batch=4))


def test_wrong_numbers_name_the_field(dataset: millrace.Dataset) -> None:
    with pytest.raises(millrace.InvalidRequest, match="rank"):
        next(dataset.epoch(rank=4, world_size=4))
    with pytest.raises(millrace.InvalidRequest, match="epoch"):
        dataset.epoch(rank=-1)
    with pytest.raises(millrace.InvalidRequest, match="shard_tail: must be one of pad, drop, uneven"):
        dataset.epoch(shard_tail="some")


def test_prepared_batches(dataset: millrace.Dataset) -> None:
    threads = set()

    def prepare(batch: millrace.Batch) -> int:
        threads.add(threading.current_thread().name)
        if batch.id == 2:
            raise RuntimeError("no third one")
        return len(batch)

    epoch = dataset.epoch(batch=15, batches=3, prepare=prepare)
    assert [next(epoch).prepared, next(epoch).prepared] == [15, 15]
    with pytest.raises(millrace.Error, match=r"preparing batch 2 failed: RuntimeError\('no third one'\)"):
        next(epoch)
    assert epoch.next() is None
    assert threads == {"millrace-reader"}
