"""What a loader's ``dataset`` names: a folder, which the daemon lists itself, or torchvision's ``ImageFolder``.

The daemon knows folders, not dataset objects, and nothing of an object's is dropped. So an ``ImageFolder`` is taken if its samples are
the files that the daemon finds, in its order, and each class folder has one label; what the object would do beyond that is an error.
"""

from __future__ import annotations

import operator
import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from millrace._limits import Limits
from millrace._messages import path_bytes, path_text
from millrace._skipped import warn_of_no_classes
from millrace.dataset import Dataset
from millrace.errors import InvalidRequest

if TYPE_CHECKING:
    from millrace.session import Session

_MODULE = "torchvision.datasets.folder"
_EVERY_FILE: Sequence[str] = ("*",)  # as Session.dataset has it
_KEEP = "keep torch.utils.data.DataLoader for it"
_LINKS = f"make a folder of the samples that you want (hard links will do), or {_KEEP}"


class FolderDataset(Protocol):
    """torchvision's ``ImageFolder``."""

    @property
    def root(self) -> Any: ...
    @property
    def classes(self) -> Sequence[str]: ...
    @property
    def samples(self) -> Sequence[tuple[str, int]]: ...
    def __len__(self) -> int: ...


class Listed(NamedTuple):
    """What the daemon has listed.

    Attributes:
        dataset: the daemon's.
        classes: the labels' names.
        labels: of each of the daemon's classes, and of no class last; None: the daemon's own.
        shown: what ``loader.dataset`` is.
    """

    dataset: Dataset
    classes: tuple[str, ...]
    labels: NDArray[Any] | None
    shown: Dataset | FolderDataset


class Folder:
    """A folder that is named by its path. Immutable."""

    transform: Any = None
    """The dataset object's own."""

    def __init__(self, path: Any) -> None:
        self.path = os.fsdecode(path_bytes(path))

    def listed(self, session: Session, extensions: Iterable[str] | None, label_type: DTypeLike, timeout: float) -> Listed:
        """Has the daemon list it.

        Args:
            session: to list it in.
            extensions: of the files that are samples; None: the default.
            label_type: of ``Listed.labels``.
            timeout: seconds.

        Raises:
            Error: as ``Session.dataset``.
        """
        dataset = session.dataset(self.path, extensions, timeout=timeout)
        warn_of_no_classes(self.path, dataset.classes)
        return Listed(dataset, dataset.classes, None, dataset)


@dataclass
class _Seen:
    """What a dataset's samples are, folder by folder."""

    paths: set[str] = field(default_factory=set)
    targets: dict[str, tuple[Any, str]] = field(default_factory=dict)  # by class folder: its target, and a sample that has it
    endings: set[str] = field(default_factory=set)

    def extensions(self, limits: Limits) -> Sequence[str]:
        """For the daemon, which takes so many of so many letters and digits."""
        longest, most = limits.extension_bytes, limits.extensions
        plain = all(ending.isascii() and ending.isalnum() and (longest is None or len(ending) <= longest) for ending in self.endings)
        return sorted(self.endings) if plain and (most is None or len(self.endings) <= most) else _EVERY_FILE


class ImageFolder(Folder):
    """A folder with torchvision's object of it."""

    def __init__(self, dataset: Any, base: type[Any]) -> None:
        _check_class(dataset, base)
        super().__init__(getattr(dataset, "split_folder", dataset.root))  # torchvision's ImageNet has its folders there
        self._dataset = dataset
        self.transform = dataset.transform

    def listed(self, session: Session, extensions: Iterable[str] | None, label_type: DTypeLike, timeout: float) -> Listed:
        """As of a plain folder; without ``extensions`` those of its samples.

        Raises:
            InvalidRequest: its samples are not the files that the daemon finds, or not in its order, a folder's samples have
                several labels, or some are named as pictures that the daemon does not decode.
        """
        if self._dataset.transform is not self.transform:
            raise InvalidRequest("loader: the ImageFolder was given another transform after the loader was made; make the loader anew")
        seen = self._seen()
        if extensions is None:
            _check_formats(seen.paths, session._undecoded)
            extensions = seen.extensions(session.limits)
        elif "*" not in extensions and (unlisted := seen.endings.difference(name.lstrip(".").lower() for name in extensions)):
            raise InvalidRequest(
                f"loader: samples of the ImageFolder end in {', '.join(map(repr, sorted(unlisted)))}, which is not among extensions=; "
                "leave it out, or make the ImageFolder with is_valid_file"
            )
        dataset = session.dataset(self.path, extensions, timeout=timeout)
        if len(seen.paths) != len(dataset):
            raise InvalidRequest(
                f"loader: the ImageFolder has {len(seen.paths)} samples, the daemon finds {len(dataset)} files in {path_text(self.path)}"
                f"{self._example(seen.paths)}. The daemon lists the folder itself: {_LINKS}"
            )
        return Listed(dataset, tuple(self._dataset.classes), self._labels(seen, dataset, label_type), self._dataset)

    def _labels(self, seen: _Seen, dataset: Dataset, label_type: DTypeLike) -> NDArray[Any] | None:
        labels = [self._label(name, seen.targets[name][0]) if name in seen.targets else -1 for name in dataset.classes]
        if labels == list(range(len(labels))):
            return None
        try:
            return np.array([*labels, -1], label_type)
        except OverflowError as why:
            raise InvalidRequest(f"loader: a label of the ImageFolder is too large: {why}") from why

    def _seen(self) -> _Seen:
        """The samples, one by one.

        Raises:
            InvalidRequest: one lies elsewhere, one is there twice, one folder has several labels, or they are in another order than the
                daemon's.
        """
        seen, prefix = _Seen(), os.path.join(self.path, "")
        before, before_path, stray = (b"", b"", b""), "", ""
        for given, target in self._dataset.samples:
            path = os.fsdecode(given)
            if not path.startswith(prefix) or "/." in path or "//" in path:
                path = os.path.abspath(path)
            name, slash, file = path[len(prefix) :].partition("/")
            if not slash or not path.startswith(prefix):
                raise InvalidRequest(
                    f"loader: a sample of the ImageFolder lies in no class folder of {path_text(self.path)}: {path_text(path)}. "
                    f"The daemon lists the folder itself: {_LINKS}"
                )
            first = seen.targets.setdefault(name, (target, path))
            if first[0] != target:
                raise InvalidRequest(
                    f"loader: samples of the folder {path_text(name)} have different labels: {first[0]!r} ({path_text(first[1])}) and "
                    f"{target!r} ({path_text(path)}). The daemon gives a class folder one label: make a folder for each label "
                    f"(hard links will do), or {_KEEP}"
                )
            seen.paths.add(path)
            seen.endings.add(os.path.splitext(file)[1].lstrip(".").lower())
            place = _place(name, file)
            if place < before and not stray:
                stray = f"{path_text(path)} comes after {path_text(before_path)}"
            before, before_path = place, path
        if not len(seen.paths) == len(self._dataset.samples) == len(self._dataset):
            raise InvalidRequest(
                f"loader: the ImageFolder has {len(self._dataset)} items and {len(self._dataset.samples)} samples, of {len(seen.paths)} "
                f"different files; the daemon reads each file of a folder once an epoch: {_LINKS}"
            )
        if stray:
            raise InvalidRequest(
                f"loader: the samples of the ImageFolder are in an order of their own: {stray}. The daemon numbers a folder's files as "
                "ImageFolder does, by class folder, then folder, then file name, each in byte order, so batch.ids, and without shuffle the "
                f"order, would be of other samples: sort them like that, {_LINKS}"
            )
        return seen

    def _label(self, name: str, target: Any) -> int:
        transform: Callable[[Any], Any] = self._dataset.target_transform or (lambda same: same)
        label = transform(target)
        try:
            number, again = operator.index(label), operator.index(transform(target))
        except TypeError:
            raise InvalidRequest(
                f"loader: the ImageFolder's label of {path_text(name)} is {label!r}; a label is a whole number here: apply "
                "target_transform to the labels that the loader yields, and make the ImageFolder without it"
            ) from None
        if number != again:
            raise InvalidRequest(
                "loader: the ImageFolder's target_transform is random; here it is asked once a class: apply it to the labels that the "
                "loader yields, and make the ImageFolder without it"
            )
        return number

    def _example(self, known: set[str]) -> str:
        """A file that is in the folder and not among the samples, or the other way round."""
        there = {os.path.join(place, name) for place, _, names in os.walk(self.path, followlinks=True) for name in names}
        for found in sorted(there - known)[:1]:
            return f", such as {path_text(found)}, which is not among the samples"
        for lost in sorted(known - there)[:1]:
            return f"; {path_text(lost)} is not there any more"
        hidden = next((path for path in sorted(known) if "/." in path[len(self.path) :]), None)
        return f"; it passes over hidden ones, such as {path_text(hidden)}" if hidden is not None else ""


def folder_of(dataset: Any) -> Folder:
    """What ``dataset`` names.

    Raises:
        InvalidRequest: it is neither a path nor an ``ImageFolder`` that the daemon can stand for; says what to do.
    """
    if isinstance(dataset, (str, bytes, os.PathLike)):
        return Folder(dataset)
    for base in type(dataset).__mro__:
        if (base.__module__, base.__name__) == (_MODULE, "DatasetFolder"):
            return ImageFolder(dataset, base)
    message = f"loader: dataset is a folder's path or torchvision's ImageFolder, not a {type(dataset).__name__}"
    if type(dataset).__module__.startswith("torch.utils.data"):
        message += f". The daemon reads whole folders: {_LINKS}"
    raise InvalidRequest(message)


def _check_formats(paths: Iterable[str], extensions: Set[str]) -> None:
    """Refuses samples that are named as pictures which the daemon does not decode: by its ``extensions``."""
    undecoded = sorted(path for path in paths if os.path.splitext(path)[1].lstrip(".").lower() in extensions)
    if not undecoded:
        return
    endings = Counter(os.path.splitext(path)[1].lower() for path in undecoded)
    told = ", ".join(f"{files} {ending}" for ending, files in sorted(endings.items()))
    raise InvalidRequest(
        f"loader: the ImageFolder has samples that the daemon does not decode: {told}, such as {path_text(undecoded[0])}. Convert them, or "
        "give the folder's path as dataset, of which they are left out with a warning; if what is in them is JPEG, PNG or WebP, name the "
        "samples' extensions in extensions="
    )


def _place(name: str, file: str) -> tuple[bytes, bytes, bytes]:
    """Where the daemon has a file of the class folder ``name``: what it sorts files by."""
    folder, _, own = file.rpartition("/")
    return os.fsencode(name), os.fsencode(folder), os.fsencode(own)


def _check_class(dataset: Any, base: type[Any]) -> None:
    """Refuses an object that would do something with a sample that the daemon does not."""
    name = type(dataset).__name__
    if type(dataset).__getitem__ is not base.__getitem__ or hasattr(dataset, "__getitems__"):
        raise InvalidRequest(
            f"loader: {name} has a __getitem__ of its own, which the daemon cannot call: do in the loop what it does, with the folder's "
            f"path as dataset, or {_KEEP}"
        )
    if getattr(dataset.loader, "__module__", None) != _MODULE:
        raise InvalidRequest(
            f"loader: the {name} reads files with a function of its own (loader={dataset.loader!r}), which the daemon cannot call: it "
            f"decodes them itself; make the {name} without it, or {_KEEP}"
        )
