"""Loaders for Keras 3, whose ``fit``, ``evaluate`` and ``predict`` take no iterable of others; with PyTorch or JAX as its backend.

>>> train = millrace.keras.Dataset(millrace.torch.Loader("/data/train", millrace.Recipe.train(224), batch_size=64, shuffle=True))
>>> model.fit(train, epochs=10)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import keras

from millrace._loader.loader import BaseLoader
from millrace._loader.options import called
from millrace.errors import FailedPrecondition, InvalidRequest, Unsupported

__all__ = ["Dataset"]

_BACKENDS = ("torch", "jax", "numpy")


class Dataset(keras.utils.PyDataset):  # type: ignore[misc]
    """A loader as a ``keras.utils.PyDataset`` of ``len(loader)`` batches.

    Each pass of Keras over it is one epoch of the loader's: the next one, or the same again if Keras ended a pass early, as when it takes
    a first batch to build the model. With ``fit(steps_per_epoch=n)`` Keras goes on through an epoch by n batches, and so does this. After a
    state within an epoch was loaded, Keras's first pass ends as many batches within the loader's next epoch.

    The order is the loader's: ``fit(shuffle=...)`` has no effect, and an index means the next batch, whichever it is. ``class_weight``
    works; Keras refuses ``y`` and ``sample_weight``. Layers for pictures want N x H x W x C unless
    ``keras.config.set_image_data_format("channels_first")`` has been called; the loaders of NumPy and JAX go by a recipe's ``layout``.

    Belongs to one thread.
    """

    def __init__(self, loader: BaseLoader[Any]) -> None:
        """Of a loader of PyTorch, JAX or NumPy.

        Raises:
            InvalidRequest: it is none.
            Unsupported: Keras has another backend.
        """
        if not isinstance(loader, BaseLoader):
            raise InvalidRequest(f"millrace.keras.Dataset: takes a loader, millrace.torch.Loader for example, not {type(loader).__name__}")
        if keras.backend.backend() not in _BACKENDS:
            raise Unsupported(
                f"millrace.keras.Dataset: Keras's backend is {keras.backend.backend()}: choose torch or jax, in KERAS_BACKEND"
            )
        super().__init__()
        self.loader = loader
        """The loader: for its state, its classes, its last batch."""
        self._loop: Iterator[Any] | None = None
        self._taken = 0  # batches in this pass
        self._asked = self._begun = False  # since the last batch, by what Keras does before a pass

    @property
    def num_batches(self) -> int:
        """Batches in a pass. Keras asks before each; programs take ``len()``."""
        self._asked = True
        return len(self)

    def __len__(self) -> int:
        return len(self.loader)

    def on_epoch_begin(self) -> None:
        """Keras's, before it asks for batches, whether a pass begins or goes on."""
        self._begun = True

    def __getitem__(self, index: int) -> Any:
        if self._taken == len(self):
            self._taken = 0
        elif self._asked and self._begun and self._taken:  # the pass before was ended early
            self._taken, self._loop = 0, None
            self.loader._repeat()
        self._asked = self._begun = False
        self._taken += 1
        return self._next()

    def _next(self) -> Any:
        for _ in range(2):
            if self._loop is None:
                self._loop = iter(self.loader)
            try:
                return next(self._loop)
            except StopIteration:
                self._loop = None
                if self.loader._emptied and self._taken > 1:
                    raise FailedPrecondition(
                        f"{called(type(self))}: the loop had {self.loader._emptied} batches less than Keras expects, for all their images "
                        'were bad and left out (on_error="skip"): choose on_error="substitute" or "zero", or mend the files'
                    ) from None
        raise FailedPrecondition(
            f"{called(type(self))}: the loader has no batches: its dataset is smaller than a batch, and drop_last is set"
        )

    def __repr__(self) -> str:
        return f"<{called(type(self))} of {self.loader!r}>"
