"""Compressed Parquet files as a source in blocks: what comes is what is in them."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import millrace
import numpy as np
import pytest
from millrace._blocks.order import block_order

from pictures import COUNT, EACH, pixels_of, png
from sources import make_loader  # noqa: F401, a fixture

pytestmark = pytest.mark.torch  # pyarrow is there where PyTorch is


def write(path: Path, numbers: list[int], image: Any = None, **how: Any) -> str:
    """Those pictures, in row groups of seven."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {
        "image": image if image is not None else pa.array([{"bytes": png(n), "path": None} for n in numbers]),
        "label": pa.array([n // EACH for n in numbers]),
        "caption": pa.array([f"picture {n}" for n in numbers]),
        "unwanted": pa.array([os.urandom(2000) for _ in numbers]),
    }
    pq.write_table(pa.table(columns), path, compression="zstd", row_group_size=7, **how)
    return str(path)


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    pytest.importorskip("pyarrow")
    return [write(tmp_path / "a.parquet", list(range(25))), write(tmp_path / "b.parquet", list(range(25, COUNT)))]


def test_rows_in_turn_and_shuffled(make: Any, files: list[str]) -> None:
    source = millrace.Parquet(files, columns=["caption"]).blocks()

    assert source.sizes.tolist() == [7, 7, 7, 4, 7, 7, 7, 7, 7]
    assert source.block_bytes.max() < 7 * 6000  # without the column that nobody wants
    assert source.name_of(4) == f"{files[1]}, row group 0"
    window = int(source.block_bytes.max()) * 4
    order = block_order(source.sizes, 2, 0, 0).samples.tolist()
    for shuffle, batch_size, expected in ((False, 8, list(range(COUNT))), ("blocks", 60, order)):  # 60: by the ring
        ids: list[int] = []
        for images, labels in (loader := make(source, shuffle=shuffle, batch_size=batch_size, window=window)):
            ids += loader.batch.ids.tolist()
            for number, image, label, caption in zip(loader.batch.ids.tolist(), images, labels["label"], labels["caption"], strict=True):
                assert np.array_equal(image, pixels_of(number))
                assert (label, caption) == (number // EACH, f"picture {number}")
        assert ids == expected


def test_plain_binary_columns_and_rows_without_an_image(make: Any, tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    images = [png(n) if n % 5 else None for n in range(20)]
    for kind in (pa.binary(), pa.large_binary()):
        source = millrace.Parquet(write(tmp_path / "c.parquet", list(range(20)), pa.array(images, kind)), label=None).blocks()
        loader = make(source, on_error="skip")
        with pytest.warns(millrace.BadImageWarning, match="an empty file"):
            ids = [int(number) for _ in loader for number in loader.batch.ids]
        assert ids == [n for n in range(20) if n % 5]
        assert loader.bad == 4


def test_files_that_are_not_what_they_should_be(files: list[str], tmp_path: Path) -> None:
    (tmp_path / "text.parquet").write_text("no Parquet")
    for wrong, options, told in (
        ([str(tmp_path / "text.parquet")], {}, "text.parquet cannot be read"),
        (files, {"image": "picture"}, "has no column 'picture' .*it has 'image': .*'label'.*'caption'.*'unwanted'"),
        ([], {}, "the list of files is empty"),
        (files, {"image": "label"}, "an image is bytes"),
    ):
        with pytest.raises(millrace.InvalidRequest, match=told):
            millrace.Parquet(wrong, **options)


def test_labels_that_are_none_and_texts_that_are_no_utf8(make: Any, tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    path = tmp_path / "d.parquet"
    table = pa.table({"image": pa.array([png(n) for n in range(4)]), "label": pa.array([0, 1, None, 3])})
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(table, path, row_group_size=2)
    with pytest.raises(millrace.InvalidRequest, match=r"d.parquet, row group 1: the label 'label' of its row 0 is None"):
        list(make(millrace.Parquet(path).blocks(), shuffle=False))
    latin = pa.array([b"caf\xe9"] * 4).view(pa.string())
    pq.write_table(pa.table({"image": table["image"], "label": latin}), path)
    with pytest.raises(ValueError, match="UTF8"):
        millrace.Parquet(path).blocks().read(0)
    with pytest.raises(millrace.InvalidRequest, match="UTF8"):
        list(millrace.Parquet(path).encoded().rows([0]))
    pq.write_table(pa.table({"image": table["image"], "label": pa.array([1 << 60] * 4, pa.timestamp("ms"))}), path)
    for read in (lambda: millrace.Parquet(path).blocks().read(0), lambda: list(millrace.Parquet(path).encoded().rows([0]))):
        with pytest.raises(millrace.InvalidRequest, match="a value of the column 'label' cannot be read"):
            read()


def test_a_damaged_row_group_and_a_file_that_changes(make: Any, files: list[str]) -> None:
    import pyarrow.parquet as pq

    with pq.ParquetFile(files[0]) as opened:
        chunk = opened.metadata.row_group(1).column(0)
    status = os.stat(files[0])
    with open(files[0], "r+b") as file:
        file.seek(chunk.dictionary_page_offset if chunk.has_dictionary_page else chunk.data_page_offset)
        file.write(b"\xff" * 200)
    os.utime(files[0], ns=(status.st_atime_ns, status.st_mtime_ns))  # as a disk's damage has it
    source = millrace.Parquet(files).blocks()
    loader = make(source, on_error="skip")

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        ids = [int(number) for _ in loader for number in loader.batch.ids]
    assert any(f"{files[0]}, row group 1 cannot be read, so its 7 samples are bad" in str(warning.message) for warning in said)
    assert ids == [n for n in range(COUNT) if n not in range(7, 14)]
    os.utime(files[1])
    with pytest.raises(ValueError, match="has changed since it was opened"):
        source.read(4)
    assert millrace.Parquet(files).blocks().fingerprint != source.fingerprint
