"""Samplers of the user's: their order is the batches', and resumes exactly."""

from __future__ import annotations

import json
import pickle
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import millrace
import millrace.numpy
import numpy as np
import pytest
from millrace._data.sample_copies import Copies

from folder_loaders import OWN_SIZE, make_loader  # noqa: F401, a fixture
from pictures import COUNT, pixels_of

TRAIN = millrace.Recipe.train(24)


def ids_of(loader: Any) -> list[list[int]]:
    return [loader.batch.ids.tolist() for _ in loader]


def seen_of(loader: Any, most: int | None = None, between: Callable[[], Any] = lambda: None) -> list[tuple[int, bytes]]:
    seen = []
    for number, (images, _) in enumerate(loader, 1):
        seen += [(int(n), image.tobytes()) for n, image in zip(loader.batch.ids, images, strict=True)]
        between()
        if number == most:
            break
    return seen


def test_the_order_is_the_samplers(make: Any) -> None:
    order = [59, 0, 0, 7, *range(20, 40)]
    loader = make(sampler=order)

    for _ in range(2):
        assert [n for batch in ids_of(loader) for n in batch] == order
    assert seen_of(loader) == [(n, pixels_of(n).tobytes()) for n in order]
    assert (len(loader), loader.samples, loader.sampler is order) == (3, 24, True)
    assert len(ids_of(make(sampler=range(20), drop_last=True))) == len(make(sampler=range(20), drop_last=True)) == 2


def test_batches_are_the_batch_samplers(make: Any) -> None:
    batches = [[1], [2, 3, 4], [5, 5], [6, 7, 8, 9]]

    loader = make(batch_sampler=batches, batch_size=4)

    assert ids_of(loader) == batches
    assert len(loader) == 4
    with pytest.raises(TypeError, match="len"):
        _ = loader.samples
    with pytest.raises(millrace.InvalidRequest, match="a batch of 4; batch_size=3 is the most"):
        ids_of(make(batch_sampler=batches, batch_size=3))


class Endless:
    """Without a length."""

    def __iter__(self) -> Iterator[int]:
        while True:
            yield random.randrange(COUNT)


def test_a_sampler_without_an_end_or_a_length(make: Any) -> None:
    loader = make(sampler=Endless())
    with pytest.raises(TypeError):
        len(loader)
    assert len(seen_of(loader, 20)) == 160


@pytest.mark.parametrize(
    ("sampler", "said"),
    [
        ([1, COUNT], "gave the sample 60; the dataset's are 0 to 59"),
        ([-1], "gave the sample -1"),
        ([1.5], "no sample's number"),
        (["a"], "no sample's number"),
    ],
)
def test_what_a_sampler_may_not_give(make: Any, sampler: Any, said: str) -> None:
    with pytest.raises(millrace.InvalidRequest, match=said):
        ids_of(make(sampler=sampler))


def test_what_a_sampler_raises_comes_after_its_batches(make: Any) -> None:
    class Failing:
        def __iter__(self) -> Iterator[int]:
            yield from range(20)
            raise ZeroDivisionError("of the sampler")

    loader, seen = make(sampler=Failing()), []
    loop = (seen.append(loader.batch.ids.tolist()) for _ in loader)
    with pytest.raises(ZeroDivisionError, match="of the sampler"):
        list(loop)
    assert sum(map(len, seen)) == 16


def test_arguments_that_contradict_a_sampler_are_refused(make: Any) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"sampler": [0], "shuffle": True}, "leave out shuffle=True"),
        ({"batch_sampler": [[0]], "shuffle": True, "batch_size": 1}, "leave out shuffle=True"),
        ({"sampler": [0], "batch_sampler": [[0]]}, "give one of them"),
        ({"batch_sampler": [[0]], "drop_last": True}, "leave out drop_last"),
        ({"sampler": [0], "rank": 0, "world_size": 2}, "leave out rank, world_size: .*DistributedSampler"),
        ({"sampler": [0], "shard_tail": "drop"}, "leave out shard_tail"),
        ({"sampler": 7}, "not a int"),
    ]
    for options, said in cases:
        with pytest.raises(millrace.InvalidRequest, match=said):
            make(**options)
    with pytest.raises(millrace.InvalidRequest, match="give batch_size=, the most samples"):
        millrace.numpy.Loader("/data", batch_sampler=[[0]])


def test_a_sample_that_comes_again_has_another_box(make: Any) -> None:
    loader = make(sampler=[5, 7, 5, 5, 7, 9, 5], batch_size=3, transform=TRAIN, seed=2)
    plain = make(transform=TRAIN, seed=2)
    first = {int(n): box.tolist() for _ in plain for n, box in zip(plain.batch.ids, plain.batch.boxes, strict=True)}

    runs = []
    for _ in range(2):
        loader.set_epoch(0)
        runs.append([(int(n), tuple(box)) for _ in loader for n, box in zip(loader.batch.ids, loader.batch.boxes.tolist(), strict=True)])

    assert runs[0] == runs[1]
    assert len(set(runs[0])) == 7
    assert {n: list(box) for n, box in runs[0][:2]} == {n: first[n] for n in (5, 7)}  # as without a sampler


def test_copies_are_numbered_over_ranks() -> None:
    ids = [np.array(batch) for batch in ([3, 1, 3, 3], [1, 0], [3, 3, 2])]
    seen: dict[int, list[int]] = {}
    for rank in range(2):
        copies = Copies(4, rank, 2)
        for batch in ids:
            for n, key in zip(batch.tolist(), copies.keys(batch).tolist(), strict=True):
                assert key & (1 << 40) - 1 == n
                seen.setdefault(n, []).append(key >> 40)
    assert {n: sorted(found) for n, found in seen.items()} == {3: list(range(10)), 1: [0, 1, 2, 3], 0: [0, 1], 2: [0, 1]}


class Global:
    """Draws from whichever global generator, while it is iterated."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __iter__(self) -> Iterator[int]:
        for _ in range(COUNT):
            yield random.randrange(COUNT) if self.kind == "random" else int(np.random.randint(COUNT))

    def __len__(self) -> int:
        return COUNT


class Own:
    """Draws from a generator of its own."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(3)

    def __iter__(self) -> Iterator[int]:
        return iter(self.rng.permutation(COUNT).tolist())

    def __len__(self) -> int:
        return COUNT


def disturb() -> None:
    random.random()
    np.random.rand(3)


SAMPLERS: dict[str, Callable[[], Any]] = {"random": lambda: Global("random"), "numpy": lambda: Global("numpy"), "own": Own}


@pytest.mark.parametrize("kind", SAMPLERS)
@pytest.mark.parametrize("taken", [1, 4, 8])
def test_its_order_resumes_exactly(make: Any, kind: str, taken: int) -> None:
    first = make(sampler=SAMPLERS[kind](), transform=TRAIN)
    seen_of(first)  # an epoch before it
    iterator = iter(first)
    before = []
    for _ in range(taken):
        images, _ = next(iterator)
        before += [(int(n), image.tobytes()) for n, image in zip(first.batch.ids, images, strict=True)]
        disturb()
    state = json.loads(json.dumps(first.state_dict()))
    rest = []
    for images, _ in iterator:
        rest += [(int(n), image.tobytes()) for n, image in zip(first.batch.ids, images, strict=True)]
    disturb()

    second = make(sampler=SAMPLERS[kind](), transform=TRAIN)
    second.load_state_dict(state)
    assert second.state_dict() == state
    assert seen_of(second, between=disturb) == rest
    assert len(before + rest) == COUNT
    assert len(json.dumps(state)) < 16_000


def test_epochs_differ_and_the_programs_random_numbers_are_left_alone(make: Any) -> None:
    loader = make(sampler=Global("numpy"))
    np.random.seed(5)
    np.random.random_sample()  # what a loop that begins draws
    expected = np.random.rand(8).tolist()

    np.random.seed(5)
    drawn = []
    first = ids_of_drawing(loader, drawn)

    assert drawn == expected
    assert ids_of(loader) != first


def ids_of_drawing(loader: Any, drawn: list[float]) -> list[list[int]]:
    seen = []
    for _ in loader:
        seen.append(loader.batch.ids.tolist())
        drawn.append(float(np.random.rand()))
    return seen


def test_a_generator_between_two_epochs_is_in_the_state(make: Any) -> None:
    first = make(sampler=Own())
    ids_of(first)
    second = make(sampler=Own())
    second.load_state_dict(first.state_dict())

    assert ids_of(second) == ids_of(first)


class Unseeded:
    """Another order each time, whatever the generators."""

    count = 0

    def __iter__(self) -> Iterator[int]:
        Unseeded.count += 1
        return iter([(n + Unseeded.count) % COUNT for n in range(COUNT)])


def test_an_order_that_is_another_than_then_is_refused(make: Any) -> None:
    first = make(sampler=Unseeded())
    seen_of(first, 2)
    second = make(sampler=Unseeded())
    second.load_state_dict(first.state_dict())
    with pytest.raises(
        millrace.FailedPrecondition, match=r"the sampler gave another order than when the state was saved.*generator or a seed"
    ):
        ids_of(second)


def test_states_of_loaders_with_and_without_a_sampler_are_not_mixed_up(make: Any) -> None:
    loaders = [lambda: make(sampler=range(20)), make, lambda: make(sampler=Own())]
    for one in loaders:
        first = one()
        next(iter(first))
        for other in loaders:
            if other is not one:
                second = other()
                second.load_state_dict(first.state_dict())
                with pytest.raises(millrace.FailedPrecondition, match=r"state was saved|another order"):
                    next(iter(second))


class Stateful:
    """As torchdata's: says itself where it is."""

    def __init__(self) -> None:
        self.turn = 0

    def __iter__(self) -> Iterator[int]:
        self.turn += 1
        return iter([(n * 7 + self.turn) % COUNT for n in range(COUNT)])

    def state_dict(self) -> dict[str, Any]:
        return {"turn": self.turn}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.turn = state["turn"]


def test_a_sampler_with_a_state_of_its_own(make: Any) -> None:
    first = make(sampler=Stateful())
    ids_of(first)
    whole = [n for n, _ in seen_of(first, 3)]
    second = make(sampler=Stateful())
    second.load_state_dict(first.state_dict())

    assert whole + [n for batch in ids_of(second) for n in batch] == [(n * 7 + 2) % COUNT for n in range(COUNT)]


class Epochal:
    """As ``DistributedSampler``: its order depends on the epoch that it is told."""

    epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        return iter(np.random.RandomState(self.epoch).permutation(COUNT).tolist())


def order_of(epoch: int) -> list[int]:
    return np.random.RandomState(epoch).permutation(COUNT).tolist()  # type: ignore[no-any-return]


def test_a_sampler_is_told_the_epoch(make: Any) -> None:
    loader = make(sampler=Epochal())
    assert [[n for n, _ in seen_of(loader)] for _ in range(2)] == [order_of(0), order_of(1)]
    loader.set_epoch(9)
    assert loader.sampler.epoch == 9
    state = loader.state_dict()
    assert [n for n, _ in seen_of(loader)] == order_of(9)
    loader.sampler.set_epoch(4)  # a program that does it itself is not overruled
    assert [n for n, _ in seen_of(loader, 1)] == order_of(4)[:8]
    other = make(sampler=Epochal())
    other.load_state_dict(loader.state_dict())
    assert [n for n, _ in seen_of(other)] == order_of(4)[8:]
    other = make(sampler=Epochal())
    other.load_state_dict(state)
    assert [n for n, _ in seen_of(other)] == order_of(9)


def test_a_loop_that_failed_is_repeated_with_the_same_order(daemon: millrace.PrivateDaemon, folder: Path) -> None:
    with millrace.serve(folder, lanes=1) as own:
        loader = millrace.numpy.Loader(folder, OWN_SIZE, batch_size=8, sampler=Own(), address=own.address)
        iterator = iter(loader)
        next(iterator)
        first = loader.batch.ids.tolist()
        own.stop()
        with pytest.raises(millrace.DaemonUnavailable):
            list(map(len, iterator))
    object.__setattr__(loader._options, "address", daemon.address)
    with loader:
        assert ids_of(loader)[0] == first


@pytest.mark.parametrize("kind", ["own", "numpy"])
def test_a_loader_with_a_sampler_travels(make: Any, kind: str) -> None:
    loader = make(sampler=SAMPLERS[kind]())
    seen_of(loader, 2)
    state = loader.state_dict()
    with pickle.loads(pickle.dumps(loader)) as other:
        other.load_state_dict(state)
        rest = ids_of(other)
        loader.load_state_dict(state)
        assert rest == ids_of(loader)


# ----------------------------------------------------------------------------------------------------------------- PyTorch


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch", reason="PyTorch is not installed: its samplers are not tried")


def torchs(torch: Any) -> dict[str, Callable[[], dict[str, Any]]]:
    data = torch.utils.data

    def generator() -> Any:
        return torch.Generator().manual_seed(4)

    weights = [1.0] * 20 + [5.0] * 40
    return {
        "RandomSampler": lambda: {"sampler": data.RandomSampler(range(COUNT))},
        "RandomSampler with a generator": lambda: {"sampler": data.RandomSampler(range(COUNT), generator=generator())},
        "replacement": lambda: {"sampler": data.RandomSampler(range(COUNT), True, 90)},
        "WeightedRandomSampler": lambda: {"sampler": data.WeightedRandomSampler(weights, 80)},
        "SubsetRandomSampler": lambda: {"sampler": data.SubsetRandomSampler(range(10, 50), generator=generator())},
        "BatchSampler": lambda: {"batch_sampler": data.BatchSampler(data.RandomSampler(range(COUNT)), 7, False), "batch_size": 7},
        "DistributedSampler": lambda: {"sampler": data.DistributedSampler(range(COUNT), 2, 1, seed=3)},
    }


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["RandomSampler", "RandomSampler with a generator", "replacement", "WeightedRandomSampler",
                                  "SubsetRandomSampler", "BatchSampler", "DistributedSampler"])  # fmt: skip
def test_torchs_samplers_give_dataloaders_order_and_resume(make: Any, torch: Any, kind: str) -> None:
    options = torchs(torch)[kind]
    given = options()
    torch.manual_seed(11)
    peer = torch.utils.data.DataLoader(range(COUNT), **({k: v for k, v in given.items() if k != "batch_size" or "sampler" in given}),
                                       **({"batch_size": 8} if "sampler" in given else {}), collate_fn=list)  # fmt: skip
    expected = list(peer)

    torch.manual_seed(11)
    loader = make(**options())
    iterator, seen = iter(loader), []
    for _ in range(3):
        next(iterator)
        seen.append(loader.batch.ids.tolist())
        torch.rand(5)
    state = json.loads(json.dumps(loader.state_dict()))
    rest = [loader.batch.ids.tolist() for _ in iterator]

    assert seen + rest == expected
    assert len(loader) == len(expected)
    torch.manual_seed(99)
    other = make(**options())
    other.load_state_dict(state)
    assert ids_of(other) == rest


@pytest.mark.torch
def test_torchs_loader_has_the_sampler(torch: Any, daemon: millrace.PrivateDaemon, folder: Path) -> None:
    import millrace.torch

    sampler = torch.utils.data.BatchSampler(torch.utils.data.SequentialSampler(range(COUNT)), 16, drop_last=True)
    with millrace.torch.Loader(folder, OWN_SIZE, batch_sampler=sampler, address=daemon.address) as loader:
        assert (loader.batch_sampler.batch_size, loader.batch_size, len(loader)) == (16, 16, 3)
        assert [len(labels) for _, labels in loader] == [16, 16, 16]
        assert "by BatchSampler" in repr(loader)
    assert "in order" in repr(millrace.torch.Loader(folder, OWN_SIZE))
