"""Lists of files in CSV, TSV and JSON Lines files."""

from __future__ import annotations

import csv
import io
import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, NoReturn, TextIO

import numpy as np

from millrace._wire.messages import is_url, path_text
from millrace.errors import InvalidRequest
from millrace.sample_list import Samples
from millrace.samples import AnyPath, Part, part_bounds

_PATHS = ("path", "file_name", "filename", "file", "image")
_LABELS = ("label", "class", "target")
_DELIMITERS = {".csv": ",", ".tsv": "\t", ".jsonl": "", ".ndjson": ""}
MANIFESTS = tuple(_DELIMITERS)
"""What their names end with."""
_AT_ONCE = 16384  # rows
_LONGEST = 1 << 24  # characters of a cell
LabelKind = Literal["auto", "class", "int", "float", "text"]


def is_manifest(path: AnyPath) -> bool:
    """Whether a loader's dataset of that name is a manifest and not a folder."""
    name = os.fsdecode(path)
    return os.path.splitext(name)[1].lower() in _DELIMITERS and not os.path.isdir(name)


def read_manifest(
    path: AnyPath,
    *,
    path_column: str | int | None = None,
    label_column: str | int | None = None,
    columns: Sequence[str | int] = (),
    label_kind: LabelKind = "auto",
    root: AnyPath | None = None,
    header: bool = True,
    delimiter: str | None = None,
    part_columns: Sequence[str | int] | None = None,
) -> Samples:
    """Reads a list of files: CSV (``.csv``), with tabs (``.tsv``), or a JSON object a line (``.jsonl``, ``.ndjson``); UTF-8.

    Empty lines do not count. Columns that are not named here are not read. With the columns offset and length a line is a part of its file
    (``millrace.Part``), as ``python -m millrace list`` writes it; where both are empty, null or left out of JSON, it is the whole file.

    Args:
        path: of the manifest.
        path_column: the files' paths: the column's name in the header, or its number, from 0 on; a key of JSON's objects. None: the one
            that is called path, file_name, filename, file or image; without a header the first.
        label_column: their labels. None: the one that is called label, class or target, and no labels if the paths are the only column;
            without a header the second. ``""``: no labels.
        columns: more columns; then the labels are a dictionary of these and ``"label"`` (see ``Samples``).
        label_kind: ``"class"``: names of classes, which become positions in ``Samples.classes``, in sorted order; ``"int"``, ``"float"``,
            or ``"text"``, as it is. ``"auto"``: numbers where all are, else class names; of JSON what is neither a number nor a text
            stays as it is.
        root: where relative paths begin; None: the manifest's folder.
        header: whether the first line of CSV names the columns.
        delimiter: between the cells of CSV; None: by the name's ending.
        part_columns: the two columns with offset and length of the parts, in bytes. None: offset and length, where both are there;
            ``()``: none, every line is a whole file.

    Raises:
        InvalidRequest: a column that is not there, or a line that cannot be read; says file and line.
        OSError: the file cannot be read.
    """
    if is_url(path):
        raise InvalidRequest(f"{path_text(path)} is a URL: give millrace.RemoteFiles({os.fsdecode(path)!r})")
    place = os.path.abspath(os.fsdecode(path))
    how = ManifestColumns(path_column, label_column, columns, label_kind, header, delimiter, part_columns)
    paths, labels, classes = manifest_samples(place, None, how)
    return Samples(paths, labels, classes=classes, root=os.path.dirname(place) if root is None else root)


class ManifestColumns(NamedTuple):
    """How a manifest is read: arguments of ``read_manifest``."""

    path_column: str | int | None = None
    label_column: str | int | None = None
    columns: Sequence[str | int] = ()
    label_kind: LabelKind = "auto"
    header: bool = True
    delimiter: str | None = None
    part_columns: Sequence[str | int] | None = None


def manifest_samples(place: str, content: bytes | None, how: ManifestColumns) -> tuple[list[Any], Any, Literal["sorted"] | tuple[()]]:
    """Paths or parts, labels and classes, as ``Samples`` takes them.

    Args:
        place: the manifest's path, or its name for people.
        content: what is in it; None: the file at ``place``.
        how: it is read.

    Raises:
        InvalidRequest, OSError: as ``read_manifest``.
    """
    ending = os.path.splitext(place)[1].lower()
    if how.delimiter is None and ending not in _DELIMITERS:
        raise InvalidRequest(f"{path_text(place)}: a manifest is called .csv, .tsv, .jsonl or .ndjson, or delimiter= says that it is CSV")
    if how.label_kind not in ("auto", "class", "int", "float", "text"):
        raise InvalidRequest(f"read_manifest: label_kind is auto, class, int, float or text, not {how.label_kind!r}")
    between = _DELIMITERS[ending] if how.delimiter is None else how.delimiter
    reader: Any = _Csv(place, content, between, how.header) if between else _JsonLines(place, content)
    chosen = reader.choose(how.path_column, how.label_column, how.columns)
    bounds = reader.part_columns(how.part_columns, set(chosen.values()))
    cells = reader.columns([*chosen.values(), *bounds], optional=len(bounds))
    found = dict(zip(chosen, cells, strict=False))
    paths = found.pop(_PATH)
    for number, name in enumerate(paths):
        if not isinstance(name, str) or not name:
            reader.refuse(number, f"no path in {reader.called(chosen[_PATH])}, but {name!r}")
    if not paths:
        raise InvalidRequest(f"{path_text(place)}: there is no line with a file")
    if bounds:
        paths = _parts(reader, bounds, paths, *cells[len(chosen) :])
    kinds = {name: how.label_kind if name == _LABEL else "auto" for name in found}
    labels = {name: _values(reader, chosen[name], values, kinds[name]) for name, values in found.items()}
    named = _LABEL in labels and _are_texts(labels[_LABEL]) and how.label_kind in ("auto", "class")
    return paths, labels.get(_LABEL) if set(labels) <= {_LABEL} else labels, "sorted" if named else ()


_PATH, _LABEL = "\0path", "label"  # the first cannot be a column's
_BOUNDS = ("offset", "length")


def _parts(reader: Any, bounds: Sequence[Any], paths: list[str], offsets: list[Any], lengths: list[Any]) -> list[Any]:
    """The paths, and parts where there are offset and length."""
    sources: list[Any] = []
    for number, (path, offset, length) in enumerate(zip(paths, offsets, lengths, strict=True)):
        if offset in (None, "") and length in (None, ""):
            sources.append(path)
            continue
        try:
            part = Part(path, *(int(bound) if isinstance(bound, str) else bound for bound in (offset, length)))
            part_bounds(part)
        except (ValueError, InvalidRequest) as why:
            told = f"{offset!r} in {reader.called(bounds[0])} and {length!r} in {reader.called(bounds[1])} are no part of a file"
            reader.refuse(number, f"{told}: {why}" if isinstance(why, InvalidRequest) else told)
        sources.append(part)
    return sources if any(type(source) is Part for source in sources) else paths


def _are_texts(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


@dataclass
class _Csv:
    """A file of rows of cells."""

    place: str
    content: bytes | None
    delimiter: str
    header: bool

    def __post_init__(self) -> None:
        with _opened(self.place, self.content) as file:
            self.names = next(self._rows(file), [])
        if not self.names:
            raise InvalidRequest(f"{path_text(self.place)}: the manifest is empty")

    def _rows(self, file: TextIO, where: Callable[[int], None] | None = None) -> Iterator[list[str]]:
        csv.field_size_limit(max(_LONGEST, csv.field_size_limit()))
        reader = csv.reader(file, delimiter=self.delimiter, skipinitialspace=True, strict=True)
        try:
            for row in reader:
                if where is not None:
                    where(reader.line_num)
                if row:
                    yield row
        except csv.Error as why:
            raise InvalidRequest(f"{path_text(self.place)}:{reader.line_num}: {why}") from why

    def choose(self, path: str | int | None, label: str | int | None, more: Sequence[str | int]) -> dict[str, int]:
        """The numbers of the columns, by what they are: the path, the label, others by name."""
        if not self.header:
            path, label = 0 if path is None else path, (1 if len(self.names) > 1 else "") if label is None else label
        given = self.names if self.header else [str(number) for number in range(len(self.names))]
        wanted = _chosen(self.place, given, path, label, more)
        return {what: self._number(name) for what, name in wanted.items()}

    def _number(self, name: str | int) -> int:
        if isinstance(name, int) and 0 <= name < len(self.names):
            return name
        if self.header and self.names.count(str(name)) == 1:
            return self.names.index(str(name))
        among = f"its columns are {', '.join(map(repr, self.names))}" if self.header else f"it has {len(self.names)}, from 0 on"
        raise InvalidRequest(f"{path_text(self.place)}: no single column {name!r}; {among}; header=False: the first line is no header")

    def part_columns(self, given: Sequence[str | int] | None, taken: set[int]) -> list[int]:
        """The numbers of the columns with offset and length; none: there are no parts."""
        if given is None:
            found = [self.names.index(name) for name in _BOUNDS if self.header and self.names.count(name) == 1]
            return found if len(found) == len(_BOUNDS) and not taken.intersection(found) else []
        return [self._number(name) for name in _two(given)]

    def called(self, column: int) -> str:
        """The column's name, for messages."""
        return repr(self.names[column]) if self.header else f"column {column}"

    def columns(self, chosen: Sequence[int], optional: int) -> list[list[str]]:
        """Their cells. Equal texts are one object."""
        cells: list[list[str]] = [[] for _ in chosen]
        known: list[dict[str, str]] = [{} for _ in chosen]
        with _opened(self.place, self.content) as file:
            rows = self._rows(file)
            if self.header:
                next(rows)
            while some := list(itertools.islice(rows, _AT_ONCE)):
                if set(map(len, some)) != {len(self.names)}:
                    wrong = next(number for number, row in enumerate(some) if len(row) != len(self.names))
                    self.refuse(len(cells[0]) + wrong, f"{len(some[wrong])} cells, the first line has {len(self.names)}")
                for position, (column, out) in enumerate(zip(chosen, cells, strict=True)):
                    values = [row[column] for row in some]
                    out += values if position == 0 else map(known[position].setdefault, values, values)
        return cells

    def refuse(self, number: int, why: str) -> NoReturn:
        """Raises for a row, which it looks for again to know its line."""
        lines: list[int] = []
        with _opened(self.place, self.content) as file:
            for _ in itertools.islice(self._rows(file, lines.append), number + self.header + 1):
                pass
        raise InvalidRequest(f"{path_text(self.place)}:{lines[-1]}: {why}")

    def parsed(self, values: Sequence[Any], kind: type[Any]) -> Any:
        """The cells as numbers: an array. Raises ValueError and OverflowError."""
        table = {text: kind(text) for text in dict.fromkeys(values)}
        return np.fromiter(map(table.__getitem__, values), np.int64 if kind is int else np.float64)


@dataclass
class _JsonLines:
    """A file of JSON objects, one a line."""

    place: str
    content: bytes | None

    def _objects(self, file: TextIO) -> Iterator[tuple[int, dict[str, Any]]]:
        for number, line in enumerate(file, 1):
            if line.isspace():
                continue
            try:
                found = json.loads(line)
            except ValueError as why:
                raise InvalidRequest(f"{path_text(self.place)}:{number}: no JSON: {why}") from why
            if not isinstance(found, dict):
                raise InvalidRequest(f"{path_text(self.place)}:{number}: a line is a JSON object, this one is a {type(found).__name__}")
            yield number, found

    def choose(self, path: str | int | None, label: str | int | None, more: Sequence[str | int]) -> dict[str, str | int]:
        """The keys of the columns, by what they are: the path, the label, others by name."""
        with _opened(self.place, self.content) as file:
            _, first = next(self._objects(file), (0, {}))
        return _chosen(self.place, list(first), path, label, more)

    def part_columns(self, given: Sequence[str | int] | None, taken: set[Any]) -> list[Any]:
        """The keys of offset and length; none: there are no parts."""
        if given is None:
            return [] if taken.intersection(_BOUNDS) else list(_BOUNDS)
        return list(_two(given))

    def called(self, column: Any) -> str:
        """The key, for messages."""
        return repr(column)

    def columns(self, chosen: Sequence[Any], optional: int) -> list[list[Any]]:
        """Their values; of the last ``optional`` ones None where they are left out."""
        cells: list[list[Any]] = [[] for _ in chosen]
        needed = len(chosen) - optional
        with _opened(self.place, self.content) as file:
            for number, found in self._objects(file):
                for position, (key, out) in enumerate(zip(chosen, cells, strict=True)):
                    if position >= needed:
                        out.append(found.get(key))
                        continue
                    if key not in found:
                        raise InvalidRequest(f"{path_text(self.place)}:{number}: no {key!r} in it; it has {', '.join(map(repr, found))}")
                    out.append(found[key])
        return cells

    def refuse(self, number: int, why: str) -> NoReturn:
        """Raises for an object, which it looks for again to know its line."""
        with _opened(self.place, self.content) as file:
            line, _ = next(itertools.islice(self._objects(file), number, None))
        raise InvalidRequest(f"{path_text(self.place)}:{line}: {why}")

    def parsed(self, values: Sequence[Any], kind: type[Any]) -> Any:
        """Numbers, in an array. Raises ValueError and OverflowError."""
        if not all(isinstance(value, (int, float) if kind is float else int) and not isinstance(value, bool) for value in values):
            raise ValueError
        return np.fromiter(values, np.int64 if kind is int else np.float64)


def _two(given: Sequence[str | int]) -> Sequence[str | int]:
    if isinstance(given, str) or len(given) not in (0, 2):
        raise InvalidRequest(f"read_manifest: part_columns are two, of offset and length, or (), not {given!r}")
    return given


def _chosen(place: str, names: Sequence[str], path: str | int | None, label: str | int | None, more: Sequence[str | int]) -> dict[str, Any]:
    if path is None:
        path = _only(place, names, _PATHS, "path_column")
        if path is None:
            told = f"{', '.join(map(repr, names))}; name the one with the files in path_column="
            raise InvalidRequest(f"{path_text(place)}: its columns are {told}, or say header=False if the first line is no header")
    if label is None:
        label = _only(place, names, _LABELS, "label_column")
        others = set(names).difference(_BOUNDS) if set(names).issuperset(_BOUNDS) else names
        if label is None and len(others) > 1 and not more:
            raise InvalidRequest(
                f"{path_text(place)}: no column of {', '.join(map(repr, names))} is called label; name one in label_column=, or give "
                'label_column="" for no labels'
            )
    chosen: dict[str, Any] = {_PATH: path}
    if label is not None and label != "":
        chosen[_LABEL] = label
    for name in more:
        if str(name) in chosen:
            raise InvalidRequest(f"{path_text(place)}: columns: {name!r} is there twice")
        chosen[str(name)] = name
    return chosen


def _only(place: str, names: Sequence[str], known: Iterable[str], argument: str) -> str | None:
    found = [name for name in known if name in names]
    if len(found) > 1:
        raise InvalidRequest(f"{path_text(place)}: both {found[0]!r} and {found[1]!r} are there; name one in {argument}=")
    return found[0] if found else None


def _values(reader: Any, column: Any, values: list[Any], kind: LabelKind) -> Any:
    """The labels, or another column, of what kind they are."""
    if kind in ("class", "text"):
        for number, value in enumerate(values):
            if not isinstance(value, str) or (kind == "class" and not value):
                reader.refuse(number, f"{value!r} in {reader.called(column)} is no {'text' if value or kind == 'text' else 'name'}")
        return values
    for number_kind in (int, float):
        if kind in ("auto", number_kind.__name__):
            try:
                return reader.parsed(values, number_kind)
            except (ValueError, OverflowError) as why:
                if kind != "auto" or isinstance(why, OverflowError):  # as a fraction it would be another number
                    _refuse_first(reader, column, values, number_kind)
    if any(value == "" or value is None for value in values):
        number = next(number for number, value in enumerate(values) if value == "" or value is None)
        reader.refuse(number, f"nothing in {reader.called(column)}")
    return values


def _refuse_first(reader: Any, column: Any, values: list[Any], kind: type[Any]) -> NoReturn:
    for number, value in enumerate(values):
        try:
            reader.parsed([value], kind)
        except (ValueError, OverflowError):
            reader.refuse(number, f"{value!r} in {reader.called(column)} is no {'whole number of 64 bits' if kind is int else 'number'}")
    raise AssertionError  # one of them raised before


def _opened(place: str, content: bytes | None) -> TextIO:
    if content is not None:
        return io.TextIOWrapper(io.BytesIO(content), encoding="utf-8-sig", errors="surrogateescape", newline="")
    return open(place, encoding="utf-8-sig", errors="surrogateescape", newline="")
