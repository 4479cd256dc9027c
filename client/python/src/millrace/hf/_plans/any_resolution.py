"""LLaVA-NeXT, LLaVA-OneVision: the whole image, and tiles of it at the best of several resolutions, padded to that."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from millrace.hf._plans.elements import pixel_of
from millrace.hf._plans.features import Features
from millrace.hf._plans.plans import Make, Plan
from millrace.recipe import Size
from millrace.samples import Sample


@dataclass(frozen=True)
class AnyResolution(Plan):
    """The daemon makes the whole images first; their records say how large the sources are, and so which resolution fits best.

    Attributes:
        side: of a tile, and of the whole image, pixels.
        resolutions: what may be tiled, in the configuration's order; sides are multiples of ``side``.
        counts_images: whether there is ``batch_num_images`` as well.
    """

    side: int
    resolutions: tuple[Size, ...]
    counts_images: bool = False

    @property
    def alone(self) -> bool:
        """As its class in transformers, it takes rows of more than one image for something else."""
        return self.counts_images

    @property
    def most_bytes(self) -> int:
        """Of the whole image or its parts, which are in batches of their own."""
        most = max(size.width * size.height for size in (*self.resolutions, Size(self.side, self.side)))
        return most * 3 * self._element_bytes()

    def run(self, images: Sequence[Any], make: Make) -> Features:
        """``pixel_values`` [images, tiles, 3, side, side] and ``image_sizes`` int64 [images, 2], height and width of the sources.

        ``batch_num_images`` int64 [images], all 1. The whole image comes before its tiles; where an image has fewer of them than another
        one, zeros follow. Copies.
        """
        with make(images, self.recipe) as batch:
            wholes = batch.images.bits().copy()
            sources = [Size(width, height) for width, height in batch.boxes[:, 2:].tolist()]
        tiles = self._tiles(images, sources, make)
        pixels = np.zeros((len(images), 1 + max(map(len, tiles)), *wholes.shape[1:]), wholes.dtype)
        pixels[:, 0] = wholes
        for row, of_image in zip(pixels, tiles, strict=True):
            row[1 : 1 + len(of_image)] = of_image
        features = Features(pixel_values=pixels, image_sizes=np.array([(size.height, size.width) for size in sources], np.int64))
        if self.counts_images:
            features["batch_num_images"] = np.ones(len(images), np.int64)
        return features

    def _tiles(self, images: Sequence[Any], sources: Sequence[Size], make: Make) -> list[NDArray[Any]]:
        best = [best_resolution(source, self.resolutions) for source in sources]
        samples = [Sample(image, size=fitted(source, room)) for image, source, room in zip(images, sources, best, strict=True)]
        recipe = dataclasses.replace(self.recipe, resize=None, packing="packed")
        with make(samples, recipe) as batch:
            return [self._cut(batch.image(n).bits(), room) for n, room in enumerate(best)]

    def _cut(self, image: NDArray[Any], room: Size) -> NDArray[Any]:
        """The image in the middle of a black ``room``, as tiles row by row."""
        _, height, width = image.shape
        canvas = np.empty((3, room.height, room.width), image.dtype)
        canvas[:] = pixel_of(self.recipe)
        top, left = (room.height - height) // 2, (room.width - width) // 2
        canvas[:, top : top + height, left : left + width] = image
        side = self.side
        grid = canvas.reshape(3, room.height // side, side, room.width // side, side)
        tiles: NDArray[Any] = grid.transpose(1, 3, 0, 2, 4).reshape(-1, 3, side, side)
        return tiles


def best_resolution(source: Size, resolutions: Sequence[Size]) -> Size:
    """The one that keeps the most of the source's pixels; of those, the one that leaves the least room unused; of those, the first."""

    def merit(room: Size) -> tuple[int, int]:
        scale = min(room.width / source.width, room.height / source.height)
        kept = min(int(source.width * scale) * int(source.height * scale), source.width * source.height)
        return kept, kept - room.width * room.height

    return max(resolutions, key=merit)


def fitted(source: Size, room: Size) -> Size:
    """The largest size of the source's ratio within ``room``; the side that does not fill it is rounded up."""
    across, down = room.width / source.width, room.height / source.height
    if across < down:
        return Size(room.width, min(math.ceil(source.height * across), room.height))
    return Size(min(math.ceil(source.width * down), room.width), room.height)
