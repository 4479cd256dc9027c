"""What a processor asks the daemon for, and how its answer becomes the model's inputs. Immutable; one class a kind of input."""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from millrace._core.batch import Batch
from millrace.errors import InvalidRequest
from millrace.hf._plans.features import Features
from millrace.recipe import DTYPE_BYTES, BoundedSides, GridCell, Patches, Recipe, Size, SmartResize, TileGrid
from millrace.samples import Sample, Source

Make = Callable[[Sequence[Sample | Source], Recipe], Batch]
"""Has one batch made; the caller releases it or keeps its views."""


@dataclass(frozen=True)
class Plan(ABC):
    """How one kind of processor works.

    Attributes:
        recipe: what every image, or its largest part, is made with.
    """

    recipe: Recipe

    @property
    @abstractmethod
    def most_bytes(self) -> int:
        """Bytes that the samples of one picture take in a slot, at most."""

    @property
    def alone(self) -> bool:
        """Whether a row of images, where there are rows, may hold one image only."""
        return False

    @abstractmethod
    def run(self, images: Sequence[Any], make: Make) -> Features:
        """The features of ``images``; of bfloat16 the bits."""

    def flat(self, images: Sequence[Any]) -> list[Any]:
        """The images one by one, whatever rows the caller put them in."""
        return list(images)

    def names(self, images: Sequence[Any]) -> list[str]:
        """What to call them in messages, in the order of ``flat``."""
        return [f"images[{i}]" for i in range(len(images))]

    def image_of(self, sample: int) -> int:
        """Which of them, in the order of ``flat``, a sample of a batch was made of."""
        return sample

    def _element_bytes(self) -> int:
        return DTYPE_BYTES[self.recipe.dtype]


class SameSize(Plan):
    """A kind whose samples are all of the recipe's size."""

    @property
    def most_bytes(self) -> int:
        """Always as much."""
        return self.recipe.slot_bytes(1) or 0


@dataclass(frozen=True)
class OneSize(SameSize):
    """Every image in one size: CLIP, ViT, SigLIP, LLaVA-1.5, Idefics.

    Attributes:
        beside: what comes beside the pixels, the same for every image: its name, its value and its shape; None: nothing.
    """

    beside: tuple[str, int, tuple[int, ...]] | None = None

    def run(self, images: Sequence[Any], make: Make) -> Features:
        """``pixel_values`` [N, 3, H, W], in shared memory; ``beside`` int64 [N, ...]."""
        features = Features(pixel_values=make(images, self.recipe).images.bits())
        if self.beside is not None:
            name, value, shape = self.beside
            features[name] = np.full((len(images), *shape), value, np.int64)
        return features


@dataclass(frozen=True)
class PatchRows(Plan):
    """Rows of patches of images of many sizes: Qwen2-VL, Qwen2.5-VL, ERNIE 4.5 VL, VideoLLaMA 3.

    Attributes:
        tells_merge: whether there are ``image_merge_sizes`` as well.
    """

    tells_merge: bool = False

    @property
    def most_bytes(self) -> int:
        """Follows from ``max_pixels``, or from ``min_pixels`` and the longest ratio."""
        return most_smart_pixels(self.recipe.resize) * 3 * _patches(self.recipe).temporal * self._element_bytes()

    def run(self, images: Sequence[Any], make: Make) -> Features:
        """``pixel_values`` [patches of all images, 3 * temporal * patch * patch], in shared memory; ``image_grid_thw`` int64 [N, 3].

        A grid is the image's frames (1), and its rows and columns of patches. ``image_merge_sizes`` int64 [N].
        """
        batch = make(images, self.recipe)
        pixels = batch.images.bits()
        patch = _patches(self.recipe).size
        sizes = batch.sizes
        grid = np.stack([np.ones(len(batch), np.int64), sizes[:, 1] // patch.height, sizes[:, 0] // patch.width], axis=1)
        features = Features(pixel_values=pixels.reshape(pixels.shape[0], -1), image_grid_thw=grid)
        if self.tells_merge:
            features["image_merge_sizes"] = np.full(len(batch), _patches(self.recipe).merge, np.int64)
        return features


@dataclass(frozen=True)
class Tiles(Plan):
    """A grid of tiles of each image and a thumbnail behind them: InternVL, GOT-OCR2. An image of one tile has no thumbnail."""

    @property
    def most_bytes(self) -> int:
        """All tiles and the thumbnail."""
        tile, grid = _patches(self.recipe).size, self.recipe.resize
        most = grid.max_tiles if isinstance(grid, TileGrid) else 1
        return (most + 1) * tile.width * tile.height * 3 * self._element_bytes()

    def image_of(self, sample: int) -> int:
        """Of each there are the tiles and the thumbnail."""
        return sample // 2

    def run(self, images: Sequence[Any], make: Make) -> Features:
        """``pixel_values`` [tiles of all images, 3, H, W]; ``num_patches`` int64 [N].

        In shared memory, but for calls in which some image has one tile only: those are copied, without its second picture.
        """
        tile = _patches(self.recipe).size
        samples = [sample for image in images for sample in (Sample(image), Sample(image, size=tile))]
        batch = make(samples, self.recipe)
        pixels = batch.images.bits()[:, :, 0]
        sizes = batch.sizes[::2]
        tiles = (sizes[:, 0] // tile.width) * (sizes[:, 1] // tile.height)
        ends = np.cumsum(tiles + 1)
        single = tiles == 1
        if single.any():
            pixels = np.delete(pixels, ends[single] - 1, axis=0)
        return Features(pixel_values=pixels, num_patches=np.where(single, 1, tiles + 1))


class Rows(Plan):
    """A kind that takes rows of images: a list of lists has one row a list, a plain list is one row."""

    def flat(self, images: Sequence[Any]) -> list[Any]:
        """Row by row."""
        return [image for row in rows_of(images) for image in row]

    def names(self, images: Sequence[Any]) -> list[str]:
        """By row and column where there are rows."""
        if not isinstance(images[0], (list, tuple)):
            return super().names(images)
        return [f"images[{i}][{j}]" for i, row in enumerate(rows_of(images)) for j in range(len(row))]


@dataclass(frozen=True)
class Frames(Rows, SameSize):
    """A row is a video, an image one of its frames, each in one size: VideoMAE."""

    def run(self, images: Sequence[Any], make: Make) -> Features:
        """``pixel_values`` [videos, frames, 3, H, W], in shared memory."""
        lengths = [len(row) for row in rows_of(images)]
        if len(set(lengths)) > 1:
            raise InvalidRequest(f"images: videos of {lengths} frames make no one array; give each as many frames, or one video a call")
        pixels = make(self.flat(images), self.recipe).images.bits()
        return Features(pixel_values=pixels.reshape(len(lengths), lengths[0], *pixels.shape[1:]))


@dataclass(frozen=True)
class Padded(Rows):
    """Images of many sizes, padded with zeros at the right and the bottom: Idefics2. Missing images are zeros.

    Attributes:
        split: the four quarters of each image before the image itself, each resized by itself.
    """

    split: bool = False

    @property
    def most_bytes(self) -> int:
        """Of the image or one of its quarters, each of which is in a batch of its own."""
        sides = self.recipe.resize
        longest = sides.longest if isinstance(sides, BoundedSides) else 0
        fixed = self.recipe.fixed_size or Size(longest, longest)
        return fixed.width * fixed.height * 3 * self._element_bytes()

    def run(self, images: Sequence[Any], make: Make) -> Features:
        """``pixel_values`` [rows, images, 3, H, W], H and W the largest of the call; ``pixel_attention_mask`` int64 [rows, images, H, W].

        The mask is 1 where the image is. Copies.
        """
        rows = rows_of(images)
        flat = self.flat(images)
        parts = [self._arrays(make(flat, recipe)) for recipe in self._recipes()]
        of_image = iter([[part[i] for part in parts] for i in range(len(flat))])
        return _padded([[array for _ in row for array in next(of_image)] for row in rows])

    def _recipes(self) -> list[Recipe]:
        if not self.split:
            return [self.recipe]
        quarters = [GridCell(2, 2, column, row) for row in (0, 1) for column in (0, 1)]
        return [*(dataclasses.replace(self.recipe, crop=quarter) for quarter in quarters), self.recipe]

    @staticmethod
    def _arrays(batch: Batch) -> list[NDArray[Any]]:
        with batch:
            return [batch.image(i).bits().copy() for i in range(len(batch))]


def _patches(recipe: Recipe) -> Patches:
    if recipe.patches is None:
        raise InvalidRequest("this processor needs a recipe with patches")
    return recipe.patches


def most_smart_pixels(resize: Any) -> int:
    """Pixels that a smart resize makes at most; a side never falls below the factor, nor the ratio out of 200."""
    if not isinstance(resize, SmartResize):
        return 0
    factor, least, most = resize.factor, resize.min_pixels, resize.max_pixels
    shrunk = factor * math.isqrt(200 * most)
    grown = least + factor * (math.isqrt(200 * least) + math.isqrt(least) + 2) + factor * factor
    return max(most, shrunk, grown)


def rows_of(images: Sequence[Any]) -> list[list[Any]]:
    """The rows of a list of lists; a plain list is one row."""
    nested = [isinstance(row, list) or type(row) is tuple for row in images]  # millrace.Path is a tuple, too
    if any(nested) and not all(nested):
        raise InvalidRequest("images: a list of images, or a list of lists of images; this one mixes both")
    return [list(row) for row in images] if any(nested) else [list(images)]


def _padded(rows: list[list[NDArray[Any]]]) -> Features:
    arrays = [array for row in rows for array in row]
    height, width = (max(array.shape[axis] for array in arrays) for axis in (1, 2))
    most = max(map(len, rows))
    pixels = np.zeros((len(rows), most, 3, height, width), arrays[0].dtype)
    mask = np.zeros((len(rows), most, height, width), np.int64)
    for i, row in enumerate(rows):
        for j, array in enumerate(row):
            pixels[i, j, :, : array.shape[1], : array.shape[2]] = array
            mask[i, j, : array.shape[1], : array.shape[2]] = 1
    return Features(pixel_values=pixels, pixel_attention_mask=mask)
