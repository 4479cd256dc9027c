"""Columns of a dataset: what belongs to its samples beside their pixels, kept by the client and looked up by sample id.

A column is a NumPy array [N, ...] where its values are numbers (or arrays of numbers, all of one shape), else a sequence of N objects, as
they were given: texts, dictionaries, ... A sequence that reads its values when they are asked for may have ``taken(ids)``, which returns
those of several samples, int64 [N], as a list or an array.
"""

from __future__ import annotations

import enum
import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from millrace.errors import InvalidRequest


@dataclass(frozen=True)
class Coded:
    """A column of few different values: value i is ``table[codes[i]]``. For what a function makes of class numbers (vectors of classes)."""

    table: NDArray[Any] | Sequence[Any]
    codes: NDArray[Any]

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, index: int) -> Any:
        return self.table[int(self.codes[index])]


Column = NDArray[Any] | Sequence[Any] | Coded
Labels = Column | Mapping[str, Column] | None
"""One column, several with their names, or none at all, for which every label is -1."""

_NUMBERS = "biufc"


def column_of(values: Any, count: int, name: str) -> Column:
    """The column that ``values`` are.

    Args:
        values: a list, a NumPy array, a tensor of PyTorch's on any device, a column of pandas', ... of ``count`` values.
        count: the samples.
        name: of the column, for messages.

    Raises:
        InvalidRequest: they are not so many; or whole numbers do not fit 64 bits.
    """
    if isinstance(values, (str, bytes, Mapping)) or not hasattr(values, "__len__"):
        raise InvalidRequest(f"{name}: give a list or an array, a value for each sample, not a {type(values).__name__}")
    if len(values) != count:
        raise InvalidRequest(f"{name}: there are {len(values)} values for {count} samples")
    if hasattr(values, "detach"):
        values = values.detach().cpu()
    if hasattr(values, "__array__"):
        array = np.asarray(values)
        if array.dtype.kind in _NUMBERS:
            return _numeric(array, name)
        return _of_objects(array.tolist(), name) if array.ndim == 1 else list(array.tolist())
    return _of_objects(values if isinstance(values, (list, tuple)) else list(values), name)


def _of_objects(values: Sequence[Any], name: str) -> Column:
    kinds = set(map(type, values))
    if all(issubclass(kind, (numbers.Number, np.number, np.bool_)) for kind in kinds):
        array = np.asarray(values)
        whole = all(issubclass(kind, (numbers.Integral, np.integer, np.bool_)) for kind in kinds)
        if array.dtype.kind not in _NUMBERS or (whole and array.dtype.kind == "f"):
            raise InvalidRequest(f"{name}: a number does not fit 64 bits, or is of no kind that NumPy has")
        return _numeric(array, name)
    if all(issubclass(kind, (list, tuple)) or hasattr(kind, "__array__") for kind in kinds):
        if any(isinstance(getattr(value, "format", None), enum.Enum) for value in values):
            return values  # torchvision's BoundingBoxes: an array would not say what its numbers are
        try:
            array = np.stack([np.asarray(value.detach().cpu() if hasattr(value, "detach") else value) for value in values])
        except ValueError:  # of several shapes
            return values
        return _numeric(array, name) if array.dtype.kind in _NUMBERS else values
    return values


def _numeric(array: NDArray[Any], name: str) -> NDArray[Any]:
    if array.ndim != 1 or array.dtype.kind not in "iu":
        return array
    if array.dtype == np.uint64 and array.size and int(array.max()) > np.iinfo(np.int64).max:
        raise InvalidRequest(f"{name}: {array.max()} is too large for a signed number of 64 bits")
    return array.astype(np.int64, copy=False)


def is_classes(column: Labels) -> bool:
    """Whether it is a whole number for each sample, which the daemon keeps as the label."""
    return isinstance(column, np.ndarray) and column.ndim == 1 and column.dtype == np.int64


def selected(column: Column, ids: NDArray[Any]) -> NDArray[Any] | Sequence[Any]:
    """Its values of those samples: an array, or a list."""
    if isinstance(column, Coded):
        return selected(column.table, column.codes[ids])
    if isinstance(column, np.ndarray):
        values: NDArray[Any] = column[ids]
        return values
    taken: Callable[[NDArray[Any]], NDArray[Any] | Sequence[Any]] | None = getattr(column, "taken", None)
    if taken is not None:  # it reads them, and does so together
        return taken(ids)
    return list(map(column.__getitem__, ids.tolist()))


def narrowed(column: Column, ids: NDArray[Any]) -> Column:
    """A column of those samples alone. One that reads its values goes on doing so."""
    if isinstance(column, Coded):
        return Coded(column.table, column.codes[ids])
    return Narrowed(column, ids) if hasattr(column, "taken") else selected(column, ids)


class Narrowed(Sequence[Any]):
    """Some values of a column that reads them when they are asked for: value i is value ``ids[i]`` of the column."""

    def __init__(self, column: Any, ids: NDArray[Any]) -> None:
        self._column, self._ids = column, ids

    def taken(self, ids: NDArray[Any]) -> NDArray[Any] | Sequence[Any]:
        """Those values."""
        values: NDArray[Any] | Sequence[Any] = self._column.taken(self._ids[ids])
        return values

    def __len__(self) -> int:
        return len(self._ids)

    def __getitem__(self, index: Any) -> Any:
        return self.taken(np.arange(len(self))[index]) if isinstance(index, slice) else self.taken(np.asarray([index]))[0]


def each_column(labels: Labels, change: Callable[[Column], Any]) -> Any:
    """The same with every column changed."""
    if isinstance(labels, Mapping):
        return {name: change(column) for name, column in labels.items()}
    return None if labels is None else change(labels)


def joined(parts: Sequence[Column], name: str) -> Column:
    """One column after the other.

    Raises:
        InvalidRequest: they are of several kinds.
    """
    coded = [part for part in parts if isinstance(part, Coded)]
    if coded and len(coded) == len(parts):
        begins = np.cumsum([0, *(len(part.table) for part in coded)])
        codes = np.concatenate([part.codes + begin for part, begin in zip(coded, begins, strict=False)])
        return Coded(_in_one([part.table for part in coded], name), codes)
    return _in_one([selected(part, np.arange(len(part))) if isinstance(part, Coded) else part for part in parts], name)


def _in_one(parts: Sequence[NDArray[Any] | Sequence[Any]], name: str) -> NDArray[Any] | Sequence[Any]:
    if all(isinstance(part, np.ndarray) for part in parts):
        shapes = {np.shape(part)[1:] for part in parts}
        if len(shapes) > 1:
            told = " and ".join(map(str, sorted(shapes)))
            raise InvalidRequest(f"loader: the joined datasets have {name} of several shapes, {told}; make them of one")
        return np.concatenate(parts)
    if any(isinstance(part, np.ndarray) for part in parts):
        raise InvalidRequest(f"loader: the joined datasets have {name} of several kinds, numbers and others; make them of one")
    return [value for part in parts for value in part]


def joined_labels(parts: Sequence[Labels]) -> Labels:
    """The labels of datasets one after the other.

    Raises:
        InvalidRequest: they are of several kinds; says which.
    """
    kinds = {tuple(part) if isinstance(part, Mapping) else part is not None for part in parts}
    if len(kinds) > 1:
        raise InvalidRequest("loader: some of the joined datasets have labels that others do not have; make the others with them")
    first = parts[0]
    if first is None:
        return None
    if isinstance(first, Mapping):
        return {name: joined([_named(part, name) for part in parts], name) for name in first}
    return joined([part for part in parts if part is not None and not isinstance(part, Mapping)], "labels")


def _named(labels: Labels, name: str) -> Column:
    assert isinstance(labels, Mapping)
    return labels[name]


def numbered(names: Iterable[str], classes: Sequence[str]) -> NDArray[np.int64]:
    """The positions of class names.

    Raises:
        InvalidRequest: one is none of the classes.
    """
    positions = {name: position for position, name in enumerate(classes)}
    if len(positions) < len(classes):
        raise InvalidRequest("classes: a name is there twice")
    try:
        return np.fromiter(map(positions.__getitem__, names), np.int64)
    except KeyError as why:
        raise InvalidRequest(f"labels: {why.args[0]!r} is none of the {len(classes)} classes") from None
