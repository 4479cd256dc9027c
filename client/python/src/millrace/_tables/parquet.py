"""Parquet files as a loader's dataset.

>>> loader = millrace.torch.Loader(millrace.Parquet("train-*.parquet"), millrace.Recipe.train(224), shuffle=True)
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from millrace._blocks.parquet import ParquetBlocks
from millrace._data.columns import Column
from millrace._process.warn import warn
from millrace._tables import parquet_files
from millrace._tables.byte_ranges import NotParts
from millrace._tables.lazy_columns import ArrowColumn, check_label, labels_of, number_column, samples_of
from millrace._tables.parquet_parts import parts_of
from millrace._tables.row_groups import GroupsColumn, RowGroups
from millrace._wire.messages import path_text
from millrace.encoded import Encoded
from millrace.errors import Error, InvalidRequest
from millrace.sample_list import Samples
from millrace.samples import AnyPath

_KEPT = 256 << 20  # bytes of a column that is kept in memory


class Parquet:
    """Parquet files whose rows have an image each, as a loader's dataset. Sample i is row i, counted through the files. Immutable.

    The column of images holds files' bytes, Hugging Face's struct of ``bytes`` and ``path``, or paths. Of bytes that are neither compressed
    nor encoded the daemon reads parts of the files, as it reads files of a folder. Others go through the loader: it reads whole row groups,
    which is slow in a random order. Write such files anew with ``compression={"image.bytes": "NONE"}``, see the documentation.

    Behind URLs (``s3://``, ``gs://``, ``hf://``, ``https://``) the loader reads all files by row groups, in blocks: each epoch fetches of
    each row group the columns that are named here, by ranges, and keeps none. Take ``shuffle="blocks"``, or no shuffling. A file that is
    replaced meanwhile is noticed: its samples are bad images. Images are bytes there.
    """

    def __init__(
        self,
        source: AnyPath | Sequence[AnyPath],
        image: str = "image",
        label: str | None = "label",
        columns: Iterable[str] = (),
        *,
        root: AnyPath | None = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        """Reads the files' footers.

        Args:
            source: a file, several as ``train-*.parquet`` or ``train-{00..15}.parquet``, a folder, or a list of these; beneath the
                daemon's roots, or URLs: ``"s3://bucket/train-*.parquet"``.
            image: the column with the images.
            label: the column with the labels; None or ``""``: none, every label is -1.
            columns: more columns, names or one name; then the labels are a dictionary of these and ``"label"``, as with ``Samples``.
            root: the folder of a column of relative paths; None: the current one.
            storage_options: of URLs, fsspec's: credentials, endpoint and the like.

        Raises:
            NotFound: there is no such file.
            PermissionDenied: the store refuses it to these credentials.
            OSError: a footer cannot be fetched; says URL and cause.
            InvalidRequest: a file is damaged or is none of Parquet's, or there is no such column: names those that there are.
            Unsupported: pyarrow is not installed, or what reads these URLs.
        """
        from millrace._remote.objects import is_remote

        self.remote = is_remote(source)
        """Whether its files lie behind URLs."""
        if storage_options is not None and not self.remote:
            raise InvalidRequest("Parquet: storage_options are for URLs (s3://bucket/train-*.parquet)")
        self._files = parquet_files.opened_objects(source, storage_options) if self.remote else parquet_files.opened_files(source)
        label = label or None
        self.columns = (columns,) if isinstance(columns, str) else tuple(columns)
        self.image, self.label, self._root = image, label, root
        schema = self._files.schema
        for name in (image, *(() if label is None else (label,)), *self.columns):
            if name not in schema.names:
                argument = {image: "image=", label: "label="}.get(name, "columns=")
                raise InvalidRequest(
                    f"Parquet: {path_text(self._files.paths[0])} has no column {name!r} ({argument}); it has "
                    f"{parquet_files.told_of(schema)}"
                )
            if schema.names.count(name) > 1:
                raise InvalidRequest(f"Parquet: {path_text(self._files.paths[0])} has {schema.names.count(name)} columns {name!r}")
        self._content, self._paths = self._image_columns()
        if self.remote and self._content is None:
            raise InvalidRequest(
                f"Parquet: the column {image!r} of {self._files.paths[0]} has paths: behind a URL images are bytes; millrace.RemoteFiles "
                "takes images' URLs"
            )
        self.classes: tuple[str, ...] = self._files.classes_of(label) if label is not None else ()
        """The labels' names, where Hugging Face's ``datasets`` wrote them down."""
        if not self._files.rows:
            raise InvalidRequest(f"Parquet: {path_text(self._files.paths[0])} has no rows")

    def blocks(self) -> ParquetBlocks:
        """The row groups, as a source in blocks."""
        return ParquetBlocks(self._files.tables, self.image, self.label, self.columns, self.classes)

    @property
    def names_files(self) -> bool:
        """Whether the images are files of their own, which the column names."""
        return self._content is None

    def samples(self) -> Samples:
        """As a list of samples: parts of these files, or the files that a column of paths names.

        Raises:
            Unsupported: its images are compressed or encoded, so that they are no parts of the files.
            InvalidRequest: a row has no image or no label, or a file is damaged; or its files lie behind URLs.
        """
        if self.remote:
            raise InvalidRequest(f"Parquet: {self._files.paths[0]}: files behind URLs have no places on this host; copy them to it")
        columns: dict[str, Column] = {name: self._column(name) for name in self.columns}
        label = None if self.label is None else self._label_column(self.label)
        labels = labels_of(label, columns)
        if self._content is None:
            paths = self._whole(self.image).to_pylist()
            if None in paths:
                raise InvalidRequest(f"Parquet: row {paths.index(None)} has no image: its path is missing; leave such rows out")
            return samples_of(Samples(paths, root=self._root).paths, labels, self.classes)
        return samples_of(parts_of(self._files, self._content, self._paths), labels, self.classes)

    def encoded(self) -> Encoded:
        """As rows that the loader reads by row groups."""
        wanted = [self.image, *(() if self.label is None else (self.label,)), *self.columns]
        rows = RowGroups(self._files, list(dict.fromkeys(wanted)), self.fingerprint)
        label = "" if self.label is None else self.label
        return Encoded(rows, image=self.image, label=label, columns=self.columns, classes=self.classes)

    @property
    def fingerprint(self) -> str:
        """Of the files' names, sizes and times, and of the columns."""
        files = self._files
        told = repr((files.paths, files.sizes.tolist(), files.modified_ns.tolist(), self.image, self.label, self.columns))
        return hashlib.sha256(told.encode("utf-8", "surrogateescape")).hexdigest()[:32]

    def __len__(self) -> int:
        return self._files.rows

    def __repr__(self) -> str:
        more = len(self._files.paths) - 1
        return f"<millrace.Parquet {path_text(self._files.paths[0])}{f' and {more} more' if more else ''}: {len(self)}>"

    def _image_columns(self) -> tuple[str | None, str | None]:
        types = parquet_files.pyarrow()[0].types
        kind = self._files.schema.field(self.image).type
        if types.is_struct(kind):
            inner = {field.name: field.type for field in kind}
            if "bytes" in inner and (types.is_binary(inner["bytes"]) or types.is_large_binary(inner["bytes"])):
                return f"{self.image}.bytes", f"{self.image}.path" if "path" in inner else None
        if types.is_binary(kind) or types.is_large_binary(kind):
            return self.image, None
        if types.is_string(kind) or types.is_large_string(kind):
            return None, None
        raise InvalidRequest(
            f"Parquet: the column {self.image!r} has no images: an image is bytes, a struct of bytes and path, or a path; the columns are "
            f"{parquet_files.told_of(self._files.schema)}"
        )

    def _whole(self, name: str) -> Any:
        arrow, _ = parquet_files.pyarrow()
        chunks = []
        for path in self._files.paths:
            with parquet_files.opened_file(path) as file:
                table = file.read(columns=[name], use_threads=False)  # and what is called "name.more"
                table.validate(full=True)  # texts that are no UTF-8, too
                chunks += table.column(name).chunks
        return arrow.chunked_array(chunks, type=self._files.schema.field(name).type)

    def _column(self, name: str) -> Column:
        if self._bytes_of(name) > _KEPT:
            return GroupsColumn(RowGroups(self._files, [name], self.fingerprint), name)
        values = self._whole(name)
        numbers = number_column(values, name)
        return ArrowColumn(values, name) if numbers is None else numbers

    def _label_column(self, name: str) -> Column:
        column = self._column(name)
        if isinstance(column, ArrowColumn):
            check_label(column.values, name)
        return column

    def _bytes_of(self, name: str) -> int:
        return sum(footer.bytes_of(group, name) for footer in self._files.footers for group in range(len(footer.rows)))


def written_anew(parquet: Parquet) -> str:
    """What makes parts of its images."""
    name = f"{parquet.image}.bytes" if parquet._content != parquet.image else parquet.image
    return f'write the files anew: pyarrow.parquet.write_table(table, path, compression={{"{name}": "NONE"}}, use_dictionary=False)'


def warn_of_row_groups(parquet: Parquet, why: Error) -> None:
    """Says what reading by row groups costs, and what to do."""
    told = f"Parquet: the loader reads whole row groups, which is slow in a random order: {why}"
    warn(f'{told}. Take shuffle="blocks", or {written_anew(parquet)}' if isinstance(why, NotParts) else told)
