"""Lists of files with their labels, as datasets.

>>> samples = millrace.Samples(paths, labels)
>>> loader = millrace.torch.Loader(samples, millrace.Recipe.train(224), shuffle=True)
"""

from __future__ import annotations

import os
import re
import reprlib
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Literal, Protocol

import numpy as np

from millrace._data.columns import Labels, column_of, each_column, is_classes, narrowed, numbered, selected
from millrace._data.file_parts import FileParts
from millrace._wire.messages import is_url, path_text
from millrace.errors import InvalidRequest
from millrace.samples import AnyPath, Part, Path

_PATH, _LABEL = "path", "label"
_AT_ONCE = 65536  # paths that are searched together


class Table(Protocol):
    """Columns by name: a dictionary, a data frame of pandas'."""

    def keys(self) -> Any:  # noqa: D102
        ...

    def __getitem__(self, name: str, /) -> Any: ...


AnySamples = Sequence[AnyPath | Part] | Sequence[tuple[AnyPath | Part, Any]] | Sequence[Mapping[str, Any]] | Table
"""Files, or parts of files: paths; pairs (path, label); dictionaries; columns by name. ``Samples.of`` says what becomes of them."""


def _in_order(classes: Any) -> Any:
    """The names in the order of their labels.

    Raises:
        InvalidRequest: they have no order, or one with gaps.
    """
    if isinstance(classes, str):
        if classes != "sorted":
            raise InvalidRequest(f'classes: names of labels, or "sorted", not {classes!r}')
        return classes
    if isinstance(classes, Mapping):
        if sorted(classes.values()) != list(range(len(classes))):
            raise InvalidRequest("classes: a mapping gives names the labels 0, 1, 2, ...; this one gives others: map the labels yourself")
        return sorted(classes, key=classes.__getitem__)
    if isinstance(classes, (set, frozenset)):
        raise InvalidRequest("classes: a set has no order, and labels are places in it: give a list")
    return [str(name) for name in classes]


class Samples:
    """Files or parts of files, each with a label of any kind. Sample i is ``paths[i]``; one may be there several times. Immutable.

    ``len()``, ``samples[i]`` (a pair of path and label) and iteration are there, so it is a dataset for ``torch.utils.data.Subset``,
    ``random_split`` and ``ConcatDataset``, too.

    What a loop gets beside the images: labels that are numbers, or arrays of numbers [N, ...], as an array of the framework's: whole
    numbers int64 (JAX: int32), others in their own type, which for Python's floats is float64 as DataLoader has it. Texts and all other
    values are a list, in the images' order. With several columns it is a dictionary of these.

    Memory: 8 bytes a sample for the list of paths unless the given one is a ``list`` of ``str``, absolute, which is kept as it is; 8 for a
    number as its label unless the given ones are an array; all else is kept as it is.
    """

    def __init__(
        self,
        paths: Sequence[AnyPath | Part],
        labels: Any = None,
        *,
        classes: Sequence[str] | Literal["sorted"] = (),
        root: AnyPath | None = None,
    ) -> None:
        """Checks them; opens no file.

        Args:
            paths: of N files beneath the daemon's roots. Relative ones are relative to ``root``. ``millrace.Part(path, offset, length)``
                is a part of a file: then ``Samples.paths`` has names for people, ``/data/shard.tar[1536+48211]``, and ``part_of`` the part.
            labels: N values; or a mapping of names to N values each; None: every label is -1.
            classes: names of the labels, in the order of the labels; then labels that are texts become positions in them. ``"sorted"``: the
                texts that there are, in sorted order.
            root: a folder; None: the current one.

        Raises:
            InvalidRequest: no files, a URL, not as many labels as files, ...; says which.
        """
        self.paths: Sequence[str] = _absolute(paths, root)
        """Absolute, as ``os`` has them; of parts their names for people."""
        self.labels: Labels = labels_of(labels, len(self.paths))
        """[N, ...] of numbers, a sequence of N others, a dictionary of these, or None."""
        self.classes: tuple[str, ...] = ()
        """The labels' names, in the order of the labels; empty where they have none."""
        if classes is not None and len(classes):
            self._name(classes)

    def _name(self, classes: Sequence[str] | Literal["sorted"]) -> None:
        self.labels, self.classes = named_labels(self.labels, classes)

    @staticmethod
    def of(given: Any, root: AnyPath | None = None) -> Samples:
        """What is meant by a list or by columns.

        Args:
            given: ``AnySamples``: paths; pairs (path, label); dictionaries with the same keys; or columns by name. Of the latter two
                ``"path"`` is the file; of one more column the values are the labels, of several the labels are a dictionary.
            root: see ``Samples``.

        Raises:
            InvalidRequest: it is none of these; says what it is.
        """
        if isinstance(given, Samples):
            return given
        paths, labels = taken_apart(given)
        return Samples(paths, labels, root=root)

    def subset(self, ids: Any) -> Samples:
        """Those of its samples, in that order: sample i of the new ones is ``ids[i]`` of these.

        Raises:
            InvalidRequest: one is none of these.
        """
        chosen = np.asarray(ids.tolist() if hasattr(ids, "tolist") else list(ids))
        if not len(chosen):
            raise InvalidRequest("samples: none is left")
        if chosen.dtype.kind not in "iu" or chosen.ndim != 1 or not (-len(self) <= chosen.min() and chosen.max() < len(self)):
            raise InvalidRequest(f"samples: a subset is of whole numbers from 0 to {len(self) - 1}")
        made = object.__new__(Samples)
        made.paths = self.paths.taken(chosen) if isinstance(self.paths, FileParts) else list(selected(self.paths, chosen))
        made.labels = each_column(self.labels, lambda column: narrowed(column, chosen))
        made.classes = self.classes
        return made

    def path_of(self, sample: int) -> str:
        """The file of a sample: of one of ``batch.ids``; of a part its name for people."""
        return self.paths[int(sample)]

    def part_of(self, sample: int) -> Part | None:
        """The part of a file that the sample is; None: a whole file."""
        return self.paths.part_of(int(sample)) if isinstance(self.paths, FileParts) else None

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> tuple[str, Any]:
        position = range(len(self.paths))[index]
        label = each_column(self.labels, lambda column: column[position])
        return self.paths[position], -1 if label is None else label

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return (self[index] for index in range(len(self)))

    def __repr__(self) -> str:
        columns = f", labels {', '.join(self.labels)}" if isinstance(self.labels, Mapping) else ""
        return f"<millrace.Samples {path_text(self.paths[0])} and more: {len(self)}{columns}, {len(self.classes)} classes>"


def named_labels(labels: Labels, classes: Sequence[str] | Literal["sorted"]) -> tuple[Labels, tuple[str, ...]]:
    """Labels that are texts as positions among the classes, and the classes. Raises InvalidRequest: they do not fit."""
    classes = _in_order(classes)
    key = _LABEL if isinstance(labels, Mapping) else None
    column = labels.get(_LABEL) if isinstance(labels, Mapping) else labels
    if column is None:
        raise InvalidRequest("classes: there are names of labels and no labels")
    if isinstance(column, (list, tuple)):
        if not all(isinstance(value, str) for value in column):
            raise InvalidRequest("classes: there are names of labels, and labels that are neither whole numbers nor texts")
        classes = sorted(set(column)) if isinstance(classes, str) else classes
        column = numbered(column, classes)
    elif isinstance(classes, str):
        raise InvalidRequest('classes="sorted": the labels are no texts')
    elif (
        isinstance(column, np.ndarray)
        and is_classes(column)
        and column.size
        and not -1 <= int(np.min(column)) <= int(np.max(column)) < len(classes)
    ):
        raise InvalidRequest(f"classes: there are {len(classes)} names, and labels from {np.min(column)} to {np.max(column)}")
    return column if key is None else {**labels, key: column}, tuple(classes)  # type: ignore[dict-item]


def labels_of(labels: Any, count: int) -> Labels:
    """Labels of so many samples as columns. Raises InvalidRequest: they are not so many."""
    if isinstance(labels, Mapping):
        return {str(name): column_of(values, count, str(name)) for name, values in labels.items()} or None
    return None if labels is None else column_of(labels, count, "labels")


def taken_apart(given: Any) -> tuple[Any, Any]:
    """The paths and the labels of ``AnySamples``. Raises as ``Samples.of``."""
    if hasattr(given, "keys"):
        return _of_columns({str(name): given[name] for name in given.keys()})  # noqa: SIM118, data frames iterate otherwise
    if hasattr(given, "__array__"):
        given = np.asarray(given).tolist()
    rows = given if isinstance(given, (list, tuple)) else list(given)
    kinds = set(map(type, rows))
    if rows and all(issubclass(kind, Mapping) for kind in kinds):
        return _of_columns(_columns_of_rows(rows))
    if rows and all(issubclass(kind, (tuple, list)) and kind not in (Path, Part) for kind in kinds):
        _check_pairs(rows)
        return [row[0] for row in rows], [row[1] for row in rows]
    return rows, None


def _of_columns(columns: dict[str, Any]) -> tuple[Any, Any]:
    if _PATH not in columns:
        told = reprlib.repr(list(columns))[1:-1] or "none"
        raise InvalidRequest(
            f'samples: columns are {told}; the files\' paths are to be in "path" (of a Series: samples={{"path": series, "label": ...}})'
        )
    paths = columns.pop(_PATH)
    return paths, next(iter(columns.values())) if len(columns) == 1 else columns


def _columns_of_rows(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    names = rows[0].keys()
    for number, row in enumerate(rows):
        if row.keys() != names:
            raise InvalidRequest(f"samples: sample {number} has the keys {sorted(row)}, sample 0 has {sorted(names)}")
    return {name: [row[name] for row in rows] for name in names}


def _check_pairs(rows: Sequence[Any]) -> None:
    lengths = set(map(len, rows))
    if lengths != {2}:
        number = next(number for number, row in enumerate(rows) if len(row) != 2)
        raise InvalidRequest(
            f"samples: sample {number} has {len(rows[number])} values; a sample is a path, a pair (path, label), or a dictionary with the "
            "key path; give columns by name for more: {'path': [...], 'label': [...], 'caption': [...]}"
        )


def _absolute(paths: Any, root: AnyPath | None) -> Sequence[str]:
    if isinstance(paths, (str, bytes, os.PathLike)) or not hasattr(paths, "__len__"):
        raise InvalidRequest(f"samples: paths are a list of paths, not a {type(paths).__name__}")
    if isinstance(paths, FileParts):
        return _some(paths)
    if hasattr(paths, "__array__"):
        paths = np.asarray(paths).tolist()
    if not isinstance(paths, (list, tuple)):
        paths = list(paths)
    kinds = set(map(type, _some(paths)))
    if Part in kinds:
        return FileParts.of(paths, lambda files: _absolute(files, root))
    if kinds != {str}:
        paths = [_decoded(path, number) for number, path in enumerate(paths)]
    known: Sequence[str] = paths
    relative = [path for path in known if path[:1] != "/"]
    if not relative:
        return known
    for path in relative:
        if not path or "\0" in path:
            raise InvalidRequest(f"samples: sample {paths.index(path)} has no path: {reprlib.repr(path)}")
        if is_url(path):
            raise InvalidRequest(
                f"samples: sample {paths.index(path)}, {path_text(path)}, is a URL, and the daemon reads none: give "
                "millrace.RemoteFiles, which takes lists of URLs, or paths beneath the daemon's roots"
            )
    base = os.path.abspath(os.fsdecode(root) if root is not None else "")
    return [path if path[:1] == "/" else _beneath(base, path) for path in paths]


def _some(paths: Sequence[Any]) -> Sequence[Any]:
    if not len(paths):
        raise InvalidRequest("samples: there are none")
    return paths


def _beneath(base: str, path: str) -> str:
    plain = path[:1] != "." and "/." not in path and "//" not in path
    return f"{base}/{path}" if plain else os.path.normpath(f"{base}/{path}")


def _decoded(path: Any, number: int) -> str:
    if isinstance(path, Path):
        path = path.path
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise InvalidRequest(
            f"samples: sample {number} is a {type(path).__name__}; a sample is a path, a pair (path, label), or a dictionary with the key "
            "path. Images' bytes: millrace.Encoded"
        )
    return os.fsdecode(path)


def with_endings(paths: Sequence[str], endings: AbstractSet[str]) -> list[str]:
    """Those of the paths whose names end with a dot and one of these, in any case; quick where there are none."""
    if not endings:
        return []
    ends = re.compile(rf"\.(?:{'|'.join(map(re.escape, sorted(endings)))})\0", re.IGNORECASE)
    found = []
    for begin in range(0, len(paths), _AT_ONCE):
        some = paths[begin : begin + _AT_ONCE]
        if ends.search("\0".join(some) + "\0"):
            found += [path for path in some if ends.search(path + "\0")]
    return found
