"""``python -m millrace list``: what it writes is the dataset."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import millrace
import pytest
from millrace import Part


def listed(*arguments: str, daemon: millrace.PrivateDaemon | None = None) -> subprocess.CompletedProcess[str]:
    socket = ["--socket", str(daemon.address)] if daemon is not None else []
    command = [sys.executable, "-m", "millrace", "list", *arguments, *socket]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_folder_is_listed_in_the_daemons_order(daemon: millrace.PrivateDaemon, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "list.jsonl"
    ran = listed(str(folder), "-o", str(out), daemon=daemon)
    assert (ran.returncode, ran.stdout) == (0, f"60 samples: {out}\n")
    with millrace.connect(daemon.address) as client, client.session(millrace.Recipe.evaluate(8, 8), 4, 2) as session:
        dataset = session.dataset(folder)
        paths, classes = dataset.paths_of(range(len(dataset))), dataset.classes
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["path"] for row in rows] == paths
    assert [classes[row["label"]] for row in rows] == [Path(path).parent.name for path in paths]
    assert os.listdir(tmp_path) == ["list.jsonl"]


def test_a_list_of_parts_comes_back_as_it_was(tmp_path: Path) -> None:
    odd = os.fsdecode(b"/d/\xff.jpg")
    manifest, out = tmp_path / "in.csv", tmp_path / "out.jsonl"
    manifest.write_bytes(b"path,offset,length,label\n/d/a.tar,512,9,3\n/d/\xff.jpg,,,4\n")
    assert listed(str(manifest), "-o", str(out)).returncode == 0
    assert [json.loads(line) for line in out.read_text().splitlines()] == [
        {"path": "/d/a.tar", "offset": 512, "length": 9, "label": 3},
        {"path": odd, "label": 4},
    ]
    samples = millrace.read_manifest(out)
    assert [samples.part_of(0), samples.paths[1]] == [Part("/d/a.tar", 512, 9), odd]
    assert [label for _, label in samples] == [3, 4]


def test_tables_are_listed_as_parts(folder: Path, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="datasets is not installed: no table is listed")
    files = sorted(folder.rglob("*.png"))[:5]
    rows = {"image": [{"bytes": file.read_bytes(), "path": file.name} for file in files], "label": [4, 3, 2, 1, 0]}
    table = datasets.Dataset.from_dict(rows, features=datasets.Features({"image": datasets.Image(), "label": datasets.Value("int64")}))
    table.save_to_disk(tmp_path / "saved")
    table.to_parquet(tmp_path / "table.parquet")
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "t.parquet").symlink_to(tmp_path / "table.parquet")
    for source in ("saved", "table.parquet", "tables"):
        ran = listed(str(tmp_path / source), "--label", "label")
        assert ran.returncode == 0, ran.stderr
        found = [json.loads(line) for line in ran.stdout.splitlines()]
        assert [row["label"] for row in found] == [4, 3, 2, 1, 0]
        for row, file in zip(found, files, strict=True):
            assert Path(row["path"]).read_bytes()[row["offset"] :][: row["length"]] == file.read_bytes()


def test_what_fails_leaves_the_file_alone(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    out.write_text("as it was")
    ran = listed(str(tmp_path / "none.jsonl"), "-o", str(out))
    assert (ran.returncode, out.read_text(), os.listdir(tmp_path)) == (1, "as it was", ["out.jsonl"])
    (tmp_path / "t.bin").touch()
    compressed = "have no places of their own in its files: they are compressed"
    for wrong, told in (
        ("no such source", "is not there"),
        ("a.tar.gz", compressed),
        ("train-*.TAR.ZST", compressed),
        (str(tmp_path / "t.bin"), "none of the sources"),
    ):
        ran = listed(wrong, "-o", str(out))
        assert (ran.returncode, told in ran.stderr) == (1, True), ran.stderr
