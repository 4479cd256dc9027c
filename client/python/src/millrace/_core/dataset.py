"""Datasets: folder trees that the daemon has listed, and lists of files that it was given."""

from __future__ import annotations

import dataclasses
import operator
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from millrace._core.skipped_files import SkippedFiles, skipped_files
from millrace._data.sample_copies import SAMPLE_MASK
from millrace._wire.messages import path_text
from millrace.errors import InvalidRequest

if TYPE_CHECKING:
    from millrace._core.epoch import Epoch
    from millrace._core.session import Session
    from millrace._data.file_parts import FileParts
    from millrace.errors import SampleError
    from millrace.samples import Part


class Dataset:
    """An opened folder tree, or a list of files (``Session.dataset_of``).

    The daemon forgets it when this is collected or closed; epochs under way go on. ``len()`` is the number of samples. Immutable.

    A list's samples are numbered as in the list; it has no ``classes``, and nothing is skipped.

    Of a tree the folders directly beneath it are the classes, in byte order of their names; without folders every label is -1. Samples are
    numbered as ``ImageFolder`` does it: by class folder, then by the path of the folder that holds the file, then by the file's name, each
    in byte order; files in no class folder come first. What else the tree holds is in ``skipped``.
    """

    def __init__(self, session: Session, path: str, opened: Any, parts: FileParts | None = None) -> None:
        self._session, self._parts = session, parts
        self.path = path
        """The folder, or one that all files of a list lie beneath, absolute.

        As ``os`` names it, and so are the classes: ``os.fsencode`` gives the bytes of names that are not UTF-8.
        """
        self.id: int = opened.dataset_id
        """For ``DatasetSample``."""
        self.classes: tuple[str, ...] = tuple(os.fsdecode(name) for name in opened.classes)
        """The classes' folders. A label is a position in here."""
        self.fingerprint: int = opened.fingerprint
        """Of the listing: paths in order, and of parts of files which parts."""
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

        Of a part of a file its name for people: ``/data/shard.tar[1536+48211]``, offset and length in bytes; ``part_of`` has the part.

        Raises:
            InvalidRequest: there is no such sample.
            NotFound: the dataset was closed.
            DaemonUnavailable, Cancelled: the daemon is gone, or the session closed.
        """
        return self.paths_of((sample,))[0]

    def paths_of(self, samples: Iterable[int]) -> list[str]:
        """The files of samples, in their order. As ``path_of``."""
        numbers = [operator.index(sample) for sample in samples]
        if self._parts is None:
            return self._session._datasets.files_of(self.id, numbers)
        return [self._parts[self._within(number)] for number in numbers]

    def part_of(self, sample: int) -> Part | None:
        """The part of a file that a sample is; None: a whole file. Of a list that has parts.

        Raises:
            InvalidRequest: there is no such sample.
        """
        return None if self._parts is None else self._parts.part_of(self._within(operator.index(sample)))

    def _with_members(self, errors: tuple[SampleError, ...]) -> tuple[SampleError, ...]:
        """The errors, each named by its member as well."""
        if self._parts is None or self._parts.members is None:
            return errors
        named = [self._parts.members[error.sample_id & SAMPLE_MASK] for error in errors]
        return tuple(
            dataclasses.replace(error, source=f"{error.source} {path_text(name)}") if name else error
            for error, name in zip(errors, named, strict=True)
        )

    def _within(self, sample: int) -> int:
        if not 0 <= sample < len(self):
            raise InvalidRequest(f"dataset: it has {len(self)} samples, and there is no sample {sample}")
        return sample

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
