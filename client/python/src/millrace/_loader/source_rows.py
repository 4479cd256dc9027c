"""The rows of a source, batch by batch, as a loop needs them. Runs in the feed's thread."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from millrace._data import hugging_face
from millrace._data.sample_copies import SAMPLE_MASK
from millrace._loader.order import OrderState
from millrace.encoded import Encoded, Row
from millrace.errors import FailedPrecondition


class Unread(NamedTuple):
    """A block that cannot be read, so that each of its images is bad.

    Attributes:
        name: the block's, for people.
        samples: how many it has.
        why: it cannot be read.
    """

    name: str
    samples: int
    why: str


class RowBatch(NamedTuple):
    """Rows that become a batch.

    Attributes:
        keys: of their random choices; the sample's id is in the lower 40 bits.
        rows: the rows.
        state: where the source is after them; None: the caller that asked for these rows knows.
        unread: by position, the block of a row that could not be read.
    """

    keys: list[int]
    rows: list[Row]
    state: OrderState | None
    unread: Mapping[int, Unread] = {}


def rows_by_number(encoded: Encoded, asked: Iterable[tuple[NDArray[np.int64], NDArray[np.uint64] | None]]) -> Iterator[RowBatch]:
    """Of a map-style source: those that are asked for."""
    for ids, keys in asked:
        numbers = ids.tolist()
        yield RowBatch(numbers if keys is None else keys.tolist(), list(encoded.rows(numbers)), None)


def rows_in_turn(
    encoded: Encoded, epoch: int, resumed: OrderState | None, batch_size: int, drop_last: bool, of: Mapping[str, Any]
) -> Iterator[RowBatch]:
    """Of an iterable one: as it gives them, from the start or after what ``resumed`` says.

    Raises:
        FailedPrecondition: it gives others than it gave then.
        InvalidRequest: as ``Encoded.read``. What the source raises comes as it is.
    """
    source = hugging_face.of_its_own(encoded.opened) if hugging_face.is_one(encoded.opened) else encoded.opened
    if hasattr(source, "set_epoch") and (hugging_face.shuffles(source) or not hugging_face.is_one(source)):
        source.set_epoch(epoch)
    exact = hugging_face.resumes(source)
    count, taken, crc = 0, 0, 0
    if resumed is not None:
        if ("source" in resumed.begun) != exact or "rows" not in resumed.begun:
            raise FailedPrecondition("loader: the state was saved with another dataset")
        count, taken, crc = resumed.begun["rows"], resumed.taken, resumed.crc
        if exact:
            source.load_state_dict(resumed.begun["source"])
    given = iter(source)
    try:
        if resumed is not None and not exact:
            _skip(encoded, given, count, crc)
        while rows := [encoded.read(row) for row in itertools.islice(given, batch_size)]:
            if drop_last and len(rows) < batch_size:
                return
            crc = _crc(rows, crc)
            taken += 1
            begun: dict[str, Any] = {"rows": count + len(rows), "of": of}
            if exact:
                begun["source"] = source.state_dict()
            yield RowBatch([(count + k) & SAMPLE_MASK for k in range(len(rows))], rows, OrderState(begun, taken, crc))
            count += len(rows)
    finally:
        close: Callable[[], None] | None = getattr(given, "close", None)
        if close is not None:
            close()


def _skip(encoded: Encoded, given: Iterator[Any], count: int, crc: int) -> None:
    seen, found = 0, 0
    for row in itertools.islice(given, count):
        found = _crc([encoded.read(row)], found)
        seen += 1
    if (seen, found) != (count, crc):
        raise FailedPrecondition(
            f"loader: the source gave other rows than when the state was saved (looked at: its first {count}); let it shuffle by a seed, "
            "and as in that epoch, or begin the epoch anew"
        )


def _crc(rows: list[Row], crc: int) -> int:
    for row in rows:
        crc = zlib.crc32(row.mark.to_bytes(4, "little"), crc)
    return crc
