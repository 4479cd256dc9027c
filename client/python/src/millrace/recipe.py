"""What to make of an encoded image and what comes out. Immutable values; the daemon checks them.

    >>> Recipe.train(224)                       # RandomResizedCrop 224, flip 0.5, uint8 N x 3 x 224 x 224
    >>> Recipe.evaluate(256, 224)               # shorter side 256, centre crop 224
    >>> Recipe.train(224).normalised("float16") # the same, with ImageNet's mean and deviation taken out

    >>> Recipe.of_views(large, large, *[small] * 6)  # eight images of one decode, each as its own recipe says

In this order: decode, orient, crop, resize, pad, centre crop, flip, steps of augmentation (``millrace.steps``), normalise, convert, erase.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

from millrace._memory.layout import IMAGE_ALIGNMENT, align_up, slot_bytes, slot_bytes_of_images
from millrace._recipe.dtype import AnyDType, dtype_name
from millrace._recipe.dtype import DType as DType
from millrace._recipe.erasing import Erasing
from millrace._recipe.geometry import BoundedSides as BoundedSides
from millrace._recipe.geometry import Box as Box
from millrace._recipe.geometry import BoxCrop as BoxCrop
from millrace._recipe.geometry import CentreCrop as CentreCrop
from millrace._recipe.geometry import Crop as Crop
from millrace._recipe.geometry import CropPlace as CropPlace
from millrace._recipe.geometry import ExactSize as ExactSize
from millrace._recipe.geometry import GridCell as GridCell
from millrace._recipe.geometry import LongerSide as LongerSide
from millrace._recipe.geometry import Pad as Pad
from millrace._recipe.geometry import PadMode as PadMode
from millrace._recipe.geometry import RandomResizedCrop as RandomResizedCrop
from millrace._recipe.geometry import RandomShorterSide as RandomShorterSide
from millrace._recipe.geometry import Resize as Resize
from millrace._recipe.geometry import ScaleJitter as ScaleJitter
from millrace._recipe.geometry import ShorterSide as ShorterSide
from millrace._recipe.geometry import Size as Size
from millrace._recipe.geometry import SmartResize as SmartResize
from millrace._recipe.geometry import TileGrid as TileGrid
from millrace._recipe.geometry import check_choice as check_choice
from millrace._recipe.geometry import check_room, fixed_size_of, size_of
from millrace._recipe.step import Step, steps_of
from millrace._recipe.values import Checked, number_of, numbers_of, refused, whole_of
from millrace.errors import InvalidRequest

Layout = Literal["NCHW", "NHWC"]
Channels = Literal["RGB", "BGR", "grey"]
Filter = Literal["nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"]
ValueRange = Literal["unit", "raw"]
Packing = Literal["one_size", "packed"]
CentreRounding = Literal["half_to_even", "down"]
Fidelity = Literal["exact", "fast"]
OnError = Literal["fail", "skip", "zero", "substitute"]
Priority = Literal["low", "normal", "high"]
CacheUse = Literal["off", "index", "packed", "tensors"]
ShardTail = Literal["pad", "drop", "uneven"]


class BlockShuffle(NamedTuple):
    """A shuffle of an epoch for disks on which single reads are dear: blocks in random order, of which a window is mixed.

    A block is so many neighbouring samples of the dataset. Blocks come in random order; the samples of each ``window`` of them are mixed.
    """

    samples: int = 256
    """Of a block; the last one has the rest."""
    window: int = 32
    """Blocks that are mixed with each other."""


Shuffle = bool | Literal["blocks"] | BlockShuffle

DTYPE_BYTES: dict[DType, int] = {"uint8": 1, "float16": 2, "bfloat16": 2, "float32": 4}


@dataclass(frozen=True)
class Patches(Checked):
    """The image stored patch by patch, as vision transformers take it.

    Patches come in groups of ``merge`` x ``merge`` neighbours, groups row by row, patches row by row in their group; each is 3 x
    ``temporal`` x height x width, all frames alike. A batch's tensor is [patches of all images, 3, temporal, height, width], packed or
    not. Images that do not divide into whole groups are errors.

    Attributes:
        size: of a patch, pixels; one number for a square.
        merge: at most 64.
        temporal: at most 16.
    """

    size: Size
    merge: int = 1
    temporal: int = 1

    def __post_init__(self) -> None:
        self._be("size", size_of("Patches.size", self.size))
        self._be_whole("merge", "temporal")


@dataclass(frozen=True)
class Normalise(Checked):
    """``out = (in - mean) / std`` in the unit range, by channel in the order R, G, B. The defaults are ImageNet's."""

    mean: tuple[float, ...] = (0.485, 0.456, 0.406)
    std: tuple[float, ...] = (0.229, 0.224, 0.225)

    def __post_init__(self) -> None:
        for field in ("mean", "std"):
            self._be(field, numbers_of(f"Normalise.{field}", getattr(self, field), None, "a number for each channel, (0.5, 0.5, 0.5)"))


@dataclass(frozen=True)
class Recipe(Checked):
    """What to make of an encoded image. Immutable; use ``dataclasses.replace`` for a variant.

    Transparency is left out, as by Pillow's ``convert("RGB")``: a pixel has the colour that is stored under it.

    Attributes:
        crop: what to cut out before resizing; None: the whole image.
        resize: what size to make of it; None: its own.
        filter: Pillow's resampling filter of that name; all but ``nearest`` antialias.
        centre_crop: cut after resize and pad, from the middle unless ``crop_place`` says otherwise; one number for a square; None: nothing
            is cut.
        flip_probability: of a horizontal flip, in [0, 1].
        normalise: None: none. Not with uint8.
        range: of floats that are not normalised: ``unit`` [0, 1] or ``raw`` [0, 255].
        dtype: the tensor's element type; NumPy's, PyTorch's or JAX's type of that name will do, and is kept as the name.
        layout: the order of its axes; N is the sample.
        channels: their order, or ``grey``: one channel, ITU-R 601 luma as Pillow's ``convert("L")``.
        packing: ``one_size``: one tensor of N images; ``packed``: each image in its own size (``Batch.image``).
        ignore_orientation: true: the stored pixels, whatever EXIF says.
        patches: None: rows, as ``layout`` says; else ``layout`` must be NCHW.
        centre_rounding: of the middle's offset: ``half_to_even`` as torchvision's CenterCrop, ``down`` as transformers.
        steps: of augmentation, in their order; any iterable, kept as a tuple. At most 64 in all, groups and what is in them included.
        erasing: of a rectangle of the finished tensor; None: none. Not with patches.
        crop_place: where ``centre_crop`` is cut: ``centre``, a corner, or ``random``: anywhere, drawn for each sample.
        views: see ``of_views``; empty: one image. What concerns all views (normalise, range, dtype, layout, channels, ignore_orientation,
            centre_rounding, indices) is this recipe's, and is put into them; everything else is theirs, and unset here.
        pad: what is added around what the resize has made; None: nothing.
        random_filters: one of these, drawn for each sample, in the place of ``filter``, which is then unset; at most 8, any iterable,
            kept as a tuple.
        indices: of PNG, BMP, GIF and TIFF files with a palette the indices in it, not its colours; of grey ones, and of lossless WebP
            without colours, the grey: masks. Any other file is an error of its sample. Needs ``channels`` grey and ``filter`` nearest.

    Raises:
        InvalidRequest: a value of the wrong type, or a name that does not exist; the message says the field, and what there is. A centre
            crop that no image has once it is resized. Views that cannot be; says why.
    """

    crop: Crop | None = None
    resize: Resize | None = None
    filter: Filter = "bilinear"
    centre_crop: Size | None = None
    flip_probability: float = 0.0
    normalise: Normalise | None = None
    range: ValueRange = "unit"
    dtype: DType = "uint8"
    layout: Layout = "NCHW"
    channels: Channels = "RGB"
    packing: Packing = "one_size"
    ignore_orientation: bool = False
    patches: Patches | None = None
    centre_rounding: CentreRounding = "half_to_even"
    steps: tuple[Step, ...] = ()
    erasing: Erasing | None = None
    crop_place: CropPlace = "centre"
    views: tuple[Recipe, ...] = ()
    pad: Pad | None = None
    random_filters: tuple[Filter, ...] = ()
    indices: bool = False

    def __post_init__(self) -> None:
        self._be("steps", steps_of("Recipe.steps", self.steps))
        self._be("dtype", dtype_name(self.dtype, "Recipe.dtype"))
        for field, names in _CHOICES.items():
            check_choice(f"Recipe.{field}", getattr(self, field), names)
        for field, (kinds, rule) in _KINDS.items():
            value = getattr(self, field)
            if value is not None and not isinstance(value, kinds):
                raise refused(f"Recipe.{field}", rule, value)
        for field in ("ignore_orientation", "indices"):
            if getattr(self, field) not in (True, False):
                raise refused(f"Recipe.{field}", "True or False", getattr(self, field))
        self._be("flip_probability", number_of("Recipe.flip_probability", self.flip_probability, "a number from 0 to 1"))
        if self.centre_crop is not None:
            self._be("centre_crop", size_of("Recipe.centre_crop", self.centre_crop))
            if self.pad is None:
                check_room(self.resize, self.centre_crop)
        if isinstance(self.random_filters, str) or not isinstance(self.random_filters, Iterable):
            raise refused("Recipe.random_filters", 'names of filters, ("bilinear", "bicubic")', self.random_filters)
        self._be("random_filters", tuple(self.random_filters))
        for each in self.random_filters:
            check_choice("Recipe.random_filters", each, _CHOICES["filter"])
        if self.random_filters and self.filter != "bilinear":
            raise InvalidRequest('Recipe.filter: with random_filters one of those is drawn for each sample; leave it unset, "bilinear"')
        if self.views != ():
            self._take_views(_recipes_of([self.views], "Recipe.views"))

    def _take_views(self, views: tuple[Recipe, ...]) -> None:
        for field in dataclasses.fields(self):
            if field.name not in (*_SHARED, "views") and getattr(self, field.name) != field.default:
                raise InvalidRequest(f"Recipe.{field.name}: with views it is each view's own, and unset in the recipe that has them")
        shared = {name: getattr(self, name) for name in _SHARED}
        self._be("views", tuple(_with(view, shared) for view in views))

    def __repr__(self) -> str:
        """What is not the default."""
        if self.views:
            runs = [(view, len(list(same))) for view, same in itertools.groupby(self.views)]
            return f"Recipe.of_views({', '.join(repr(view) if count == 1 else f'*[{view!r}] * {count}' for view, count in runs)})"
        said = [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in dataclasses.fields(self)
            if getattr(self, field.name) != field.default
        ]
        return f"Recipe({', '.join(said)})"

    @staticmethod
    def train(side: int) -> Recipe:
        """RandomResizedCrop to ``side`` x ``side`` and a flip for every other image. Values as ``dtype`` says: of floats [0, 1].

        ``normalised`` makes it what a model with ImageNet's mean and deviation takes; other sizes are ``dataclasses.replace(recipe,
        resize=ExactSize(Size(width, height)))``.

        Raises:
            InvalidRequest: ``side`` is no whole number.
        """
        side = whole_of("Recipe.train", side, "a number of pixels, the side of a square (else set Recipe.resize)")
        return Recipe(crop=RandomResizedCrop(), resize=ExactSize(Size(side, side)), flip_probability=0.5)

    @staticmethod
    def evaluate(shorter_side: int, crop_side: int) -> Recipe:
        """Shorter side to ``shorter_side`` pixels, then the middle ``crop_side`` x ``crop_side``.

        Raises:
            InvalidRequest: they are no whole numbers, or the crop's is the larger one.
        """
        shorter_side = whole_of("Recipe.evaluate", shorter_side, "two numbers of pixels, of the shorter side and of the crop")
        crop_side = whole_of("Recipe.evaluate", crop_side, "two numbers of pixels, of the shorter side and of the crop")
        if crop_side > shorter_side:
            raise InvalidRequest(
                f"Recipe.evaluate: the crop's side, {crop_side}, is more than the resize's, {shorter_side}, so no image is large enough: "
                "swap them, or pad (Recipe.pad)"
            )
        return Recipe(resize=ShorterSide(shorter_side), centre_crop=Size(crop_side, crop_side))

    @staticmethod
    def thumbnail(longer_side: int) -> Recipe:
        """Each whole image with its longer side made so many pixels; packed, NHWC.

        Raises:
            InvalidRequest: it is no whole number.
        """
        longer_side = whole_of("Recipe.thumbnail", longer_side, "a number of pixels, the longer side's")
        return Recipe(resize=LongerSide(longer_side), layout="NHWC", packing="packed")

    @staticmethod
    def of_views(*recipes: Recipe | Iterable[Recipe]) -> Recipe:
        """Several images of each sample, of one fetch and one decode: as many as recipes, each drawn for itself; at most 64.

            >>> Recipe.of_views(*[Recipe.train(224)] * 2)              # two views, as SimCLR's
            >>> Recipe.of_views(large, large_blurred, [small] * 8)     # ten crops of two sizes, as DINO's

        A batch then has a tensor for each (``Batch.views``), and loaders yield the list of them in the place of one. What the first view
        draws, its recipe alone would draw.

        Args:
            recipes: what to make, each of a fixed size, not packed, without patches and views of its own; an iterable counts as what is in
                it. They agree in normalise, range, dtype, layout, channels, ignore_orientation, centre_rounding and indices.

        Raises:
            InvalidRequest: they are none, or do not agree; says in what.
        """
        views = _recipes_of(recipes, "Recipe.of_views")
        for number, view in enumerate(views):
            for name in _SHARED:
                first, other = getattr(views[0], name), getattr(view, name)
                if first != other:
                    raise InvalidRequest(
                        f"Recipe.of_views: {name} is the same in all views, and is {first!r} in views[0] and {other!r} in views[{number}]"
                    )
        return Recipe(**{name: getattr(views[0], name) for name in _SHARED}, views=views)

    def normalised(self, dtype: AnyDType, by: Normalise | None = None) -> Recipe:
        """This recipe with the output in ``dtype``; floats are normalised (``by``, else ImageNet's values), uint8 is not.

        InvalidRequest: ``by`` beside uint8.
        """
        name = dtype_name(dtype)
        if name == "uint8" and by is not None:
            raise InvalidRequest("Recipe.normalised: uint8 is not normalised; choose float32, float16 or bfloat16, or leave `by` out")
        normalise = None if name == "uint8" else by or Normalise()
        return dataclasses.replace(self, dtype=name, normalise=normalise)

    @property
    def fixed_size(self) -> Size | None:
        """The one size of every image that the recipe makes; None where it depends on the image, or views differ in it.

        Crops of fixed size before a SmartResize, TileGrid or BoundedSides give one size, too, but only the daemon computes it: None.
        What is resized to a bounded size and padded to at least that has one size.
        """
        if self.views:
            sizes = {view.fixed_size for view in self.views}
            return sizes.pop() if len(sizes) == 1 else None
        if self.centre_crop is not None:
            return self.centre_crop
        return fixed_size_of(self.crop, self.resize, self.pad)

    def slot_bytes(self, samples: int) -> int | None:
        """Bytes of a slot that holds ``samples`` images and their records; None where it depends on the images."""
        images = [view._image_bytes() for view in self.views or (self,)]
        known = [image for image in images if image is not None]
        if len(known) < len(images):
            return None
        if self.views:
            return slot_bytes(sum(align_up(samples * image, IMAGE_ALIGNMENT) for image in known), samples)
        return slot_bytes_of_images(known[0], samples)

    def _image_bytes(self) -> int | None:
        size = self.fixed_size
        if size is None:
            return None
        elements = size.width * size.height * (1 if self.channels == "grey" else 3)
        return elements * (self.patches.temporal if self.patches else 1) * DTYPE_BYTES[self.dtype]


def is_of_first_daemons(recipe: Recipe) -> bool:
    """Whether daemons that look at no recipe when a session is opened can make it; they refuse a message that has one."""
    drawn = isinstance(recipe.resize, ScaleJitter | RandomShorterSide) or recipe.random_filters
    newer = recipe.steps or recipe.erasing or recipe.views or recipe.pad or recipe.indices or drawn
    return not newer and recipe.crop_place == "centre"


def described(recipe: Recipe) -> str:
    """Size and type of its images, to follow a noun: " 224 x 224 float32", " in 2 views 224 x 224 and 6 views 96 x 96 float32"."""
    size = recipe.fixed_size
    if recipe.views:
        runs = [(view, len(list(same))) for view, same in itertools.groupby(view.fixed_size for view in recipe.views)]
        told = [
            f"{count} view{'s' if count > 1 else ''}" + (f" {view.width} x {view.height}" if view is not None else "")
            for view, count in runs
        ]
        return f" in {' and '.join(told)} {recipe.dtype}"
    return f" {size.width} x {size.height} {recipe.dtype}" if size is not None and recipe.patches is None else f" {recipe.dtype}"


_SHARED = ("normalise", "range", "dtype", "layout", "channels", "ignore_orientation", "centre_rounding", "indices")
"""What all views of a recipe have in common."""


def _recipes_of(given: Iterable[object], name: str) -> tuple[Recipe, ...]:
    """The recipes in it, one after the other, as views of one."""
    found: list[Recipe] = []
    for each in given:
        several = [each] if isinstance(each, Recipe) or not isinstance(each, Iterable) else each
        for view in several:
            if not isinstance(view, Recipe):
                raise InvalidRequest(f"{name}: takes recipes and iterables of them, not {view!r}")
            if view.views or view.patches or view.packing == "packed":
                what = "has views itself" if view.views else "has patches" if view.patches else "is packed"
                raise InvalidRequest(f"{name}: views[{len(found)}] {what}, which no view does or is")
            found.append(view)
    if not found:
        raise InvalidRequest(f"{name}: there is no recipe")
    return tuple(found)


def _with(view: Recipe, shared: dict[str, Any]) -> Recipe:
    same = all(getattr(view, name) == value for name, value in shared.items())
    return view if same else dataclasses.replace(view, **shared)


_CHOICES = {
    "filter": get_args(Filter),
    "range": get_args(ValueRange),
    "layout": get_args(Layout),
    "channels": get_args(Channels),
    "packing": get_args(Packing),
    "centre_rounding": get_args(CentreRounding),
    "crop_place": get_args(CropPlace),
}

_KINDS: dict[str, tuple[Any, str]] = {
    "crop": (Crop, "CentreCrop(size), RandomResizedCrop(scale, ratio), BoxCrop(box) or GridCell(...)"),
    "resize": (Resize, "ShorterSide(pixels), LongerSide(pixels), ExactSize(Size(width, height)) or another resize of millrace's"),
    "normalise": (Normalise, "Normalise(mean, std), which Recipe.normalised() sets"),
    "patches": (Patches, "Patches(size)"),
    "erasing": (Erasing, "Erasing(probability)"),
    "pad": (Pad, "Pad(left, top, right, bottom) or Pad(to=Size(width, height))"),
}
