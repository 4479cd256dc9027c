#!/usr/bin/env python3
"""Draws the picture sets of l3.py, the same in every run: FOLDER/png/SET/NAME.png, FOLDER/epoch and FOLDER/sets.json.

l3_sets.py DATA FOLDER     DATA has kodak and photos

Sets of sizes, such as 1920x1080, and the pictures of FOLDER/epoch are photographs beside each other, cut to squares, as
many as the picture holds. So their pixels are as noisy as photographs are, which enlarged ones would not be.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import imagecodecs
import matplotlib
import matplotlib.figure
import numpy as np
import pydicom
import skimage
from PIL import Image

from l3_screens import draw_screens

Pictures = dict[str, np.ndarray]
SIZES = ((1280, 720), (1920, 1080), (2048, 1024), (3840, 2160))
EPOCH_SIZE, EPOCH_PICTURES = (2048, 1024), 4
SQUARE = 256
_SCIKIT = Path(skimage.__file__).parent / "data"
_PYDICOM = Path(pydicom.__file__).parent / "data" / "test_files"
_MATPLOTLIB = Path(matplotlib.get_data_path(), "sample_data")


class Sets:
    """What each set has. Every method gives pictures by name: rows, columns and channels of 8 or 16 bits."""

    def __init__(self, data: Path) -> None:
        self._kodak = sorted((data / "kodak").glob("*.png"))
        self._photographs = sorted((data / "photos").glob("*.*"))
        self._large = [path for path in self._photographs if min(_size_and_mode(path)[0]) >= SQUARE]
        if not self._kodak or not self._photographs:
            raise SystemExit(f"no pictures in {data}/kodak or {data}/photos")
        self.notes: list[str] = []

    def kodak(self) -> Pictures:
        return {path.stem: _rgb(path) for path in self._kodak}

    def photographs(self) -> Pictures:
        return {path.stem: _rgb(path) for path in self._photographs[::6] if _size_and_mode(path)[1] == "RGB"}

    def grey(self) -> Pictures:
        return {
            name: np.asarray(Image.open(_SCIKIT / f"{name}.png").convert("L")) for name in ("camera", "coins", "moon", "brick", "grass")
        }

    def rgba(self) -> Pictures:
        figure = matplotlib.figure.Figure((8, 5), dpi=120)
        figure.subplots().bar(range(12), np.random.default_rng(3).random(12))
        plot = io.BytesIO()
        figure.savefig(plot, transparent=True, metadata={"Software": None})
        paths = {"logo": _SCIKIT / "logo.png", "package": _MATPLOTLIB / "Minduka_Present_Blue_Pack.png", "plot": plot}
        return {name: np.asarray(Image.open(path).convert("RGBA")) for name, path in paths.items()}

    def masks(self) -> Pictures:
        """Classes of regions, and an outline."""
        dice = np.random.default_rng(5)
        y, x = np.mgrid[0:1024, 0:2048].astype(np.float32)
        nearest, classes = np.full(y.shape, np.inf, np.float32), np.zeros(y.shape, np.uint8)
        for middle_y, middle_x, number in zip(dice.uniform(0, 1024, 60), dice.uniform(0, 2048, 60), dice.integers(0, 19, 60), strict=True):
            distance = (y - middle_y + 25 * np.sin(x / 40)) ** 2 + (x - middle_x) ** 2
            closer = distance < nearest
            nearest[closer], classes[closer] = distance[closer], number
        return {"classes": classes, "horse": np.asarray(Image.open(_SCIKIT / "horse.png").convert("L"))}

    def screens(self) -> Pictures:
        drawn, note = draw_screens(_rgb(self._kodak[0]))
        self.notes.append(note)
        return drawn | {"plot": _plot()}

    def renders(self) -> Pictures:
        return {"balls": _balls()[0]}

    def ct_mr(self) -> Pictures:
        files = {name: pydicom.dcmread(_PYDICOM / f"{name}.dcm").pixel_array for name in ("CT_small", "MR_small", "examples_overlay")}
        head = gzip.decompress((_MATPLOTLIB / "s1045.ima.gz").read_bytes())
        files["head"] = np.frombuffer(head, ">u2").reshape(256, 256)
        return {name: _from_zero(levels) for name, levels in files.items()}

    def depth(self) -> Pictures:
        disparity = np.nan_to_num(np.load(_SCIKIT / "motorcycle_disp.npz")["arr_0"], posinf=0, neginf=0)
        heights = np.load(_MATPLOTLIB / "jacksboro_fault_dem.npz")["elevation"]
        return {
            "balls": _balls()[1],
            "disparity": np.clip(disparity * 256, 0, 65535).astype(np.uint16),
            "heights": heights.astype(np.uint16),
        }

    def rgb16(self) -> Pictures:
        """Light as a sensor counts it, made of a photograph."""
        light = (_rgb(self._kodak[1]).astype(np.float64) / 255) ** 2.2 * 60000
        return {"light": np.clip(light + np.random.default_rng(7).normal(0, 40, light.shape), 0, 65535).astype(np.uint16)}

    def black(self) -> Pictures:
        return {"black": np.zeros((1080, 1920, 3), np.uint8)}

    def random(self) -> Pictures:
        return {"random": np.random.default_rng(9).integers(0, 256, (1080, 1920, 3), np.uint8)}

    def beside_each_other(self, size: tuple[int, int], number: int) -> np.ndarray:
        """Photographs in squares; ``number`` says which come first."""
        width, height = size
        picture, at = np.zeros((height, width, 3), np.uint8), number * 29
        for top in range(0, height, SQUARE):
            for left in range(0, width, SQUARE):
                square = self._square(at)[: height - top, : width - left]
                picture[top : top + square.shape[0], left : left + square.shape[1]] = square
                at += 1
        return picture

    def _square(self, number: int) -> np.ndarray:
        photograph = _rgb(self._large[number % len(self._large)])
        top, left = (photograph.shape[0] - SQUARE) // 2, (photograph.shape[1] - SQUARE) // 2
        return photograph[top : top + SQUARE, left : left + SQUARE]


def _size_and_mode(path: Path) -> tuple[tuple[int, int], str]:
    with Image.open(path) as picture:
        return picture.size, picture.mode


def _rgb(path: Path) -> np.ndarray:
    return np.asarray(Image.open(path).convert("RGB"))


def _from_zero(levels: np.ndarray) -> np.ndarray:
    return (levels.astype(np.int32) - min(0, int(levels.min()))).astype(np.uint16)


def _plot() -> np.ndarray:
    figure, dice = matplotlib.figure.Figure((12, 9), dpi=120), np.random.default_rng(0)
    axes, x = figure.subplots(2, 2), np.linspace(0, 9, 400)
    axes[0, 0].plot(x, np.sin(x))
    axes[0, 1].bar(range(12), dice.random(12))
    axes[1, 0].scatter(*dice.normal(size=(2, 600)))
    axes[1, 1].contourf(np.outer(np.sin(x[:80]), np.cos(x[:80])))
    drawn = io.BytesIO()
    figure.savefig(drawn)
    return np.asarray(Image.open(drawn).convert("RGB"))


def _balls() -> tuple[np.ndarray, np.ndarray]:
    """Shaded balls before a sky: RGB, and how far away they are in 16 bits."""
    dice = np.random.default_rng(5)
    y, x = np.mgrid[0:720, 0:1280]
    colours = np.stack([90 + y / 12, 120 + y * 7 / 72, 200 - y / 12], -1)
    depth = np.full(y.shape, 60.0)
    for _ in range(40):
        middle_x, middle_y, radius, far = dice.uniform(0, 1280), dice.uniform(0, 720), dice.uniform(20, 140), dice.uniform(2, 50)
        bulge = np.sqrt(np.maximum(0, radius**2 - (x - middle_x) ** 2 - (y - middle_y) ** 2)) / radius
        seen = (bulge > 0) & (far - bulge * radius / 100 < depth)
        depth[seen] = (far - bulge * radius / 100)[seen]
        light = np.clip(0.2 + 0.8 * (bulge * 0.7 + 0.3 * (middle_x - x) / radius - 0.2 * (y - middle_y) / radius), 0, 1)
        colours[seen] = light[seen][:, None] * dice.uniform(60, 255, 3)
    return np.clip(colours, 0, 255).astype(np.uint8), (depth * 1000).astype(np.uint16)


def all_sets(sets: Sets) -> Iterator[tuple[str, str, Callable[[], Pictures]]]:
    """Name, title, and what makes its pictures."""
    yield "kodak", "Kodak", sets.kodak
    yield "photographs", "photographs, every sixth", sets.photographs
    yield "screens", "screens and documents", sets.screens
    yield "renders", "render", sets.renders
    yield "rgba", "RGBA", sets.rgba
    yield "grey", "grey photographs", sets.grey
    yield "masks", "masks", sets.masks
    yield "ct_mr", "CT and MR, 16 bits", sets.ct_mr
    yield "depth", "depth, 16 bits", sets.depth
    yield "rgb16", "RGB, 16 bits", sets.rgb16
    yield "random", "random", sets.random
    yield "black", "black", sets.black
    for width, height in SIZES:
        yield (
            f"{width}x{height}",
            f"photographs beside each other, {width}x{height}",
            lambda size=(width, height): {"a": sets.beside_each_other(size, 0)},
        )


def write_png(picture: np.ndarray, path: Path) -> None:
    """As Pillow does without options: level 6. It has no RGB of 16 bits, which imagecodecs writes by libpng as well."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if picture.ndim == 3 and picture.itemsize == 2:
        path.write_bytes(imagecodecs.png_encode(picture, level=6))
    else:
        Image.fromarray(picture).save(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    sets, about = Sets(given.data), []
    for name, title, make in all_sets(sets):
        pictures = make()
        for picture_name, picture in pictures.items():
            write_png(picture, given.folder / "png" / name / f"{picture_name}.png")
        raw = sum(picture.nbytes for picture in pictures.values())
        about.append({"name": name, "title": title, "pictures": len(pictures), "raw_bytes": raw})
    for number in range(EPOCH_PICTURES):
        write_png(sets.beside_each_other(EPOCH_SIZE, number), given.folder / "epoch" / f"{number}.png")
    (given.folder / "sets.json").write_text(json.dumps({"sets": about, "notes": sets.notes}))


if __name__ == "__main__":
    main()
