"""Padding, random sizes, random filters, several erased rectangles: the daemon's pixels are Pillow's and torchvision's, given the draws."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path
from typing import Any

import millrace
import numpy as np
import pytest
from millrace import ExactSize, LongerSide, Pad, RandomShorterSide, Recipe, ScaleJitter, ShorterSide, Size, steps

pytestmark = pytest.mark.torch
pytest.importorskip("torchvision", reason="torchvision is not installed: padding is not compared with its pixels")

from draws import Key, all_erased, filtered, noise, padded, resized  # noqa: E402
from PIL import Image  # noqa: E402
from torchvision.transforms import functional as F  # noqa: E402, N812

from augmented import FAR_IDS, SIZES, picture, write  # noqa: E402
from views import image_of, views_of  # noqa: E402

MODES = ("constant", "edge", "reflect", "symmetric")
LETTERBOX = Recipe(resize=LongerSide(64), pad=Pad(to=Size(64, 64), fill=114))


@pytest.fixture(scope="module")
def written(folder: Path) -> list[millrace.Path]:
    return [write(folder.parent, size, 9) for size in SIZES]


def made(client: millrace.Client, recipe: Recipe, paths: list[millrace.Path], ids: list[int] | None = None, **options: Any) -> list[Any]:
    """Height x width x 3 of each of the pictures under each of the ids."""
    samples = [millrace.Sample(path, id=number) for path, number in itertools.product(paths, ids or FAR_IDS)]
    recipe = dataclasses.replace(recipe, layout="NHWC", packing="packed" if recipe.fixed_size is None else "one_size")
    with client.session(recipe, batch=len(samples), slots=1, slot_bytes=16 << 20) as session:
        batch = session.get(session.submit(samples, **options))
        assert [tuple(image.shape[1::-1]) for image in map(batch.image, range(len(batch)))] == [tuple(size) for size in batch.sizes]
        return [batch.image(index).numpy().copy() for index in range(len(batch))]


def check(client: millrace.Client, recipe: Recipe, written: list[millrace.Path], seed: int = 3, epoch: int = 2**40) -> list[Any]:
    images = made(client, recipe, written, seed=seed, epoch=epoch)
    for image, (size, sample) in zip(images, itertools.product(SIZES, FAR_IDS), strict=True):
        np.testing.assert_array_equal(
            image, image_of(recipe, picture(size, 9), Key(seed, epoch, sample)), err_msg=f"{size}, sample {sample}"
        )
    return images


RECIPES = {
    **{f"{mode}, all sides": Recipe(resize=ExactSize(Size(40, 31)), pad=Pad(3, 7, 0, 11, mode=mode, fill=(9, 80, 200))) for mode in MODES},
    **{f"{mode}, own size": Recipe(pad=Pad(5, 0, 17, 1, mode=mode)) for mode in MODES},
    **{f"{mode}, more than there is": Recipe(resize=ExactSize(Size(7, 5)), pad=Pad(30, 8, 19, 44, mode=mode)) for mode in MODES},
    **{f"{mode}, of one pixel": Recipe(resize=ExactSize(Size(1, 1)), pad=Pad(2, 1, 3, 4, mode=mode, fill=7)) for mode in MODES},
    "letterbox": LETTERBOX,
    "letterbox, in each corner": Recipe.of_views(
        dataclasses.replace(LETTERBOX, pad=Pad(to=Size(65, 67), place=place))
        for place in ("top_left", "top_right", "bottom_left", "bottom_right", "centre", "random")
    ),
    "letterbox, flipped": dataclasses.replace(LETTERBOX, flip_probability=0.5),
    "a random crop with padding": Recipe(
        resize=ExactSize(Size(32, 32)), pad=Pad(4, 4, 4, 4), centre_crop=Size(32, 32), crop_place="random", flip_probability=0.5
    ),
    "the same, mirrored": Recipe(
        resize=ExactSize(Size(32, 32)), pad=Pad(4, 2, 7, 0, mode="reflect"), centre_crop=Size(33, 30), crop_place="random"
    ),
    "a crop of padding alone": Recipe(
        resize=ExactSize(Size(9, 9)), pad=Pad(50, 50, fill=3), centre_crop=Size(20, 20), crop_place="top_left"
    ),
    "padded if needed": Recipe(pad=Pad(to=Size(80, 80), place="random"), centre_crop=Size(80, 80), crop_place="random"),
    "padded and cut in the middle": Recipe(pad=Pad(to=Size(81, 90)), centre_crop=Size(81, 90)),
    "both paddings": Recipe(resize=ShorterSide(20), pad=Pad(1, 2, 3, 4, to=Size(48, 41), place="bottom_right", fill=1), packing="packed"),
    "steps on what is padded": dataclasses.replace(
        LETTERBOX, steps=(steps.Rotation((-30, 30)), steps.PillowBlur()), erasing=steps.Erasing(0.7, value=9)
    ),
    "large-scale jitter": Recipe(
        resize=ScaleJitter(Size(64, 48), (0.1, 2)),
        pad=Pad(to=Size(64, 48), place="top_left", fill=99),
        centre_crop=Size(64, 48),
        crop_place="random",
        flip_probability=0.5,
    ),
    "jitter alone": Recipe(resize=ScaleJitter(Size(50, 70), (0.3, 0.9)), filter="bicubic"),
    "shorter sides": Recipe(resize=RandomShorterSide(range(20, 41, 4)), filter="lanczos"),
    "bounded shorter sides, padded": Recipe(resize=RandomShorterSide([20, 30, 45], 50), pad=Pad(to=Size(50, 50), place="top_left")),
    "of fixed crops": Recipe(crop=millrace.CentreCrop(Size(30, 17)), resize=RandomShorterSide([10, 20], 40), pad=Pad(1)),
    "random filters": dataclasses.replace(Recipe.train(24), random_filters=("bilinear", "bicubic", "nearest", "lanczos", "box", "hamming")),
    "rectangles": Recipe(resize=ExactSize(Size(60, 50)), erasing=steps.Erasing(0.9, value=200, most=3)),
    "many rectangles": Recipe(resize=ExactSize(Size(60, 50)), erasing=steps.Erasing(1, (0.5, 0.9), (0.1, 9), value=7, most=16)),
}


@pytest.mark.parametrize("name", RECIPES)
def test_the_daemons_pixels_are_those_of_the_draws(client: millrace.Client, written: list[millrace.Path], name: str) -> None:
    if not RECIPES[name].views:
        check(client, RECIPES[name], written)
        return
    recipe = dataclasses.replace(RECIPES[name], layout="NHWC")
    with client.session(recipe, batch=len(written), slots=1) as session:
        views = views_of(session.get(session.submit([millrace.Sample(path, id=5) for path in written], seed=1)))
    for number, (view, images) in enumerate(zip(recipe.views, views, strict=True)):
        for image, size in zip(images, SIZES, strict=True):
            np.testing.assert_array_equal(image, image_of(view, picture(size, 9), Key(1, 0, 5, number)), err_msg=f"view {number}")


def test_a_letterbox_is_a_resize_and_a_paste(client: millrace.Client, written: list[millrace.Path]) -> None:
    for image, size in zip(made(client, LETTERBOX, written, [0]), SIZES, strict=True):
        small = max(size) / 64
        expected = Image.new("RGB", (64, 64), (114, 114, 114))
        sides = int(size.width / small), int(size.height / small)
        expected.paste(
            Image.fromarray(picture(size, 9)).resize(sides, Image.Resampling.BILINEAR), ((64 - sides[0]) // 2, (64 - sides[1]) // 2)
        )
        np.testing.assert_array_equal(image, np.asarray(expected))


def test_nothing_is_drawn_alike(client: millrace.Client, written: list[millrace.Path]) -> None:
    ids = list(range(60))
    keys = [Key(0, 0, number) for number in ids]
    for name in ("a random crop with padding", "large-scale jitter", "rectangles", "padded if needed"):
        assert len({image.tobytes() for image in made(client, RECIPES[name], written[:1], ids)}) > 20
    filters = RECIPES["random filters"]
    assert {filtered(filters, key) for key in keys} == set(filters.random_filters)
    sides = RECIPES["shorter sides"]
    assert {min(resized(sides.resize, (97, 64), key)) for key in keys} == set(range(20, 41, 4))
    assert {image.shape[0] for image in made(client, sides, written[:1], ids)} == set(range(20, 41, 4))
    erasing = RECIPES["many rectangles"].erasing
    assert erasing is not None
    assert {len(all_erased(erasing, (60, 50), key)) for key in keys} >= set(range(2, 12))


@pytest.mark.parametrize("kind", ["pixel", "channel"])
def test_noise_of_several_rectangles_goes_on_from_one_to_the_next(client: millrace.Client, written: list[millrace.Path], kind: Any) -> None:
    erasing = steps.Erasing(1, (0.1, 0.3), value=kind, most=4)
    recipe = Recipe(resize=ExactSize(Size(20, 18)), dtype="float32", range="raw", erasing=erasing)
    plain = made(client, dataclasses.replace(recipe, erasing=None), written[:1], [0])[0]
    for number, image in zip(range(12), made(client, recipe, written[:1], list(range(12))), strict=True):
        expected, boxes = plain.copy(), all_erased(erasing, (20, 18), Key(0, 0, number))
        values = noise(sum(3 * w * h for _, _, w, h in boxes), Key(0, 0, number))
        for left, top, width, height in boxes:
            each = width * height if kind == "pixel" else 1
            taken, values = values[: 3 * each], values[3 * each :]
            shape = (3, height, width) if kind == "pixel" else (3, 1, 1)
            expected[top : top + height, left : left + width] = np.reshape(taken, shape).transpose(1, 2, 0)
        np.testing.assert_allclose(image, expected, rtol=1e-6)


def test_where_the_image_lies_is_told(client: millrace.Client, written: list[millrace.Path]) -> None:
    for name in ("letterbox, flipped", "large-scale jitter", "padded if needed", "bounded shorter sides, padded", "both paddings"):
        recipe = dataclasses.replace(RECIPES[name], layout="NHWC")
        assert recipe.pad is not None
        for other in (0, 255):  # what is not padded is the same, whatever is padded
            recipe = dataclasses.replace(recipe, pad=dataclasses.replace(recipe.pad, fill=other))
            keys = list(itertools.product(SIZES, range(8)))
            with client.session(recipe, batch=32, slots=1, slot_bytes=16 << 20) as session:
                batch = session.get(session.submit([millrace.Sample(written[SIZES.index(size)], id=number) for size, number in keys]))
                images, boxes = [batch.image(index).numpy().copy() for index in range(32)], batch.filled
            for image, (left, top, width, height), (size, number) in zip(images, boxes.tolist(), keys, strict=True):
                outside = np.ones(image.shape[:2], bool)
                outside[top : top + height, left : left + width] = False
                assert (image[outside] == other).all(), (name, size, number)
                if recipe.centre_crop is None:
                    expected = resized(recipe.resize, size, Key(0, 0, number))
                    assert (width, height) == expected
    with client.session(Recipe.train(16), batch=4, slots=1) as session:
        assert session.get(session.submit(written)).filled.tolist() == [[0, 0, 16, 16]] * 4


def test_of_a_bad_sample_nothing_is_filled_or_what_stands_in_for_it(client: millrace.Client, written: list[millrace.Path]) -> None:
    with client.session(LETTERBOX, batch=2, slots=1) as session:
        zeroed = session.get(session.submit([b"no picture", written[0]], on_error="zero")).filled.tolist()
        mended = session.get(session.submit([b"no picture", written[0]], on_error="substitute")).filled.tolist()
    assert zeroed == [[0, 0, 0, 0], [0, 11, 64, 42]]  # of 97 x 64 pixels
    assert mended == [[0, 11, 64, 42]] * 2


def test_a_padded_image_becomes_floats_like_any_other(client: millrace.Client, written: list[millrace.Path]) -> None:
    recipe = dataclasses.replace(LETTERBOX, pad=Pad(2, to=Size(70, 70), mode="symmetric")).normalised("float32")
    by = recipe.normalise
    assert by is not None
    for image, size in zip(made(client, recipe, written, [0]), SIZES, strict=True):
        pixels = image_of(recipe, picture(size, 9), Key(0, 0, 0)) / np.float32(255)
        np.testing.assert_allclose(image, (pixels - np.float32(by.mean)) / np.float32(by.std), atol=1e-5)
    grey = dataclasses.replace(LETTERBOX, channels="grey")
    for image, size in zip(made(client, grey, written, [0]), SIZES, strict=True):
        pixels = image_of(LETTERBOX, picture(size, 9), Key(0, 0, 0))
        np.testing.assert_array_equal(image[..., 0], np.asarray(Image.fromarray(pixels).convert("L")))


def test_torchvisions_pad_is_numpys(client: millrace.Client, written: list[millrace.Path]) -> None:
    """What the reference above does, in other words."""
    for mode in MODES:
        pad = Pad(3, 1, 40, 2, mode=mode)
        left, top, right, bottom = padded(pad, (33, 18), Key(0, 0, 0))
        pixels = picture(SIZES[3], 9)
        expected = np.pad(pixels, ((top, bottom), (left, right), (0, 0)), mode)
        np.testing.assert_array_equal(made(client, Recipe(pad=pad), written[3:], [0])[0], expected)
        np.testing.assert_array_equal(np.asarray(F.pad(Image.fromarray(pixels), [3, 1, 40, 2], 0, mode)), expected)
