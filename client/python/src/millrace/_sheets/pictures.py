"""What a batch's images look like: pictures again, with what the recipe made of their values undone. Pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from millrace._sheets import sheet as _sheet
from millrace.recipe import Recipe

if TYPE_CHECKING:
    from millrace._core.batch import Batch

_MOST = 24  # pictures of a sheet
_SIDE = 128  # pixels, at most, of a picture's longer side
_COLUMNS = 6
_WIDEST = 12  # columns, of views
_NOTHING = np.empty((0, 0, 3), np.uint8)


def sheet_of(batch: Batch) -> bytes | None:
    """A PNG file of the batch's first images; None where there is nothing to see: no image, or patches.

    The views of a sample are side by side in a row of their own; of more than ``_WIDEST`` in several.
    """
    if batch.released or len(batch) == 0 or batch.recipe.patches is not None:
        return None
    views = len(batch.recipe.views) or 1
    samples = range(min(len(batch), max(1, _MOST // views)))
    pictures = [smaller(picture_of(batch.image(index, view), batch.recipe), _SIDE) for index in samples for view in range(views)]
    side = max(1, *(max(picture.shape[:2]) for picture in pictures))
    shown: list[_sheet.Picture | None] = [picture if picture.size else None for picture in pictures]  # a zeroed one may have no size
    return _sheet.png(in_rows(shown, views, side, _COLUMNS))


def in_rows(pictures: list[_sheet.Picture | None], views: int, side: int, columns: int) -> _sheet.Picture:
    """A sheet of samples, each of so many pictures: of one view in rows of ``columns``, of several as ``sheet_of``."""
    if views == 1:
        return _sheet.compose(pictures, side, min(columns, len(pictures)))
    columns = min(views, _WIDEST)
    rows = [pictures[first : first + views] + [_NOTHING] * (-views % columns) for first in range(0, len(pictures), views)]
    return _sheet.compose([picture for row in rows for picture in row], side, columns)


def picture_of(tensor: Any, recipe: Recipe) -> _sheet.Picture:
    """An image of that recipe as uint8 height x width x RGB."""
    bits: NDArray[Any] = tensor.bits()
    if tensor.dtype_name == "bfloat16":  # the upper half of a float32
        bits = (bits.astype(np.uint32) << 16).view(np.float32)
    image = bits if recipe.layout == "NHWC" else np.moveaxis(bits, 0, -1)
    if recipe.channels == "BGR":
        image = image[..., ::-1]
    if tensor.dtype_name != "uint8":
        image = _levels(image.astype(np.float32), recipe)
    return np.repeat(image, 3, axis=-1) if image.shape[-1] == 1 else np.ascontiguousarray(image)


def _levels(image: NDArray[np.float32], recipe: Recipe) -> _sheet.Picture:
    """0 to 255, of values that the recipe normalised, scaled or left."""
    if recipe.normalise is not None:
        mean, std = (np.array(values, np.float32) for values in (recipe.normalise.mean, recipe.normalise.std))
        if image.shape[-1] == 1:
            mean, std = mean[:1], std[:1]
        image = image * std + mean
    levels = image if recipe.normalise is None and recipe.range == "raw" else image * 255
    return np.nan_to_num(np.rint(levels)).clip(0, 255).astype(np.uint8)


def smaller(picture: _sheet.Picture, side: int) -> _sheet.Picture:
    """At most so large: means of squares of pixels, as large as it takes."""
    height, width = picture.shape[:2]
    times = -(-max(height, width) // side)
    if times < 2 or min(height, width) < times:
        return picture[:side, :side]
    whole = picture[: height // times * times, : width // times * times].astype(np.float32)
    means = whole.reshape(height // times, times, width // times, times, 3).mean((1, 3))
    made: _sheet.Picture = np.rint(means).astype(np.uint8)
    return made
