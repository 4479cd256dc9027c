"""Recipes of self-supervised training, view by view: those of the published transforms, and their pixels given what draws.py draws."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import millrace
import numpy as np
import pytest

pytestmark = pytest.mark.torch
of = pytest.importorskip("torchvision.transforms", reason="torchvision is not installed: published recipes are not compared")

import millrace.torch  # noqa: E402
from draws import Key  # noqa: E402
from millrace import Recipe, recipes, steps  # noqa: E402

from augmented import picture, share_that_differs, write  # noqa: E402
from views import bytes_of, image_of, views_of  # noqa: E402

BICUBIC, BILINEAR = of.InterpolationMode.BICUBIC, of.InterpolationMode.BILINEAR
FLIP, GREY, SOLARISE = of.RandomHorizontalFlip(0.5), of.RandomGrayscale(0.2), of.RandomSolarize(128, 0.2)
BYOL = of.RandomApply([of.ColorJitter(0.4, 0.4, 0.2, 0.1)], p=0.8)
STRONG = of.RandomApply([of.ColorJitter(0.8, 0.8, 0.8, 0.2)], p=0.8)
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def cropped(side: int, scale: tuple[float, float], mode: Any = BICUBIC) -> Any:
    return of.RandomResizedCrop(side, scale=scale, interpolation=mode)


def blurred(p: float, kernel: int = 9) -> Any:
    return of.RandomApply([of.GaussianBlur(kernel, (0.1, 2.0))], p=p)


def by_pillow(p: float) -> Any:
    """Of a class of the sources', around Pillow's ImageFilter.GaussianBlur; torchvision has none."""
    return blurred(p, 99)


def normalised(*transforms: Any, std: Any = STD) -> Recipe:
    """The recipe of the transforms, kernels of 99 pixels being Pillow's blur."""
    recipe = millrace.torch.from_torchvision([*transforms, of.ToTensor(), of.Normalize(MEAN, std)])
    return dataclasses.replace(recipe, steps=tuple(map(_with_pillows_blur, recipe.steps)))


def _with_pillows_blur(step: steps.Step) -> steps.Step:
    is_pillows = isinstance(step, steps.GaussianBlur) and step.kernel_size == 99
    return steps.PillowBlur(step.sigma, probability=step.probability) if is_pillows else step  # type: ignore[attr-defined]


def test_simclr() -> None:
    view = millrace.torch.from_torchvision([cropped(224, (0.08, 1.0)), FLIP, STRONG, GREY, blurred(0.5, 23), of.ToTensor()])

    assert recipes.simclr() == Recipe.of_views(view, view)
    assert recipes.simclr(views=1) == view


def test_byol() -> None:
    crop = cropped(224, (0.08, 1.0))
    first, second = normalised(crop, FLIP, BYOL, GREY, blurred(1.0, 23)), normalised(crop, FLIP, BYOL, GREY, blurred(0.1, 23), SOLARISE)

    assert recipes.byol() == Recipe.of_views(first, second)


@pytest.mark.parametrize("least", [0.08, 0.2])
def test_moco_v3(least: float) -> None:
    """There the flip comes last: a mirrored image has the same colours, blur and solarisation."""
    crop = cropped(224, (least, 1.0), BILINEAR)
    first, second = normalised(crop, BYOL, GREY, by_pillow(1.0), FLIP), normalised(crop, BYOL, GREY, by_pillow(0.1), SOLARISE, FLIP)
    published = [dataclasses.replace(view, steps=view.steps[:-1], flip_probability=0.5) for view in (first, second)]

    assert [view.steps[-1] for view in (first, second)] == [steps.HorizontalFlip(probability=0.5)] * 2
    assert recipes.moco_v3(least=least) == Recipe.of_views(published)


def test_swav() -> None:
    todo, std = (FLIP, STRONG, GREY, by_pillow(0.5)), (0.228, 0.224, 0.225)
    large = normalised(cropped(224, (0.14, 1.0), BILINEAR), *todo, std=std)
    small = normalised(cropped(96, (0.05, 0.14), BILINEAR), *todo, std=std)

    assert recipes.swav() == Recipe.of_views([large] * 2, [small] * 6)


def test_dino() -> None:
    large, small = cropped(224, (0.4, 1.0)), cropped(96, (0.05, 0.4))
    first = normalised(large, FLIP, BYOL, GREY, by_pillow(1.0))
    second = normalised(large, FLIP, BYOL, GREY, by_pillow(0.1), SOLARISE)
    local = normalised(small, FLIP, BYOL, GREY, by_pillow(0.5))

    assert recipes.dino() == Recipe.of_views(first, second, *[local] * 8)


@pytest.mark.parametrize("side", [96, 98])
def test_dinov2(side: int) -> None:
    """Its GaussianBlur(p) is done with 1 - p."""
    large, small = cropped(224, (0.32, 1.0)), cropped(side, (0.05, 0.32))
    first = normalised(large, FLIP, BYOL, GREY, blurred(1 - 1.0))
    second = normalised(large, FLIP, BYOL, GREY, blurred(1 - 0.1), SOLARISE)
    local = normalised(small, FLIP, BYOL, GREY, blurred(1 - 0.5))
    never = first.steps[-1]

    assert never.probability == 0.0
    first = dataclasses.replace(first, steps=first.steps[:-1])
    assert recipes.dinov2(local_side=side) == Recipe.of_views(first, second, [local] * 8)


@pytest.mark.parametrize(
    "name", ["simclr", *(pytest.param(name, marks=pytest.mark.long) for name in ("byol", "moco_v3", "swav", "dino")), "dinov2"]
)
def test_their_pixels(client: millrace.Client, folder: Path, name: str) -> None:
    recipe = bytes_of(getattr(recipes, name)())
    size, ids = millrace.Size(320, 240), range(8)
    path = write(folder.parent, size, 11)
    with client.session(recipe, batch=len(ids), slots=1) as session:
        batch = session.get(session.submit([millrace.Sample(path, id=number) for number in ids], seed=4, epoch=2))
        views = views_of(batch)
    for number, (view, images) in enumerate(zip(recipe.views, views, strict=True)):
        expected = [image_of(view, picture(size, 11), Key(4, 2, sample, number)) for sample in ids]
        blurs = any(isinstance(step, steps.GaussianBlur) for step in view.steps)  # whose kernel torchvision computes in another order
        for image, other in zip(images, expected, strict=True):
            assert np.abs(image.astype(int) - other).max() <= (1 if blurs else 0)
            assert share_that_differs(image, other) <= (0.001 if blurs else 0)
    drawn = [len(set(map(bytes, images))) for images in views]
    assert drawn == [len(ids)] * len(views)
