"""Lists of images behind URLs, one or several to a URL: as they are given, or as a manifest says."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from millrace._data.columns import Labels
from millrace._data.file_parts import WHOLE, FileParts
from millrace._remote.objects import objects_of
from millrace._remote.store import shown
from millrace._wire.messages import path_text
from millrace.errors import InvalidRequest
from millrace.manifest import MANIFESTS, ManifestColumns, manifest_samples
from millrace.sample_list import labels_of, named_labels, taken_apart
from millrace.samples import Part

_LARGEST = 1 << 30  # bytes of a manifest


class UrlList(NamedTuple):
    """N images.

    Attributes:
        parts: where they are; ``files`` are URLs.
        labels: as ``Samples.labels``.
        classes: the labels' names.
    """

    parts: FileParts
    labels: Labels
    classes: tuple[str, ...]


def url_list(given: Any, root: str | None, classes: Any, options: Mapping[str, Any] | None, how: ManifestColumns) -> UrlList:
    """What is meant by a list, by columns, or by a manifest.

    Args:
        given: as ``Samples.of``, with URLs for paths; or the path or URL of a manifest.
        root: the URL that relative paths begin at; None: the manifest's, if it has one.
        classes: as of ``Samples``.
        options: fsspec's ``storage_options``.
        how: a manifest is read.

    Raises:
        InvalidRequest: it is none of these, or has what is no URL; says what.
        NotFound, PermissionDenied, OSError: the manifest cannot be read.
    """
    if isinstance(given, (str, os.PathLike)):
        paths, labels, found, root = _of_manifest(os.fspath(given), root, options, how)
        classes = classes if len(classes) else found
    elif how != ManifestColumns():
        raise InvalidRequest("RemoteFiles: path_column, label_column, columns and label_kind are for manifests")
    else:
        paths, labels = taken_apart(given)
    parts = _parts(paths, root)
    columns = labels_of(labels, len(parts))
    return UrlList(parts, *(named_labels(columns, classes) if len(classes) else (columns, ())))


def _of_manifest(place: str, root: str | None, options: Mapping[str, Any] | None, how: ManifestColumns) -> tuple[Any, Any, Any, str | None]:
    if os.path.splitext(place.partition("?")[0])[1].lower() not in MANIFESTS:
        told = f"a list of images' URLs, or a manifest of them ({', '.join(MANIFESTS)}), not {shown(place)}"
        raise InvalidRequest(f"RemoteFiles: give {told}; shards are millrace.RemoteShards, tables millrace.Parquet")
    if "://" not in place:
        return *manifest_samples(os.path.abspath(place), None, how), root
    objects = objects_of(place, MANIFESTS, "RemoteFiles", options)
    if len(objects) > 1 or objects[0].size > _LARGEST:
        raise InvalidRequest(f"RemoteFiles: {shown(place)} is one manifest of at most {_LARGEST >> 20} MiB")
    content = bytes(objects[0].read([(0, objects[0].size)])[0])
    folder = objects[0].url.partition("?")[0].rpartition("/")[0]
    return *manifest_samples(objects[0].name.removesuffix("?..."), content, how), folder if root is None else root


def _parts(paths: Any, root: str | None) -> FileParts:
    if isinstance(paths, (str, bytes, os.PathLike)) or not hasattr(paths, "__len__"):
        raise InvalidRequest(f"RemoteFiles: URLs are a list, not a {type(paths).__name__}")
    if not len(paths):
        raise InvalidRequest("RemoteFiles: there are none")
    several = np.asarray(paths).tolist() if hasattr(paths, "__array__") else list(paths)
    if any(type(one) is Part for one in several):
        return FileParts.of(several, lambda files: _urls(files, root))
    count = len(several)
    return FileParts(_urls(several, root), np.arange(count, dtype=np.uint32), np.zeros(count, np.uint64), np.full(count, WHOLE, np.uint64))


def _urls(given: Sequence[Any], root: str | None) -> list[str]:
    if root is not None and "://" not in root:
        raise InvalidRequest(f"RemoteFiles: root is a URL, not {path_text(root)}")
    urls = []
    for one in given:
        if not isinstance(one, str):
            raise InvalidRequest(f"RemoteFiles: a sample is a URL, a pair (URL, label), or a Part of a URL, not a {type(one).__name__}")
        if "://" not in one:
            if root is None or not one or one[0] == "/" or "\0" in one:
                told = f"{path_text(one)!r} is no URL" + (" and no path beneath root=" if root is not None else "")
                raise InvalidRequest(f"RemoteFiles: {told}; files of this host are millrace.Samples")
            one = _joined(root, one)
        urls.append(one)
    return urls


def _joined(root: str, path: str) -> str:
    whole = f"{root.rstrip('/')}/{path}"
    if path[0] != "." and "/." not in path:
        return whole
    scheme, _, rest = whole.partition("://")
    host, _, beneath = rest.partition("/")
    return f"{scheme}://{host}{posixpath.normpath('/' + beneath)}"
