"""The files of a folder tree that are no samples, and how a training program hears of them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, get_args

from millrace._process.warn import warn
from millrace._wire.messages import path_text

SkipReason = Literal["not_asked", "undecoded", "unclassified"]

_told: set[str] = set()  # warnings of this process
_TOLD_MOST = 1000


class SkippedFilesWarning(UserWarning):
    """A folder holds files that are no samples: no pictures, pictures of formats that the daemon does not decode, or beside the classes."""


class UnlabelledWarning(UserWarning):
    """A folder has no class folders, so that every label is -1."""


@dataclass(frozen=True)
class SkippedFiles:
    """Files that are no samples, for one reason. A value.

    Attributes:
        reason: ``not_asked``: their extension is none of those asked for; ``undecoded``: likewise, and it is that of pictures in a format
            that the daemon does not decode, which somebody has to convert; ``unclassified``: they lie beside the class folders.
        extension: of them all, lower case without the dot; empty: none, a long one, or ``unclassified``.
        files: how many.
        examples: at most three relative paths, as ``os`` has them.
    """

    reason: SkipReason
    extension: str
    files: int
    examples: tuple[str, ...]

    def __str__(self) -> str:
        kind = f".{path_text(self.extension)}" if self.extension else "without an extension"
        text = f"{self.files} {'beside the class folders' if self.reason == 'unclassified' else kind}"
        if not self.examples:
            return text
        examples = path_text(self.examples[0]) + (", ..." if self.files > 1 else "")
        return f"{text} ({examples}{'; not decoded: convert them' if self.reason == 'undecoded' else ''})"


def skipped_files(messages: Iterable[Any]) -> tuple[SkippedFiles, ...]:
    """Of a ``DatasetOpened``."""
    reasons: tuple[SkipReason, ...] = get_args(SkipReason)
    return tuple(
        SkippedFiles(
            reasons[m.reason - 1] if 1 <= m.reason <= len(reasons) else "not_asked",
            m.extension.decode("utf-8", "backslashreplace"),
            m.files,
            tuple(os.fsdecode(name) for name in m.examples),
        )
        for m in messages
    )


def warn_of_skipped(path: str, files: int, groups: tuple[SkippedFiles, ...]) -> None:
    """Once a process for each folder and what is in it."""
    if not files:
        return
    rest = files - sum(group.files for group in groups)
    told = ", ".join([str(group) for group in groups] + ([f"{rest} more"] if rest else []))
    how = 'extensions=("*",) takes every file'
    if any(group.reason == "unclassified" for group in groups):
        how += ", unclassified=True (Session.dataset) those beside the class folders"
    _warn_once(f"{path_text(path)}: {files} files are no samples: {told}; {how}", SkippedFilesWarning)


def warn_of_no_classes(path: str, classes: tuple[str, ...]) -> None:
    """For a loader that takes labels: once a process for each folder."""
    if not classes:
        text = "there are no class folders in it, so every label is -1 (ImageFolder would refuse it)"
        _warn_once(f"{path_text(path)}: {text}; make a folder for each class, or leave the labels alone", UnlabelledWarning)


def _warn_once(text: str, category: type[Warning]) -> None:
    if text in _told:
        return
    if len(_told) >= _TOLD_MOST:
        _told.clear()
    _told.add(text)
    warn(text, category)
