"""Datasets: folder trees that the daemon has listed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from millrace._messages import path_text
from millrace._skipped import SkippedFiles, skipped_files

if TYPE_CHECKING:
    from millrace.epoch import Epoch
    from millrace.session import Session


class Dataset:
    """An opened folder tree. The daemon forgets it when this is collected or closed; epochs under way go on.

    Folders directly beneath it are the classes, in byte order of their names; without folders every label is -1. Samples are numbered
    as ``ImageFolder`` does it: by class folder, then by the path of the folder that holds the file, then by the file's name, each in byte
    order; files in no class folder come first. ``len()`` is their number. What else the tree holds is in ``skipped``. Immutable.
    """

    def __init__(self, session: Session, path: str, opened: Any) -> None:
        self._session = session
        self.path = path
        """The folder, absolute; as ``os`` names it, and so are the classes: ``os.fsencode`` gives the bytes of names that are not UTF-8."""
        self.id: int = opened.dataset_id
        """For ``DatasetSample``."""
        self.classes: tuple[str, ...] = tuple(os.fsdecode(name) for name in opened.classes)
        """The classes' folders. A label is a position in here."""
        self.fingerprint: int = opened.fingerprint
        """Of the listing: paths in order."""
        self.skipped: tuple[SkippedFiles, ...] = skipped_files(opened.skipped)
        """The files that are no samples (hidden ones do not count): the largest groups of them, at most 16."""
        self.skipped_files: int = opened.skipped_files
        """How many they are, in all."""
        self._samples: int = opened.samples

    def epoch(self, **options: Any) -> Epoch:
        """One pass over it; as ``Session.epoch``."""
        return self._session.epoch(self, **options)

    def close(self) -> None:
        """The daemon forgets it. Idempotent."""
        self._session._close_dataset(self.id)

    def __del__(self) -> None:
        self.close()

    def __len__(self) -> int:
        return self._samples

    def __repr__(self) -> str:
        return f"<millrace.Dataset {path_text(self.path)}: {len(self)} samples, {len(self.classes)} classes>"
