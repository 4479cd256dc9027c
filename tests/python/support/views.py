"""For tests of several views of one decode: what the second implementation of the draws makes of a picture, by Pillow and torchvision."""

from __future__ import annotations

import dataclasses
from typing import Any

import millrace
import numpy as np
from draws import Key, Pair, all_erased, cropped, drawn, filtered, flipped, padded, placed, resized
from millrace import ExactSize, RandomResizedCrop, Recipe, Size
from numpy.typing import NDArray

GEOMETRY = Recipe.of_views(
    Recipe(crop=RandomResizedCrop((0.3, 1.0)), resize=ExactSize(Size(40, 31)), filter="bicubic", flip_probability=0.5),
    [Recipe(crop=RandomResizedCrop((0.05, 0.3)), resize=ExactSize(Size(17, 16)), flip_probability=0.5)] * 3,
    Recipe(resize=millrace.ShorterSide(24), centre_crop=Size(15, 14), crop_place="random", filter="lanczos"),
    Recipe(resize=ExactSize(Size(22, 22)), erasing=millrace.Erasing(0.8, value=9)),
)


def bytes_of(recipe: millrace.Recipe) -> millrace.Recipe:
    """The same as uint8 of N x H x W x 3."""
    return dataclasses.replace(recipe, dtype="uint8", normalise=None, layout="NHWC")


def image_of(view: millrace.Recipe, pixels: NDArray[np.uint8], key: Key) -> NDArray[np.uint8]:
    """Height x width x 3 of a view of a picture, given its draws."""
    from drawn_calls import applied
    from PIL import Image, ImageOps
    from torchvision.transforms.functional import center_crop, pad

    image = Image.fromarray(pixels)
    if isinstance(view.crop, millrace.RandomResizedCrop):
        image = _cut(image, cropped(view.crop, image.size, key))
    elif isinstance(view.crop, millrace.CentreCrop):
        image = center_crop(image, list(view.crop.size[::-1]))
    if view.resize is not None:
        image = image.resize(resized(view.resize, image.size, key), Image.Resampling[filtered(view, key).upper()])
    if view.pad is not None:
        image = pad(image, list(padded(view.pad, image.size, key)), list(view.pad.fill), view.pad.mode)
    if view.centre_crop is not None:
        image = _cut(image, (*_place(view, image.size, key), *view.centre_crop))
    if flipped(view.flip_probability, key):
        image = ImageOps.mirror(image)
    made = np.array(applied(image, drawn(view.steps, image.size, key)))
    for left, top, width, height in all_erased(view.erasing, image.size, key) if view.erasing is not None else ():
        assert view.erasing is not None
        made[top : top + height, left : left + width] = view.erasing.value
    return made


def _cut(image: Any, box: tuple[int, int, int, int]) -> Any:
    left, top, width, height = box
    return image.crop((left, top, left + width, top + height))


def _place(view: millrace.Recipe, room: Pair, key: Key) -> Pair:
    assert view.centre_crop is not None
    rest = [side - cut for side, cut in zip(room, view.centre_crop, strict=True)]
    if view.crop_place == "random":
        return placed(view.centre_crop, room, key)
    if view.crop_place == "centre":
        return round(rest[0] / 2), round(rest[1] / 2)
    return rest[0] if "right" in view.crop_place else 0, rest[1] if "bottom" in view.crop_place else 0


def views_of(batch: millrace.Batch) -> list[NDArray[Any]]:
    """Copies of a batch's tensors."""
    return [view.bits().copy() for view in batch.views]
