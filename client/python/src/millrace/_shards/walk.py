"""The members of a tar archive, from its headers alone: 512 bytes of each are read, and the data are passed over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

from millrace._shards.headers import BLOCK, names_of, plain, table_of
from millrace._shards.odd_members import Damage, OddMembers
from millrace._shards.pax import LONGEST, NotPlain, name_in

_AT_ONCE = 1024  # headers that are checked together
_FAR, _NEAR = 4096, 1 << 18  # bytes that are read at once: of large members, of small ones
_SMALL = 8192  # bytes between headers on average, with which members are small
_ZEROS = bytes(BLOCK)
_REGULAR, _WITHOUT_DATA, _EXTENDED, _OLD = frozenset(b"07\0"), frozenset(b"123456"), ord("x"), 0
_FOLDER = ord("5")
SHORT = 20
"""Bytes of data that come with a member: of a whole number in text."""


class Members(NamedTuple):
    """Regular files of an archive, in its order.

    Attributes:
        names: as in the archive.
        offsets: of their data, in bytes.
        sizes: of their data, in bytes.
        data: of those of at most ``SHORT`` bytes, if they came along; else None.
    """

    names: list[bytes]
    offsets: list[int]
    sizes: list[int]
    data: list[bytes | None]


class Walk:
    """One walk through an archive. ``batches`` ends at the archive's end, or where it is damaged.

    Attributes:
        damage: where, once ``batches`` is through; None: the archive is whole.
        left_out: how many members are no regular files, by kind: ``"link or device"``, ``"sparse"``. Folders do not count.
        last: the name of the last member: of a cut archive the one whose data are not whole.
    """

    def __init__(self, read: Callable[[int, int], bytes], size: int) -> None:
        """Begins one.

        Args:
            read: so many bytes from an offset on, as ``os.pread``: fewer at the archive's end.
            size: of the archive, in bytes.
        """
        self._read, self._size = read, size
        self._odd = OddMembers(read)
        self._window = _FAR
        self._at = 0
        self.damage: Damage | None = None
        self.left_out: Counter[str] = Counter()
        self.last = b""

    def batches(self) -> Iterator[Members]:
        """The members, some at a time. Raises OSError: the archive cannot be read."""
        while self._at >= 0:
            batch = self._odd_one() if self._odd.only else self._some()
            if batch.names:
                if self.damage is None:  # else it is the member that is cut off
                    self.last = batch.names[-1]
                yield batch

    def _ends(self, damage: Damage | None) -> None:
        self._at, self.damage = -1, damage

    def _some(self) -> Members:
        """Plain ones as far as they go, at most ``_AT_ONCE``; where the next is none, that one."""
        read, total, window = self._read, self._size, self._window
        headers: list[bytes] = []
        begins: list[int] = []  # of each header's member, which may have an extended header before it
        which: list[int] = []  # of each member's header
        offsets: list[int] = []
        sizes: list[int] = []
        data: list[bytes | None] = []
        renamed: dict[int, bytes] = {}
        at = first = start = self._at
        block = b""
        cut = odd = end = False
        while len(headers) < _AT_ONCE:
            near = at - start
            header = block[near : near + BLOCK]
            if len(header) < BLOCK:
                block, start, near = read(window, at), at, 0
                header = block[:BLOCK]
                if len(header) < BLOCK:
                    odd = True
                    break
            begin, kind = at, header[156]
            if kind == _EXTENDED:
                length = _octal(header)
                there = BLOCK + _padded(length)
                if not 0 <= length <= LONGEST:
                    odd = True
                    break
                if near + there + BLOCK > len(block):
                    block, start, near = read(max(window, there + BLOCK), at), at, 0
                try:
                    name = name_in(block[near + BLOCK : near + BLOCK + length])
                except NotPlain:
                    odd = True
                    break
                headers.append(header)
                begins.append(begin)
                if name is not None:
                    renamed[len(headers)] = name
                near += there
                at += there
                header = block[near : near + BLOCK]
                if len(header) < BLOCK or header[156] == _EXTENDED:
                    odd = True
                    break
                kind = header[156]
            elif header == _ZEROS:
                end = True
                break
            size = _octal(header)
            if kind in _REGULAR and size >= 0:
                offset = at + BLOCK
                headers.append(header)
                begins.append(begin)
                if offset + size > total:
                    cut = True
                    break
                which.append(len(headers) - 1)
                offsets.append(offset)
                sizes.append(size)
                value = None
                if size <= SHORT:
                    value = block[near + BLOCK : near + BLOCK + size]
                    if len(value) < size:  # it lies beyond what is read
                        value = read(size, offset)
                data.append(value)
                at = offset + ((size + 511) & ~511)
            elif kind in _WITHOUT_DATA:
                headers.append(header)
                begins.append(begin)
                at += BLOCK
            else:
                odd = True
                break
        return self._checked(headers, begins, Members([], offsets, sizes, data), which, renamed, (at, first, cut, odd, end))

    def _checked(
        self,
        headers: list[bytes],
        begins: list[int],
        found: Members,
        which: list[int],
        renamed: dict[int, bytes],
        state: tuple[int, int, bool, bool, bool],
    ) -> Members:
        """Of what looks like plain members those before the first header that is not plain."""
        at, first, cut, odd, end = state
        if not headers:
            return self._ended() if end else self._odd_one()
        table = table_of(headers)
        names = names_of(table)
        good = plain(table)
        good[[number for number in (table[:, 156] == _OLD).nonzero()[0] if names[number].endswith(b"/")]] = False  # an old folder
        for number, name in renamed.items():
            if number < len(names):
                names[number] = name
        stop = len(headers)
        if not good.all():
            stop = int(good.argmin())
            at, cut, end = begins[stop], False, False
        elif odd and len(begins) and headers[-1][156] == _EXTENDED:  # what it belongs to is odd
            stop, at = stop - 1, begins[-1]
        kinds = table[:stop, 156]
        for kind, count in Counter(kinds.tolist()).items():
            if kind in _WITHOUT_DATA and kind != _FOLDER:
                self.left_out["link or device"] += count
        taken = len(which)
        while taken and which[taken - 1] >= stop:
            taken -= 1
        if stop > 8:
            self._window = _NEAR if (at - first) < _SMALL * stop else _FAR
        batch = Members([names[number] for number in which[:taken]], found.offsets[:taken], found.sizes[:taken], found.data[:taken])
        self._at = at
        if cut:
            self.last = names[-1]
            self._ends(Damage(at, "its data are cut off"))
        elif end:
            self._ends(None)
        elif at == first:
            return self._odd_one()
        return batch

    def _ended(self) -> Members:
        self._ends(None)
        return Members([], [], [], [])

    def _odd_one(self) -> Members:
        """The next member, whatever its headers are."""
        none, at = Members([], [], [], []), self._at
        header = self._read(BLOCK, at)
        if header == _ZEROS:
            return self._ended()
        if len(header) < BLOCK:
            why = "the archive ends without its end mark, so it is cut off" if not header else "a header is cut off"
            self._ends(Damage(at, why))
            return none
        member = self._odd.at(at)
        if isinstance(member, Damage):
            self._ends(member)
            return none
        if member.kind and member.next >= self._size + BLOCK:
            self.last = member.name
            self._ends(Damage(at, "its data are cut off"))
            return none
        if member.kind:
            self._at = member.next
            if member.kind != "folder":
                self.left_out[member.kind] += 1
            return none
        if member.offset + member.size > self._size:
            self.last = member.name
            self._ends(Damage(at, "its data are cut off"))
            return none
        self._at = member.next
        value = self._read(member.size, member.offset) if member.size <= SHORT else None
        return Members([member.name], [member.offset], [member.size], [value])


def _octal(header: bytes) -> int:
    """The size that it says; -1: it is no plain number."""
    try:
        return int(header[124:135], 8)
    except ValueError:
        return -1


def _padded(size: int) -> int:
    return (size + BLOCK - 1) & ~(BLOCK - 1)
