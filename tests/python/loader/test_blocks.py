"""Sources in blocks as loaders' datasets: order, ranks, resuming, bad blocks, what is read and kept."""

from __future__ import annotations

import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import millrace
import millrace.numpy
import numpy as np
import pytest
from millrace._blocks.order import block_order
from millrace._blocks.source import BlockSource
from millrace._loader.permutation import share
from millrace.encoded import Row

from pictures import SIZE
from restartable import Restartable

OWN_SIZE = millrace.Recipe(resize=millrace.ExactSize(SIZE), layout="NHWC")


class Pictures(BlockSource):
    """The folder's files as blocks of several sizes, each taken for 1,000 bytes; counts what is read."""

    columns = ("label", "name")

    def __init__(self, folder: Path) -> None:
        self.files = sorted(folder.glob("*/*.png"))
        self._sizes = np.array([7, 1, 12, 9, 3, 11, 8, 9])
        assert self._sizes.sum() == len(self.files)
        self.bad: dict[int, Exception] = {}
        self.was_read: list[int] = []
        self._lock = threading.Lock()

    @property
    def sizes(self) -> Any:
        return self._sizes

    @property
    def block_bytes(self) -> Any:
        return np.full(len(self._sizes), 1000)

    @property
    def fingerprint(self) -> str:
        return "pictures"

    def name_of(self, block: int) -> str:
        return f"block {block}"

    def read(self, block: int, stop: threading.Event | None = None) -> list[Row]:
        with self._lock:
            self.was_read.append(block)
        if block in self.bad:
            raise self.bad[block]
        begin = int(self._sizes[:block].sum())
        files = self.files[begin : begin + int(self._sizes[block])]
        return [Row(file.read_bytes(), (begin + i, file.stem), 0) for i, file in enumerate(files)]


@pytest.fixture
def source(folder: Path) -> Pictures:
    return Pictures(folder)


@pytest.fixture
def make(daemon: millrace.PrivateDaemon, source: Pictures) -> Iterator[Any]:
    made: list[millrace.numpy.Loader] = []

    def loader(of: Pictures | None = None, **options: Any) -> millrace.numpy.Loader:
        given = {"transform": OWN_SIZE, "batch_size": 5, "shuffle": "blocks", "window": 6000, "address": daemon.address, **options}
        made.append(millrace.numpy.Loader(source if of is None else of, **given))
        return made[-1]

    yield loader
    for one in made:
        one.close()


def epoch_of(loader: Any) -> list[int]:
    """Ids; the labels and names are looked at."""
    ids: list[int] = []
    for _, labels in loader:
        ids += loader.batch.ids.tolist()
        assert labels["label"].tolist() == loader.batch.ids.tolist()
        assert len(labels["name"]) == len(loader.batch.ids)
    return ids


def order_of(source: Pictures, epoch: int = 0) -> list[int]:
    order: list[int] = block_order(source.sizes, 3, 0, epoch).samples.tolist()
    return order


def test_an_epoch_is_the_documented_order(make: Any, source: Pictures, folder: Path, daemon: millrace.PrivateDaemon) -> None:
    loader = make()

    assert epoch_of(loader) == order_of(source)
    assert epoch_of(loader) == order_of(source, 1)
    assert sorted(source.was_read) == sorted([*range(8)] * 2)
    with millrace.numpy.Loader(folder, OWN_SIZE, batch_size=60, address=daemon.address) as files:
        whole = {int(number): image.copy() for images, _ in files for number, image in zip(files.batch.ids, images, strict=True)}
    for images, _ in loader:
        for number, image in zip(loader.batch.ids, images, strict=True):
            assert np.array_equal(image, whole[int(number)])


def test_without_shuffling_they_come_in_turn(make: Any, source: Pictures) -> None:
    assert epoch_of(make(shuffle=False)) == list(range(60))
    assert source.was_read[0] == 0


@pytest.mark.parametrize("tail", ["pad", "drop", "uneven"])
@pytest.mark.parametrize("ranks", [1, 3, 7])
def test_ranks_share_the_order(make: Any, source: Pictures, ranks: int, tail: str) -> None:
    for rank in range(ranks):
        mine = share(np.array(order_of(source)), rank, ranks, tail)  # type: ignore[arg-type]
        assert epoch_of(make(rank=rank, world_size=ranks, shard_tail=tail)) == mine.tolist()


@pytest.mark.parametrize("batches", [1, 4, 6, 11])
def test_resuming_reads_no_more_than_what_is_left_of_the_window(make: Any, source: Pictures, folder: Path, batches: int) -> None:
    loader = make(of=Pictures(folder))  # whose threads go on reading ahead
    loop = iter(loader)
    for _ in range(batches):
        next(loop)
    state = loader.state_dict()
    other = make(window=None)

    other.load_state_dict(state)
    assert epoch_of(other) == order_of(source)[batches * 5 :]
    block_of = np.repeat(np.arange(8), source.sizes)
    assert sorted(source.was_read) == sorted(set(block_of[order_of(source)[batches * 5 :]].tolist()))


def test_two_ranks_become_one(make: Any, source: Pictures) -> None:
    two = [make(rank=rank, world_size=2) for rank in range(2)]
    loops = [iter(each) for each in two]
    for loop in loops:
        for _ in range(3):
            next(loop)
    one = make(batch_size=10)

    one.load_state_dict(two[1].state_dict())
    assert epoch_of(one) == order_of(source)[30:]


def test_other_orders_and_states_are_refused(make: Any, source: Pictures) -> None:
    for wrong in ({"shuffle": True}, {"shuffle": False, "sampler": range(60)}):
        with pytest.raises(millrace.InvalidRequest, match='take shuffle="blocks"'):
            make(**wrong)
    with pytest.raises(millrace.InvalidRequest, match="more than half of window=1999"):
        next(iter(make(window=1999)))
    loader = make()
    next(iter(loader))
    other = make(window=8000)
    other.load_state_dict(loader.state_dict())
    with pytest.raises(millrace.FailedPrecondition, match="window was 6000 and is 8000"):
        next(iter(other))


@pytest.mark.parametrize("damage", [ValueError("crc does not match"), OSError("input/output error")])
def test_a_damaged_block_is_bad_images(make: Any, source: Pictures, damage: Exception) -> None:
    source.bad[4] = damage
    begin = int(source.sizes[:4].sum())
    lost = set(range(begin, begin + 3))

    skipping, blank = make(on_error="skip"), make(on_error="zero")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert epoch_of(skipping) == [number for number in order_of(source) if number not in lost]
        for images, labels in blank:
            for error in blank.batch.errors:
                assert (error.source, error.message) == ("block 4", f"the block cannot be read: {damage}")
            for number, image, label in zip(blank.batch.ids.tolist(), images, labels["label"], strict=True):
                assert (label == -1) == (number in lost)
                assert (not image.any()) == (number in lost)
        with pytest.raises(millrace.SampleFailed, match=f"block 4.*: the block cannot be read: {damage}"):
            epoch_of(make(on_error="fail"))
    said = [str(warning.message) for warning in told if warning.category is millrace.BadImageWarning]
    assert said == [f"loader: block 4 cannot be read, so its 3 samples are bad images: {damage}"] * 2  # of each loop that went on
    assert {warning.filename for warning in told} == {__file__}
    assert skipping.bad == blank.bad == 3


def test_another_exception_of_the_source_ends_the_loop(make: Any, source: Pictures) -> None:
    source.bad[2] = RuntimeError("a bug")

    with pytest.raises(RuntimeError, match="a bug"):
        epoch_of(make())


def test_no_more_is_read_ahead_than_the_window_holds(make: Any, source: Pictures) -> None:
    loop = iter(make(batch_size=1, slots=2))

    next(loop)
    # Window of three blocks, and the next one: nothing of the third.
    assert len(source.was_read) <= 6
    order = np.array(order_of(source))
    block_of = np.repeat(np.arange(8), source.sizes)
    rounds = block_order(source.sizes, 3, 0, 0).rounds
    assert {int(rounds[block]) for block in source.was_read} <= {0, 1}
    assert block_of[order[0]] in source.was_read


def test_threads_end_with_the_session_whatever_is_left_open(make: Any, source: Pictures) -> None:
    def threads() -> list[threading.Thread]:
        return [thread for thread in threading.enumerate() if thread.name.startswith(("millrace-blocks", "millrace-feed"))]

    loader = make(batch_size=1)
    loop = iter(loader)
    next(loop)
    assert threads()
    loader.close()
    for thread in threads():
        thread.join(30)
    assert not threads()
    with pytest.raises(millrace.Cancelled):
        next(loop)


def test_a_read_that_never_returns_does_not_keep_the_program() -> None:
    code = """
import threading, time, numpy as np
import millrace._process.exit
from millrace._blocks.order import listed_order
from millrace._blocks.reader import BlockReader
millrace._process.exit._PATIENCE = 0.1
begun = threading.Event()
class Source:
    sizes = block_bytes = np.array([3, 3])
    at_once = 1
    def read(self, block, stop):
        begun.set()
        time.sleep(3600)
reader = BlockReader(Source(), listed_order(Source.sizes), np.arange(6), 0, 0, 2)
begun.wait()
print("the end")
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "the end\n", "")


def test_an_epoch_goes_on_after_the_daemon_was_restarted(restartable: Restartable, source: Pictures) -> None:
    options: dict[str, Any] = {"batch_size": 4, "shuffle": "blocks", "window": 6000, "address": restartable.socket, "resume": True}

    def read(loader: millrace.numpy.Loader, kills: set[int]) -> list[tuple[int, bytes]]:
        seen = []
        for count, (images, _) in enumerate(loader):
            seen += [(int(n), image.tobytes()) for n, image in zip(loader.batch.ids, images, strict=True)]
            if count in kills:
                restartable.kill()
                restartable.start()
        return seen

    with millrace.numpy.Loader(source, millrace.Recipe.train(24), **options) as loader:
        whole = read(loader, set())
    with millrace.numpy.Loader(source, millrace.Recipe.train(24), **options) as loader:
        assert read(loader, {0, 5, 9}) == whole
    assert [number for number, _ in whole] == order_of(source)
