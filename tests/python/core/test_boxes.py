"""``Batch.map_boxes``: a box lies where the rectangle that it is drawn around lies in the daemon's image."""

from __future__ import annotations

import dataclasses
import io
from pathlib import Path
from typing import Any

import millrace
import millrace.numpy
import numpy as np
import pytest
from millrace import CentreCrop, ExactSize, LongerSide, Pad, RandomResizedCrop, Recipe, ScaleJitter, ShorterSide, Size, steps
from millrace._core.boxes import mapped
from numpy.typing import NDArray

from pictures import png, png_of

WIDTH, HEIGHT = 220, 150
BOXES = np.array([[21, 34, 97, 110], [120, 18, 201, 66]])
"""A red rectangle and a blue one, on green."""
CHANNELS = (0, 2)
NOWHERE = [[-50, -50, -1, -1], [WIDTH, 0, WIDTH + 9, HEIGHT], [30, 200, 60, 210]]


def drawing() -> NDArray[np.uint8]:
    pixels = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    pixels[..., 1] = 160
    for (left, top, right, bottom), channel in zip(BOXES.tolist(), CHANNELS, strict=True):
        pixels[top:bottom, left:right] = np.eye(3)[channel] * 255
    return pixels


def found(image: NDArray[Any], channel: int) -> list[int] | None:
    """Left, top, right, bottom of what is of that colour."""
    rows, columns = np.nonzero(image[..., channel] > 127)
    return [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1] if len(rows) else None


def check_image(image: NDArray[Any], boxes: NDArray[Any], left: NDArray[Any]) -> int:
    """How many of the two rectangles are in the image, each where its box is."""
    height, width, _ = image.shape
    assert (boxes.dtype, boxes.shape, left.dtype) == (np.float32, (len(left), 4), np.int64)
    assert (boxes >= 0).all()
    assert (boxes <= [width, height, width, height]).all()
    for index, channel in enumerate(CHANNELS):
        seen = found(image, channel)
        if index not in left:
            assert seen is None, (index, seen)
            continue
        box = boxes[left.tolist().index(index)]
        if seen is None:  # a sliver
            assert min(box[2] - box[0], box[3] - box[1]) < 1
        else:
            np.testing.assert_allclose(seen, box, atol=1)
    return len(left)


def check(client: millrace.Client, recipe: Recipe, sources: list[Any], given: Any = BOXES, **options: Any) -> list[int]:
    """How many rectangles are left in each of the images."""
    packing: Any = "packed" if recipe.fixed_size is None else "one_size"
    recipe = dataclasses.replace(recipe, layout="NHWC", packing=packing)
    samples = [millrace.Sample(source, id=number) for number, source in enumerate(sources)]
    with client.session(recipe, batch=len(samples), slots=1, slot_bytes=16 << 20) as session:
        batch = session.get(session.submit(samples, **options))
        images = [batch.image(index).numpy().copy() for index in range(len(batch))]
        results = batch.map_boxes([given] * len(batch))
    return [check_image(image, *result) for image, result in zip(images, results, strict=True)]


SQUARE = Size(64, 64)
AS_IT_IS = Recipe(resize=ExactSize(Size(WIDTH, HEIGHT)))
RECIPES = {
    "as it is": (Recipe(), 2),
    "a random part, flipped": (dataclasses.replace(Recipe.train(64), crop=RandomResizedCrop((0.05, 0.6))), 0),
    "a random part, padded": (Recipe(crop=RandomResizedCrop((0.1, 0.4)), resize=ExactSize(SQUARE), pad=Pad(9, 4, 2, 17, fill=50)), 0),
    "the shorter side, bounded, packed": (Recipe(resize=ShorterSide(90, longest=100), packing="packed"), 2),
    "the shorter side, enlarged, flipped": (Recipe(resize=ShorterSide(333), flip_probability=1, packing="packed"), 2),
    "a letterbox": (Recipe(resize=LongerSide(96), pad=Pad(to=Size(96, 96), fill=114)), 2),
    "a letterbox at the top left, flipped": (
        Recipe(resize=LongerSide(96), pad=Pad(to=Size(128, 96), place="top_left", fill=114), flip_probability=1),
        2,
    ),
    "a letterbox anywhere": (Recipe(resize=LongerSide(96), pad=Pad(to=Size(128, 130), place="random"), flip_probability=0.5), 2),
    "large-scale jitter": (
        Recipe(
            resize=ScaleJitter(Size(96, 96), (0.2, 2)),
            pad=Pad(to=Size(96, 96), place="top_left", fill=99),
            centre_crop=Size(96, 96),
            crop_place="random",
            flip_probability=0.5,
        ),
        0,
    ),
    "a random crop with padding": (
        Recipe(resize=ExactSize(SQUARE), pad=Pad(30, 10, 20, 40), centre_crop=SQUARE, crop_place="random", flip_probability=0.5),
        0,
    ),
    "the middle": (Recipe.evaluate(100, 90), 2),
    "the middle of the source": (Recipe(crop=CentreCrop(Size(130, 120)), resize=ExactSize(Size(97, 60))), 2),
    "both sides": (Recipe(resize=ExactSize(Size(50, 300))), 2),
    "sides that a patch divides": (Recipe(resize=millrace.SmartResize(28, 3136, 50000)), 2),
    "a grid of tiles": (Recipe(resize=millrace.TileGrid(SQUARE, 1, 6)), 2),
    "bounded sides": (Recipe(resize=millrace.BoundedSides(80, 100)), 2),
    "a part of the grid": (Recipe(crop=millrace.GridCell(2, 1, 1, 0), resize=ExactSize(SQUARE)), 1),
    **{
        f"the {place} corner": (Recipe(resize=ShorterSide(100), centre_crop=Size(60, 70), crop_place=place), 0)
        for place in ("top_left", "top_right", "bottom_left", "bottom_right")
    },
    "colours": (dataclasses.replace(Recipe.train(64), steps=(steps.PillowBlur(0.3), steps.OneOf((steps.Sharpness(1),)))), 0),
    "flips as steps": (
        Recipe(
            resize=LongerSide(96),
            pad=Pad(to=Size(96, 128), place="top_left"),
            flip_probability=0.5,
            steps=(
                steps.VerticalFlip(),
                steps.Sequence((steps.HorizontalFlip(), steps.AnyOrder((steps.Grayscale(probability=0),)))),
                steps.Rotation((90, 90), probability=0),
            ),
        ),
        2,
    ),
}


@pytest.mark.parametrize("name", RECIPES)
def test_a_box_is_where_its_rectangle_is(client: millrace.Client, name: str) -> None:
    recipe, least = RECIPES[name]
    left = check(client, recipe, [png_of(drawing())] * 24, seed=4)
    assert min(left) >= least
    assert sum(left) >= 12  # not nothing everywhere


@pytest.mark.torch
@pytest.mark.parametrize("orientation", range(1, 9))
def test_boxes_are_those_of_the_oriented_image(client: millrace.Client, orientation: int) -> None:
    image_module = pytest.importorskip("PIL.Image", reason="Pillow is not installed: no EXIF orientation is written")
    turns = image_module.Transpose
    undone = {2: turns.FLIP_LEFT_RIGHT, 3: turns.ROTATE_180, 4: turns.FLIP_TOP_BOTTOM, 5: turns.TRANSPOSE}
    undone |= {6: turns.ROTATE_90, 7: turns.TRANSVERSE, 8: turns.ROTATE_270}
    stored = image_module.fromarray(drawing())
    stored = stored.transpose(undone[orientation]) if orientation > 1 else stored
    exif, file = image_module.Exif(), io.BytesIO()
    exif[0x112] = orientation
    stored.save(file, "JPEG", quality=95, subsampling=0, exif=exif)

    for recipe in (Recipe(), Recipe.evaluate(100, 96), dataclasses.replace(Recipe.train(96), crop=RandomResizedCrop((0.5, 0.9)))):
        assert sum(check(client, recipe, [file.getvalue()] * 4)) >= 4
    as_stored = [found(np.asarray(stored), channel) for channel in CHANNELS]
    assert check(client, Recipe(ignore_orientation=True), [file.getvalue()], as_stored) == [2]


def drawn(client: millrace.Client, recipe: Recipe, boxes: Any, **options: Any) -> Any:
    with client.session(recipe, batch=1, slots=1) as session:
        return session.get(session.submit([png_of(drawing())])).map_boxes(boxes, **options)


def test_boxes_outside_are_gone_and_others_are_clipped(client: millrace.Client) -> None:
    half = Recipe(resize=ExactSize(Size(WIDTH // 2, HEIGHT // 2)))
    ((boxes, left),) = drawn(
        client, half, [[*NOWHERE, [-20, 10, 40, 2000], [0, 0, WIDTH, HEIGHT], [9, 9, 9, 20], [30, 20, 40, 20], [9, 9, 9, 9]]]
    )
    assert left.tolist() == [3, 4]
    assert boxes.tolist() == [[0, 5, 20, 75], [0, 0, 110, 75]]
    ((boxes, left),) = drawn(client, half, [NOWHERE])
    assert (boxes.shape, left.shape) == ((0, 4), (0,))
    ((boxes, left),) = drawn(client, half, [[]])
    assert (boxes.shape, left.shape) == ((0, 4), (0,))
    padded = dataclasses.replace(half, crop=millrace.BoxCrop(millrace.Box(20, 20, 110, 75)), pad=Pad(10, 10, 10, 10))
    ((boxes, left),) = drawn(client, padded, [[[0, 0, 60, 40], [140, 0, 150, 90]]])  # nothing of them is in what is padded
    assert (boxes.tolist(), left.tolist()) == ([[10, 10, 50, 30]], [0])


def test_a_samples_own_box_and_size_are_followed(client: millrace.Client) -> None:
    sample = millrace.Sample(png_of(drawing()), box=millrace.Box(10, 20, 100, 90), size=Size(300, 90))
    with client.session(Recipe.train(32), batch=1, slots=1, slot_bytes=1 << 20) as session:
        recipe = Recipe(layout="NHWC", packing="packed")
        batch = session.get(session.submit([sample], recipe=recipe))
        assert check_image(batch.image(0).numpy(), *batch.map_boxes([BOXES])[0]) == 1


@pytest.mark.torch
def test_tensors_are_taken(client: millrace.Client) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: its tensors are not given as boxes")
    expected = drawn(client, Recipe.evaluate(100, 90), [BOXES])
    for given in (torch.tensor(BOXES[None]), [torch.tensor(BOXES, dtype=torch.float32, requires_grad=True)], BOXES[None].tolist()):
        for one, other in zip(drawn(client, Recipe.evaluate(100, 90), given), expected, strict=True):
            np.testing.assert_array_equal(one[0], other[0])
            assert one[1].tolist() == other[1].tolist() == [0, 1]
    coarse = BOXES // 8 * 8  # which eight bits of precision hold
    expected = drawn(client, Recipe.evaluate(100, 90), [coarse])
    for half in (torch.bfloat16, torch.float16):
        ((boxes, left),) = drawn(client, Recipe.evaluate(100, 90), [torch.tensor(coarse, dtype=half, requires_grad=True)])
        np.testing.assert_array_equal(boxes, expected[0][0])
        assert left.tolist() == [0, 1]


@pytest.mark.jax
def test_arrays_of_bfloat16_are_taken(client: millrace.Client) -> None:
    types = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed: NumPy has no bfloat16")
    ((boxes, _),) = drawn(client, AS_IT_IS, [(BOXES // 8 * 8).astype(types.bfloat16)])
    np.testing.assert_array_equal(boxes, BOXES // 8 * 8)


def as_format(form: str, boxes: NDArray[Any], dtype: str = "float32") -> Any:
    """Torchvision's, of corners."""
    tensors = pytest.importorskip("torchvision.tv_tensors", reason="torchvision is not installed: there are no BoundingBoxes")
    corners, sizes = boxes[:, :2], boxes[:, 2:] - boxes[:, :2]
    found = {
        "XYXY": boxes,
        "XYWH": np.concatenate([corners, sizes], 1),
        "CXCYWH": np.concatenate([corners + sizes / 2, sizes], 1),
    }[form]
    return tensors.BoundingBoxes(tensors.torch.tensor(found).to(getattr(tensors.torch, dtype)), format=form, canvas_size=(HEIGHT, WIDTH))


@pytest.mark.torch
@pytest.mark.parametrize("form", ["XYXY", "XYWH", "CXCYWH"])
def test_torchvisions_boxes_are_what_their_format_says(client: millrace.Client, form: str) -> None:
    recipe = dataclasses.replace(Recipe.train(96), crop=RandomResizedCrop((0.5, 0.9)))
    assert sum(check(client, recipe, [png_of(drawing())] * 12, as_format(form, BOXES))) > 8
    for dtype in ("float32", "float64", "uint8", "bfloat16"):  # of which 8 bits hold these numbers, and not their sums
        given = np.array([[8, 16, 104, 112], [120, 16, 248, 64]])
        ((boxes, left),) = drawn(client, AS_IT_IS, [as_format(form, given, dtype)])
        assert boxes.tolist() == np.minimum(given, [WIDTH, HEIGHT] * 2).tolist()
        assert left.tolist() == [0, 1]
    ((boxes, _),) = drawn(client, AS_IT_IS, [as_format(form, BOXES[:0])])
    assert boxes.shape == (0, 4)


@pytest.mark.torch
def test_torchvisions_boxes_that_are_none(client: millrace.Client) -> None:
    tensors = pytest.importorskip("torchvision.tv_tensors", reason="torchvision is not installed: there are no BoundingBoxes")
    torch, size = tensors.torch, (HEIGHT, WIDTH)
    wide = tensors.BoundingBoxes(torch.tensor([[5, 5, 2, 2], [5, 5, -1, 9]]), format="XYWH", canvas_size=size)
    with pytest.raises(
        millrace.InvalidRequest, match=r"box 1 of image 0 is \[5, 5, -1, 9\], whose width is negative: .* \[left, top, width"
    ):
        drawn(client, AS_IT_IS, [wide])
    high = tensors.BoundingBoxes(torch.tensor([[5.0, 5, 1, -9]]), format="CXCYWH", canvas_size=size)
    with pytest.raises(millrace.InvalidRequest, match=r"whose height is negative: boxes are \[centre's x"):
        drawn(client, AS_IT_IS, [high])
    rotated = [form for form in tensors.BoundingBoxFormat if form.name not in ("XYXY", "XYWH", "CXCYWH")]
    for form in rotated:
        numbers = torch.ones(1, 8 if form.name == "XYXYXYXY" else 5)
        with pytest.raises(millrace.Unsupported, match=f"image 0 are BoundingBoxes of the format {form.name}, and XYXY, XYWH, CXCYWH are"):
            drawn(client, AS_IT_IS, [tensors.BoundingBoxes(numbers, format=form, canvas_size=size)])


@pytest.mark.torch
def test_torchvisions_boxes_are_a_column(daemon: millrace.PrivateDaemon, folder: Path) -> None:
    """As many of each image, too, which as an array would not say what they are."""
    path = folder.parent / "drawing.png"
    path.write_bytes(png_of(drawing()))
    samples = {"path": [str(path)] * 6, "boxes": [as_format("XYWH", BOXES)] * 6}
    with millrace.numpy.Loader(samples=samples, transform=AS_IT_IS, batch_size=6, address=daemon.address) as loader:
        for _, boxes in loader:
            for mapped_boxes, _ in loader.batch.map_boxes(boxes):
                np.testing.assert_array_equal(mapped_boxes, BOXES)


def test_the_least_area_is_that_in_the_tensor(client: millrace.Client) -> None:
    half = Recipe(resize=ExactSize(Size(WIDTH // 2, HEIGHT // 2)))
    given = [np.array([[10, 10, 20, 20], [10, 10, 22, 20], [-100, 0, 10, 10]], np.int16)]
    for area, expected in ((0, [0, 1, 2]), (24.9, [0, 1, 2]), (25, [1]), (30, [])):
        ((_, left),) = drawn(client, half, given, min_area=area)
        assert left.tolist() == expected
    for area in (-1, float("nan"), float("inf"), "much", None):
        with pytest.raises(millrace.InvalidRequest, match="min_area is a number of pixels, at least 0"):
            drawn(client, half, given, min_area=area)


def test_of_a_bad_image(client: millrace.Client) -> None:
    samples = [b"no picture", png(1), png_of(drawing())]
    with client.session(Recipe(resize=ExactSize(SQUARE), layout="NHWC"), batch=3, slots=1) as session:
        zeroed = session.get(session.submit(samples, on_error="zero"))
        assert [left.tolist() for _, left in zeroed.map_boxes([BOXES, [[0, 0, 48, 32]], BOXES])] == [[], [0], [0, 1]]
        zeroed.release()
        skipped = session.get(session.submit(samples, on_error="skip"))
        assert [left.tolist() for _, left in skipped.map_boxes([[], BOXES])] == [[], [0, 1]]
        skipped.release()
        mended = session.get(session.submit([b"no picture", png_of(drawing())], on_error="substitute"))
        assert mended.ids.tolist() == [1, 1]
        known = {0: NOWHERE, 1: BOXES}
        for image, result in zip(mended.images.numpy(), mended.map_boxes([known[number] for number in mended.ids.tolist()]), strict=True):
            assert check_image(image, *result) == 2


def test_what_is_no_boxes_is_refused(client: millrace.Client) -> None:
    for given, told in (
        (7, "not a int"),
        ("boxes", "not a str"),
        ({"boxes": BOXES}, "not a dict"),
        (BOXES, r"each of the batch's 1 images; there are 2"),
        ([BOXES] * 3, r"each of the batch's 1 images; there are 3"),
        ([], "there are 0"),
        (np.float32(3), "not a float32|there are 0"),
        ([[1, 2, 3, 4]], r"image 0 must be numbers \[M, 4\]: left, top, right, bottom of each; these have the shape \(4,\)"),
        ([np.zeros((2, 5))], r"the shape \(2, 5\)"),
        ([np.zeros((0, 5))], r"the shape \(0, 5\)"),
        ([[[1, 2, 3, 4], [1, 2]]], "no array"),
        ([[["1", "2", "3", "4"]]], "these are <U1"),
        ([np.zeros((2, 4), complex)], "these are complex128"),
        ([[[0, 0, 1, 1], [0, float("nan"), 3, 3]]], r"box 1 is \[0, nan, 3, 3\], and numbers are finite"),
        ([[[0, 0, float("inf"), 1]]], r"box 0 is \[0, 0, inf, 1\], and numbers are finite"),
        ([None], "the shape"),
    ):
        with pytest.raises(millrace.InvalidRequest, match=told):
            drawn(client, Recipe.train(16), given)


def test_boxes_with_width_and_height_in_the_place_of_corners_are_refused(client: millrace.Client) -> None:
    widths = BOXES - np.tile(BOXES[:, :2], 2) * [0, 0, 1, 1]  # as COCO has them: [21, 34, 76, 76], [120, 18, 81, 48]
    hint = r"boxes are \[left, top, right, bottom\]; of COCO's, \[left, top, width, height\], add left to width and top to height"
    with client.session(Recipe.train(16), batch=3, slots=1) as session:
        batch = session.get(session.submit([png_of(drawing())] * 3))
        with pytest.raises(millrace.InvalidRequest, match=rf"box 1 of image 2 is \[120, 18, 81, 48\], whose right is less .*: {hint}"):
            batch.map_boxes([BOXES, BOXES[:0], widths])
        with pytest.raises(millrace.InvalidRequest, match=rf"box 0 of image 1 is \[5, 70\.5, 6, 10\], whose bottom is less .*: {hint}"):
            batch.map_boxes([[], [[5, 70.5, 6, 10]], BOXES])


@pytest.mark.parametrize(
    "step",
    [
        steps.Rotation((-5, 5)),
        steps.Affine(translate=(0.1, 0.1)),
        steps.Shift(2),
        steps.Perspective(),
        steps.RandAugment(),
        steps.TrivialAugmentWide(),
        steps.AutoAugment(),
        steps.TimmRandAugment(),
        steps.HorizontalFlip(probability=0.5),
        steps.VerticalFlip(probability=0.5),
    ],
)
def test_steps_that_move_pixels_are_named(client: millrace.Client, step: steps.Step) -> None:
    for todo in (step, steps.Sequence((steps.Grayscale(), step), probability=0.3), steps.OneOf((step, steps.AnyOrder((step,))))):
        with pytest.raises(millrace.Unsupported, match=rf"the step {type(step).__name__}\("):
            drawn(client, dataclasses.replace(Recipe.train(32), steps=(steps.Invert(), todo)), [BOXES])


def test_flips_in_groups_that_are_not_always_done_are_named(client: millrace.Client) -> None:
    flip = steps.VerticalFlip()
    for group in (steps.OneOf((flip, steps.Invert())), steps.Sequence((flip,), probability=0.5), steps.AnyOrder((flip,), probability=0.5)):
        with pytest.raises(millrace.Unsupported, match=r"VerticalFlip\(\) is not done to every image"):
            drawn(client, dataclasses.replace(Recipe.train(32), steps=(group,)), [BOXES])


def test_views_and_daemons_that_say_less_are_refused(client: millrace.Client) -> None:
    with pytest.raises(millrace.Unsupported, match="makes 2 views"):
        drawn(client, Recipe.of_views(*[Recipe.train(32)] * 2), [BOXES])
    with client.session(Recipe.train(32), batch=1, slots=1) as session:
        batch = session.get(session.submit([png_of(drawing())]))
        records = batch.records.copy()
        records["resized_width"] = 0
        with pytest.raises(millrace.Unsupported, match=r"do not say to what size .* update millraced"):
            mapped([BOXES], records, batch.filled, batch.recipe, 0)
        del batch
        batch = session.get(session.submit([png_of(drawing())]))
        batch.release()
        with pytest.raises(millrace.Released):
            batch.map_boxes([BOXES])


@pytest.mark.filterwarnings("ignore::millrace.BadImageWarning")
def test_boxes_are_a_column_of_a_list(daemon: millrace.PrivateDaemon, folder: Path) -> None:
    """Shuffled, with files that are no pictures, boxes of several numbers: each image's own ones come with it."""
    base = folder.parent / "boxes"
    base.mkdir()
    paths, boxes, classes = [], [], []
    for number in range(20):
        path = base / f"{number}.png"
        path.write_bytes(b"no picture" if number % 5 == 4 else png_of(np.roll(drawing(), number, 1)))
        moved = (BOXES + [number % WIDTH, 0] * 2)[: 1 + number % 2]
        paths.append(str(path))
        boxes.append(moved.tolist() if number % 7 else NOWHERE)
        classes.append([f"{number} {name}" for name in ("red", "blue", "none")[: len(boxes[-1])]])
    recipe = Recipe(resize=LongerSide(110), pad=Pad(to=Size(110, 110)), flip_probability=0.5, layout="NHWC")
    for on_error in ("skip", "substitute", "zero"):
        options: Any = {"batch_size": 6, "shuffle": True, "address": daemon.address, "on_error": on_error}
        samples = {"path": paths, "boxes": boxes, "classes": classes}
        seen = 0
        with millrace.numpy.Loader(samples=samples, transform=recipe, **options) as loader:
            for images, columns in loader:
                results = loader.batch.map_boxes(columns["boxes"])
                for image, (found_boxes, left), names, number in zip(
                    images, results, columns["classes"], loader.batch.ids.tolist(), strict=True
                ):
                    is_bad = on_error == "zero" and number % 5 == 4
                    assert len(left) == (0 if is_bad or number % 7 == 0 else 1 + number % 2)
                    for box, index in zip(found_boxes, left.tolist(), strict=True):
                        assert names[index].startswith(f"{number} ")
                        np.testing.assert_allclose(found(image, CHANNELS[index]), box, atol=1)
                        seen += 1
        assert seen > 15
