"""What of ``millrace.ray`` needs no cluster: listings, ``Preprocess`` as a function, and arguments that are refused."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import millrace
import numpy as np
import pytest

from pictures import SIZE, png
from processes import python

pytest.importorskip("ray.data", reason="Ray Data is not installed: nothing of millrace.ray is tested")

import millrace.ray
import pyarrow as pa
from millrace.ray._listing import listed

pytestmark = [pytest.mark.ray, pytest.mark.filterwarnings("default")]  # Ray's own warnings are not ours
OWN_SIZE = millrace.Recipe(resize=millrace.ExactSize(SIZE), layout="NHWC")


def test_labels_and_order_are_image_folders(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    for name in ("b/2.png", "b/x/1.png", "b/a.PNG", "a-z/9.png", "a/7.png", "a/.hidden.png", ".git/3.png", "B/note.txt", "B/1.jpeg"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_bytes(png(0))
    with pytest.warns(millrace.SkippedFilesWarning, match=r"1 files are no samples: 1 \.txt"):
        ours = listed(tree, None, True)

    torchvision = pytest.importorskip("torchvision", reason="torchvision is not installed: labels are not compared with its ImageFolder's")
    (tree / ".git" / "3.png").unlink()
    (tree / ".git").rmdir()
    (tree / "a" / ".hidden.png").unlink()
    theirs = torchvision.datasets.ImageFolder(str(tree))
    assert list(zip(ours.paths, ours.labels, strict=True)) == theirs.samples
    assert list(ours.classes) == theirs.classes


class Called(millrace.ray.Preprocess):
    """One in this process, which has a daemon."""

    def rows(self, batch: Any) -> list[Any]:
        return list(self(batch))


@pytest.fixture
def found(daemon: millrace.PrivateDaemon, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    from millrace.ray._work import SESSIONS

    monkeypatch.setenv("MILLRACE_SOCKET", daemon.address)
    yield
    SESSIONS.close()


@pytest.mark.parametrize("form", ["numpy", "pyarrow"])
def test_rows_of_bad_images_are_left_out_in_all_columns(found: None, form: str, caplog: pytest.LogCaptureFixture) -> None:
    columns: dict[str, Any] = {"bytes": [png(0), b"no image", png(2), None], "id": [0, 1, 2, 3]}
    batch = pa.table(columns) if form == "pyarrow" else {"bytes": np.array(columns["bytes"], object), "id": np.arange(4)}
    (part,) = Called(OWN_SIZE, "bytes", on_error="skip").rows(batch)

    assert [int(number) for number in np.asarray(part["id"])] == [0, 2]
    assert "2 of 4 images are left out: " in caplog.text


def test_a_batch_that_does_not_fit_the_ring_says_what_to_do(found: None) -> None:
    large = b"x" * (2 << 20)
    with pytest.raises(millrace.InvalidRequest, match=r"give more ring_bytes=, or a smaller batch_size="):
        Called(OWN_SIZE, "bytes", ring_bytes=1 << 20).rows({"bytes": [large]})


RANDOM: dict[str, dict[str, Any]] = {
    "crop": {"crop": millrace.RandomResizedCrop()},
    "flip": {"flip_probability": 0.5},
    "place": {"resize": None, "centre_crop": millrace.Size(16, 16), "crop_place": "random"},
    "padding": {"pad": millrace.Pad(to=millrace.Size(80, 80), place="random")},
    "scale": {"resize": millrace.ScaleJitter(SIZE), "pad": millrace.Pad(to=SIZE), "centre_crop": SIZE},
    "side": {"resize": millrace.RandomShorterSide(tuple(range(4, 32)), 48), "pad": millrace.Pad(to=millrace.Size(48, 48))},
    "filter": {"resize": millrace.ExactSize(millrace.Size(9, 9)), "random_filters": ("nearest", "box", "bilinear", "hamming", "lanczos")},
    "steps": {"steps": [millrace.steps.ColorJitter(0.9, 0.9, 0.9)]},
    "erasing": {"erasing": millrace.Erasing(1.0)},
}


@pytest.mark.parametrize("drawn", RANDOM)
@pytest.mark.parametrize("views", [0, 2])
def test_random_choices_belong_to_the_image_and_not_to_its_place(found: None, drawn: str, views: int) -> None:
    recipe = dataclasses.replace(OWN_SIZE, **RANDOM[drawn])
    column = "image_1" if views else "image"
    if views:
        recipe = millrace.Recipe.of_views(OWN_SIZE, recipe)
    (one,) = Called(recipe, "bytes").rows({"bytes": [png(0), png(1)]})
    (other,) = Called(recipe, "bytes").rows({"bytes": [png(1), png(0)]})
    (later,) = Called(recipe, "bytes", epoch=1).rows({"bytes": [png(0), png(1)]})

    np.testing.assert_array_equal(one[column], other[column][::-1])
    assert drawn == "flip" or (one[column] != later[column]).any()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"recipe": "train"}, r"recipe is a millrace\.Recipe .*, not 'train'"),
        ({"recipe": millrace.Recipe()}, r"tensors of one shape"),
        ({"recipe": millrace.Recipe.thumbnail(64)}, r"tensors of one shape"),
        ({"recipe": millrace.Recipe(resize=millrace.ExactSize(SIZE), dtype="bfloat16")}, r"Arrow has no bfloat16"),
        ({"on_error": "substitute"}, r"on_error: must be one of fail, zero, skip"),
        ({"include_errors": True}, r'on_error="zero" only'),
        ({"batch_size": 0}, r"batch_size is a whole number from 1 on, not 0"),
        ({"seed": -1}, r"seed is a whole number from 0 on"),
        ({"shuffle": "rows"}, r'shuffle is "files" or None'),
        ({"cache": "all"}, r"cache: must be one of off"),
        ({"daemon": "/run/s"}, r"daemon is a millrace\.ray\.Daemon"),
        ({"file_extensions": []}, r"file_extensions names what files end with"),
        ({"paths": "s3://bucket/x"}, r"is a URL.*read_binary_files"),
        ({"paths": millrace.Part("/a", 0, 1)}, r"not a Part; .*read_webdataset .*map_batches a millrace.ray.Preprocess"),
        ({"paths": ["/a", millrace.Part("/a", 0, 1)]}, r"not a Part; .*read_webdataset"),
        ({"paths": 7}, r"not a int"),
    ],
)
def test_arguments_that_cannot_be_honoured_are_refused(folder: Path, options: dict[str, Any], text: str) -> None:
    with pytest.raises(millrace.InvalidRequest, match=text):
        millrace.ray.read_images(**{"paths": folder, "recipe": OWN_SIZE, **options})


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"lanes": 0}, "lanes is at least 1"),
        ({"num_cpus": -1}, "num_cpus is not negative"),
        ({"roots": []}, "roots names no folder"),
        ({"linger": 0}, "linger is more than 0"),
        ({"find": False, "start": False}, "leave one of them out"),
    ],
)
def test_a_daemon_that_cannot_be_is_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(millrace.InvalidRequest, match=text):
        millrace.ray.Daemon(**options)


def test_what_is_not_there_is_not_found(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(millrace.NotFound, match=r"nowhere does not exist"):
        millrace.ray.read_images(folder / "nowhere", OWN_SIZE)
    with pytest.raises(millrace.NotFound, match=r"no files that end in \.jpg.*file_extensions= names others"):
        millrace.ray.read_images(tmp_path, OWN_SIZE)
    with pytest.raises(millrace.InvalidRequest, match=r"no class folders"):
        millrace.ray.read_images(folder / "ant", OWN_SIZE, include_labels=True)


@pytest.mark.parametrize(
    ("batch", "text"),
    [
        ({"other": [b""]}, r"no column 'it'; there are 'other'"),
        ({"it": [7]}, r"paths \(strings\) or files' bytes, not int"),
        ({"it": [millrace.Part("/a", 0, 1)]}, r"not Part; read them, and give their bytes"),
        ({"it": ["a.png"]}, r"paths are absolute.*a\.png is not"),
        ({"it": [b""], "image": [1]}, r"has a column 'image' already"),
        ([1], r"formats \"pyarrow\" and \"numpy\".*not list"),
    ],
)
def test_batches_that_cannot_be_preprocessed_are_refused(batch: Any, text: str) -> None:
    with pytest.raises(millrace.InvalidRequest, match=text):
        Called(OWN_SIZE, "it").rows(batch)


def test_millrace_needs_no_ray_and_says_what_does() -> None:
    code = """
import sys
import millrace
assert not [name for name in sys.modules if name.split(".")[0] in ("ray", "pyarrow")]
sys.modules["ray"] = None
try:
    import millrace.ray
except ImportError as why:
    print(why)
"""
    with python(code) as process:
        output, errors = process.communicate()
    assert process.returncode == 0, errors
    assert "pip install 'millrace[ray]'" in output
