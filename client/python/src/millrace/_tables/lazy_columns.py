"""Columns that stay in their table, and are read for the rows of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from millrace._data.columns import Column, Labels, column_of
from millrace._data.file_parts import FileParts
from millrace._tables.parquet_files import python_values
from millrace.errors import InvalidRequest
from millrace.sample_list import Samples


class RowsColumn(Sequence[Any]):
    """A column of a Hugging Face ``Dataset``: its values are what the dataset's rows have. Immutable."""

    def __init__(self, dataset: Any, name: str) -> None:
        self._dataset, self._name = dataset.select_columns([name]), name

    def taken(self, ids: NDArray[np.int64]) -> Any:
        """The values of those rows: an array [n, ...] where they are numbers, else a list."""
        return column_of(self._dataset[ids.tolist()][self._name], len(ids), self._name)

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, index: Any) -> Any:
        return self._dataset[index][self._name]


class ArrowColumn(Sequence[Any]):
    """An Arrow column ``values`` [N], kept as it is. Immutable."""

    def __init__(self, values: Any, name: str) -> None:
        self.values, self._name = values, name

    def taken(self, ids: NDArray[np.int64]) -> Any:
        """The values of those rows: an array [n, ...] where they are numbers, else a list."""
        import pyarrow as pa

        return column_of(python_values(self.values.take(pa.array(ids)), self._name), len(ids), self._name)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return python_values(self.values.take(list(range(*index.indices(len(self))))), self._name)
        row = range(len(self))[index]
        return python_values(self.values[row : row + 1], self._name)[0]


def number_column(values: Any, name: str) -> NDArray[Any] | None:
    """The numbers of an Arrow column as an array [N], int64 for whole ones; None: it has others, or rows without one.

    Raises:
        InvalidRequest: a number does not fit 64 bits.
    """
    import pyarrow as pa

    kind = values.type
    if values.null_count or not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        return None
    array = values.to_numpy() if isinstance(values, pa.ChunkedArray) else values.to_numpy(zero_copy_only=False)
    if array.dtype.kind == "f":
        array = array.astype(np.float64)  # as Python's floats, of which a batch's column is made otherwise
    found = column_of(array, len(array), name)
    assert isinstance(found, np.ndarray)
    return found


def check_label(values: Any, name: str, chosen: NDArray[np.int64] | None = None) -> None:
    """Raises InvalidRequest: a row has no label; says which. ``chosen``: the rows that count; None: all."""
    if not values.null_count:
        return
    missing = np.asarray(values.is_null().to_numpy(zero_copy_only=False) if not hasattr(values, "chunks") else values.is_null().to_numpy())
    rows = np.flatnonzero(missing if chosen is None else missing[chosen])
    if len(rows):
        raise InvalidRequest(
            f"loader: the label {name!r} of row {rows[0]} is None, and of {len(rows)} rows in all: leave such rows out, or give "
            'Encoded(dataset, label="") or Parquet(..., label=None) for none'
        )


def labels_of(label: Column | None, columns: dict[str, Column]) -> Labels:
    """As ``Samples`` has them: the label alone, or a dictionary of it and the further columns."""
    if not columns:
        return label
    return columns if label is None else {"label": label, **columns}


def samples_of(parts: FileParts | Sequence[str], labels: Labels, classes: Sequence[str]) -> Samples:
    """A list of samples whose columns are taken as they are, without a look at their values."""
    made = object.__new__(Samples)
    made.paths, made.labels, made.classes = parts, labels, tuple(classes)
    return made
