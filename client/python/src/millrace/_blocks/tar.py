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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from millrace._blocks.source import BlockSource
from millrace._blocks.tar_files import LocalTar, RemoteTar, decompressed
from millrace._process.warn import warn
from millrace._remote.objects import is_remote, objects_of
from millrace._shards.sources import _ENDINGS, ShardWarning, extensions_of, plain_extension, shards_of
from millrace._wire.messages import path_text
from millrace.encoded import Encoded, Row
from millrace.errors import Error, InvalidRequest

if TYPE_CHECKING:
    from typing_extensions import Self

_MOST = 1 << 30  # bytes of a member; a larger one is taken for damage
_MOST_OF_HEADERS = 1 << 22  # bytes of what stands before a member: long names, pax
_HEADERS = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
_KEPT = 1 << 14  # bytes of a file of counts, at most
_DAMAGE = (tarfile.TarError, EOFError, OSError, zlib.error, lzma.LZMAError, ValueError)


class _Counts(NamedTuple):
    """What the order has to know of a shard, as it was when it had that size and that time or version."""

    size: int
    version: int | str
    samples: int
    bytes: int
    damage: str
    """For people; empty: there is none."""


class _Member(tarfile.TarInfo):
    """As tarfile has it, which takes a damaged header after the first for the archive's end, and reads headers of any size into memory."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        found = super().frombuf(buf, encoding, errors)
        if found.type in _HEADERS and found.size > _MOST_OF_HEADERS:
            raise tarfile.ReadError("the headers of a member are longer than 4 MiB")
        return found

    @classmethod
    def fromtarfile(cls, archive: tarfile.TarFile) -> _Member:
        try:
            return super().fromtarfile(archive)
        except tarfile.EmptyHeaderError as why:  # type: ignore[attr-defined]
            raise tarfile.ReadError("the archive ends without its end mark, so it is cut off") from why
        except (tarfile.InvalidHeaderError, tarfile.TruncatedHeaderError) as why:  # type: ignore[attr-defined]
            raise tarfile.ReadError(f"there is no tar header: {why}") from why


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
        image: str | Sequence[str] = "jpg;jpeg;png;webp",
        label: str | None = "cls",
        columns: Iterable[str] = (),
        classes: Sequence[str] = (),
        *,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        """Counts the samples of each shard. That takes reading it whole, once: the counts are kept in ``$XDG_CACHE_HOME/millrace``.

        Args:
            source: a file, a folder, ``train-{0000..0099}.tar.gz``, ``train-*.tar.gz``, or a list of these: ``.tar.gz``, ``.tar.bz2``,
                ``.tar.xz``, ``.tar.zst``, also uncompressed ones. Order: as named; of folders and ``*`` that of the names. Or URLs of
                these: ``"s3://bucket/train-{0000..0099}.tar.gz"``.
            image: extensions, ``"jpg;png"`` or a list; of each sample the first that it has. A key without one is no sample.
            label: the extension of the labels (``cls``: a whole number); None or ``""``: none, every label is -1.
            columns: extensions of further members, which come with the batches: ``json`` and ``txt`` are read, others are bytes; None where
                a sample has none. ``"__key__"``: the samples' keys.
            classes: the labels' names.
            storage_options: of URLs, fsspec's: credentials, endpoint and the like.

        Raises:
            InvalidRequest: there are no samples; says of which files.
            NotFound, PermissionDenied: a file or an object is not there, or cannot be read.
            OSError: an object cannot be fetched; says URL and cause.
            Unsupported: a ``.zst`` file without pyarrow, by which it is read; or what reads these URLs is not installed.
        """
        files: list[LocalTar | RemoteTar]
        if is_remote(source):
            files = [RemoteTar(each) for each in objects_of(source, _ENDINGS, "shards", storage_options)]
        elif storage_options is not None:
            raise InvalidRequest("shards: storage_options are for URLs (s3://bucket/train-*.tar.gz)")
        else:
            files = [LocalTar.of(path) for path in shards_of(source)]
        self._images = tuple(extensions_of(image, "image"))
        self._label = plain_extension(label, "label") if label else ""
        self._more = tuple(extensions_of(columns, "columns")) if columns else ()
        self._rows = Encoded((), image=";".join(self._images), label=self._label, columns=self._more)
        self._wanted = {*self._images, *([self._label] if self._label else []), *self._more}
        self.columns = (*(["label"] if self._label else []), *self._more)
        self.classes = tuple(classes)
        counts = [self._counts_of(file) for file in files]
        found = [number for number, count in enumerate(counts) if count.samples]
        if not found:
            these = path_text(files[0].name) + (f" and the {len(files) - 1} others" if len(files) > 1 else "")
            wanted = ", ".join(self._images)
            raise InvalidRequest(f"shards: there is no sample with an image ({wanted}) in {these}; name its extension in image=")
        self._shards = [(files[number], counts[number]) for number in found]
        told = repr((self._images, self._label, self.columns, [(file.name, *count[:4]) for file, count in self._shards]))
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
                if self._label and self._label not in fields:
                    raise InvalidRequest(
                        f"shards: {path_text(file.name)}, {path_text(key)}: it has no label ({self._label}); say which member is the label "
                        'with label=, or label="" for none'
                    )
                try:
                    rows.append(self._rows.read({**dict.fromkeys(self._more), **fields, "__key__": key}))
                except InvalidRequest as why:
                    raise InvalidRequest(f"shards: {path_text(file.name)}, {path_text(key)}: {why}") from why
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
        with decompressed(content, name) as stream, tarfile.open(fileobj=stream, mode="r|", errorlevel=1, tarinfo=_Member) as archive:
            for member in archive:
                folder, _, last = member.name.rpartition("/")
                stem, _, ending = last.partition(".")
                if not member.isfile() or not stem or not ending:
                    continue
                key = f"{folder}/{stem}" if folder else stem
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
            while stream.read(1 << 20):  # to the checksum at the end
                pass

    def _counts_of(self, file: LocalTar | RemoteTar) -> _Counts:
        kept = _kept_at(file.kept_as, sorted(self._wanted), self._images) if file.kept_as else None
        known = None if kept is None else _kept(kept)
        if known is not None and known[:2] == file.stamp:
            _warn_of(known.damage)
            return known
        content = file.content()
        damage = ""
        samples = taken = 0
        last = "its beginning"
        try:
            for key, fields in self._samples(content, file.name):
                samples, taken, last = samples + 1, taken + sum(map(len, fields.values())), key
        except _DAMAGE as why:
            before = f"is damaged after {path_text(last)}, so it has the {samples} samples before"
            damage = f"shards: {path_text(file.name)} {before}: {path_text(str(why))}"
            _warn_of(damage)
        size, version = file.stamp
        counts = _Counts(size, version, samples, taken, damage)
        if kept is not None:
            _keep(kept, counts)
        return counts


def _warn_of(damage: str) -> None:
    if damage:
        warn(damage, ShardWarning)


def _kept_at(name: str, wanted: Sequence[str], images: Sequence[str]) -> Path:
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "millrace" / "blocks"
    return folder / f"{hashlib.sha256(repr((name, wanted, images)).encode('utf-8', 'surrogateescape')).hexdigest()}.json"


def _kept(path: Path) -> _Counts | None:
    """None: there are none."""
    try:
        with open(path, "rb") as opened:
            size, version, samples, taken, damage = json.loads(opened.read(_KEPT))
        counts = _Counts(int(size), version, int(samples), int(taken), str(damage))
        return counts if 0 <= counts.samples <= (counts.size + 1) << 10 and 0 <= counts.bytes < 1 << 62 else None
    except (OSError, OverflowError, RecursionError, TypeError, ValueError):
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
