"""Our values as the daemon's messages, and back. Pure functions; the enumerations' order is the schema's."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import re
from collections.abc import Iterable
from typing import Any, get_args

from millrace import recipe
from millrace._wire import schema as _schema
from millrace._wire.uncopied_images import LARGE
from millrace.errors import Error, InvalidRequest, ResourceExhausted, SampleError, SampleFailed, Unsupported, error_class
from millrace.recipe import Box, Recipe, Size, check_choice
from millrace.ring import RingRoom
from millrace.samples import AnyPath, DatasetSample, Part, Path, Sample, Source, part_bounds

_LONGEST_PATH = 4096  # letters: what has more is no path


_choices = functools.lru_cache(get_args)


def _number(name: str, value: object, literal: Any) -> int:
    return check_choice(name, value, _choices(literal)) + 1  # 0 is UNSPECIFIED


def fidelity_number(value: str) -> int:
    """Number of an ``enum Fidelity``."""
    return _number("fidelity", value, recipe.Fidelity)


def on_error_number(value: str) -> int:
    """Number of an ``enum OnError``."""
    return _number("on_error", value, recipe.OnError)


def priority_number(value: str) -> int:
    """Number of an ``enum Priority``."""
    return _number("priority", value, recipe.Priority)


def fill_shuffle(start: Any, shuffle: recipe.Shuffle) -> None:
    """Of a ``StartEpoch``. Raises InvalidRequest: it is none."""
    if shuffle == "blocks":
        shuffle = recipe.BlockShuffle()
    if isinstance(shuffle, str):
        raise InvalidRequest(f'epoch: shuffle is True, False, "blocks" or a BlockShuffle, not {shuffle!r}')
    if isinstance(shuffle, recipe.BlockShuffle):
        start.block_samples, start.window_blocks = shuffle
    start.shuffle = bool(shuffle)


def shard_tail_number(value: str) -> int:
    """Number of an ``enum ShardTail``."""
    return _number("shard_tail", value, recipe.ShardTail)


def dtype_name(number: int) -> recipe.DType:
    """The element type of a handle.

    Raises:
        Unsupported: one that this package does not know.
    """
    names: tuple[recipe.DType, ...] = _choices(recipe.DType)
    if not 1 <= number <= len(names):
        raise Unsupported(
            f"the batch has elements of a type ({number}) that this package does not know; "
            "install the Python package and millraced of the same version"
        )
    return names[number - 1]


def cache_fields(use: str, at_once: object) -> dict[str, Any]:
    """What of an ``OpenSessionRequest`` says it: nothing for the defaults, which an older daemon knows as well.

    Raises:
        InvalidRequest: none of the words, or no bool.
    """
    number = _number("cache", use, recipe.CacheUse)
    if not isinstance(at_once, bool):
        raise InvalidRequest(f"session: cache_at_once is True or False, not {at_once!r}")
    fields = {"cache": number if use != "tensors" else 0, "cache_at_once": at_once}
    return {name: value for name, value in fields.items() if value}


def _fill_size(out: Any, size: Size) -> None:
    out.width, out.height = size


def _fill_box(out: Any, box: Box) -> None:
    out.left, out.top, out.width, out.height = box


def _fill_crop(out: Any, crop: recipe.Crop) -> None:
    if isinstance(crop, recipe.CentreCrop):
        _fill_size(out.centre, crop.size)
    elif isinstance(crop, recipe.RandomResizedCrop):
        random = out.random_resized
        random.min_scale, random.max_scale = crop.scale
        random.min_ratio, random.max_ratio = crop.ratio
    elif isinstance(crop, recipe.GridCell):
        cell = out.cell
        cell.columns, cell.rows, cell.column, cell.row = crop.columns, crop.rows, crop.column, crop.row
    else:
        _fill_box(out.box, crop.box)


def _fill_resize(out: Any, resize: recipe.Resize) -> None:
    if isinstance(resize, recipe.ShorterSide):
        out.shorter_side = resize.pixels
        if resize.longest is not None:
            out.longest = resize.longest
    elif isinstance(resize, recipe.LongerSide):
        out.longer_side = resize.pixels
    elif isinstance(resize, recipe.SmartResize):
        smart = out.smart
        smart.factor, smart.min_pixels, smart.max_pixels = resize.factor, resize.min_pixels, resize.max_pixels
    elif isinstance(resize, recipe.TileGrid):
        _fill_size(out.tile_grid.tile, resize.tile)
        out.tile_grid.min_tiles, out.tile_grid.max_tiles = resize.min_tiles, resize.max_tiles
    elif isinstance(resize, recipe.BoundedSides):
        out.bounded.shortest, out.bounded.longest = resize.shortest, resize.longest
    elif isinstance(resize, recipe.ScaleJitter):
        _fill_size(out.scale_jitter.target, resize.target)
        out.scale_jitter.scale.low, out.scale_jitter.scale.high = resize.scale
    elif isinstance(resize, recipe.RandomShorterSide):
        out.random_shorter_side.SetInParent()
        out.random_shorter_side.sides.extend(resize.sides)
        if resize.longest is not None:
            out.random_shorter_side.longest = resize.longest
    else:
        _fill_size(out.exact, resize.size)


def _fill_pad(out: Any, pad: recipe.Pad) -> None:
    out.SetInParent()
    out.left, out.top, out.right, out.bottom = pad.left, pad.top, pad.right, pad.bottom
    if pad.to is not None:
        _fill_size(out.to, pad.to)
    out.place = _number("Pad.place", pad.place, recipe.CropPlace)
    out.mode = _number("Pad.mode", pad.mode, recipe.PadMode)
    out.fill = bytes(pad.fill)


def _fill_patches(out: Any, patches: recipe.Patches) -> None:
    _fill_size(out, patches.size)
    out.merge, out.temporal = patches.merge, patches.temporal


_latest: tuple[Recipe, Any] | None = None


def recipe_message(of: Recipe) -> Any:
    """A ``millrace.v1.Recipe``, not to be changed: who asks with the same one again gets the same one.

    Raises:
        InvalidRequest: a number is out of its field's range.
    """
    global _latest
    latest = _latest
    if latest is not None and latest[0] is of:
        return latest[1]
    made = _made_of_recipe(of)
    with contextlib.suppress(TypeError):
        hash(of)  # else there are lists in it, which may change
        _latest = of, made
    return made


def _fill_making(out: Any, of: Recipe) -> None:
    """What a ``millrace.v1.Recipe`` and a ``View`` have alike, under the same names. Raises as ``_made_of_recipe`` and what it catches."""
    if of.crop is not None:
        _fill_crop(out.crop, of.crop)
    if of.resize is not None:
        _fill_resize(out.resize, of.resize)
    if of.resize is not None or of.filter != "bilinear":  # a sample that brings its own size is made with the filter, too
        out.resize.filter = _number("Recipe.filter", of.filter, recipe.Filter)
    if of.random_filters:
        out.resize.random_filters.extend(_number("Recipe.random_filters", each, recipe.Filter) for each in of.random_filters)
    if of.pad is not None:
        _fill_pad(out.pad, of.pad)
    if of.centre_crop is not None:
        _fill_size(out.centre_crop, of.centre_crop)
    if of.crop_place != "centre":  # an older daemon knows no other
        out.crop_place = _number("Recipe.crop_place", of.crop_place, recipe.CropPlace)
    out.flip_probability = of.flip_probability
    if of.steps or of.erasing is not None:
        from millrace._wire.step_messages import fill_erasing, fill_steps  # here, because it imports all steps

        fill_steps(out.steps, of.steps)
        if of.erasing is not None:
            fill_erasing(out.erasing, of.erasing)


def _made_of_recipe(of: Recipe) -> Any:
    out = _schema.Recipe()
    try:
        out.ignore_orientation = of.ignore_orientation
        if of.indices:  # an older daemon does not know it
            out.indices = of.indices
        if of.normalise is not None:
            out.normalise.mean.extend(of.normalise.mean)
            out.normalise.std.extend(of.normalise.std)
        if of.patches is not None:
            _fill_patches(out.patches, of.patches)
        _fill_making(out, of)
        for view, same in itertools.groupby(of.views):
            message = out.views.add()
            message.count = len(list(same))
            _fill_making(message, view)
    except InvalidRequest:
        raise
    except (TypeError, ValueError) as why:
        raise InvalidRequest(f"recipe: {why}") from why
    out.range = _number("Recipe.range", of.range, recipe.ValueRange)
    out.dtype = _number("Recipe.dtype", of.dtype, recipe.DType)
    out.layout = _number("Recipe.layout", of.layout, recipe.Layout)
    out.channels = _number("Recipe.channels", of.channels, recipe.Channels)
    out.packing = _number("Recipe.packing", of.packing, recipe.Packing)
    out.centre_rounding = _number("Recipe.centre_rounding", of.centre_rounding, recipe.CentreRounding)
    return out


def text_bytes(text: str) -> bytes:
    """The text as a message holds it. What is no text (half a surrogate pair) comes out as what the daemon refuses by name.

    Raises:
        TypeError: it is no str.
    """
    if not isinstance(text, str):
        raise TypeError(f"expected str, not {type(text).__name__}: {text!r}")
    return text.encode("utf-8", "surrogatepass")


_URL = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]*://|data:[a-z]+/[A-Za-z0-9.+-]+[;,]")


def is_url(path: AnyPath) -> bool:
    """Whether it names no file of this host but something to fetch, or is the content itself (``data:``)."""
    return _URL.match(os.fsencode(path)) is not None


def path_bytes(path: AnyPath) -> bytes:
    """The path, absolute, byte for byte as the kernel takes it.

    Raises:
        InvalidRequest: it is a URL.
    """
    if is_url(path):
        raise InvalidRequest(
            f"{path_text(path)} is a URL, and the daemon reads none: give a path beneath one of its roots, or send the file's bytes"
        )
    return os.path.abspath(os.fsencode(path))


def path_text(path: AnyPath) -> str:
    r"""The path for people: what is not printable UTF-8 becomes ``\xNN`` or the like, so that every stream can print it."""
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    if len(text) > _LONGEST_PATH:
        text = text[:_LONGEST_PATH] + "..."
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def _fill_source(out: Any, source: Source) -> memoryview | None:
    """Returns the bytes of an image that is too large to be copied into the message."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        if len(source) >= LARGE and (view := memoryview(source)).c_contiguous:
            return view.cast("B")
        out.encoded = bytes(source)
    elif isinstance(source, RingRoom):
        out.ring.offset, out.ring.length = source.offset, source.length
    elif isinstance(source, DatasetSample):
        out.dataset.dataset_id, out.dataset.sample_id = source
    elif isinstance(source, Part):
        out.part.path = path_bytes(source.path)
        out.part.offset, out.part.length = part_bounds(source)
    elif isinstance(source, (Path, str, os.PathLike)):
        out.path = path_bytes(source.path if isinstance(source, Path) else source)
    else:
        raise InvalidRequest(
            f"submit: a sample is a path, Part, bytes, room in a ring, DatasetSample or Sample; this one is of type {type(source).__name__}"
        )
    return None


def fill_samples(out: Any, samples: Iterable[Sample | Source]) -> tuple[list[RingRoom], dict[int, memoryview]]:
    """Appends one ``millrace.v1.Sample`` for each of ``samples`` to ``out``.

    Returns:
        The rooms in the ring that they name, and large images by position, which are not in ``out``: see uncopied_images.py.

    Raises:
        InvalidRequest: a sample is of no known kind, or a number is out of range.
    """
    if isinstance(samples, (Path, Part, str, bytes, bytearray, memoryview, os.PathLike, RingRoom, DatasetSample, Sample)):
        raise InvalidRequest(f"submit: samples is a list of samples, not one {type(samples).__name__}: put it into a list")
    rooms, images = [], {}
    try:
        for index, sample in enumerate(samples):
            message = out.add()
            source = sample.source if isinstance(sample, Sample) else sample
            if (image := _fill_source(message, source)) is not None:
                images[index] = image
            if isinstance(source, RingRoom):
                rooms.append(source)
            if not isinstance(sample, Sample):
                continue
            if sample.label is not None:
                message.label = sample.label
            if sample.id is not None:
                message.id, message.has_id = sample.id, True
            if sample.box is not None:
                _fill_box(message.box, sample.box)
            if sample.size is not None:
                _fill_size(message.size, sample.size)
    except (TypeError, ValueError) as why:
        if isinstance(why, InvalidRequest):
            raise
        raise InvalidRequest(f"submit: {why}") from why
    return rooms, images


def fill_choices(out: Any, seed: int, epoch: int, fidelity: recipe.Fidelity, priority: recipe.Priority, backend: str) -> None:
    """The fields that a batch and an epoch have in common.

    Raises:
        InvalidRequest: a number is out of its field's range, or a word is none.
    """
    try:
        out.seed, out.epoch, out.backend = seed, epoch, text_bytes(backend)
    except (TypeError, ValueError) as why:
        raise InvalidRequest(f"seed, epoch and backend: {why}") from why
    out.fidelity = fidelity_number(fidelity)
    out.priority = priority_number(priority)


def sample_errors(messages: Iterable[Any]) -> tuple[SampleError, ...]:
    """The bad samples of a batch."""
    return tuple(SampleError(m.index, m.sample_id, m.source, m.code, m.message, os.fsdecode(m.path) if m.path else None) for m in messages)


def failure(failed: Any, batch_id: int | None = None) -> Error:
    """The exception for a ``millrace.v1.Failed``."""
    errors = sample_errors(failed.errors)
    by_samples = any(error.code == failed.code for error in errors)  # else for another reason, and some samples are bad, too
    cls = SampleFailed if by_samples else error_class(failed.code)
    message = failed.message
    if errors and errors[0].sample_id != errors[0].index and message.startswith(f"sample {errors[0].index} ("):
        message += f"; it is the batch's image {errors[0].index}, whose id is {errors[0].sample_id}"
    error = cls(message, batch_id=batch_id, sample_errors=errors)
    if isinstance(error, ResourceExhausted):
        error.slot_bytes = failed.slot_bytes
    return error


def _plain_extensions(extensions: Iterable[str]) -> list[bytes]:
    """``"JPG"``, ``".jpg"`` and ``["jpg"]`` are one; ``"*"`` is every file and comes out as none.

    Raises:
        InvalidRequest: there is none, or ``"*"`` is beside others.
    """
    names = [extensions] if isinstance(extensions, str) else list(extensions)
    plain = [text_bytes(name).removeprefix(b".").lower() for name in names]
    if plain == [b"*"]:
        return []
    if not plain:
        raise InvalidRequest('extensions are none at all: None means what the daemon decodes, "*" every file')
    if b"*" in plain:
        raise InvalidRequest('extensions: "*" means every file, so it is the only one, or none')
    return plain


def open_dataset(number: int, path: AnyPath, extensions: Iterable[str] | None, unclassified: bool) -> Any:
    """A ``millrace.v1.ClientMessage`` with an ``OpenDataset``.

    Raises:
        InvalidRequest: extensions that are no names; a path that is none.
    """
    message = _schema.ClientMessage()
    opening = message.open_dataset
    opening.dataset_id, opening.skip_unclassified = number, not unclassified
    opening.pictures = extensions is None
    try:
        opening.path = path_bytes(path)
        if extensions is not None:
            opening.extensions.extend(_plain_extensions(extensions))
    except (TypeError, ValueError) as why:
        raise InvalidRequest(f"dataset: {why}") from why
    return message
