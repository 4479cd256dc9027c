"""The bad images that a loader meets: counted, and each file warned of once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from millrace._core.batch import Batch
from millrace._data.sample_copies import SAMPLE_MASK
from millrace._loader.source_rows import Unread
from millrace._process.warn import warn
from millrace.errors import SampleError

_TOLD_MOST = 20  # files; then one line that the others are counted


class BadImageWarning(UserWarning):
    """A file of an epoch is no image, or a broken one: its path and the reason. The epoch goes on, without it or with another image."""


@dataclass(frozen=True)
class UnreadImage(SampleError):
    """An image of a block that cannot be read. A value."""

    block: Unread | None = None


def with_blocks(errors: Iterable[SampleError], unread: Mapping[int, Unread]) -> tuple[SampleError, ...]:
    """The errors; those of blocks that cannot be read say so. ``unread``: these, by position in the batch."""
    return tuple(
        UnreadImage(error.index, error.sample_id, block.name, error.code, f"the block cannot be read: {block.why}", None, block)
        if (block := unread.get(error.index)) is not None
        else error
        for error in errors
    )


class BadImages:
    """Of the batches that a loop got, since the loader was made. Belongs to the loader's thread."""

    def __init__(self) -> None:
        self.count = 0
        self._told: set[str] = set()

    def note(self, batch: Batch) -> None:
        """Counts the batch's bad images, and warns of the files among them that it has not warned of."""
        self.count += batch.bad
        if len(self._told) > _TOLD_MOST:
            return
        for error in batch.errors:
            block = error.block if isinstance(error, UnreadImage) else None
            name = error.source if error.path or block else f"sample {error.sample_id & SAMPLE_MASK}"
            if name in self._told:
                continue
            self._told.add(name)  # first: warnings may be errors
            if len(self._told) > _TOLD_MOST:
                others = "the others are counted in loader.bad and listed in loader.batch.errors"
                warn(f"more than {_TOLD_MOST} files are bad: {others}", BadImageWarning)
                return
            message = f"{name}: {error.message}"
            if block is not None:
                message = f"loader: {name} cannot be read, so its {block.samples} samples are bad images: {block.why}"
            warn(message, BadImageWarning)
