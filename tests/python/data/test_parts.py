"""Parts of files, through a real daemon: equal to the files that they were made of."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import millrace
import millrace.numpy
import numpy as np
import pytest
from millrace._data.file_parts import FileParts

Joined = tuple[list[str], list[millrace.Part]]


@pytest.fixture
def joined(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Joined:
    """The folder's pictures, and the same as parts of two files, among other bytes."""
    files = sorted(str(path) for path in folder.rglob("*.png"))
    homes = [folder.parent / f"joined-{tmp_path_factory.mktemp('n').name}-{number}" for number in range(2)]
    parts = []
    for number, file in enumerate(files):
        with homes[number % 2].open("ab") as home:
            home.write(os.urandom(512))
            content = Path(file).read_bytes()
            parts.append(millrace.Part(home.name, home.tell(), len(content)))
            home.write(content)
    return files, parts


def batches_of(samples: Sequence[object], daemon: millrace.PrivateDaemon, recipe: millrace.Recipe, **options: object) -> list[object]:
    loader = millrace.numpy.Loader(samples=samples, transform=recipe, batch_size=16, address=daemon.address, **options)  # type: ignore[arg-type]
    return [(loader.batch.ids.tolist(), np.array(images), np.array(labels)) for images, labels in loader if loader.batch is not None]


@pytest.mark.parametrize("options", [{}, {"shuffle": True, "seed": 3}, {"shuffle": True, "rank": 1, "world_size": 2}])
def test_an_epoch_of_parts_is_that_of_their_files(
    daemon: millrace.PrivateDaemon, joined: Joined, own_size: millrace.Recipe, options: dict[str, object]
) -> None:
    files, parts = joined
    mixed = [file if number % 5 == 0 else part for number, (file, part) in enumerate(zip(files, parts, strict=True))]
    expected = batches_of([(file, n) for n, file in enumerate(files)], daemon, own_size, **options)
    for sources in (parts, mixed):
        got = batches_of([(source, n) for n, source in enumerate(sources)], daemon, own_size, **options)
        assert len(got) == len(expected) > 0
        for one, other in zip(got, expected, strict=True):
            assert one[0] == other[0]  # type: ignore[index]
            assert np.array_equal(one[1], other[1])  # type: ignore[index]
            assert np.array_equal(one[2], other[2])  # type: ignore[index]


def test_a_part_is_submitted(session: millrace.Session, joined: Joined) -> None:
    files, parts = joined
    of_parts = session.get(session.submit([parts[3], millrace.Sample(parts[4], label=7)]))
    of_files = session.get(session.submit([files[3], files[4]]))
    assert np.array_equal(of_parts.images, of_files.images)
    assert of_parts.labels.tolist() == [-1, 7]
    with pytest.raises(millrace.SampleFailed, match="sample would be") as why:
        session.get(session.submit([parts[3]._replace(offset=1 << 40)]))
    (error,) = why.value.sample_errors
    assert error.path == parts[3].path
    assert error.source == f"{parts[3].path}[{1 << 40}+{parts[3].length}]"


def test_a_dataset_names_its_parts(session: millrace.Session, joined: Joined) -> None:
    files, parts = joined
    dataset = session.dataset_of([*parts[:2], files[2]], [5, 6, 7])
    assert dataset.paths_of([1, 2]) == [f"{parts[1].path}[{parts[1].offset}+{parts[1].length}]", files[2]]
    assert [dataset.part_of(number) for number in range(3)] == [parts[0], parts[1], None]
    with pytest.raises(millrace.InvalidRequest, match="no sample 3"):
        dataset.part_of(3)
    batch = dataset.epoch().next()
    assert batch is not None
    assert batch.labels.tolist() == [5, 6, 7]
    assert batch.paths == dataset.paths_of([0, 1, 2])


def test_a_file_that_changed_since_it_was_listed_gives_no_pixels(session: millrace.Session, joined: Joined) -> None:
    _, parts = joined
    file = str(parts[0].path)
    mine = [part for part in parts if part.path == file]
    status = os.stat(file)
    listed = FileParts(
        [file],
        np.zeros(len(mine), np.uint32),
        np.array([part.offset for part in mine], np.uint64),
        np.array([part.length for part in mine], np.uint64),
        np.array([status.st_size], np.uint64),
        np.array([status.st_mtime_ns], np.int64),
        [f"member {number}" for number in range(len(mine))],
    )
    dataset = session.dataset_of(listed)
    before = dataset.epoch(on_error="skip").next()
    assert before is not None
    assert before.bad == 0
    os.utime(file, ns=(status.st_mtime_ns, status.st_mtime_ns + 1_000_000_000))
    after = dataset.epoch(on_error="skip").next()
    assert after is not None
    assert after.bad == len(after.errors) > 0
    assert {error.code for error in after.errors} == {"FAILED_PRECONDITION"}
    assert after.errors[0].source.endswith("] member 0")


def test_pairs_may_be_parts(daemon: millrace.PrivateDaemon, joined: Joined) -> None:
    files, parts = joined
    pairs = millrace.Pairs(list(zip(parts, files, strict=True)))
    assert pairs[1] == (parts[1], files[1])
    assert list(pairs.subset([2])) == [(parts[2], files[2])]
