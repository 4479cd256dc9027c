"""Images and their segmentation masks, cut, resized, flipped and moved alike.

    >>> pairs = millrace.Pairs.of_folders("/data/images", "/data/masks")
    >>> loader = millrace.torch.Loader(pairs, millrace.Recipe.train(512), batch_size=16, shuffle=True)
    >>> for images, masks in loader:                      # masks: uint8 N x H x W
    ...     loss = cross_entropy(model(images), masks.long(), ignore_index=255)

Random choices are a function of (seed, epoch, sample id, number of the step) and of the picture's size. So masks are a second epoch in
the same order, with a recipe of the same geometry that reads the nearest pixel: ``mask_recipe`` makes it.
"""

from __future__ import annotations

import dataclasses
import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

import numpy as np

from millrace import steps as known
from millrace._data.file_parts import FileParts, source_at
from millrace._loader.options import whole_number
from millrace._wire.messages import path_text
from millrace.errors import InvalidRequest, Unsupported
from millrace.recipe import Recipe
from millrace.sample_list import Samples
from millrace.samples import AnyPath, Part
from millrace.steps import Step

_COLOURS = (
    known.Grayscale,
    known.Invert,
    known.AutoContrast,
    known.Equalize,
    known.Posterize,
    known.Solarize,
    known.Sharpness,
    known.ColorJitter,
    known.GaussianBlur,
    known.PillowBlur,
)
_FLIPS = (known.HorizontalFlip, known.VerticalFlip)
_SAMPLED = (known.Rotation, known.Affine, known.Perspective)
_FILL = 255
_GROUPS = (known.Sequence, known.AnyOrder, known.OneOf)


class Pairs:
    """Images, each with the mask of its classes. Pair i is ``images[i]`` and ``masks[i]``. Immutable.

    The loaders take it as their dataset and yield ``(images, masks)``. Masks are uint8 [N, H, W], in shared memory as the images are; on
    the loader's device. A loss that wants int64 is given ``masks.long()``, which is a copy.

    A pair is good if both files are, and if the mask is as large as its image: else it is that sample's error, one a pair, and
    ``on_error`` is about the pair. With ``zero`` the image is blank and its mask is all ``fill``.

    Masks are PNG, BMP, GIF and TIFF files: with a palette (Pillow's mode P, as PASCAL VOC's), whose indices are the classes, or grey (mode
    L), whose levels are; or lossless WebP files whose pixels are all grey. Of a GIF or TIFF the first picture counts. Any other file is
    its pair's error. Grey PNG of 1 or 16 bits, whose levels would not be their numbers, raise ``Unsupported``, with how to convert them.
    """

    def __init__(
        self,
        pairs: Any,
        *,
        root: AnyPath | None = None,
        fill: int | None = None,
        erase: bool | None = None,
        drawn_upright: bool | None = None,
    ) -> None:
        """Checks them; opens no file.

        Args:
            pairs: ``[(image_path, mask_path), ...]``, beneath the daemon's roots, or NumPy's array of such, [N, 2]; each a path or a
                ``millrace.Part(path, offset, length)``, a part of a file; or an object with the
                lists ``images`` and ``masks`` of such paths, as torchvision's ``VOCSegmentation``, which has no transforms then: the
                loader has them; or other ``Pairs``, whose ``fill``, ``erase`` and ``drawn_upright`` are kept unless they are given.
            root: relative paths are relative to it; None: the current folder.
            fill: the class of what no mask covers, which the loss ignores: 0 to 255. None: 255.
            erase: the rectangle of ``Recipe.erasing`` is ``fill`` in the mask, too; else, and with None, the image alone is erased.
            drawn_upright: the masks were drawn over the images as EXIF turns them; not with ``Recipe(ignore_orientation=True)``. Else, and
                with None, a mask beside an image that EXIF turns must be turned by EXIF likewise; where masks were drawn over the stored
                pixels, say ``Recipe(ignore_orientation=True)``.

        Raises:
            InvalidRequest: they are no pairs of paths; says which. Or another argument is none.
        """
        images, masks = _lists_of(pairs)
        of = pairs if isinstance(pairs, Pairs) else None
        self.images: Sequence[str] = Samples(images, root=root).paths
        """Absolute, as ``os`` has them; of parts their names for people."""
        self.masks: Sequence[str] = Samples(masks, root=root).paths
        """As many."""
        self.fill: int = _level(fill) if fill is not None else of.fill if of is not None else _FILL
        """See ``__init__``, and so are the others."""
        self.erase: bool = _flag("erase", erase, of.erase if of is not None else False)
        self.drawn_upright: bool = _flag("drawn_upright", drawn_upright, of.drawn_upright if of is not None else False)

    @staticmethod
    def of_folders(
        images: AnyPath,
        masks: AnyPath,
        *,
        image_endings: str | Iterable[str] = ("jpg", "jpeg", "png", "webp"),
        mask_endings: str | Iterable[str] = ("png", "bmp", "gif", "tif", "tiff", "webp"),
        image_suffix: str = "",
        mask_suffix: str = "",
        **options: Any,
    ) -> Pairs:
        """Two folders whose files are named alike: ``images/a/1.jpg`` and ``masks/a/1.png``. In byte order of the images' paths.

            >>> Pairs.of_folders("leftImg8bit/train", "gtFine/train", image_suffix="_leftImg8bit", mask_suffix="_gtFine_labelTrainIds")

        Args:
            images: a folder, with those beneath it. Links to folders are followed; a folder is taken once, by its own path rather than a
                link's.
            masks: likewise. One without an image is left out.
            image_endings: of the files in it that are images, in any case: ``"png"``, ``["jpg", "png"]``.
            mask_endings: likewise.
            image_suffix: what an image's name has before its ending and the mask's has not; files without it are none.
            mask_suffix: likewise.
            options: as for ``Pairs``.

        Raises:
            InvalidRequest: one is no folder, or cannot be read; an image has no mask, or two; or there is none; endings are no names.
        """
        found = _files("images", images, image_endings, image_suffix)
        beside = _files("masks", masks, mask_endings, mask_suffix)
        missing = sorted(found.keys() - beside.keys())
        if missing:
            raise InvalidRequest(
                f"Pairs: {len(missing)} of {len(found)} images have no mask in {path_text(os.fsdecode(masks))}, such as "
                f"{path_text(found[missing[0]])}"
            )
        if not found:
            raise InvalidRequest(f"Pairs: there is no image in {path_text(os.fsdecode(images))}")
        ordered = sorted(found, key=lambda name: os.fsencode(found[name]))
        return Pairs([(found[name], beside[name]) for name in ordered], **options)

    @staticmethod
    def of_shards(
        source: Any, *, image: str | Sequence[str] = ("jpg", "jpeg", "webp"), mask: str | Sequence[str] = "png", **options: Any
    ) -> Pairs:
        """Two members of each sample of tar shards: ``a/1.jpg`` and ``a/1.png``.

        Args:
            source: as of ``Shards``.
            image: extensions of the images, ``"jpg;webp"`` or a list; of each sample the first that it has. A key without one is no sample.
            mask: likewise of the masks.
            options: as for ``Pairs``.

        Raises:
            InvalidRequest: an image has no mask; says which. Else as ``Shards``.
        """
        from millrace._shards.masks import images_and_masks

        return Pairs(images_and_masks(source, image, mask), **options)

    def subset(self, ids: Iterable[int] | Iterable[bool]) -> Pairs:
        """Those of its pairs, in that order: of a split's.

        Args:
            ids: numbers of pairs, each as often as it comes; or a truth value for each pair, and then those that are true.

        Raises:
            InvalidRequest: there is none, or one is no number of a pair; says which.
        """
        numbers = _chosen(ids, len(self))
        chosen = [(source_at(self.images, number), source_at(self.masks, number)) for number in numbers]
        return Pairs(chosen, fill=self.fill, erase=self.erase, drawn_upright=self.drawn_upright)

    def __len__(self) -> int:
        return len(self.images)

    @overload
    def __getitem__(self, index: int) -> tuple[str | Part, str | Part]: ...

    @overload
    def __getitem__(self, index: slice) -> Pairs: ...

    def __getitem__(self, index: int | slice) -> tuple[str | Part, str | Part] | Pairs:
        if isinstance(index, slice):
            return self.subset(range(len(self))[index])
        number = range(len(self))[index]
        return source_at(self.images, number), source_at(self.masks, number)

    def __iter__(self) -> Iterator[tuple[str | Part, str | Part]]:
        return (self[number] for number in range(len(self)))

    def __repr__(self) -> str:
        return f"<millrace.Pairs {path_text(self.images[0])} and more: {len(self)}>"


def mask_recipe(recipe: Recipe, fill: int = _FILL, *, erase: bool = False) -> Recipe:
    """The recipe of the masks of images that ``recipe`` makes: the same place of the same picture, classes in the place of colours.

    Crop, resize, window, flip and steps that move pixels are the same, drawn alike, and read the nearest pixel; steps that change colours
    are there and never done, so that the others keep their numbers; one channel, uint8, not normalised, of palettes the indices.

    Args:
        recipe: the images'.
        fill: the class of what is moved in from outside, 0 to 255.
        erase: erase the same rectangles, with ``fill``; else nothing is erased.

    Raises:
        Unsupported: a step moves pixels or changes colours, as it is drawn (RandAugment, ...), or the recipe makes views or patches; says
            which.
        InvalidRequest: ``fill`` is no class.
    """
    level = _level(fill)
    if recipe.views:
        raise Unsupported("mask_recipe: the recipe makes views (Recipe.of_views): make the masks' of each view's recipe")
    if recipe.patches is not None:
        raise Unsupported("mask_recipe: the recipe makes patches, which have three channels; a mask has one")
    erasing = None
    if erase and recipe.erasing is not None:
        erasing = dataclasses.replace(recipe.erasing, value=float(level))
    return dataclasses.replace(
        recipe,
        filter="nearest",
        normalise=None,
        range="unit",
        dtype="uint8",
        layout="NCHW",
        channels="grey",
        random_filters=(),
        pad=dataclasses.replace(recipe.pad, fill=(level,) * 3) if recipe.pad is not None else None,
        indices=True,
        steps=tuple(_of_mask(step, level) for step in recipe.steps),
        erasing=erasing,
    )


def _of_mask(step: Step, fill: int) -> Step:
    kind: type[Step] = type(step)
    if kind in _COLOURS:
        return dataclasses.replace(step, probability=0.0)
    if kind in _FLIPS:
        return step
    levels = (fill, fill, fill)
    if isinstance(step, known.Shift):
        return dataclasses.replace(step, fill=levels)
    if kind in _SAMPLED:
        return dataclasses.replace(step, sampling="nearest", fill=levels)  # type: ignore[call-arg]
    if isinstance(step, _GROUPS):
        return dataclasses.replace(step, steps=tuple(_of_mask(inner, fill) for inner in step.steps))
    raise Unsupported(
        f"mask_recipe: {kind.__name__} draws steps that move pixels and steps that change colours, and a mask has the former alone: "
        "take steps that do one of them (Rotation, Affine, Perspective, Shift; ColorJitter, Sharpness, ...)"
    )


def _level(fill: Any) -> int:
    rule = "Pairs: fill is a class from 0 to 255"
    level = whole_number(fill, rule)
    if not 0 <= level <= 255:
        raise InvalidRequest(f"{rule}, not {fill!r}")
    return level


def _flag(name: str, given: Any, default: bool) -> bool:
    if given is None:
        return default
    if not isinstance(given, (bool, np.bool_)):
        raise InvalidRequest(f"Pairs: {name} is True or False, not {given!r}")
    return bool(given)


def _chosen(ids: Any, count: int) -> list[int]:
    """Numbers of pairs, of which there are ``count``."""
    rule = f"Pairs: a subset is of whole numbers from 0 to {count - 1}, or a truth value for each pair"
    given = ids.tolist() if hasattr(ids, "tolist") else ids
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise InvalidRequest(f"{rule}, not {ids!r}")
    given = list(given)
    if given and all(isinstance(each, (bool, np.bool_)) for each in given):
        if len(given) != count:
            raise InvalidRequest(f"Pairs: there are {len(given)} truth values for {count} pairs: give one for each, or the pairs' numbers")
        return _some([number for number, each in enumerate(given) if each])
    numbers = [whole_number(each, rule) for each in given]
    for number in numbers:
        if not 0 <= number < count:
            raise InvalidRequest(f"{rule}, not {number}")
    return _some(numbers)


def _some(numbers: list[int]) -> list[int]:
    if not numbers:
        raise InvalidRequest("Pairs: none is left of the subset")
    return numbers


def _lists_of(pairs: Any) -> tuple[Sequence[Any], Sequence[Any]]:
    if isinstance(pairs, (str, bytes, os.PathLike)):
        raise InvalidRequest("Pairs: takes [(image_path, mask_path), ...]; of two folders Pairs.of_folders(images, masks) makes them")
    if hasattr(pairs, "images") and hasattr(pairs, "masks"):
        has = [name for name in ("transform", "target_transform", "transforms") if getattr(pairs, name, None) is not None]
        if has:
            raise InvalidRequest(f"Pairs: the {type(pairs).__name__} has {has[0]}: make it without, and give the transform to the loader")
        images, masks = (each if isinstance(each, FileParts) else list(each) for each in (pairs.images, pairs.masks))
        if len(images) != len(masks):
            raise InvalidRequest(f"Pairs: the {type(pairs).__name__} has {len(images)} images and {len(masks)} masks")
        return images, masks
    rows = pairs.tolist() if isinstance(pairs, np.ndarray) else list(pairs) if isinstance(pairs, Iterable) else [pairs]
    rows = [row.tolist() if isinstance(row, np.ndarray) else row for row in rows] if isinstance(rows, list) else [rows]
    for number, row in enumerate(rows):
        if not isinstance(row, (tuple, list)) or len(row) != 2:
            raise InvalidRequest(f"Pairs: number {number} is {row!r}, and a pair is (image_path, mask_path)")
    if not rows:
        raise InvalidRequest("Pairs: there are none")
    return [row[0] for row in rows], [row[1] for row in rows]


def _files(what: str, folder: AnyPath, endings: str | Iterable[str], suffix: str) -> dict[str, str]:
    """By the name that image and mask share. Hidden ones do not count."""
    base, found = os.path.abspath(os.fsdecode(folder)), dict[str, str]()
    taken = _plain(endings, what)
    try:
        os.scandir(base).close()
    except OSError as why:
        raise InvalidRequest(f"Pairs: the folder of {what}, {path_text(base)}: {why.strerror}; give a folder that you can read") from None
    for place, files in _folders(base):
        for name in files:
            stem, ending = os.path.splitext(name)
            if name.startswith(".") or ending[1:].lower() not in taken or not stem.endswith(suffix):
                continue
            key = os.path.relpath(os.path.join(place, stem[: len(stem) - len(suffix)]), base)
            if key in found:
                raise InvalidRequest(
                    f"Pairs: {path_text(found[key])} and {path_text(os.path.join(place, name))} are named alike: say which ending the "
                    f"{what} have ({what[:-1]}_endings=)"
                )
            found[key] = os.path.join(place, name)
    return found


def _plain(endings: Any, what: str) -> set[str]:
    names = [endings] if isinstance(endings, str) else list(endings) if isinstance(endings, Iterable) else [endings]
    if not names or not all(isinstance(name, str) for name in names):
        raise InvalidRequest(f'Pairs: endings of {what} are names, "png" or ["jpg", "png"], not {endings!r}')
    return {name.lstrip(".").lower() for name in names}


def _folders(base: str) -> Iterator[tuple[str, list[str]]]:
    """Each folder beneath it and what files it has. Of a folder's several paths the one without links, else the first link's."""
    seen, linked = set[tuple[int, int]](), deque([base])
    while linked:
        for place, folders, files in os.walk(linked.popleft()):
            status = os.stat(place)
            if (status.st_dev, status.st_ino) in seen:
                folders.clear()
                continue
            seen.add((status.st_dev, status.st_ino))
            named = [name for name in sorted(folders) if not name.startswith(".")]
            links = {name for name in named if os.path.islink(os.path.join(place, name))}
            linked.extend(os.path.join(place, name) for name in named if name in links)
            folders[:] = [name for name in named if name not in links]
            yield place, files
