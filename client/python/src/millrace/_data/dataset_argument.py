"""What a loader's ``dataset`` or ``samples`` names: a folder, which the daemon lists, a list of files, or a source of encoded images."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from millrace._blocks.source import BlockSource
from millrace._core.dataset import Dataset
from millrace._core.skipped_files import warn_of_no_classes
from millrace._data import dataset_objects as objects
from millrace._data.columns import Coded, Column, Labels, each_column, is_classes
from millrace._data.file_kinds import class_for, container_of
from millrace._data.file_parts import FileParts, of_paths
from millrace._data.image_folder import FolderDataset
from millrace._tables.parquet import Parquet
from millrace._transforms.transform import same_transform
from millrace._wire.messages import is_url, path_bytes, path_text
from millrace.encoded import Encoded, is_encoded_source
from millrace.errors import InvalidRequest, NotFound
from millrace.manifest import is_manifest, read_manifest
from millrace.pairs import Pairs
from millrace.sample_list import AnySamples, Samples, with_endings
from millrace.samples import AnyPath

if TYPE_CHECKING:
    from millrace._core.session import Session
    from millrace._loader.options import Options
    from millrace.recipe import Recipe

AnyDataset = AnyPath | Samples | Pairs | Encoded | Parquet | BlockSource | FolderDataset | AnySamples | Iterable[Any]
"""A folder's or a manifest's path; a list (``Samples.of``); an ``ImageFolder``, ``Subset``, ``ConcatDataset``; a dataset of Hugging Face's
or of webdataset's; ``Encoded``; ``Pairs``; ``Parquet``."""


class Listed(NamedTuple):
    """What a session knows of it.

    Attributes:
        samples: how many; None: a source that does not say.
        classes: the labels' names.
        labels: by sample id; None: the batches' own.
        shown: what ``loader.dataset`` is.
        dataset: the daemon's; None: the daemon gets the images from the loader.
        beside: another session that the dataset needs, closed with the loader's; None: none.
    """

    samples: int | None
    classes: tuple[str, ...]
    labels: Labels
    shown: Any
    dataset: Dataset | None
    beside: Session | None = None


class Given:
    """Base of the three. Immutable."""

    transform: Any = None
    """The dataset object's own."""
    path: str = ""
    """For people."""
    shown: Any = None
    """What ``loader.dataset`` is; None: what ``listed`` says."""
    on_host: bool = False
    """Whether batches come by the host's memory, whatever the device."""

    @property
    def encoded(self) -> Encoded | None:
        """The source, where it is one."""
        return None

    read_by: str = "the daemon"
    """Who reads the images, and why."""

    def count(self) -> int | None:
        """Samples, if that is known without the daemon."""
        return None

    def check(self, recipe: Recipe, options: Options) -> None:
        """Raises Unsupported: it cannot be had so."""

    def now(self) -> Any:
        """What it is made of now, to be compared: if it differs from what it was, it has to be listed again."""
        return None

    def listed(self, session: Session, extensions: Iterable[str] | None, label_type: DTypeLike, timeout: float) -> Listed:
        """Makes it known to the daemon.

        Args:
            session: to make it known in.
            extensions: of the loader; None: the default.
            label_type: of whole numbers in the framework.
            timeout: seconds.
        """
        raise NotImplementedError


class Folder(Given):
    """A folder that is named by its path."""

    def __init__(self, path: Any) -> None:
        self.path = os.fsdecode(path_bytes(path))

    def listed(self, session: Session, extensions: Iterable[str] | None, label_type: DTypeLike, timeout: float) -> Listed:
        """Has the daemon list it. Raises as ``Session.dataset``."""
        try:
            dataset = session.dataset(self.path, extensions, timeout=timeout)
        except NotFound as why:
            raise NotFound(f"{why}{_instead_of_folder(self.path)}") from None
        warn_of_no_classes(self.path, dataset.classes)
        return Listed(len(dataset), dataset.classes, None, dataset, dataset)


class Files(Given):
    """A list of files, or an object that is one."""

    def __init__(self, dataset: Any) -> None:
        is_list = objects.is_list(dataset)
        self._dataset = self.shown = Samples.of(dataset) if is_list else dataset
        self._transforms = [] if is_list else [getattr(part, "transform", None) for part in objects.parts_of(dataset)]
        self.transform = same_transform(self._transforms)
        self.path = path_text(self._dataset.path_of(0)) if is_list else type(dataset).__name__
        if isinstance(self._dataset, Samples):
            self.read_by = read_by(self._dataset.paths)

    def count(self) -> int:
        """Its samples."""
        return len(self._dataset)

    def now(self) -> Any:
        """Of an object, which its user may have edited."""
        return None if isinstance(self._dataset, Samples) else objects.contents_of(self._dataset)

    def listed(self, session: Session, extensions: Iterable[str] | None, label_type: DTypeLike, timeout: float) -> Listed:
        """Hands the list to the daemon.

        Raises:
            InvalidRequest: some are named as pictures that the daemon does not decode, or a label does not fit.
            Error: as ``Session.dataset_of``.
        """
        dataset = self._dataset
        if isinstance(dataset, Samples):
            samples = dataset
        else:
            now = [getattr(part, "transform", None) for part in objects.parts_of(dataset)]
            if len(now) != len(self._transforms) or any(one is not other for one, other in zip(now, self._transforms, strict=True)):
                raise InvalidRequest("loader: the dataset was given another transform after the loader was made; make the loader anew")
            samples = objects.samples_of(dataset)
            self.read_by = read_by(samples.paths)
        _check_formats(samples, extensions, session)
        each_column(samples.labels, lambda column: _check_fits(column, label_type))
        kept = samples.labels["label"] if isinstance(samples.labels, dict) and "label" in samples.labels else samples.labels
        classes = kept if is_classes(kept) else None
        opened = session.dataset_of(samples.paths, classes, timeout=timeout)
        labels = None if samples.labels is None or samples.labels is classes else samples.labels
        return Listed(len(samples), samples.classes, labels, dataset, opened)


class Source(Given):
    """Encoded images that the loader takes from somewhere and sends."""

    def __init__(self, encoded: Encoded, shown: Any) -> None:
        self._encoded, self.shown = encoded, shown
        self.path, self.read_by = repr(encoded), "the loader, row by row"

    @property
    def encoded(self) -> Encoded:
        """It."""
        return self._encoded

    def count(self) -> int | None:
        """Its samples, if it says how many."""
        return self._encoded.count()

    def listed(self, session: Session, extensions: Iterable[str] | None, label_type: DTypeLike, timeout: float) -> Listed:
        """Nothing is asked of the daemon."""
        if extensions is not None:
            raise InvalidRequest("loader: extensions= is for folders and lists of files; what the source gives is taken as it is")
        return Listed(self.count(), self._encoded.classes, None, self.shown, None)


def given_of(dataset: Any, samples: Any, *, in_blocks: bool = False) -> Given:
    """What a loader's two arguments name; ``in_blocks``: for ``shuffle="blocks"``.

    Raises:
        InvalidRequest: both or neither; or nothing that the daemon can stand for; says what to do.
    """
    if (dataset is None) == (samples is None):
        raise InvalidRequest("loader: give a dataset, or samples= (files and their labels), one of them")
    if samples is not None:
        if not objects.is_list(samples) and not hasattr(samples, "__array__"):
            raise InvalidRequest(f"loader: samples are [(path, label), ...] or columns by name, not a {type(samples).__name__}")
        return Files(Samples.of(samples))
    if isinstance(dataset, (str, bytes, os.PathLike)):
        _refuse_container(os.fsdecode(dataset))
        return Files(read_manifest(dataset)) if is_manifest(dataset) else Folder(dataset)
    if isinstance(dataset, (int, float)):
        raise InvalidRequest(f"loader: the dataset is a path, a list of samples or a dataset object, not {dataset!r}")
    if isinstance(dataset, Pairs):
        from millrace._loader.pair_epoch import GivenPairs

        return GivenPairs(dataset)
    if isinstance(dataset, BlockSource):
        from millrace._loader.block_epoch import GivenBlocks

        return GivenBlocks(dataset)
    if isinstance(dataset, Encoded) or is_encoded_source(dataset):
        from millrace._tables.given_table import given_encoded

        return given_encoded(dataset, dataset.source) if isinstance(dataset, Encoded) else given_encoded(Encoded(dataset), dataset)
    if isinstance(dataset, Parquet):
        from millrace._tables.given_table import given_parquet

        return given_parquet(dataset, in_blocks)
    return Files(dataset)


def read_by(paths: Any) -> str:
    """For people: who reads the files of a list."""
    files = len(set(paths.files)) if isinstance(paths, FileParts) else 0
    return f"the daemon, as parts of {files} file{'s' if files != 1 else ''}" if files else "the daemon"


def _refuse_container(path: str) -> None:
    """What is named by its path alone is a folder or a manifest of this host; says what stands for others."""
    if os.path.isdir(path):
        return
    kind = path_text(class_for(path))
    if is_url(path):
        told = kind or "millrace.RemoteShards, millrace.Parquet or millrace.RemoteFiles (single images) of it"
        raise InvalidRequest(f"loader: {path_text(path)} is a URL, and the daemon reads none: give {told}")
    if kind:
        raise InvalidRequest(f"loader: {path_text(path)} is no folder: give {kind}")


def _instead_of_folder(path: str) -> str:
    """What to give where a folder has no samples, and is no folder of pictures; empty: this process does not know."""
    try:
        names = os.listdir(path)
    except OSError:
        return ""
    if "dataset_info.json" in names:
        return f"; of a table that Hugging Face's datasets saved give datasets.load_from_disk({path!r})"
    kind = next(filter(None, map(container_of, sorted(names))), None)
    return f"; of these files give millrace.{kind}({path!r})" if kind else ""


def _check_formats(samples: Samples, extensions: Iterable[str] | None, session: Session) -> None:
    """Refuses samples that are named as pictures which the daemon does not decode, or, with ``extensions``, otherwise than by these."""
    paths = of_paths(samples.paths)
    if extensions is not None:
        named = {name.lstrip(".").lower() for name in extensions}
        if "*" not in named and len(within := with_endings(paths, named)) < len(paths):
            stray = next(iter(set(paths).difference(within)))
            raise InvalidRequest(
                f"loader: the sample {path_text(stray)} ends in none of extensions={sorted(named)}: all samples of a list are read, so "
                "leave extensions out, or leave the sample out of the list"
            )
        return
    undecoded = with_endings(paths, session._undecoded)
    if not undecoded:
        return
    endings = [os.path.splitext(path)[1].lower() for path in undecoded]
    told = ", ".join(f"{endings.count(ending)} {ending}" for ending in sorted(set(endings)))
    raise InvalidRequest(
        f"loader: there are samples that the daemon does not decode: {told}, such as {path_text(min(undecoded))}. Convert them, or "
        'leave them out of the list; if what is in them is in a format that it does decode, say extensions="*"'
    )


def _check_fits(column: Column, label_type: DTypeLike) -> None:
    array = column.table if isinstance(column, Coded) else column
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "iu" or not array.size:
        return
    bounds = np.iinfo(np.dtype(label_type))
    least, most = int(array.min()), int(array.max())
    if least < bounds.min or most > bounds.max:
        too_large = least if least < bounds.min else most
        raise InvalidRequest(f"loader: the label {too_large} is too large for {np.dtype(label_type)}, which the framework's labels are")
