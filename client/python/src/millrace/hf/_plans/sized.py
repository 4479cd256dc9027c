"""Processors that give each image a size of its own: a first request, for one pixel of each, says how large the sources are."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from millrace.errors import InvalidRequest
from millrace.hf._plans.features import Features
from millrace.hf._plans.plans import Make, Plan, SameSize
from millrace.recipe import Box, ExactSize, Patches, Recipe, Size
from millrace.samples import Sample

Fit = Callable[[Size], Size]
"""The size that an image of a size gets, as the functions of sizes.py; ValueError: none, with the reason."""


@dataclass(frozen=True)
class Made:
    """What the daemon has made of a call's images.

    Attributes:
        images: each [3, H, W], a view that ends with the call of ``Arrange``.
        sources: their sizes as they were.
        recipe: what they were made with.
    """

    images: list[NDArray[Any]]
    sources: list[Size]
    recipe: Recipe


Arrange = Callable[[Made], Features]
"""Puts images together as a model wants them; copies."""


@dataclass(frozen=True)
class Sized(Plan):
    """Each image in a size of its own, then arranged in NumPy.

    Attributes:
        fit: that size.
        arrange: what is made of the images.
        most: pixels of one of them at most, as far as it is known; a larger one costs time, no more.
    """

    fit: Fit
    arrange: Arrange
    most: int

    @property
    def most_bytes(self) -> int:
        """By ``most``."""
        return self.most * 3 * self._element_bytes()

    def run(self, images: Sequence[Any], make: Make) -> Features:
        """What ``arrange`` gives. Copies."""
        flat = self.flat(images)
        sources = sources_of(flat, self.recipe, make)
        sizes = fitted(self.fit, sources, self.names(images))
        samples = [Sample(image, size=size) for image, size in zip(flat, sizes, strict=True)]
        recipe = dataclasses.replace(self.recipe, resize=None, packing="packed")
        with make(samples, recipe) as batch:
            return self.arrange(Made([batch.image(n).bits() for n in range(len(samples))], sources, self.recipe))


@dataclass(frozen=True)
class SizedPatches(Plan):
    """Rows of patches of images whose sizes are computed here: GLM-4V, PaddleOCR-VL, HunYuan-VL and others.

    Attributes:
        fit: an image's size.
        most: pixels of one of them at most, as far as it is known.
        shape: of one row of ``pixel_values``, by the letters C, T, H and W of a patch's axes; a letter after another is merged with it
            where there is no blank between them.
    """

    fit: Fit
    most: int
    shape: str = "CTHW"

    @property
    def most_bytes(self) -> int:
        """By ``most``."""
        patches = self.recipe.patches
        return self.most * 3 * (patches.temporal if patches else 1) * self._element_bytes()

    def run(self, images: Sequence[Any], make: Make) -> Features:
        """``pixel_values`` [patches of all images, ...] and ``image_grid_thw`` int64 [N, 3]: 1, rows and columns of patches.

        In shared memory where ``shape`` keeps the order of axes.
        """
        sources = sources_of(images, self.recipe, make)
        sizes = fitted(self.fit, sources, self.names(images))
        samples = [Sample(image, size=size) for image, size in zip(images, sizes, strict=True)]
        batch = make(samples, dataclasses.replace(self.recipe, resize=None))
        patches = self.recipe.patches
        assert patches is not None
        grid = [(1, size.height // patches.size.height, size.width // patches.size.width) for size in sizes]
        return Features(pixel_values=_shaped(batch.images.bits(), self.shape), image_grid_thw=np.array(grid, np.int64))


@dataclass(frozen=True)
class MiddleFirst(SameSize):
    """The middle of each image, a share of its shorter side, then one size: Perceiver.

    Attributes:
        shares: of the shorter side, width and height, that are cut out, numerators and denominators.
    """

    shares: tuple[tuple[int, int], tuple[int, int]]

    def run(self, images: Sequence[Any], make: Make) -> Features:
        """``pixel_values`` [N, 3, H, W], in shared memory."""
        boxes = [self._middle(source, name) for source, name in zip(sources_of(images, self.recipe, make), self.names(images), strict=True)]
        samples = [Sample(image, box=box) for image, box in zip(images, boxes, strict=True)]
        return Features(pixel_values=make(samples, self.recipe).images.bits())

    def _middle(self, source: Size, name: str) -> Box:
        width, height = (int(part / whole * min(source)) for part, whole in self.shares)
        if not width or not height:
            raise InvalidRequest(
                f"{name}: of {source.width} x {source.height} pixels: the share of it that is cut out has none; give a larger image"
            )
        return Box((source.width - width) // 2, (source.height - height) // 2, width, height)


@dataclass(frozen=True)
class WithSources(SameSize):
    """Every image in one size, and the sizes that they had: SAM 2, SAM 3."""

    def run(self, images: Sequence[Any], make: Make) -> Features:
        """``pixel_values`` [N, 3, H, W], in shared memory; ``original_sizes`` int64 [N, 2], height and width."""
        batch = make(images, self.recipe)
        return Features(pixel_values=batch.images.bits(), original_sizes=heights_and_widths(sizes_of_boxes(batch)))


def sources_of(images: Sequence[Any], recipe: Recipe, make: Make) -> list[Size]:
    """The sizes of the images as ``recipe`` turns them."""
    pixel = Recipe(resize=ExactSize(Size(1, 1)), filter="nearest", ignore_orientation=recipe.ignore_orientation)
    with make(images, pixel) as batch:
        return sizes_of_boxes(batch)


def sizes_of_boxes(batch: Any) -> list[Size]:
    """Of a batch that was made of whole images: their sizes."""
    return [Size(int(width), int(height)) for width, height in batch.boxes[:, 2:].tolist()]


def fitted(fit: Fit, sources: Sequence[Size], names: Sequence[str]) -> list[Size]:
    """The sizes of all images.

    Raises:
        InvalidRequest: one has none; names it.
    """
    sizes = []
    for source, name in zip(sources, names, strict=True):
        try:
            sizes.append(fit(source))
        except ValueError as why:
            raise InvalidRequest(f"{name}: of {source.width} x {source.height} pixels: {why}") from None
    return sizes


def heights_and_widths(sizes: Sequence[Size]) -> NDArray[np.int64]:
    """Int64 [N, 2], as transformers gives sizes."""
    return np.array([(size.height, size.width) for size in sizes], np.int64).reshape(-1, 2)


def one_patch_a_row(side: int, merge: int, temporal: int) -> Patches:
    """Square patches."""
    return Patches(Size(side, side), merge, temporal)


def _shaped(pixels: NDArray[Any], shape: str) -> NDArray[Any]:
    """[patches, C, T, H, W] with the axes of a patch in the order of ``shape``."""
    groups = shape.split()
    if shape.replace(" ", "") != "CTHW":
        pixels = pixels.transpose(0, *(1 + "CTHW".index(letter) for letter in shape if letter != " "))
    ends = np.cumsum([len(group) for group in groups])
    sides = [int(np.prod(pixels.shape[1 + end - len(group) : 1 + end])) for group, end in zip(groups, ends, strict=True)]
    return pixels.reshape(pixels.shape[0], *sides)
