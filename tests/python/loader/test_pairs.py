"""Images and their masks: cut and moved alike, whatever is drawn; two epochs in step in orders, ranks and states."""

from __future__ import annotations

import dataclasses
import gc
import importlib.util
import itertools
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import millrace
import millrace.numpy
import numpy as np
import pytest
from millrace import Erasing, ExactSize, Pad, Pairs, Recipe, ScaleJitter, Size, steps
from millrace._loader.pair_epoch import PairDataset, PairEpoch

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch", reason="PyTorch is not installed: pairs are not tried")
Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed: there are no masks with palettes")

import millrace.torch  # noqa: E402

from paired import CLASSES, COUNT, IGNORED, check_alike, drain, loaders, make_place, write_mask  # noqa: E402
from processes import eventually  # noqa: E402
from test_loaders import Restartable  # noqa: E402


@pytest.fixture(scope="module")
def place(folder: Path) -> Path:
    return make_place(folder.parent / "moved")


@pytest.fixture(scope="module")
def pairs(place: Path) -> Pairs:
    return Pairs.of_folders(place / "images", place / "masks")


@pytest.fixture
def make(daemon: millrace.PrivateDaemon, pairs: Pairs) -> Iterator[Callable[..., Any]]:
    with loaders(daemon.address, pairs) as loader:
        yield loader


def seen_of(loader: Any) -> list[tuple[int, bytes, bytes]]:
    return [
        (int(n), image.tobytes(), mask.tobytes())
        for images, masks in loader
        for n, image, mask in zip(loader.batch.ids, images, masks, strict=True)
    ]


# ---------------------------------------------------------------------------------------------------------- geometry

EXACT = Recipe(resize=ExactSize(Size(64, 56)), filter="nearest")
MOVES: dict[str, tuple[steps.Step, ...]] = {
    "rotation": (steps.Rotation((-40, 40), fill=255),),
    "affine": (steps.Affine((-20, 20), (0.2, 0.1), (0.7, 1.4), (-10, 10), (-5, 5), fill=255),),
    "shift": (steps.Shift(9, 5, fill=255),),
    "perspective": (steps.Perspective(0.6, sampling="nearest", fill=255),),
    "flips": (steps.HorizontalFlip(probability=0.5), steps.VerticalFlip(probability=0.5)),
    "in any order": (steps.AnyOrder((steps.Rotation((-40, 40), fill=255), steps.Shift(9, fill=255), steps.VerticalFlip(probability=0.5))),),
    "one of": (steps.OneOf((steps.Rotation((90, 90), fill=255), steps.Shift(9, fill=255), steps.VerticalFlip()), weights=(1, 2, 3)),),
    "some in sequence": (steps.Sequence((steps.Shift(3, fill=255), steps.OneOf((steps.Shift(9, fill=255),))), probability=0.5),),
}
WINDOWS = {
    "random resized crop": dataclasses.replace(Recipe.train(64), filter="nearest"),
    "random crop of what is padded": Recipe(
        pad=Pad(9, 8, 7, 6, fill=255), centre_crop=Size(64, 56), crop_place="random", flip_probability=0.5, filter="nearest"
    ),
    "padded at a random place": Recipe(
        resize=ScaleJitter(Size(64, 56), (0.3, 2)),
        pad=Pad(to=Size(64, 56), place="random", fill=255),
        centre_crop=Size(64, 56),
        crop_place="random",
        filter="nearest",
    ),
    "mirrored": Recipe(pad=Pad(30, 20, mode="reflect", to=Size(140, 120)), centre_crop=Size(99, 88), crop_place="random"),
    "random side": Recipe(
        resize=millrace.RandomShorterSide((60, 70, 80)), centre_crop=Size(50, 50), random_filters=("nearest",), flip_probability=0.5
    ),
}
GEOMETRY = {**WINDOWS, **{name: dataclasses.replace(EXACT, steps=made) for name, made in MOVES.items()}}


@pytest.mark.parametrize("name", GEOMETRY)
def test_images_and_masks_are_moved_alike(make: Any, name: str) -> None:
    loader, seen = make(recipe=GEOMETRY[name], shuffle=True, seed=7), set()
    for _ in range(4):
        for images, masks in loader:
            assert masks.dtype == np.uint8
            assert masks.shape == (len(images), *images.shape[2:])
            check_alike(images, masks)
            seen.update((int(n), mask.tobytes()) for n, mask in zip(loader.batch.ids, masks, strict=True))
    assert len(seen) > COUNT * 1.5  # drawn anew in each epoch


COLOURS = (
    steps.ColorJitter(0.3, 0.3, 0.3, 0.1),
    steps.Rotation((-30, 30), fill=255),
    steps.Sharpness(1.0),  # as it is, but drawn
    steps.AnyOrder(
        (
            steps.ColorJitter(0.2, 0.2, probability=0.8),
            steps.Affine((-9, 9), (0.1, 0.1), (0.8, 1.3), fill=255),
            steps.GaussianBlur(3, (0.01, 0.011)),  # as it is, but drawn
            steps.HorizontalFlip(probability=0.5),
        )
    ),
    steps.OneOf(
        (
            steps.Invert(),
            steps.Perspective(0.3, sampling="nearest", fill=255),
            steps.Solarize(128),
            steps.VerticalFlip(),
            steps.Posterize(6),
            steps.Shift(7, fill=255),
        )
    ),
    steps.Sequence((steps.Grayscale(probability=0.3), steps.Shift(5, fill=255), steps.AutoContrast(probability=0.5)), probability=0.7),
    steps.Equalize(probability=0.2),
    steps.PillowBlur((0.001, 0.0011), probability=0.5),
    steps.Shift(6, fill=255),
)


def test_steps_that_change_colours_leave_the_draws_of_those_that_move(make: Any) -> None:
    recipe = dataclasses.replace(Recipe.train(64), filter="nearest", steps=COLOURS)
    loader, levels, seen = make(recipe=recipe, shuffle=True), [], set()
    for _ in range(5):
        for images, masks in loader:
            for image, mask in zip(images, masks, strict=True):
                of = {int(each): {tuple(pixel) for pixel in image[:, mask == each].T.tolist()} for each in np.unique(mask)}
                of.pop(IGNORED, None)
                assert {len(colours) for colours in of.values()} == {1}, of  # each class has become one colour
                levels.append(len(set().union(*of.values())))
                seen.add(tuple(sorted((each, *colours) for each, colours in of.items())))
    assert np.mean(levels) > CLASSES - 3
    assert len(seen) > COUNT * 3  # colours were changed, by chance


def test_masks_are_whole_classes_where_images_are_smooth(make: Any, place: Path) -> None:
    across, down = np.meshgrid(np.arange(100, dtype=np.uint8), np.arange(80, dtype=np.uint8))
    smooth = [place / "smooth.png", place / "columns.png"]
    Image.fromarray(np.stack([across * 2, down * 2, across], 2)).save(smooth[0])
    write_mask(smooth[1], across)
    recipe = dataclasses.replace(Recipe.train(32), dtype="float32", range="raw")
    for images, masks in make(Pairs([smooth] * COUNT), recipe, shuffle=True):
        assert np.abs(images[:, 0] / 2 - masks).max() <= 2


def test_masks_are_read_from_the_nearest_pixel_however_images_are(make: Any) -> None:
    for name in MOVES:
        sampled = tuple(as_sampled(step, "bicubic") for step in MOVES[name])
        smooth = dataclasses.replace(Recipe.train(64), random_filters=("box", "hamming"), steps=sampled)
        nearest = dataclasses.replace(Recipe.train(64), filter="nearest", steps=MOVES[name])
        both = [make(recipe=recipe, shuffle=True) for recipe in (smooth, nearest)]
        for (images, masks), (others, same) in zip(*both, strict=True):
            np.testing.assert_array_equal(masks, same)
            assert (images != others).any()


def as_sampled(step: Any, sampling: str) -> Any:
    """The step, reading so between pixels, and those in it."""
    if hasattr(step, "steps"):
        return dataclasses.replace(step, steps=tuple(as_sampled(inner, sampling) for inner in step.steps))
    return dataclasses.replace(step, sampling=sampling) if hasattr(step, "sampling") else step


def test_rectangles_are_erased_in_masks_if_that_is_asked_for(make: Any, pairs: Pairs, place: Path) -> None:
    recipe = dataclasses.replace(EXACT, erasing=Erasing(1.0, value=77, most=3))  # no class has the level 77
    folders = (place / "images", place / "masks")
    for images, masks in make(pairs, recipe):
        assert (images == 77).any()
        assert (masks < CLASSES).all()
    for images, masks in make(Pairs.of_folders(*folders, erase=True, fill=9), dataclasses.replace(recipe, steps=(steps.Invert(),))):
        gone = images[:, 0] == 77
        assert gone.any()
        assert (masks[gone] == 9).all()
        np.testing.assert_array_equal(255 - images[:, 1][~gone], masks[~gone] * 20)


# ------------------------------------------------------------------------------------------------- orders, ranks, states


@pytest.mark.parametrize("order", [{"shuffle": True}, {"sampler": [5, 7, 5, *range(10), 5, 19]}], ids=["shuffled", "sampler"])
def test_a_loop_goes_on_where_its_state_was_saved(make: Any, order: dict[str, Any]) -> None:
    whole = seen_of(make(batch_size=4, **order))
    loader = make(batch_size=4, **order)
    for _ in itertools.islice(loader, 2):
        pass
    state = loader.state_dict()
    other = make(batch_size=4, **order)
    other.load_state_dict(state)

    assert seen_of(other) == whole[8:]
    assert len(whole) == loader.samples
    if "sampler" in order:
        assert [n for n, *_ in whole] == order["sampler"]
        assert len({image for n, image, _ in whole if n == 5}) == 4  # drawn for each time that it comes
        for images, masks in other:
            check_alike(images, masks)
    else:
        pairs = other.dataset
        strange = make(pairs.subset(range(COUNT - 1, -1, -1)), batch_size=4, **order)
        strange.load_state_dict(state)
        with pytest.raises(millrace.FailedPrecondition, match="saved with another dataset, or its files have changed"):
            drain(strange)


ORDERS: dict[str, dict[str, Any]] = {
    "sampler": {"sampler": [n % COUNT for n in range(96)], "batch_size": 2},
    "batch sampler": {"batch_sampler": [[n % COUNT, (n + 7) % COUNT] for n in range(48)], "batch_size": 2},
}


@pytest.mark.parametrize("writable", [True, False])
@pytest.mark.parametrize("kind", [millrace.numpy.Loader, millrace.torch.Loader])
@pytest.mark.parametrize("name", ORDERS)
def test_two_slots_are_enough_for_an_order(make: Any, kind: Any, name: str, writable: bool) -> None:
    """Also after the order has ended, which it does long before the epoch."""
    loader, count = make(kind=kind, slots=2, writable=writable, timeout=300, **ORDERS[name]), 0
    for epoch in range(2):
        for images, masks in loader:
            check_alike(np.asarray(images), np.asarray(masks))
            count += 1
        assert count == 48 * (epoch + 1)


def broken_order() -> Iterator[int]:
    yield from range(10)
    raise ZeroDivisionError("a sampler's")


class Again:
    """As many iterators as are asked for."""

    def __init__(self, make: Callable[[], Iterator[int]]) -> None:
        self.make = make

    def __iter__(self) -> Iterator[int]:
        return self.make()


@pytest.fixture
def uncollected() -> Iterator[None]:
    """What is in a reference cycle stays alive."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("name", [*ORDERS, "broken"])
def test_nothing_of_an_epoch_is_left_after_it(make: Any, monkeypatch: pytest.MonkeyPatch, uncollected: None, name: str) -> None:
    made: list[weakref.ref[PairEpoch]] = []
    begin = PairDataset.epoch

    def noted(self: PairDataset, **options: Any) -> PairEpoch:
        epoch = begin(self, **options)
        made.append(weakref.ref(epoch))
        return epoch

    monkeypatch.setattr(PairDataset, "epoch", noted)
    loader, count = make(slots=2, timeout=300, **ORDERS.get(name, {"sampler": Again(broken_order), "batch_size": 2})), 0
    for _ in range(3):
        try:
            for images, masks in loader:
                check_alike(images, masks)
                count += 1
            assert name != "broken"
        except ZeroDivisionError:
            assert name == "broken"
    assert count == 3 * (5 if name == "broken" else 48)
    assert [epoch() for epoch in made] == [None] * 3


def test_two_ranks_share_the_pairs(make: Any) -> None:
    whole = seen_of(make(shuffle=True))
    halves = [seen_of(make(shuffle=True, rank=rank, world_size=2, batch_size=5)) for rank in range(2)]
    assert [len(half) for half in halves] == [10, 10]
    assert sorted(halves[0] + halves[1]) == sorted(whole)


def test_what_a_loop_leaves_is_gone(make: Any, daemon: millrace.PrivateDaemon, pairs: Pairs) -> None:
    with millrace.connect(daemon.address) as client:
        before = {session.id for session in client.statistics().sessions}
        loader = make(batch_size=2, shuffle=True)
        first = None
        for _ in range(3):  # left early, again and again
            for images, masks in loader:
                check_alike(images, masks)
                first = first if first is not None else (images, masks)
                break
        during = {session.name for session in client.statistics().sessions if session.id not in before}
        assert len(during) == 2, during
        loader.close()
        check_alike(*first)  # type: ignore[misc]
        first = images = masks = None  # a session is there as long as its arrays
        eventually(lambda: {session.id for session in client.statistics().sessions} <= before, "both sessions are gone")
    again = pickle.loads(pickle.dumps(loader))
    with again:
        assert len(seen_of(again)) == COUNT


def test_batches_may_be_left_out(make: Any) -> None:
    whole = seen_of(make(shuffle=True))
    assert seen_of(make(shuffle=True).skip_first_batches(1)) == whole[8:]
    assert [n for n, *_ in seen_of(make(shuffle=True, drop_last=True))] == [n for n, *_ in whole[:16]]


@pytest.mark.parametrize("order", [{"shuffle": True}, {"sampler": range(COUNT)}], ids=["shuffled", "sampler"])
def test_an_epoch_goes_on_after_the_daemon_was_restarted(place: Path, pairs: Pairs, order: dict[str, Any]) -> None:
    recipe = dataclasses.replace(Recipe.train(24), filter="nearest")
    with tempfile.TemporaryDirectory() as base:
        daemon = Restartable(place, Path(base, "s"))
        options = {"batch_size": 3, "address": daemon.socket, **order}
        with millrace.numpy.Loader(pairs, recipe, **options) as loader:
            whole = seen_of(loader)
        seen = []
        with millrace.numpy.Loader(pairs, recipe, resume=True, **options) as loader:
            for count, (images, masks) in enumerate(loader):
                check_alike(images, masks)
                seen += loader.batch.ids.tolist()
                if count in (1, 4):
                    daemon.kill()
                    threading.Timer(0.3, daemon.start).start()
        daemon.kill()
    assert seen == [n for n, *_ in whole]


@pytest.mark.filterwarnings("ignore::millrace.SlotsHeld")
def test_batches_that_are_kept_become_copies(make: Any) -> None:
    loader = make(batch_size=2, shuffle=True)
    kept = list(loader)
    loader.set_epoch(0)
    assert len(kept) == 10
    assert [(image.tobytes(), mask.tobytes()) for images, masks in kept for image, mask in zip(images, masks, strict=True)] == [
        both for _, *rest in seen_of(loader) for both in [tuple(rest)]
    ]


def test_a_released_batch_has_no_masks(make: Any) -> None:
    loader = make()
    for images, masks in loader:
        batch = loader.batch
        np.testing.assert_array_equal(batch.masks.numpy(), masks)
        assert batch.paths == [loader.dataset.images[n] for n in batch.ids]
        del images, masks
        batch.release()
        for use in (lambda batch=batch: batch.masks, lambda batch=batch: batch.images):
            with pytest.raises(millrace.Released):
                use()


def test_pytorchs_tensors_follow_the_device(make: Any) -> None:
    plain = seen_of(make(shuffle=True))
    loader = make(kind=millrace.torch.Loader, shuffle=True, memory_format=torch.channels_last)
    assert [
        (int(n), image.numpy().tobytes(), mask.numpy().tobytes())
        for images, masks in loader
        for n, image, mask in zip(loader.batch.ids, images, masks, strict=True)
    ] == [(n, image, mask) for n, image, mask in plain]
    for images, masks in make(kind=millrace.torch.Loader, device="meta"):
        assert (images.device.type, masks.device.type, masks.dtype, masks.ndim) == ("meta", "meta", torch.uint8, 3)


@pytest.mark.long
@pytest.mark.parametrize("backend", ["torch", pytest.param("jax", marks=pytest.mark.jax)])
def test_keras_gets_both(daemon: millrace.PrivateDaemon, place: Path, backend: str) -> None:
    if backend == "jax":
        pytest.importorskip("jax", reason="JAX is not installed: Keras gets no pairs from it")
    if importlib.util.find_spec("keras") is None:
        pytest.skip("Keras is not installed: it gets no pairs")
    code = f"""
import millrace, millrace.keras, millrace.{backend}
pairs = millrace.Pairs.of_folders({str(place / "images")!r}, {str(place / "masks")!r})
images, masks = millrace.keras.Dataset(millrace.{backend}.Loader(pairs, millrace.Recipe.train(24), batch_size=4))[0]
print(tuple(images.shape), tuple(masks.shape))
"""
    environment = {**os.environ, "KERAS_BACKEND": backend, "JAX_PLATFORMS": "cpu", "MILLRACE_SOCKET": daemon.address}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert done.stdout == "(4, 3, 24, 24) (4, 24, 24)\n", done.stderr
