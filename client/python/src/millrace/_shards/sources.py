"""What names shards: a folder of them, a list, ``train-{0000..0099}.tar``, ``train-*.tar``; and what names members of them."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator
from typing import Any

from millrace._data.file_kinds import class_for
from millrace._wire.messages import is_url, path_text
from millrace.errors import InvalidRequest, NotFound

_MOST = 100_000  # shards
_DIGITS = 18
_ENDINGS = (".tar", ".tar.gz", ".tgz", ".tar.zst", ".tar.xz", ".tar.bz2", ".tar.lz4")
_RANGE = re.compile(r"(-?\d+)\.\.(-?\d+)(?:\.\.(-?\d+))?")


class ShardWarning(UserWarning):
    """A shard is damaged, has keys that are no samples (without an image, coming again), members of one name, or lacks a whole column."""


def shards_of(source: Any) -> list[str]:
    """The absolute paths of the shards that are meant, each once, in order.

    Args:
        source: a path; with ``{0000..0099}`` or ``{a,b}`` several, in this order; with ``*``, ``?``, ``[...]`` those that there are, and of
            a folder those in it whose names end in ``.tar``, both in byte order of their names; or a list of these.

    Raises:
        InvalidRequest: none is meant, a shard twice, or a URL.
        NotFound: a pattern or a folder has none.
    """
    given = [source] if isinstance(source, (str, bytes, os.PathLike)) else source
    if not isinstance(given, Iterable):
        raise InvalidRequest(f"shards: a path, a pattern or a list of these, not a {type(source).__name__}")
    found: dict[str, None] = {}
    for one in given:
        if not isinstance(one, (str, bytes, os.PathLike)):
            raise InvalidRequest(f"shards: a path is a text, not a {type(one).__name__}")
        for path in _meant(os.fsdecode(one)):
            if path in found:
                raise InvalidRequest(f"shards: {path_text(path)} is there twice; name each shard once")
            found[path] = None
            if len(found) > _MOST:
                raise InvalidRequest(f"shards: there are more than {_MOST}")
    if not found:
        raise InvalidRequest("shards: there are none")
    return list(found)


def extensions_of(given: Any, argument: str) -> list[str]:
    """Extensions, lower case: of ``"jpg;png"`` or a list.

    Raises:
        InvalidRequest: they are none.
    """
    names = given.split(";") if isinstance(given, str) else list(given) if isinstance(given, Iterable) else [given]
    if not names:
        raise InvalidRequest(f"shards: {argument} has no extension")
    return [plain_extension(name, argument) for name in names]


def label_extension(label: str | None) -> str:
    """That of the labels; empty: they are not wanted. Raises InvalidRequest: it is none."""
    return "cls" if label is None else plain_extension(label, "label") if label else ""


def plain_extension(name: Any, argument: str) -> str:
    """``"jpg"`` of ``".JPG"``. Raises InvalidRequest: it is none."""
    if not isinstance(name, str) or not name.strip(". ") or "/" in name:
        raise InvalidRequest(f'shards: {argument} has extensions, "jpg" or ["jpg", "png"], not {name!r}')
    return name.strip().lstrip(".").lower()


def _meant(text: str) -> Iterator[str]:
    if not text or "\0" in text:
        raise InvalidRequest(f"shards: no path: {text[:100]!r}")
    if is_url(text):
        raise InvalidRequest(f"shards: {path_text(text)} is a URL: give {path_text(class_for(text, 'RemoteShards'))}")
    if text.startswith("pipe:"):
        raise InvalidRequest(f"shards: {path_text(text)} is a command: give its URL to millrace.RemoteShards")
    path = os.path.abspath(text)
    if os.path.isdir(path):
        yield from _in_folder(path)
    elif os.path.exists(path):
        yield path
    else:
        for each in expanded(path):
            yield from _matching(each) if glob.has_magic(each) and not os.path.exists(each) else [each]


def _in_folder(folder: str) -> list[str]:
    try:
        names = sorted((entry.name for entry in os.scandir(folder)), key=os.fsencode)
    except OSError as why:
        raise InvalidRequest(f"shards: the folder {path_text(folder)}: {why.strerror}") from None
    found = [os.path.join(folder, name) for name in names if name.lower().endswith(_ENDINGS) and not name.startswith(".")]
    if not found:
        raise NotFound(f"shards: there is no .tar file in the folder {path_text(folder)}, compressed or not")
    return found


def _matching(pattern: str) -> list[str]:
    found = [path for path in glob.glob(pattern) if not os.path.isdir(path)]
    if not found:
        raise NotFound(f"shards: there is no file {path_text(pattern)}")
    return sorted(found, key=os.fsencode)


def expanded(text: str) -> list[str]:
    """As a shell expands braces; those without a range or a list are characters of a name."""
    found = [""]
    rest = text
    while rest:
        before, brace, rest = rest.partition("{")
        within, after = _group(rest) if brace else ([], None)
        values = _values(within[0]) if len(within) == 1 else [value for part in within for value in expanded(part)]
        if after is None or not values:
            found = [one + before + brace for one in found]
            continue
        if len(found) * len(values) > _MOST:
            raise InvalidRequest(f"shards: {path_text(text)} are more than {_MOST}")
        found = [one + before + value for one in found for value in values]
        rest = after
    return found


def _group(text: str) -> tuple[list[str], str | None]:
    """What stands up to the brace that closes, divided at its own commas, and what comes after; None: no brace closes."""
    parts, begin, depth = list[str](), 0, 0
    for at, letter in enumerate(text):
        if letter == "{":
            depth += 1
        elif letter == "}" and depth:
            depth -= 1
        elif letter in ",}" and not depth:
            parts.append(text[begin:at])
            begin = at + 1
            if letter == "}":
                return parts, text[begin:]
    return [], None


def _values(within: str) -> list[str]:
    """Of a range; else none."""
    found = _RANGE.fullmatch(within)
    if not found:
        return []
    if max(map(len, found.groups(""))) > _DIGITS:
        raise InvalidRequest(f"shards: {{{path_text(within)}}} has a number that is too large")
    first, last, step = int(found[1]), int(found[2]), abs(int(found[3] or 1)) or 1
    width = (
        max(len(found[1]), len(found[2])) if any(text.lstrip("-").startswith("0") and len(text) > 1 for text in found.groups("")[:2]) else 0
    )
    numbers = range(first, last + 1, step) if first <= last else range(first, last - 1, -step)
    if len(numbers) > _MOST:
        raise InvalidRequest(f"shards: {{{within}}} are more than {_MOST}")
    return [f"{number:0{width}d}" for number in numbers]
