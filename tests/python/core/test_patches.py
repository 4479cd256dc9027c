"""Patches, computed sizes, cells and sizes of a sample's own, beside the same pixels in rows."""

from __future__ import annotations

import dataclasses
import gc
import time
from pathlib import Path
from typing import Any

import millrace
import numpy as np
import pytest
from millrace import BoundedSides, GridCell, Patches, Recipe, Sample, Size, SmartResize, TileGrid
from numpy.typing import NDArray

from pictures import SIZE, path_of, pixels_of

PATCHES = Patches(Size(width=8, height=4), merge=2, temporal=2)
ROWS = Recipe(resize=millrace.ExactSize(SIZE), packing="packed")
CUT = dataclasses.replace(ROWS, patches=PATCHES)


@pytest.fixture(autouse=True)
def room(client: millrace.Client) -> None:
    """A test begins when the daemon has got back what those before it held: it may have 64 MiB in all."""
    gc.collect()
    deadline = time.monotonic() + 240
    while client.statistics().sessions and time.monotonic() < deadline:
        time.sleep(0.01)


def cut(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """A C x H x W image as its patches: n x C x temporal x height x width."""
    channels, height, width = image.shape
    down, across = height // 8, width // 16  # groups of 2 x 2 patches of 8 x 4 pixels
    groups = image.reshape(channels, down, 2, 4, across, 2, 8).transpose(1, 4, 2, 5, 0, 3, 6)
    patches = groups.reshape(-1, channels, 1, 4, 8)
    return np.repeat(patches, 2, axis=2)


def made(client: millrace.Client, samples: list[Any], recipe: Recipe, **more: Any) -> millrace.Batch:
    with client.session(recipe, slot_bytes=1 << 20) as session:
        return session.get(session.submit(samples, **more))


@pytest.mark.parametrize("packing", ["packed", "one_size"])
def test_patches_are_one_array_of_all_images_in_groups(client: millrace.Client, folder: Path, packing: Any) -> None:
    batch = made(client, [path_of(folder, n) for n in (0, 30, 50)], dataclasses.replace(CUT, packing=packing))

    expected = [cut(pixels_of(n).transpose(2, 0, 1)) for n in (0, 30, 50)]
    assert batch.images.shape == (3 * 48, 3, 2, 4, 8)
    np.testing.assert_array_equal(batch.images.numpy(), np.concatenate(expected))
    np.testing.assert_array_equal(batch.image(1).numpy(), expected[1])
    np.testing.assert_array_equal(batch.image(-1).numpy(), expected[2])


def test_images_of_many_sizes_follow_each_other_without_gaps(client: millrace.Client, folder: Path) -> None:
    sizes = [Size(16, 8), Size(64, 40), Size(32, 24), Size(48, 16)]
    samples = [Sample(path_of(folder, n), size=size) for n, size in enumerate(sizes)]

    rows, patches = made(client, samples, ROWS), made(client, samples, CUT)

    assert rows.sizes.tolist() == patches.sizes.tolist() == [list(size) for size in sizes]
    expected = [cut(rows.image(n).numpy()) for n in range(4)]
    np.testing.assert_array_equal(patches.images.numpy(), np.concatenate(expected))
    for n, one in enumerate(expected):
        np.testing.assert_array_equal(patches.image(n).numpy(), one)


def test_sizes_that_the_daemon_computes(client: millrace.Client, folder: Path) -> None:
    def size(resize: Any) -> list[int]:
        recipe = Recipe(resize=resize, filter="bicubic", packing="packed")
        return made(client, [path_of(folder, 0)], recipe).sizes[0].tolist()

    assert size(SmartResize(factor=10, min_pixels=1, max_pixels=10_000)) == [50, 30]
    assert size(SmartResize(factor=10, min_pixels=1, max_pixels=1_000)) == [30, 20]
    assert size(TileGrid(Size(10, 20), min_tiles=1, max_tiles=6)) == [30, 40]  # 3 x 2 tiles
    assert size(BoundedSides(shortest=30, longest=36)) == [36, 30]


def test_grid_cells_are_parts_of_the_image(client: millrace.Client, folder: Path) -> None:
    recipe = Recipe(crop=GridCell(columns=5, rows=3, column=2, row=1), layout="NHWC", packing="packed")

    batch = made(client, [path_of(folder, 7)], recipe)

    np.testing.assert_array_equal(batch.image(0).numpy(), pixels_of(7)[10:21, 19:28])


@pytest.mark.parametrize(("rounding", "offset"), [("half_to_even", 2), ("down", 1)])
def test_the_centre_is_rounded_as_the_recipe_says(client: millrace.Client, folder: Path, rounding: Any, offset: int) -> None:
    recipe = Recipe(centre_crop=Size(SIZE.width - 3, SIZE.height - 3), centre_rounding=rounding, layout="NHWC")

    batch = made(client, [path_of(folder, 7)], recipe)

    np.testing.assert_array_equal(batch.image(0).numpy(), pixels_of(7)[offset : offset + 29, offset : offset + 45])


def test_a_samples_own_size_is_made_with_the_recipes_filter(client: millrace.Client, folder: Path) -> None:
    sample = [Sample(path_of(folder, 7), size=Size(20, 20))]
    own = made(client, sample, Recipe(filter="nearest", packing="packed")).image(0).numpy()
    asked = Recipe(resize=millrace.ExactSize(Size(20, 20)), filter="nearest")

    np.testing.assert_array_equal(own, made(client, [path_of(folder, 7)], asked).image(0).numpy())


def test_a_slot_has_room_for_every_frame() -> None:
    recipe = Recipe(resize=millrace.ExactSize(Size(32, 32)), patches=Patches(Size(8, 8), temporal=4))
    room = recipe.slot_bytes(2)

    assert room is not None
    assert room >= 2 * (32 * 32 * 3 * 4 + 128)


def test_what_does_not_divide_is_refused_with_its_field_or_as_the_samples_error(client: millrace.Client, folder: Path) -> None:
    with pytest.raises(millrace.InvalidRequest, match=r"recipe\.patches\.width"):
        made(client, [path_of(folder, 0)], dataclasses.replace(CUT, resize=millrace.ExactSize(Size(40, 32))))
    with pytest.raises(millrace.InvalidRequest, match=r"recipe\.layout"):
        made(client, [path_of(folder, 0)], dataclasses.replace(CUT, layout="NHWC"))
    samples = [Sample(path_of(folder, 0), size=Size(40, 32)), path_of(folder, 1)]
    batch = made(client, samples, CUT, on_error="skip")
    assert [error.index for error in batch.errors] == [0]
    assert "groups of 16x8" in batch.errors[0].message
    np.testing.assert_array_equal(batch.images.numpy(), cut(pixels_of(1).transpose(2, 0, 1)))


def test_a_name_that_does_not_exist_is_refused() -> None:
    with pytest.raises(millrace.InvalidRequest, match=r"Recipe\.centre_rounding: must be one of half_to_even, down"):
        Recipe(centre_rounding="up")  # type: ignore[arg-type]
