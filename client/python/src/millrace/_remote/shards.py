"""Tar shards behind URLs as a source in blocks.

>>> shards = millrace.RemoteShards("s3://bucket/train-{0000..0099}.tar", label="cls", columns=["json"])
>>> loader = millrace.torch.Loader(shards, millrace.Recipe.train(224), shuffle="blocks")
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from millrace._blocks.source import BlockSource
from millrace._core.listing_bar import ListingBar
from millrace._data.endings import DECODED
from millrace._loader.source_rows import Unread
from millrace._remote.copies import Copies
from millrace._remote.indexes import indexed
from millrace._remote.objects import objects_of
from millrace._remote.ranges import AT_ONCE
from millrace._remote.shard_blocks import BLOCK, Stretches, blocks_of, stretches_of
from millrace._remote.shard_values import Labels, Member, Values, labels_in
from millrace._shards.fields import Keys
from millrace._shards.reads import Pieces
from millrace._shards.shards import KEY
from millrace._shards.sources import extensions_of
from millrace._shards.table import table_of
from millrace._wire.messages import path_text
from millrace.encoded import Row
from millrace.errors import Error, InvalidRequest
from millrace.samples import Part

_AT_ONCE = 8  # blocks, of mostly two ranges each


class RemoteShards(BlockSource):
    """Tar shards of an object store or a web server, as a loader's dataset with ``shuffle="blocks"``.

    The daemon reads no URL: this process does.

    Samples, labels and columns are those of ``Shards``. A block is some 8 to 15 MiB of a shard. Each epoch, and each rank of it, reads all
    blocks. For ``storage_options`` and credentials see fsspec's package of the scheme: s3fs, gcsfs, huggingface_hub, aiohttp.

    Where members lie is said by the index beside a shard (``train-0000.idx``, which ``python -m millrace index`` makes before shards are
    copied to the store; DALI's are taken, too). Without one the first opening reads the whole shard, once for a host and its user: the
    index is kept in ``$XDG_CACHE_HOME/millrace/shards``.

    With ``copy_to`` what the first epoch fetches, in blocks, is kept on a disk of this host, once for all its ranks. If all shards have
    room there, later epochs are shuffled image by image, as ``shuffle=True`` does it, from their first batch on.

    Memory: about 30 bytes a sample and those of its image's name, 16 for each column.
    """

    at_once = _AT_ONCE

    def __init__(
        self,
        source: Any,
        *,
        image: str | Sequence[str] = DECODED,
        label: str | None = None,
        columns: Iterable[str] = (),
        classes: Sequence[str] = (),
        strict: bool = False,
        storage_options: Mapping[str, Any] | None = None,
        copy_to: str | os.PathLike[str] | None = None,
        copy_bytes: int | None = None,
    ) -> None:
        """Reads the indexes; makes those that are missing.

        Args:
            source: a URL, ``s3://``, ``gs://``, ``hf://``, ``https://``: of an archive, a folder of them (``.tar``), several as
                ``train-{0000..0099}.tar`` or ``train-*.tar``; or a list of these. Order: as named; of folders and ``*`` that of the names.
            image: as of ``Shards``.
            label: as of ``Shards``. Texts that are no numbers need ``classes``. What the index does not say is read with the images: a
                label that is none of these ends the loop then.
            columns: as of ``Shards``.
            classes: names of the labels; then labels that are texts become positions in them.
            strict: as of ``Shards``.
            storage_options: what fsspec opens the store with: credentials, endpoint and the like. None: what the environment says.
            copy_to: a folder beneath a root of the daemon's. What is fetched is kept there, and of whole shards the daemon reads the images
                there. Processes of one user share the copies, later runs take them, and nothing removes them. None: there are no copies.
            copy_bytes: bytes of all copies in the folder; the rest is read without. None: as many as the disk has.

        Raises:
            InvalidRequest: no shards or no images; a compressed archive; a label that is missing or no number; says which.
            NotFound, PermissionDenied: a shard is not there, or cannot be read with these credentials.
            Unsupported: a scheme that is not read, or a package that is missing.
            OSError: the store fails.
        """
        if copy_bytes is not None and copy_to is None:
            raise InvalidRequest("shards: copy_bytes is of copies: say in copy_to where they are made")
        if isinstance(classes, str):
            raise InvalidRequest(
                "shards: classes has the names of the labels; of shards behind URLs not all are read before the first loop"
            )
        images, others = extensions_of(image, "image"), extensions_of(columns, "columns") if columns else []
        self._objects = objects_of(source, (".tar",), "shards", storage_options)
        with ListingBar(f"{len(self._objects)} shards", "indexing", " shards") as bar:
            table = table_of(indexed(self._objects, bar), images)
        self._images = table.pieces(table.images)
        self._names = table.parts().members
        self._labels: Labels | None = labels_in(table, label, classes)
        self._others = [Keys(self._names) if name == KEY else Values(table.column(name).pieces, name) for name in others]  # type: ignore[arg-type]
        table.report(strict)
        self.classes = tuple(classes)
        self.columns = (*(["label"] if self._labels is not None else []), *others)
        self._wanted = [self._images, *(one.pieces for one in (self._labels, *self._others) if isinstance(one, Values))]
        self._first, self._bytes = blocks_of(self._wanted, BLOCK)
        told = repr((images, label, self.columns, self.classes, self._first.tolist(), [one.identity for one in self._objects]))
        self._copies = None if copy_to is None else Copies(copy_to, copy_bytes, self._objects)
        self.copy_folder = "" if self._copies is None else self._copies.folder
        self._fingerprint = hashlib.sha256(told.encode("utf-8", "surrogateescape")).hexdigest()

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Samples of each block."""
        return np.diff(self._first)

    @property
    def block_bytes(self) -> NDArray[np.int64]:
        """Of the members that are wanted, and what lies between them."""
        return self._bytes

    @property
    def fingerprint(self) -> str:
        """Of the shards' URLs, sizes and versions, and of what is wanted."""
        return self._fingerprint

    @property
    def shards(self) -> tuple[str, ...]:
        """The archives' URLs."""
        return tuple(one.url for one in self._objects)

    def name_of(self, block: int) -> str:
        """``s3://bucket/train-0.tar[1536+8388608]``."""
        samples = np.arange(self._first[block], self._first[block + 1])
        pieces = self._stretches(samples).pieces
        begin = pieces[0][0]
        return f"{self._objects[self._shard_of(block)].name}[{begin}+{sum(pieces[-1]) - begin}]"

    def read(self, block: int, stop: threading.Event | None = None) -> list[Row]:
        """The images lie in the block's own memory, or in a copy of their shard.

        Raises:
            InvalidRequest: a label or a column that is not what its extension says; names it.
        """
        shard, samples = self._shard_of(block), np.arange(self._first[block], self._first[block + 1])
        rows = self._copied(shard, samples)
        if rows is not None:
            return rows
        pieces = self._stretches(samples)
        read = None if self._copies is None else self._copies.read(shard, pieces.pieces, stop)
        return self._of_stretches(samples, pieces, self._objects[shard].read(pieces.pieces, stop) if read is None else read)

    def scattered(self, epoch: int) -> bool:
        """With copies of all shards each epoch but the first is shuffled image by image."""
        return self._copies is not None and self._copies.whole and epoch > 0

    def rows(self, ids: NDArray[np.int64], stop: threading.Event | None = None) -> list[Row | Unread]:
        """Out of copies; what is not copied yet is read from the store, several shards at once."""
        rows: list[Row | Unread] = [Unread("", 0, "")] * len(ids)
        shards = self._images.which[ids]

        def fill(places: NDArray[np.int64], found: Sequence[Row | Unread]) -> None:
            for place, row in zip(places.tolist(), found, strict=True):
                rows[place] = row

        def read(shard: int, places: NDArray[np.int64]) -> None:
            try:
                pieces = self._stretches(ids[places])
                found = None
                if self._copies is not None:
                    found = self._copies.there(shard, pieces.pieces)
                    self._copies.want(shard)
                found = self._objects[shard].read(pieces.pieces, stop) if found is None else found
                fill(places, self._of_stretches(ids[places], pieces, found))
            except Error:
                raise
            except (OSError, ValueError) as why:
                fill(
                    places, [Unread(self._objects[shard].name, int((self._images.which == shard).sum()), path_text(str(why)))] * len(places)
                )

        waiting = []
        with ThreadPoolExecutor(AT_ONCE, "millrace-rows") as threads:
            for shard in np.unique(shards).tolist():
                places = np.flatnonzero(shards == shard)
                copied = self._copied(shard, ids[places])
                if copied is None:
                    waiting.append(threads.submit(read, shard, places))
                else:
                    fill(places, copied)
            for each in waiting:
                each.result()
        return rows

    def _shard_of(self, block: int) -> int:
        return int(self._images.which[self._first[block]])

    def _copied(self, shard: int, samples: NDArray[np.int64]) -> list[Row] | None:
        """The rows out of a whole copy; None: there is none."""
        copy = None if self._copies is None else self._copies.path(shard)
        if copy is not None:
            with contextlib.suppress(OSError):  # it is gone meanwhile
                return self._of_copy(copy, samples)
        return None

    def _stretches(self, samples: NDArray[np.int64]) -> Stretches:
        return stretches_of([one.taken(samples) for one in self._wanted])

    def _of_stretches(self, samples: NDArray[np.int64], stretches: Stretches, read: Sequence[memoryview]) -> list[Row]:

        def member(pieces: Pieces, sample: int) -> memoryview | None:
            length = int(pieces.lengths[sample])
            return None if length < 0 else stretches.view(read, int(pieces.offsets[sample]), length)

        return [Row(member(self._images, sample) or b"", self._values(sample, member), 0) for sample in samples.tolist()]

    def _of_copy(self, path: str, samples: NDArray[np.int64]) -> list[Row]:
        """Raises OSError: it is not there any more."""
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:

            def member(pieces: Pieces, sample: int) -> bytes | None:
                length = int(pieces.lengths[sample])
                return None if length < 0 else os.pread(file, length, int(pieces.offsets[sample]))

            images, values = self._images, self._values
            return [
                Row(Part(path, int(images.offsets[sample]), int(images.lengths[sample])), values(sample, member), 0)
                for sample in samples.tolist()
            ]
        finally:
            os.close(file)

    def _values(self, sample: int, member: Member) -> tuple[Any, ...]:
        label = () if self._labels is None else (self._labels.value(sample, member),)
        return (*label, *(one[sample] if isinstance(one, Keys) else one.value(sample, member) for one in self._others))

    def __repr__(self) -> str:
        more = len(self._objects) - 1
        return f"<millrace.RemoteShards {self._objects[0].name}{f' and {more} more' if more else ''}: {len(self)}>"
