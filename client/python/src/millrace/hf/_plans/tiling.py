"""Tiles whose grid is chosen here, from the sizes of the sources."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from millrace.hf._plans.elements import pixel_of
from millrace.hf._plans.features import Features
from millrace.hf._plans.grids import Grid, canvas, fitted_in_canvas, grids
from millrace.hf._plans.plans import Make, Plan, Rows, rows_of
from millrace.hf._plans.sized import sizes_of_boxes, sources_of
from millrace.recipe import ExactSize, Size
from millrace.samples import Sample


@dataclass(frozen=True)
class ChosenTiles(Plan):
    """Each image stretched over a grid of tiles, and a thumbnail of it if there is more than one: Ovis 2, Command A Vision.

    Attributes:
        tile: its size.
        grid: how many tiles an image of a size becomes.
        most: tiles of an image.
        beside: what comes beside the pixels, which says where the thumbnail is: ``grids`` before the tiles, ``num_patches`` behind them.
    """

    tile: Size
    grid: Callable[[Size], Grid]
    most: int
    beside: Literal["grids", "num_patches"]

    @property
    def most_bytes(self) -> int:
        """Of all tiles; thumbnails are in a batch of their own."""
        return self.most * self.tile.width * self.tile.height * 3 * self._element_bytes()

    def run(self, images: Sequence[Any], make: Make) -> Features:
        """``pixel_values`` [tiles of all images, 3, H, W], a copy; ``num_patches`` int64 [N] or ``grids`` int64 [N, 2] (rows, columns)."""
        with make(images, dataclasses.replace(self.recipe, resize=ExactSize(self.tile))) as batch:
            thumbnails = batch.images.bits().copy()
            chosen = [self.grid(source) for source in sizes_of_boxes(batch)]
        samples = [
            Sample(image, size=Size(columns * self.tile.width, rows * self.tile.height))
            for image, (columns, rows) in zip(images, chosen, strict=True)
        ]
        parts: list[NDArray[Any]] = []
        with make(samples, dataclasses.replace(self.recipe, resize=None, packing="packed")) as batch:
            for n, grid in enumerate(chosen):
                of_image = [cut(batch.image(n).bits(), self.tile)]
                if grid != (1, 1):
                    of_image.insert(0 if self.beside == "grids" else 1, thumbnails[n : n + 1])
                parts.append(np.concatenate(of_image))
        features = Features(pixel_values=np.concatenate(parts))
        if self.beside == "grids":
            features["grids"] = np.array([(rows, columns) for columns, rows in chosen], np.int64)
        else:
            features["num_patches"] = np.array([len(part) for part in parts], np.int64)
        return features


@dataclass(frozen=True)
class Canvases(Rows):
    """Each image on the canvas of tiles that suits it best, black where it does not reach: Llama 3.2 Vision.

    Attributes:
        side: of a tile.
        most: tiles of an image.
    """

    side: int
    most: int

    @property
    def most_bytes(self) -> int:
        """Of a full canvas."""
        return self.most * self.side**2 * 3 * self._element_bytes()

    def run(self, images: Sequence[Any], make: Make) -> Features:
        """``pixel_values`` [rows, images, tiles, 3, side, side], zeros where an image or tile is missing; copies.

        ``aspect_ratio_ids`` int64 [rows, images], 0 for none; ``aspect_ratio_mask`` int64 [rows, images, tiles]; ``num_tiles``, a list of
        lists.
        """
        rows, flat = rows_of(images), self.flat(images)
        sources = sources_of(flat, self.recipe, make)
        chosen = [canvas(source, self.side, self.most) for source in sources]
        samples = [
            Sample(image, size=fitted_in_canvas(source, grid, self.side)) for image, source, grid in zip(flat, sources, chosen, strict=True)
        ]
        longest = max(map(len, rows))
        shape = (len(rows), longest, self.most)
        mask, ids = np.zeros(shape, np.int64), np.zeros(shape[:2], np.int64)
        mask[:, :, 0] = 1
        numbers = sorted(grids(1, self.most))
        with make(samples, dataclasses.replace(self.recipe, resize=None, packing="packed")) as batch:
            arrays = [self._on_canvas(batch.image(n).bits(), grid) for n, grid in enumerate(chosen)]
        pixels = np.zeros((*shape, *arrays[0].shape[1:]), arrays[0].dtype)
        at = iter(zip(arrays, chosen, strict=True))
        for i, row in enumerate(rows):
            for j in range(len(row)):
                tiles, (columns, high) = next(at)
                pixels[i, j, : len(tiles)] = tiles
                mask[i, j, : len(tiles)] = 1
                ids[i, j] = numbers.index((high, columns)) + 1
        counts = iter([len(tiles) for tiles in arrays])
        return Features(
            pixel_values=pixels, aspect_ratio_ids=ids, aspect_ratio_mask=mask, num_tiles=[[next(counts) for _ in row] for row in rows]
        )

    def _on_canvas(self, image: NDArray[Any], grid: Grid) -> NDArray[Any]:
        _, height, width = image.shape
        room = np.empty((3, grid[1] * self.side, grid[0] * self.side), image.dtype)
        room[:] = pixel_of(self.recipe)
        room[:, :height, :width] = image
        return cut(room, Size(self.side, self.side))


def cut(image: NDArray[Any], tile: Size) -> NDArray[Any]:
    """[3, H, W] as [tiles, 3, height, width], row by row."""
    _, height, width = image.shape
    grid = image.reshape(3, height // tile.height, tile.height, width // tile.width, tile.width)
    tiles: NDArray[Any] = grid.transpose(1, 3, 0, 2, 4).reshape(-1, 3, tile.height, tile.width)
    return tiles
