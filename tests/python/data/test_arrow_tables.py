"""Hugging Face datasets whose rows lie in Arrow files: the daemon reads parts of these."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import millrace
import numpy as np
import pytest
from millrace._data.file_parts import WHOLE as WHOLE_FILE
from millrace._data.file_parts import FileParts
from millrace._tables.arrow_parts import parts_of
from millrace._tables.byte_ranges import NotParts
from millrace._tables.given_table import hugging_face_samples

from pictures import CLASSES, COUNT, EACH, pixels_of, png
from sources import hugging_face, make_loader, seen_of, table_of  # noqa: F401, fixtures

pytestmark = pytest.mark.torch  # these packages are there where PyTorch is

WHOLE = [(n, n // EACH, pixels_of(n).tobytes()) for n in range(COUNT)]
BY_PARTS = "the daemon, as parts of"


@pytest.fixture(name="place")
def saved(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A folder beneath the daemon's root."""
    made = folder.parent / f"tables {os.urandom(4).hex()}"
    made.mkdir()
    yield made
    shutil.rmtree(made)


@pytest.fixture(name="stored")
def saved_table(hugging: Any, place: Path) -> Any:
    """The tests' pictures as a ``Dataset`` of two Arrow files."""
    table_of(hugging, COUNT).save_to_disk(str(place / "saved"), num_shards=2)
    return hugging.load_from_disk(str(place / "saved"))


def test_a_saved_table_goes_by_parts(make: Any, stored: Any) -> None:
    loader = make(stored)

    assert (len(loader), loader.classes, loader.dataset is stored) == (8, CLASSES, True)
    assert loader.read_by == "the daemon, as parts of 2 files"
    assert seen_of(loader) == WHOLE
    loop = iter(loader)
    next(loop)
    assert loader.batch.paths[1].startswith(stored.cache_files[0]["filename"])


def test_a_cached_table_goes_by_parts(make: Any, hugging: Any, place: Path) -> None:
    def rows() -> Any:
        for n in range(COUNT):
            yield {"image": {"bytes": png(n), "path": None}, "label": n // EACH}

    features = hugging.Features({"image": hugging.Image(), "label": hugging.ClassLabel(names=list(CLASSES))})
    table = hugging.Dataset.from_generator(rows, features=features, cache_dir=str(place / "cache"))
    loader = make(table)
    assert loader.read_by.startswith(BY_PARTS)
    assert seen_of(loader) == WHOLE


def test_rows_are_chosen_as_in_the_table(make: Any, hugging: Any, stored: Any) -> None:
    def numbers(table: Any) -> list[int]:
        loader = make(table)
        assert loader.read_by.startswith(BY_PARTS)
        seen = seen_of(loader)
        assert [n for n, _, _ in seen] == list(range(len(table)))
        named = {pixels: n for n, _, pixels in WHOLE}
        found = [named[pixels] for _, _, pixels in seen]
        assert [label for _, label, _ in seen] == [n // EACH for n in found]
        return found

    order = np.random.default_rng(3).permutation(COUNT)
    assert numbers(stored.select(order)) == order.tolist()
    assert numbers(stored.select(range(7, 31))) == list(range(7, 31))
    assert numbers(stored.filter(lambda label: label == 1, input_columns="label")) == list(range(EACH, 2 * EACH))
    shuffled = stored.shuffle(seed=5)
    assert numbers(shuffled) == [int(caption.split()[1]) for caption in shuffled["caption"]]
    parts = stored.train_test_split(test_size=0.25, seed=1)
    assert sorted(numbers(parts["train"]) + numbers(parts["test"])) == list(range(COUNT))
    joined = hugging.concatenate_datasets([stored.select(range(10)), stored.select([50, 3])])
    assert numbers(joined) == [*range(10), 50, 3]
    assert numbers(stored.shard(3, 1, contiguous=False)) == list(range(1, COUNT, 3))


def test_columns_stay_in_the_table(make: Any, stored: Any) -> None:
    chosen = stored.select([9, 4, 44])
    loader = make(millrace.Encoded(chosen, columns=["caption"]), batch_size=3)
    assert loader.read_by.startswith(BY_PARTS)
    ((_, labels),) = list(loader)
    assert (labels["label"].tolist(), list(labels["caption"])) == ([0, 0, 2], ["picture 9", "picture 4", "picture 44"])
    ((_, captions),) = list(make(millrace.Encoded(chosen, label="caption"), batch_size=3))
    assert list(captions) == ["picture 9", "picture 4", "picture 44"]
    ((_, none),) = list(make(millrace.Encoded(chosen, label=""), batch_size=3))
    assert none.tolist() == [-1] * 3


def test_whatever_is_no_part_of_a_file_goes_by_rows(make: Any, hugging: Any, stored: Any, place: Path, tmp_path: Path) -> None:
    in_memory = make(hugging.load_from_disk(str(place / "saved"), keep_in_memory=True))
    assert in_memory.read_by == "the loader, row by row: its rows lie in memory, or compressed, and not in a file as they are"
    assert seen_of(in_memory) == WHOLE
    stored.save_to_disk(str(tmp_path / "elsewhere"))
    outside = make(hugging.load_from_disk(str(tmp_path / "elsewhere")), shuffle=True, seed=4)
    assert sorted(seen_of(outside)) == WHOLE
    assert outside.read_by.startswith("the loader, row by row: ")
    assert "roots" in outside.read_by


def test_rows_without_bytes_are_whole_files(make: Any, hugging: Any, place: Path) -> None:
    import pyarrow as pa

    (place / "one.png").write_bytes(png(1))
    rows = [{"bytes": png(0), "path": None}, {"bytes": None, "path": str(place / "one.png")}, {"bytes": png(2), "path": "x.png"}]
    table = pa.table({"image": pa.array(rows, pa.struct({"bytes": pa.binary(), "path": pa.string()})), "label": [0, 0, 0]})
    with pa.OSFile(str(place / "mixed.arrow"), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    mixed = hugging.Dataset.from_file(str(place / "mixed.arrow")).cast_column("image", hugging.Image())
    loader = make(millrace.Encoded(mixed, label="label"))
    assert loader.read_by == "the daemon, as parts of 2 files"
    assert seen_of(loader) == WHOLE[:3]


def test_a_row_without_an_image_is_named(make: Any, hugging: Any, place: Path) -> None:
    features = hugging.Features({"image": hugging.Image(), "label": hugging.Value("int64")})
    rows = [{"bytes": png(0), "path": None}, None, {"bytes": png(2), "path": None}]
    hugging.Dataset.from_dict({"image": rows, "label": [0, 0, 0]}, features=features).save_to_disk(str(place / "holes"))
    table = hugging.load_from_disk(str(place / "holes"))
    with pytest.raises(millrace.InvalidRequest, match="'image' of row 1 is None"):
        make(millrace.Encoded(table, label="label"))
    assert [n for n, _, _ in seen_of(make(millrace.Encoded(table.select([0, 2]), label="label")))] == [0, 1]


def test_parts_are_found_in_sliced_and_large_arrays(hugging: Any, place: Path) -> None:
    import pyarrow as pa

    content = [png(n) for n in range(12)]
    for kind in (pa.binary(), pa.large_binary()):
        path = place / f"{kind}.arrow"
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, pa.schema({"image": kind})) as writer:
            for begin in (0, 4, 8):
                writer.write_table(pa.table({"image": pa.array(content[begin : begin + 4], kind)}))
        table = hugging.Dataset.from_file(str(path))
        table = hugging.Dataset(table.data.slice(3, 7), fingerprint="sliced")
        parts = parts_of(table, "image")
        whole = path.read_bytes()
        assert parts.files == [str(path)]
        assert [whole[at : at + size] for at, size in zip(parts.offsets.tolist(), parts.lengths.tolist(), strict=True)] == content[3:10]
        status = path.stat()
        assert (parts.sizes.tolist(), parts.modified_ns.tolist()) == ([status.st_size], [status.st_mtime_ns])
    path = place / "compressed.arrow"
    schema = pa.schema({"image": pa.binary()})
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(pa.table({"image": pa.array(content, pa.binary())}))
    with pytest.raises(NotParts, match="compressed"):
        parts_of(hugging.Dataset.from_file(str(path)), "image")


def test_a_damaged_file_is_refused_or_its_parts_lie_within(hugging: Any, tmp_path: Path) -> None:
    """Arrow itself would read beyond the file, and end the process."""
    import pyarrow as pa

    kind = pa.struct({"bytes": pa.binary(), "path": pa.string()})
    images = pa.array([{"bytes": os.urandom(40 + n) if n % 5 else None, "path": f"/x{n}"} for n in range(40)], kind)
    table = pa.table({"image": images, "label": list(range(40))})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=16)
    sound, random, refused = sink.getvalue().to_pybytes(), np.random.default_rng(1), 0
    for number in range(100):
        data = bytearray(sound)
        for _ in range(int(random.integers(1, 4))):
            data[int(random.integers(0, len(data)))] = int(random.integers(0, 256))
        path = tmp_path / f"{number}.arrow"  # mapped, so that each is another
        path.write_bytes(data)
        try:
            damaged = hugging.Dataset.from_file(str(path))
        except Exception:  # of many kinds: Hugging Face refuses it
            continue
        try:
            samples = hugging_face_samples(millrace.Encoded(damaged, image="image", label="label"))
        except (millrace.InvalidRequest, NotParts):
            refused += 1
            continue
        assert isinstance(samples.paths, FileParts)
        within = samples.paths.lengths != WHOLE_FILE
        assert (samples.paths.offsets[within] + samples.paths.lengths[within] <= len(data)).all()
    assert 5 < refused < 60


def test_a_file_that_was_replaced_is_not_taken_for_the_table(stored: Any) -> None:
    path = stored.cache_files[0]["filename"]
    shutil.copy(path, f"{path}.new")
    os.replace(f"{path}.new", path)
    with pytest.raises(NotParts, match="no longer there"):
        parts_of(stored, "image")


def test_a_file_that_changes_fails_its_images_by_name(make: Any, stored: Any) -> None:
    some = stored.select(range(COUNT // 2 - 5, COUNT))
    loader = make(some, on_error="skip")
    assert loader.read_by.startswith(BY_PARTS)
    path = stored.cache_files[0]["filename"]
    os.utime(path, ns=(1, 1))
    with pytest.warns(millrace.BadImageWarning, match=r"data-00000-of-00002.arrow\[.*has changed"):
        seen = {n for n, _, _ in seen_of(loader)}
    assert seen == set(range(5, len(some)))


def test_its_state_resumes_in_another_process(make: Any, stored: Any, place: Path) -> None:
    taken = 4
    loader = make(stored.shuffle(seed=2), shuffle=True, seed=6)
    whole = seen_of(loader)
    loader.set_epoch(0)
    loop = iter(loader)
    for _ in range(taken):
        next(loop)
    state = loader.state_dict()
    code = (
        "import sys, json, datasets, millrace, millrace.numpy\n"
        "table = datasets.load_from_disk(sys.argv[1]).shuffle(seed=2)\n"
        "recipe = millrace.Recipe(resize=millrace.ExactSize(millrace.Size(width=48, height=32)), layout='NHWC')\n"
        "loader = millrace.numpy.Loader(table, recipe, batch_size=8, shuffle=True, seed=6, address=sys.argv[2])\n"
        "loader.load_state_dict(json.loads(sys.argv[3]))\n"
        "print([[int(n) for n in loader.batch.ids] for _ in loader])\n"
        "loader.close()\n"
    )
    arguments = [str(place / "saved"), loader._options.address, json.dumps(state)]
    ran = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    rest = [n for batch in json.loads(ran.stdout.splitlines()[-1]) for n in batch]
    assert rest == [n for n, _, _ in whole][8 * taken :]


def test_states_of_rows_and_of_parts_are_told_apart(make: Any, hugging: Any, stored: Any, place: Path) -> None:
    by_rows = make(hugging.load_from_disk(str(place / "saved"), keep_in_memory=True), shuffle=True)
    next(iter(by_rows))
    by_parts = make(stored, shuffle=True)
    by_parts.load_state_dict(by_rows.state_dict())
    with pytest.raises(millrace.FailedPrecondition, match="read by the daemon, as parts of 2 files"):
        next(iter(by_parts))


def test_ranks_and_samplers(make: Any, stored: Any) -> None:
    seen = [n for rank in range(2) for n, _, _ in seen_of(make(stored, rank=rank, world_size=2, shuffle=True))]
    assert sorted(seen) == list(range(COUNT))
    order = np.random.default_rng(1).permutation(COUNT).tolist()
    assert [n for n, _, _ in seen_of(make(stored, sampler=order))] == order
