"""Manifests whose lines are parts of files."""

from __future__ import annotations

import json
from pathlib import Path

import millrace
import pytest
from millrace import Part


def test_csv_with_offset_and_length_has_parts(tmp_path: Path) -> None:
    manifest = tmp_path / "list.csv"
    manifest.write_text("path,offset,length,label\na.tar,512,9,3\n/d/b.jpg,,,4\na.tar,0,0,5\n")
    samples = millrace.read_manifest(manifest)
    assert [samples.part_of(number) for number in range(3)] == [Part(f"{tmp_path}/a.tar", 512, 9), None, Part(f"{tmp_path}/a.tar", 0, 0)]
    assert list(samples.paths) == [f"{tmp_path}/a.tar[512+9]", "/d/b.jpg", f"{tmp_path}/a.tar[0+0]"]
    assert [label for _, label in samples] == [3, 4, 5]
    whole = millrace.read_manifest(manifest, part_columns=())
    assert list(whole.paths) == [f"{tmp_path}/a.tar", "/d/b.jpg", f"{tmp_path}/a.tar"]


def test_json_lines_may_leave_them_out(tmp_path: Path) -> None:
    manifest = tmp_path / "list.jsonl"
    rows = [{"path": "/d/b.jpg"}, {"path": "/d/a.tar", "offset": 1 << 40, "length": 7}, {"path": "/d/c", "offset": None, "length": None}]
    manifest.write_text("".join(json.dumps(row) + "\n" for row in rows))
    samples = millrace.read_manifest(manifest)
    assert [samples.part_of(number) for number in range(3)] == [None, Part("/d/a.tar", 1 << 40, 7), None]
    assert samples.labels is None
    manifest.write_text('{"path": "/d/a", "begin": 1, "size": 2}\n')
    samples = millrace.read_manifest(manifest, label_column="", part_columns=("begin", "size"))
    assert samples.part_of(0) == Part("/d/a", 1, 2)


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("x.csv", "path,offset,length\n/d/a,1,2\n/d/a,-1,2\n", ":3: '-1' in 'offset' and '2' in 'length' are no part of a file: "),
        ("x.csv", "path,offset,length\n/d/a,1,\n", ":2: '1' in 'offset' and '' in 'length' are no part"),
        ("x.jsonl", '{"path": "/d/a", "offset": 1.5, "length": 2}\n', ":1: 1.5 in 'offset'"),
        ("x.jsonl", '{"path": "/d/a", "label": 0, "offset": 1}\n', ":1: 1 in 'offset' and None in 'length'"),
        ("x.jsonl", '{"path": "/d/a", "offset": 4611686018427387904, "length": 4611686018427387904}\n', "below 2"),
    ],
)
def test_what_is_no_part_is_told_with_its_line(tmp_path: Path, name: str, text: str, told: str) -> None:
    manifest = tmp_path / name
    manifest.write_text(text)
    with pytest.raises(millrace.InvalidRequest) as why:
        millrace.read_manifest(manifest)
    assert f"{name}" in str(why.value)
    assert told in str(why.value)
