"""Parquet files as datasets."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from typing import Any

import millrace
import numpy as np
import pytest
from millrace._blocks.source import BlockSource
from millrace._data.file_parts import WHOLE as WHOLE_FILE
from millrace._tables.byte_ranges import NotParts
from millrace._tables.parquet_files import opened_files
from millrace._tables.parquet_parts import parts_of

from pictures import CLASSES, COUNT, EACH, pixels_of, png
from sources import hugging_face, make_loader, pictures_table, seen_of  # noqa: F401, fixtures

pytestmark = pytest.mark.torch  # these packages are there where PyTorch is
pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: Parquet files are not tried")
pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed: Parquet files are not tried")

WHOLE = [(n, n // EACH, pixels_of(n).tobytes()) for n in range(COUNT)]
PLAIN = {"compression": {"image.bytes": "NONE"}, "use_dictionary": ["caption"]}


@pytest.fixture(name="place")
def place_beneath_the_root(folder: Path) -> Any:
    """A folder beneath the daemon's root."""
    made = folder.parent / f"parquet {os.urandom(4).hex()}"
    made.mkdir()
    yield made
    shutil.rmtree(made)


def rows_of(numbers: Any) -> Any:
    numbers = list(numbers)
    return pa.table({
        "image": [{"bytes": png(n), "path": None} for n in numbers],
        "label": pa.array([n // EACH for n in numbers], pa.int32()),
        "caption": [f"picture {n}" for n in numbers],
        "box": [[n, n + 1] for n in numbers],
    })  # fmt: skip


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_uncompressed_files_go_by_parts(make: Any, place: Path, version: str) -> None:
    for number in range(3):
        table = rows_of(range(number * EACH, (number + 1) * EACH))
        pq.write_table(table, place / f"t-{number}.parquet", row_group_size=7, data_page_size=1 << 12, data_page_version=version, **PLAIN)
    parquet = millrace.Parquet(place / "t-*.parquet", columns=["caption", "box"])
    loader = make(parquet)
    assert (len(parquet), len(loader), loader.dataset is parquet) == (COUNT, 8, True)
    assert loader.read_by == "the daemon, as parts of 3 files"
    at = 0
    for images, labels in loader:
        numbers = range(at, at + len(images))
        assert loader.batch.ids.tolist() == list(numbers)
        assert labels["label"].tolist() == [n // EACH for n in numbers]
        assert list(labels["caption"]) == [f"picture {n}" for n in numbers]
        assert np.asarray(labels["box"]).tolist() == [[n, n + 1] for n in numbers]
        assert images.tobytes() == b"".join(pixels_of(n).tobytes() for n in numbers)
        at += len(images)
    assert at == COUNT
    assert seen_of(make(millrace.Parquet(place))) == WHOLE
    assert seen_of(make(millrace.Parquet([place / f"t-{n}.parquet" for n in range(3)]))) == WHOLE


def test_compressed_files_are_mixed_in_blocks(make: Any, place: Path) -> None:
    pq.write_table(rows_of(range(COUNT)), place / "t.parquet", row_group_size=7, compression="zstd")
    loader = make(millrace.Parquet(place / "t.parquet"), shuffle="blocks", seed=3)
    seen = seen_of(loader)
    assert [n for n, _, _ in seen] != list(range(COUNT))
    assert sorted(seen) == WHOLE
    pq.write_table(rows_of(range(COUNT)), place / "u.parquet", row_group_size=7, **PLAIN)
    plain = make(millrace.Parquet(place / "u.parquet"), shuffle="blocks", seed=3)
    assert sorted(seen_of(plain)) == WHOLE
    assert plain.read_by == "the daemon, as parts of 1 file"


@pytest.mark.parametrize("compression", ["snappy", "zstd"])
def test_compressed_files_go_by_row_groups(make: Any, place: Path, compression: str) -> None:
    pq.write_table(rows_of(range(COUNT)), place / "t.parquet", row_group_size=7, compression=compression)
    with pytest.warns(
        UserWarning, match=r"slow in a random order: .*row group 0.*shuffle=.blocks.*write the files anew: .*\"image.bytes\": \"NONE\""
    ):
        loader = make(millrace.Parquet(place / "t.parquet"))
    assert seen_of(loader) == WHOLE
    assert loader.read_by.startswith("the loader, row by row: ")
    with pytest.warns(UserWarning, match="write the files anew"):
        shuffled = make(millrace.Parquet(place / "t.parquet"), shuffle=True)
    assert sorted(seen_of(shuffled)) == WHOLE
    table = pq.read_table(place / "t.parquet")  # as the warning says
    pq.write_table(table, place / "new.parquet", compression={"image.bytes": "NONE"}, use_dictionary=False)
    new = make(millrace.Parquet(place / "new.parquet"))
    assert new.read_by == "the daemon, as parts of 1 file"
    assert seen_of(new) == WHOLE


def test_within_subset_and_concat_dataset(make: Any, table: Any, place: Path) -> None:
    from torch.utils.data import ConcatDataset, Subset

    for number in range(2):
        table.to_parquet(str(place / f"t-{number}.parquet"))
    parquet = millrace.Parquet(str(place / "t-{0..1}.parquet"))
    assert (len(parquet), repr(parquet)) == (2 * COUNT, f"<millrace.Parquet {place}/t-0.parquet and 1 more: {2 * COUNT}>")
    table.save_to_disk(str(place / "saved"))
    saved = type(table).load_from_disk(str(place / "saved"))
    loader = make(ConcatDataset([Subset(parquet, [3, COUNT + 50]), Subset(saved, [9, 4]), Subset(millrace.Encoded(saved), range(COUNT))]))
    numbers = [3, 50, 9, 4, *range(COUNT)]
    assert seen_of(loader) == [(at, *WHOLE[n][1:]) for at, n in enumerate(numbers)]
    assert loader.read_by == "the daemon, as parts of 3 files"
    pq.write_table(rows_of(range(9)), place / "packed.parquet", compression="zstd")
    with pytest.raises(millrace.Unsupported, match=r"Subset.*here they are none: .*ZSTD.*write the files anew"):
        len(make(Subset(millrace.Parquet(place / "packed.parquet"), [1])).classes)
    with pytest.raises(millrace.Unsupported, match=r"here they are none: .*give dataset.select\("):
        len(make(Subset(table, [1])).classes)


def test_files_outside_of_the_roots_go_by_row_groups(make: Any, table: Any, tmp_path: Path) -> None:
    table.to_parquet(str(tmp_path / "t.parquet"))
    loader = make(millrace.Parquet(tmp_path / "t.parquet", label="", columns="caption"), shuffle=True)
    with pytest.warns(UserWarning, match=r"slow in a random order: .*roots") as seen:
        assert len([caption for _, labels in loader for caption in labels["caption"]]) == COUNT
    assert seen[0].filename == __file__
    with pytest.raises(millrace.InvalidRequest, match=r"has no blocks, for it is read by the loader, .*roots"):
        list(make(millrace.Parquet(tmp_path / "t.parquet"), shuffle="blocks"))


def test_what_hugging_face_writes(make: Any, table: Any, place: Path) -> None:
    table.to_parquet(str(place / "t.parquet"))
    loader = make(millrace.Parquet(place / "t.parquet"))
    assert (loader.read_by, loader.classes) == ("the daemon, as parts of 1 file", CLASSES)
    assert seen_of(loader) == WHOLE


def test_columns_of_bytes_and_of_paths(make: Any, folder: Path, place: Path) -> None:
    plain = pa.table({"jpg": pa.array([png(n) for n in range(9)], pa.binary()), "cls": list(range(9))})
    pq.write_table(plain, place / "bytes.parquet", compression="NONE", use_dictionary=False)
    loader = make(millrace.Parquet(place / "bytes.parquet", "jpg", "cls"))
    assert loader.read_by.startswith("the daemon")
    assert seen_of(loader) == [(n, n, pixels_of(n).tobytes()) for n in range(9)]
    for n in range(3):
        (place / f"{n}.png").write_bytes(png(n))
    pq.write_table(pa.table({"file": ["2.png", "0.png", "1.png"]}), place / "paths.parquet")
    loader = make(millrace.Parquet(place / "paths.parquet", "file", None, root=place))
    assert [pixels for _, _, pixels in seen_of(loader)] == [pixels_of(n).tobytes() for n in (2, 0, 1)]


@pytest.mark.parametrize("compression", ["NONE", "zstd"])
def test_a_name_may_be_any_bytes(make: Any, place: Path, compression: str) -> None:
    pq.write_table(rows_of(range(3)), place / "t.parquet", compression=compression, use_dictionary=False)
    path = os.fsencode(place) + b"/a\xff\n*.parquet"
    os.rename(place / "t.parquet", path)
    assert sorted(seen_of(make(millrace.Parquet(path), shuffle="blocks", window=1 << 20, batch_size=1))) == WHOLE[:3]


def test_missing_values(make: Any, place: Path) -> None:
    (place / "1.png").write_bytes(png(1))
    kind = pa.struct({"bytes": pa.binary(), "path": pa.string()})
    images = [{"bytes": png(0), "path": "a"}, {"bytes": None, "path": str(place / "1.png")}, {"bytes": png(2), "path": None}]
    pq.write_table(pa.table({"image": pa.array(images, kind)}), place / "t.parquet", **PLAIN | {"use_dictionary": False})
    assert seen_of(make(millrace.Parquet(place / "t.parquet", label=None))) == [(n, -1, pixels_of(n).tobytes()) for n in range(3)]
    pq.write_table(pa.table({"image": pa.array([*images, None], kind)}), place / "u.parquet", **PLAIN | {"use_dictionary": False})
    with pytest.raises(millrace.InvalidRequest, match="row 3 has no image"):
        make(millrace.Parquet(place / "u.parquet", label=None))
    table = pa.table({"image": pa.array(images, kind), "label": pa.array([0, None, 1])})
    pq.write_table(table, place / "v.parquet", **PLAIN | {"use_dictionary": False})
    with pytest.raises(millrace.InvalidRequest, match="label 'label' of row 1 is None"):
        make(millrace.Parquet(place / "v.parquet"))


def test_what_is_wrong_is_said(place: Path) -> None:
    pq.write_table(pa.table({"text": ["a"], "label": [1]}), place / "t.parquet")
    with pytest.raises(millrace.InvalidRequest, match=r"has no column 'image' \(image=\); it has 'text': string, 'label': int64"):
        millrace.Parquet(place / "t.parquet")
    with pytest.raises(millrace.InvalidRequest, match=r"'label' has no images.*'text': string, 'label': int64"):
        millrace.Parquet(place / "t.parquet", "label", None)
    with pytest.raises(millrace.NotFound, match=r"no files .*none-"):
        millrace.Parquet(place / "none-*.parquet")
    with pytest.raises(millrace.NotFound, match=r"no file .*missing"):
        millrace.Parquet(place / "missing.parquet")
    (place / "bad.parquet").write_bytes(b"PAR1 and nothing")
    with pytest.raises(millrace.InvalidRequest, match=r"bad.parquet cannot be read"):
        millrace.Parquet(place / "bad.parquet")
    pq.write_table(pa.table({"other": ["a"]}), place / "u.parquet")
    with pytest.raises(millrace.InvalidRequest, match=r"u.parquet has 'other': string, and .*t.parquet has 'text'"):
        millrace.Parquet([place / "t.parquet", place / "u.parquet"], "text", None)


def test_columns_of_one_name_and_names_with_dots(place: Path) -> None:
    images = pa.array([{"bytes": None, "path": f"/good{n}"} for n in range(3)], pa.struct({"bytes": pa.binary(), "path": pa.string()}))
    labels, others = pa.array([0, 1, 2]), pa.array([7, 8, 9])
    names = ["image.path", "label.more", "image", "label"]
    pq.write_table(pa.Table.from_arrays([pa.array(["/evil"] * 3), others, images, labels], names), place / "t.parquet", **PLAIN)
    samples = millrace.Parquet(place / "t.parquet").samples()
    assert (list(samples.paths), samples.labels.tolist()) == (["/good0", "/good1", "/good2"], [0, 1, 2])  # type: ignore[union-attr]
    content = pa.array([{"bytes": png(n)} for n in range(3)])
    pq.write_table(pa.Table.from_arrays([pa.array([b"evil"] * 3), content], ["image.bytes", "image"]), place / "t.parquet", **PLAIN)
    with pytest.raises(NotParts, match="no plain bytes"):
        millrace.Parquet(place / "t.parquet", label=None).samples()
    pq.write_table(pa.Table.from_arrays([images, labels, others], ["image", "label", "label"]), place / "t.parquet")
    with pytest.raises(millrace.InvalidRequest, match="has 2 columns 'label'"):
        millrace.Parquet(place / "t.parquet")


def test_what_is_no_file_and_rows_that_no_file_has(place: Path) -> None:
    os.mkfifo(place / "pipe.parquet")
    with pytest.raises(millrace.InvalidRequest, match="it is no file"):
        millrace.Parquet(place / "pipe.parquet")
    pq.write_table(rows_of(range(3)), place / "t.parquet", **PLAIN)
    sound = (place / "t.parquet").read_bytes()
    of_group = sound.rindex(bytes([0x16, 6, 0x26]))  # what the footer says, and the tag of what follows
    more = with_rows(sound, of_group, 1 << 45)
    (place / "t.parquet").write_bytes(more)
    with pytest.raises(millrace.InvalidRequest, match="a wrong number of rows"):
        millrace.Parquet(place / "t.parquet")
    of_file = more.rindex(bytes([0x16, 6, 0x19]))
    (place / "t.parquet").write_bytes(with_rows(more, of_file, 1 << 45))
    with pytest.raises(millrace.InvalidRequest, match=f"its footer has {1 << 45} rows"):
        millrace.Parquet(place / "t.parquet")


def with_rows(file: bytes, at: int, rows: int) -> bytes:
    """The file with so many rows, a number that is written at ``at + 1``."""
    number, told = rows << 1, b""
    while number > 127:
        told, number = told + bytes([number & 127 | 128]), number >> 7
    whole = file[: at + 1] + told + bytes([number]) + file[at + 2 :]
    return whole[:-8] + (int.from_bytes(whole[-8:-4], "little") + len(told)).to_bytes(4, "little") + b"PAR1"


def test_a_damaged_file_is_refused_or_read_as_pyarrow_reads_it(tmp_path: Path) -> None:
    """400 times some bytes are changed, most of them in the footer and the pages' headers."""
    images = [{"bytes": os.urandom(30 + n) if n % 5 else None, "path": "/x.png"} for n in range(40)]
    table = pa.table({"image": pa.array(images, pa.struct({"bytes": pa.binary(), "path": pa.string()}))})
    path = tmp_path / "t.parquet"
    pq.write_table(table, path, compression="NONE", use_dictionary=False, row_group_size=16, data_page_size=256)
    sound = path.read_bytes()
    random = np.random.default_rng(8)
    refused = 0
    for round_ in range(400):
        data = bytearray(sound)
        footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
        for _ in range(int(random.integers(1, 4))):
            at = int(random.integers(0, footer if round_ % 2 else len(data))) if round_ % 4 else int(random.integers(footer, len(data)))
            data[at] = int(random.integers(0, 256))
        if round_ % 10 == 9:
            del data[int(random.integers(0, len(data))) :]
        path.write_bytes(data)
        try:
            files = opened_files(path)
            read_blocks(millrace.Parquet(path, label=None).blocks())
            parts = parts_of(files, "image.bytes", "image.path")
        except (millrace.Error, NotParts):
            refused += 1
            continue
        whole = parts.lengths == WHOLE_FILE
        ends = parts.offsets[~whole] + parts.lengths[~whole]
        assert (ends <= len(data)).all()
        found = [None if part is None else data[part.offset : part.offset + part.length] for part in map(parts.part_of, range(len(parts)))]
        try:
            known = pq.ParquetFile(path).read(columns=["image.bytes"], use_threads=False).column(0).to_pylist()
        except (pa.ArrowException, OSError):
            continue
        assert found == [row["bytes"] for row in known]
    assert 50 < refused < 350


def read_blocks(blocks: BlockSource) -> None:
    """Reads all; damaged ones say so."""
    for block in range(len(blocks.sizes)):
        with contextlib.suppress(ValueError):
            blocks.read(block)
