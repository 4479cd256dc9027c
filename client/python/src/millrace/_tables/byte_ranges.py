"""Where the values of an Arrow column of bytes lie, in memory: whole chunks at once, never value by value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from millrace._wire.messages import path_text
from millrace.errors import InvalidRequest, Unsupported


class NotParts(Unsupported):
    """The images are no parts of files that the daemon could read; the message says why, for people."""


class ByteRanges(NamedTuple):
    """Of N rows of a column of images.

    Attributes:
        addresses: uint64 [N], of each row's first byte in this process.
        lengths: uint64 [N], bytes; 0 where there are none.
        missing: rows without bytes, ascending.
        paths: of each missing row the file that it names; None: it names none.
    """

    addresses: NDArray[np.uint64]
    lengths: NDArray[np.uint64]
    missing: NDArray[np.int64]
    paths: Sequence[str | None]


def ranges_of(chunks: Sequence[Any], name: str) -> ByteRanges:
    """Of the chunks of a column, which is bytes or Hugging Face's struct of ``bytes`` and ``path``.

    Raises:
        InvalidRequest: it is damaged.
        NotParts: its type is another.
    """
    addresses, lengths, missing, begin = [], [], [], 0
    paths: list[str | None] = []
    for chunk in chunks:
        check_arrow(chunk)
        content, told = _fields(chunk, name)
        at, long, holes = _of_binary(content)
        addresses.append(at)
        lengths.append(long)
        if len(holes):
            missing.append(holes + begin)
            if told is not None:
                check_arrow(told, full=True)
            paths += [None] * len(holes) if told is None else told.take(_indices(holes)).to_pylist()
        begin += len(chunk)
    if not addresses:
        return ByteRanges(np.empty(0, np.uint64), np.empty(0, np.uint64), np.empty(0, np.int64), [])
    holes = np.concatenate(missing) if missing else np.empty(0, np.int64)
    return ByteRanges(np.concatenate(addresses), np.concatenate(lengths), holes, paths)


def check_arrow(values: Any, *, full: bool = False) -> None:
    """Raises InvalidRequest: the array is damaged, and Arrow's functions would read beyond it. ``full``: looks at each value."""
    import pyarrow as pa

    try:
        values.validate(full=full)
    except pa.ArrowException as why:
        raise InvalidRequest(f"loader: the table is damaged: {path_text(str(why))}") from why


def _fields(chunk: Any, name: str) -> tuple[Any, Any]:
    import pyarrow as pa

    kind = chunk.type
    if pa.types.is_struct(kind):
        places = {field.name: place for place, field in enumerate(kind)}
        if "bytes" in places:
            parts = chunk.flatten()  # with the struct's own missing rows, and its place within a larger chunk
            content = parts[places["bytes"]]
            if pa.types.is_binary(content.type) or pa.types.is_large_binary(content.type):
                return content, parts[places["path"]] if "path" in places else None
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return chunk, None
    raise NotParts(f"the column {name!r} is {kind}, not bytes")


def _of_binary(content: Any) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.int64]]:
    import pyarrow as pa

    count = len(content)
    wide = pa.types.is_large_binary(content.type)
    _, ends, data = content.buffers()
    if not count or ends is None:
        return np.zeros(count, np.uint64), np.zeros(count, np.uint64), np.empty(0, np.int64)
    known = np.frombuffer(ends, np.int64 if wide else np.int32, ends.size // (8 if wide else 4))
    bounds = known[content.offset : content.offset + count + 1].astype(np.int64)
    lengths = np.diff(bounds)
    size = data.size if data is not None else 0
    if len(bounds) != count + 1 or bounds[0] < 0 or (lengths < 0).any() or int(bounds[-1]) > size:
        raise InvalidRequest("loader: the table is damaged: values of its column of images lie outside of their file")
    addresses = bounds[:-1].astype(np.uint64) + np.uint64(data.address if data is not None else 0)
    holes = np.flatnonzero(content.is_null().to_numpy(zero_copy_only=False)) if content.null_count else np.empty(0, np.int64)
    if len(holes):
        lengths[holes] = 0
    return addresses, lengths.astype(np.uint64), holes


def _indices(rows: NDArray[np.int64]) -> Any:
    import pyarrow as pa

    return pa.array(rows)
