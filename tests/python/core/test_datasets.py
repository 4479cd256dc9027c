"""Folders as people have them: what is a sample, as torchvision's ImageFolder has it, and what is said of the rest."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import millrace
import millrace.numpy
import pytest
from millrace._data.endings import DECODED

from pictures import check_pixels, png

# What torchvision 0.2x takes for a picture (torchvision.datasets.folder.IMG_EXTENSIONS).
IMAGE_FOLDER = {".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp"}


@pytest.fixture
def untidy(folder: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Two classes of two pictures, and what lies about in such folders; beneath the daemon's root."""
    top = folder.parent / request.node.name / "untidy"
    for number, name in enumerate(("ant/1.png", "ant/2.PNG", "bee/1.png", "bee/deep/2.png", "loose.png")):
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png(number))
    for name in ("labels.csv", "ant/README.txt", "ant/old.tga", "bee/scan.JXL", "bee/LICENSE", "ant/.hidden.png"):
        (top / name).write_text("no picture")
    return top


def image_folder(top: Path) -> tuple[list[str], list[tuple[str, int]]]:
    """What torchvision's ImageFolder makes of a tree: classes, and (path, label) in its order."""
    classes = sorted(entry.name for entry in os.scandir(top) if entry.is_dir())
    samples = []
    for label, name in enumerate(classes):
        for root, _, files in sorted(os.walk(top / name, followlinks=True)):
            samples += [(f"{root}/{file}", label) for file in sorted(files) if Path(file).suffix.lower() in IMAGE_FOLDER]
    return classes, samples


def test_samples_and_labels_are_those_of_image_folder(session: millrace.Session, untidy: Path) -> None:
    classes, samples = image_folder(untidy)
    theirs = [(path, label) for path, label in samples if Path(path).suffix[1:].lower() in DECODED and not Path(path).name.startswith(".")]
    with pytest.warns(millrace.SkippedFilesWarning):
        dataset = session.dataset(untidy)
    assert list(dataset.classes) == classes
    assert [int(label) for batch in dataset.epoch() for label in batch.labels] == [label for _, label in theirs]
    assert len(dataset) == len(theirs) == 4


def test_samples_are_numbered_as_by_image_folder(session: millrace.Session, folder: Path) -> None:
    top = folder.parent / "numbered"
    nested = ("z", "a/z", "a-b/1", "a-b/d/3", "a/b/0", "a/b-c/1", "a/b/d/2")
    for place in (*(f"cat/{name}" for name in nested), "dog/1", "dog/a b/1", "dog-puppy/1", "dog (old)/a/1"):
        path = top / f"{place}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    _, samples = image_folder(top)
    for number, (name, _) in enumerate(samples):
        Path(name).write_bytes(png(number))
    seen = []
    for batch in session.dataset(top).epoch():
        check_pixels(batch)  # of the number that the daemon gives
        seen += [(int(number), int(label)) for number, label in zip(batch.ids, batch.labels, strict=True)]
    assert seen == [(number, label) for number, (_, label) in enumerate(samples)]
    assert len(seen) == 11


def test_skipped_files_are_named_once(session: millrace.Session, untidy: Path) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dataset = session.dataset(untidy)
        session.dataset(untidy)
    assert [warning.category for warning in caught] == [millrace.SkippedFilesWarning]
    assert caught[0].filename == __file__
    text = str(caught[0].message)
    assert text.startswith(f"{untidy}: 6 files are no samples: ")
    for part in (
        "1 .tga (ant/old.tga; not decoded: convert them)",
        "1 .jxl (bee/scan.JXL; not decoded: convert them)",
        "1 .csv (labels.csv)",
        "1 .txt (ant/README.txt)",
        "1 without an extension (bee/LICENSE)",
        "1 beside the class folders (loose.png)",
        'extensions=("*",) takes every file',
    ):
        assert part in text
    assert dataset.skipped_files == 6
    assert millrace.SkippedFiles("undecoded", "tga", 1, ("ant/old.tga",)) in dataset.skipped


def test_a_loader_over_an_untidy_folder_sees_pictures_only(daemon: millrace.PrivateDaemon, untidy: Path) -> None:
    recipe = millrace.Recipe.evaluate(32, 32)
    with millrace.numpy.Loader(untidy, recipe, batch_size=3, address=daemon.address) as loader:
        with pytest.warns(millrace.SkippedFilesWarning, match="6 files are no samples"):
            labels = [int(label) for _, batch in loader for label in batch]
        assert labels == [0, 0, 1, 1]
        loader.close()
        assert len(loader) == 2  # lists the folder again: nothing more is said


@pytest.mark.parametrize("extensions", ["png", ".PNG", ("png",), [".Png", "jpg"]])
def test_extensions_are_taken_as_people_write_them(session: millrace.Session, untidy: Path, extensions: object) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # who says which files are samples knows that others are none
        dataset = session.dataset(untidy, extensions)
    assert len(dataset) == 4
    assert dataset.skipped_files == 6


def test_every_file_and_unclassified_ones_where_they_are_asked_for(session: millrace.Session, untidy: Path) -> None:
    assert len(session.dataset(untidy, "*")) == 8
    assert len(session.dataset(untidy, ("*",), unclassified=True)) == 10
    loose = session.dataset(untidy, "png", unclassified=True)
    assert [int(label) for batch in loose.epoch() for label in batch.labels] == [-1, 0, 0, 1, 1]


def test_extensions_that_are_none(session: millrace.Session, folder: Path) -> None:
    with pytest.raises(millrace.InvalidRequest, match='None means what the daemon decodes, "\\*" every file'):
        session.dataset(folder, ())
    with pytest.raises(millrace.InvalidRequest, match='"\\*" means every file'):
        session.dataset(folder, ("jpg", "*"))
    with pytest.raises(millrace.InvalidRequest, match="expected str"):
        session.dataset(folder, (1,))  # type: ignore[arg-type]


def test_a_folder_in_which_nothing_is_left_says_what_there_is(session: millrace.Session, untidy: Path) -> None:
    for path in untidy.rglob("*"):
        if path.suffix.lower() == ".png" and path.parent != untidy:
            path.unlink()
    with pytest.raises(millrace.NotFound) as caught:
        session.dataset(untidy)
    text = str(caught.value)
    assert text.startswith(f"{untidy}: the dataset is empty: no files of the extensions {', '.join(DECODED)} beneath it")
    assert "1 .tga (ant/old.tga; not decoded: convert them)" in text
    assert "1 beside the class folders (loose.png)" in text


def test_a_loader_over_a_flat_folder_says_that_there_are_no_labels(daemon: millrace.PrivateDaemon, folder: Path) -> None:
    flat = folder.parent / "flat"
    flat.mkdir()
    (flat / "1.png").write_bytes(png(1))
    recipe = millrace.Recipe.evaluate(32, 32)
    with millrace.numpy.Loader(flat, recipe, address=daemon.address) as loader, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert [labels.tolist() for _, labels in loader] == [[-1]]
        loader.close()
        assert [labels.tolist() for _, labels in loader] == [[-1]]
    assert [warning.category for warning in caught] == [millrace.UnlabelledWarning]
    assert "every label is -1" in str(caught[0].message)


def test_refusals_name_path_roots_and_setting(session: millrace.Session, folder: Path) -> None:
    roots = rf"they are {folder.parent} \(files\.roots in the daemon's settings, or what a private daemon was given\)"
    with pytest.raises(millrace.PermissionDenied, match=rf"^/etc: not readable: .*; {roots}$"):
        session.dataset("/etc")
    with pytest.raises(millrace.SampleFailed, match=rf"/etc/passwd.*{roots}"):
        session.get(session.submit(["/etc/passwd"]))
    with pytest.raises(millrace.NotFound, match=rf"^{folder / 'missing'}: no such file or folder$"):
        session.dataset(folder / "missing")


@pytest.mark.parametrize("url", ["http://host/train", "s3://bucket/train", "file:///data"])
def test_urls_are_refused_as_such(daemon: millrace.PrivateDaemon, session: millrace.Session, url: str) -> None:
    text = f"{url} is a URL, and the daemon reads none"
    with pytest.raises(millrace.InvalidRequest, match=f"^dataset: {text}"):
        session.dataset(url)
    with pytest.raises(millrace.InvalidRequest, match=text):
        session.submit([url])
    with pytest.raises(millrace.InvalidRequest, match=text):
        millrace.numpy.Loader(url, address=daemon.address)
