"""The example that splits a flat folder, which needs no framework; the others are run by test_examples.py."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from pictures import make_folder

EXAMPLE = Path(__file__).parents[3] / "client" / "python" / "examples" / "split_into_classes.py"


def split(pictures: Path, target: Path, classes: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(EXAMPLE), str(pictures), str(target), "--classes", str(classes)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_splitting_a_flat_folder(tmp_path: Path) -> None:
    (tmp_path / "flat").mkdir()
    for path in sorted(make_folder(tmp_path, each=4).rglob("*.png")):
        shutil.copy(path, tmp_path / "flat" / f"{path.parent.name}_{path.name}")

    ran = split(tmp_path / "flat", tmp_path / "split", 3)

    assert (ran.returncode, ran.stdout) == (0, f"12 files in 3 classes: {tmp_path / 'split'}\n")
    assert [len(list(folder.iterdir())) for folder in sorted((tmp_path / "split").iterdir())] == [4, 4, 4]
    assert {path.name.split("_")[0] for path in (tmp_path / "split" / "class_001").iterdir()} == {"bee"}


def test_fewer_files_than_classes_are_refused(tmp_path: Path) -> None:
    (tmp_path / "flat").mkdir()

    ran = split(tmp_path / "flat", tmp_path / "split", 3)

    assert ran.returncode == 1
    assert "too few for 3 classes" in ran.stderr
