"""What the package spells itself of shared memory, hand-off and errors, held against the headers that the daemon is built of."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from millrace import errors, recipe
from millrace._core import session_wire as _wire
from millrace._core import skipped_files as _skipped
from millrace._memory import layout as _layout
from millrace._wire import address as _address
from millrace._wire import calls as _calls
from millrace._wire import handoff as _handoff
from millrace._wire import schema as _schema

PROTO = Path(__file__).resolve().parents[3] / "proto"
SEGMENT = PROTO / "shm/segment_layout.h"
HANDOFF = PROTO / "shm/handoff_wire.h"

FORMATS = {"std::uint64_t": "Q", "std::int64_t": "q", "std::uint32_t": "I", "std::int32_t": "i", "std::uint16_t": "H", "std::uint8_t": "B"}
DTYPES = {"Q": "<u8", "q": "<i8", "I": "<u4", "i": "<i4", "H": "<u2", "B": "u1"}


def code_of(header: Path) -> str:
    return re.sub(r"//.*", "", header.read_text())


def constant(header: Path, name: str) -> Any:
    found = re.search(rf"constexpr [^;=]*\b{name} = ([^;]+);", code_of(header))
    assert found, f"{header.name} has no {name}"
    value = found[1].strip()
    return value[1:-1] if value.startswith('"') else int(value.replace("'", ""), 0)


def enumeration(header: Path, name: str) -> dict[str, int]:
    found = re.search(rf"enum (?:class )?{name} : [^{{]*{{([^}}]*)}}", code_of(header))
    assert found, f"{header.name} has no {name}"
    values: dict[str, int] = {}
    for entry in filter(None, map(str.strip, found[1].split(","))):
        spelled, _, value = entry.partition(" = ")
        values[spelled] = int(value) if value else max(values.values()) + 1
    return values


def members(header: Path, name: str) -> list[tuple[str, str, int]]:
    """Name, letter of ``struct`` and number (0: it is no array) of each member. The headers assert that there is no padding."""
    found = re.search(rf"struct {name} {{([^}}]*)}};", code_of(header))
    assert found, f"{header.name} has no {name}"
    parsed = []
    for line in filter(None, map(str.strip, found[1].split(";"))):
        member = re.fullmatch(r"(\S+)\s+(\w+)(?:\[(\w+)\])?", line)
        assert member, f"{header.name}: {line}"
        count = 0 if member[3] is None else int(member[3]) if member[3].isdigit() else constant(header, member[3])
        letter = "s" if member[1] == "char" else FORMATS[member[1]]
        parsed.append((member[2], letter, count))
    return parsed


def packing(header: Path, name: str) -> str:
    """As a format of ``struct``; arrays of bytes are its strings."""

    def spelled(letter: str, count: int) -> str:
        return letter if count == 0 else f"{count}s" if letter in "sB" else letter * count

    return "<" + "".join(spelled(letter, count) for _, letter, count in members(header, name))


def test_the_segments_headers() -> None:
    assert constant(SEGMENT, "kSegmentMagic") == _layout.SEGMENT_MAGIC
    assert constant(SEGMENT, "kSegmentVersion") == _layout.SEGMENT_VERSION
    assert packing(SEGMENT, "SegmentHeader") == _layout.SEGMENT_HEADER.format
    assert packing(SEGMENT, "SlotHeader").startswith(_layout.SLOT_HEADER.format.removesuffix("48x"))
    assert struct.calcsize(packing(SEGMENT, "SlotHeader")) == _layout.SLOT_HEADER.size
    assert enumeration(SEGMENT, "SlotState")["kSealed"] == _layout.SEALED


def test_the_records() -> None:
    fields: list[Any] = []
    for name, letter, count in members(SEGMENT, "SampleRecord"):
        fields.append((name, f"S{count}") if letter == "s" else (name, DTYPES[letter], (count,)) if count else (name, DTYPES[letter]))
    flags = enumeration(SEGMENT, "SampleFlags")

    assert np.dtype(fields) == _layout.RECORD
    assert constant(SEGMENT, "kRecordAlignment") == _layout.RECORD_ALIGNMENT
    assert constant(SEGMENT, "kImageAlignment") == _layout.IMAGE_ALIGNMENT
    assert _layout.MOST_BESIDE_PIXELS == 192  # as proto/shm/segment_layout.h computes it
    assert (flags["kFlipped"], flags["kZeroed"], flags["kSubstituted"]) == (_layout.FLIPPED, _layout.ZEROED, _layout.SUBSTITUTED)


def test_the_hand_off() -> None:
    requests, replies = enumeration(HANDOFF, "RequestKind"), enumeration(HANDOFF, "ReplyKind")

    assert constant(HANDOFF, "kHandoffMagic") == _handoff._MAGIC
    assert constant(HANDOFF, "kHandoffVersion") == _handoff._VERSION
    assert enumeration(HANDOFF, "HelloFlags") == {"kWantsReplySocket": _handoff._WANTS_REPLY_SOCKET}
    assert packing(HANDOFF, "HandoffRequest") == _handoff._REQUEST.format
    assert packing(HANDOFF, "HandoffReply") == _handoff._REPLY.format
    assert requests == {
        "kHello": _handoff._HELLO,
        "kRingRequest": _handoff._RING_REQUEST,
        "kGoodbye": _handoff._GOODBYE,
        "kLetGo": _handoff._LET_GO,
    }
    assert replies == {
        "kWelcome": _handoff._WELCOME,
        "kSegment": _handoff._SEGMENT,
        "kRing": _handoff._RING,
        "kRefused": _handoff._REFUSED,
        "kMemory": _handoff._MEMORY,
    }


def test_the_sockets_paths() -> None:
    assert constant(PROTO / "base/sockets/handoff_path.h", "kHandoffSuffix") == _address.HANDOFF_SUFFIX
    assert "kLongestUnixPath - kHandoffSuffix.size()" in code_of(PROTO / "base/sockets/handoff_path.h")
    assert 107 - len(_address.HANDOFF_SUFFIX) == _address.LONGEST_SOCKET_PATH  # of sockaddr_un, as the header has it


def test_the_codes_of_errors() -> None:
    codes = enumeration(PROTO / "base/error.h", "Code")
    names = dict(re.findall(r'case Code::(\w+):\s*return "(\w+)";', code_of(PROTO / "base/error.cc")))

    assert ("OK", *(names[code] for code in sorted(codes, key=codes.__getitem__))) == errors.CODE_NAMES


def test_the_calls_metadata() -> None:
    assert constant(PROTO / "rpc/ticket_metadata.h", "kTicketMetadata") == _wire._TICKET_METADATA
    assert constant(PROTO / "rpc/own_words.h", "kOwnWordsMetadata") == _calls._OWN_WORDS_METADATA


@pytest.mark.parametrize(
    ("message", "field", "literal"),
    [
        ("Recipe", "dtype", recipe.DType),
        ("Recipe", "layout", recipe.Layout),
        ("Recipe", "channels", recipe.Channels),
        ("Recipe", "range", recipe.ValueRange),
        ("Recipe", "packing", recipe.Packing),
        ("Recipe", "centre_rounding", recipe.CentreRounding),
        ("Resize", "filter", recipe.Filter),
        ("Submit", "fidelity", recipe.Fidelity),
        ("Submit", "on_error", recipe.OnError),
        ("Submit", "priority", recipe.Priority),
        ("StartEpoch", "shard_tail", recipe.ShardTail),
        ("SkippedFiles", "reason", _skipped.SkipReason),
    ],
)
def test_words_have_the_schemas_numbers(message: str, field: str, literal: Any) -> None:
    """Which is their position and one more: 0 is UNSPECIFIED."""
    schema = {name: cls for name, cls in vars(_schema).items() if hasattr(cls, "DESCRIPTOR")}
    start = schema["ClientMessage"].DESCRIPTOR
    enum = _descriptor(start, schema["ServerMessage"].DESCRIPTOR, message).fields_by_name[field].enum_type
    prefix = enum.values_by_number[0].name.removesuffix("UNSPECIFIED")

    assert [value.name.removeprefix(prefix).lower() for value in enum.values[1:]] == [word.lower() for word in get_args(literal)]
    assert [value.number for value in enum.values] == list(range(len(get_args(literal)) + 1))


def _descriptor(*start_and_name: Any) -> Any:
    *waiting, name = start_and_name
    seen: set[str] = set()
    while waiting:
        message = waiting.pop()
        if message.name == name:
            return message
        if message.full_name not in seen:
            seen.add(message.full_name)
            waiting += [field.message_type for field in message.fields if field.message_type is not None]
    raise AssertionError(f"no message {name}")
