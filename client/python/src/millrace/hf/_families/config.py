"""Reading a preprocessor_config.json: every key is either used, known to change nothing, or an error that names it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, NoReturn

from millrace.errors import InvalidRequest, NotFound, Unsupported
from millrace.recipe import Filter, Size

FILE_NAMES = ("preprocessor_config.json", "processor_config.json")

# Of no consequence for the pixels, whatever they say.
_SILENT = frozenset(
    {
        "_name_or_path",
        "_valid_processor_keys",
        "auto_map",
        "crop_size",  # counts with do_center_crop only
        "default_to_square",  # counts for a size that is a bare number only
        "device",
        "disable_grouping",
        "feature_extractor_type",
        "image_processor_type",
        "image_seq_length",
        "processor_class",
        "return_tensors",
    }
)

# Of no consequence as long as they say this, or nothing.
_HARMLESS: dict[str, tuple[Any, ...]] = {
    "data_format": ("channels_first",),
    "do_center_crop": (False,),
    "do_pad": (False,),
    "do_reduce_labels": (False,),
    "input_data_format": (),
    "pad_size": (),
}

ABSENT = frozenset({"image_size", "max_pixels", "max_size", "min_pixels"})
"""Of these transformers takes null as if they were not there."""

_NEEDED = {
    "do_resize": ("size", "resample"),
    "do_center_crop": ("crop_size",),
    "do_rescale": ("rescale_factor",),
    "do_normalize": ("image_mean", "image_std"),
}
_MOST = 2**31 - 1
_LARGEST = 1e30  # of numbers that pixels are worked out with

_FILTERS: dict[int, Filter] = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic", 4: "box", 5: "hamming"}
"""By the number of ``PIL.Image.Resampling``."""


def load(config: str | os.PathLike[str] | Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """A name for messages, and the image processor's own part of the configuration.

    Args:
        config: the file, the folder that holds it, or what it holds.

    Raises:
        NotFound: there is no such file.
        InvalidRequest: it is not a JSON object.
    """
    if isinstance(config, Mapping):
        return "config", _image_part("config", dict(config))
    path = os.fspath(config)
    if os.path.isdir(path):
        path = next((found for name in FILE_NAMES if os.path.exists(found := os.path.join(path, name))), path)
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
    except OSError as why:
        raise NotFound(f"{path}: {why.strerror}; give a preprocessor_config.json, its folder, or what it holds") from why
    except ValueError as why:
        raise InvalidRequest(f"{path}: not JSON: {why}") from why
    if not isinstance(content, dict):
        raise InvalidRequest(f"{path}: must hold a JSON object, holds a {type(content).__name__}")
    return os.path.basename(path), _image_part(os.path.basename(path), content)


def _image_part(name: str, config: dict[str, Any]) -> dict[str, Any]:
    inner = config.get("image_processor")  # of a processor_config.json
    if inner is None:
        return config
    if not isinstance(inner, dict):
        raise InvalidRequest(f"{name}: key image_processor must hold an object")
    return inner


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


@dataclass(frozen=True)
class Beside:
    """What counts for a call beside its configuration.

    Attributes:
        made_of: the configuration that the processor was made of.
        asked: keys that the call itself gives.
        resample: what the processor says; None: nothing.
        background: its ``background_color``; None: what follows from ``made_of``.
    """

    made_of: Mapping[str, Any]
    asked: frozenset[str] = frozenset()
    resample: Any = None
    background: tuple[int, int, int] | None = None


class Keys:
    """A configuration while it is read. Every ``take`` marks a key as used; ``finish`` complains about those that are left.

    What is null is off, if it is a flag. What else is null is missing, which is an error where a flag asks for it.
    """

    def __init__(self, name: str, config: Mapping[str, Any], beside: Beside) -> None:
        self._name = name
        self._config = {key: value for key, value in config.items() if value is not None}
        self._null = {key for key, value in config.items() if value is None and key not in ABSENT}
        self._used: set[str] = set()
        self._read: set[str] = set()
        self._on: set[str] = set()
        self.beside = beside
        """Of a call."""

    def wrong(self, key: str, what: str) -> InvalidRequest:
        """The error for a value that makes no sense."""
        return InvalidRequest(f"{self._name}: key {key}: {what}")

    def unsupported(self, key: str, what: str) -> NoReturn:
        """Raises the error for a well-formed wish that is not fulfilled."""
        raise Unsupported(f"{self._name}: key {key}: {what}")

    def take(self, key: str, otherwise: Any = None) -> Any:
        """Its value, or ``otherwise`` where it is absent or null."""
        self._used.add(key)
        self._read.add(key)
        return self._config.get(key, otherwise)

    def only_in_a_file(self, *keys: str) -> None:
        """Accepts keys that transformers' class keeps and does not look at, but not from a call, whose wish they would be."""
        for key in keys:
            if key in self.beside.asked:
                self.unsupported(key, "this processor does not look at it: give `size`")
        self.accept(*keys)

    def is_null(self, key: str) -> bool:
        """Whether it is there and null."""
        return key in self._null

    def accept(self, *keys: str) -> None:
        """Marks keys as known: they do not count for the pixels here, whatever they say."""
        self._used.update(keys)

    def only(self, key: str, *values: Any) -> None:
        """Raises Unsupported unless it says one of ``values``, or nothing."""
        value = False if self.is_null(key) and bool in map(type, values) else self.take(key)
        self.accept(key)
        if value is not None and value not in values:
            self.unsupported(key, f"{value!r} is not supported; only {' or '.join(map(repr, values))}")

    def has(self, key: str) -> bool:
        """Whether it is there and not null."""
        return key in self._config

    def flag(self, key: str, otherwise: bool) -> bool:
        """A truth value."""
        value = False if self.is_null(key) else self.take(key, otherwise)
        self.accept(key)
        if not isinstance(value, bool):
            raise self.wrong(key, f"must be true or false, is {value!r}")
        if value:
            self._on.add(key)
        return value

    def count(self, key: str, otherwise: int, most: int = _MOST) -> int:
        """A whole number of at least 1."""
        if self.is_null(key):
            raise self.wrong(key, "is null, and this processor needs it")
        value = self._positive(key, self.take(key, otherwise))
        if value > most:
            raise self.wrong(key, f"must be at most {most}, is {value}")
        return value

    def number(self, key: str, otherwise: float) -> float:
        """A finite number above 0."""
        value = self.take(key, otherwise)
        if not _is_number(value) or not 1 / _LARGEST < value < _LARGEST:
            raise self.wrong(key, f"must be a number above 0, is {value!r}")
        return float(value)

    def channels(self, key: str, otherwise: Iterable[float]) -> tuple[float, float, float]:
        """One number a channel; a number that is not in a list counts for all three."""
        value = self.take(key, list(otherwise))
        values = value if isinstance(value, (list, tuple)) else [value] * 3
        if len(values) != 3:
            raise self.wrong(key, f"must have one number for each of three channels, is {value!r}")
        if not all(_is_number(v) and -_LARGEST < v < _LARGEST for v in values):
            raise self.wrong(key, f"must hold numbers, is {value!r}")
        red, green, blue = values
        return float(red), float(green), float(blue)

    def filter(self, key: str, otherwise: Filter) -> Filter:
        """Pillow's resampling filter, by its number."""
        value = self.take(key)
        if value is None:
            return otherwise
        if isinstance(value, int) and not isinstance(value, bool) and value in _FILTERS:
            return _FILTERS[value]
        raise self.wrong(key, f"must be one of {_FILTERS}, is {value!r}")

    def size(self, key: str, otherwise: Mapping[str, int], number: tuple[str, ...], forms: Iterable[tuple[str, ...]]) -> dict[str, int]:
        """A size as ``{"height": ..., "width": ...}``, ``{"shortest_edge": ...}`` and the like.

        Args:
            key: its name.
            otherwise: where it is absent.
            number: the keys that a bare number stands for; a list stands for height and width.
            forms: the sets of keys that are understood here.
        """
        value = self.take(key, dict(otherwise))
        if isinstance(value, int) and not isinstance(value, bool):
            value = dict.fromkeys(number, value)
        elif isinstance(value, (list, tuple)) and len(value) == 2:
            value = dict(zip(("height", "width"), value, strict=True))
        if not isinstance(value, Mapping):
            raise self.wrong(key, f"must be a number or an object with height and width and the like, is {value!r}")
        held = {name: side for name, side in value.items() if side is not None}
        forms = list(forms)
        if set(held) not in [set(form) for form in forms]:
            understood = " or ".join("{" + ", ".join(form) + "}" for form in forms)
            self.unsupported(key, f"this processor understands {understood}; this is {dict(value)!r}")
        return {name: self._positive(f"{key}.{name}", side) for name, side in held.items()}

    def sizes(self, key: str, otherwise: list[list[int]]) -> tuple[Size, ...]:
        """A list of heights and widths."""
        value = self.take(key, otherwise)
        pairs = value if isinstance(value, (list, tuple)) else []
        if not pairs or not all(isinstance(pair, (list, tuple)) and len(pair) == 2 for pair in pairs):
            raise self.wrong(key, f"must be a list of [height, width], is {value!r}")
        return tuple(Size(self._positive(key, width), self._positive(key, height)) for height, width in pairs)

    def exact_size(self, key: str, otherwise: Mapping[str, int]) -> Size:
        """A size as height and width, or a number for a square."""
        size = self.size(key, otherwise, ("height", "width"), [("height", "width")])
        return Size(size["width"], size["height"])

    def finish(self, processor: str) -> None:
        """Raises Unsupported for a key that nobody has used and that may change the pixels.

        Raises InvalidRequest for one that is null and that a flag asks for.
        """
        for flag, needed in _NEEDED.items():
            missing = sorted(self._null & self._read & set(needed)) if flag in self._on else []
            if missing:
                raise self.wrong(missing[0], f"is null, and {flag} needs it")
        for key in sorted(self._config.keys() - self._used - _SILENT):
            if key not in _HARMLESS:
                self.unsupported(key, f"not known for {processor}; take it out if it does not change the pixels")
            if self._config[key] not in _HARMLESS[key]:
                self.unsupported(key, f"{self._config[key]!r} is not supported for {processor}")

    def _positive(self, key: str, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise self.wrong(key, f"must be a whole number of at least 1, is {value!r}")
        if value > _MOST:
            raise self.wrong(key, f"must be at most {_MOST}, is {value}")
        return value
