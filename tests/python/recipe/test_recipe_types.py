"""What is wrong in a recipe whatever the image is, is told as the recipe is made, with the field's name."""

from __future__ import annotations

import dataclasses
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import millrace
import millrace.numpy
import numpy as np
import pytest
from millrace import (
    BoxCrop,
    CentreCrop,
    Erasing,
    ExactSize,
    LongerSide,
    Normalise,
    Pad,
    Patches,
    RandomResizedCrop,
    RandomShorterSide,
    Recipe,
    ScaleJitter,
    ShorterSide,
    Size,
)

from pictures import png

SQUARE = r"must be Size\(width, height\) or a number of pixels for a square, is "
WRONG: list[tuple[Callable[[Any], Any], str]] = [
    (lambda _: Recipe(centre_crop=_("64")), f"Recipe.centre_crop: {SQUARE}'64'"),
    (lambda _: Recipe(centre_crop=_((1, 2, 3))), f"Recipe.centre_crop: {SQUARE}" + r"\(1, 2, 3\)"),
    (lambda _: Recipe(centre_crop=_(64.0)), f"Recipe.centre_crop: {SQUARE}64.0"),
    (lambda _: Recipe(centre_crop=_(True)), f"Recipe.centre_crop: {SQUARE}True"),
    (lambda _: Pad(to=_("64")), f"Pad.to: {SQUARE}'64'"),
    (lambda _: Pad(_(None)), "Pad.left: must be a whole number of pixels, is None"),
    (lambda _: ExactSize(_(None)), f"ExactSize.size: {SQUARE}None"),
    (lambda _: CentreCrop(_(1.5)), f"CentreCrop.size: {SQUARE}1.5"),
    (lambda _: ScaleJitter(_("8")), f"ScaleJitter.target: {SQUARE}'8'"),
    (lambda _: Patches(_("8")), f"Patches.size: {SQUARE}'8'"),
    (lambda _: Patches(Size(8, 8), merge=_(0.5)), "Patches.merge: must be a whole number, is 0.5"),
    (lambda _: ShorterSide(_((256, 256))), r"ShorterSide.pixels: must be a whole number of pixels, is \(256, 256\)"),
    (lambda _: ShorterSide(256, longest=_(1e3)), "ShorterSide.longest: must be a whole number of pixels, or None, is 1000.0"),
    (lambda _: LongerSide(_("256")), "LongerSide.pixels: must be a whole number of pixels, is '256'"),
    (lambda _: RandomShorterSide((8,), longest=_("9")), "RandomShorterSide.longest: must be a whole number of pixels, or None, is '9'"),
    (lambda _: RandomResizedCrop(_(0.2)), "RandomResizedCrop.scale: must be a pair of numbers"),
    (lambda _: RandomResizedCrop(ratio=_((1, "2"))), r"RandomResizedCrop.ratio: must be a pair of numbers, \(least, most\), is \(1, '2'\)"),
    (lambda _: BoxCrop(_((1, 2, 3))), r"BoxCrop.box: must be Box\(left, top, width, height\), is \(1, 2, 3\)"),
    (lambda _: Normalise(_(0.5), _(0.5)), "Normalise.mean: must be a number for each channel, .* is 0.5"),
    (lambda _: Normalise((0.5,), _("x")), "Normalise.std: must be a number for each channel, .* is 'x'"),
    (lambda _: Recipe(resize=_(256)), r"Recipe.resize: must be ShorterSide\(pixels\), .* is 256"),
    (lambda _: Recipe(resize=_(Size(2, 2))), r"Recipe.resize: must be .* is Size\(width=2, height=2\)"),
    (lambda _: Recipe(crop=_(224)), r"Recipe.crop: must be CentreCrop\(size\), .* is 224"),
    (lambda _: Recipe(normalise=_(True)), r"Recipe.normalise: must be Normalise\(mean, std\), .* is True"),
    (lambda _: Recipe(patches=_(16)), r"Recipe.patches: must be Patches\(size\), is 16"),
    (lambda _: Recipe(erasing=_(0.25)), r"Recipe.erasing: must be Erasing\(probability\), is 0.25"),
    (lambda _: Recipe(pad=_(4)), r"Recipe.pad: must be Pad\(left, top, right, bottom\) or Pad\(to=Size\(width, height\)\), is 4"),
    (lambda _: Recipe(flip_probability=_("0.5")), "Recipe.flip_probability: must be a number from 0 to 1, is '0.5'"),
    (lambda _: Recipe(flip_probability=_(True)), "Recipe.flip_probability: must be a number from 0 to 1, is True"),
    (lambda _: Recipe(indices=_("yes")), "Recipe.indices: must be True or False, is 'yes'"),
    (lambda _: Recipe(random_filters=_("box")), "Recipe.random_filters: must be names of filters, .* is 'box'"),
    (lambda _: Recipe(random_filters=_(3)), "Recipe.random_filters: must be names of filters, .* is 3"),
    (lambda _: Erasing(_("often")), "Erasing.probability: must be a number from 0 to 1, is 'often'"),
    (lambda _: Erasing(most=_(1.5)), "Erasing.most: must be a whole number, is 1.5"),
    (lambda _: Recipe.train(_("224")), "Recipe.train: must be a number of pixels, the side of a square .* is '224'"),
    (lambda _: Recipe.train(_((224, 224))), r"Recipe.train: must be a number of pixels, .* is \(224, 224\)"),
    (lambda _: Recipe.evaluate(_(292.57), 224), "Recipe.evaluate: must be two numbers of pixels, .* is 292.57"),
    (lambda _: Recipe.thumbnail(_("64")), "Recipe.thumbnail: must be a number of pixels, the longer side's, is '64'"),
]
TOO_LARGE: list[tuple[Callable[[], Recipe], str]] = [
    (
        lambda: Recipe.evaluate(224, 256),
        "Recipe.evaluate: the crop's side, 256, is more than the resize's, 224, so no image is large enough",
    ),
    (
        lambda: Recipe(resize=ShorterSide(100), centre_crop=Size(128, 128)),
        "Recipe.centre_crop: 128 x 128 is more than a shorter side of 100",
    ),
    (
        lambda: Recipe(resize=ShorterSide(100, 150), centre_crop=Size(90, 200)),
        "Recipe.centre_crop: 90 x 200 is more than a longer side of 150",
    ),
    (lambda: Recipe(resize=LongerSide(100), centre_crop=Size(101, 3)), "Recipe.centre_crop: 101 x 3 is more than a longer side of 100"),
    (lambda: Recipe(resize=ExactSize(Size(100, 80)), centre_crop=Size(90, 90)), "Recipe.centre_crop: 90 x 90 is more than 100 x 80"),
    (
        lambda: Recipe(resize=RandomShorterSide((60, 90)), centre_crop=Size(128, 91)),
        "Recipe.centre_crop: 128 x 91 is more than a shorter side",
    ),
    (
        lambda: Recipe.of_views(Recipe.train(8), Recipe(resize=ShorterSide(9), centre_crop=Size(10, 10), crop_place="random")),
        "Recipe.centre_crop: 10 x 10 is more than a shorter side of 9",
    ),
    (lambda: dataclasses.replace(Recipe.evaluate(256, 224), resize=ShorterSide(200)), "Recipe.centre_crop: 224 x 224 is more than"),
]
FIT = [
    Recipe.evaluate(224, 224),
    Recipe(resize=ShorterSide(100), centre_crop=Size(300, 100)),  # of a panorama
    Recipe(resize=ShorterSide(20), pad=Pad(to=Size(30, 30)), centre_crop=Size(30, 30)),
    Recipe(resize=LongerSide(48), centre_crop=Size(48, 10)),
    Recipe(resize=RandomShorterSide((20, 90)), centre_crop=Size(90, 90)),
    Recipe(resize=ScaleJitter(Size(10, 10)), centre_crop=Size(90, 90)),
    Recipe(centre_crop=Size(4000, 4000)),
]


@pytest.mark.parametrize(("make", "message"), WRONG, ids=[message.partition(":")[0] + f"-{n}" for n, (_, message) in enumerate(WRONG)])
def test_a_value_of_the_wrong_type_is_refused_by_its_field(make: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(millrace.InvalidRequest, match=f"^{message}"):
        make(lambda value: value)


@pytest.mark.parametrize(("make", "message"), TOO_LARGE, ids=[message for _, message in TOO_LARGE])
def test_a_crop_that_no_image_has_is_refused(make: Callable[[], Recipe], message: str) -> None:
    with pytest.raises(millrace.InvalidRequest, match=message) as caught:
        make()
    assert "pad (Recipe.pad)" in str(caught.value)


@pytest.mark.parametrize("recipe", FIT, ids=repr)
def test_a_crop_that_some_images_have_is_the_daemons_to_judge(client: millrace.Client, recipe: Recipe) -> None:
    with client.session(recipe, batch=1, slots=1) as session:
        batch = session.get(session.submit([png(1)], on_error="zero"))
        assert len(batch) == 1


def test_one_number_is_a_square(client: millrace.Client) -> None:
    of: Any = 24
    recipe = Recipe(resize=ExactSize(of), pad=Pad(to=np.int64(30)), centre_crop=of)  # type: ignore[arg-type]

    assert recipe == Recipe(resize=ExactSize(Size(24, 24)), pad=Pad(to=Size(30, 30)), centre_crop=Size(24, 24))
    assert recipe.fixed_size == Size(24, 24)
    assert isinstance(pickle.loads(pickle.dumps(recipe)).pad.to, Size)
    assert dataclasses.replace(recipe, dtype="float32").centre_crop == Size(24, 24)
    with client.session(recipe, batch=1, slots=1) as session:
        assert session.get(session.submit([png(1)])).images.shape == (1, 3, 24, 24)


def test_lists_and_numpys_numbers_become_values(client: millrace.Client) -> None:
    given: Any = {
        "centre_crop": [8, np.int32(6)],
        "flip_probability": np.float32(0.5),
        "normalise": Normalise(np.float64([0.5] * 3), [1] * 3),
    }  # type: ignore[arg-type]
    recipe = Recipe(**given, dtype="float32")

    assert recipe == Recipe(centre_crop=Size(8, 6), flip_probability=0.5, normalise=Normalise((0.5,) * 3, (1.0,) * 3), dtype="float32")
    assert hash(recipe) == hash(pickle.loads(pickle.dumps(recipe)))
    with client.session(recipe, batch=1, slots=1) as session:
        assert session.get(session.submit([png(1)])).images.shape == (1, 3, 6, 8)


@pytest.mark.parametrize(
    ("recipe", "why"),
    [
        (
            Recipe(resize=ShorterSide(800, 1333), pad=Pad(to=Size(1000, 1000))),
            "Pad.to 1000x1000 is smaller than 1333 (`longest`): say at least",
        ),
        (
            Recipe(resize=LongerSide(60), pad=Pad(4, 4, 4, 4, to=Size(64, 64))),
            "Pad.to 64x64 is smaller than 60 (LongerSide), 68x68 with the pixels that Pad adds",
        ),
        (
            Recipe(resize=ShorterSide(48), pad=Pad(to=Size(64, 64))),
            "ShorterSide without `longest` bounds no longer side, which may be more",
        ),
        (Recipe(resize=RandomShorterSide((8, 9)), pad=Pad(to=Size(64, 64))), "RandomShorterSide without `longest` bounds no longer side"),
        (Recipe(resize=ScaleJitter(Size(8, 8)), pad=Pad(to=Size(8, 8))), "images may be larger than Pad.to 8x8: cut them to it"),
        (Recipe(resize=LongerSide(60)), "the resize keeps the ratio: fill up to one size, Pad(to=Size(60, 60)), or cut"),
        (Recipe(resize=ShorterSide(60)), "ShorterSide keeps the ratio: cut, Recipe(centre_crop=), or give it `longest`"),
        (Recipe(), "end with an exact resize or a centre crop"),
        (Recipe.thumbnail(64), 'not packed: leave out packing="packed"'),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_loader_says_what_leaves_the_size_open(folder: Path, recipe: Recipe, why: str) -> None:
    with pytest.raises(millrace.InvalidRequest, match=re.escape(why)) as caught:
        millrace.numpy.Loader(folder, recipe)
    assert str(caught.value).startswith("loader: the transform must make images of one size")
