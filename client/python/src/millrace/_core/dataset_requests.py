"""How a session's datasets are made, and what is asked of them."""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from millrace._core.dataset import Dataset
from millrace._core.listing_bar import ListingBar
from millrace._core.skipped_files import warn_of_skipped
from millrace._data.file_parts import FileParts
from millrace._wire import messages
from millrace._wire import schema as _schema
from millrace._wire.file_list import NotBeneath, common_folder, label_array, parts
from millrace._wire.part_list import parts_in_messages
from millrace.errors import Error, InvalidRequest
from millrace.samples import AnyPath, Part

if TYPE_CHECKING:
    from millrace._core.session import Session

_LISTED_AHEAD = 100_000  # files of a list that were sent and that the daemon has not taken yet
_ANSWERED_WITHIN = 120.0  # seconds, of what the daemon has in memory

_Progress = Callable[[int], None]


class Datasets:
    """Of one session, whose methods of the same purpose describe arguments and errors. Thread-safe."""

    def __init__(self, session: Session) -> None:
        self._of: weakref.ref[Session] = weakref.ref(session)

    @property
    def _session(self) -> Session:
        session = self._of()
        assert session is not None  # who asks has it
        return session

    def of_folder(
        self, path: AnyPath, extensions: Iterable[str] | None, unclassified: bool, progress: _Progress | None, timeout: float
    ) -> Dataset:
        """As ``Session.dataset``."""
        session = self._session
        number = next(session._numbers)
        message = messages.open_dataset(number, path, extensions, unclassified)
        session._check()
        session._knowledge.check(message)
        session._inbox.expect_dataset(number)
        session._send(message)
        try:
            with ListingBar(listed := os.fsdecode(message.open_dataset.path)) as bar:
                answer = self._await_answer(number, progress or bar, time.monotonic() + timeout)
        finally:
            session._inbox.forget_dataset(number)
        dataset = self._made(listed, answer)
        if extensions is None:
            warn_of_skipped(dataset.path, dataset.skipped_files, dataset.skipped)
        return dataset

    def of_files(self, paths: Sequence[AnyPath | Part], labels: Any, progress: _Progress | None, timeout: float) -> Dataset:
        """As ``Session.dataset_of``."""
        if isinstance(paths, (str, bytes, os.PathLike, Part)):
            raise InvalidRequest("dataset: a list of files is a sequence of paths, not one path; Session.dataset() opens a folder")
        if isinstance(paths, (Mapping, Set)) or not hasattr(paths, "__len__"):
            raise InvalidRequest(f"dataset: a list of files is a sequence of paths, such as a list, not a {type(paths).__name__}")
        known, deadline = label_array(labels, len(paths)), time.monotonic() + timeout
        if not len(paths):
            raise InvalidRequest("dataset: the list of files is empty")
        if not isinstance(paths, FileParts) and any(type(path) is Part for path in paths):
            paths = FileParts.of(paths, lambda files: [os.fsdecode(messages.path_bytes(file)) for file in files])
        of_parts = isinstance(paths, FileParts)
        folder = common_folder(paths.files if isinstance(paths, FileParts) else paths)  # type: ignore[arg-type]
        try:
            answer = self._send_list(folder, paths, known, progress, deadline)
        except NotBeneath:
            folder = b"/"
            answer = self._send_list(folder, paths, known, progress, deadline)
        dataset = self._made(os.fsdecode(folder), answer, paths if of_parts else None)  # type: ignore[arg-type]
        if progress is not None:
            progress(len(dataset))  # the last part's may have been overtaken by the answer
        return dataset

    def _made(self, path: str, answer: Any, parts: FileParts | None = None) -> Dataset:
        if isinstance(answer, Error):
            try:
                raise answer
            finally:
                del answer  # a cycle of exception and frame would keep what the callers have until the next garbage collection
        return Dataset(self._session, path, answer, parts)

    def _send_list(
        self, folder: bytes, paths: Sequence[Any], labels: NDArray[np.int64] | None, progress: _Progress | None, deadline: float
    ) -> Any:
        session = self._session
        session._check()
        number, sent, told = next(session._numbers), 0, 0
        session._inbox.expect_dataset(number)
        try:
            for message, samples in _list_messages(number, folder, paths, labels, session.limits.message_bytes // 4):
                if not sent:
                    session._knowledge.check(message)
                sent += samples
                session._send(message)
                while sent < len(paths) and sent - told > _LISTED_AHEAD:
                    answer = self._await_news(number, progress, deadline, told)
                    if not isinstance(answer, int):
                        return answer
                    told = answer
            return self._await_answer(number, progress, deadline, told)
        except BaseException:
            if sent and not session.closed:
                session._close_dataset(number)
            raise
        finally:
            session._inbox.forget_dataset(number)

    def _await_answer(self, number: int, progress: _Progress | None, deadline: float, told: int = 0) -> Any:
        while isinstance(answer := self._await_news(number, progress, deadline, told), int):
            told = answer
        return answer

    def _await_news(self, number: int, progress: _Progress | None, deadline: float, told: int) -> Any:
        """The daemon's answer, or how many files it has seen by now."""
        take = partial(self._session._inbox.take_dataset, number, told)
        news = self._session._wait(take, max(0.0, deadline - time.monotonic()), "dataset")
        if isinstance(news, int) and progress is not None:
            progress(news)
        return news

    def files_of(self, dataset: int, samples: list[int]) -> list[str]:
        """As ``Dataset.paths_of``."""
        step = self._session.limits.files_named or 1  # of an older daemon, which refuses the question
        paths: list[str] = []
        for at in range(0, len(samples), step):
            paths += self._some_files_of(dataset, samples[at : at + step])
        return paths

    def _some_files_of(self, dataset: int, samples: list[int]) -> list[str]:
        session = self._session
        message, number = _schema.ClientMessage(), next(session._numbers)
        message.name_files.question_id, message.name_files.dataset_id = number, dataset
        try:
            message.name_files.samples.extend(samples)
        except (TypeError, ValueError) as why:
            raise InvalidRequest(f"dataset: there is no such sample: {why}") from why
        session._check()
        session._knowledge.check(message)
        session._inbox.expect_answer(number)
        try:
            session._send(message)
            answer = session._wait(partial(session._inbox.take_answer, number), _ANSWERED_WITHIN, "dataset")
        finally:
            session._inbox.forget_question(number)
        if isinstance(answer, Error):
            raise answer
        return [os.fsdecode(path) for path in answer.paths]


def _list_messages(
    number: int, folder: bytes, paths: Sequence[Any], labels: NDArray[np.int64] | None, most_bytes: int
) -> Iterator[tuple[Any, int]]:
    """Messages that list them, and the samples of each. Raises as ``file_list.parts``."""
    sent = 0
    if isinstance(paths, FileParts):
        for some in parts_in_messages(paths, labels, folder, most_bytes):
            message = _schema.ClientMessage()
            listing = message.list_parts
            listing.dataset_id, listing.folder, listing.paths = number, b"" if sent else folder, some.paths
            listing.last = sent + some.samples == len(paths)
            listing.sizes.extend(some.sizes)
            listing.modified_ns.extend(some.modified_ns)
            listing.files.extend(some.files)
            listing.offsets.extend(some.offsets)
            listing.lengths.extend(some.lengths)
            listing.labels.extend(some.labels)
            yield message, some.samples
            sent += some.samples
        return
    for part in parts(paths, labels, folder, most_bytes):
        message = _schema.ClientMessage()
        listing = message.list_files
        listing.dataset_id, listing.folder, listing.paths = number, b"" if sent else folder, part.paths
        listing.last = sent + part.files == len(paths)
        listing.labels.extend(part.labels)
        yield message, part.files
        sent += part.files
