"""Which files a dataset reads, in which order and with which labels: the daemon's own rules, which are torchvision's ``ImageFolder``'s.

The driver lists, because Ray wants to know how many read tasks there are before any runs.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from millrace._core.skipped_files import SkippedFilesWarning
from millrace._data.endings import DECODED
from millrace._process.warn import warn
from millrace._wire.messages import path_text
from millrace.errors import InvalidRequest, NotFound
from millrace.samples import AnyPath, Part

_SKIPPED_MOST = 5  # kinds of files that a warning names


@dataclass(frozen=True)
class Listing:
    """Samples in order; a sample's id is its place.

    Attributes:
        paths: absolute, as ``os`` has them.
        labels: the number of the class folder of each; -1: in none.
        classes: the class folders' names. A label is a position in here.
    """

    paths: tuple[str, ...]
    labels: tuple[int, ...]
    classes: tuple[str, ...]


def class_names(folder: AnyPath) -> tuple[str, ...]:
    """The class folders directly beneath ``folder``, in byte order, as ``ImageFolder.classes``; a label is a position in here.

    Raises:
        NotFound: no such folder.
        InvalidRequest: a URL.
    """
    top = _absolute(folder)
    if not os.path.isdir(top):
        raise NotFound(f"class_names: {path_text(top)} is not a folder")
    return _classes(top)


def listed(paths: AnyPath | Iterable[AnyPath], extensions: Iterable[str] | None, labelled: bool) -> Listing:
    """Lists files and folders.

    Args:
        paths: one, or several. Files are taken whatever their names end with.
        extensions: of the files in folders that are samples; None: those of the pictures that the daemon decodes; ``"*"``: every file.
        labelled: labels are wanted: ``paths`` is one folder with class folders, and files beside those are no samples.

    Raises:
        NotFound: a path does not exist, or there is no sample.
        InvalidRequest: a URL, or a folder without class folders where labels are wanted.
    """
    if isinstance(paths, Part):  # a tuple
        paths = [paths]  # type: ignore[list-item]
    given = [paths] if isinstance(paths, (str, bytes, os.PathLike)) or not isinstance(paths, Iterable) else list(paths)
    tops = [_absolute(path) for path in given]
    if labelled and (len(tops) != 1 or not os.path.isdir(tops[0])):
        raise InvalidRequest("read_images: include_labels=True takes one folder, whose folders are the classes; give that, or leave it out")
    classes = _classes(tops[0]) if labelled else ()
    if labelled and not classes:
        raise InvalidRequest(
            f"read_images: there are no class folders in {path_text(tops[0])}, so there are no labels: make a folder for each class, or "
            "leave include_labels out"
        )
    endings = None if extensions is None else _endings(extensions)
    found: list[str] = []
    for top in tops:
        found += _beneath(top, endings, labelled) if os.path.isdir(top) else [_file(top)]
    if not found:
        wanted = "files" if endings == () else f"files that end in {', '.join('.' + ending for ending in endings or DECODED)}"
        raise NotFound(f"read_images: no {wanted} in {', '.join(map(path_text, tops))}; file_extensions= names others")
    numbers = {name: number for number, name in enumerate(classes)}
    prefix = len(os.path.join(tops[0], ""))
    labels = tuple(numbers[path[prefix:].partition("/")[0]] for path in found) if labelled else (-1,) * len(found)
    return Listing(tuple(found), labels, classes)


def _absolute(path: AnyPath) -> str:
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise InvalidRequest(
            f"read_images: takes paths of files and folders, not a {type(path).__name__}; images within other files are read by "
            "ray.data.read_webdataset or ray.data.read_parquet: give that dataset's map_batches a millrace.ray.Preprocess"
        )
    text = os.fsdecode(path)
    scheme, separator, _ = text.partition("://")
    if separator and scheme.isalnum():
        raise InvalidRequest(
            f"read_images: {path_text(text)} is a URL, and the daemon reads files of its node: read the bytes with "
            "ray.data.read_binary_files(URL) and give that dataset's map_batches a millrace.ray.Preprocess"
        )
    return os.path.abspath(text)


def _endings(extensions: Iterable[str]) -> tuple[str, ...]:
    """Without dots, lower case; empty: every file."""
    names = [extensions] if isinstance(extensions, str) else list(extensions)
    if "*" in names:
        return ()
    endings = tuple(name.removeprefix(".").lower() for name in names)
    if not endings or "" in endings:
        raise InvalidRequest('read_images: file_extensions names what files end with: ["jpg", "png"], or "*" for every file')
    return endings


def _file(path: str) -> str:
    if not os.path.exists(path):
        raise NotFound(f"read_images: {path_text(path)} does not exist on this machine, the driver's")
    return path


def _classes(top: str) -> tuple[str, ...]:
    with os.scandir(top) as entries:
        return tuple(sorted((entry.name for entry in entries if entry.is_dir() and not entry.name.startswith(".")), key=os.fsencode))


def _beneath(top: str, endings: tuple[str, ...] | None, labelled: bool) -> list[str]:
    wanted = set(DECODED if endings is None else endings)
    found: list[tuple[tuple[bytes, bytes, bytes], str]] = []
    skipped: Counter[str] = Counter()
    for path in _files(top, frozenset()):
        inner = path[len(os.path.join(top, "")) :]
        name, slash, rest = inner.rpartition("/") if "/" not in inner else inner.partition("/")
        ending = os.path.splitext(rest)[1].removeprefix(".").lower()
        if wanted and ending not in wanted:
            skipped[f".{path_text(ending)}" if ending else "without an extension"] += 1
        elif labelled and not slash:
            skipped["beside the class folders"] += 1
        else:
            folder, _, own = rest.rpartition("/")
            found.append(((os.fsencode(name), os.fsencode(folder), os.fsencode(own)), path))
    if skipped and endings is None:
        told = ", ".join(f"{count} {kind}" for kind, count in skipped.most_common(_SKIPPED_MOST))
        text = f'{path_text(top)}: {skipped.total()} files are no samples: {told}; file_extensions= names others, "*" every file'
        warn(text, SkippedFilesWarning)
    return [path for _, path in sorted(found)]


def _files(folder: str, above: frozenset[tuple[int, int]]) -> Iterator[str]:
    """Of the tree, links followed, but for those that lead to a folder above; hidden ones do not count."""
    status = os.stat(folder)
    here = (status.st_dev, status.st_ino)
    if here in above:
        return
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.is_dir():
                yield from _files(entry.path, above | {here})
            elif entry.is_file():
                yield entry.path
