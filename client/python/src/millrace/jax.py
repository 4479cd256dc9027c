"""Batches as JAX arrays.

>>> for images, labels in millrace.jax.Loader("/data/train", batch_size=64, shuffle=True, dtype="bfloat16"):
...     ...
"""

from __future__ import annotations

import gc
from typing import Any

import jax

from millrace._loader import BaseLoader
from millrace.batch import Batch


class Loader(BaseLoader[tuple[Any, Any]]):
    """Yields ``(images, labels)``: ``jax.Array`` N x C x H x W (or as the recipe says), and int32 [N].

    On the CPU the images alias the slot's memory, which JAX does not write to; donating them to a jitted function is not allowed. On
    another device they are copied there, and the slot is given back when the copy has ended.
    """

    _moves = True

    def __init__(self, dataset: Any, transform: Any = None, *, device: Any = None, **options: Any) -> None:
        """As ``BaseLoader``.

        Args:
            dataset: see there.
            transform: see there.
            device: a ``jax.Device`` or ``Sharding``; None: JAX's default.
            options: see there.
        """
        super().__init__(dataset, transform, **options)
        self._device = device

    def _convert(self, batch: Batch) -> tuple[Any, Any]:
        return batch.images.numpy(), batch.labels.astype("int32")

    def _moved(self, item: tuple[Any, Any]) -> tuple[Any, Any]:
        images, labels = item
        return jax.device_put(images, self._device, may_alias=True), jax.device_put(labels, self._device)

    def _reclaim(self) -> None:
        # JAX lets go of host memory when it is called next, or from the hook that it puts into the garbage collector.
        gc.collect(0)
