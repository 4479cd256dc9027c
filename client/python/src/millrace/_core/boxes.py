"""Boxes of the source's pixels where the batch's images have them. Arithmetic on records; nothing is asked."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from millrace import steps
from millrace._memory.layout import FLIPPED, ZEROED
from millrace.errors import InvalidRequest, Unsupported
from millrace.recipe import Recipe

Mapped = tuple[NDArray[np.float32], NDArray[np.int64]]
"""Of one image: the boxes that are left, [K, 4], and which of the given ones they are, [K]."""

_CALL = "batch.map_boxes"
_COLOURS = (
    steps.Grayscale,
    steps.Invert,
    steps.AutoContrast,
    steps.Equalize,
    steps.Posterize,
    steps.Solarize,
    steps.Sharpness,
    steps.ColorJitter,
    steps.GaussianBlur,
    steps.PillowBlur,
)
"""Steps that leave everything where it is."""
_CORNERS = "XYXY"
_FORMATS = {_CORNERS: "left, top, right, bottom", "XYWH": "left, top, width, height", "CXCYWH": "centre's x, centre's y, width, height"}
"""As torchvision names them."""
_FLIPS = (steps.HorizontalFlip, steps.VerticalFlip)


def mapped(boxes: Any, records: NDArray[Any], filled: NDArray[np.int64], recipe: Recipe, min_area: float) -> list[Mapped]:
    """What ``Batch.map_boxes`` returns, and the errors that it has.

    Args:
        boxes: for each of the records those of its image, [M, 4].
        records: of N images.
        filled: ``Batch.filled`` of the same.
        recipe: what made them.
        min_area: pixels.
    """
    if recipe.views:
        raise Unsupported(
            f"{_CALL}: the recipe makes {len(recipe.views)} views of each sample, and records tell of the first one's crop alone"
        )
    mirrored = np.array(_flips_of(recipe.steps))
    least = _area_of(min_area)
    given = _checked(boxes, len(records))
    zeroed = (records["flags"] & ZEROED) != 0
    if not (zeroed | ((records["resized_width"] > 0) & (records["resized_height"] > 0))).all():
        raise Unsupported(f"{_CALL}: this daemon's records do not say to what size the images were resized; update millraced")
    counts = [len(each) for each in given]
    of = np.repeat(np.arange(len(records)), counts)
    corners = np.concatenate([np.empty((0, 4)), *given]).reshape(-1, 2, 2)  # [T, first and last, x and y]
    corners = np.stack([_moved(corners[..., axis], axis, of, records, filled, bool(mirrored[axis])) for axis in (0, 1)], axis=-1)
    found = corners.reshape(-1, 4).astype(np.float32)
    sides = np.maximum(found[:, 2:].astype(np.float64) - found[:, :2], 0)
    is_left = sides[:, 0] * sides[:, 1] > least
    ends = np.cumsum(counts, dtype=np.int64)[:-1]
    several = zip(np.split(found, ends), np.split(is_left, ends), strict=True) if counts else ()
    return [(some[kept], np.flatnonzero(kept).astype(np.int64)) for some, kept in several]


def _moved(
    values: NDArray[Any], axis: int, of: NDArray[Any], records: NDArray[Any], filled: NDArray[np.int64], mirrored: bool
) -> NDArray[Any]:
    """First and last, [T, 2], along one axis, clipped to where the image lies; ``of`` says of which image each is."""
    crop, cropped, resized, window, side = (
        records[name[axis]].astype(np.float64)
        for name in (
            ("crop_left", "crop_top"),
            ("crop_width", "crop_height"),
            ("resized_width", "resized_height"),
            ("window_left", "window_top"),
            ("width", "height"),
        )
    )
    scale = resized / np.maximum(cropped, 1)  # a zeroed image may have no crop
    found = (values - crop[of, None]) * scale[of, None] - window[of, None]
    if axis == 0:
        flipped = ((records["flags"] & FLIPPED) != 0)[of, None]
        found = np.where(flipped, side[of, None] - found[:, ::-1], found)
    first, last = filled[:, axis], filled[:, axis] + filled[:, axis + 2]
    found = np.clip(found, first[of, None], last[of, None])
    return side[of, None] - found[:, ::-1] if mirrored else found


def _flips_of(todo: Sequence[steps.Step], certain: bool = True) -> tuple[bool, bool]:
    """Whether the steps flip every image from left to right, and from top to bottom.

    Raises:
        Unsupported: one of them may move pixels in another way, or not in every image; names it.
    """
    across = down = False
    for step in todo:
        if step.probability == 0 or isinstance(step, _COLOURS):
            continue
        is_done = certain and step.probability == 1
        if isinstance(step, (steps.Sequence, steps.AnyOrder, steps.OneOf)):
            inner = _flips_of(step.steps, is_done and not isinstance(step, steps.OneOf))
            across, down = across ^ inner[0], down ^ inner[1]
        elif not isinstance(step, _FLIPS):
            raise Unsupported(f"{_CALL}: the step {step!r} may move pixels, and records do not say where to: leave it out of the recipe")
        elif not is_done:
            raise Unsupported(
                f"{_CALL}: the step {step!r} is not done to every image, and records do not say to which; a horizontal flip is mapped as "
                "Recipe.flip_probability, a step that flips where it is always done"
            )
        else:
            across, down = across ^ isinstance(step, steps.HorizontalFlip), down ^ isinstance(step, steps.VerticalFlip)
    return across, down


def _area_of(min_area: Any) -> float:
    try:
        area = float(min_area)
    except (TypeError, ValueError, OverflowError):
        area = math.nan
    if not 0 <= area < math.inf:
        raise InvalidRequest(f"{_CALL}: min_area is a number of pixels, at least 0; is {min_area!r}")
    return area


def _checked(boxes: Any, images: int) -> list[NDArray[np.float64]]:
    if isinstance(boxes, (str, bytes, dict)) or not hasattr(boxes, "__len__") or not hasattr(boxes, "__getitem__"):
        raise InvalidRequest(f"{_CALL}: boxes are a list with an array [M, 4] for each image, not a {type(boxes).__name__}")
    count = len(boxes) if getattr(boxes, "ndim", 1) else 0
    if count != images:
        raise InvalidRequest(f"{_CALL}: an array of boxes [M, 4] is needed for each of the batch's {images} images; there are {count}")
    return [_of_one(each, number) for number, each in enumerate(boxes)]


def _of_one(given: Any, number: int) -> NDArray[np.float64]:
    form = _format_of(given, number)
    expected = f"{_CALL}: boxes of image {number} must be numbers [M, 4]: {_FORMATS[form]} of each;"
    try:
        array = _array_of(given)
    except (TypeError, ValueError):
        raise InvalidRequest(f"{expected} these are no array") from None
    if array.ndim in (1, 2) and array.shape[0] == 0 and array.shape[-1] in (0, 4):
        return np.empty((0, 4))
    if array.ndim != 2 or array.shape[1] != 4:
        raise InvalidRequest(f"{expected} these have the shape {array.shape}")
    if array.dtype.kind not in "iuf":
        raise InvalidRequest(f"{expected} these are {array.dtype}")
    array = array.astype(np.float64)
    if (endless := ~np.isfinite(array).all(1)).any():
        which = int(endless.argmax())
        raise InvalidRequest(f"{expected} box {which} is {_text(array[which])}, and numbers are finite")
    corners = _corners(array, form)
    if (reversed_ := (corners[:, 2:] < corners[:, :2]).any(1)).any():
        which = int(reversed_.argmax())
        told, is_wide = f"{_CALL}: box {which} of image {number} is {_text(array[which])}", corners[which, 2] < corners[which, 0]
        if form != _CORNERS:
            raise InvalidRequest(f"{told}, whose {'width' if is_wide else 'height'} is negative: boxes are [{_FORMATS[form]}]")
        raise InvalidRequest(
            f"{told}, whose {'right is less than its left' if is_wide else 'bottom is less than its top'}: boxes are [{_FORMATS[form]}]; "
            "of COCO's, [left, top, width, height], add left to width and top to height"
        )
    return corners


def _format_of(given: Any, number: int) -> str:
    """What the four numbers are: torchvision's ``BoundingBoxes`` say so, in an enumeration, and all others are corners."""
    form = getattr(given, "format", None)
    if not isinstance(form, enum.Enum):
        return _CORNERS
    if form.name not in _FORMATS:
        raise Unsupported(
            f"{_CALL}: boxes of image {number} are {type(given).__name__} of the format {form.name}, and {', '.join(_FORMATS)} are known: "
            "convert them to one of these (torchvision.transforms.v2.ConvertBoundingBoxFormat)"
        )
    return form.name


def _array_of(given: Any) -> NDArray[Any]:
    """Raises TypeError and ValueError: it is none."""
    if hasattr(given, "detach"):
        given = given.detach().cpu()
        given = given.float() if str(given.dtype) == "torch.bfloat16" else given  # which NumPy has not
    array = np.asarray(given)
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array


def _corners(boxes: NDArray[np.float64], form: str) -> NDArray[np.float64]:
    """Left, top, right, bottom."""
    if form == _CORNERS:
        return boxes
    first, size = boxes[:, :2], boxes[:, 2:]
    if form == "CXCYWH":
        first = first - size / 2
    return np.concatenate([first, first + size], axis=1)


def _text(box: NDArray[np.float64]) -> str:
    return f"[{', '.join(f'{value:g}' for value in box)}]"
