"""Single images behind URLs as a source in blocks: a block is some consecutive ones, which are fetched together.

>>> files = millrace.RemoteFiles([("s3://bucket/cat/1.jpg", 0), ("s3://bucket/dog/7.jpg", 1)])
>>> loader = millrace.torch.Loader(files, millrace.Recipe.train(224), shuffle="blocks")
"""

from __future__ import annotations

import functools
import hashlib
import re
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from millrace._blocks.source import BlockSource
from millrace._data.columns import Labels, selected
from millrace._data.file_parts import WHOLE
from millrace._loader.bad_images import BadImageWarning
from millrace._process.warn import warn
from millrace._remote.causes import may_pass, status_of, told
from millrace._remote.objects import RemoteObject
from millrace._remote.ranges import RANGE, Stopped, all_done
from millrace._remote.requests import info_of, range_of
from millrace._remote.store import Store, shown, version_of
from millrace._remote.url_list import url_list
from millrace.encoded import Row
from millrace.errors import Error, InvalidRequest
from millrace.manifest import LabelKind, ManifestColumns

_SAMPLES = 64  # of a block
_BYTES = 32 << 20  # of a block, about
_LARGEST = 1 << 30  # bytes of an image; a larger object is none
_TOLD = 5  # bad objects of a block, by name


class _NoImage(Exception):
    """What stands there is none; says why."""


class RemoteFiles(BlockSource):
    """Images behind URLs (``s3://``, ``gs://``, ``hf://``, ``https://``), one to an object, as a loader's dataset. Immutable.

    The loader fetches them, 16 at once, each with one request; nothing is kept, so each epoch fetches all of them. Take
    ``shuffle="blocks"``, or no shuffling: blocks are 64 consecutive images, or fewer large ones. Stores answer a request in some 20 ms, so
    16 bring some 800 images/s at most: ``RemoteShards`` are faster, and so are files of this host.

    An object that is missing, or cannot be read, is a bad image, and a warning says which and why. So is one of more than 1 GiB. Memory:
    120 bytes a sample and its URL; and the window of images, see ``window=`` of the loader.
    """

    def __init__(
        self,
        samples: Any,
        *,
        classes: Sequence[str] | Literal["sorted"] = (),
        root: str | None = None,
        storage_options: Mapping[str, Any] | None = None,
        typical_bytes: int = 128 << 10,
        path_column: str | int | None = None,
        label_column: str | int | None = None,
        columns: Sequence[str | int] = (),
        label_kind: LabelKind = "auto",
    ) -> None:
        """Looks at no image; reads a manifest.

        Args:
            samples: URLs; pairs (URL, label); dictionaries or columns by name with ``"path"``, see ``Samples.of``; in the place of a URL
                also ``millrace.Part(url, offset, length)``. Or a manifest (``.csv``, ``.tsv``, ``.jsonl``), as a path or a URL, see
                ``read_manifest``.
            classes: the labels' names, as of ``Samples``.
            root: the URL at which relative paths begin; None: of a manifest behind a URL its folder.
            storage_options: fsspec's: credentials, endpoint and the like. Of a manifest behind a URL other web servers than its own, or
                than that of ``root``, are asked without them.
            typical_bytes: that an object has, about: bounds how many are a block, and how many blocks a window.
            path_column: of a manifest, see ``read_manifest``.
            label_column: likewise.
            columns: likewise.
            label_kind: likewise.

        Raises:
            InvalidRequest: no images, what is no URL, not as many labels as URLs; says which.
            NotFound, PermissionDenied, OSError: the manifest cannot be read.
            Unsupported: URLs of a kind that is not read, or a package that is missing.
        """
        if typical_bytes < 1:
            raise InvalidRequest(f"RemoteFiles: typical_bytes are at least 1, not {typical_bytes}")
        how = ManifestColumns(path_column, label_column, tuple(columns), label_kind)
        parts, self.labels, self.classes = url_list(samples, root, classes, storage_options, how)
        self._parts = parts
        named: Mapping[str, Any] = self.labels if isinstance(self.labels, Mapping) else {"label": self.labels}
        self._columns = {name: column for name, column in named.items() if column is not None}
        self.columns = tuple(self._columns)
        listed_at = [place for place in (samples, root) if isinstance(place, str) and "://" in place]
        self._origins = frozenset(map(_origin, listed_at)) if isinstance(samples, str) and "://" in samples else None
        first = {self._key(url): url for url in reversed(parts.files)}
        self._stores = {key: Store.of(url, storage_options if key[1] else None) for key, url in first.items()}
        lengths = np.where(parts.lengths > _LARGEST, np.uint64(min(typical_bytes, _LARGEST)), parts.lengths).astype(np.int64)
        self._begins = _cut(lengths)
        self._bytes = np.add.reduceat(lengths, self._begins[:-1])
        self._light = True
        told = hashlib.sha256(repr((self.columns, typical_bytes)).encode())
        for column in (parts.which, parts.offsets, parts.lengths):
            told.update(np.ascontiguousarray(column).data)
        for url in parts.files:
            told.update((shown(url) if "?" in url or "@" in url else url).encode("utf-8", "surrogateescape") + b"\0")
        self._fingerprint = told.hexdigest()

    labels: Labels
    """[N, ...] of numbers, a sequence of N others, a dictionary of these, or None; as of ``Samples``."""

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Images of each block."""
        return np.diff(self._begins)

    @property
    def block_bytes(self) -> NDArray[np.int64]:
        """By the lengths of parts, and ``typical_bytes`` of each other image."""
        return self._bytes

    @property
    def fingerprint(self) -> str:
        """Of the URLs, without what may be secret in them, and of the parts."""
        return self._fingerprint

    def name_of(self, block: int) -> str:
        """``s3://bucket/1.jpg and 63 more``."""
        begin, end = self._begins[block : block + 2].tolist()
        return self.path_of(begin) + (f" and {end - begin - 1} more" if end - begin > 1 else "")

    def path_of(self, sample: int) -> str:
        """The URL of a sample (one of ``batch.ids``), for people; of a part with offset and length."""
        part = self._parts.part_of(int(sample))
        name = shown(self._parts.files[self._parts.which[int(sample)]])
        return name if part is None else f"{name}[{part.offset}+{part.length}]"

    def read(self, block: int, stop: threading.Event | None = None) -> list[Row]:
        """The images; of one that cannot be read no bytes, and a warning. Raises OSError: the store is out of reach."""
        begin, end = self._begins[block : block + 2].tolist()
        images = self._fetched(range(begin, end), stop)
        bad = [(sample, why) for sample, why in images.items() if isinstance(why, Exception)]
        if len(bad) == end - begin and all(may_pass(why) and not isinstance(why, _NoImage) for _, why in bad):
            raise OSError(told(bad[0][1]))
        if bad:
            some = "; ".join(f"{self.path_of(sample)}: {_cause(why)}" for sample, why in bad[:_TOLD])
            more = f"; and {len(bad) - _TOLD} more" if len(bad) > _TOLD else ""
            warn(f"loader: {len(bad)} of {end - begin} objects cannot be read and are bad images: {some}{more}", BadImageWarning)
        self._weigh(block, sum(len(data) for data in images.values() if not isinstance(data, Exception)))
        ids = np.arange(begin, end)
        columns = [list(selected(column, ids)) for column in self._columns.values()]
        values = list(zip(*columns, strict=True)) if columns else [()] * len(ids)
        sources = (images[sample] for sample in range(begin, end))
        return [Row(b"" if isinstance(data, Exception) else data, row, 0) for data, row in zip(sources, values, strict=True)]

    def _weigh(self, block: int, taken: int) -> None:
        """Warns once where a block takes much more memory than the window counts it for."""
        if self._light and taken > _BYTES and taken > 4 * int(self._bytes[block]):
            self._light = False
            each = taken // int(self.sizes[block])
            warn(
                f"RemoteFiles: {self.name_of(block)} have {each} bytes each, and a window takes as many times its bytes of memory as that "
                f"is more than typical_bytes: give typical_bytes={each}"
            )

    def _fetched(self, samples: range, stop: threading.Event | None) -> dict[int, bytes | memoryview | Exception]:
        """Of each its bytes, or why there are none."""
        asked: dict[int, bytes | Exception | None] = {}

        def one(sample: int) -> None:
            try:
                asked[sample] = self._small(sample)
            except CancelledError:  # those that are still under way when one has failed for too long
                raise
            except Exception as why:
                asked[sample] = why
                if may_pass(why):
                    raise

        last: Exception | None = None
        try:
            all_done([functools.partial(one, sample) for sample in samples], stop, self.path_of(samples[0]))
        except (Error, Stopped):
            raise
        except Exception as why:
            last = why
        found: dict[int, bytes | memoryview | Exception] = {}
        for sample in samples:
            data = asked.get(sample, last)
            found[sample] = self._large(sample, stop) if data is None else data
        return found

    def _small(self, sample: int) -> bytes | Exception | None:
        """With one request; None: it takes several."""
        store, path, offset, length = self._place(sample)
        whole = length == WHOLE
        if not length:
            return b""
        if not whole and length > RANGE:
            return None
        try:
            data = range_of(store, path, offset, offset + (RANGE if whole else length))
        except NotImplementedError:  # a server without ranges
            return None
        except Exception as why:
            if status_of(why) != 416:
                raise
            data = b""
        if whole:
            return data if len(data) < RANGE else None
        return data if len(data) == length else _NoImage(f"the object ends before byte {offset + length}")

    def _large(self, sample: int, stop: threading.Event | None) -> memoryview | Exception:
        """By ranges, all of one version of the object."""
        store, path, offset, length = self._place(sample)
        name = self.path_of(sample)
        if _LARGEST < length < WHOLE:
            return _too_large(length)
        try:
            (info,) = all_done([lambda: info_of(store, path)], stop, name)
            size = int(info["size"])
            length = size if length == WHOLE else length
            if offset + length > size:
                return _NoImage(f"the object ends before byte {offset + length}")
            if length > _LARGEST:
                return _too_large(length)
            return RemoteObject(store.url(path), store, size, version_of(info)).read([(offset, length)], stop)[0]
        except (Error, Stopped):
            raise
        except Exception as why:
            return why

    def _place(self, sample: int) -> tuple[Store, str, int, int]:
        url = self._parts.files[self._parts.which[sample]]
        store = self._stores[self._key(url)]
        return store, store.path(url), int(self._parts.offsets[sample]), int(self._parts.lengths[sample])

    def _key(self, url: str) -> tuple[str, bool]:
        """Its scheme, and whether ``storage_options`` are for it: headers do not go to whatever web server a manifest names."""
        scheme = url.partition("://")[0].lower()
        return scheme, self._origins is None or scheme not in ("http", "https") or _origin(url) in self._origins

    def __repr__(self) -> str:
        return f"<millrace.RemoteFiles {self.path_of(0)} and more: {len(self)} in {len(self.sizes)} blocks>"


def _origin(url: str) -> tuple[str, str]:
    """Its scheme and server."""
    scheme, _, rest = url.partition("://")
    return scheme.lower(), re.split(r"[/?#\\]", rest, maxsplit=1)[0].rpartition("@")[2].lower()


def _too_large(length: int) -> _NoImage:
    return _NoImage(f"it has {length} bytes, and an image has at most {_LARGEST}")


def _cause(why: Exception) -> str:
    return str(why) if isinstance(why, _NoImage) else told(why)


def _cut(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where blocks of those images begin, and where the last one ends."""
    ends = np.cumsum(lengths)
    begins = [0]
    while begins[-1] < len(lengths):
        first = begins[-1]
        before = int(ends[first - 1]) if first else 0
        fit = int(np.searchsorted(ends, before + _BYTES, side="right"))
        begins.append(min(len(lengths), first + _SAMPLES, max(first + 1, fit)))
    return np.array(begins, np.int64)
