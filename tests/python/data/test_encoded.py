"""Sources that hold encoded images themselves: any iterable, any object with numbered rows. A thread reads them and sends them."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import millrace
import millrace.numpy
import numpy as np
import pytest
from millrace._loader import feed as _feed

from pictures import COUNT, EACH, path_of, pixels_of, png
from processes import MODULES
from sources import OWN_SIZE, Rows, hugging_face, make_loader, pictures_table, seen_of  # noqa: F401, fixtures


def test_images_labels_and_ids_of_an_iterable(make: Any) -> None:
    loader = make(millrace.Encoded(Rows()))

    for _ in range(2):
        assert seen_of(loader) == [(n, n // EACH, pixels_of(n).tobytes()) for n in range(COUNT)]
    assert loader.batch is None
    with pytest.raises(TypeError, match="has no len"):
        len(loader)


def test_paths_are_read_by_the_daemon(make: Any, folder: Path) -> None:
    loader = make(millrace.Encoded(Rows(make=lambda n: (path_of(folder, n), float(n)))))

    labels = np.concatenate([labels for _, labels in loader])

    assert labels.dtype == np.float64
    assert labels.tolist() == list(range(COUNT))


def test_what_is_beside_an_image_comes_with_it(make: Any) -> None:
    rows = Rows(20, lambda n: {"__key__": str(n), "png": png(n), "cls": str(n).encode(), "txt": f"picture {n}".encode(), "json": b"[1, 2]"})

    for _, labels in make(millrace.Encoded(rows, columns=["txt", "json"]), batch_size=20):
        assert labels["label"].tolist() == list(range(20))
        assert labels["label"].dtype == np.int64
        assert labels["txt"][17] == "picture 17"
        assert labels["json"].tolist() == [[1, 2]] * 20


def test_functions_find_what_is_wanted(make: Any) -> None:
    rows = Rows(8, lambda n: [n, {"content": png(n)}])
    encoded = millrace.Encoded(rows, image=lambda row: row[1]["content"], label=lambda row: [row[0], 2 * row[0]])

    for _, labels in make(encoded):
        np.testing.assert_array_equal(labels, [[n, 2 * n] for n in range(8)])


def test_large_batches_go_through_the_ring(make: Any, client: millrace.Client) -> None:
    large = [png(n) + bytes(300_000) for n in range(8)]  # a decoder reads to a picture's end
    loader = make(millrace.Encoded(Rows(400, lambda n: (large[n % 8], n))), slots=3)

    assert [label for _, label, _ in seen_of(loader)] == list(range(400))


def test_the_thread_reads_only_so_far_ahead(make: Any) -> None:
    rows = Rows(10_000)
    loader = make(millrace.Encoded(rows), slots=3)
    iterator = iter(loader)
    next(iterator)
    time.sleep(0.5)
    assert rows.taken <= 8 * (1 + 3 + 1 + 1)
    iterator.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "millrace-feed"]


def test_what_the_source_raises_ends_the_loop_after_what_came_before(make: Any) -> None:
    def broken(n: int) -> Any:
        if n == 19:
            raise ZeroDivisionError("the nineteenth")
        return png(n), n

    loader = make(millrace.Encoded(Rows(make=broken)))
    seen: list[int] = []
    loop = (seen.extend(labels.tolist()) for _, labels in loader)  # type: ignore[func-returns-value]
    with pytest.raises(ZeroDivisionError, match="the nineteenth"):
        list(loop)
    assert seen == list(range(16))


def test_drop_last(make: Any) -> None:
    assert len(seen_of(make(millrace.Encoded(Rows()), batch_size=16, drop_last=True))) == 48


def test_a_source_that_ends_for_good_is_refused() -> None:
    with pytest.raises(millrace.InvalidRequest, match="only once"):
        millrace.Encoded(iter([png(0)]))
    with pytest.raises(millrace.InvalidRequest, match="a dataset or an iterable of rows, not a int"):
        millrace.Encoded(3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (np.zeros((4, 4, 3)), r"gives a numpy\.ndarray: the daemon decodes, so leave that out"),
        ({"text": "no picture"}, "no image: its keys are 'text'; say where it is with image="),
        ({"png": png(0), "caption": "x"}, "no label: its keys are 'png', 'caption'; say where it is with label="),
        ((png(0), 1, 2), "no image: it is a tuple of 3"),
        ({"png": png(0), "cls": b"one"}, "'cls' of a row cannot be read"),
    ],
)
def test_rows_that_are_not_understood_are_refused_with_what_to_do(make: Any, row: Any, said: str) -> None:
    with pytest.raises(millrace.InvalidRequest, match=said):
        seen_of(make(millrace.Encoded(Rows(make=lambda n: row))))


def test_other_options_that_say_the_order_are_refused(make: Any) -> None:
    for options in ({"shuffle": True}, {"sampler": [0, 1]}, {"shard_tail": "drop"}):
        with pytest.raises(millrace.InvalidRequest, match="which says the order itself"):
            make(millrace.Encoded(Rows()), **options)
    with pytest.raises(millrace.InvalidRequest, match="extensions= is for folders"):
        seen_of(make(millrace.Encoded(Rows()), extensions="jpg"))


def test_ranks_need_a_source_that_is_sharded(make: Any) -> None:
    with pytest.raises(millrace.InvalidRequest, match=r"each would get all of the source.*sharded=True"):
        seen_of(make(millrace.Encoded(Rows()), rank=0, world_size=2))
    assert len(seen_of(make(millrace.Encoded(Rows(), sharded=True), rank=0, world_size=2))) == COUNT


def test_bad_images_are_left_out_and_warned_of(make: Any) -> None:
    rows = Rows(make=lambda n: (b"no picture" if n in (3, 20) else png(n), n))
    loader = make(millrace.Encoded(rows))

    with pytest.warns(millrace.BadImageWarning, match=r"^sample (3|20): not an image") as told:
        labels = [label for _, label, _ in seen_of(loader)]

    assert labels == [n for n in range(COUNT) if n not in (3, 20)]
    assert (loader.bad, len(told)) == (2, 2)


@pytest.mark.parametrize(("on_error", "count"), [("skip", COUNT - 16), ("zero", COUNT)])
def test_on_error_says_it_otherwise(make: Any, on_error: Any, count: int) -> None:
    rows = Rows(make=lambda n: (b"no picture" if n < 16 else png(n), n))

    with pytest.warns(millrace.BadImageWarning):
        assert len(seen_of(make(millrace.Encoded(rows), on_error=on_error))) == count
    with pytest.raises(millrace.SampleFailed):
        seen_of(make(millrace.Encoded(rows), on_error="fail"))


def test_a_source_of_which_much_is_bad_ends_the_loop(make: Any) -> None:
    rows = Rows(3000, lambda n: (b"no picture" if n % 10 == 0 else png(n % 8), n))
    loader = make(millrace.Encoded(rows), batch_size=50)
    with pytest.warns(millrace.BadImageWarning), pytest.raises(millrace.SampleFailed, match="100 of 1000 images are bad"):
        seen_of(loader)
    with pytest.raises(millrace.SampleFailed, match="no image of the batch is good"):
        seen_of(make(millrace.Encoded(Rows(make=lambda n: (b"no picture", n)))))


@pytest.mark.parametrize("taken", [1, 3, 8])
def test_a_state_resumes_by_taking_again(make: Any, taken: int) -> None:
    recipe = millrace.Recipe.train(24)
    whole = seen_of(make(millrace.Encoded(Rows()), recipe, seed=5))
    first = make(millrace.Encoded(Rows()), recipe, seed=5)
    before = seen_of(first, taken)

    second = make(millrace.Encoded(Rows()), recipe, seed=5)
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))

    assert before + seen_of(second) == whole
    assert seen_of(second)[0][0] == 0


def test_a_source_that_gives_others_than_then_is_refused(make: Any) -> None:
    first = make(millrace.Encoded(Rows()))
    seen_of(first, 2)
    for other in (Rows(make=lambda n: (png(n + 1), n)), Rows(10)):
        second = make(millrace.Encoded(other))
        second.load_state_dict(first.state_dict())
        with pytest.raises(millrace.FailedPrecondition, match="gave other rows than when the state was saved"):
            seen_of(second)


@pytest.mark.torch  # Hugging Face's package is there where PyTorch is
def test_states_of_another_kind_are_refused(make: Any, folder: Path, table: Any) -> None:
    loaders = [lambda: make(millrace.Encoded(Rows())), lambda: make(folder), lambda: make(table)]
    for one in loaders:
        first = one()
        next(iter(first))
        for other in loaders:
            if other is not one:
                second = other()
                second.load_state_dict(first.state_dict())
                with pytest.raises(millrace.FailedPrecondition, match="state"):
                    next(iter(second))


def test_the_daemon_that_ends_ends_the_loop(folder: Path) -> None:
    with millrace.serve(folder, lanes=1) as daemon:
        loader = millrace.numpy.Loader(millrace.Encoded(Rows(10_000)), OWN_SIZE, batch_size=8, address=daemon.address)
        iterator = iter(loader)
        next(iterator)
        daemon.stop()
        with pytest.raises(millrace.DaemonUnavailable):
            list(map(len, iterator))
    assert not [thread for thread in threading.enumerate() if thread.name == "millrace-feed"]


def test_a_source_that_gives_nothing_is_waited_for_only_so_long(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    release, stop = threading.Event(), _feed.Feed.stop

    def slow(n: int) -> Any:
        release.wait(300)
        return png(n), n

    def stopping(self: _feed.Feed) -> None:
        release.set()  # the loop has given up; it waits for its thread now
        stop(self)

    monkeypatch.setattr(_feed.Feed, "stop", stopping)

    loader = make(millrace.Encoded(Rows(make=slow)), timeout=0.2)
    with pytest.raises(millrace.DeadlineExceeded, match=r"the source gave nothing within 0\.2 s"):
        next(iter(loader))


def test_nothing_is_left_of_loops_that_were_left(make: Any) -> None:
    for _ in range(5):
        for _ in make(millrace.Encoded(Rows(10_000))):
            break
    gc.collect()
    assert not [thread for thread in threading.enumerate() if thread.name == "millrace-feed"]


INTERRUPTED = """
import os, signal, sys, threading, time
import millrace, millrace.numpy
from pictures import SIZE, png

signal.signal(signal.SIGINT, signal.default_int_handler)

interrupted = threading.Event()

class Slow:
    def __iter__(self):
        for n in range(1000):
            if n > 20:  # so that there is no third batch before
                interrupted.wait(300)
                time.sleep(0.2)
            yield png(n % 5), n

def interrupt():
    os.kill(os.getpid(), signal.SIGINT)
    interrupted.set()

with millrace.numpy.Loader(
    millrace.Encoded(Slow()), millrace.Recipe(resize=millrace.ExactSize(SIZE)), batch_size=8, address=sys.argv[1]
) as loader:
    try:
        for number, _ in enumerate(loader):
            if number == 1:
                threading.Timer(0.3, interrupt).start()
    except KeyboardInterrupt:
        print(number, [thread.name for thread in threading.enumerate() if thread.name == "millrace-feed"])
"""


def test_an_interrupted_loop_leaves_no_thread(daemon: millrace.PrivateDaemon) -> None:
    command = [sys.executable, "-c", INTERRUPTED, daemon.address]

    told = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, cwd=MODULES)

    assert (told.returncode, told.stdout) == (0, "1 []\n"), told.stderr
