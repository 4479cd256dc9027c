"""Bad images under the default of epochs: made up for, warned of once, counted; and what is too many."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import millrace
import millrace.aio
import millrace.numpy
import pytest
from millrace._wire import messages as _messages
from millrace._wire import schema as _schema

from pictures import SIZE, png
from processes import eventually

OWN_SIZE = millrace.Recipe(resize=millrace.ExactSize(SIZE), layout="NHWC")


@pytest.fixture
def make(daemon: millrace.PrivateDaemon, folder: Path) -> Iterator[Any]:
    """Makes a loader of a new folder of ``good`` pictures and ``bad`` files spread among them."""
    loaders = []

    def of(good: int, bad: int, **options: Any) -> millrace.numpy.Loader:
        root = Path(tempfile.mkdtemp(prefix="mixed ", dir=folder.parent))
        (root / "class").mkdir()
        picture, total = png(1), good + bad
        broken = {(2 * n + 1) * total // (2 * bad) for n in range(bad)}
        for number in range(total):
            (root / "class" / f"{number:05d}.png").write_bytes(b"no picture" if number in broken else picture)
        loader = millrace.numpy.Loader(root, OWN_SIZE, **{"batch_size": 8, "address": daemon.address, **options})
        loaders.append(loader)
        return loader

    yield of
    for loader in loaders:
        loader.close()


def told(caught: list[warnings.WarningMessage]) -> list[str]:
    return [str(one.message) for one in caught if issubclass(one.category, millrace.BadImageWarning)]


def lengths(loader: millrace.numpy.Loader) -> list[int]:
    return [len(labels) for _, labels in loader]


def test_one_bad_image_costs_no_batch(make: Any) -> None:
    in_order, shuffled = make(23, 1), make(23, 1, shuffle=True)
    with pytest.warns(millrace.BadImageWarning, match=r"00012\.png: "):
        assert lengths(in_order) == [8, 7, 8]
    with pytest.warns(millrace.BadImageWarning, match=r"00012\.png: "):
        assert lengths(shuffled) == [8, 8, 8]
    assert (in_order.bad, shuffled.bad) == (1, 1)


def test_a_file_is_warned_of_once_and_counted_in_every_epoch(make: Any) -> None:
    loader = make(29, 3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            for _, _ in loader:
                pass
    assert len(told(caught)) == 3
    assert len(set(told(caught))) == 3
    assert loader.bad == 6


def test_the_warning_points_at_the_loop_and_names_path_and_reason(make: Any) -> None:
    loader = make(7, 1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _, _ in loader:
            (error,) = loader.batch.errors
    (warning,) = [one for one in caught if one.category is millrace.BadImageWarning]
    assert warning.filename == __file__
    assert str(warning.message) == f"{error.source}: {error.message}"
    assert error.path is not None
    assert os.path.exists(error.path)


def test_many_bad_files_are_twenty_warnings_and_one_line(make: Any) -> None:
    loader = make(40, 40, on_error="skip")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            lengths(loader)
    assert len(told(caught)) == 21
    assert told(caught)[-1].startswith("more than 20 files are bad: the others are counted in loader.bad")
    assert all(".png: " in text for text in told(caught)[:20])
    assert loader.bad == 120
    assert len(loader._bad._told) == 21  # nothing grows


def test_warnings_that_are_errors_end_the_loop_and_lose_no_batch(make: Any) -> None:
    loader = make(23, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", millrace.BadImageWarning)
        loop = iter(loader)
        next(loop)
        with pytest.raises(millrace.BadImageWarning):
            next(loop)
        assert loader.state_dict()["batches"] == 1


def test_warnings_can_be_switched_off(make: Any) -> None:
    loader = make(7, 1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore", millrace.BadImageWarning)
        lengths(loader)
    assert told(caught) == []
    assert loader.bad == 1


def test_a_script_prints_each_bad_file_once(make: Any) -> None:
    loader = make(29, 3)
    script = (
        "import sys, millrace.numpy, millrace\n"
        "recipe = millrace.Recipe(resize=millrace.ExactSize(millrace.Size(8, 8)))\n"
        "with millrace.numpy.Loader(sys.argv[1], recipe, batch_size=8, address=sys.argv[2]) as loader:\n"
        "    for _ in range(2):\n"
        "        for batch in loader:\n"
        "            pass\n"
        "    print(loader.bad)\n"
    )
    command = [sys.executable, "-c", script, str(loader._data.path), str(loader._options.address)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    assert ran.stdout == "6\n"
    assert ran.stderr.count("BadImageWarning") == 3
    assert "<string>:5: BadImageWarning" in ran.stderr


def test_too_many_bad_images_end_the_epoch(make: Any) -> None:
    loader = make(1200, 100, batch_size=50)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(millrace.SampleFailed, match="of the epoch's 1000 samples so far are bad, more than one in 20") as caught:
            lengths(loader)
    assert "mend the files" in str(caught.value)
    assert "set on_error to skip, zero or substitute" in str(caught.value)
    (example,) = caught.value.sample_errors
    assert example.path is not None
    assert example.path in str(caught.value)
    assert caught.value.batch_id is None


def test_an_epoch_that_was_ended_goes_on_when_it_is_told_to(make: Any) -> None:
    loader = make(1200, 100, batch_size=50, shuffle=True, seed=5)
    before: list[int] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(millrace.SampleFailed):
            before.extend(len(labels) for _, labels in loader)
        options: dict[str, Any] = {"batch_size": 50, "shuffle": True, "seed": 5, "address": loader._options.address}
        with millrace.numpy.Loader(loader._data.path, OWN_SIZE, on_error="substitute", **options) as other:
            other.load_state_dict(loader.state_dict())
            assert sum(before) + sum(lengths(other)) == 1300
            assert loader.bad + other.bad == 100


def test_a_folder_without_a_good_image_fails_at_once(make: Any) -> None:
    for shuffle in (False, True):
        loader = make(0, 16, shuffle=shuffle)
        with pytest.raises(millrace.SampleFailed, match=r"8 of the batch's 8 samples are bad, for example .*\.png: ") as caught:
            lengths(loader)
        assert len(caught.value.sample_errors) == 8
        assert "set on_error to skip or zero" in str(caught.value)
        assert loader.bad == 0  # that of the batches that came


def test_files_that_are_gone_look_like_a_wrong_root(make: Any) -> None:
    loader = make(16, 0, shuffle=True)
    assert lengths(loader) == [8, 8]
    for path in Path(loader._data.path).rglob("*.png"):
        path.unlink()

    with pytest.raises(millrace.SampleFailed, match=r"8 of the batch's 8 samples are bad, for example .*\.png: ") as caught:
        lengths(loader)

    assert {error.code for error in caught.value.sample_errors} == {"NOT_FOUND"}
    assert "A wrong root or a disk that is not mounted looks like this" in str(caught.value)


def test_a_policy_that_is_chosen_does_what_it_says(make: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loader = make(0, 16, on_error="skip")
        assert lengths(loader) == []
        assert loader.bad == 16
        assert sum(lengths(make(1000, 200, on_error="substitute", batch_size=50))) == 1200
    with pytest.raises(millrace.SampleFailed, match="the batch's on_error is fail"):
        lengths(make(15, 1, on_error="fail"))


def test_a_root_that_goes_away_is_no_bad_image(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "class").mkdir(parents=True)
    for number in range(32):
        (root / "class" / f"{number:02d}.png").write_bytes(png(number))
    with millrace.serve(root, lanes=2) as daemon, millrace.numpy.Loader(root, OWN_SIZE, batch_size=2, address=daemon.address) as loader:
        loop = iter(loader)
        next(loop)
        root.rename(tmp_path / "away")
        with millrace.connect(daemon.address) as client, client.session(OWN_SIZE, batch=1, slots=1) as session:

            def missed() -> bool:
                try:
                    session.dataset(root).close()
                except millrace.NotFound:
                    return True
                return False

            eventually(missed, "the daemon has looked")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(millrace.DaemonUnavailable, match=r"the root .*root is not there"):
                list(map(len, loop))
        assert loader.bad == 0


def test_epochs_and_asyncio_tell_of_each_batch(make: Any, daemon: millrace.PrivateDaemon) -> None:
    root = make(23, 1)._data.path

    async def counts() -> list[tuple[int, int, int]]:
        client = await millrace.aio.connect(daemon.address)
        async with client, await client.session(OWN_SIZE, batch=8) as session:
            dataset = await session.dataset(root)
            return [(len(batch), batch.bad, len(batch.errors)) async for batch in session.epoch(dataset)]

    assert asyncio.run(counts()) == [(8, 0, 0), (7, 1, 1), (8, 0, 0)]
    with millrace.connect(daemon.address) as client, client.session(OWN_SIZE, batch=8) as session:
        assert [batch.bad for batch in session.dataset(root).epoch(shuffle=True)].count(1) == 1
        with pytest.raises(millrace.InvalidRequest, match="on_error: must be one of fail"):
            session.dataset(root).epoch(on_error="ignore")
        with pytest.raises(millrace.InvalidRequest, match="on_error: must be one of fail"):
            session.submit([png(0)], on_error=None)  # type: ignore[arg-type]


def test_what_was_counted_travels_with_the_loader_and_not_with_its_state(make: Any) -> None:
    loader = make(7, 1)
    with pytest.warns(millrace.BadImageWarning):
        lengths(loader)
    copy = pickle.loads(pickle.dumps(loader))
    assert copy.bad == 1
    assert "bad" not in json.dumps(loader.state_dict())
    copy.close()


def test_a_batch_that_failed_for_another_reason_is_not_taken_for_bad_images() -> None:
    def raised(code: str, *bad: str) -> type[millrace.Error]:
        message = _schema.ServerMessage(failed={"batch_id": 1, "code": code, "errors": [{"index": 3, "code": one} for one in bad]})
        return type(_messages.failure(message.failed, 1))

    assert raised("UNAVAILABLE", "INVALID_ARGUMENT") is millrace.DaemonUnavailable
    assert raised("DEADLINE_EXCEEDED", "INVALID_ARGUMENT") is millrace.DeadlineExceeded
    assert raised("DEADLINE_EXCEEDED") is millrace.DeadlineExceeded
    assert raised("NOT_FOUND", "INVALID_ARGUMENT", "NOT_FOUND") is millrace.SampleFailed
