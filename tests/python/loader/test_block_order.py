"""``shuffle="blocks"`` of files: the daemon's order is the one that the package draws, for seeds, sizes and ranks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import millrace
import numpy as np
import pytest
from millrace._blocks.order import block_order, even_sizes
from millrace._blocks.window import window_of_files
from millrace._data.file_parts import WHOLE
from millrace._loader.permutation import share
from millrace.recipe import BlockShuffle

from folder_loaders import ids_of, make_loader  # noqa: F401, a fixture


def test_both_sides_draw_the_same_order(session: millrace.Session, folder: Path) -> None:
    dataset = session.dataset(folder)
    random = np.random.default_rng(7)

    for epoch in range(24):
        samples, window, ranks = (int(random.integers(1, high)) for high in (70, 9, 4))
        seed, rank = int(random.integers(0, 1 << 63)), int(random.integers(0, ranks))
        order = block_order(even_sizes(len(dataset), samples), window, seed, epoch).samples
        came = [
            int(number)
            for batch in dataset.epoch(
                batch=2, shuffle=BlockShuffle(samples, window), seed=seed, epoch=epoch, rank=rank, world_size=ranks, shard_tail="uneven"
            )
            for number in batch.ids
        ]
        assert came == share(order, rank, ranks, "uneven").tolist()


@pytest.mark.parametrize(("sizes", "window"), [([3, 5, 1, 4, 4], 2), ([1, 1, 1], 1), ([7], 3), ([2, 9, 3], 100)])
def test_a_window_is_whole_blocks(sizes: list[int], window: int) -> None:
    block_of = np.repeat(np.arange(len(sizes)), sizes)

    for seed in range(50):
        order = block_order(np.array(sizes), window, seed, 3)
        assert sorted(order.samples.tolist()) == list(range(sum(sizes)))
        rounds = order.rounds[block_of[order.samples]]
        assert rounds.tolist() == sorted(rounds.tolist())
        assert np.bincount(order.rounds).max() <= window


def test_a_loader_resumes_and_changes_its_ranks(make: Any) -> None:
    whole = ids_of(make(shuffle="blocks"))
    loader = make(shuffle="blocks")
    loop = iter(loader)
    had = [int(number) for _ in range(3) if next(loop) for number in loader.batch.ids]
    state = loader.state_dict()

    assert sorted(whole) == list(range(60))
    assert had == whole[:24]
    one = make(shuffle="blocks")
    one.load_state_dict(state)
    assert ids_of(one) == whole[24:]
    two = [make(shuffle="blocks", rank=rank, world_size=2, batch_size=4) for rank in range(2)]
    for each in two:
        each.load_state_dict(state)
    assert [ids_of(each) for each in two] == [whole[24::2], whole[25::2]]


def test_a_state_of_another_window_is_refused(make: Any) -> None:
    loader = make(shuffle="blocks")
    next(iter(loader))
    state = loader.state_dict()

    for other, told in (({"window": 1}, 'this loader has shuffle="blocks" that mixes 1 blocks'), ({"shuffle": True}, "has shuffle=True")):
        changed = make(**{"shuffle": "blocks", **other})
        changed.load_state_dict(state)
        with pytest.raises(millrace.FailedPrecondition, match=told):
            next(iter(changed))


def test_arguments_that_are_none(make: Any, session: millrace.Session, folder: Path) -> None:
    for wrong, told in (
        ({"shuffle": "block"}, 'shuffle is True, False or "blocks"'),
        ({"window": 0}, "window is a number of bytes"),
        ({"window": "1 GiB"}, "window is a number of bytes"),
    ):
        with pytest.raises(millrace.InvalidRequest, match=told):
            make(**wrong)
    dataset = session.dataset(folder)
    with pytest.raises(millrace.InvalidRequest, match="shuffle is True"):
        dataset.epoch(shuffle="some")  # type: ignore[arg-type]
    with pytest.raises(millrace.InvalidRequest, match="window_blocks"):
        next(iter(dataset.epoch(shuffle=BlockShuffle(4, 0))))


def test_windows_of_parts_whose_sizes_are_known() -> None:
    lengths = np.array([1000, WHOLE, 3000], np.uint64)

    assert window_of_files(lengths, 2000 * 256 * 5) == 5
    assert window_of_files(lengths, 1) == 1
    assert window_of_files(None, 1 << 30) == 32
