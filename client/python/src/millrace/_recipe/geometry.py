"""What a recipe cuts out of an image, what size it makes of that, and what it adds around it; sizes that follow from these alone."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal, NamedTuple, get_args

from millrace._recipe.values import BLACK, Checked, fill_of, interval_of, numbers_of, refused, whole_of
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


def size_of(name: str, value: Any) -> Size:
    """A ``Size``, of a pair of whole numbers, or of one for a square.

    Raises:
        InvalidRequest: it is neither.
    """
    width, height = value if isinstance(value, (tuple, list)) and len(value) == 2 else (value, value)
    try:
        return Size(whole_of(name, width), whole_of(name, height))
    except InvalidRequest:
        raise refused(name, "Size(width, height) or a number of pixels for a square", value) from None


class Box(NamedTuple):
    """A rectangle in pixels of the oriented image, origin at the top left; width and height at least 1."""

    left: int
    top: int
    width: int
    height: int


@dataclass(frozen=True)
class CentreCrop(Checked):
    """The middle of the image, one number for a square; an error for an image that is smaller."""

    size: Size

    def __post_init__(self) -> None:
        self._be("size", size_of("CentreCrop.size", self.size))


@dataclass(frozen=True)
class RandomResizedCrop(Checked):
    """A random part of the image, drawn as torchvision's: ten attempts, then the central fallback.

    Attributes:
        scale: bounds of the part's share of the area, in (0, 1].
        ratio: bounds of width / height.
    """

    scale: tuple[float, float] = (0.08, 1.0)
    ratio: tuple[float, float] = (3 / 4, 4 / 3)

    def __post_init__(self) -> None:
        for field in ("scale", "ratio"):
            name = f"RandomResizedCrop.{field}"
            self._be(field, numbers_of(name, getattr(self, field), 2, "a pair of numbers, (least, most)"))


@dataclass(frozen=True)
class BoxCrop(Checked):
    """The same box of every image; a sample's own ``box`` overrides it."""

    box: Box

    def __post_init__(self) -> None:
        box = self.box if isinstance(self.box, (tuple, list)) else ()
        try:
            self._be("box", Box(*(whole_of("BoxCrop.box", each) for each in box)))
        except (TypeError, ValueError):
            raise refused("BoxCrop.box", "Box(left, top, width, height)", self.box) from None


@dataclass(frozen=True)
class GridCell(Checked):
    """One of ``columns`` x ``rows`` parts of the image, numbered from 0: from ``width * column // columns`` on, the rows alike."""

    columns: int
    rows: int
    column: int
    row: int

    def __post_init__(self) -> None:
        self._be_whole("columns", "rows", "column", "row")


Crop = CentreCrop | RandomResizedCrop | BoxCrop | GridCell


@dataclass(frozen=True)
class ShorterSide(Checked):
    """The shorter side gets so many pixels, the other keeps the ratio, truncated as torchvision does.

    Attributes:
        pixels: of the shorter side.
        longest: what the longer side gets at most, more than ``pixels``; the shorter one then shrinks with it: torchvision's
            ``max_size``. None: no bound.
    """

    pixels: int
    longest: int | None = None

    def __post_init__(self) -> None:
        self._be_pixels("pixels")
        self._be_pixels_or_none("longest")


@dataclass(frozen=True)
class LongerSide(Checked):
    """The longer side gets so many pixels, the other keeps the ratio, truncated, at least 1."""

    pixels: int

    def __post_init__(self) -> None:
        self._be_pixels("pixels")


@dataclass(frozen=True)
class ExactSize(Checked):
    """Both sides, whatever the ratio; one number for a square."""

    size: Size

    def __post_init__(self) -> None:
        self._be("size", size_of("ExactSize.size", self.size))


@dataclass(frozen=True)
class SmartResize(Checked):
    """Sides that are multiples of ``factor``, ``min_pixels`` to ``max_pixels`` in all: Qwen2-VL's ``smart_resize``.

    An image with one side over 200 times the other is an error.
    """

    factor: int
    min_pixels: int
    max_pixels: int

    def __post_init__(self) -> None:
        self._be_pixels("factor", "min_pixels", "max_pixels")


@dataclass(frozen=True)
class TileGrid(Checked):
    """``min_tiles`` to ``max_tiles`` (at most 256) tiles, in the grid whose ratio is nearest to the image's: InternVL's tiling."""

    tile: Size
    min_tiles: int
    max_tiles: int

    def __post_init__(self) -> None:
        self._be("tile", size_of("TileGrid.tile", self.tile))
        self._be_whole("min_tiles", "max_tiles")


@dataclass(frozen=True)
class BoundedSides(Checked):
    """The longer side at most ``longest``, the ratio kept; then each side at least ``shortest``: Idefics2's resize."""

    shortest: int
    longest: int

    def __post_init__(self) -> None:
        self._be_pixels("shortest", "longest")


@dataclass(frozen=True)
class ScaleJitter(Checked):
    """A random size: ``target``, as far as the ratio allows, times a number that is drawn, truncated: torchvision's ScaleJitter.

    Attributes:
        target: what the whole image fits into at a scale of 1.
        scale: interval, more than 0, at most 100; (0.1, 2) is large-scale jitter.
    """

    target: Size
    scale: Any = (0.1, 2.0)

    def __post_init__(self) -> None:
        self._be("target", size_of("ScaleJitter.target", self.target))
        self._be("scale", interval_of("ScaleJitter.scale", self.scale))


@dataclass(frozen=True)
class RandomShorterSide(Checked):
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
            self._be("sides", tuple(whole_of("RandomShorterSide.sides", side) for side in sides))
        except (TypeError, InvalidRequest):
            raise InvalidRequest(f"RandomShorterSide.sides: must be whole numbers of pixels, are {self.sides!r}") from None
        self._be_pixels_or_none("longest")
        if self.longest == 0:
            raise InvalidRequest("RandomShorterSide.longest: must be at least 1, is 0; None means no bound")


Resize = ShorterSide | LongerSide | ExactSize | SmartResize | TileGrid | BoundedSides | ScaleJitter | RandomShorterSide


@dataclass(frozen=True)
class Pad(Checked):
    """Pixels added around what the resize has made, before ``Recipe.centre_crop``.

        >>> Recipe(resize=LongerSide(640), pad=Pad(to=Size(640, 640), fill=114))  # letterbox
        >>> Recipe(pad=Pad(4, 4, 4, 4), centre_crop=Size(32, 32), crop_place="random")  # torchvision's RandomCrop(32, padding=4)

    Attributes:
        left: pixels.
        top: pixels.
        right: pixels.
        bottom: pixels.
        to: after these so many more that the image is at least so large, one number for a square; None: no more.
        place: where the image lies in what ``to`` adds: ``centre`` (an odd pixel is right of it, or below), ``top_left`` (what is added is
            right of it and below), ``top_right``, ``bottom_left``, ``bottom_right``, or ``random``: anywhere, drawn for each sample. The
            flip comes afterwards, and mirrors it: ``Batch.filled`` says where it lies.
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
        self._be_pixels("left", "top", "right", "bottom")
        if self.to is not None:
            self._be("to", size_of("Pad.to", self.to))
        self._be("fill", fill_of("Pad.fill", self.fill))

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


def check_room(resize: Resize | None, centre_crop: Size) -> None:
    """Of a recipe that does not pad: whether there may be an image that has the centre crop once it is resized.

    Raises:
        InvalidRequest: there is none.
    """
    shorter, longer = _most_sides(resize)
    if isinstance(resize, ExactSize) and (centre_crop.width > resize.size.width or centre_crop.height > resize.size.height):
        raise _no_room(f"{resize.size.width} x {resize.size.height}", centre_crop)
    if longer is not None and max(centre_crop) > longer:
        raise _no_room(f"a longer side of {longer}", centre_crop)
    if shorter is not None and min(centre_crop) > shorter:
        raise _no_room(f"a shorter side of {shorter}", centre_crop)


def _most_sides(resize: Resize | None) -> tuple[int | None, int | None]:
    """The most pixels that the shorter side has after it, and the longer one, where it bounds them. What the daemon refuses bounds none."""
    longer = _longest_side(resize)
    if isinstance(resize, ShorterSide):
        shorter: int | None = resize.pixels
    else:
        shorter = max(resize.sides, default=None) if isinstance(resize, RandomShorterSide) else None
    if (shorter is not None and shorter < 1) or (longer is not None and longer < (shorter or 1)):
        return None, None
    return shorter, longer


def _no_room(resized: str, crop: Size) -> InvalidRequest:
    return InvalidRequest(
        f"Recipe.centre_crop: {crop.width} x {crop.height} is more than {resized}, which the resize makes, so no image is large enough: "
        "cut less, resize to more, or pad (Recipe.pad)"
    )


def why_sizes_differ(resize: Resize | None, pad: Pad | None) -> str:
    """Of a recipe with neither a fixed size nor a centre crop: what of it leaves the size open, and what to say instead."""
    longest = _longest_side(resize)
    bounds = isinstance(resize, ShorterSide | RandomShorterSide) and longest is None
    if pad is not None and pad.to is not None:
        if longest is not None:
            most = Size(longest + pad.left + pad.right, longest + pad.top + pad.bottom)
            by = "LongerSide" if isinstance(resize, LongerSide) else "`longest`"
            with_sides = f", {most.width}x{most.height} with the pixels that Pad adds" if most != (longest, longest) else ""
            return f"Pad.to {pad.to.width}x{pad.to.height} is smaller than {longest} ({by}){with_sides}: say at least that"
        if bounds:
            name = type(resize).__name__
            return f"{name} without `longest` bounds no longer side, which may be more than Pad.to: say {name}(..., longest=)"
        return f"images may be larger than Pad.to {pad.to.width}x{pad.to.height}: cut them to it, Recipe(centre_crop=)"
    if longest is not None:
        return f"the resize keeps the ratio: fill up to one size, Pad(to=Size({longest}, {longest})), or cut, Recipe(centre_crop=)"
    if bounds:
        return f"{type(resize).__name__} keeps the ratio: cut, Recipe(centre_crop=), or give it `longest` and fill up, Pad(to=)"
    return "end with an exact resize or a centre crop"
