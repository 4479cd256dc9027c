"""Several views of one decode: the pixels of each are those that Pillow and torchvision make of the sample, given what draws.py draws."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path
from typing import Any

import millrace
import numpy as np
import pytest

pytestmark = pytest.mark.torch
pytest.importorskip("torchvision", reason="torchvision is not installed: views are not compared with its pixels")

from draws import Key, cropped, flipped  # noqa: E402
from millrace import ExactSize, RandomResizedCrop, Recipe, Size, steps  # noqa: E402

from augmented import FAR_IDS, SIZES, picture, write  # noqa: E402
from views import GEOMETRY, bytes_of, image_of, views_of  # noqa: E402

ORIENTATION = 0x112  # EXIF's tag
JPEG: list[tuple[Size, int, dict[str, Any]]] = [
    (Size(900, 650), 1, {}),
    (Size(900, 650), 6, {"subsampling": 0}),
    (Size(401, 603), 3, {"progressive": True}),
]


@pytest.fixture(scope="module")
def written(folder: Path) -> list[millrace.Path]:
    return [write(folder.parent, size, 7) for size in SIZES]


def samples_of(paths: list[millrace.Path]) -> list[millrace.Sample]:
    """Each of the pictures under each of the ids."""
    return [millrace.Sample(path, id=number) for path, number in itertools.product(paths, FAR_IDS)]


def check(recipe: Recipe, views: list[Any], seed: int, epoch: int) -> None:
    """The batch of ``samples_of`` the pictures: each view of each sample."""
    for number, (view, images) in enumerate(zip(recipe.views, views, strict=True)):
        for image, (size, sample) in zip(images, itertools.product(SIZES, FAR_IDS), strict=True):
            np.testing.assert_array_equal(
                image, image_of(view, picture(size, 7), Key(seed, epoch, sample, number)), err_msg=f"view {number}"
            )


@pytest.mark.parametrize(("seed", "epoch"), [(0, 0), (2**64 - 1, 3)])
def test_each_view_is_what_its_recipe_makes_of_its_draws(
    client: millrace.Client, written: list[millrace.Path], seed: int, epoch: int
) -> None:
    recipe = bytes_of(GEOMETRY)
    with client.session(recipe, batch=20, slots=1) as session:
        batch = session.get(session.submit(samples_of(written), seed=seed, epoch=epoch))
        check(recipe, views_of(batch), seed, epoch)


def test_each_view_has_steps_of_its_own(client: millrace.Client, written: list[millrace.Path]) -> None:
    jitter = steps.ColorJitter(0.4, 0.4, 0.2, 0.1, probability=0.8)
    several = (jitter, steps.Grayscale(probability=0.2), steps.PillowBlur(probability=0.5), steps.Solarize(probability=0.2))
    size = ExactSize(Size(33, 30))
    nested = (steps.AnyOrder((steps.RandAugment(), steps.OneOf((steps.Posterize(3), steps.VerticalFlip()))), probability=0.9), jitter)
    recipe = bytes_of(Recipe.of_views([Recipe(resize=size, steps=several)] * 2, Recipe(resize=size, steps=nested), Recipe.train(20)))
    with client.session(recipe, batch=20, slots=1) as session:
        views = views_of(session.get(session.submit(samples_of(written), seed=5, epoch=1)))
    check(recipe, views, 5, 1)
    assert (views[0] != views[1]).any((1, 2, 3)).mean() > 0.5  # each draws for itself


@pytest.mark.parametrize("fidelity", ["exact", "fast"])
def test_of_one_decode_of_a_jpeg_file_each_view_is_what_its_part_makes_alone(client: millrace.Client, folder: Path, fidelity: Any) -> None:
    """Large and small parts of turned, progressive and subsampled files: what is decoded serves all of them."""
    from PIL import Image

    files = []
    for number, (size, orientation, options) in enumerate(JPEG):
        exif = Image.Exif()
        exif[ORIENTATION] = orientation
        files.append((folder.parent / f"view-{number}.jpg", size if orientation < 5 else Size(size.height, size.width)))
        Image.fromarray(picture(size, number)).save(files[-1][0], quality=90, exif=exif, **options)
    large, small = (
        dataclasses.replace(Recipe.train(side), crop=RandomResizedCrop(scale)) for side, scale in ((96, (0.3, 1)), (40, (0.01, 0.2)))
    )
    recipe = Recipe.of_views([large] * 2, [small] * 4)
    numbered = list(itertools.product(files, (1, 2**33)))
    with client.session(recipe, batch=len(numbered), slots=2) as session:
        together = session.get(session.submit([millrace.Sample(path, id=n) for (path, _), n in numbered], seed=5, fidelity=fidelity))
        with client.session(large, batch=1, slots=2) as one:
            for index, ((path, size), sample) in enumerate(numbered):
                for number, view in enumerate(recipe.views):
                    key = Key(5, 0, sample, number)
                    box, probability = millrace.Box(*cropped(view.crop, size, key)), float(flipped(view.flip_probability, key))
                    part = dataclasses.replace(view, crop=millrace.BoxCrop(box), flip_probability=probability)
                    alone = one.get(one.submit([path], recipe=part, fidelity=fidelity)).images.numpy()[0]
                    found = together.image(index, number).numpy()
                    if fidelity == "exact":
                        np.testing.assert_array_equal(found, alone)
                    else:  # each within the bound of exact
                        assert np.abs(found.astype(int) - alone).max() <= 2 * 64
                        assert np.abs(found.astype(int) - alone).mean() <= 2 * 1.0
