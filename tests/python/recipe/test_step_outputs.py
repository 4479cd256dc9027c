"""What becomes of a stepped picture: element types, layouts, channels, packing, patches, fidelity; erased rectangles of each."""

from __future__ import annotations

import dataclasses
import gc
import io
from collections.abc import Iterator
from typing import Any

import millrace
import numpy as np
import pytest

pytestmark = pytest.mark.torch
pytest.importorskip("torchvision", reason="torchvision is not installed: steps of augmentation are not compared with its")

from draws import Key, erased, noise  # noqa: E402
from millrace.steps import (  # noqa: E402
    Affine,
    AnyOrder,
    ColorJitter,
    Erasing,
    Invert,
    OneOf,
    PillowBlur,
    RandAugment,
    TimmRandAugment,
    VerticalFlip,
)
from numpy.typing import NDArray  # noqa: E402
from PIL import Image  # noqa: E402

from augmented import as_it_is, made, picture, stepped, without_steps  # noqa: E402
from pictures import png_of  # noqa: E402

SIZE = millrace.Size(48, 32)
STEPS = (
    AnyOrder((ColorJitter(0.4, 0.4, 0.4, 0.1), RandAugment(), OneOf((Invert(), VerticalFlip())))),
    PillowBlur(probability=0.3),
    TimmRandAugment(),
)
DTYPES: list[Any] = ["uint8", "float16", "bfloat16", "float32"]
IDS = range(12)


@pytest.fixture
def roomy(client: millrace.Client) -> Iterator[millrace.Session]:
    with client.session(slots=2, slot_bytes=1 << 20) as opened:
        yield opened
    gc.collect()


def samples_of(pictures: list[NDArray[np.uint8]]) -> list[millrace.Sample]:
    return [millrace.Sample(png_of(pixels), id=id_) for id_, pixels in enumerate(pictures)]


def check_like_recipe_without_steps(session: millrace.Session, recipe: millrace.Recipe, seed: int = 3) -> None:
    """The stepped picture as a file, through the recipe without its steps, gives the same bits."""
    size = SIZE if recipe.resize else None
    before = [picture(size or millrace.Size(40 + 8 * id_, 64 - 4 * id_), id_) for id_ in IDS]
    after = [stepped(pixels, recipe, Key(seed, 0, id_)) for id_, pixels in enumerate(before)]
    ours = made(session, samples_of(before), recipe, seed=seed)
    np.testing.assert_array_equal(ours, made(session, samples_of(after), without_steps(recipe), seed=seed))
    assert not np.array_equal(ours, made(session, samples_of(before), without_steps(recipe), seed=seed))


@pytest.mark.parametrize("channels", ["RGB", "BGR", "grey"])
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_element_type_layout_and_order_of_channels(roomy: millrace.Session, dtype: Any, layout: Any, channels: Any) -> None:
    recipe = as_it_is(SIZE, *STEPS, layout=layout, channels=channels)

    check_like_recipe_without_steps(roomy, dataclasses.replace(recipe, dtype=dtype))
    check_like_recipe_without_steps(roomy, dataclasses.replace(recipe, dtype=dtype, range="raw"), seed=4)


@pytest.mark.parametrize("dtype", DTYPES[1:])
def test_normalised_floats(roomy: millrace.Session, dtype: Any) -> None:
    check_like_recipe_without_steps(roomy, as_it_is(SIZE, *STEPS, layout="NCHW").normalised(dtype))


def test_float32_is_the_pixels_normalised(roomy: millrace.Session) -> None:
    recipe = as_it_is(SIZE, *STEPS, layout="NCHW").normalised("float32")
    before = [picture(SIZE, id_) for id_ in IDS]
    after = np.stack([stepped(pixels, recipe, Key(3, 0, id_)) for id_, pixels in enumerate(before)]).transpose(0, 3, 1, 2)
    mean, std = (np.array(of, np.float64).reshape(3, 1, 1) for of in (millrace.Normalise().mean, millrace.Normalise().std))

    ours = made(roomy, samples_of(before), recipe, seed=3)

    np.testing.assert_allclose(ours, (after / 255 - mean) / std, atol=1e-5)


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("dtype", ["uint8", "bfloat16"])
def test_packed_images_of_many_sizes(roomy: millrace.Session, dtype: Any, layout: Any) -> None:
    check_like_recipe_without_steps(roomy, millrace.Recipe(packing="packed", layout=layout, dtype=dtype, steps=STEPS))


@pytest.mark.parametrize("packing", ["one_size", "packed"])
def test_patches(roomy: millrace.Session, packing: Any) -> None:
    patches = millrace.Patches(millrace.Size(width=4, height=4), temporal=2)
    check_like_recipe_without_steps(roomy, as_it_is(SIZE, *STEPS, layout="NCHW", patches=patches, packing=packing))


@pytest.mark.parametrize("fidelity", ["exact", "fast"])
def test_steps_begin_where_a_jpeg_was_decoded_and_resized_to(roomy: millrace.Session, fidelity: Any) -> None:
    """Whatever the fidelity of that."""
    samples = []
    for id_ in IDS:
        file = io.BytesIO()
        Image.fromarray(picture(millrace.Size(150, 130), id_)).save(file, "JPEG")
        samples.append(millrace.Sample(file.getvalue(), id=id_))
    recipe = dataclasses.replace(millrace.Recipe.train(40), layout="NHWC", steps=STEPS)
    before = made(roomy, samples, without_steps(recipe), seed=2, fidelity=fidelity)

    ours = made(roomy, samples, recipe, seed=2, fidelity=fidelity)

    for id_, image in enumerate(ours):
        np.testing.assert_array_equal(image, stepped(before[id_], recipe, Key(2, 0, id_)), f"{id_=}")


# --------------------------------------------------------------------------------------------------------------------- erasing


def numbers(bits: NDArray[Any]) -> NDArray[np.float32]:
    return (bits.astype(np.uint32) << 16).view(np.float32) if bits.dtype == np.uint16 else bits.astype(np.float32)


def check_erased(session: millrace.Session, recipe: millrace.Recipe, accuracy: float, before: NDArray[Any], samples: Any, seed: int) -> int:
    """Compares all pixels; how many images have a rectangle."""
    erasing = recipe.erasing
    assert erasing is not None
    ours, rectangles = numbers(made(session, samples, recipe, seed=seed)), 0
    for id_, image in enumerate(ours):
        expected = before[id_].copy()
        channels_first = recipe.layout == "NCHW"
        rows = expected.transpose(1, 2, 0) if channels_first else expected  # a view: height x width x channels
        height, width, channels = rows.shape
        key = Key(seed, 0, id_)
        found = erased(erasing, (width, height), key)
        if found is not None:
            rectangles += 1
            left, top, w, h = found
            order = slice(None, None, -1) if recipe.channels == "BGR" else slice(None)
            rows[top : top + h, left : left + w, order] = _filling(erasing, w, h, channels, key)
        np.testing.assert_allclose(image, expected, rtol=accuracy, atol=1e-6 if accuracy else 0, err_msg=f"{id_=} {found}")
    return rectangles


def _filling(erasing: Erasing, width: int, height: int, channels: int, key: Key) -> NDArray[np.float64]:
    """Height x width x channels, or what becomes that; in the order R, G, B."""
    if erasing.value == "pixel":
        return np.array(noise(channels * height * width, key)).reshape(channels, height, width).transpose(1, 2, 0)
    value = noise(channels, key) if erasing.value == "channel" else erasing.value
    return np.broadcast_to(np.array(value, np.float64), channels if isinstance(value, float) else len(value))[:channels]  # type: ignore[arg-type]


ACCURACY = {"uint8": 0.0, "float16": 2**-11 * 1.01, "bfloat16": 2**-8 * 1.01, "float32": 1e-6}


@pytest.mark.parametrize("value", [0.0, 77.0, (10.0, 200.0, 60.0), "channel", "pixel"])
@pytest.mark.parametrize("channels", ["RGB", pytest.param("BGR", marks=pytest.mark.long), "grey"])
@pytest.mark.parametrize("layout", [pytest.param("NHWC", marks=pytest.mark.long), "NCHW"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_erased_rectangles(roomy: millrace.Session, dtype: Any, layout: Any, channels: Any, value: Any) -> None:
    if dtype == "uint8" and isinstance(value, str):
        return  # refused: test_step_errors.py
    erasing = Erasing(0.8, value=value)
    recipe = as_it_is(SIZE, VerticalFlip(probability=0.5), layout=layout, channels=channels, dtype=dtype, erasing=erasing)
    if dtype != "uint8" and channels != "grey":
        recipe = recipe.normalised(dtype)
    samples = samples_of([picture(SIZE, id_) for id_ in IDS])
    before = numbers(made(roomy, samples, dataclasses.replace(recipe, erasing=None), seed=1))

    rectangles = check_erased(roomy, recipe, ACCURACY[dtype], before, samples, 1)

    assert 0 < rectangles < len(IDS)


@pytest.mark.parametrize(
    "erasing",
    [
        Erasing(1.0, (0.9, 1.0), (0.3, 3.3)),
        Erasing(1.0, (2e-6, 1e-3), (1, 1)),
        Erasing(1.0, (0.02, 0.33), (50, 60)),
        Erasing(1.0, (0.5, 0.5), (1, 1)),
        Erasing(0.0),
    ],
)
def test_rectangles_that_hardly_fit_are_tried_ten_times(roomy: millrace.Session, erasing: Erasing) -> None:
    size = millrace.Size(33, 31)
    samples = samples_of([picture(size, id_) for id_ in range(64)])
    recipe = as_it_is(size, erasing=dataclasses.replace(erasing, value=255.0))
    before = numbers(made(roomy, samples, without_steps(recipe), seed=1))

    assert check_erased(roomy, recipe, 0.0, before, samples, 1) <= 64


def test_a_rectangle_of_a_packed_image_has_that_images_size(roomy: millrace.Session) -> None:
    sizes = [millrace.Size(20 + 7 * id_, 50 - 3 * id_) for id_ in IDS]
    samples = samples_of([picture(size, id_) for id_, size in enumerate(sizes)])
    recipe = millrace.Recipe(packing="packed", layout="NHWC", erasing=Erasing(1.0, value=(1.0, 2.0, 3.0)))

    batch = roomy.get(roomy.submit(samples, recipe=recipe, seed=5))

    for id_, size in enumerate(sizes):
        expected = picture(size, id_)
        found = erased(Erasing(1.0), size, Key(5, 0, id_))
        assert found is not None
        left, top, width, height = found
        expected[top : top + height, left : left + width] = (1, 2, 3)
        np.testing.assert_array_equal(batch.image(id_).numpy(), expected)


def test_steps_and_erasing_do_not_share_draws(roomy: millrace.Session) -> None:
    samples = samples_of([picture(SIZE, id_) for id_ in IDS])
    plain, erasing = as_it_is(SIZE, Affine((-20, 20))), Erasing(1.0, value=9.0)
    before = numbers(made(roomy, samples, plain, seed=1))

    assert check_erased(roomy, dataclasses.replace(plain, erasing=erasing), 0.0, before, samples, 1) == len(IDS)
