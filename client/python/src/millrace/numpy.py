"""Batches as NumPy arrays.

>>> for images, labels in millrace.numpy.Loader("/data/train", batch_size=64, shuffle=True):
...     ...
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from millrace._loader import BaseLoader
from millrace.batch import Batch


class Loader(BaseLoader[tuple[NDArray[Any], NDArray[Any]]]):
    """Yields ``(images, labels)``: images N x C x H x W (or as the recipe says), read-only in shared memory; labels int64 [N].

    bfloat16 needs the package ``ml_dtypes``. All else as ``BaseLoader``.
    """

    def _convert(self, batch: Batch) -> tuple[NDArray[Any], NDArray[Any]]:
        return batch.images.numpy(), batch.labels
