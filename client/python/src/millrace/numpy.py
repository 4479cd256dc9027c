"""Batches as NumPy arrays.

>>> for images, labels in millrace.numpy.Loader("/data/train", millrace.Recipe.train(224), batch_size=64, shuffle=True):
...     ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from millrace._image_folder import FolderDataset
from millrace._loader import BaseLoader
from millrace._options import LoaderOptions, documented
from millrace._transform import AnyTransform
from millrace.batch import Batch
from millrace.samples import AnyPath

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["Loader"]


class Loader(BaseLoader[tuple[NDArray[Any], NDArray[np.int64]]]):
    """Yields ``(images, labels)``: images N x C x H x W (or as the recipe says), in shared memory; labels int64 [N].

    bfloat16 needs the package ``ml_dtypes``.

    **Ranks** are found when the loader is first used, and anew for each loop: as given, else $RANK and $WORLD_SIZE.
    """

    @documented
    def __init__(
        self,
        dataset: AnyPath | FolderDataset,
        transform: AnyTransform | None = None,
        **options: Unpack[LoaderOptions],
    ) -> None:
        """Describes the loader; connects later.

        Args:
            dataset: a folder whose subfolders are the classes, beneath one of the daemon's roots; or torchvision's ``ImageFolder``, whose
                transform, target_transform and samples count.
            transform: what to make of each image, of a fixed size: a ``Recipe``, or torchvision's transforms; None: the ``ImageFolder``'s
                own, else ``Recipe.evaluate(256, 224)``.
            options: see ``Options``.

        Raises:
            InvalidRequest: an argument is wrong, or the ``ImageFolder`` does what the daemon cannot; says which and what to do.
            Unsupported: a transform of torchvision's is not something that the daemon does; says which.
        """
        super().__init__(dataset, transform, **options)

    def _convert(self, batch: Batch) -> tuple[NDArray[Any], NDArray[np.int64]]:
        return batch.images.numpy(), self._labels_of(batch)
