"""Names of files that are not UTF-8: as ``bytes``, or as the ``str`` that ``os`` makes of them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import millrace
import millrace.numpy
import numpy as np
import pytest

from pictures import pixels_of, png

FOLDER = b"caf\xe9"
GOOD = b"\xff/\xfe\n.png"
BAD = b"\xff/\x80.png"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A folder whose one class folder, of a single byte 0xFF, has a picture and a file that is none."""
    root = os.path.join(os.fsencode(tmp_path_factory.mktemp("paths")), FOLDER)
    os.makedirs(os.path.join(root, b"\xff"))
    for name, content in ((GOOD, png(3)), (BAD, b"this is not a picture")):
        with open(os.path.join(root, name), "wb") as file:
            file.write(content)
    return root


@pytest.fixture(scope="module")
def odd_daemon(root: bytes) -> Iterator[millrace.PrivateDaemon]:
    with millrace.serve(root, lanes=2) as running:
        yield running


@pytest.fixture
def odd(odd_daemon: millrace.PrivateDaemon, own_size: millrace.Recipe) -> Iterator[millrace.Session]:
    with millrace.connect(odd_daemon.address) as client, client.session(own_size, batch=8, slots=3) as opened:
        yield opened


def test_a_path_is_bytes_or_what_os_makes_of_them(odd: millrace.Session, root: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(os.fsdecode(root))
    path = os.path.join(root, GOOD)
    (entry,) = (found for found in os.scandir(os.path.dirname(path)) if found.name == os.path.basename(path))
    text = os.fsdecode(path)

    batch = odd.get(odd.submit([millrace.Path(path), millrace.Path(text), text, Path(text), entry, millrace.Path(GOOD), os.fsdecode(GOOD)]))

    assert len(batch) == 7
    for image in batch.images.numpy():
        np.testing.assert_array_equal(image, pixels_of(3))


def test_an_error_has_a_path_to_open_and_a_text_to_print(odd: millrace.Session, root: bytes) -> None:
    batch = odd.get(odd.submit([millrace.Path(os.path.join(root, BAD)), b"not one either", png(3)], on_error="skip"))

    of_file, of_bytes = batch.errors
    assert of_file.path is not None
    assert os.fsencode(of_file.path) == os.path.join(root, BAD)
    assert Path(of_file.path).read_bytes() == b"this is not a picture"
    assert of_file.source.endswith(r"/caf\xe9/\xff/\x80.png")
    str(of_file).encode()
    assert of_bytes.path is None
    assert of_bytes.source.startswith("encoded bytes")


@pytest.mark.parametrize("kind", [bytes, os.fsdecode, lambda path: Path(os.fsdecode(path))])
def test_a_datasets_folder_and_classes_are_as_os_names_them(odd: millrace.Session, root: bytes, kind: object) -> None:
    dataset = odd.dataset(kind(root), ["png"])  # type: ignore[operator]

    (batch,) = dataset.epoch(batch=2, on_error="skip")

    assert os.fsencode(dataset.path) == root
    assert dataset.classes == tuple(os.listdir(os.fsdecode(root)))
    assert repr(dataset).encode().endswith(rb"caf\xe9: 2 samples, 1 classes>")
    assert [os.fsencode(error.path or "") for error in batch.errors] == [os.path.join(root, BAD)]
    np.testing.assert_array_equal(batch.images.numpy()[0], pixels_of(3))


def test_a_loader_takes_bytes(odd_daemon: millrace.PrivateDaemon, root: bytes, own_size: millrace.Recipe) -> None:
    loader = millrace.numpy.Loader(root, own_size, batch_size=2, on_error="skip", address=odd_daemon.address)

    with pytest.warns(millrace.BadImageWarning, match=r"\\xff|\\xe9"):
        ((images, labels),) = loader

    np.testing.assert_array_equal(images[0], pixels_of(3))
    assert labels.tolist() == [0]
    loader.close()


def test_a_zero_byte_is_refused_by_name_and_the_session_goes_on(odd: millrace.Session, root: bytes) -> None:
    path = os.path.join(root, GOOD)
    with pytest.raises(millrace.InvalidRequest, match=r"samples\[0\]\.path: must not contain a zero byte"):
        odd.get(odd.submit([millrace.Path(path + b"\0")]))
    with pytest.raises(millrace.InvalidRequest, match=r"path: must not contain a zero byte"):
        odd.dataset(root + b"\0")
    assert len(odd.get(odd.submit([millrace.Path(path)]))) == 1


def test_what_is_no_path_or_text_is_refused_by_name(odd_daemon: millrace.PrivateDaemon, odd: millrace.Session, root: bytes) -> None:
    with pytest.raises(millrace.InvalidRequest, match=r"submit: .*surrogates"):
        odd.submit(["/half/a/pair/\ud800"])
    with pytest.raises(millrace.InvalidRequest, match=r"dataset: .*surrogates"):
        odd.dataset("/half/a/pair/\ud800")
    with pytest.raises(millrace.InvalidRequest, match="dataset: "):
        odd.dataset(3)  # type: ignore[arg-type]
    with pytest.raises(millrace.InvalidRequest, match=r"extensions\[0\]: "):
        odd.dataset(root, ["j\udcff"])
    with pytest.raises(millrace.InvalidRequest, match="backend: "):
        odd.get(odd.submit([png(3)], backend="\udcff"))
    with pytest.raises(millrace.InvalidRequest, match="backend: expected str, not bytes"):
        odd.submit([png(3)], backend=b"cpu")  # type: ignore[arg-type]
    with pytest.raises(millrace.InvalidRequest, match="dataset: expected str, not int"):
        odd.dataset(root, [3])  # type: ignore[list-item]
    with millrace.connect(odd_daemon.address) as client, pytest.raises(millrace.InvalidRequest, match="name: "):
        client.session(slot_bytes=1 << 16, name="caf\udce9")
    assert len(odd.get(odd.submit([png(3)]))) == 1


def test_private_daemons_say_which_root_is_missing(root: bytes) -> None:
    with pytest.raises(millrace.NotFound, match=r"caf\\xe9/none is not a folder"):
        millrace.serve(root + b"/none")


def test_a_contact_sheet_of_such_a_folder(odd_daemon: millrace.PrivateDaemon, root: bytes, tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.png"
    command = [sys.executable, "-m", "millrace", os.fsdecode(root), "-o", sheet, "--socket", odd_daemon.address]

    ran = subprocess.run(command, capture_output=True, check=False)

    assert ran.returncode == 0, ran.stderr
    assert rb"2 pictures of " in ran.stdout
    assert rb"caf\xe9/\xff/\x80.png: " in ran.stderr
    assert sheet.stat().st_size > 0
