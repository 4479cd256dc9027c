"""``Preprocess``: for ``Dataset.map_batches``, a column of paths or encoded bytes becomes one of tensors."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

import millrace
from millrace._wire.messages import path_text
from millrace.errors import InvalidRequest, ResourceExhausted
from millrace.ray._node import Daemon, DaemonLost
from millrace.ray._work import SESSIONS, BadImages, OnBad, Opened, Work, batch_of, column_of, full, pixels, places, reasons, slots_for
from millrace.recipe import CacheUse, Fidelity, RandomResizedCrop, RandomShorterSide, Recipe, ScaleJitter
from millrace.ring import Ring

_AGAIN_MOST = 3  # times that a batch is made anew because the daemon was lost
_INLINE = 1 << 20  # bytes of encoded images in a message, where the daemon does not say what it takes
_KEY_BYTES = 4096  # of an image's end, which is like no other's

Rows = Any  # pa.Table or Mapping[str, Any]: a batch in the formats "pyarrow" and "numpy"


class Preprocess:
    """Has the daemon of its node make tensors of images, and passes the other columns through.

        >>> dataset.map_batches(
        ...     millrace.ray.Preprocess, fn_constructor_kwargs={"recipe": recipe, "column": "bytes"},
        ...     batch_format="pyarrow", batch_size=256, concurrency=2, num_cpus=0.25,
        ... )

    A column of strings has absolute paths, which every node has; one of bytes has files' contents. An actor of Ray's, as every class of
    ``map_batches`` is. Where ``read_images`` will do it is faster: it asks ahead, which a function of one batch cannot.
    """

    def __init__(
        self,
        recipe: Recipe,
        column: str,
        *,
        output: str = "image",
        keep_column: bool | None = None,
        include_errors: bool = False,
        on_error: OnBad = "fail",
        id_column: str | None = None,
        seed: int = 0,
        epoch: int = 0,
        batch_size: int | None = None,
        ring_bytes: int = 64 << 20,
        fidelity: Fidelity = "exact",
        cache: CacheUse = "tensors",
        daemon: Daemon | None = None,
    ) -> None:
        """Opens nothing yet.

        Args:
            recipe: of one size.
            column: where the paths or the bytes are.
            output: the tensors' column; of a recipe with views ``output_0``, ``output_1``, ..., one for each.
            keep_column: ``column`` passes through, too; None: paths do, bytes do not.
            include_errors: a column ``error``, as of ``read_images``.
            on_error: as of ``read_images``. A null is a bad image.
            id_column: whole numbers to which the random choices belong; None: each path or content has its own.
            seed: of random crops, flips and augmentations, which depend on (seed, epoch, id) and on nothing else.
            epoch: likewise; give each pass over the dataset another.
            batch_size: images that the daemon makes at a time, in one slot of shared memory: a part of ``map_batches``' batch; None: as
                many as have 64 MiB.
            ring_bytes: shared memory for encoded bytes under way.
            fidelity: as of ``read_images``.
            cache: likewise.
            daemon: likewise.

        Raises:
            InvalidRequest: an argument cannot be honoured; says which and what to do.
        """
        errors = "error" if include_errors else ""
        size = batch_of(recipe, "Preprocess") if batch_size is None else batch_size
        self._work = Work(recipe, size, on_error, output, errors, seed, epoch, daemon or Daemon(), fidelity, cache)
        self._work.check("Preprocess")
        if ring_bytes < 1:
            raise InvalidRequest(f"Preprocess: ring_bytes is at least the largest image's, not {ring_bytes!r}")
        self._column = column
        self._keep = keep_column
        self._id_column = id_column
        self._ring_bytes = ring_bytes
        self._random = any(map(_is_random, recipe.views or (recipe,)))

    def __call__(self, batch: Rows) -> Iterator[Rows]:
        """The batch in parts, each with its tensors in one slot.

        Raises:
            InvalidRequest: it has no such column, or something else in it than paths or bytes.
            SampleFailed: an image is bad, with ``on_error="fail"``.
            DaemonLost: again and again.
        """
        sources = [_source(value, self._column) for value in _column(batch, self._column)]
        samples = [millrace.Sample(source, id=key) for source, key in zip(sources, self._keys(batch, sources), strict=True)]
        names = self._passed(batch, bytes_there=any(not isinstance(source, millrace.Path) for source in sources))
        bad, done, again = BadImages(self._work), 0, 0
        while done < len(samples):
            try:
                for end, part in self._parts(batch, samples, names, done, bad):
                    done = end
                    if part is not None:
                        yield part
                    del part  # or this would keep a slot when Ray does not any more
            except DaemonLost:
                again += 1
                if again > _AGAIN_MOST:
                    raise
        bad.say()

    def _parts(
        self, batch: Rows, samples: list[millrace.Sample], names: list[str], done: int, bad: BadImages
    ) -> Iterator[tuple[int, Rows | None]]:
        """From sample ``done`` on: where each part ends, and the part; None: nothing is left of it."""
        size, slots = self._work.batch, max(2, slots_for(self._work))
        starts, waiting = deque(range(done, len(samples), size)), deque[tuple[int, int]]()
        with SESSIONS.open(self._work, slots) as opened:
            while starts or waiting:
                while starts and len(waiting) < slots:
                    asked = self._submitted(opened, samples[starts[0] : starts[0] + size], full_is_fine=bool(waiting))
                    if asked is None:
                        break
                    waiting.append((starts.popleft(), asked))
                start, number = waiting.popleft()
                made, end = opened.session.get(number), min(start + size, len(samples))
                bad.note(made, end - start)
                part = self._part(batch, names, start, end, made, full(opened)) if len(made) else None
                del made  # the part keeps the slot, and no longer than Ray keeps the part
                yield end, part
                del part

    def _submitted(self, opened: Opened, samples: list[millrace.Sample], *, full_is_fine: bool) -> int | None:
        """None: the ring has no room until a batch is taken."""
        inline = sum(len(sample.source) for sample in samples if isinstance(sample.source, memoryview))
        most = opened.session.limits.inline_bytes
        if inline <= (_INLINE if most is None else most):
            return self._work.submit(opened.session, samples)
        try:
            ring = opened.ring(self._ring_bytes)
            samples = [_in_ring(sample, ring) for sample in samples]
        except (ResourceExhausted, InvalidRequest) as why:
            if full_is_fine and isinstance(why, ResourceExhausted):
                return None
            raise InvalidRequest(
                f"Preprocess: {len(samples)} images of {inline} bytes do not fit into shared memory of {self._ring_bytes}: give more "
                f"ring_bytes=, or a smaller batch_size= ({why})"
            ) from why
        return self._work.submit(opened.session, samples)

    def _part(self, batch: Rows, names: list[str], start: int, end: int, made: millrace.Batch, copied: bool) -> Rows:
        kept, images = places(made), pixels(made, copied=copied)
        columns = {name: _taken(batch[name], start, end, kept) for name in names}
        if isinstance(batch, pa.Table):
            columns |= {name: column_of(view) for name, view in zip(self._work.columns, images, strict=True)}
            if self._work.error_column:
                columns[self._work.error_column] = pa.array(reasons(made), pa.string())
            return pa.table(columns)
        columns |= dict(zip(self._work.columns, images, strict=True))
        if self._work.error_column:
            columns[self._work.error_column] = np.array(reasons(made), object)
        return columns

    def _passed(self, batch: Rows, *, bytes_there: bool) -> list[str]:
        """The columns that pass through."""
        keep = self._keep if self._keep is not None else not bytes_there
        names = [name for name in _names(batch) if keep or name != self._column]
        for made in filter(None, (*self._work.columns, self._work.error_column)):
            if made in names:
                raise InvalidRequest(f"Preprocess: the batch has a column {made!r} already: give another output=, or drop_columns before")
        return names

    def _keys(self, batch: Rows, sources: list[Any]) -> list[int | None]:
        if self._id_column is not None:
            return [int(value.as_py() if isinstance(value, pa.Scalar) else value) for value in _column(batch, self._id_column)]
        return [_key(source) for source in sources] if self._random else [None] * len(sources)


def _is_random(recipe: Recipe) -> bool:
    """Whether it may draw something."""
    sized = isinstance(recipe.crop, RandomResizedCrop) or isinstance(recipe.resize, ScaleJitter | RandomShorterSide)
    placed = recipe.crop_place == "random" or (recipe.pad is not None and recipe.pad.place == "random")
    made = recipe.flip_probability > 0 or bool(recipe.steps) or recipe.erasing is not None
    return sized or placed or made or bool(recipe.random_filters)


def _names(batch: Rows) -> list[str]:
    if isinstance(batch, pa.Table):
        return list(batch.column_names)
    if isinstance(batch, Mapping):
        return list(batch)
    raise InvalidRequest(f'Preprocess: takes batches of the formats "pyarrow" and "numpy" (batch_format=), not {type(batch).__name__}')


def _column(batch: Rows, name: str) -> Any:
    if name not in (names := _names(batch)):
        raise InvalidRequest(f"Preprocess: there is no column {name!r}; there are {', '.join(map(repr, names))}")
    return batch[name]


def _source(value: Any, column: str) -> millrace.Path | memoryview:
    """A path or a file's bytes, not copied."""
    if isinstance(value, (pa.BinaryScalar, pa.LargeBinaryScalar)) and not isinstance(value, (pa.StringScalar, pa.LargeStringScalar)):
        value = value.as_buffer()
    elif isinstance(value, pa.Scalar):
        value = value.as_py()
    if value is None:
        value = b""  # which is no image
    if isinstance(value, str):
        if not os.path.isabs(value):
            raise InvalidRequest(f"Preprocess: paths are absolute, since workers have folders of their own; {path_text(value)} is not")
        return millrace.Path(value)
    if isinstance(value, (bytes, bytearray, memoryview, pa.Buffer)):
        return memoryview(value).cast("B")
    advice = "; read them, and give their bytes" if isinstance(value, millrace.Part) else ""
    raise InvalidRequest(f"Preprocess: the column {column!r} has paths (strings) or files' bytes, not {type(value).__name__}{advice}")


def _key(source: millrace.Path | memoryview) -> int:
    """Of a sample that has no number: the same wherever and whenever it is made."""
    what = os.fsencode(source.path) if isinstance(source, millrace.Path) else source[-_KEY_BYTES:]
    return int.from_bytes(hashlib.blake2b(what, digest_size=7).digest(), "little")


def _in_ring(sample: millrace.Sample, ring: Ring) -> millrace.Sample:
    if not isinstance(sample.source, memoryview) or not len(sample.source):
        return sample
    return dataclasses.replace(sample, source=ring.put(sample.source))


def _taken(values: Any, start: int, end: int, kept: list[int]) -> Any:
    """Of a column: the rows of a part that are left."""
    part = values[start:end]
    if len(kept) == end - start:
        return part
    return [part[place] for place in kept] if isinstance(part, list) else part.take(kept) if hasattr(part, "take") else part[kept]
