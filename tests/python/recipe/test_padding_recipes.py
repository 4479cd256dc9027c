"""Padding in recipes: what may be said, what is sent of it, what follows for sizes, and what the daemon says of what cannot be."""

from __future__ import annotations

import dataclasses
import pickle
from pathlib import Path
from typing import Any

import millrace
import millrace.numpy
import numpy as np
import pytest
from millrace import CentreCrop, Erasing, ExactSize, LongerSide, Pad, RandomShorterSide, Recipe, ScaleJitter, ShorterSide, Size, SmartResize
from millrace._memory.layout import slot_bytes_of_images
from millrace._wire.messages import recipe_message

from pictures import png

TO = Size(64, 48)
FIXED: list[tuple[Recipe, Size | None]] = [
    (Recipe(resize=ExactSize(Size(20, 10)), pad=Pad(1, 2, 3, 4)), Size(24, 16)),
    (Recipe(resize=ExactSize(Size(20, 10)), pad=Pad(1, 2, 3, 4, to=Size(30, 12))), Size(30, 16)),
    (Recipe(pad=Pad(to=TO)), None),
    (Recipe(pad=Pad(4, 4, 4, 4)), None),
    (Recipe(pad=Pad(to=TO), centre_crop=TO), TO),
    (Recipe(resize=LongerSide(40), pad=Pad(to=TO)), TO),
    (Recipe(resize=LongerSide(40), pad=Pad(4, 4, 4, 4, to=TO)), TO),
    (Recipe(resize=LongerSide(40), pad=Pad(4, 5, 4, 4, to=TO)), None),
    (Recipe(resize=LongerSide(40), pad=Pad(4, 4, 4, 4)), None),
    (Recipe(resize=LongerSide(60), pad=Pad(to=TO)), None),
    (Recipe(resize=ShorterSide(20), pad=Pad(to=TO)), None),
    (Recipe(resize=ShorterSide(20, 48), pad=Pad(to=TO)), TO),
    (Recipe(resize=RandomShorterSide((20, 30), 48), pad=Pad(to=TO)), TO),
    (Recipe(resize=RandomShorterSide((20, 30)), pad=Pad(to=TO)), None),
    (Recipe(resize=ScaleJitter(Size(10, 10), 1.0), pad=Pad(to=TO)), None),
    (Recipe(crop=CentreCrop(Size(20, 10)), pad=Pad(1, 1)), Size(21, 11)),
    (Recipe(crop=CentreCrop(Size(20, 10)), resize=ShorterSide(20), pad=Pad(1, 1)), Size(41, 21)),
    (Recipe(crop=CentreCrop(Size(20, 10)), resize=RandomShorterSide((5, 6), 30), pad=Pad(1, 1)), None),
    (Recipe(crop=CentreCrop(Size(20, 10)), resize=ScaleJitter(Size(10, 10), 1.0)), None),
    (Recipe(crop=CentreCrop(Size(20, 10)), resize=RandomShorterSide((5, 6), 30), pad=Pad(1, to=Size(40, 30))), Size(40, 30)),
]


def assert_refused(client: millrace.Client, recipe: Recipe, message: str) -> None:
    with pytest.raises(millrace.InvalidRequest, match=message), client.session(recipe, batch=1, slot_bytes=1 << 20) as session:
        session.get(session.submit([png(1)]))


@pytest.mark.parametrize(("recipe", "size"), FIXED, ids=[str(number) for number in range(len(FIXED))])
def test_sizes_that_follow_are_the_daemons(client: millrace.Client, recipe: Recipe, size: Size | None) -> None:
    assert recipe.fixed_size == size
    if size is None:
        assert recipe.slot_bytes(2) is None
        assert_refused(client, recipe, "needs a recipe that fixes the size")
        return
    assert recipe.slot_bytes(2) == slot_bytes_of_images(size.width * size.height * 3, 2)
    with client.session(recipe, batch=2, slots=1) as session:
        assert session.get(session.submit([png(1), png(2)])).images.shape == (2, 3, size.height, size.width)


def test_a_smart_resize_of_a_fixed_crop_is_padded_to_what_only_the_daemon_computes(client: millrace.Client) -> None:
    recipe = Recipe(crop=CentreCrop(Size(30, 20)), resize=SmartResize(8, 64, 4096), pad=Pad(1, 1))
    assert recipe.fixed_size is None
    with client.session(recipe, batch=1, slot_bytes=1 << 20) as session:
        assert session.get(session.submit([png(1)])).images.shape == (1, 3, 17, 33)


def test_older_daemons_get_what_they_know() -> None:
    fields = {field.name for field, _ in recipe_message(Recipe.train(224)).resize.ListFields()}
    assert fields == {"exact", "filter"}
    erased = recipe_message(Recipe(erasing=Erasing())).erasing
    assert "most" not in {field.name for field, _ in erased.ListFields()}
    assert not recipe_message(Recipe.train(224)).HasField("pad")


def test_what_is_sent() -> None:
    every = Recipe(
        resize=RandomShorterSide(range(8, 11), 90),
        random_filters=["bilinear", "lanczos"],  # type: ignore[arg-type]
        pad=Pad(1, 2, 3, 4, Size(5, 6), "random", "symmetric", (7, 8, 9)),
        erasing=Erasing(most=3),
    )
    message = recipe_message(every)
    assert list(message.resize.random_shorter_side.sides) == [8, 9, 10]
    assert message.resize.random_shorter_side.longest == 90
    assert list(message.resize.random_filters) == [3, 6]
    assert [getattr(message.pad, name) for name in ("left", "top", "right", "bottom", "place", "mode", "fill")] == [
        *(1, 2, 3, 4),
        *(6, 4, b"\7\10\11"),
    ]
    assert (message.pad.to.width, message.pad.to.height, message.erasing.most) == (5, 6, 3)
    jitter = recipe_message(Recipe(resize=ScaleJitter(Size(3, 4), 0.5))).resize.scale_jitter
    assert (jitter.target.width, jitter.target.height, jitter.scale.low, jitter.scale.high) == (3, 4, 0.5, 0.5)
    view = recipe_message(Recipe.of_views([dataclasses.replace(every, centre_crop=TO)] * 2)).views[0]
    assert (view.pad, view.resize, view.erasing) == (message.pad, message.resize, message.erasing)


def test_they_are_values() -> None:
    recipe = Recipe(resize=RandomShorterSide([8, 9]), pad=Pad(1, fill=9), random_filters=iter(["box"]))  # type: ignore[arg-type]
    assert recipe == Recipe(resize=RandomShorterSide((8, 9)), pad=Pad(1, fill=(9, 9, 9)), random_filters=("box",))
    assert hash(recipe) == hash(pickle.loads(pickle.dumps(recipe)))
    assert repr(recipe) == (
        "Recipe(resize=RandomShorterSide(sides=(8, 9), longest=None), pad=Pad(left=1, fill=(9, 9, 9)), random_filters=('box',))"
    )
    assert repr(Pad()) == "Pad()"
    assert RandomShorterSide(8) == RandomShorterSide((8,))  # type: ignore[arg-type]
    assert ScaleJitter(Size(8, 8)).scale == (0.1, 2.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Pad(place="middle"), "Pad.place: must be one of centre, top_left"),  # type: ignore[arg-type]
        (lambda: Pad(mode="wrap"), "Pad.mode: must be one of constant, edge, reflect, symmetric; is 'wrap'"),  # type: ignore[arg-type]
        (lambda: Pad(fill=256), "Pad.fill: must be whole levels"),
        (lambda: RandomShorterSide((8.5,)), "RandomShorterSide.sides: must be whole numbers"),  # type: ignore[arg-type]
        (lambda: RandomShorterSide((8,), 0), "RandomShorterSide.longest: must be at least 1"),
        (lambda: ScaleJitter(TO, "much"), "ScaleJitter.scale: must be a number or a pair"),
        (lambda: Recipe(random_filters=("bilinear", "best")), "Recipe.random_filters: must be one of nearest"),  # type: ignore[arg-type]
        (lambda: Recipe(filter="box", random_filters=("bicubic",)), "Recipe.filter: with random_filters one of those is drawn"),
        (lambda: Recipe(pad=Pad(), views=(Recipe.train(8),)), "Recipe.pad: with views it is each view's own"),
        (lambda: recipe_message(Recipe(erasing=Erasing(most=0))), "Erasing.most: must be at least 1, is 0"),
        (lambda: recipe_message(Recipe(pad=Pad(-1))), "recipe: .*-1"),
        (lambda: Pad(to=(3,)), r"Pad.to: must be Size\(width, height\) or a number of pixels for a square, is \(3,\)"),  # type: ignore[arg-type]
        (lambda: Pad(4.5), "Pad.left: must be a whole number of pixels, is 4.5"),  # type: ignore[arg-type]
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_said(make: Any, message: str) -> None:
    with pytest.raises(millrace.InvalidRequest, match=message):
        make()


EXACT = Recipe(resize=ExactSize(TO))
REFUSED: list[tuple[Recipe, str]] = [
    (dataclasses.replace(EXACT, pad=Pad(left=70000)), r"recipe.pad.left: must be between 0 and 65535"),
    (dataclasses.replace(EXACT, pad=Pad(place="random")), "recipe.pad.place: says where the image lies in what pad.to adds"),
    (dataclasses.replace(EXACT, pad=Pad(to=Size(0, 3))), "recipe.pad.to.width"),
    (dataclasses.replace(EXACT, pad=Pad(right=65500)), "recipe.pad: makes 65564x48 pixels"),
    (dataclasses.replace(EXACT, pad=Pad(2), centre_crop=Size(67, 48)), "recipe.centre_crop: is larger than the 66x48 pixels"),
    (dataclasses.replace(EXACT, random_filters=("box",) * 9), "recipe.resize.random_filters: must be at most 8"),
    (Recipe(resize=RandomShorterSide(()), centre_crop=TO), "recipe.resize.random_shorter_side.sides: must be between 1 and 64, is 0"),
    (Recipe(resize=RandomShorterSide((8, 99), 50), centre_crop=TO), "recipe.resize.random_shorter_side.longest"),
    (Recipe(resize=ScaleJitter(TO, 0), centre_crop=TO), "recipe.resize.scale_jitter.scale.low: must be more than 0 and at most 100"),
    (Recipe(resize=ScaleJitter(TO, (2, 1)), centre_crop=TO), "recipe.resize.scale_jitter.scale.low: 2 is over high, 1"),
    (dataclasses.replace(EXACT, erasing=Erasing(most=17)), "recipe.erasing.most"),
]


@pytest.mark.parametrize(("recipe", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_what_the_daemon_refuses(client: millrace.Client, recipe: Recipe, message: str) -> None:
    assert_refused(client, recipe, message)


def test_a_sample_that_is_too_small_or_gets_too_large_is_the_bad_one(client: millrace.Client) -> None:
    small = Recipe(pad=Pad(4, 4, 4, 4), centre_crop=Size(60, 30), crop_place="random")  # of 48 x 32 pixels
    large = Recipe(pad=Pad(left=65500), centre_crop=TO)
    for recipe, message in (
        (small, "60x30 is larger than the image of 56x40"),
        (large, "would be padded to 65548x32 pixels, over the limit"),
    ):
        with client.session(recipe, batch=1) as session, pytest.raises(millrace.SampleFailed, match=message):
            session.get(session.submit([png(1)]))


def test_padding_resumes_and_repeats(client: millrace.Client, daemon: millrace.PrivateDaemon, folder: Path) -> None:
    recipe = Recipe(
        resize=ScaleJitter(TO), pad=Pad(to=TO, place="random"), centre_crop=TO, crop_place="random", random_filters=("box", "bicubic")
    )
    with client.session(recipe, batch=4, slots=2) as session:
        batches = [session.get(session.submit([png(1)] * 4, seed=3, epoch=epoch)).images.numpy().copy() for epoch in (1, 1, 2)]
    np.testing.assert_array_equal(batches[0], batches[1])
    assert (batches[0] != batches[2]).any()

    def loader() -> Any:
        return millrace.numpy.Loader(folder, recipe, batch_size=8, shuffle=True, seed=5, address=daemon.address)

    with loader() as whole, loader() as first, loader() as second:
        expected = [images.copy() for images, _ in whole]
        epoch = iter(first)
        seen = [next(epoch)[0].copy() for _ in range(3)]
        state = first.state_dict()
        second.load_state_dict(state)
        seen += [images.copy() for images, _ in second]
    np.testing.assert_array_equal(np.concatenate(seen), np.concatenate(expected))
