"""A table as a loader's dataset: its images go to the daemon as parts of files where that can be, else row by row."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from millrace._data.columns import Column, each_column, is_classes
from millrace._data.dataset_argument import Files, Given, Listed, Source, _check_fits, read_by
from millrace._data.hugging_face import is_table
from millrace._tables.arrow_parts import parts_of
from millrace._tables.byte_ranges import NotParts, check_arrow
from millrace._tables.lazy_columns import RowsColumn, check_label, labels_of, number_column, samples_of
from millrace._tables.parquet import Parquet, warn_of_row_groups, written_anew
from millrace.encoded import _LABELS, Encoded
from millrace.errors import Error, InvalidRequest, PermissionDenied, Unsupported
from millrace.sample_list import Samples

if TYPE_CHECKING:
    from millrace._core.session import Session

_READ_BY_KEY = ("cls", "json", "txt")  # columns of bytes whose values ``Encoded`` reads by their key


class GivenTable(Source):
    """A map-style table. What goes to the daemon is settled once the daemon has taken the parts, or refused them."""

    def __init__(
        self, encoded: Encoded, shown: Any, samples: Callable[[], Samples], warn_of: Callable[[Error], None] = lambda why: None
    ) -> None:
        """Looks where the images are.

        Args:
            encoded: the table, row by row.
            shown: what ``loader.dataset`` is.
            samples: gives it by parts; raises NotParts.
            warn_of: told why it goes row by row.
        """
        super().__init__(encoded, shown)
        self._warn_of = warn_of
        self._samples: Samples | None = None
        try:
            self._samples = samples()
            self.read_by = read_by(self._samples.paths)
        except NotParts as why:
            self._by_rows(why)

    def _by_rows(self, why: Error) -> None:
        self._warn_of(why)
        self._samples, self.read_by = None, f"the loader, row by row: {why}"

    @property
    def encoded(self) -> Encoded | None:  # type: ignore[override]
        """The table by rows; None: the daemon reads parts of its files."""
        return self._encoded if self._samples is None else None

    def count(self) -> int | None:
        """Its rows."""
        return self._encoded.count()

    def listed(self, session: Session, extensions: Iterable[str] | None, label_type: DTypeLike, timeout: float) -> Listed:
        """Hands the parts to the daemon; if it may not read these files, or knows no parts, the rows go another way."""
        samples = self._samples
        if samples is None or extensions is not None:
            return super().listed(session, extensions, label_type, timeout)
        each_column(samples.labels, lambda column: _check_fits(column, label_type))
        kept = samples.labels["label"] if isinstance(samples.labels, dict) and "label" in samples.labels else samples.labels
        classes = kept if is_classes(kept) else None
        try:
            opened = session.dataset_of(samples.paths, classes, timeout=timeout)
        except (PermissionDenied, Unsupported) as why:
            self._by_rows(why)
            return super().listed(session, extensions, label_type, timeout)
        labels = None if samples.labels is None or samples.labels is classes else samples.labels
        return Listed(len(samples), samples.classes, labels, self.shown, opened)


def given_encoded(encoded: Encoded, shown: Any) -> Source:
    """Of a source of encoded images: as parts where it is a table of Hugging Face's."""
    if is_table(encoded.source):
        return GivenTable(encoded, shown, lambda: hugging_face_samples(encoded))
    return Source(encoded, shown)


def given_parquet(parquet: Parquet, in_blocks: bool) -> Given:
    """Of a ``Parquet``; ``in_blocks``: what has no parts is read in blocks."""
    from millrace._loader.block_epoch import GivenBlocks

    if parquet.remote:
        return GivenBlocks(parquet.blocks(), parquet)
    if parquet.names_files:
        return Files(parquet.samples())
    if in_blocks:
        try:
            samples = parquet.samples()
        except NotParts:
            return GivenBlocks(parquet.blocks(), parquet)
        return GivenTable(parquet.encoded(), parquet, lambda: samples)
    return GivenTable(parquet.encoded(), parquet, parquet.samples, lambda why: warn_of_row_groups(parquet, why))


def samples_of_table(table: Any) -> Samples:
    """Of a ``Parquet``, a Hugging Face ``Dataset`` or one in ``Encoded``, within a ``Subset`` or ``ConcatDataset`` of PyTorch's.

    Raises:
        Unsupported: its images are no parts of files; says what to do.
    """
    try:
        if isinstance(table, Parquet):
            return table.samples()
        return hugging_face_samples(table if isinstance(table, Encoded) else Encoded(table))
    except NotParts as why:
        told = "loader: within a Subset or a ConcatDataset the images of a table are read as parts of its files"
        how = (
            written_anew(table)
            if isinstance(table, Parquet)
            else "give dataset.select(subset.indices), or datasets.concatenate_datasets([...])"
        )
        raise Unsupported(f"{told}, and here they are none: {why}; {how}") from why


def hugging_face_samples(encoded: Encoded) -> Samples:
    """A Hugging Face ``Dataset`` by parts; labels and columns stay in the table.

    Raises:
        NotParts: it does not lie in files; says why.
        InvalidRequest: a row has no image or no label.
    """
    dataset = encoded.opened
    features = dict(dataset.features)
    image, label = encoded._image, encoded._label
    if label is None:
        label = next((name for name in _LABELS.split(";") if name in features), None)
        if label is None:
            raise NotParts("it has no column of labels")
    columns = encoded.columns
    for name in (image, *([label] if label != "" else []), *columns):
        if not isinstance(name, str) or name not in features:
            raise NotParts("its image and label are no names of columns")
        if name != image and name in _READ_BY_KEY and getattr(features[name], "dtype", "") in ("binary", "large_binary"):
            raise NotParts(f"the column {name!r} is bytes")
    parts = parts_of(dataset, image)
    for name in (*([label] if label != "" else []), *columns):
        check_arrow(dataset.data.column(name))
    found: dict[str, Column] = {name: _column(dataset, name) for name in columns}
    return samples_of(parts, labels_of(_label(dataset, label) if label != "" else None, found), encoded.classes)


def _label(dataset: Any, name: str) -> Column:
    chosen = None if dataset._indices is None else dataset._indices.column(0).to_numpy().astype(np.int64)
    check_label(dataset.data.column(name), name, chosen)
    return _column(dataset, name)


def _column(dataset: Any, name: str) -> Column:
    feature = dataset.features[name]
    if type(feature).__name__ not in ("ClassLabel", "Value"):
        return RowsColumn(dataset, name)
    try:
        numbers = number_column(dataset.data.column(name), name)
    except InvalidRequest:
        numbers = None  # of 64 bits without a sign: told of by the batch that has them
    if numbers is None:
        return RowsColumn(dataset, name)
    return numbers if dataset._indices is None else numbers[dataset._indices.column(0).to_numpy()]
