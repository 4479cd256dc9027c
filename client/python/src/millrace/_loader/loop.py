"""One loop over a loader."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator
from inspect import GEN_CLOSED, getgeneratorstate
from typing import TypeVar

from millrace._process import exit as _exit
from millrace.errors import FailedPrecondition

Item = TypeVar("Item")


class Loop(Iterator[Item]):
    """An iterator over what ``batches`` yields, until another loop takes its place. Belongs to the loop's thread."""

    def __init__(self, batches: Generator[Item, None, None]) -> None:
        self._batches = batches
        self._displaced = False
        _exit.register_open(self)

    def __next__(self) -> Item:
        """The next one.

        Raises:
            FailedPrecondition: another loop ended this one before its end.
        """
        if self._displaced:
            raise FailedPrecondition(
                "loader: another loop over this loader has begun, which ended this one; make a second loader for loops side by side"
            )
        return next(self._batches)

    def displace(self) -> None:
        """Ends it, for another loop; it says so if it is asked for more. Nothing changes for one that has ended."""
        ended = getgeneratorstate(self._batches) == GEN_CLOSED
        self._batches.close()
        self._displaced = self._displaced or not ended

    def close(self) -> None:
        """Ends it, as leaving a loop early does."""
        self._batches.close()

    def end_at_exit(self) -> None:
        """As ``close``, unless a thread is in it, which does not go on."""
        with contextlib.suppress(ValueError):
            self._batches.close()
