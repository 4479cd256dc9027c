"""What notebooks and terminals show of the package: pictures, lines that say what a thing is, a bar while a folder is listed."""

from __future__ import annotations

import dataclasses
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import millrace
import millrace.numpy
import numpy as np
import pytest
from millrace._core import listing_bar as _listing_bar
from millrace._sheets.pictures import picture_of

from pictures import COUNT, SIZE, decoded, pixels_of, png

OWN_SIZE = millrace.Recipe(resize=millrace.ExactSize(SIZE))
VARIANTS: dict[str, dict[str, Any]] = {
    "uint8": {},
    "BGR": {"channels": "BGR", "layout": "NHWC"},
    "unit": {"dtype": "float32"},
    "raw": {"dtype": "float16", "range": "raw"},
    "normalised": {"dtype": "float32", "normalise": millrace.Normalise()},
    "normalised BGR": {"dtype": "float32", "normalise": millrace.Normalise(), "channels": "BGR", "layout": "NHWC"},
    "bfloat16": {"dtype": "bfloat16", "normalise": millrace.Normalise()},
    "packed": {"packing": "packed", "layout": "NHWC"},
}


def first_batch(client: millrace.Client, folder: Path, recipe: millrace.Recipe, batch: int = 3) -> Iterator[millrace.Batch]:
    with client.session(recipe, batch=batch, slots=2, slot_bytes=1 << 20) as session:
        yield next(session.dataset(folder).epoch())


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_batch_is_shown_as_the_pictures_that_it_was_made_of(client: millrace.Client, folder: Path, variant: str) -> None:
    for batch in first_batch(client, folder, dataclasses.replace(OWN_SIZE, **VARIANTS[variant])):
        sheet = decoded(batch._repr_png_() or b"")

    assert sheet.shape == (SIZE.width + 8, 3 * (SIZE.width + 4) + 4, 3)
    off = 1 if variant == "bfloat16" else 0
    for number in range(3):
        left = 4 + number * (SIZE.width + 4)
        shown = sheet[12 : 12 + SIZE.height, left : left + SIZE.width].astype(int)
        assert abs(shown - pixels_of(number)).max() <= off


@pytest.mark.parametrize("normalise", [None, millrace.Normalise()])
def test_grey_is_shown_grey(client: millrace.Client, folder: Path, normalise: millrace.Normalise | None) -> None:
    grey = dataclasses.replace(OWN_SIZE, channels="grey")
    for batch in first_batch(client, folder, grey):
        expected = batch.images.numpy()[0, 0].copy()
    for batch in first_batch(client, folder, dataclasses.replace(grey, dtype="float32", normalise=normalise)):
        picture = picture_of(batch.image(0), batch.recipe)

    assert picture.shape == (SIZE.height, SIZE.width, 3)
    np.testing.assert_array_equal(picture, np.repeat(expected[..., None], 3, axis=-1))


def test_large_images_are_shown_small_and_many_in_part(client: millrace.Client, folder: Path) -> None:
    with client.session(millrace.Recipe.evaluate(200, 200), batch=30, slots=2) as session:
        sheet = decoded(next(session.dataset(folder).epoch())._repr_png_() or b"")

    assert sheet.shape == (4 * 104 + 4, 6 * 104 + 4, 3)


def test_where_there_is_nothing_to_see_there_is_no_picture(client: millrace.Client, folder: Path) -> None:
    for batch in first_batch(client, folder, OWN_SIZE):
        batch.release()
        assert batch._repr_png_() is None
    patches = millrace.Patches(millrace.Size(8, 8))
    recipe = millrace.Recipe(resize=millrace.ExactSize(millrace.Size(32, 32)), patches=patches)
    for batch in first_batch(client, folder, recipe):
        assert batch._repr_png_() is None


def test_a_preview_of_a_folder(daemon: millrace.PrivateDaemon, folder: Path, tmp_path: Path) -> None:
    seen = millrace.preview(folder, 6, side=48, columns=3, address=daemon.address)

    seen.save(tmp_path / "sheet.png")
    sheet = decoded((tmp_path / "sheet.png").read_bytes())
    assert sheet.shape == (2 * 52 + 4, 3 * 52 + 4, 3)
    np.testing.assert_array_equal(sheet[12:44, 56:104], pixels_of(10))
    np.testing.assert_array_equal(decoded(seen._repr_png_()), sheet)
    assert (seen.found, len(seen.shown), seen.bad) == (COUNT, 6, ())
    assert repr(seen).splitlines()[0].startswith(f"<millrace.preview of {folder}: 6 of {COUNT} pictures, 0 bad;")
    assert "  ant/0010.png: 48 x 32" in repr(seen)


def test_a_preview_of_a_list_shows_parts(daemon: millrace.PrivateDaemon, folder: Path) -> None:
    files = sorted(folder.rglob("*.png"))[:3]
    home = folder.parent / "all of them"
    home.write_bytes(b"".join(file.read_bytes() for file in files))
    sizes = [file.stat().st_size for file in files]
    parts = [millrace.Part(home, sum(sizes[:number]), size) for number, size in enumerate(sizes)]
    of_parts = millrace.preview(millrace.Samples([*parts[:2], str(files[2])]), address=daemon.address)
    of_files = millrace.preview(millrace.Samples(list(map(str, files))), address=daemon.address)
    home.unlink()
    assert (of_parts.found, of_parts.bad) == (3, ())
    assert np.array_equal(of_parts.sheet, of_files.sheet)
    assert str(of_parts.shown[1].path) == f"{home}[{parts[1].offset}+{parts[1].length}]"


def test_a_preview_says_which_files_are_bad(tmp_path: Path, daemon: millrace.PrivateDaemon, folder: Path) -> None:
    place = folder.parent / "some bad"
    place.mkdir(exist_ok=True)
    (place / "a.png").write_bytes((folder / "ant" / "0000.png").read_bytes())
    (place / "b.png").write_bytes(b"no picture")

    seen = millrace.preview(place, address=daemon.address)

    (bad,) = seen.bad
    assert bad.path.name == "b.png"
    assert repr(seen).splitlines()[1].startswith("  b.png: not an image")
    for wrong, error in ((tmp_path, millrace.NotFound), (tmp_path / "none", millrace.NotFound)):
        with pytest.raises(error):
            millrace.preview(wrong, address=daemon.address)
    with pytest.raises(millrace.InvalidRequest, match=r"a folder or Samples .*not a list"):
        millrace.preview([place], address=daemon.address)  # type: ignore[arg-type]
    with pytest.raises(millrace.InvalidRequest, match="at least 1"):
        millrace.preview(place, 0, address=daemon.address)
    with pytest.raises(millrace.DaemonUnavailable):
        millrace.preview(place, address=tmp_path / "nobody")


def test_a_preview_of_a_recipe(daemon: millrace.PrivateDaemon, folder: Path) -> None:
    recipe = millrace.Recipe(resize=millrace.ExactSize(SIZE)).normalised("float32")

    seen = millrace.preview(folder, 6, recipe=recipe, columns=3, address=daemon.address)

    assert seen.sheet.shape == (2 * 52 + 4, 3 * 52 + 4, 3)
    np.testing.assert_array_equal(seen.sheet[12:44, 56:104], pixels_of(10))  # normalisation undone
    assert (seen.shown[1].size, seen.bad) == (tuple(SIZE), ())


def test_a_preview_of_views_has_a_row_for_each_sample(daemon: millrace.PrivateDaemon, folder: Path) -> None:
    own_size = millrace.Recipe(resize=millrace.ExactSize(SIZE))
    inverted = dataclasses.replace(own_size, steps=(millrace.steps.Invert(),))
    cut = dataclasses.replace(own_size, centre_crop=millrace.Size(16, 8), crop_place="top_left")

    place = folder.parent / "preview of views"
    place.mkdir()
    for name, content in (("a.png", png(0)), ("b.png", b"no picture"), ("c.png", png(2))):
        (place / name).write_bytes(content)
    seen = millrace.preview(place, recipe=millrace.Recipe.of_views(own_size, inverted, cut), address=daemon.address)

    assert seen.sheet.shape == (3 * 52 + 4, 3 * 52 + 4, 3)
    for row, number in ((0, 0), (2, 2)):
        top = 4 + row * 52
        np.testing.assert_array_equal(seen.sheet[top + 8 : top + 40, 4:52], pixels_of(number))
        np.testing.assert_array_equal(seen.sheet[top + 8 : top + 40, 56:104], 255 - pixels_of(number))
        np.testing.assert_array_equal(seen.sheet[top + 20 : top + 28, 124:140], pixels_of(number)[:8, :16])
    assert [one.path.name for one in seen.bad] == ["b.png"]


@pytest.mark.torch
def test_a_preview_draws_for_each_picture_and_takes_what_loaders_take(daemon: millrace.PrivateDaemon, folder: Path) -> None:
    same = folder.parent / "the same twenty times"
    same.mkdir()
    for number in range(20):
        (same / f"{number:02}.png").write_bytes(png(7))
    recipe = millrace.Recipe.train(16)

    seen = millrace.preview(same, recipe=recipe, columns=20, address=daemon.address)

    cells = {seen.sheet[4:20, 4 + 20 * number : 20 + 20 * number].tobytes() for number in range(20)}
    assert len(cells) == 20
    transforms = pytest.importorskip("torchvision.transforms.v2", reason="torchvision is not installed: a preview of its transforms")
    resized = millrace.preview(same, 1, recipe=transforms.Resize((8, 9)), address=daemon.address)
    assert resized.sheet.shape == (9 + 8, 9 + 8, 3)
    for wrong, message in (
        (millrace.Recipe(resize=millrace.ShorterSide(8)), "preview: the transform must make images of one size"),
        (millrace.Recipe.thumbnail(8), "preview: .* not packed"),
        (millrace.Recipe(resize=millrace.ExactSize(millrace.Size(16, 16)), patches=millrace.Patches(millrace.Size(8, 8))), "makes patches"),
    ):
        with pytest.raises(millrace.InvalidRequest, match=message):
            millrace.preview(same, recipe=wrong, address=daemon.address)


def test_everything_says_what_it_is(daemon: millrace.PrivateDaemon, client: millrace.Client, folder: Path) -> None:
    recipe = millrace.Recipe.train(24).normalised("float32")
    with client.session(recipe, batch=8, slots=3) as session:
        dataset = session.dataset(folder)
        epoch = dataset.epoch()
        batch = next(epoch)
        assert repr(client) == f"<millrace.Client of the daemon at {daemon.address}>"
        assert repr(session).startswith(f"<millrace.Session {session.id}: batches of 8 images 24 x 24 float32, 3 slots of 0.0")
        assert repr(dataset) == f"<millrace.Dataset {folder}: {COUNT} samples, 3 classes>"
        assert repr(epoch) == f"<millrace.Epoch of session {session.id}>"
        assert repr(batch) == "<millrace.Batch 0: 8 images 24 x 24 float32, 0 bad>"
        assert repr(batch.images) == "<millrace.Tensor float32 8 x 3 x 24 x 24>"
        epoch.stop()
        assert repr(epoch).endswith(", stopped>")
    assert repr(session).endswith(", closed>")
    assert repr(daemon) == f"<millrace.PrivateDaemon {daemon.address}: process {daemon.pid}, reads {folder.parent}>"
    assert eval(repr(recipe), vars(millrace)) == recipe
    assert repr(millrace.Recipe.evaluate(32, 24)) == (
        "Recipe(resize=ShorterSide(pixels=32, longest=None), centre_crop=Size(width=24, height=24))"
    )


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("where", "drawn"), [(Terminal, True), (io.StringIO, False)])
def test_a_long_listing_has_a_bar_where_somebody_looks(monkeypatch: pytest.MonkeyPatch, where: Any, drawn: bool) -> None:
    pytest.importorskip("tqdm", reason="tqdm is not installed: no bar is drawn")
    stream = where()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(_listing_bar, "_PATIENCE", 0.0)

    with _listing_bar.ListingBar("/data") as bar:
        bar(1000)
        bar(2500)

    assert ("listing /data" in stream.getvalue()) is drawn
    assert not stream.getvalue().strip(" \r").endswith("files")  # it is wiped


def test_a_short_listing_and_one_without_tqdm_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with _listing_bar.ListingBar("/data") as bar:
        bar(1000)
    monkeypatch.setattr(_listing_bar, "_PATIENCE", 0.0)
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with _listing_bar.ListingBar("/data") as bar:
        bar(1000)

    assert stream.getvalue() == ""


def test_listing_goes_by_the_bar(client: millrace.Client, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tqdm", reason="tqdm is not installed: no bar is drawn")
    made: list[_listing_bar.ListingBar] = []

    class Noted(_listing_bar.ListingBar):
        def __init__(self, path: str) -> None:
            super().__init__(path)
            made.append(self)

    monkeypatch.setattr("millrace._core.dataset_requests.ListingBar", Noted)
    with client.session(OWN_SIZE, batch=2, slots=2) as session:
        session.dataset(folder)

    assert [bar._what for bar in made] == [f"listing {folder}"]


@pytest.mark.torch
@pytest.mark.jax
def test_a_notebook_asks_a_batch_and_a_preview_for_their_pictures(
    daemon: millrace.PrivateDaemon, client: millrace.Client, folder: Path
) -> None:
    pytest.importorskip("IPython", reason="IPython is not installed: its way of asking for pictures is not tried")
    from IPython.core.formatters import DisplayFormatter

    formatter = DisplayFormatter()
    formatter.active_types = ["text/plain", "image/png"]
    for batch in first_batch(client, folder, OWN_SIZE):
        shown, _ = formatter.format(batch)
    previewed, _ = formatter.format(millrace.preview(folder, 2, address=daemon.address))

    for found in (shown, previewed):
        assert found["image/png"].startswith(b"\x89PNG")
        assert found["text/plain"].startswith("<millrace.")
