"""What a recipe cuts out of an image, what size it makes of that, and what it adds around it; sizes that follow from these alone."""

from __future__ import annotations

from dataclasses import dataclass, fields
from operator import index
from typing import Any, Literal, NamedTuple, get_args

from millrace._step_values import BLACK, fill_of, interval_of
from millrace.errors import InvalidRequest

CropPlace = Literal["centre", "top_left", "top_right", "bottom_left", "bottom_right", "random"]
PadMode = Literal["constant", "edge", "reflect", "symmetric"]


def check_choice(name: str, value: object, names: tuple[str, ...]) -> int:
    """The position of ``value`` among ``names``.

    Raises:
        InvalidRequest: it is not among them.
    """
    for position, known in enumerate(names):
        if value == known:
            return position
    raise InvalidRequest(f"{name}: must be one of {', '.join(names)}; is {value!r}")


class Size(NamedTuple):
    """Pixels; both sides at least 1."""

    width: int
    height: int


class Box(NamedTuple):
    """A rectangle in pixels of the oriented image, origin at the top left; width and height at least 1."""

    left: int
    top: int
    width: int
    height: int


@dataclass(frozen=True)
class CentreCrop:
    """The middle of the image; an error for an image that is smaller."""

    size: Size


@dataclass(frozen=True)
class RandomResizedCrop:
    """A random part of the image, drawn as torchvision's: ten attempts, then the central fallback.

    Attributes:
        scale: bounds of the part's share of the area, in (0, 1].
        ratio: bounds of width / height.
    """

    scale: tuple[float, float] = (0.08, 1.0)
    ratio: tuple[float, float] = (3 / 4, 4 / 3)


@dataclass(frozen=True)
class BoxCrop:
    """The same box of every image; a sample's own ``box`` overrides it."""

    box: Box


@dataclass(frozen=True)
class GridCell:
    """One of ``columns`` x ``rows`` parts of the image, numbered from 0: from ``width * column // columns`` on, the rows alike."""

    columns: int
    rows: int
    column: int
    row: int


Crop = CentreCrop | RandomResizedCrop | BoxCrop | GridCell


@dataclass(frozen=True)
class ShorterSide:
    """The shorter side gets so many pixels, the other keeps the ratio, truncated as torchvision does.

    Attributes:
        pixels: of the shorter side.
        longest: what the longer side gets at most, more than ``pixels``; the shorter one then shrinks with it: torchvision's
            ``max_size``. None: no bound.
    """

    pixels: int
    longest: int | None = None


@dataclass(frozen=True)
class LongerSide:
    """The longer side gets so many pixels, the other keeps the ratio, truncated, at least 1."""

    pixels: int


@dataclass(frozen=True)
class ExactSize:
    """Both sides, whatever the ratio."""

    size: Size


@dataclass(frozen=True)
class SmartResize:
    """Sides that are multiples of ``factor``, ``min_pixels`` to ``max_pixels`` in all: Qwen2-VL's ``smart_resize``.

    An image with one side over 200 times the other is an error.
    """

    factor: int
    min_pixels: int
    max_pixels: int


@dataclass(frozen=True)
class TileGrid:
    """``min_tiles`` to ``max_tiles`` (at most 256) tiles, in the grid whose ratio is nearest to the image's: InternVL's tiling."""

    tile: Size
    min_tiles: int
    max_tiles: int


@dataclass(frozen=True)
class BoundedSides:
    """The longer side at most ``longest``, the ratio kept; then each side at least ``shortest``: Idefics2's resize."""

    shortest: int
    longest: int


@dataclass(frozen=True)
class ScaleJitter:
    """A random size: ``target``, as far as the ratio allows, times a number that is drawn, truncated: torchvision's ScaleJitter.

    Attributes:
        target: what the whole image fits into at a scale of 1.
        scale: interval, more than 0, at most 100; (0.1, 2) is large-scale jitter.
    """

    target: Size
    scale: Any = (0.1, 2.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", interval_of("ScaleJitter.scale", self.scale))


@dataclass(frozen=True)
class RandomShorterSide:
    """``ShorterSide`` of one of several numbers of pixels, drawn for each sample: torchvision's RandomShortestSize.

    Attributes:
        sides: of which one is drawn, 1 to 64; any iterable, kept as a tuple.
        longest: what the longer side gets at most, no less than each of the sides; None: no bound.
    """

    sides: tuple[int, ...]
    longest: int | None = None

    def __post_init__(self) -> None:
        sides = (self.sides,) if isinstance(self.sides, int) else self.sides
        try:
            object.__setattr__(self, "sides", tuple(map(index, sides)))
        except TypeError:
            raise InvalidRequest(f"RandomShorterSide.sides: must be whole numbers of pixels, are {self.sides!r}") from None
        if self.longest == 0:
            raise InvalidRequest("RandomShorterSide.longest: must be at least 1, is 0; None means no bound")


Resize = ShorterSide | LongerSide | ExactSize | SmartResize | TileGrid | BoundedSides | ScaleJitter | RandomShorterSide


@dataclass(frozen=True)
class Pad:
    """Pixels added around what the resize has made, before ``Recipe.centre_crop``.

        >>> Recipe(resize=LongerSide(640), pad=Pad(to=Size(640, 640), fill=114))  # letterbox
        >>> Recipe(pad=Pad(4, 4, 4, 4), centre_crop=Size(32, 32), crop_place="random")  # torchvision's RandomCrop(32, padding=4)

    Attributes:
        left: pixels.
        top: pixels.
        right: pixels.
        bottom: pixels.
        to: after these so many more that the image is at least so large; None: no more.
        place: where the image lies in what ``to`` adds: ``centre`` (an odd pixel is right of it, or below), in a corner, or ``random``:
            anywhere, drawn for each sample.
        mode: ``constant``: ``fill``; ``edge``: the nearest pixel of the image; ``reflect``: mirrored at the outermost pixel, which is not
            repeated; ``symmetric``: mirrored, the outermost pixel repeated.
        fill: a level or three, 0 to 255, in the place of pixels: before they are normalised.
    """

    left: int = 0
    top: int = 0
    right: int = 0
    bottom: int = 0
    to: Size | None = None
    place: CropPlace = "centre"
    mode: PadMode = "constant"
    fill: Any = BLACK

    def __post_init__(self) -> None:
        check_choice("Pad.place", self.place, get_args(CropPlace))
        check_choice("Pad.mode", self.mode, get_args(PadMode))
        object.__setattr__(self, "fill", fill_of("Pad.fill", self.fill))

    def __repr__(self) -> str:
        """What is not the default."""
        said = [f"{field.name}={getattr(self, field.name)!r}" for field in fields(self) if getattr(self, field.name) != field.default]
        return f"Pad({', '.join(said)})"


def fixed_size_of(crop: Crop | None, resize: Resize | None, pad: Pad | None) -> Size | None:
    """What they make of every image, whatever its size; None where it depends on the image.

    Crops of fixed size before a SmartResize, TileGrid or BoundedSides give one size, too, but only the daemon computes it: None.
    """
    resized = _fixed_resized_size(crop, resize)
    if pad is None:
        return resized
    longest = _longest_side(resize) if resized is None else None
    if resized is None and longest is not None:
        resized = Size(longest, longest)
    if resized is None or (longest is not None and pad.to is None):
        return None
    most = Size(resized.width + pad.left + pad.right, resized.height + pad.top + pad.bottom)
    if pad.to is None:
        return most
    if longest is not None:  # what is bounded and filled up to more than the bound is of one size
        return Size(*pad.to) if most.width <= pad.to[0] and most.height <= pad.to[1] else None
    return Size(max(most.width, pad.to[0]), max(most.height, pad.to[1]))


def _fixed_resized_size(crop: Crop | None, resize: Resize | None) -> Size | None:
    if isinstance(resize, ExactSize):
        return resize.size
    size = _size_of_crop(crop)
    if size is None or resize is None:
        return size
    return _resized_side(resize, size) if isinstance(resize, ShorterSide | LongerSide) else None


def _longest_side(resize: Resize | None) -> int | None:
    """The most pixels that a side has after it, where it bounds them."""
    if isinstance(resize, LongerSide):
        return resize.pixels
    return resize.longest if isinstance(resize, ShorterSide | RandomShorterSide) else None


def _size_of_crop(crop: Crop | None) -> Size | None:
    """Where every image's is the same and has pixels."""
    if isinstance(crop, CentreCrop):
        size = crop.size
    elif isinstance(crop, BoxCrop):
        size = Size(crop.box.width, crop.box.height)
    else:
        return None
    return size if min(size) >= 1 else None


def _resized_side(resize: ShorterSide | LongerSide, crop: Size) -> Size:
    """As the daemon: what is not asked for is truncated, at least 1."""
    short, long = min(crop), max(crop)
    if isinstance(resize, LongerSide):
        sides = max(1, resize.pixels * short // long), resize.pixels
    else:
        sides = resize.pixels, max(1, resize.pixels * long // short)
        if resize.longest is not None and sides[1] > resize.longest:
            sides = max(1, resize.longest * sides[0] // sides[1]), resize.longest
    return Size(*sides) if crop.width <= crop.height else Size(*reversed(sides))
