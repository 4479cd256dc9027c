"""MixUp and CutMix of a loader's batches: torchvision's, and the same again after a resume."""

from __future__ import annotations

import dataclasses
import json
import pickle
from pathlib import Path
from typing import Any

import millrace
import numpy as np
import pytest

from pictures import COUNT

torch = pytest.importorskip("torch", reason="PyTorch is not installed: nothing of millrace.torch is tested")

from millrace.torch import CutMix, Loader, Mixed, MixUp  # noqa: E402

pytestmark = pytest.mark.torch
RECIPE = dataclasses.replace(millrace.Recipe.train(24).normalised("float32"), steps=[millrace.steps.RandAugment()])
WAYS = [MixUp(0.2), CutMix()]


class Numbers:
    """For the rectangle's middle: the same two numbers for us and for torchvision."""

    def __init__(self, x: int, y: int) -> None:
        self.left = [x, y]

    def randint(self, most: int) -> int:
        return self.left.pop(0) % most


def loader(daemon: millrace.PrivateDaemon, folder: Path, **options: Any) -> Loader:
    return Loader(folder, RECIPE, batch_size=4, shuffle=True, seed=3, address=daemon.address, **options)


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.75, 1.0])
@pytest.mark.parametrize("way", [MixUp(), CutMix()])
def test_given_the_same_share_and_rectangle_it_is_torchvisions(way: MixUp | CutMix, share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    v2 = pytest.importorskip("torchvision.transforms.v2", reason="torchvision is not installed: mixing is not compared with it")
    images, labels = torch.randn(5, 3, 17, 24), torch.tensor([0, 3, 1, 2, 3])
    theirs = (v2.MixUp if isinstance(way, MixUp) else v2.CutMix)(num_classes=4)
    for x, y in [(0, 0), (23, 16), (11, 8), (3, 14)]:
        numbers, theirs_numbers = Numbers(x, y), Numbers(x, y)
        monkeypatch.setattr(theirs._dist, "sample", lambda _: torch.tensor([share]))
        monkeypatch.setattr(torch, "randint", lambda most, size, to=theirs_numbers: torch.tensor([to.randint(most)]))
        wanted_images, wanted_targets = theirs(images, labels)
        monkeypatch.undo()
        targets = torch.nn.functional.one_hot(labels, 4).float()
        mixed, mixed_targets = way.mix(images, targets, float(torch.tensor([share])), numbers)
        assert torch.equal(mixed, wanted_images)
        assert torch.equal(mixed_targets, wanted_targets)


def test_every_batch_is_mixed_and_a_resumed_loop_mixes_alike(daemon: millrace.PrivateDaemon, folder: Path) -> None:
    first = loader(daemon, folder)
    all_of_it = [(images.clone(), targets.clone()) for images, targets in Mixed(first, WAYS, 3)]
    assert len(all_of_it) == len(first)
    for _, targets in all_of_it:
        assert targets.dtype == torch.float32
        np.testing.assert_allclose(targets.sum(1).numpy(), 1, atol=1e-6)
    assert any(((targets > 0) & (targets < 1)).any() for _, targets in all_of_it)

    half = loader(daemon, folder)
    for number, (images, _) in enumerate(Mixed(half, WAYS, 3)):
        assert torch.equal(images, all_of_it[number][0])
        if number == 1:
            break
    state = half.state_dict()
    resumed = loader(daemon, folder)
    resumed.load_state_dict(state)
    rest = [(images.clone(), targets.clone()) for images, targets in Mixed(resumed, WAYS, 3)]
    assert len(rest) == len(all_of_it) - 2
    for mixed, wanted in zip(rest, all_of_it[2:], strict=True):
        assert torch.equal(mixed[0], wanted[0])
        assert torch.equal(mixed[1], wanted[1])


def test_its_state_is_the_loaders_and_resumes_it(daemon: millrace.PrivateDaemon, folder: Path) -> None:
    """Within the second epoch, with JSON between, by the wrapper's own names alone."""

    def mixed() -> Mixed:
        return Mixed(loader(daemon, folder), WAYS, 3)

    with mixed() as whole:
        for _ in whole:
            pass
        assert (whole.epoch, whole.batch) == (1, None)
        all_of_it = [(images.clone(), targets.clone()) for images, targets in whole]

    with mixed() as half:
        half.set_epoch(1)
        for number, (_, targets) in enumerate(half):
            assert half.batch is not None
            assert len(half.batch.ids) == len(targets)
            if number == 2:
                break
        state = json.loads(json.dumps(half.state_dict()))
        assert (state["epoch"], state["batches"]) == (1, 3)

    with mixed() as resumed:
        resumed.load_state_dict(state)
        assert resumed.epoch == 1
        rest = [(images.clone(), targets.clone()) for images, targets in resumed]
        resumed.set_epoch(1)
        skipped = [(images.clone(), targets.clone()) for images, targets in resumed.skip_first_batches(3)]
    for found in (rest, skipped):
        assert len(found) == len(all_of_it) - 3
        for one, other in zip(found, all_of_it[3:], strict=True):
            assert torch.equal(one[0], other[0])
            assert torch.equal(one[1], other[1])


def test_it_stands_where_the_loader_stands(daemon: millrace.PrivateDaemon, folder: Path) -> None:
    plain = loader(daemon, folder)
    mixed = Mixed(plain, WAYS, 3)
    names = ("batch_size", "drop_last", "num_workers", "prefetch_factor", "rank", "world_size", "samples", "classes", "bad", "recipe")
    assert [getattr(mixed, name) for name in names] == [getattr(plain, name) for name in names]
    assert mixed.dataset.path == plain.dataset.path
    mixed.sampler.set_epoch(5)
    assert mixed.epoch == plain.epoch == 5
    with pytest.raises(millrace.Unsupported, match=r"loader\.skip_first_batches\(n\)"):
        iter(mixed.batch_sampler)
    with pytest.raises(AttributeError, match="no attribute '_progress'"):
        mixed._progress  # noqa: B018
    with pytest.raises(AttributeError, match="collate_fn"):
        mixed.collate_fn  # noqa: B018
    first = next(iter(mixed))[1].clone()
    copied = pickle.loads(pickle.dumps(mixed))  # as for processes that are spawned
    copied.set_epoch(5)
    assert torch.equal(next(iter(copied))[1], first)
    loop = iter(mixed)
    next(loop)
    next(iter(mixed))
    with pytest.raises(millrace.FailedPrecondition, match="another loop over this loader has begun"):
        next(loop)


def test_another_epoch_and_another_seed_mix_otherwise(daemon: millrace.PrivateDaemon, folder: Path) -> None:
    given = Loader(folder, RECIPE, batch_size=COUNT, address=daemon.address, dtype="float32")
    found = []
    for seed in (0, 1):
        for epoch in (0, 1):
            given.set_epoch(epoch)
            found.append(next(iter(Mixed(given, WAYS, 3, seed)))[1].clone())
    assert all(not torch.equal(found[i], found[j]) for i in range(4) for j in range(i))


def test_what_cannot_be_mixed_is_refused(daemon: millrace.PrivateDaemon, folder: Path) -> None:
    for wrong in (0, -1.0, 5e-324, float("inf"), float("nan")):
        with pytest.raises(millrace.InvalidRequest, match=r"alpha must be from 0\.001"):
            MixUp(wrong)
    with pytest.raises(millrace.InvalidRequest, match="ways must be some of MixUp and CutMix"):
        Mixed(loader(daemon, folder), [], 3)
    with pytest.raises(millrace.InvalidRequest, match="classes must be at least 1"):
        Mixed(loader(daemon, folder), WAYS, 0)
    with pytest.raises(millrace.InvalidRequest, match=r"labels must be class numbers from 0 to 1, are \["):
        for _ in Mixed(loader(daemon, folder), MixUp(), 2):  # type: ignore[arg-type]
            pass
    levels = Loader(folder, millrace.Recipe.train(24), batch_size=4, address=daemon.address)
    with pytest.raises(millrace.InvalidRequest, match=r"images must be floats, are torch.uint8: give the loader dtype=torch.float32"):
        next(iter(Mixed(levels, WAYS, 3)))
