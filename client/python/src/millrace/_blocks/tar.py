"""Compressed tar shards as a source in blocks: a block is a shard, which tarfile reads from its beginning to its end."""

from __future__ import annotations

import hashlib
import io
import json
import lzma
import os
import tarfile
import tempfile
import threading
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from millrace._blocks.source import BlockSource
from millrace._blocks.tar_files import LocalTar, RemoteTar, decompressed
from millrace._process.warn import warn
from millrace._remote.objects import is_remote, objects_of
from millrace._shards.sources import _ENDINGS, shards_of
from millrace.encoded import Encoded, Row
from millrace.errors import Error, InvalidRequest

_MOST = 1 << 30  # bytes of a member; a larger one is taken for damage
_DAMAGE = (tarfile.TarError, EOFError, OSError, zlib.error, lzma.LZMAError, ValueError)


class _Counts(NamedTuple):
    """What the order has to know of a shard, as it was when it had that size and that time or version."""

    size: int
    version: int | str
    samples: int
    bytes: int


class CompressedShards(BlockSource):
    """Compressed tar shards, as a loader's dataset with ``shuffle="blocks"``; in webdataset's layout: members with one key are a sample.

    Nothing in a compressed shard can be read alone. So each epoch decompresses all shards, in this process and in that of each rank: an
    archive that is unpacked once is a faster ``Shards``. Behind URLs (``s3://``, ``gs://``, ``hf://``, ``https://``) each epoch also
    fetches them all, each as a whole; of one that is being read two compressed copies are in memory, beside the window of images.

    The key is a member's name up to the first dot of its last part, the rest in small letters says what it is. Keys without an image are
    left out, and so are links and whatever else is no file.
    """

    def __init__(
        self,
        source: Any,
        image: str = "jpg;jpeg;png;webp",
        label: str | None = "cls",
        columns: Sequence[str] = (),
        classes: Sequence[str] = (),
        *,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        """Counts the samples of each shard. That takes reading it whole, once: the counts are kept in ``$XDG_CACHE_HOME/millrace``.

        Args:
            source: a file, a folder, ``train-{0000..0099}.tar.gz``, ``train-*.tar.gz``, or a list of these: ``.tar.gz``, ``.tar.bz2``,
                ``.tar.xz``, ``.tar.zst``, also uncompressed ones. Order: as named; of folders and ``*`` that of the names. Or URLs of
                these: ``"s3://bucket/train-{0000..0099}.tar.gz"``.
            image: the ending that is the image; several with ``;`` between, of which the first that is there counts.
            label: the one that is the label (``cls``: a whole number); None: none, every label is -1.
            columns: further ones that come with each batch: ``json`` and ``txt`` are read, others are bytes.
            classes: the labels' names.
            storage_options: of URLs, fsspec's: credentials, endpoint and the like.

        Raises:
            InvalidRequest: there are no samples; says of which files.
            NotFound, PermissionDenied: there is no such object, or the store refuses it to these credentials.
            OSError: a file cannot be opened, or an object not be fetched; says URL and cause.
            Unsupported: a ``.zst`` file without pyarrow, by which it is read; or what reads these URLs is not installed.
        """
        files: list[LocalTar | RemoteTar]
        if is_remote(source):
            files = [RemoteTar(each) for each in objects_of(source, _ENDINGS, "shards", storage_options)]
        elif storage_options is not None:
            raise InvalidRequest("shards: storage_options are for URLs (s3://bucket/train-*.tar.gz)")
        else:
            files = [LocalTar.of(path) for path in shards_of(source)]
        self._images = tuple(image.split(";"))
        self._rows = Encoded((), image=image, label="" if label is None else label, columns=columns)
        self._wanted = {*self._images, *([label] if label is not None else []), *columns}
        self.columns = (*(["label"] if label is not None else []), *columns)
        self.classes = tuple(classes)
        counts = [self._counts_of(file) for file in files]
        found = [number for number, count in enumerate(counts) if count.samples]
        if not found:
            raise InvalidRequest(f"shards: no sample with an image ({image}) in {', '.join(file.name for file in files)}")
        self._shards = [(files[number], counts[number]) for number in found]
        told = repr((image, label, self.columns, [(file.name, count) for file, count in self._shards]))
        self._fingerprint = hashlib.sha256(told.encode("utf-8", "surrogateescape")).hexdigest()

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Samples of each shard."""
        return np.array([counts.samples for _, counts in self._shards], np.int64)

    @property
    def block_bytes(self) -> NDArray[np.int64]:
        """Of the members that are wanted."""
        return np.array([counts.bytes for _, counts in self._shards], np.int64)

    @property
    def fingerprint(self) -> str:
        """Of the files' names, sizes and times, and of what is wanted."""
        return self._fingerprint

    def name_of(self, block: int) -> str:
        """The file."""
        return self._shards[block][0].name

    def read(self, block: int, stop: threading.Event | None = None) -> list[Row]:
        """All samples; of a shard that was damaged when they were counted, those before the damage."""
        file, counts = self._shards[block]
        content = file.content(stop)
        rows: list[Row] = []
        try:
            for key, fields in self._samples(content, file.name):
                if stop is not None and stop.is_set():
                    raise OSError("the loop has ended")
                try:
                    rows.append(self._rows.read(fields))
                except InvalidRequest as why:
                    raise InvalidRequest(f"shards: {file.name}, {key}: {why}") from why
                if len(rows) == counts.samples:
                    break
        except Error:
            raise
        except _DAMAGE as why:
            raise ValueError(str(why)) from why
        return rows

    def _samples(self, content: str | io.BytesIO, name: str) -> Iterator[tuple[str, Mapping[str, bytes]]]:
        """Keys and fields of the samples with an image."""
        before: str | None = None
        fields: dict[str, bytes] = {}
        with decompressed(content, name) as stream, tarfile.open(fileobj=stream, mode="r|", errorlevel=1) as archive:
            for member in archive:
                folder, _, last = member.name.rpartition("/")
                stem, _, ending = last.partition(".")
                if not member.isfile() or not stem or not ending:
                    continue
                key = f"{folder}/{stem}"
                if key != before:
                    if fields.keys() & set(self._images):
                        yield str(before), fields
                    before, fields = key, {}
                if ending.lower() in self._wanted:
                    if member.size > _MOST:
                        raise ValueError(f"{member.name} would have {member.size} bytes")
                    opened = archive.extractfile(member)
                    assert opened is not None
                    data = opened.read()
                    if len(data) != member.size:
                        raise EOFError(f"{member.name} is cut")
                    fields[ending.lower()] = data
                archive.members = []  # type: ignore[attr-defined]  # which tarfile keeps of all
            if fields.keys() & set(self._images):
                yield str(before), fields

    def _counts_of(self, file: LocalTar | RemoteTar) -> _Counts:
        kept = _kept_at(file.kept_as, sorted(self._wanted), self._images) if file.kept_as else None
        known = None if kept is None else _kept(kept)
        if known is not None and known[:2] == file.stamp:
            return known
        content = file.content()
        samples = taken = 0
        last = "its beginning"
        try:
            for key, fields in self._samples(content, file.name):
                samples, taken, last = samples + 1, taken + sum(map(len, fields.values())), key
        except _DAMAGE as why:
            warn(f"shards: {file.name} is damaged after {last}, so it has the {samples} samples before: {why}")
        size, version = file.stamp
        counts = _Counts(size, version, samples, taken)
        if kept is not None:
            _keep(kept, counts)
        return counts


def _kept_at(name: str, wanted: Sequence[str], images: Sequence[str]) -> Path:
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "millrace" / "blocks"
    return folder / f"{hashlib.sha256(repr((name, wanted, images)).encode('utf-8', 'surrogateescape')).hexdigest()}.json"


def _kept(path: Path) -> _Counts | None:
    """None: there are none."""
    try:
        size, version, samples, taken = json.loads(path.read_text("utf-8"))
        counts = _Counts(int(size), version, int(samples), int(taken))
        return counts if counts.samples >= 0 and counts.bytes >= 0 else None
    except (OSError, TypeError, ValueError):
        return None


def _keep(path: Path, counts: _Counts) -> None:
    """As far as it can be: whole, or not at all."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
            json.dump(counts, file)
        os.replace(file.name, path)
    except OSError as why:
        warn(f"shards: the number of samples cannot be kept in {path.parent}, so the shard is counted again next time: {why}")
