"""Going on within an epoch: on another number of ranks, or after batches that are left out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import millrace
import millrace.numpy
import pytest

from pictures import COUNT, SIZE

OWN_SIZE = millrace.Recipe(resize=millrace.ExactSize(SIZE), layout="NHWC")


@pytest.fixture
def make(daemon: millrace.PrivateDaemon, folder: Path) -> Iterator[Any]:
    made: list[millrace.numpy.Loader] = []

    def loader(**options: Any) -> millrace.numpy.Loader:
        options = {"batch_size": 4, "shuffle": True, "seed": 3, "rank": 0, "world_size": 1, "address": daemon.address, **options}
        made.append(millrace.numpy.Loader(folder, OWN_SIZE, **options))
        return made[-1]

    yield loader
    for one in made:
        one.close()


def ids_of(loader: Any, batches: int | None = None) -> list[int]:
    seen: list[int] = []
    for count, _ in enumerate(loader, 1):
        seen += loader.batch.ids.tolist()
        if count == batches:
            break
    return seen


def taken(make: Any, world_size: int, batches: int, state: Any = None, **options: Any) -> tuple[list[int], Any]:
    """The ids that so many ranks read in so many batches each (0: to the end), and the state of the last one."""
    seen: list[int] = []
    kept = None
    for rank in range(world_size):
        loader = make(rank=rank, world_size=world_size, **options)
        if state is not None:
            loader.load_state_dict(json.loads(json.dumps(state)))
            loader.set_epoch(state["epoch"])  # as training loops do
        seen += ids_of(loader, batches or None)
        kept = loader.state_dict()
    return seen, kept


@pytest.mark.parametrize(
    ("before", "after"), [((2, 4, 3), (1, 8)), ((2, 4, 3), (4, 2)), ((3, 4, 2), (1, 4)), ((1, 4, 6), (2, 4)), ((2, 4, 3), (3, 8))]
)
@pytest.mark.parametrize("tail", ["pad", "drop", "uneven"])
def test_another_number_of_ranks_goes_on_after_the_images_that_were_read(
    make: Any, before: tuple[int, int, int], after: tuple[int, int], tail: str
) -> None:
    world_size, batch_size, batches = before

    first, state = taken(make, world_size, batches, batch_size=batch_size, shard_tail=tail)
    second, _ = taken(make, after[0], 0, state, batch_size=after[1], shard_tail=tail)

    assert len(set(first)) == len(first) == world_size * batch_size * batches
    assert sorted(first + second) == list(range(COUNT))


def test_what_was_read_is_where_the_order_of_the_epoch_begins(make: Any) -> None:
    whole = ids_of(make())

    first, _ = taken(make, 3, 2)

    assert sorted(first) == sorted(whole[:24])


def test_where_no_batch_begins_there_the_error_says_what_to_do(make: Any) -> None:
    _, state = taken(make, 2, 3)

    with pytest.raises(millrace.FailedPrecondition, match="after 24 images") as told:
        taken(make, 5, 0, state)
    with pytest.raises(millrace.FailedPrecondition, match="choose batch_size=2,"):
        taken(make, 4, 0, state, batch_size=5)

    assert "finish epoch 0 with 2 ranks" in str(told.value)
    assert "set_epoch(0), without the state" in str(told.value)
    assert "choose" not in str(told.value)
    assert len(taken(make, 4, 0, state, batch_size=2)[0]) == COUNT - 24
    anew = make(rank=4, world_size=5)
    anew.set_epoch(0)
    assert len(ids_of(anew)) == COUNT // 5


def test_at_the_beginning_of_an_epoch_any_number_of_ranks_goes_on(make: Any) -> None:
    _, state = taken(make, 2, 0)

    assert state["epoch"] == 1
    assert sorted(taken(make, 5, 0, state)[0]) == list(range(COUNT))


@pytest.mark.parametrize("drop_last", [False, True])
def test_an_epoch_of_which_all_was_read_is_over_on_any_number_of_ranks(make: Any, drop_last: bool) -> None:
    first = make(rank=0, world_size=2, batch_size=7, drop_last=drop_last)
    iterator = iter(first)
    for _ in range(len(first)):
        next(iterator)

    other = make(rank=2, world_size=3, batch_size=9, drop_last=drop_last)
    other.load_state_dict(first.state_dict())

    assert ids_of(other) == []
    assert (other.epoch, len(ids_of(other))) == (1, 18 if drop_last else 20)


def test_a_state_that_went_on_elsewhere_counts_its_own_batches(make: Any) -> None:
    _, state = taken(make, 2, 3)
    other = make(batch_size=8)
    other.load_state_dict(state)

    next(iter(other))

    assert other.state_dict()["batches"] == 4
    assert len(taken(make, 4, 0, other.state_dict())[0]) == COUNT - 32


def test_batches_are_left_out(make: Any) -> None:
    whole, following = make(), make()
    expected = [ids_of(whole), ids_of(whole)]

    ids_of(following)
    assert following.skip_first_batches(3) is following
    following.set_epoch(1)
    assert following.state_dict() == {"version": 1, "epoch": 1, "batches": 3, "position": ""}

    assert ids_of(following, 2) == expected[1][12:20]
    assert (following.epoch, following.state_dict()["batches"]) == (1, 5)
    assert len(ids_of(following)) == COUNT


def test_nothing_is_decoded_of_what_is_left_out(make: Any, client: millrace.Client) -> None:
    loader = make(name="skips", batch_size=10)
    loader.skip_first_batches(5)

    assert len(ids_of(loader)) == 10

    (session,) = [one for one in client.statistics().sessions if one.name == "skips"]
    assert session.batches == 1


def test_as_many_batches_as_there_are_leave_nothing_and_the_next_epoch_is_whole(make: Any) -> None:
    loader = make()
    for skipped in (len(loader), 1000):
        assert ids_of(loader.skip_first_batches(skipped)) == []
        assert len(ids_of(loader)) == COUNT


def test_left_out_batches_are_a_ranks_own_and_a_state_of_them_is_loaded_anywhere(make: Any) -> None:
    shares = [make(rank=rank, world_size=2) for rank in range(2)]
    shares[0].skip_first_batches(6)
    state = shares[0].state_dict()
    shares[1].load_state_dict(state)

    assert len(set(ids_of(shares[0]) + ids_of(shares[1]))) == COUNT - 48


@pytest.mark.parametrize("batches", [-1, 1.5, "2", None])
def test_a_number_that_is_none_is_refused(make: Any, batches: Any) -> None:
    with pytest.raises(millrace.InvalidRequest, match="skip_first_batches: a number of batches"):
        make().skip_first_batches(batches)
