"""Parquet files and compressed shards behind URLs: what comes is what is in them, and no more than that is fetched."""

from __future__ import annotations

import dataclasses
import io
import os
import tarfile
import warnings
from pathlib import Path
from typing import Any

import millrace
import pytest
from millrace._blocks.order import block_order

from object_store import ObjectStore
from pictures import COUNT, EACH, pixels_of, png
from sources import make_loader, seen_of  # noqa: F401, a fixture
from store_proxy import StoreProxy

WHOLE = [(n, n // EACH, pixels_of(n).tobytes()) for n in range(COUNT)]


def table_of(numbers: Any, **how: Any) -> bytes:
    """A Parquet file of those pictures, in row groups of seven."""
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: Parquet files are not tried")
    import pyarrow.parquet as pq

    numbers = list(numbers)
    columns = {
        "label": pa.array([n // EACH for n in numbers]),
        "unwanted": pa.array([os.urandom(1 << 18) for _ in numbers]),
        "image": how.pop("image", pa.array([{"bytes": png(n), "path": None} for n in numbers])),
        "caption": pa.array([f"picture {n}" for n in numbers]),
    }
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out, row_group_size=7, **{"compression": "zstd", **how})
    return out.getvalue()


@pytest.fixture(name="tables")
def tables_in_the_store(object_store: ObjectStore) -> str:
    """The pictures as two files, one of them without compression. Their pattern."""
    bucket = f"tables-{os.urandom(4).hex()}"
    object_store.put(f"{bucket}/train/a-0.parquet", table_of(range(25)))
    object_store.put(f"{bucket}/train/a-1.parquet", table_of(range(25, COUNT), compression="none", use_dictionary=False))
    return f"s3://{bucket}/train/a-*.parquet"


@pytest.mark.torch
def test_tables_in_turn_and_shuffled(make: Any, tables: str, store_proxy: StoreProxy) -> None:
    table = millrace.Parquet(tables, columns=["caption"], storage_options=store_proxy.options)
    loader = make(table)

    assert (len(table), len(loader), loader.read_by, loader.dataset is table) == (COUNT, 8, "the loader, in blocks", True)
    at = 0
    for images, labels in loader:
        numbers = range(at, at + len(images))
        assert labels["label"].tolist() == [n // EACH for n in numbers]
        assert list(labels["caption"]) == [f"picture {n}" for n in numbers]
        assert images.tobytes() == b"".join(pixels_of(n).tobytes() for n in numbers)
        at += len(images)
    assert at == COUNT
    blocks = table.blocks()
    assert (blocks.sizes.tolist(), blocks.at_once) == ([7, 7, 7, 4, 7, 7, 7, 7, 7], 16)
    window = int(blocks.block_bytes.max()) * 4
    plain = millrace.Parquet(tables, storage_options=store_proxy.options)
    shuffled = seen_of(make(plain, shuffle="blocks", seed=3, window=window))
    assert sorted(shuffled) == WHOLE
    assert [n for n, _, _ in shuffled] == block_order(plain.blocks().sizes, 2, 3, 0).samples.tolist()
    with pytest.raises(millrace.InvalidRequest, match=r'shuffle=True cannot .*take shuffle="blocks"'):
        make(plain, shuffle=True)


@pytest.mark.torch
def test_what_nobody_wants_is_not_fetched(tables: str, store_proxy: StoreProxy) -> None:
    table = millrace.Parquet(tables, storage_options=store_proxy.options)
    footers = store_proxy.bytes
    rows = [row for block in range(len(table.blocks().sizes)) for row in table.blocks().read(block)]

    assert [bytes(row.source) for row in rows] == [png(n) for n in range(COUNT)]  # type: ignore[arg-type]
    assert [row.values for row in rows] == [(n // EACH,) for n in range(COUNT)]
    assert footers < 2 * (64 << 10) + (16 << 10)  # ends of the two files, and answers without a body
    read = store_proxy.bytes - footers
    assert read < 2 * sum(len(png(n)) for n in range(COUNT)) + 9 * 2000  # a file has 1.8 MB to each row group beside that
    assert store_proxy.count(r"^GET /tables-[0-9a-f]+/train/a-\d") == 2 + 2 * 9  # label and image lie far apart
    alone = millrace.Parquet(tables, label=None, storage_options=store_proxy.options)
    before = len(store_proxy.requests)
    assert alone.blocks().read(4)[0].values == ()
    assert sum("bytes=" in one for one in store_proxy.requests[before:]) == 1


@pytest.mark.torch
def test_tables_that_are_replaced_and_damaged(make: Any, tables: str, object_store: ObjectStore) -> None:
    table = millrace.Parquet(tables, storage_options=object_store.options)
    url = tables.replace("*", "0")
    object_store.put(url.removeprefix("s3://"), table_of(range(25)))  # other bytes in the column that nobody wants
    loader = make(table, on_error="skip")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert [n for n, _, _ in seen_of(loader)] == list(range(25, COUNT))
    told = [str(one.message) for one in said if "cannot be read, so its" in str(one.message)]
    assert len(told) == 4
    assert all(one.startswith(f"loader: {url}, row group ") and "has been replaced since it was opened" in one for one in told)
    assert millrace.Parquet(tables, storage_options=object_store.options).blocks().fingerprint != table.blocks().fingerprint

    data = bytearray(table_of(range(7), compression="none", use_dictionary=False))
    at = data.index(png(0)) - 100
    data[at : at + 100] = b"\xff" * 100
    object_store.put(url.removeprefix("s3://"), bytes(data))
    damaged = millrace.Parquet(url, storage_options=object_store.options).blocks()
    with pytest.raises((OSError, ValueError)):
        damaged.read(0)


@pytest.mark.torch
def test_rows_without_bytes(make: Any, tables: str, object_store: ObjectStore) -> None:
    pa = pytest.importorskip("pyarrow")
    path = tables.removeprefix("s3://").replace("*", "2")
    images = [{"bytes": png(n) if n != 3 else None, "path": f"/etc/{n}.png"} for n in range(7)]
    object_store.put(path, table_of(range(7), image=pa.array(images)))
    table = millrace.Parquet(f"s3://{path}", storage_options=object_store.options)
    empty = pytest.warns(millrace.BadImageWarning, match="sample 3: an empty file")
    named = pytest.warns(millrace.BadImageWarning, match=r"has paths and no bytes, as of row 3 '/etc/3.png', so 1 of its 7 samples are bad")
    with empty, named:
        assert [n for n, _, _ in seen_of(make(table, on_error="skip"))] == [0, 1, 2, 4, 5, 6]

    kind = pa.struct({"bytes": pa.binary(), "path": pa.string()})
    object_store.put(path, table_of(range(7), image=pa.array([{"bytes": None, "path": f"/etc/{n}.png"} for n in range(7)], kind)))
    with pytest.raises(millrace.InvalidRequest, match=r"as of row 0 '/etc/0.png': .*millrace\.RemoteFiles"):
        millrace.Parquet(f"s3://{path}", storage_options=object_store.options).blocks().read(0)
    object_store.put(path, table_of(range(7), image=pa.array([f"{n}.png" for n in range(7)])))
    with pytest.raises(millrace.InvalidRequest, match=r"'image' of s3://.* has paths: .*millrace\.RemoteFiles"):
        millrace.Parquet(f"s3://{path}", storage_options=object_store.options)


@pytest.mark.torch
def test_what_is_no_table(tables: str, object_store: ObjectStore) -> None:
    bucket = tables.split("/")[2]
    url = object_store.put(f"{bucket}/other/text.parquet", b"no Parquet")
    object_store.put(f"{bucket}/other/short.parquet", b"x")
    object_store.put(f"{bucket}/other/cut.parquet", table_of(range(7))[:-20])
    good = table_of(range(7))
    lying = good[:-8] + (1 << 31).to_bytes(4, "little") + b"PAR1"
    object_store.put(f"{bucket}/other/lying.parquet", lying)
    schema = good[:-8].rindex(b"ARROW:schema") + len(b"ARROW:schema") + 40  # within what pyarrow wrote of the columns' types
    object_store.put(f"{bucket}/other/schema.parquet", good[:schema] + b"!" * 20 + good[schema + 20 :])
    for name in ("text", "short", "cut", "lying", "schema"):
        with pytest.raises(millrace.InvalidRequest, match=rf"Parquet: s3://{bucket}/other/{name}\.parquet cannot be read"):
            millrace.Parquet(url.replace("text", name), storage_options=object_store.options)
    with pytest.raises(millrace.NotFound, match=rf"s3://{bucket}/other/none\.parquet cannot be opened: there is no such object"):
        millrace.Parquet(url.replace("text", "none"), storage_options=object_store.options)
    with pytest.raises(millrace.InvalidRequest, match=r"has no column 'picture' \(image=\)"):
        millrace.Parquet(tables, image="picture", storage_options=object_store.options)
    table: Any = millrace.Parquet(tables, storage_options=object_store.options)._files.tables[0]
    shorter = table._replace(object=dataclasses.replace(table.object, size=100))
    with pytest.raises(ValueError, match=r"its footer has a column up to byte \d+, and it has 100 bytes"):
        shorter.read(0, ["image"], None)
    with pytest.raises(millrace.InvalidRequest, match="storage_options are for URLs"):
        millrace.Parquet("/data/x.parquet", storage_options=object_store.options)
    with pytest.raises(millrace.InvalidRequest, match="have no places on this host"):
        millrace.Parquet(tables, storage_options=object_store.options).samples()


@pytest.mark.torch
def test_a_table_goes_on_after_failures_of_the_store(make: Any, tables: str, store_proxy: StoreProxy) -> None:
    table = millrace.Parquet(tables, storage_options=store_proxy.options)
    refused = store_proxy.add(r"^GET .*a-\d", status=503, times=2)
    cut = store_proxy.add(r"^GET .*a-\d", cut=1000, times=3)
    assert seen_of(make(table)) == WHOLE
    assert refused.happened
    assert cut.happened


@pytest.mark.torch
def test_tables_of_any_server(make: Any, tables: str, object_store: ObjectStore) -> None:
    url = f"{object_store.url}/{tables.removeprefix('s3://')}".replace("*", "{0..1}")
    assert seen_of(make(millrace.Parquet(url))) == WHOLE


def archive_of(numbers: range, kind: str) -> bytes:
    """Those pictures and their labels in a tar archive."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=f"w:{kind}") as archive:
        for n in numbers:
            for name, data in ((f"{n:04}.png", png(n)), (f"{n:04}.cls", b"%d" % (n // EACH))):
                member = tarfile.TarInfo(name)
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
    return out.getvalue()


@pytest.fixture(name="shards")
def shards_in_the_store(object_store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The pictures as three archives. Their pattern."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    bucket = f"shards-{os.urandom(4).hex()}"
    for number, kind in enumerate(("gz", "bz2", "")):
        object_store.put(f"{bucket}/s-{number}.tar", archive_of(range(number * EACH, (number + 1) * EACH), kind))
    return f"s3://{bucket}/s-{{0..2}}.tar"


def test_shards_in_turn_and_shuffled(make: Any, shards: str, store_proxy: StoreProxy) -> None:
    source = millrace.CompressedShards(shards, storage_options=store_proxy.options)

    assert source.sizes.tolist() == [EACH] * 3
    assert source.name_of(1) == shards.replace("{0..2}", "1")
    assert seen_of(make(source)) == WHOLE
    shuffled = seen_of(make(source, shuffle="blocks", seed=3))
    assert sorted(shuffled) == WHOLE
    assert [n for n, _, _ in shuffled] == block_order(source.sizes, 3, 3, 0).samples.tolist()
    before = store_proxy.count("^GET /shards")
    again = millrace.CompressedShards(shards, storage_options=store_proxy.options)
    assert again.fingerprint == source.fingerprint
    assert store_proxy.count("^GET /shards") == before  # the counts were kept


def test_shards_that_are_replaced_cut_or_out_of_reach(
    make: Any, shards: str, object_store: ObjectStore, store_proxy: StoreProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = millrace.CompressedShards(shards, storage_options=store_proxy.options)
    url = shards.replace("{0..2}", "0")
    object_store.put(url.removeprefix("s3://"), archive_of(range(EACH), "gz")[:-60])
    with pytest.warns(millrace.BadImageWarning) as said:
        assert seen_of(make(source, on_error="skip")) == WHOLE[EACH:]
    assert any(f"{url} cannot be read, so its {EACH} samples are bad images" in str(one.message) for one in said)
    with pytest.warns(UserWarning, match=rf"{url} is damaged after 00\d\d"):
        cut = millrace.CompressedShards(url, storage_options=store_proxy.options)
    assert len(cut) < EACH

    monkeypatch.setenv("MILLRACE_REMOTE_PATIENCE", "0.1")
    monkeypatch.setenv("XDG_CACHE_HOME", os.devnull)
    with store_proxy.fault(r"^GET .*s-2\.tar", cut=100), pytest.raises(OSError, match=r"s-2\.tar cannot be read"):
        millrace.CompressedShards(shards.replace("{0..2}", "2"), storage_options=store_proxy.options)
    with pytest.raises(millrace.NotFound, match=r"s-3\.tar cannot be opened: there is no such object"):
        millrace.CompressedShards(shards.replace("..2", "..3"), storage_options=store_proxy.options)
    with pytest.raises(millrace.InvalidRequest, match="storage_options are for URLs"):
        millrace.CompressedShards("/data/x.tar.gz", storage_options={})
