"""How images of several sizes are put together. Immutable values that are called with what the daemon has made."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from millrace.errors import InvalidRequest
from millrace.hf._plans.elements import pixel_of
from millrace.hf._plans.features import Features
from millrace.hf._plans.sized import Made, heights_and_widths
from millrace.recipe import Size

Colour = tuple[int, int, int]


@dataclass(frozen=True)
class Padding:
    """Each image in a room, with padding around.

    Attributes:
        room: None: as large as the largest of a call.
        square: each image in a square room of its own, as large as its longer side.
        middle: in the middle, else at the top left.
        colour: of the padding before the pixels are rescaled and normalised; None: zeros after that.
        mask: what the array is called that is 1 where the image is; None: there is none.
        mask_first: it comes before the pixels.
        bool_mask: it holds truth values, else int64.
        original: what the sizes of the sources are called; None: they are left out.
        resized: what the sizes before the padding are called; None: they are left out.
        counts_crops: whether there is ``num_crops``, an int64 without axes: 1.
        task: whether there is ``task_inputs``, a list of one text.
    """

    room: Size | None = None
    square: bool = False
    middle: bool = False
    colour: Colour | None = None
    mask: str | None = None
    mask_first: bool = False
    bool_mask: bool = False
    original: str | None = None
    resized: str | None = None
    counts_crops: bool = False
    task: bool = False

    def __call__(self, made: Made) -> Features:
        """``pixel_values`` [N, 3, H, W], and [N, H, W] masks and int64 [N, 2] sizes, height and width."""
        images = made.images
        sizes = [Size(image.shape[2], image.shape[1]) for image in images]
        room = self._room(sizes)
        try:
            pixels = np.zeros((len(images), 3, room.height, room.width), images[0].dtype)
            mask = np.zeros((len(images), room.height, room.width), np.bool_ if self.bool_mask else np.int64)
        except (ValueError, MemoryError) as why:
            raise InvalidRequest(f"images: there is no memory to pad them to {room.width} x {room.height} pixels ({why})") from why
        if self.colour is not None:
            pixels[:] = pixel_of(made.recipe, self.colour)
        for n, (image, size) in enumerate(zip(images, sizes, strict=True)):
            left, top = ((room.width - size.width) // 2, (room.height - size.height) // 2) if self.middle else (0, 0)
            pixels[n, :, top : top + size.height, left : left + size.width] = image
            mask[n, top : top + size.height, left : left + size.width] = 1
        features = _with_mask(pixels, self.mask, mask, first=self.mask_first)
        if self.original is not None:
            features[self.original] = heights_and_widths(made.sources)
        if self.resized is not None:
            features[self.resized] = heights_and_widths(sizes)
        if self.counts_crops:
            features["num_crops"] = np.array(1, np.int64)
        if self.task:
            features["task_inputs"] = ["the task is panoptic"]
        return features

    def _room(self, sizes: list[Size]) -> Size:
        if self.square:
            sides = {max(size) for size in sizes}
            if len(sides) > 1:
                raise InvalidRequest(f"images: they become squares of {sorted(sides)} pixels, which make no one array: give one a call")
            return Size(*(sides.pop(),) * 2)
        largest = Size(max(size.width for size in sizes), max(size.height for size in sizes))
        room = self.room or largest
        if largest.width > room.width or largest.height > room.height:
            raise InvalidRequest(
                f"images: one becomes {largest.width} x {largest.height} pixels, more than pad_size has, {room.width} x {room.height}"
            )
        return room


@dataclass(frozen=True)
class Together:
    """Images that are all of one size, or else one at a time.

    Attributes:
        original: what the sizes of the sources are called; None: they are left out.
        resized: what the sizes of the images are called; None: they are left out.
    """

    original: str | None = None
    resized: str | None = None

    def __call__(self, made: Made) -> Features:
        """``pixel_values`` [N, 3, H, W], and int64 [N, 2] sizes."""
        sizes = [Size(image.shape[2], image.shape[1]) for image in made.images]
        if len(set(sizes)) > 1:
            told = ", ".join(f"{size.width} x {size.height}" for size in sorted(set(sizes))[:4])
            raise InvalidRequest(f"images: they become {told} pixels, which make no one array: give images of one size, or one a call")
        features = Features(pixel_values=np.stack(made.images))
        if self.original is not None:
            features[self.original] = heights_and_widths(made.sources)
        if self.resized is not None:
            features[self.resized] = heights_and_widths(sizes)
        return features


@dataclass(frozen=True)
class Middle:
    """The middle of each image, with black around one that is smaller.

    Attributes:
        size: of it.
        mask: what an array of ones is called; None: there is none.
        mask_first: it comes before the pixels.
    """

    size: Size
    mask: str | None = None
    mask_first: bool = False

    def __call__(self, made: Made) -> Features:
        """``pixel_values`` [N, 3, H, W]; the mask is int64 [N, H, W]."""
        width, height = self.size
        pixels = np.empty((len(made.images), 3, height, width), made.images[0].dtype)
        pixels[:] = pixel_of(made.recipe)
        for row, image in zip(pixels, made.images, strict=True):
            down, above = _overlap(image.shape[1], height)
            across, beside = _overlap(image.shape[2], width)
            row[:, above, beside] = image[:, down, across]
        return _with_mask(pixels, self.mask, np.ones((len(pixels), height, width), np.int64), first=self.mask_first)


def _with_mask(pixels: NDArray[Any], name: str | None, mask: NDArray[Any], *, first: bool) -> Features:
    if name is None:
        return Features(pixel_values=pixels)
    return Features({name: mask, "pixel_values": pixels} if first else {"pixel_values": pixels, name: mask})


def _overlap(side: int, room: int) -> tuple[slice, slice]:
    """Of an image's side and of the room for it, what is on top of one another; transformers rounds the one down, the other up."""
    if side >= room:
        first = (side - room) // 2
        return slice(first, first + room), slice(0, room)
    at = math.ceil((room - side) / 2)
    return slice(0, side), slice(at, at + side)


@dataclass(frozen=True)
class PatchList:
    """A row of patches an image, each with its channels last, padded with zeros to as many for all: SigLIP 2, Gemma 4.

    Attributes:
        patch: its side.
        most: patches of an image.
        kind: whose arrays come beside them.
        pooling: Gemma 4's patches of a token, by side.
    """

    patch: int
    most: int
    kind: Literal["siglip2", "gemma4"]
    pooling: int = 1

    def __call__(self, made: Made) -> Features:
        """``pixel_values`` [N, most, patch * patch * 3].

        SigLIP 2: ``pixel_attention_mask`` int32 [N, most] and ``spatial_shapes`` int64 [N, 2], rows and columns. Gemma 4:
        ``image_position_ids`` int64 [N, most, 2], column and row, -1 for padding, and ``num_soft_tokens_per_image`` int64 [N].
        """
        count, side = len(made.images), self.patch
        pixels = np.zeros((count, self.most, side * side * 3), made.images[0].dtype)
        mask = np.zeros((count, self.most), np.int32)
        positions = np.full((count, self.most, 2), -1, np.int64)
        grids = np.array([(image.shape[1] // side, image.shape[2] // side) for image in made.images], np.int64)
        for n, (image, (rows, columns)) in enumerate(zip(made.images, grids.tolist(), strict=True)):
            patches = rows * columns
            pixels[n, :patches] = _channels_last(image, side)
            mask[n, :patches] = 1
            positions[n, :patches] = [(column, row) for row in range(rows) for column in range(columns)]
        if self.kind == "siglip2":
            return Features(pixel_values=pixels, pixel_attention_mask=mask, spatial_shapes=grids)
        tokens = grids.prod(axis=1) // self.pooling**2
        return Features(pixel_values=pixels, image_position_ids=positions, num_soft_tokens_per_image=tokens)


def _channels_last(image: NDArray[Any], side: int) -> NDArray[Any]:
    """[3, H, W] as [patches, side * side * 3]."""
    _, height, width = image.shape
    grid = image.reshape(3, height // side, side, width // side, side)
    patches: NDArray[Any] = grid.transpose(1, 3, 2, 4, 0).reshape(-1, side * side * 3)
    return patches
