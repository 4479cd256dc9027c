r"""The index of a shard, as text and as columns.

The text is NVIDIA DALI's index of version 1.2: the line ``v1.2 SAMPLES``, then a line for each sample, which has for each of its members
``EXTENSION OFFSET SIZE NAME``, all with one blank between; offset and size of the data, in bytes. One line more, which DALI does not
read, follows in an index of Millrace's: ``#millrace-1``, the CRC-32 of the text before and of the rest of the line (8 digits, base 16),
and a JSON object: ``size`` and ``modified_ns`` of the shard, ``left_out`` (members by reason), ``again`` (keys that come again) and
``numbers`` (by extension those of all samples).

Names with blanks or control bytes cannot be said so. Then the first line is ``millrace-1 SAMPLES``; in names and extensions these and
``%`` are written ``%20`` and the like, and an empty extension is ``%``.
"""

from __future__ import annotations

import json
import re
import zlib
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote_to_bytes

import numpy as np
from numpy.typing import NDArray

from millrace._shards.headers import BLOCK
from millrace._shards.keys import Grouping

_DALI, _OWN, _END = b"v1.2", b"millrace-1", b"#millrace-1 "
_ESCAPED = re.compile(rb"[\0- %]")
_BLANKS = bytes(range(33))  # what index_of() takes for the end of a word
_DIGITS = 18
_NEWLINE, _BLANK = 10, 32


class NoIndex(Exception):
    """The text is none, or says what cannot be."""


@dataclass(frozen=True)
class Told:
    """What the last line of an index says.

    Attributes:
        size: of the shard then, in bytes.
        modified_ns: of the shard then.
        left_out: members that belong to no sample, by reason.
        again: keys that come again after others.
        numbers: by extension, int64 [samples].
    """

    size: int
    modified_ns: int
    left_out: dict[str, int]
    again: int
    numbers: dict[str, NDArray[np.int64]]


@dataclass(frozen=True)
class Index:
    """The members of a shard [M] and its samples [N], as columns.

    Attributes:
        text: in which their names lie.
        escaped: whether names and extensions are written with ``%20``.
        first: int64 [N + 1], the members of sample i are ``first[i]`` to ``first[i + 1]``.
        offsets: int64 [M], of the data, in bytes.
        sizes: int64 [M], of the data, in bytes.
        begins: int64 [4 M], where in the text each member's extension, offset, size and name begin.
        ends: int64 [4 M], and end.
        told: what else is known; None: DALI made it.
    """

    text: bytes
    escaped: bool
    first: NDArray[np.int64]
    offsets: NDArray[np.int64]
    sizes: NDArray[np.int64]
    begins: NDArray[np.int64]
    ends: NDArray[np.int64]
    told: Told | None = field(repr=False, default=None)

    def __len__(self) -> int:
        return len(self.first) - 1

    def chosen(self, extensions: list[bytes]) -> tuple[NDArray[np.int64], int]:
        """Of each sample the member with the first of these extensions that it has.

        Args:
            extensions: lower case; those of the members count in any case.

        Returns:
            Members' numbers [N], -1: it has none; and how many samples have one of the extensions twice, of which the first counts.
        """
        bytes_of = np.frombuffer(self.text.lower(), np.uint8)
        begins = self.begins[0::4]
        lengths = self.ends[0::4] - begins
        sample = np.repeat(np.arange(len(self)), np.diff(self.first))
        found, twice = np.full(len(self), -1, np.int64), 0
        for extension in reversed(extensions):
            asked = _escaped(extension) or b"%" if self.escaped else extension
            alike = np.flatnonzero(lengths == len(asked))
            for position, byte in enumerate(asked.lower()):
                alike = alike[bytes_of[begins[alike] + position] == byte]
            of = sample[alike]
            twice += int(np.count_nonzero(of[1:] == of[:-1]))
            found[of[::-1]] = alike[::-1]
        return found, twice

    def name(self, member: int) -> bytes:
        """A member's name, as in the archive."""
        name = self.text[self.begins[4 * member + 3] : self.ends[4 * member + 3]]
        return unquote_to_bytes(name) if self.escaped else name

    def extensions(self) -> set[str]:
        """Those of the first samples, lower case, for people."""
        some = range(min(len(self.offsets), 1000))
        found = {self.text[self.begins[4 * member] : self.ends[4 * member]].lower() for member in some}
        return {name.decode("utf-8", "backslashreplace") for name in found}


def text_of(found: Grouping, size: int, modified_ns: int, left_out: dict[str, int]) -> bytes:
    """The index that says where those members are.

    Args:
        found: the members.
        size: of the shard, in bytes.
        modified_ns: of the shard.
        left_out: members that belong to no sample, by reason.
    """
    body = b"".join(found.lines)[1:]
    version = _DALI
    blanks = len(body) - len(body.translate(None, _BLANKS))
    if blanks != max(0, 4 * found.members - 1) or len(body.split()) != 4 * found.members:  # more, or an empty extension
        version, body = _OWN, b"".join(map(_escaped_line, found.lines))[1:]
    text = b"%s %d\n%s%s" % (version, found.samples, body, b"\n" if body else b"")
    told = {
        "size": size,
        "modified_ns": modified_ns,
        "left_out": left_out,
        "again": found.again,
        "numbers": found.numbers(),
    }
    last = json.dumps(told, separators=(",", ":")).encode() + b"\n"
    return b"%s%s%08x %s" % (text, _END, zlib.crc32(last, zlib.crc32(text)), last)


def is_dalis(text: bytes) -> bool:
    """Whether DALI can read it."""
    return text.startswith(_DALI)


def _escaped(name: bytes) -> bytes:
    return _ESCAPED.sub(lambda found: b"%%%02X" % found[0][0], name)


def _escaped_line(line: bytes) -> bytes:
    """One of ``Grouping.lines``. The name ends with the extension, so numbers between blanks in them mislead nobody."""
    begin, rest = line[:1], line[1:]
    for found in re.finditer(rb" (\d+) (\d+) ", rest):
        extension, name = rest[: found.start()], rest[found.end() :]
        if name.endswith(b"." + extension):
            return b"%s%s %s %s %s" % (begin, _escaped(extension) or b"%", found[1], found[2], _escaped(name))
    raise AssertionError(line)


def index_of(text: bytes) -> Index:
    """What the text of an index says.

    Raises:
        NoIndex: it is none of these versions, or is damaged.
    """
    head, newline, _ = text[:64].partition(b"\n")
    words = head.split(b" ")
    if not newline or len(words) != 2 or words[0] not in (_DALI, _OWN) or not words[1].isdigit():
        raise NoIndex("it has another first line")
    begin, samples = len(head) + 1, int(words[1])
    end = text.rfind(b"\n" + _END) + 1 or len(text)
    told = _told(text, end, samples) if end < len(text) else None
    bytes_of = np.frombuffer(text, np.uint8, end - begin, begin)
    stops = np.flatnonzero(bytes_of <= _BLANK)
    stopping = bytes_of[stops]
    last = np.flatnonzero(stopping == _NEWLINE)
    good = len(stops) % 4 == 0 and len(last) == samples and bool((last % 4 == 3).all())
    good = good and bool(((stopping == _BLANK) | (stopping == _NEWLINE)).all())
    if not good or (len(stops) and stops[-1] != len(bytes_of) - 1) or (not len(stops) and len(bytes_of)):
        raise NoIndex("its lines are malformed")
    ends = stops
    begins = np.concatenate(([0], stops[:-1] + 1)) if len(stops) else stops
    if (begins >= ends).any():
        raise NoIndex("a line has two blanks together")
    offsets = _numbers(bytes_of, begins[1::4], ends[1::4])
    sizes = _numbers(bytes_of, begins[2::4], ends[2::4])
    first = np.concatenate(([0], (last + 1) // 4))
    return Index(text, words[0] == _OWN, first, offsets, sizes, begins + begin, ends + begin, told)


def _numbers(text: NDArray[np.uint8], begins: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    lengths = ends - begins
    values = np.zeros(len(begins), np.int64)
    longest = int(lengths.max()) if len(lengths) else 0
    if longest > _DIGITS:
        raise NoIndex("a number is too large")
    for position in range(longest):
        within = position < lengths
        digits = text[np.where(within, begins + position, begins)] - np.uint8(48)
        if (digits > 9).any():
            raise NoIndex("there is text in the place of a number")
        values = np.where(within, values * 10 + digits, values)
    return values


def _told(text: bytes, end: int, samples: int) -> Told:
    try:
        crc, _, last = text[end + len(_END) :].partition(b" ")
        if int(crc, 16) != zlib.crc32(last, zlib.crc32(memoryview(text)[:end])):
            raise NoIndex("its checksum differs")
        found: dict[str, Any] = json.loads(last)
        numbers = {str(name): np.array(values, np.int64) for name, values in found["numbers"].items()}
        left_out = {str(reason): int(count) for reason, count in found["left_out"].items()}
        told = Told(int(found["size"]), int(found["modified_ns"]), left_out, int(found["again"]), numbers)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as why:
        raise NoIndex("its last line is malformed") from why
    if any(values.shape != (samples,) for values in numbers.values()):
        raise NoIndex("it has not as many numbers as samples")
    return told


def lies_within(index: Index, size: int) -> bool:
    """Whether each member lies within a shard of so many bytes, behind a header."""
    offsets, sizes = index.offsets, index.sizes
    return not len(offsets) or bool((offsets >= BLOCK).all() and (offsets % BLOCK == 0).all() and (offsets + sizes <= size).all())
