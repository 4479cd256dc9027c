"""Padding, padded crops and random sizes of torchvision's as recipes, and what the daemon makes of them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import millrace
import numpy as np
import pytest
from draws import Key, resized
from millrace import ExactSize, LongerSide, Pad, RandomShorterSide, Recipe, ScaleJitter, ShorterSide, Size, steps

torch = pytest.importorskip("torch", reason="PyTorch is not installed: no transform is translated")
v1 = pytest.importorskip("torchvision.transforms", reason="torchvision is not installed: its transforms are not translated")

import millrace.torch  # noqa: E402
from PIL import Image  # noqa: E402
from torchvision.transforms import v2  # noqa: E402

from pictures import SIZE, path_of, pixels_of, png  # noqa: E402

pytestmark = pytest.mark.torch
translate = millrace.torch.from_torchvision
BOTH = pytest.mark.parametrize("of", [v1, v2], ids=["v1", "v2"])
MODES = pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric"])
FLOATS = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]
NORMALISE = v2.Normalize([0.5] * 3, [0.25] * 3)


def made(client: millrace.Client, recipe: Recipe, number: int = 3) -> Any:
    """Height x width x 3 of a picture."""
    packing: Any = "packed" if recipe.fixed_size is None else "one_size"
    recipe = dataclasses.replace(recipe, layout="NHWC", packing=packing)
    with client.session(recipe, batch=1, slots=1, slot_bytes=1 << 20) as session:
        return session.get(session.submit([png(number)])).image(0).numpy().copy()


def theirs(transforms: list[Any], number: int = 3) -> Any:
    return np.asarray(v2.Compose(transforms)(Image.fromarray(pixels_of(number))))


@BOTH
@MODES
@pytest.mark.parametrize("padding", [5, [5], [7, 2], (1, 2, 30, 40)], ids=str)
def test_pads(client: millrace.Client, of: Any, mode: str, padding: Any) -> None:
    transforms = [of.Resize((20, 30)), of.Pad(padding, fill=(9, 80, 200), padding_mode=mode)]

    np.testing.assert_array_equal(made(client, translate(transforms)), theirs(transforms))
    np.testing.assert_array_equal(made(client, translate(transforms[1:])), theirs(transforms[1:]))


@BOTH
def test_what_a_pad_becomes(of: Any) -> None:
    assert translate(of.Pad((1, 2))) == Recipe(pad=Pad(1, 2, 1, 2))
    assert translate(of.Pad(1, fill=9, padding_mode="edge")) == Recipe(pad=Pad(1, 1, 1, 1, mode="edge"))
    assert translate(of.Pad(0)) == Recipe()
    assert translate([of.Pad(1, 7), of.Pad((1, 2), (7, 7, 7))]).pad == Pad(2, 3, 2, 3, fill=7)
    assert translate([of.Pad(1), of.CenterCrop(60)]) == Recipe(pad=Pad(1, 1, 1, 1, to=Size(60, 60)), centre_crop=Size(60, 60))
    assert translate([of.Pad(1, padding_mode="reflect"), of.RandomCrop(8)]).crop_place == "random"
    flipped = [of.Pad(1), of.RandomHorizontalFlip(), of.ColorJitter(0.2)]
    assert translate(flipped) == Recipe(pad=Pad(1, 1, 1, 1), flip_probability=0.5, steps=(steps.ColorJitter(0.2),))


@BOTH
@pytest.mark.parametrize("size", [(60, 70), (31, 49), (70, 20), (9, 90), (11, 7)])
@pytest.mark.parametrize(
    "before", [[], [v1.Resize((21, 30))], [v1.Resize(24)], [v1.Resize(20, max_size=25)], [v1.Pad((3, 4))]], ids=["", "a", "b", "c", "d"]
)
def test_a_centre_crop_pads_what_is_smaller(client: millrace.Client, of: Any, before: list[Any], size: tuple[int, int]) -> None:
    transforms = [*before, of.CenterCrop(size)]

    np.testing.assert_array_equal(made(client, translate(transforms)), theirs(transforms))


def test_a_centre_crop_that_fits_is_one_alone() -> None:
    assert translate([v2.Resize(32), v2.CenterCrop(32)]) == Recipe.evaluate(32, 32)
    assert translate([v2.Resize((32, 40)), v2.CenterCrop(32)]).pad is None
    assert translate([v2.RandomShortestSize([40, 32]), v2.CenterCrop(32)]).pad is None
    assert translate([v2.RandomShortestSize([40, 31]), v2.CenterCrop(32)]).pad == Pad(to=Size(32, 32))
    edge = v2.Pad(4, padding_mode="edge")
    assert translate([v2.Resize(32), edge, v2.CenterCrop(40)]).pad == translate([edge, v2.CenterCrop(9)]).pad == translate(edge).pad
    followed = translate([v2.CenterCrop(32), v2.Pad(4)])
    assert (followed.crop, followed.pad, followed.centre_crop) == (millrace.CentreCrop(Size(32, 32)), Pad(4, 4, 4, 4), None)


def windows(pixels: Any, height: int, width: int) -> set[bytes]:
    """All that may be cut of it."""
    rows, columns = (range(whole - part + 1) for whole, part in zip(pixels.shape[:2], (height, width), strict=True))
    return {pixels[top : top + height, left : left + width].tobytes() for top in rows for left in columns}


def drawn(client: millrace.Client, folder: Path, recipe: Recipe, count: int = 500) -> list[bytes]:
    """Of one picture, under many ids."""
    with client.session(dataclasses.replace(recipe, layout="NHWC"), batch=count, slots=1) as session:
        batch = session.get(session.submit([millrace.Sample(path_of(folder, 3), id=number) for number in range(count)], seed=1))
        return [image.tobytes() for image in batch.images.numpy()]


@BOTH
@MODES
def test_a_crop_of_what_is_padded_is_each_window_alike(client: millrace.Client, folder: Path, of: Any, mode: str) -> None:
    height, width = SIZE.height + 1, SIZE.width + 3
    recipe = translate(of.RandomCrop((height, width), padding=[4, 0, 1, 5], fill=9, padding_mode=mode))
    assert recipe == Recipe(
        pad=Pad(4, 0, 1, 5, mode=mode, fill=9 if mode == "constant" else 0),  # type: ignore[arg-type]
        centre_crop=Size(width, height),
        crop_place="random",
    )
    images = drawn(client, folder, recipe)
    expected = windows(np.asarray(v1.Pad((4, 0, 1, 5), 9, mode)(Image.fromarray(pixels_of(3)))), height, width)
    assert set(images) == expected
    assert len(expected) == 15
    assert max(images.count(each) for each in expected) < 60  # of 33 on average


@BOTH
@MODES
def test_a_crop_that_pads_if_needed_is_each_window_alike(client: millrace.Client, folder: Path, of: Any, mode: str) -> None:
    height, width = SIZE.height + 4, SIZE.width - 2
    transform = of.RandomCrop((height, width), pad_if_needed=True, fill=9, padding_mode=mode)
    recipe = translate(transform)
    assert recipe.pad == Pad(to=Size(width, height), place="random", mode=mode, fill=9 if mode == "constant" else 0)  # type: ignore[arg-type]
    images = drawn(client, folder, recipe)
    whole = np.asarray(v1.Pad((0, 4), 9, mode)(Image.fromarray(pixels_of(3))))
    assert set(images) == windows(whole, height, width)
    torch.manual_seed(1)
    assert {np.asarray(transform(Image.fromarray(pixels_of(3)))).tobytes() for _ in range(300)} == set(images)


@BOTH
def test_padding_and_more_if_needed(of: Any) -> None:
    both = translate(of.RandomCrop((60, 40), padding=(1, 2), pad_if_needed=True))
    assert both.pad == Pad(1, 2, 1, 2, to=Size(40, 60), place="random")
    enough = translate([of.Resize((56, 40)), of.RandomCrop((60, 40), padding=(1, 2), pad_if_needed=True)])
    assert enough.pad == Pad(1, 2, 1, 2)
    cifar = translate([of.RandomCrop(32, padding=4), of.RandomHorizontalFlip()])
    assert cifar == Recipe(pad=Pad(4, 4, 4, 4), centre_crop=Size(32, 32), crop_place="random", flip_probability=0.5)
    grey = translate([of.Resize((20, 20)), of.Grayscale(1), of.RandomCrop(24, padding=4)])
    assert (grey.channels, grey.pad) == ("grey", Pad(4, 4, 4, 4))


def test_padding_behind_the_conversion(client: millrace.Client) -> None:
    black, mirrored = [*FLOATS, v2.Pad(3)], [*FLOATS, NORMALISE, v2.Pad(3, padding_mode="symmetric")]
    for transforms in (black, mirrored):
        expected = v2.Compose(transforms)(Image.fromarray(pixels_of(3))).numpy().transpose(1, 2, 0)
        np.testing.assert_allclose(made(client, translate(transforms)), expected, atol=1e-6)


REFUSED: list[tuple[list[Any], str]] = [
    ([*FLOATS, v2.Pad(3, fill=1)], "Pad after ToDtype: the daemon pads pixels of 8 bits; put it before ToDtype"),
    ([*FLOATS, NORMALISE, v2.RandomCrop(8, padding=3)], "RandomCrop after Normalize: the daemon pads pixels of 8 bits"),
    ([v2.Pad(3), v2.Resize(8)], "Resize after Pad"),
    ([v2.Pad(3), v2.RandomResizedCrop(8)], "RandomResizedCrop after Pad"),
    ([v2.RandomHorizontalFlip(), v2.Pad(3)], "Pad after RandomHorizontalFlip"),
    ([v2.RandomCrop(8), v2.Pad(3)], "Pad after RandomCrop"),
    ([v2.Pad(3), v2.Pad(3, fill=1)], "Pad after Pad: the daemon pads once"),
    ([v2.Pad(3, padding_mode="edge"), v2.Pad(3, padding_mode="edge")], "Pad after Pad: the daemon pads once"),
    ([v2.Pad(3, fill=7), v2.CenterCrop(60)], "CenterCrop after Pad: the daemon pads once"),
    ([v2.Pad(4, padding_mode="edge"), v2.CenterCrop(10)], "CenterCrop after Pad: the daemon pads once"),
    ([*FLOATS, v2.RandomErasing(), v2.Pad(3)], "Pad after RandomErasing"),
    ([v2.Pad(-3)], "Pad with padding=-3: less than 0 cuts off"),
    ([v2.Pad(3, fill={"others": 3})], "Pad with a fill for each kind"),
    ([v2.FiveCrop(8), v2.Pad(3)], "Pad after FiveCrop"),
    ([v2.RandomApply([v2.Pad(3)])], "Pad in a group"),
    ([v2.Resize(8), v2.RandomCrop(9)], "RandomCrop to 9 x 9 is larger than an image of 8 x 8"),
    ([v2.RandomHorizontalFlip(), v2.RandomCrop(9)], "RandomCrop after RandomHorizontalFlip"),
]


@pytest.mark.parametrize(("transforms", "message"), REFUSED, ids=[str(number) for number in range(len(REFUSED))])
def test_what_is_refused(transforms: list[Any], message: str) -> None:
    with pytest.raises(millrace.Unsupported, match=rf"^from_torchvision: {message}"):
        translate(transforms)


def test_random_sizes_become() -> None:
    bicubic = v2.InterpolationMode.BICUBIC
    assert translate(v2.ScaleJitter((640, 480), (0.5, 1))) == Recipe(resize=ScaleJitter(Size(640, 480), (0.5, 1.0)))
    assert translate(v2.RandomShortestSize(8)) == Recipe(resize=RandomShorterSide((8,)))
    assert translate(v2.RandomShortestSize([8, 9], 20, bicubic)) == Recipe(resize=RandomShorterSide((8, 9), 20), filter="bicubic")
    assert translate(v2.RandomShortestSize([8, 30], 20)).resize == RandomShorterSide((8, 20), 20)
    assert translate(v2.RandomResize(8, 11)) == Recipe(resize=RandomShorterSide((8, 9, 10)))
    with pytest.raises(millrace.Unsupported, match="ScaleJitter after RandomResize"):
        translate([v2.RandomResize(8, 11), v2.ScaleJitter((8, 8))])


def test_their_sizes_are_torchvisions_or_a_pixel_beside() -> None:
    sizes = [(int(w), int(h)) for w, h in np.random.default_rng(5).integers(1, 1500, (400, 2))]
    sizes += [(49, 49), (640, 480), (1, 1000), (1333, 800)]
    cases: list[tuple[Any, Any]] = [
        *((v2.RandomShortestSize(side), RandomShorterSide((side,))) for side in (480, 800, 49)),
        *((v2.RandomShortestSize(side, 1333), RandomShorterSide((side,), 1333)) for side in (480, 800, 1333)),
        *((v2.ScaleJitter((640, 320), (scale, scale)), ScaleJitter(Size(640, 320), scale)) for scale in (0.1, 0.77, 1.0, 2.0)),
    ]
    for transform, resize in cases:
        found = [transform.make_params([torch.empty(3, h, w, device="meta")])["size"][::-1] for w, h in sizes]
        beside = np.abs(np.subtract([resized(resize, size, Key(0, 0, 0)) for size in sizes], found))
        is_whole = np.min(found, axis=-1) >= 1  # torchvision makes sides of 0 pixels, too
        assert beside[is_whole].max() <= 1, (transform, np.array(sizes)[beside.max(-1) > 1])
        assert beside[is_whole].mean() < 0.2


def test_a_letterbox_in_torchvisions_words(client: millrace.Client) -> None:
    transforms = [v2.Resize(None, max_size=64), v2.CenterCrop(64)]
    assert translate(transforms) == Recipe(resize=LongerSide(64), pad=Pad(to=Size(64, 64)), centre_crop=Size(64, 64))
    np.testing.assert_array_equal(made(client, translate(transforms)), theirs(transforms))


def test_a_split_pads_on_the_daemons_side() -> None:
    blur = v2.ElasticTransform()
    recipe, rest = millrace.torch.split([v2.Resize((8, 9)), v2.Pad(2), blur])
    assert recipe == Recipe(resize=ExactSize(Size(9, 8)), pad=Pad(2, 2, 2, 2))
    assert blur in rest
    assert translate([v2.Resize(8), v2.RandomCrop((8, 8))]).resize == ShorterSide(8)
