"""Lists of files as datasets, orders of one's own, and which files samples are: what a session offers, without a loader."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import millrace
import numpy as np
import pytest
from millrace._wire.file_list import NotBeneath, common_folder, parts

from pictures import COUNT, check_pixels, path_of, pixels_of


def paths_of(folder: Path, *numbers: int) -> list[str]:
    return [path_of(folder, number) for number in numbers]


def test_a_list_has_its_own_order_labels_and_repetitions(session: millrace.Session, folder: Path) -> None:
    numbers, labels = [41, 3, 41, 0], [2**40, -7, 5, 0]
    told: list[int] = []
    dataset = session.dataset_of(paths_of(folder, *numbers), labels, progress=told.append)
    (batch,) = dataset.epoch()
    assert len(dataset) == 4
    assert dataset.classes == ()
    assert told[-1] == 4
    assert batch.ids.tolist() == [0, 1, 2, 3]
    assert batch.labels.tolist() == labels
    assert batch.paths == dataset.paths_of(range(4)) == paths_of(folder, *numbers)
    for image, number in zip(batch.images.numpy(), numbers, strict=True):
        assert (image == pixels_of(number)).all()


def test_a_folders_samples_have_paths(session: millrace.Session, folder: Path) -> None:
    dataset = session.dataset(folder)
    batches = list(dataset.epoch(shuffle=True, seed=3, batches=2))
    for batch in batches:
        check_pixels(batch)
        assert batch.paths == [path_of(folder, int(number)) for number in batch.ids]
    assert dataset.path_of(59) == path_of(folder, 59)
    assert dataset.paths_of(np.arange(COUNT)) == [path_of(folder, number) for number in range(COUNT)]
    with pytest.raises(millrace.InvalidRequest, match="there is no sample 60"):
        dataset.path_of(60)
    with pytest.raises(millrace.InvalidRequest, match="no such sample"):
        dataset.path_of(-1)
    dataset.close()
    with pytest.raises(millrace.NotFound, match="no dataset"):
        dataset.path_of(0)


def test_more_paths_than_one_answer_holds(session: millrace.Session, folder: Path) -> None:
    dataset = session.dataset_of(paths_of(folder, *range(COUNT)) * 20)
    assert dataset.paths_of(range(20 * COUNT)) == paths_of(folder, *range(COUNT)) * 20


def test_a_submitted_batch_has_no_paths(session: millrace.Session, folder: Path) -> None:
    batch = session.get(session.submit([path_of(folder, 0)]))
    with pytest.raises(millrace.FailedPrecondition, match="was submitted"):
        _ = batch.paths


def test_paths_of_every_kind_are_taken(session: millrace.Session, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    whole = paths_of(folder, 0, 20, 40)
    kinds: list[Any] = [
        [os.fsencode(path) for path in whole],
        [Path(path) for path in whole],
        np.array(whole),
        tuple(whole),
        ["ant/0000.png", "./bee/0000.png", "bee/../cat/0000.png"],
        [whole[0], os.fsencode(whole[1]), "cat/0000.png"],
        [f"{folder}//ant/0000.png", whole[1], f"{folder}/ant/./../cat/0000.png"],
    ]
    for kind in kinds:
        assert session.dataset_of(kind).paths_of((0, 1, 2)) == whole


def test_what_is_no_list_is_refused_and_says_which_file(session: millrace.Session, folder: Path) -> None:
    good = path_of(folder, 0)
    with pytest.raises(millrace.InvalidRequest, match="the list of files is empty"):
        session.dataset_of([])
    with pytest.raises(millrace.InvalidRequest, match="sequence of paths, not one path"):
        session.dataset_of(good)
    with pytest.raises(millrace.InvalidRequest, match="file 1 of the list is a int, not a path"):
        session.dataset_of([good, 7])  # type: ignore[list-item]
    with pytest.raises(millrace.InvalidRequest, match=r"file 1 of the list: .*is a URL"):
        session.dataset_of([good, "https://example.org/a.jpg"])
    with pytest.raises(millrace.InvalidRequest, match="file 1 of the list has a zero byte"):
        session.dataset_of([good, "/a\0b"])
    with pytest.raises(millrace.InvalidRequest, match=r"one for each of the 1 files; their shape is \(2,\)"):
        session.dataset_of([good], [1, 2])
    with pytest.raises(millrace.InvalidRequest, match="labels are integers; these are float64"):
        session.dataset_of([good], [1.5])
    with pytest.raises(millrace.InvalidRequest, match="64 bits"):
        session.dataset_of([good], np.array([2**64 - 1], np.uint64))


def test_a_path_outside_the_roots_is_named_with_the_roots_and_the_setting(session: millrace.Session, folder: Path) -> None:
    with pytest.raises(millrace.PermissionDenied) as told:
        session.dataset_of([path_of(folder, 0), "/etc/passwd"])
    for word in ('sample 1 "/etc/passwd"', str(folder.parent), "files.roots"):
        assert word in str(told.value)
    session.dataset_of([path_of(folder, 0)])  # the session goes on


def test_a_missing_file_is_its_samples_error(session: millrace.Session, folder: Path) -> None:
    missing = f"{folder}/ant/nowhere.png"
    dataset = session.dataset_of([path_of(folder, 0), missing])
    (batch,) = dataset.epoch()
    assert [(error.path, error.code) for error in batch.errors] == [(missing, "NOT_FOUND")]
    assert batch.ids.tolist() == [0]
    with pytest.raises(millrace.SampleFailed, match=r"nowhere\.png"):
        list(dataset.epoch(on_error="fail"))


def test_a_list_resumes_by_position_in_another_session(client: millrace.Client, own_size: millrace.Recipe, folder: Path) -> None:
    paths, seen = paths_of(folder, *range(COUNT)), []
    with client.session(own_size, batch=8, slots=3) as first:
        for batch in first.dataset_of(paths).epoch(shuffle=True, seed=9):
            seen.append(batch.ids.tolist())
            if len(seen) == 3:
                position = batch.position
            del batch
    with client.session(own_size, batch=8, slots=3) as second:
        rest = second.dataset_of(paths).epoch(shuffle=True, seed=9, position=position)
        assert [batch.ids.tolist() for batch in rest] == seen[3:]
        with pytest.raises(millrace.FailedPrecondition, match="another dataset"):
            second.dataset_of(paths[::-1]).epoch(shuffle=True, seed=9, position=position).next()


def test_an_order_of_ones_own_comes_as_it_is(session: millrace.Session, folder: Path) -> None:
    dataset = session.dataset(folder)
    order: list[Any] = [[5, 5, 9], np.array([0]), (59,), range(16)]
    seen = []
    for batch in dataset.epoch(order=order):
        check_pixels(batch)
        assert batch.position == b""
        seen.append(batch.ids.tolist())
        del batch
    assert seen == [list(batch) for batch in order]
    assert dataset.epoch(order=[]).next() is None
    assert dataset.epoch(order=[[1]]).shape() == (0, 0, 0)


def test_an_order_is_taken_ahead_but_not_far(session: millrace.Session, folder: Path) -> None:
    taken = 0

    def order() -> Iterator[list[int]]:
        nonlocal taken
        for number in range(1000):
            taken += 1
            yield [number % COUNT]

    epoch = session.dataset(folder).epoch(order=order())
    assert taken == 0
    for number in range(1000):
        batch = epoch.next()
        assert batch is not None
        assert batch.ids.tolist() == [number % COUNT]
        assert number < taken <= number + 1 + 2 * 8 or taken == 1000
        del batch
    assert epoch.next() is None


def test_draws_give_one_sample_several_crops(client: millrace.Client, folder: Path) -> None:
    recipe = millrace.Recipe(crop=millrace.RandomResizedCrop((0.1, 0.9)), resize=millrace.ExactSize(millrace.Size(16, 16)))
    with client.session(recipe, batch=4, slots=4) as session:
        dataset = session.dataset(folder)
        order = [[7, 7], millrace.OrderedBatch([7, 7, 7, 7], [7, 8, -1, 2**64 - 1]), [7]]
        plain, drawn, again = list(dataset.epoch(order=order, seed=5))
        assert plain.boxes[0].tolist() == plain.boxes[1].tolist() == again.boxes[0].tolist() == drawn.boxes[0].tolist()
        assert drawn.boxes[1].tolist() != drawn.boxes[0].tolist() != drawn.boxes[2].tolist()
        assert drawn.boxes[2].tolist() == drawn.boxes[3].tolist()  # draws are 64 bits
        assert drawn.ids.tolist() == [7] * 4


def test_what_is_no_order_is_refused(session: millrace.Session, folder: Path) -> None:
    dataset = session.dataset(folder)
    wrong: dict[str, Any] = {
        "the order has sample 60; the dataset's are 0 to 59": [[0, 60]],
        "the order has sample -1": [[-1]],
        "has 0 samples; it must have 1 to 16": [[]],
        "has 17 samples; it must have 1 to 16": [range(17)],
        "a batch of the order is a sequence of sample numbers": [3],
        "sample numbers: 'float' object": [[1.5]],
        r"an array of float64 with the shape \(1,\)": [np.array([1.0])],
        "2 samples and 1 draws": [millrace.OrderedBatch([1, 2], [3])],
    }
    for text, order in wrong.items():
        epoch = dataset.epoch(order=[[1], *order])
        first = epoch.next()
        assert first is not None
        assert first.ids.tolist() == [1]  # what comes before it comes
        del first
        with pytest.raises(millrace.InvalidRequest, match=text):
            epoch.next()
        assert epoch.next() is None
    with pytest.raises(millrace.InvalidRequest, match="not a int"):
        dataset.epoch(order=7)  # type: ignore[arg-type]
    for option in ({"shuffle": True}, {"drop_last": True}, {"rank": 1, "world_size": 2}, {"shard_tail": "drop"}, {"batches": 3}):
        with pytest.raises(millrace.InvalidRequest, match="is not for an order of your own"):
            dataset.epoch(order=[[1]], **option)  # type: ignore[arg-type]


def test_what_an_order_raises_comes_after_the_batches_before_it(session: millrace.Session, folder: Path) -> None:
    closed = False

    def order() -> Iterator[list[int]]:
        nonlocal closed
        try:
            yield [1]
            yield [2]
            raise KeyError("the sampler's own")
        finally:
            closed = True

    epoch = session.dataset(folder).epoch(order=order())
    seen = []
    for _ in range(2):
        batch = epoch.next()
        assert batch is not None
        seen.append(batch.ids.tolist())
        del batch
    with pytest.raises(KeyError, match="the sampler's own"):
        epoch.next()
    assert seen == [[1], [2]]
    assert closed


def test_an_epoch_that_is_stopped_closes_its_order(session: millrace.Session, folder: Path) -> None:
    closed = False

    def order() -> Iterator[list[int]]:
        nonlocal closed
        try:
            for number in range(10_000):
                yield [number % COUNT]
        finally:
            closed = True

    dataset = session.dataset(folder)
    with dataset.epoch(order=order()) as epoch:
        epoch.next()
    assert closed
    assert dataset.epoch(order=[[3]]).next() is not None


def test_an_order_of_large_batches_comes_in_several_messages(client: millrace.Client, folder: Path) -> None:
    recipe = millrace.Recipe(resize=millrace.ExactSize(millrace.Size(1, 1)))
    size = 20_000
    with client.session(recipe, batch=size, slots=8) as session:
        dataset = session.dataset_of(paths_of(folder, *range(COUNT)))
        draws = [2**64 - 1 - number for number in range(size)]
        order = ([number % COUNT for number in range(turn, turn + size)] for turn in range(20))
        epoch = dataset.epoch(order=(millrace.OrderedBatch(each, draws) for each in order))
        first = epoch.next()  # the daemon would end the session at 4 MiB
        assert first is not None
        assert first.ids[:3].tolist() == [0, 1, 2]
        epoch.stop()


def test_another_sessions_dataset_is_refused(
    client: millrace.Client, session: millrace.Session, own_size: millrace.Recipe, folder: Path
) -> None:
    with client.session(own_size, batch=4, slots=2) as other:
        theirs = other.dataset_of(paths_of(folder, 5))
        session.dataset_of(paths_of(folder, 9))
        with pytest.raises(millrace.InvalidRequest, match="of another session"):
            session.epoch(theirs)


def test_what_was_drawn_when_an_order_is_interrupted_comes(session: millrace.Session, folder: Path) -> None:
    class Interrupted:
        drawn = -1

        def __iter__(self) -> Iterator[list[int]]:
            return self

        def __next__(self) -> list[int]:
            self.drawn += 1
            if self.drawn % 17 == 16:
                raise KeyboardInterrupt
            if self.drawn >= 100:
                raise StopIteration
            return [self.drawn % COUNT]

    epoch, seen = session.dataset(folder).epoch(order=Interrupted(), timeout=300), []
    interrupts = 0
    while True:
        try:
            batch = epoch.next()
        except KeyboardInterrupt:
            interrupts += 1
            continue
        if batch is None:
            break
        seen += batch.ids.tolist()
        del batch
    assert interrupts == 5
    assert seen == [number % COUNT for number in range(100) if number % 17 != 16]


def test_an_epoch_stops_whatever_its_order_does_about_it(client: millrace.Client, own_size: millrace.Recipe, folder: Path) -> None:
    def rude() -> Iterator[list[int]]:
        try:
            while True:
                yield [1]
        finally:
            raise RuntimeError("when it is closed")

    class Odd:
        close = False

        def __iter__(self) -> Iterator[list[int]]:
            return self

        def __next__(self) -> list[int]:
            return [1]

    with client.session(own_size, batch=2, slots=2, name="stopping") as session:
        dataset = session.dataset(folder)
        epoch = dataset.epoch(order=rude())
        assert epoch.next() is not None
        with pytest.raises(RuntimeError, match="when it is closed"):
            epoch.stop()
        assert epoch.next() is None
        odd = dataset.epoch(order=Odd())
        assert odd.next() is not None
        odd.stop()
        assert dataset.epoch(order=[[2]]).next() is not None  # the slots are free again


def test_a_slow_order_holds_back_no_batch_that_it_has_given(session: millrace.Session, folder: Path) -> None:
    asked: list[int] = []

    def slow() -> Iterator[list[int]]:
        for number in range(6):
            time.sleep(0.05)
            asked.append(number)
            yield [number]

    epoch = session.dataset(folder).epoch(order=slow())
    batch = epoch.next()
    assert batch is not None
    assert len(asked) < 3
    del batch
    assert [batch.ids.tolist() for batch in epoch] == [[number] for number in range(1, 6)]


def test_what_is_a_list_of_nothing_is_refused(client: millrace.Client, session: millrace.Session, folder: Path) -> None:
    good = path_of(folder, 0)
    for wrong in ({good}, {good: 1}, (path for path in [good])):
        with pytest.raises(millrace.InvalidRequest, match="is a sequence of paths, such as a list"):
            session.dataset_of(wrong)  # type: ignore[arg-type]
    with pytest.raises(millrace.InvalidRequest, match="file 1 of the list"):
        session.dataset_of([good, "/a/\ud800"])

    def refused() -> float:
        return client.statistics().metrics["millrace_requests_refused_total"].value

    before = refused()
    dataset = session.dataset_of([good])
    dataset.close()
    dataset.close()
    del dataset
    assert session.dataset_of([good]).path_of(0) == good  # so the daemon has seen what came before
    assert refused() == before


def test_parts_are_of_any_size_and_say_what_does_not_lie_beneath() -> None:
    paths = [f"/data/some/where/{number}.jpg" for number in range(50_000)]
    folder = common_folder(paths)
    assert folder == b"/data/some/where"
    for most in (1 << 20, 5_000, 1):
        made = list(parts(paths, np.arange(50_000), folder, most)) if most > 1 else list(parts(paths[:9], np.arange(9), folder, most))
        joined = b"".join(part.paths for part in made)
        assert joined.split(b"\0")[:-1] == [os.fsencode(path.rpartition("/")[2]) for path in paths[: len(joined.split(b"\0")) - 1]]
        assert all(len(part.paths) <= most or part.files == 1 for part in made)
        assert [label for part in made for label in part.labels] == list(range(sum(part.files for part in made)))
    with pytest.raises(NotBeneath):
        list(parts(["/data/some/where/a", "/data/some/where/../b"], None, folder, 1 << 20))
    assert common_folder(["/a/b", "/c/d"]) == b"/"
    assert common_folder(["/a/b", "/ab/d"]) == b"/"
