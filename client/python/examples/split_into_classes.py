"""Copies a flat folder of pictures into class folders, as datasets for classification have them.

    python split_into_classes.py PICTURES TARGET [--classes 10]

The files in order of their names are cut into equal runs, one a class. With names that begin with a WordNet id, as ImageNet's, neighbours
are of related kinds: fishes, birds, ..., dishes.
"""

import argparse
import shutil
from pathlib import Path


def split(pictures: Path, target: Path, classes: int) -> int:
    """Copies every file of ``pictures`` into one of ``classes`` folders beneath ``target``; returns how many there were."""
    files = sorted(path for path in pictures.iterdir() if path.is_file() and not path.name.startswith("."))
    if len(files) < classes:
        raise SystemExit(f"{pictures} has {len(files)} files: too few for {classes} classes")
    for number, path in enumerate(files):
        folder = target / f"class_{number * classes // len(files):03d}"
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, folder / path.name)
    return len(files)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pictures", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--classes", type=int, default=10)
    given = parser.parse_args()
    print(f"{split(given.pictures, given.target, given.classes)} files in {given.classes} classes: {given.target}")
