"""A list of parts of files as the daemon takes it: messages, each with the files that are new in it. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from millrace._data.file_parts import UNKNOWN, FileParts
from millrace._wire.file_list import joined

_SAMPLES = 16_384  # of a message: at most 0.6 MiB of numbers


class PartsOfFiles(NamedTuple):
    """Some of the samples: as of ``ListParts``."""

    paths: bytes
    """Of files that come the first time, beneath the folder, each with a zero byte after it."""
    sizes: list[int]
    """Of these files, in bytes; none: not known."""
    modified_ns: list[int]
    files: list[int]
    """Of each sample the number of its file, counted through all messages."""
    offsets: list[int]
    lengths: list[int]
    labels: list[int]
    """As many; or none."""
    samples: int


def parts_in_messages(parts: FileParts, labels: NDArray[np.int64] | None, folder: bytes, most_bytes: int) -> Iterator[PartsOfFiles]:
    """The samples message by message, in order. Files are numbered by their first sample; those without a sample are left out.

    Args:
        parts: of N samples.
        labels: int64 [N]; None: none.
        folder: what all files lie beneath: ``file_list.common_folder``.
        most_bytes: of a message's paths.

    Raises:
        InvalidRequest, NotBeneath: as ``file_list.parts``.
    """
    used, first = np.unique(parts.which, return_index=True)
    order = used[np.argsort(first)]
    number = np.zeros(len(parts.files), np.uint32)
    number[order] = np.arange(len(order), dtype=np.uint32)
    at, told, step = 0, 0, _SAMPLES
    while at < len(parts):
        end = min(at + step, len(parts))
        files = number[parts.which[at:end]]
        new = order[told : max(told, int(files.max()) + 1)]
        paths = joined([parts.files[file] for file in new.tolist()], folder, told) if len(new) else b""
        if len(paths) > most_bytes and end - at > 1:
            step = max(1, (end - at) // 2)
            continue
        known = parts.sizes is not None and parts.modified_ns is not None and bool((parts.sizes[new] != UNKNOWN).all())
        if not known and parts.sizes is not None and len(new) > 1 and (parts.sizes[new] != UNKNOWN).any():
            mixed = int((parts.sizes[new] == UNKNOWN).argmax()) or int((parts.sizes[new] != UNKNOWN).argmax())
            end = at + int((files >= told + mixed).argmax())  # a message knows of all its files or of none
            files, new = files[: end - at], new[:mixed]
            paths = joined([parts.files[file] for file in new.tolist()], folder, told)
            known = bool(parts.sizes[new[0]] != UNKNOWN)
        yield PartsOfFiles(
            paths,
            parts.sizes[new].tolist() if known and parts.sizes is not None else [],
            parts.modified_ns[new].tolist() if known and parts.modified_ns is not None else [],
            files.tolist(),
            parts.offsets[at:end].tolist(),
            parts.lengths[at:end].tolist(),
            [] if labels is None else labels[at:end].tolist(),
            end - at,
        )
        at, told = end, told + len(new)
