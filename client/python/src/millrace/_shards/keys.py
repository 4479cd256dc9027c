"""Which members belong together: webdataset's rules."""

from __future__ import annotations

import re
from collections import Counter

from millrace._shards.walk import Members

_META = re.compile(rb"__[^/]*__(?:$|/)")
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


class Grouping:
    """Gathers an archive's members as samples. Members with one key that follow each other are one.

    The key is the name up to the first dot of its last part, the extension is the rest. Left out, and counted, are hidden members (whose
    last part begins with a dot), names without a dot and webdataset's own entries (``__meta__``).

    Attributes:
        lines: the text of an index: each member with a newline or a blank before it.
        members: how many.
        samples: how many.
        again: keys that come again after others.
        left_out: members, by reason.
    """

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.members = self.samples = self.again = 0
        self.left_out: Counter[str] = Counter()
        self._key: bytes | None = None
        self._keys: set[bytes] = set()
        self._numbers: dict[bytes, list[int]] = {}
        self._others: set[bytes] = set()  # extensions whose data are no numbers

    def add(self, found: Members) -> None:
        """Takes the archive's next members."""
        lines, others, numbers, key = self.lines, self._others, self._numbers, self._key
        for name, offset, size, data in zip(*found, strict=True):
            last = name.rfind(b"/") + 1
            dot = name.find(b".", last)
            if dot <= last:
                self.left_out["hidden" if dot == last else "without an extension"] += 1
                continue
            if name.startswith(b"__") and _META.match(name):
                self.left_out["hidden"] += 1
                continue
            extension = name[dot + 1 :]
            if key == name[:dot]:
                lines.append(b" %s %d %d %s" % (extension, offset, size, name))
            else:
                key = name[:dot]
                self.again += key in self._keys
                self._keys.add(key)
                self.samples += 1
                lines.append(b"\n%s %d %d %s" % (extension, offset, size, name))
            self.members += 1
            if extension in others:
                continue
            try:
                value = int(data)  # type: ignore[arg-type]
            except (TypeError, ValueError):
                others.add(extension)
                continue
            known = numbers.setdefault(extension, [])
            if len(known) != self.samples - 1 or not _LEAST <= value <= _MOST:  # a sample is without it, or has it twice
                others.add(extension)
                continue
            known.append(value)
        self._key = key

    def numbers(self) -> dict[str, list[int]]:
        """By extension, in ASCII, the numbers of all samples, of each one.

        Extensions of which some data are none are left out, as are those that come in upper and lower case, too.
        """
        spellings = Counter(extension.lower() for extension in self._others | self._numbers.keys())
        return {
            extension.decode(): values
            for extension, values in self._numbers.items()
            if extension not in self._others and spellings[extension.lower()] == 1 and len(values) == self.samples and extension.isascii()
        }
