"""Batches as JAX arrays.

>>> for images, labels in millrace.jax.Loader("/data/train", millrace.Recipe.train(224), shuffle=True, dtype="bfloat16"):
...     ...

Every process makes its own and reads its share: ``jax.process_index()`` of ``jax.process_count()``.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from numpy.typing import NDArray

from millrace._image_folder import FolderDataset
from millrace._loader import BaseLoader
from millrace._options import LoaderOptions, documented
from millrace._ranks import Ranks
from millrace._transform import AnyTransform
from millrace.batch import Batch
from millrace.samples import AnyPath

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["Loader"]


class Loader(BaseLoader[tuple[jax.Array, jax.Array]]):
    """Yields ``(images, labels)``: ``jax.Array`` N x C x H x W (or as the recipe says), and int32 [N].

    On the CPU the images alias the slot's memory, which JAX does not write to; donating them to a jitted function is not allowed. On
    another device they are copied there, and the slot is given back when the copy has ended.

    **Ranks** are found when the loader is first used, and anew for each loop: as given, else ``jax.process_index()`` of
    ``jax.process_count()`` if there are several, else $RANK and $WORLD_SIZE. Asking JAX initialises its devices: as every use of JAX, the
    loader's first comes after ``jax.distributed.initialize()``.
    """

    _moves = True
    _label_type = np.int32

    @documented
    def __init__(
        self,
        dataset: AnyPath | FolderDataset,
        transform: AnyTransform | None = None,
        *,
        device: jax.Device | jax.sharding.Sharding | None = None,
        **options: Unpack[LoaderOptions],
    ) -> None:
        """Describes the loader; connects later.

        Args:
            dataset: a folder whose subfolders are the classes, beneath one of the daemon's roots; or torchvision's ``ImageFolder``, whose
                transform, target_transform and samples count.
            transform: what to make of each image, of a fixed size: a ``Recipe``, or torchvision's transforms; None: the ``ImageFolder``'s
                own, else ``Recipe.evaluate(256, 224)``.
            device: where the arrays go; None: JAX's default.
            options: see ``Options``.

        Raises:
            InvalidRequest: an argument is wrong, or the ``ImageFolder`` does what the daemon cannot; says which and what to do.
            Unsupported: a transform of torchvision's is not something that the daemon does; says which.
        """
        super().__init__(dataset, transform, **options)
        self._device = device

    def _frameworks_ranks(self) -> Ranks | None:
        processes = jax.process_count()
        return Ranks(jax.process_index(), processes) if processes > 1 else None

    def _convert(self, batch: Batch) -> tuple[Any, Any]:
        labels: NDArray[np.int32] = self._labels_of(batch).astype(np.int32)
        return batch.images.numpy(), labels

    def _moved(self, item: tuple[Any, Any]) -> tuple[jax.Array, jax.Array]:
        images, labels = item
        return jax.device_put(images, self._device, may_alias=True), jax.device_put(labels, self._device)

    def _reclaim(self) -> None:
        # JAX lets go of host memory when it is called next, or from the hook that it puts into the garbage collector.
        gc.collect(0)
