"""Transforms that cut several images of one, or one at a place: FiveCrop, TenCrop and RandomCrop of torchvision's and Albumentations'."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import millrace
import numpy as np
import pytest
from draws import Key, placed
from millrace import ExactSize, Recipe, ShorterSide, Size, steps

torch = pytest.importorskip("torch", reason="PyTorch is not installed: no transform is translated")
v1 = pytest.importorskip("torchvision.transforms", reason="torchvision is not installed: its transforms are not translated")

import millrace.torch  # noqa: E402
from PIL import Image  # noqa: E402
from torchvision.transforms import v2  # noqa: E402

from pictures import SIZE, path_of, pixels_of, png  # noqa: E402

pytestmark = pytest.mark.torch
translate = millrace.torch.from_torchvision
BOTH = pytest.mark.parametrize("of", [v1, v2], ids=["v1", "v2"])
FLOATS = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]


def made(client: millrace.Client, recipe: Recipe, number: int = 3) -> list[Any]:
    """Of a picture: each view, height x width x 3."""
    with client.session(recipe, batch=1, slots=1) as session:
        return [view.numpy()[0].transpose(1, 2, 0) for view in session.get(session.submit([png(number)])).views]


@BOTH
@pytest.mark.parametrize("before", [[], [v1.Resize(24)], [v1.CenterCrop((30, 40))]], ids=["nothing", "Resize", "CenterCrop"])
def test_five_crops(client: millrace.Client, of: Any, before: list[Any]) -> None:
    recipe = translate([*before, of.FiveCrop((20, 24))])
    image = Image.fromarray(pixels_of(3))
    for transform in before:
        image = transform(image)

    assert [view.crop_place for view in recipe.views] == ["top_left", "top_right", "bottom_left", "bottom_right", "centre"]
    for ours, theirs in zip(made(client, recipe), of.FiveCrop((20, 24))(image), strict=True):
        np.testing.assert_array_equal(ours, np.asarray(theirs))


@BOTH
@pytest.mark.parametrize("vertical", [False, True])
@pytest.mark.parametrize("size", [Size(24, 20), Size(25, 19)], ids=["even", "odd"])
def test_ten_crops(client: millrace.Client, of: Any, vertical: bool, size: Size) -> None:
    transform = of.TenCrop((size.height, size.width), vertical_flip=vertical)
    recipe = translate([transform])
    ours, theirs = made(client, recipe), [np.asarray(each) for each in transform(Image.fromarray(pixels_of(3)))]

    assert len(ours) == 10
    is_beside = (SIZE.height - size.height if vertical else SIZE.width - size.width) % 2 == 1
    for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        if number == 9 and is_beside:  # the flipped middle one
            whole = pixels_of(3)[::-1] if vertical else pixels_of(3)[:, ::-1]
            top, left = round((SIZE.height - size.height) / 2), round((SIZE.width - size.width) / 2)
            offsets = [(0, 1), (0, -1)] if not vertical else [(1, 0), (-1, 0)]
            beside = [whole[top + y : top + y + size.height, left + x : left + x + size.width] for y, x in offsets]
            assert any(np.array_equal(one, each) for each in beside)
        else:
            np.testing.assert_array_equal(one, other)


def test_what_follows_is_done_to_each(client: millrace.Client) -> None:
    pipeline = [v2.Resize((30, 44)), v2.FiveCrop(24), *FLOATS, v2.Normalize([0.5] * 3, [0.25] * 3)]
    recipe = translate(pipeline)
    theirs = v2.Compose(pipeline)(Image.fromarray(pixels_of(3)))

    assert {view.dtype for view in recipe.views} == {recipe.dtype} == {"float32"}
    for ours, other in zip(made(client, recipe), theirs, strict=True):
        np.testing.assert_allclose(ours, other.numpy().transpose(1, 2, 0), atol=1e-5)
    grey = translate([v1.Resize((30, 44)), v1.FiveCrop(24), v1.Grayscale()])
    assert [len(each[0, 0]) for each in made(client, grey)] == [1] * 5


@pytest.mark.parametrize(
    ("transforms", "message"),
    [
        ([v2.FiveCrop(8), v2.RandomHorizontalFlip()], "RandomHorizontalFlip after FiveCrop: behind it the daemon only converts"),
        ([v2.TenCrop(8), v2.ColorJitter(0.2)], "ColorJitter after TenCrop: behind it"),
        ([v2.TenCrop(8), *FLOATS, v2.RandomErasing()], "RandomErasing after TenCrop: behind it"),
        ([v2.FiveCrop(8), v2.Resize(8)], "Resize after FiveCrop"),
        ([v2.FiveCrop(8), v2.FiveCrop(4)], "FiveCrop after FiveCrop"),
        ([v2.RandomHorizontalFlip(), v2.FiveCrop(8)], "FiveCrop after RandomHorizontalFlip"),
        ([v2.Resize(8), v2.FiveCrop(9)], "FiveCrop to 9 x 9 is larger than an image of 8 x 8"),
        ([v2.RandomCrop(8), v2.Resize(8)], "Resize after RandomCrop"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_refused(transforms: list[Any], message: str) -> None:
    with pytest.raises(millrace.Unsupported, match=rf"^from_torchvision: {message}"):
        translate(transforms)


@BOTH
def test_a_random_crop_is_cut_after_the_resize(of: Any) -> None:
    size = Size(40, 32)
    window = {"centre_crop": size, "crop_place": "random", "flip_probability": 0.5}

    for before, resize in (([], None), ([of.Resize(48)], ShorterSide(48)), ([of.Resize((48, 64))], ExactSize(Size(64, 48)))):
        for crop in (of.RandomCrop((32, 40)), *([of.RandomCrop((32, 40), pad_if_needed=True)] if before else [])):
            assert translate([*before, crop, of.RandomHorizontalFlip()]) == Recipe(resize=resize, **window)  # type: ignore[arg-type]
    fixed = translate([of.CenterCrop(40), of.RandomCrop(32)])
    assert (fixed.crop, fixed.centre_crop) == (millrace.CentreCrop(Size(40, 40)), Size(32, 32))


def windows(pixels: Any, size: Size) -> set[bytes]:
    """All that may be cut of it."""
    rows, columns = (range(whole - part + 1) for whole, part in zip(pixels.shape[:2], (size.height, size.width), strict=True))
    return {pixels[top : top + size.height, left : left + size.width].tobytes() for top in rows for left in columns}


def test_each_place_is_as_likely_and_as_drawn(client: millrace.Client, folder: Path) -> None:
    size, count = Size(46, 29), 600
    recipe = translate([v2.RandomCrop((29, 46))])
    with client.session(recipe, batch=count, slots=1) as session:
        batch = session.get(session.submit([millrace.Sample(path_of(folder, 3), id=number) for number in range(count)], seed=2, epoch=7))
        found = [image.transpose(1, 2, 0).tobytes() for image in batch.images.numpy()]
    for number, image in enumerate(found):
        left, top = placed(size, SIZE, Key(2, 7, number))
        assert image == pixels_of(3)[top : top + 29, left : left + 46].tobytes()
    assert set(found) == windows(pixels_of(3), size)
    assert max(found.count(each) for each in set(found)) < 90  # of 50 on average


def test_albumentations_random_crop(client: millrace.Client, folder: Path) -> None:
    library = pytest.importorskip("albumentations", reason="Albumentations is not installed: its random crop is not compared")
    from_albumentations = millrace.torch.from_albumentations
    transform = library.RandomCrop(29, 46)
    recipe = from_albumentations([transform])

    assert recipe == Recipe(centre_crop=Size(46, 29), crop_place="random")
    with client.session(recipe, batch=300, slots=1) as session:
        batch = session.get(session.submit([millrace.Sample(path_of(folder, 3), id=number) for number in range(300)]))
        ours = {image.transpose(1, 2, 0).tobytes() for image in batch.images.numpy()}
    theirs = {transform(image=pixels_of(3))["image"].tobytes() for _ in range(300)}
    assert ours == theirs == windows(pixels_of(3), Size(46, 29))


def test_a_split_leaves_several_images_to_a_rest_that_takes_them_all() -> None:
    stack = v1.Lambda(lambda crops: torch.stack([v1.functional.to_tensor(crop) for crop in crops]))
    resize, five = v1.Resize((32, 48)), v1.FiveCrop(24)
    recipe, rest = millrace.torch.split([resize, five, stack])
    assert recipe == Recipe(resize=ExactSize(Size(48, 32)))
    assert rest[1:] == [five, stack]
    assert isinstance(rest[0], v1.ToPILImage)
    assert millrace.torch.split([resize, five]) == (translate([resize, five]), [])


def test_several_transforms_of_one_image_are_views() -> None:
    first, second = v2.Compose([v2.RandomResizedCrop(24), v2.RandomInvert(0.2)]), v2.Compose([v2.Resize((16, 16)), v2.RandomSolarize(100)])

    recipe = Recipe.of_views(translate(first), *[translate(second)] * 2)
    assert recipe.views[0].steps == (steps.Invert(probability=0.2),)
    assert [view.fixed_size for view in recipe.views] == [Size(24, 24), Size(16, 16), Size(16, 16)]
