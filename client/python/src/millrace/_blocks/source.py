"""What is read in blocks: sources whose images have no place of their own in a file that the daemon could read.

A row group of a compressed Parquet file is one block; so is a compressed tar shard, or a piece of a file behind a URL. A loader takes a
``BlockSource`` as its dataset: it reads blocks ahead by threads, mixes a window of them, and sends the images as it does those of
``Encoded``. Sample i of the source is the i-th row, counted through all blocks in their order.
"""

from __future__ import annotations

import abc
import threading
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from millrace._loader.source_rows import Unread
from millrace.encoded import Row


class BlockSource(abc.ABC):
    """A source in blocks. Immutable once it is made; ``read`` is called by several threads at once."""

    classes: tuple[str, ...] = ()
    """The labels' names, in the order of the labels; none: unknown."""
    columns: tuple[str, ...] = ()
    """What follows the image in a row: the names of ``Row.values``; ``"label"`` is the label."""
    at_once: int = 0
    """Blocks that a loader reads at the same time; 0: as many as are good for what a processor unpacks."""

    @property
    @abc.abstractmethod
    def sizes(self) -> NDArray[np.int64]:
        """The samples of each block, [B] int64. Known before a block is read: the order of an epoch is made of it."""

    @property
    @abc.abstractmethod
    def block_bytes(self) -> NDArray[np.int64]:
        """The memory that each block takes once it is read, about, [B] int64. What bounds the window; part of the order."""

    @property
    @abc.abstractmethod
    def fingerprint(self) -> str:
        """Of what is in it: other files, or other content of them, give another. A loader's state goes on with the same alone."""

    @abc.abstractmethod
    def name_of(self, block: int) -> str:
        """The block's name for people: ``train-0.parquet, row group 3``."""

    @abc.abstractmethod
    def read(self, block: int, stop: threading.Event | None = None) -> Sequence[Row]:
        """All rows of the block, ``sizes[block]`` of them; values as ``columns`` names them. A row may share the block's memory.

        Args:
            block: its number.
            stop: is set when nobody wants it any more: what waits for long may give up then, with an OSError.

        Raises:
            OSError: the block cannot be read.
            ValueError: it is damaged, or is no more what it was when the source was made. With both the block's samples count as bad
                images, see ``on_error``. Any other exception ends the loop.
        """

    copy_folder: str = ""
    """Where files lie that are handed over as ``Part``; the daemon has to read them. Empty: there are none."""

    def scattered(self, epoch: int) -> bool:
        """Whether that epoch is shuffled sample by sample, and read so. The same however far the source has come in it."""
        return False

    def rows(self, ids: NDArray[np.int64], stop: threading.Event | None = None) -> Sequence[Row | Unread]:
        """Rows by their numbers, for epochs that are ``scattered``; ``Unread``: what it lies in cannot be read.

        Args:
            ids: int64 [n].
            stop: as of ``read``.

        Raises:
            Exception: it ends the loop.
        """
        raise NotImplementedError

    def __len__(self) -> int:
        return int(self.sizes.sum())

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self)} samples in {len(self.sizes)} blocks>"
