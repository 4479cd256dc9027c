"""What a loader says of the dataset that it reads."""

from __future__ import annotations

from typing import Any

from millrace._data.dataset_argument import Given, Listed


class ReadsDataset:
    """Base of loaders."""

    _data: Given

    def _opened(self) -> Listed:
        """What the daemon knows of the dataset; asked for where it is not known yet."""
        raise NotImplementedError

    @property
    def dataset(self) -> Any:
        """The dataset object that was given; of a list or a manifest its ``Samples``; of a folder the daemon's list of it.

        ``len()`` is the number of all samples, if it has one.
        """
        return self._data.shown if self._data.shown is not None else self._opened().shown

    @property
    def read_by(self) -> str:
        """Who reads the images: ``the daemon``, of a table ``the daemon, as parts of 3 files``; or ``the loader, row by row`` and why."""
        self._opened()
        return self._data.read_by

    @property
    def classes(self) -> tuple[str, ...]:
        """The labels' names, in the order of the labels, as the dataset has them; empty where it has none."""
        return self._opened().classes
