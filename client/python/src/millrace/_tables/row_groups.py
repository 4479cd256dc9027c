"""Rows of Parquet files by number: row groups are read whole, and the last ones kept."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from millrace._data.columns import column_of
from millrace._tables.parquet_files import ParquetFiles, pyarrow, python_values

_KEPT = 4  # row groups


class RowGroups:
    """Rows as dictionaries, a map-style source. Thread-safe."""

    def __init__(self, files: ParquetFiles, columns: Sequence[str], fingerprint: str) -> None:
        """Reads nothing.

        Args:
            files: whose rows.
            columns: the ones that are read.
            fingerprint: of these files.
        """
        self._files, self._columns, self._groups = files, list(columns), files.groups()
        self._begins = np.cumsum([0, *(rows for _, _, rows in self._groups)])
        self._kept: OrderedDict[int, Any] = OrderedDict()
        self._lock = threading.Lock()
        self._fingerprint = fingerprint

    def __len__(self) -> int:
        return int(self._begins[-1])

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self.rows(np.array([range(len(self))[index]]))[0]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self[index] for index in range(len(self)))

    def rows(self, ids: NDArray[np.int64]) -> list[dict[str, Any]]:
        """Those rows; each row group of theirs is read once, if it is none of the last ones."""
        arrow, _ = pyarrow()
        groups = np.searchsorted(self._begins, ids, side="right") - 1
        found: list[Any] = [None] * len(ids)
        for group in np.unique(groups).tolist():
            places = np.flatnonzero(groups == group)
            taken = self._table(group).take(arrow.array(ids[places] - self._begins[group]))
            columns = {name: python_values(taken.column(name), name) for name in self._columns}
            for number, place in enumerate(places.tolist()):
                found[place] = {name: values[number] for name, values in columns.items()}
        return found

    def _table(self, group: int) -> Any:
        with self._lock:
            table = self._kept.pop(group, None)
            if table is None:
                file, number, _ = self._groups[group]
                while len(self._kept) >= _KEPT:
                    self._kept.popitem(last=False)
                table = self._files.read_group(file, number, self._columns)
            self._kept[group] = table
            return table


class GroupsColumn(Sequence[Any]):
    """One column of these rows, read when its values are asked for. Thread-safe."""

    def __init__(self, groups: RowGroups, name: str) -> None:
        self._groups, self._name = groups, name

    def taken(self, ids: NDArray[np.int64]) -> Any:
        """The values of those rows: an array [n, ...] where they are numbers, else a list."""
        return column_of([row[self._name] for row in self._groups.rows(ids)], len(ids), self._name)

    def __len__(self) -> int:
        return len(self._groups)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[k] for k in range(*index.indices(len(self)))]
        return self._groups[index][self._name]
