"""A source in blocks as a loader's dataset: its order, and an epoch of it."""

from __future__ import annotations

import dataclasses
import functools
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from millrace._blocks.order import BlockOrder, block_order, listed_order
from millrace._blocks.reader import BlockReader, rows_in_blocks, rows_scattered
from millrace._blocks.source import BlockSource
from millrace._blocks.window import WINDOW, usual_window, window_of_source
from millrace._data.dataset_argument import Given, Listed
from millrace._loader.order import Batches, OrderState
from millrace._loader.permutation import Permuted, permutation
from millrace._loader.ranks import Ranks
from millrace._loader.source_rows import RowBatch
from millrace._wire.messages import path_text
from millrace.errors import InvalidRequest, PermissionDenied

if TYPE_CHECKING:
    from millrace._core.session import Session
    from millrace._loader.options import Options
    from millrace.recipe import Recipe

Rows = Callable[[Iterable[tuple[NDArray[np.int64], NDArray[np.uint64] | None]]], Iterator[RowBatch]]


class GivenBlocks(Given):
    """A source in blocks."""

    def __init__(self, source: BlockSource, shown: Any = None) -> None:
        """Reads nothing.

        Args:
            source: the blocks.
            shown: what ``loader.dataset`` is; None: the source.
        """
        self.source = source
        self.shown = source if shown is None else shown
        self.path, self.read_by = repr(self.shown), "the loader, in blocks"

    def count(self) -> int:
        """Its samples."""
        return len(self.source)

    def check(self, recipe: Recipe, options: Options) -> None:
        """Raises InvalidRequest: an order that only single samples have."""
        wrong = [name for name in ("sampler", "batch_sampler") if getattr(options, name) is not None]
        if wrong or options.shuffle is True:
            raise InvalidRequest(
                f"loader: {', '.join(wrong) or 'shuffle=True'} cannot be had of a source that is read in blocks ({self.path}), for which "
                'each image would be a block read: take shuffle="blocks"; with a window= of twice its bytes it mixes all samples'
            )

    def listed(self, session: Session, extensions: Iterable[str] | None, label_type: DTypeLike, timeout: float) -> Listed:
        """Nothing is asked of the daemon but whether it reads the source's copies. Raises PermissionDenied: it does not."""
        if extensions is not None:
            raise InvalidRequest("loader: extensions= is for folders and lists of files; what the source gives is taken as it is")
        folder = self.source.copy_folder
        if folder:
            try:
                session.dataset_of([os.path.join(folder, "any")], timeout=timeout).close()
            except PermissionDenied as why:
                raise PermissionDenied(f"copy_to: the daemon does not read {path_text(folder)}, where copies are to be: {why}") from why
        return Listed(self.count(), self.source.classes, None, self.shown, None)


@dataclass(frozen=True)
class PermutedInBlocks(Permuted):
    """The order of a source in blocks. Immutable."""

    window: int = 0
    """Bytes in memory at the most; 0: those of a state that is loaded, else what there is, or ``WINDOW`` of each of several ranks."""

    def begin_blocks(self, source: BlockSource, epoch: int, resumed: OrderState | None, ranks: Ranks) -> tuple[Batches, BlockEpoch]:
        """As ``begin``, and what the rows are made by.

        Raises:
            FailedPrecondition: ``resumed`` is of another order; says in what.
            InvalidRequest: no block fits into the window; or drop_last leaves nothing.
        """
        if self.shuffle and source.scattered(epoch):
            by_number = dataclasses.replace(self, window=0, fingerprint=f"{self.fingerprint}, image by image")
            scattered = BlockOrder(permutation(len(source), self.seed, epoch), np.zeros(0, np.int64))
            return by_number.begin_order(scattered.samples, epoch, resumed, ranks), BlockEpoch(source, scattered, by_number, ranks, True)
        then = 0 if resumed is None else resumed.begun.get("window")
        usual = usual_window if ranks.world_size == 1 else lambda: WINDOW  # memory would give each rank another order
        window = self.window or (then if isinstance(then, int) and then > 0 else usual())
        now = dataclasses.replace(self, window=window)
        if self.shuffle:
            order = block_order(source.sizes, window_of_source(source, window), self.seed, epoch)
        else:
            order = listed_order(source.sizes)
        batches = now.begin_order(order.samples, epoch, resumed, ranks)
        return batches, BlockEpoch(source, order, now, ranks)


@dataclass(frozen=True)
class BlockEpoch:
    """An epoch of a source in blocks. Immutable."""

    source: BlockSource
    order: BlockOrder
    how: PermutedInBlocks
    ranks: Ranks
    scattered: bool = False
    """Shuffled image by image, as ``Permuted`` does it."""

    def rows(self, taken: int, blanked: bool, stop: threading.Event) -> Rows:
        """For ``Feed``: the rows of what it asks for, after so many batches of the rank's.

        Args:
            taken: batches.
            blanked: see ``rows_in_blocks``.
            stop: once it is set, nobody wants them any more.
        """
        if self.scattered:
            return functools.partial(rows_scattered, self.source, blanked, stop)
        mine = self.how.mine(self.order.samples, self.ranks)
        uneven = len(self.order.samples) % self.ranks.world_size
        all_mine = -(-len(self.order.samples) // self.ranks.world_size)
        wrapped = self.how.shard_tail == "pad" and 0 < uneven <= self.ranks.rank and len(mine) == all_mine

        def made(asked: Iterable[tuple[NDArray[np.int64], NDArray[np.uint64] | None]]) -> Iterator[RowBatch]:
            reader = BlockReader(self.source, self.order, mine, taken * self.how.batch_size, int(wrapped), self.how.window, stop)
            yield from rows_in_blocks(reader, self.source.columns, blanked, asked)

        return made

    def names(self, values: int) -> tuple[str, ...]:
        """What so many values of a row are called."""
        return self.source.columns[:values]


def order_in_blocks(options: Options, source: BlockSource) -> PermutedInBlocks:
    """The order that a loader draws of its seed."""
    return PermutedInBlocks(
        options.seed,
        bool(options.shuffle),
        options.batch_size,
        options.drop_last,
        options.shard_tail,
        source.fingerprint,
        options.window or 0,
    )
