"""Datasets: folder trees that the daemon has listed, and lists of files that it was given."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from millrace._core.skipped_files import SkippedFiles, skipped_files
from millrace._wire.messages import path_text

if TYPE_CHECKING:
    from millrace._core.epoch import Epoch
    from millrace._core.session import Session


class Dataset:
    """An opened folder tree, or a list of files (``Session.dataset_of``).

    The daemon forgets it when this is collected or closed; epochs under way go on. ``len()`` is the number of samples. Immutable.

    A list's samples are numbered as in the list; it has no ``classes``, and nothing is skipped.

    Of a tree the folders directly beneath it are the classes, in byte order of their names; without folders every label is -1. Samples are
    numbered as ``ImageFolder`` does it: by class folder, then by the path of the folder that holds the file, then by the file's name, each
    in byte order; files in no class folder come first. What else the tree holds is in ``skipped``.
    """

    def __init__(self, session: Session, path: str, opened: Any) -> None:
        self._session = session
        self.path = path
        """The folder, or one that all files of a list lie beneath, absolute.

        As ``os`` names it, and so are the classes: ``os.fsencode`` gives the bytes of names that are not UTF-8.
        """
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
        self._closed = False

    def epoch(self, **options: Any) -> Epoch:
        """One pass over it; as ``Session.epoch``."""
        return self._session.epoch(self, **options)

    def path_of(self, sample: int) -> str:
        """The file of a sample, absolute, as ``os`` names it. The daemon is asked.

        Raises:
            InvalidRequest: there is no such sample.
            NotFound: the dataset was closed.
            DaemonUnavailable, Cancelled: the daemon is gone, or the session closed.
        """
        return self.paths_of((sample,))[0]

    def paths_of(self, samples: Iterable[int]) -> list[str]:
        """The files of samples, in their order. As ``path_of``."""
        return self._session._datasets.files_of(self.id, [operator.index(sample) for sample in samples])

    def close(self) -> None:
        """The daemon forgets it. Idempotent."""
        if not self._closed:
            self._closed = True
            self._session._close_dataset(self.id)

    def __del__(self) -> None:
        self.close()

    def __len__(self) -> int:
        return self._samples

    def __repr__(self) -> str:
        return f"<millrace.Dataset {path_text(self.path)}: {len(self)} samples, {len(self.classes)} classes>"
