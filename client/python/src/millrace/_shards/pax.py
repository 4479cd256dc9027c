"""Extended headers of POSIX tar (pax): those that only say times, owners or a name."""

from __future__ import annotations

_WITHOUT_EFFECT = frozenset((b"mtime", b"atime", b"ctime", b"uid", b"gid", b"uname", b"gname", b"comment", b"charset"))
_EFFECT_ELSEWHERE = (b"LIBARCHIVE.", b"SCHILY.")
LONGEST = 2048  # bytes of records


class NotPlain(Exception):
    """It says more, or is malformed: for ``tarfile``."""


def name_in(records: bytes) -> bytes | None:
    """The member's name that the records say; None: they say none, and the next header does.

    Raises:
        NotPlain: something else than times, owners and a name is in them.
    """
    name, at = None, 0
    while at < len(records):
        blank = records.find(b" ", at, at + 8)
        digits = records[at:blank]
        if blank < 0 or not digits.isdigit():
            raise NotPlain
        end = at + int(digits)
        equals = records.find(b"=", blank, end)
        if equals < 0 or end > len(records) or records[end - 1] != 10:
            raise NotPlain
        keyword = records[blank + 1 : equals]
        if keyword == b"path":
            name = records[equals + 1 : end - 1].rstrip(b"/")
            if b"\0" in name:
                raise NotPlain
        elif keyword not in _WITHOUT_EFFECT and not keyword.startswith(_EFFECT_ELSEWHERE):
            raise NotPlain
        at = end
    return name
