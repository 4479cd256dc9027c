"""Datasets that hold encoded images themselves: Hugging Face's, webdataset's, any iterable. The loader takes bytes and sends them.

>>> loader = millrace.torch.Loader(datasets.load_dataset("beans", split="train"), millrace.Recipe.train(224), shuffle=True)
>>> loader = millrace.torch.Loader(millrace.Encoded(pipeline, image="jpg", label="cls", sharded=True), millrace.Recipe.train(224))
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from millrace._data import hugging_face
from millrace.errors import InvalidRequest
from millrace.samples import Part, Path, part_bounds

Name = str | int | Callable[[Any], Any]
"""Of what is wanted of a row: a key, or several with ``;`` between, of which the first that is there counts; a position; a function."""

_IMAGES = "jpg;jpeg;png;webp;image;img"
_LABELS = "cls;label;class"
_MARK = 64  # bytes of an image that its mark is made of


class Row(NamedTuple):
    """One image of a source.

    Attributes:
        source: for ``Session.submit``: bytes, ``Path`` or ``Part``.
        values: of the label and the columns, in their order.
        mark: tells whether it is the same as another time, mostly.
    """

    source: bytes | memoryview | Path | Part
    values: tuple[Any, ...]
    mark: int


class Encoded:
    """A source of encoded images and their labels, as a loader's dataset. Immutable; the source belongs to the loader while a loop runs.

    **Map-style**, with ``len()`` and ``[index]``: Hugging Face's ``Dataset``, or a list-like object of rows. Ids are row numbers; the
    loader shuffles, shards and resumes exactly, and takes samplers.

    **Iterable**: Hugging Face's ``IterableDataset``, webdataset's pipelines, or any object that can be iterated anew each epoch. Ids count
    the rows of a loop. It comes as the source gives it: that shuffles, and with several ranks gives each its share.

    A row is a dictionary, a pair (image, label), or the image alone. An image is a file's bytes, or a path (``str``) or a ``Part`` beneath
    the daemon's roots; or Hugging Face's ``{"bytes": ..., "path": ...}``. Columns of images of Hugging Face's are read without decoding
    them. Values that are bytes are read by their key, as webdataset's: ``cls`` a whole number, ``json`` JSON, ``txt`` a text.
    """

    def __init__(
        self,
        source: Iterable[Any],
        *,
        image: Name | None = None,
        label: Name | None = None,
        columns: Sequence[str] = (),
        classes: Sequence[str] = (),
        sharded: bool = False,
    ) -> None:
        """Describes it; reads nothing of an iterable.

        Args:
            source: see the class.
            image: where a row has the image; None: the only column of images, else jpg, jpeg, png, webp, image or img; of a pair the first.
            label: where it has the label; None: the only column of class labels, else cls, label or class, of a pair the second; ``""``:
                nowhere, every label is -1.
            columns: more keys; then the labels are a dictionary of these and ``"label"``, as with ``Samples``.
            classes: the labels' names; none: those of Hugging Face's class labels.
            sharded: the iterable gives each rank its own share (webdataset's ``split_by_node``). Hugging Face's says so itself.

        Raises:
            InvalidRequest: it decodes images in Python, it is no dataset, or it is not known which column is which; says what to do.
        """
        if not hasattr(source, "__iter__") and not hasattr(source, "__getitem__"):
            raise InvalidRequest(f"Encoded: the source is a dataset or an iterable of rows, not a {type(source).__name__}")
        if iter_is_self(source):
            raise InvalidRequest(
                "Encoded: the source can be iterated only once; give an object with an __iter__ that begins anew each epoch"
            )
        self.source = source
        """As it was given."""
        found = hugging_face.opened(source, image, label)
        self.opened, self._image, self._label = found.dataset, found.image, found.label
        self.columns = tuple(columns)
        """More keys whose values come back."""
        self.classes: tuple[str, ...] = tuple(classes) or found.classes
        """The labels' names, in the order of the labels."""
        self.sharded: bool = sharded or hugging_face.is_sharded(source)
        """Whether an iterable gives each rank its share."""
        iterable = any(base.__name__ == "IterableDataset" for base in type(self.opened).__mro__)  # PyTorch's has a __getitem__ that raises
        self.is_map = not iterable and hasattr(self.opened, "__getitem__") and hasattr(self.opened, "__len__")
        """Whether rows can be taken by number."""

    def count(self) -> int | None:
        """Its rows; None: it does not say."""
        try:
            return len(self.opened)
        except TypeError:
            return None

    @property
    def fingerprint(self) -> str:
        """Of what is in it, where it has one."""
        return str(getattr(self.source, "_fingerprint", ""))

    def rows(self, ids: Sequence[int]) -> Iterator[Row]:
        """Those rows of a map-style one."""
        return map(self.read, hugging_face.rows(self.opened, ids))

    def read(self, row: Any) -> Row:
        """What is wanted of a row.

        Raises:
            InvalidRequest: it has no image, or one that is decoded already; says what to do.
        """
        if isinstance(row, Part):
            row = (row,)
        name, value = self._part(row, self._image, _IMAGES, 0)
        if name is None:
            raise InvalidRequest(f"Encoded: a row has no image: {_told(row)}; say where it is with image=")
        source = _image(value)
        values = []
        if self._label != "":
            label_name, label = self._part(row, self._label, _LABELS, 1)
            if label_name is not None:
                values.append(_given(label_name, _value(label_name, label)))
            elif self._label is not None or self._others(row, name):
                raise InvalidRequest(f'Encoded: a row has no label: {_told(row)}; say where it is with label=, or label="" for none')
        for column in self.columns:
            found, other = self._part(row, column, "", 0)
            if found is None:
                raise InvalidRequest(f"Encoded: a row has no {column!r}: {_told(row)}")
            values.append(_value(found, other))
        return Row(source, tuple(values), _mark(source, row))

    def names(self, values: int) -> tuple[str, ...]:
        """What so many values of a row are called."""
        return ("label", *self.columns)[-values:] if values else ()

    def _part(self, row: Any, wanted: Name | None, otherwise: str, position: int) -> tuple[Any, Any]:
        if callable(wanted):
            return "", wanted(row)
        if isinstance(row, Mapping):
            for name in str(otherwise if wanted is None else wanted).split(";"):
                if name in row:
                    return name, row[name]
            return None, None
        if isinstance(row, (tuple, list)):
            number = position if wanted is None else wanted
            if isinstance(number, int) and number < len(row) and (wanted is not None or len(row) <= 2):
                return number, row[number]
            return None, None
        return (0, row) if position == 0 and wanted is None else (None, None)

    def _others(self, row: Any, image: Any) -> bool:
        """Whether there is more in it than the image, which may be its label."""
        if isinstance(row, Mapping):
            return any(key != image and key not in self.columns and not str(key).startswith("__") for key in row)
        return isinstance(row, (tuple, list)) and len(row) > 1

    def __repr__(self) -> str:
        return f"<millrace.Encoded {type(self.source).__name__}>"


def is_encoded_source(dataset: Any) -> bool:
    """Whether a loader takes it as ``Encoded(dataset)``: of Hugging Face's or of webdataset's."""
    of_webdataset = any(base.__module__.partition(".")[0] == "webdataset" for base in type(dataset).__mro__)
    return of_webdataset or hugging_face.is_one(dataset)


def iter_is_self(source: Any) -> bool:
    """Whether it is an iterator or a generator, which ends for good."""
    return hasattr(source, "__next__")


def _image(value: Any) -> bytes | memoryview | Path | Part:
    if isinstance(value, Mapping) and value.keys() >= {"bytes", "path"}:  # Hugging Face's
        value = value["bytes"] if value["bytes"] is not None else value["path"]
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value) if isinstance(value, bytearray) else value
    if isinstance(value, (str, os.PathLike)):
        return Path(os.fspath(value))
    if isinstance(value, Part):
        part_bounds(value)
        return value
    if isinstance(value, np.ndarray) and value.dtype == np.uint8 and value.ndim == 1:
        return value.tobytes()
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    raise InvalidRequest(
        f"Encoded: an image is a file's bytes, a path or a Part, and the source gives a {kind}: the daemon decodes, so leave that out in "
        'the source (webdataset: .decode("pil"), .decode("torchrgb"); Hugging Face: set_transform, map functions that open images; a '
        "stream's map and filter get decoded ones unless cast_column(name, Image(decode=False)) comes before them)"
    )


def _given(name: Any, label: Any) -> Any:
    if label is None:
        raise InvalidRequest(f'Encoded: the label {name!r} of a row is None: leave such rows out in the source, or give label="" for none')
    return label


def _value(name: Any, value: Any) -> Any:
    """A label or column; webdataset gives bytes whose key says what they are."""
    kind = str(name).rpartition(".")[2]
    if not isinstance(value, bytes) or kind not in ("cls", "json", "txt"):
        return value
    try:
        text = value.decode("utf-8")
        return text if kind == "txt" else int(text) if kind == "cls" else json.loads(text)
    except ValueError as why:
        raise InvalidRequest(f"Encoded: {name!r} of a row cannot be read: {why}") from why


def _mark(source: bytes | memoryview | Path | Part, row: Any) -> int:
    content: bytes | memoryview
    if isinstance(source, Part):
        content, size = b"%s[%d+%d]" % (os.fsencode(source.path), *part_bounds(source)), 0
    else:
        content, size = (os.fsencode(source.path), 0) if isinstance(source, Path) else (source[-_MARK:], len(source))
    key = row.get("__key__") if isinstance(row, Mapping) else None
    return zlib.crc32(str(key).encode("utf-8", "surrogateescape"), zlib.crc32(content, size & 0xFFFFFFFF))


def _told(row: Any) -> str:
    if isinstance(row, Mapping):
        return f"its keys are {', '.join(map(repr, row))}"
    return f"it is a {type(row).__name__}" + (f" of {len(row)}" if isinstance(row, (tuple, list)) else "")
