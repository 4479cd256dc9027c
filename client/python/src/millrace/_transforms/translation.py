"""Other libraries' transforms as one recipe: what all translations share. Their words are in torchvision.py, timm.py and so on.

Transforms are known by their class's package, name and public attributes, so none of these libraries need be imported.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple, get_args

import numpy as np

from millrace import steps
from millrace._recipe.dtype import DType, dtype_name
from millrace.errors import InvalidRequest, Unsupported
from millrace.recipe import CentreCrop, Crop, CropPlace, Filter, Normalise, Pad, RandomShorterSide, Recipe, Resize, ShorterSide, Size

ORDER = (
    "the daemon's order is: crop, resize, padding, centre crop, flip, steps of augmentation, conversion of the type, normalisation, random "
    "erasing"
)
_KNOWN_CONTAINERS = {("torchvision", "Compose"), ("torch", "Sequential"), ("torch", "ModuleList"), ("albumentations", "Compose")}
_START, _CROPPED, _RESIZED, _PADDED, _CENTRED, _FLIPPED, _STEPPED = range(7)

NO_PAD = Pad()

Window = tuple[CropPlace, tuple[steps.Step, ...]]
"""Where an image is cut out, and the steps that move its pixels."""
Inner = Callable[[Any], tuple[steps.Step, ...]]
"""The steps that a group's transforms are."""


class Words(NamedTuple):
    """One library's transforms, by their classes' names.

    Attributes:
        whole: that change how a recipe goes on; called with the translation and the transform.
        steps: that are steps of augmentation, none or several; called with the transform and what translates those in it.
        moves: of these, they that move pixels and leave their values alone.
        refused: why, and what to do instead.
    """

    whole: Mapping[str, Callable[[Translation, Any], None]]
    steps: Mapping[str, Callable[[Any, Inner], tuple[steps.Step, ...]]]
    moves: frozenset[str]
    refused: Mapping[str, str]


class Language(NamedTuple):
    """What one function translates.

    Attributes:
        name: the function's.
        words: that it knows, by package.
        divided: how what the daemon does is told from what it does not.
    """

    name: str
    words: Mapping[str, Words]
    divided: str = "millrace.torch.split() divides a Compose"

    def recipe(self, transform: Any) -> Recipe:
        """The recipe that does what ``transform`` does.

        Raises:
            Unsupported: names the transform or argument that the daemon does not do, and what to do instead.
        """
        translation = Translation(self)
        try:
            for each in flat(transform):
                translation.add(each)
            return translation.finished()
        except (Unsupported, InvalidRequest) as why:
            raise Unsupported(f"{self.name}: {why}") from None

    def step(self, transform: Any) -> tuple[steps.Step, ...]:
        """Of a group's transform: what it makes of an image of a size that is fixed."""
        found: tuple[steps.Step, ...] = ()
        for each in flat(transform):
            words, name = self.find(each)
            if name in words.steps:
                found += words.steps[name](each, self.step)
            elif words.whole.get(name) is not nothing:
                raise Unsupported(f"{name} in a group: only steps of augmentation are done to some images and not to others")
        return found

    def find(self, transform: Any) -> tuple[Words, str]:
        """The words that know it, and its name there.

        Raises:
            Unsupported: none does, or it is refused.
        """
        if isinstance(transform, partial) and isinstance(transform.func, type):
            raise Unsupported(f"a function that makes the transform: call it first (weights.transforms()); is {transform}")
        name = name_of(transform)
        words = self.words.get(package_of(transform))
        if words is not None and name in words.refused:
            raise Unsupported(f"{name} is not something that the daemon does: {words.refused[name]}")
        if words is not None and (name in words.whole or name in words.steps):
            return words, name
        known = sorted({known for each in self.words.values() for known in (*each.whole, *each.steps)})
        raise Unsupported(
            f"{name} is not something that the daemon does; known are {', '.join(known)}. Apply it to each image that the loader yields "
            f"(given a whole batch it draws once for all of its images; {self.divided}), or keep the other loader"
        )


def name_of(transform: Any) -> str:
    return type(transform).__name__


def package_of(transform: Any) -> str:
    return type(transform).__module__.partition(".")[0]


def nothing(translation: Translation, transform: Any) -> None:
    """No work for the daemon."""


def flat(transform: Any) -> Iterable[Any]:
    """What is in it, one after the other: a list, a ``Compose``, an object that applies its ``transforms``, or the transform itself."""
    if isinstance(transform, (list, tuple)):
        for inner in transform:
            yield from flat(inner)
    elif (package_of(transform), name_of(transform)) in _KNOWN_CONTAINERS and getattr(transform, "p", 1) == 1:
        yield from flat(list(getattr(transform, "transforms", transform)))
    elif _applies_its_transforms(transform):
        yield from flat(transform.transforms)
    else:
        yield transform


def _applies_its_transforms(preset: Any) -> bool:
    """Whether calling it calls the ``Compose`` that is its ``transforms``, once, and nothing else, as torchvision's training presets do."""
    compose = getattr(preset, "transforms", None)
    if (package_of(compose), name_of(compose)) != ("torchvision", "Compose") or not callable(preset):
        return False
    if package_of(preset) in ("torchvision", "torch", "timm"):  # whose own are known by name
        return False
    image, result, called = object(), object(), []

    def transforms(*given: Any) -> object:
        called.append(given)
        return result

    call = getattr(type(preset), "forward", type(preset).__call__)
    try:
        return call(SimpleNamespace(transforms=transforms), image) is result and called == [(image,)]
    except Exception:  # it asks for more than its transforms
        return False


class Translation:
    """The recipe so far, how far it is in the daemon's order, and what torchvision's image would be there.

    Attributes:
        recipe: the recipe so far.
        is_tensor: the image is a tensor there, and no longer a PIL image.
    """

    def __init__(self, language: Language) -> None:
        self.recipe = Recipe()
        self.is_tensor = False
        self._language = language
        self._done = _START
        self._last = "the beginning"
        self._converted_by = ""
        self._windows: tuple[Window, ...] = ()
        self._windows_by = ""
        self._pads_cropped = False

    def add(self, transform: Any) -> None:
        """Goes on by one transform.

        Raises:
            Unsupported: the recipe is as it was.
        """
        words, name = self._language.find(transform)
        before = vars(self).copy()
        try:
            if name in words.whole:
                words.whole[name](self, transform)
            else:
                self.step(name, words.steps[name](transform, self._language.step), moves=name in words.moves)
        except (Unsupported, InvalidRequest):
            vars(self).update(before)
            raise
        self._last = name

    def finished(self) -> Recipe:
        """The recipe.

        Raises:
            Unsupported: it says something that no tensor of its type can hold.
        """
        if self._windows:
            made = self.recipe
            return Recipe.of_views(dataclasses.replace(made, crop_place=place, steps=moved) for place, moved in self._windows)
        made = self.recipe
        if self._pads_cropped and isinstance(made.crop, CentreCrop) and (made.resize, made.pad, made.centre_crop) == (None, None, None):
            made = dataclasses.replace(made, crop=None, pad=Pad(to=made.crop.size), centre_crop=made.crop.size)
        if made.erasing is not None and made.dtype == "uint8":
            return dataclasses.replace(made, erasing=_of_bytes(made.erasing, scaled=False))
        return made

    def crop(self, name: str, crop: Crop) -> None:
        self._at(name, _CROPPED, crop=crop)

    def resize(self, name: str, resize: Resize, sampled: Filter, *drawn: Filter) -> None:
        """With that filter; where there are more, with one of all of them, drawn."""
        exact = {sampled, *drawn} <= {"nearest", "bilinear"} and self.recipe.dtype in ("uint8", "float32") and self.recipe.normalise is None
        if self._converted_by and not exact:
            raise Unsupported(f"{name} after {self._converted_by}: the daemon resizes pixels of 8 bits; put it before {self._converted_by}")
        if self.recipe.channels == "grey":
            raise Unsupported(f"{name} after Grayscale(1): the daemon resizes the colours; put Grayscale behind it")
        filters = {"random_filters": (sampled, *drawn)} if drawn else {"filter": sampled}
        self._at(name, _RESIZED, resize=resize, **filters)

    def pad(self, name: str, pad: Pad) -> None:
        """Around what the resize has made; what adds the same colour to what is padded already is one with it."""
        if pad == NO_PAD:
            return
        is_black = pad.fill == (0, 0, 0) and self.recipe.normalise is None
        if self._converted_by and pad.mode == "constant" and not is_black:
            raise Unsupported(f"{name} after {self._last}: the daemon pads pixels of 8 bits; put it before {self._converted_by}")
        before = self.recipe.pad
        if before is None or self._done != _PADDED:
            self._at(name, _PADDED, pad=pad)
            return
        self._refuse_after_erasing(name)
        if (before.mode, before.fill, before.to) != ("constant", pad.fill, None) or pad.mode != "constant":
            raise Unsupported(f"{name} after {self._last}: the daemon pads once, all with one colour or all alike; make them one")
        sides = {side: getattr(before, side) + getattr(pad, side) for side in ("left", "top", "right", "bottom")}
        self.recipe = dataclasses.replace(self.recipe, pad=dataclasses.replace(pad, **sides))

    def centre_crop(self, name: str, size: Size, *, pads: bool = False) -> None:
        """Before a resize what is cut out of the image, else what is cut of what was made of it; ``pads``: smaller images, with black."""
        if self._done < _RESIZED:
            self.crop(name, CentreCrop(size))
            self._pads_cropped = pads
            return
        if pads and not self.has_room(size):
            self.pad(name, Pad(to=size))
        self.cut(name, size, "centre")

    def cut(self, name: str, size: Size, place: CropPlace) -> None:
        """Of what the resize has made; of the image itself where none came before."""
        room = self.room
        if room is not None and (size.width > room.width or size.height > room.height):
            raise Unsupported(f"{name} to {size.width} x {size.height} is larger than an image of {room.width} x {room.height}")
        self._at(name, _CENTRED, centre_crop=size, crop_place=place)

    def windows(self, name: str, size: Size, windows: tuple[Window, ...]) -> None:
        """Several images of one: each cut there, and then moved so."""
        self.cut(name, size, "centre")
        self._windows, self._windows_by = windows, name

    @property
    def room(self) -> Size | None:
        """The size of every image there; of one whose shorter side is known that side, twice; None: nothing is known."""
        resize, fixed = self.recipe.resize, self.recipe.fixed_size
        if fixed is not None or self.recipe.pad is not None:
            return fixed
        return Size(resize.pixels, resize.pixels) if isinstance(resize, ShorterSide) else None

    def has_room(self, size: Size, more: Pad = NO_PAD) -> bool:
        """Whether every image, padded so as well, is known to be at least that large."""
        least, resize = self.recipe.fixed_size, self.recipe.resize
        if least is None:
            several = resize.sides if isinstance(resize, RandomShorterSide) else [resize.pixels] if isinstance(resize, ShorterSide) else ()
            shorter = min(several, default=1) if getattr(resize, "longest", None) is None else 1
            pad = self.recipe.pad or NO_PAD
            width, height = pad.to or (1, 1)
            least = Size(max(shorter + pad.left + pad.right, width), max(shorter + pad.top + pad.bottom, height))
        return least.width + more.left + more.right >= size.width and least.height + more.top + more.bottom >= size.height

    @property
    def may_pad(self) -> bool:
        """Nothing was done yet that comes after padding."""
        return self._done <= _PADDED

    def flip(self, name: str, probability: float) -> None:
        """The recipe's own where it comes first, else a step."""
        self._refuse_after_windows(name)
        if self.recipe.steps or self.recipe.flip_probability:
            self.step(name, (steps.HorizontalFlip(probability=probability),), moves=True)
            return
        self._refuse_after_erasing(name)
        self._done = max(self._done, _FLIPPED)
        self.recipe = dataclasses.replace(self.recipe, flip_probability=probability)

    def step(self, name: str, added: tuple[steps.Step, ...], *, moves: bool = False) -> None:
        self._refuse_after_windows(name)
        self._refuse_after_erasing(name)
        if not moves and self._converted_by:
            raise Unsupported(
                f"{name} after {self._converted_by}: the daemon augments pixels of 8 bits; put it before {self._converted_by}"
            )
        if not moves and self.recipe.channels == "grey":
            raise Unsupported(f"{name} after Grayscale(1): the daemon augments three channels; put Grayscale behind it")
        if added:
            self._done = _STEPPED
            self.recipe = dataclasses.replace(self.recipe, steps=self.recipe.steps + added)

    def grey(self, name: str) -> None:
        """One channel, of pixels of 8 bits."""
        self._refuse_after_erasing(name)
        if self._converted_by:
            raise Unsupported(f"{name} after {self._converted_by}: put it before {self._converted_by}")
        if self._done < _RESIZED:
            raise Unsupported(f"{name} with one channel before the resize: the daemon resizes the colours; put it behind")
        self.recipe = dataclasses.replace(self.recipe, channels="grey")

    def convert(self, name: str, dtype: Any, *, scaled: bool) -> None:
        """To another type; uint8 that is uint8 stays, and float32 may become a shorter one."""
        wanted = _dtype(dtype)
        if wanted == self.recipe.dtype:
            return
        if self._converted_by and (self.recipe.dtype != "float32" or wanted == "uint8"):
            raise Unsupported(f"{name} to {wanted} after {self._last}; {ORDER}")
        if self._converted_by:
            self.recipe = dataclasses.replace(self.recipe, dtype=wanted)
            return
        erasing = self.recipe.erasing and _of_bytes(self.recipe.erasing, scaled=scaled)
        self._converted_by = name
        self.recipe = dataclasses.replace(self.recipe, dtype=wanted, range="unit" if scaled else "raw", erasing=erasing)

    def normalise(self, name: str, mean: Iterable[Any], std: Iterable[Any]) -> None:
        """Of floats in the unit range."""
        if not self._converted_by or self.recipe.range != "unit" or self.recipe.dtype == "uint8":
            raise Unsupported(f"{name} needs floats in [0, 1]: put ToDtype(torch.float32, scale=True) before it")
        if self.recipe.normalise is not None:
            raise Unsupported(f"{name} after Normalize: once is what the daemon does; make them one")
        normalise = Normalise(tuple(map(number, mean)), tuple(map(number, std)))
        if self.recipe.channels == "grey" and len(normalise.mean) != 1:
            raise Unsupported(f"{name} with {len(normalise.mean)} means for one channel; give one")
        erasing = self.recipe.erasing and _normalised(self.recipe.erasing, normalise)
        self.recipe = dataclasses.replace(self.recipe, normalise=normalise, erasing=erasing)

    def erase(self, name: str, erasing: steps.Erasing) -> None:
        self._refuse_after_windows(name)
        self._refuse_after_erasing(name)
        self.recipe = dataclasses.replace(self.recipe, erasing=erasing)

    @property
    def is_converted(self) -> bool:
        """The image is one of floats there."""
        return bool(self._converted_by)

    def _at(self, name: str, stage: int, **changes: Any) -> None:
        self._refuse_after_erasing(name)
        if self._done >= stage:
            raise Unsupported(f"{name} after {self._last}; {ORDER}")
        self._done = stage
        self.recipe = dataclasses.replace(self.recipe, **changes)

    def _refuse_after_windows(self, name: str) -> None:
        if self._windows_by:
            raise Unsupported(
                f"{name} after {self._windows_by}: behind it the daemon only converts, normalises and makes grey; recipes of one's own may "
                "augment each image: Recipe.of_views"
            )

    def _refuse_after_erasing(self, name: str) -> None:
        if self.recipe.erasing is not None:
            raise Unsupported(f"{name} after RandomErasing: the daemon erases last, and once; put RandomErasing behind it")


def number(value: Any) -> float:
    """A float; of a single-precision tensor the shortest that it may come from: 0.485, where Python would say 0.48500001430511475."""
    if str(getattr(value, "dtype", "")).endswith("float32"):
        return float(str(np.float32(float(value))))
    return float(value)


def _of_bytes(erasing: steps.Erasing, *, scaled: bool) -> steps.Erasing:
    """What overwrote pixels of 8 bits, which drops fractions, as what overwrites those of the finished type."""
    if isinstance(erasing.value, str):
        raise Unsupported("RandomErasing with random values before the image is one of floats: put it behind Normalize")
    values = [int(value) for value in _values(erasing)]
    if not all(0 <= value <= 255 for value in values):
        raise Unsupported(f"RandomErasing with {erasing.value} of pixels of 8 bits: give values from 0 to 255")
    return _with_values(erasing, [float(np.float32(value) / np.float32(255)) if scaled else float(value) for value in values])


def _normalised(erasing: steps.Erasing, by: Normalise) -> steps.Erasing:
    """What was overwritten before the normalisation, in single precision as torchvision does it, as what overwrites its result."""
    if isinstance(erasing.value, str):
        raise Unsupported("RandomErasing with random values before Normalize, which would change them: put it behind Normalize")
    values, mean, std = (np.asarray(each, np.float32) for each in (_values(erasing), by.mean, by.std))
    return _with_values(erasing, [float(value) for value in np.atleast_1d((values - mean) / std)])


def _values(erasing: steps.Erasing) -> list[float]:
    return list(erasing.value) if isinstance(erasing.value, tuple) else [float(erasing.value)]


def _with_values(erasing: steps.Erasing, values: list[float]) -> steps.Erasing:
    one = len(set(values)) == 1
    return dataclasses.replace(erasing, value=values[0] if one else (values[0], values[1], values[2]))


def _dtype(dtype: Any) -> DType:
    try:
        return dtype_name(dtype)
    except InvalidRequest:
        raise Unsupported(f"conversion to {dtype}; the daemon makes {', '.join(get_args(DType))}") from None
