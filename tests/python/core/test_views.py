"""Several views of one decode: where their tensors lie, and whose they are; order, errors, resumption. Pixels: test_view_pixels.py."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import millrace
import numpy as np
import pytest
from millrace import Recipe, Size, recipes, steps

from pictures import COUNT, SIZE, decoded, path_of, pixels_of, png, png_of
from test_ticket import replay
from views import GEOMETRY, views_of

SIMPLE = Recipe.of_views(Recipe.train(24), [Recipe.train(16)] * 2)


@pytest.fixture
def session(client: millrace.Client) -> Iterator[millrace.Session]:
    with client.session(GEOMETRY, batch=20, slots=3) as opened:
        yield opened


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("dtype", ["uint8", "float16", "bfloat16", "float32"])
@pytest.mark.parametrize("fidelity", ["exact", "fast"])
def test_the_first_view_is_what_its_recipe_makes_alone(
    client: millrace.Client, folder: Path, layout: Any, dtype: Any, fidelity: Any
) -> None:
    recipe = dataclasses.replace(GEOMETRY.normalised(dtype), layout=layout)
    options: Any = {"samples": [path_of(folder, number) for number in range(7)], "seed": 8, "epoch": 2, "fidelity": fidelity}
    with client.session(recipe, batch=7, slots=2) as session:
        together = session.get(session.submit(**options))
        with client.session(recipe.views[0], batch=7, slots=1) as one:
            alone = one.get(one.submit(**options))
            np.testing.assert_array_equal(together.views[0].bits(), alone.images.bits())
            for name in ("boxes", "flips", "sizes", "source_sizes", "ids"):
                np.testing.assert_array_equal(getattr(together, name), getattr(alone, name))


def test_tensors_lie_one_after_the_other_in_the_slot(client: millrace.Client, session: millrace.Session) -> None:
    for count in (1, 7, 20):
        batch = session.get(session.submit([png(number) for number in range(count)]))
        end = 0
        for view, recipe in zip(batch.views, GEOMETRY.views, strict=True):
            size = recipe.fixed_size
            assert size is not None
            assert view.shape == (count, 3, size.height, size.width)
            assert view.numpy().flags.c_contiguous
            assert view._offset % 64 == 0
            assert view._offset >= end
            end = view._offset + view.nbytes
        assert end <= int(batch._completed.handle.records_offset)
        address = [view.numpy().ctypes.data % 64 for view in batch.views]
        assert address == [0] * len(address)
    room = GEOMETRY.slot_bytes(20)
    assert room is not None
    with client.session(GEOMETRY, batch=20, slots=1, slot_bytes=room) as exact:
        assert len(exact.get(exact.submit([png(number) for number in range(20)]))) == 20


def test_corners_and_the_middle(client: millrace.Client) -> None:
    size = Size(21, 10)
    places: Any = ("top_left", "top_right", "bottom_left", "bottom_right", "centre")
    recipe = Recipe.of_views(Recipe(centre_crop=size, crop_place=place, layout="NHWC") for place in places)
    pixels = pixels_of(3)
    with client.session(recipe, batch=1, slots=1) as session:
        found = [view[0] for view in views_of(session.get(session.submit([png(3)])))]
    top, left = SIZE.height - size.height, SIZE.width - size.width
    expected = [pixels[:10, :21], pixels[:10, left:], pixels[top:, :21], pixels[top:, left:], pixels[11:21, 14:35]]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_batch_of_views_has_no_images_but_views(session: millrace.Session) -> None:
    batch = session.get(session.submit([png(0), png(1), png(2)]))
    with pytest.raises(millrace.InvalidRequest, match=r"makes 6 views of each sample.*batch\.views has them, batch\.image\(index, view\)"):
        _ = batch.images
    for index, view in itertools.product(range(-3, 3), range(-6, 6)):
        np.testing.assert_array_equal(batch.image(index, view).numpy(), batch.views[view].numpy()[index])
    np.testing.assert_array_equal(batch.image(1).numpy(), batch.views[0].numpy()[1])
    for wrong in ((3, 0), (0, 6), (0, -7)):
        with pytest.raises(IndexError):
            batch.image(*wrong)
    assert repr(batch).endswith(": 3 images in 1 view 40 x 31 and 3 views 17 x 16 and 1 view 15 x 14 and 1 view 22 x 22 uint8, 0 bad>")
    views = batch.views
    views.clear()  # the caller's own list
    kept = batch.views[3].numpy()
    assert batch.release() is False
    assert kept.shape == (3, 3, 16, 17)
    with pytest.raises(millrace.Released):
        _ = batch.views


def test_of_a_recipe_without_views_they_are_the_images(client: millrace.Client, own_size: Recipe) -> None:
    with client.session(own_size, batch=2, slots=1) as session:
        batch = session.get(session.submit([png(0), png(1)]))
        (images,) = batch.views
        assert images is batch.images
        with pytest.raises(IndexError, match="view 1 of a recipe that makes 1"):
            batch.image(0, 1)


def test_draws_are_a_function_of_seed_epoch_sample_and_view(session: millrace.Session) -> None:
    def made(**options: Any) -> list[bytes]:
        samples = [millrace.Sample(png(0), id=number) for number in (4, 2**40)]
        return [view.tobytes() for view in views_of(session.get(session.submit(samples, **options)))]

    first = made(seed=1, epoch=1)
    assert first == made(seed=1, epoch=1)
    assert all(one != other for one, other in zip(first, made(seed=2, epoch=1), strict=True))
    assert all(one != other for one, other in zip(first, made(seed=1, epoch=2), strict=True))
    assert len(set(first[1:4])) == 3  # the same recipe thrice


@pytest.mark.parametrize("cache", ["off", "tensors"])
def test_an_epoch_goes_on_after_its_position_in_another_session(client: millrace.Client, folder: Path, cache: Any) -> None:
    def batches(session: millrace.Session, position: bytes = b"") -> list[Any]:
        epoch = session.epoch(session.dataset(folder), shuffle=True, seed=6, epoch=5, position=position)
        return [(batch.ids.tolist(), [view.tobytes() for view in views_of(batch)], batch.position) for batch in epoch]

    with client.session(GEOMETRY, batch=8, slots=3, cache=cache) as session:
        whole = batches(session)
        assert whole == batches(session)
    assert sorted(number for ids, _, _ in whole for number in ids) == list(range(COUNT))
    with client.session(GEOMETRY, batch=8, slots=3, cache=cache) as another:
        assert batches(another, whole[2][2]) == whole[3:]


def broken(folder: Path, at: int) -> list[Any]:
    sources: list[Any] = [millrace.Sample(path_of(folder, number), id=number) for number in range(6)]
    sources[at] = millrace.Sample(png(9)[:300], id=99)
    return sources


@pytest.mark.parametrize("at", [0, 2, 5])
def test_bad_samples(client: millrace.Client, folder: Path, at: int) -> None:
    good = [number for number in range(6) if number != at]
    nearest = at - 1 if at else 1
    with client.session(SIMPLE, batch=6, slots=5) as session:
        whole = views_of(session.get(session.submit([millrace.Sample(path_of(folder, number), id=number) for number in range(6)])))
        skipped, zeroed, substituted = (
            session.get(session.submit(broken(folder, at), on_error=on_error))
            for on_error in ("skip", "zero", "substitute")  # type: ignore[arg-type]
        )
        assert (len(skipped), len(zeroed), len(substituted)) == (5, 6, 6)
        for view, images in enumerate(whole):
            np.testing.assert_array_equal(skipped.views[view].numpy(), images[good])
            np.testing.assert_array_equal(zeroed.views[view].numpy()[good], images[good])
            assert not zeroed.views[view].numpy()[at].any()
            np.testing.assert_array_equal(substituted.views[view].numpy()[good], images[good])
            np.testing.assert_array_equal(substituted.views[view].numpy()[at], images[nearest])
            for index, number in enumerate(good):
                np.testing.assert_array_equal(skipped.image(index, view).numpy(), images[number])
        assert skipped.ids.tolist() == good
        assert [error.index for error in skipped.errors] == [at]
        assert substituted.ids[at] == nearest
        with pytest.raises(millrace.SampleFailed):
            session.get(session.submit(broken(folder, at)))
        nothing = session.get(session.submit([b"", b"x"], on_error="skip"))
        with pytest.raises(millrace.SampleFailed, match="no image of this batch is left"):
            _ = nothing.views


def test_an_image_that_is_too_small_for_one_of_the_views_is_bad(client: millrace.Client) -> None:
    recipe = Recipe.of_views(Recipe.train(16), Recipe(centre_crop=Size(40, 30)))
    small = png_of(pixels_of(0)[:30, :39])
    with client.session(recipe, batch=3, slots=1) as session:
        batch = session.get(session.submit([png(0), small, png(1)], on_error="skip"))
        assert [len(view) for view in batch.views] == [2, 2]
        np.testing.assert_array_equal(batch.views[1].numpy()[1], pixels_of(1)[1:31, 4:44].transpose(2, 0, 1))
        assert "larger than the image" in batch.errors[0].message


TRAIN = Recipe.train(8)
STEPS = tuple(steps.Invert() for _ in range(64))
REFUSED: dict[str, tuple[Recipe, str]] = {
    "65 views": (Recipe.of_views([TRAIN] * 65), "64"),
    "a size of its own": (Recipe.of_views(TRAIN, Recipe(resize=millrace.ShorterSide(8))), "views"),
    "320 steps": (Recipe.of_views([dataclasses.replace(TRAIN, steps=STEPS)] * 5), "256"),
    "65 steps of a view": (Recipe.of_views(TRAIN, dataclasses.replace(TRAIN, steps=(*STEPS, steps.Invert()))), "64"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_daemon_refuses(client: millrace.Client, name: str) -> None:
    recipe, message = REFUSED[name]
    with pytest.raises(millrace.InvalidRequest, match=message):
        client.session(recipe, batch=1, slots=1, slot_bytes=1 << 20)
    with client.session(TRAIN, batch=1, slots=1, slot_bytes=1 << 20) as session, pytest.raises(millrace.InvalidRequest, match=message):
        session.get(session.submit([png(0)], recipe=recipe))


def test_as_many_views_and_steps_as_there_may_be(client: millrace.Client) -> None:
    most = Recipe.of_views([dataclasses.replace(TRAIN, steps=STEPS)] * 4, [TRAIN] * 60)
    with client.session(most, batch=3, slots=1) as session:
        views = views_of(session.get(session.submit([png(number) for number in range(3)])))
    assert len(views) == 64
    assert len({view.tobytes() for view in views}) == 64


def test_samples_bring_no_box_and_no_size(session: millrace.Session) -> None:
    for sample in (millrace.Sample(png(0), box=millrace.Box(0, 0, 8, 8)), millrace.Sample(png(0), size=Size(8, 8))):
        with pytest.raises(millrace.Error, match="is not for a recipe with views"):
            session.get(session.submit([sample]))


def test_a_ticket_is_of_one_view(client: millrace.Client, daemon: millrace.PrivateDaemon, folder: Path, tmp_path: Path) -> None:
    for recipe in (GEOMETRY, recipes.dino(32, 16, 2)):
        with client.session(recipe, batch=5, slot_bytes=1 << 20) as session:
            batch = next(session.epoch(session.dataset(folder), shuffle=True, seed=9, epoch=4))
            for index, view in itertools.product((0, -1), (0, 2, -1)):
                batch.ticket(index, view).save(tmp_path / "ticket")
                ran = replay(daemon, tmp_path / "ticket", "--raw", tmp_path / "raw")
                assert ran.returncode == 0, ran.stderr
                assert "the same tensor, crc32" in ran.stdout
                assert (tmp_path / "raw").read_bytes() == batch.image(index, view).numpy().tobytes()


def test_a_notebook_shows_the_views_of_a_sample_side_by_side(client: millrace.Client, folder: Path) -> None:
    recipe = dataclasses.replace(SIMPLE, layout="NHWC")
    with client.session(recipe, batch=20, slots=1) as session:
        batch = next(session.dataset(folder).epoch())
        sheet = decoded(batch._repr_png_() or b"")
        assert sheet.shape == (8 * 28 + 4, 3 * 28 + 4, 3)
        np.testing.assert_array_equal(sheet[32:56, 4:28], batch.image(1, 0).numpy())
        np.testing.assert_array_equal(sheet[36:52, 64:80], batch.image(1, 2).numpy())
    with client.session(Recipe.of_views([dataclasses.replace(TRAIN, layout="NHWC")] * 15), batch=2, slots=1) as session:
        batch = next(session.dataset(folder).epoch())
        sheet = decoded(batch._repr_png_() or b"")
        assert sheet.shape == (2 * 12 + 4, 12 * 12 + 4, 3)
        np.testing.assert_array_equal(sheet[16:24, 28:36], batch.image(0, 14).numpy())
