"""Batches as NumPy arrays.

>>> for images, labels in millrace.numpy.Loader("/data/train", millrace.Recipe.train(224), batch_size=64, shuffle=True):
...     ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from millrace._core.batch import Batch
from millrace._data.columns import Labels
from millrace._data.dataset_argument import AnyDataset
from millrace._loader.loader import BaseLoader
from millrace._loader.options import LoaderOptions, documented
from millrace._memory.tensor import Tensor
from millrace._transforms.transform import AnyTransform

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["Loader"]


class Loader(BaseLoader[tuple[NDArray[Any], Any]]):
    """Yields ``(images, labels)``: images N x C x H x W (or as the recipe says), in shared memory; labels int64 [N].

    Labels that are other numbers or arrays are arrays [N, ...] of their type, texts and other values lists; with several columns they are a
    dictionary of these (``millrace.Samples``). Of a recipe with views (``Recipe.of_views``), in the place of the images a list of arrays.
    Of ``millrace.Pairs`` masks are in the place of labels: uint8 N x H x W, in shared memory.

    bfloat16 needs the package ``ml_dtypes``.

    **Ranks** are found when the loader is first used, and anew for each loop: as given, else $RANK and $WORLD_SIZE.
    """

    @documented
    def __init__(
        self,
        dataset: AnyDataset | None = None,
        transform: AnyTransform | None = None,
        **options: Unpack[LoaderOptions],
    ) -> None:
        """Describes the loader; connects later.

        Args:
            dataset: a folder whose subfolders are the classes, beneath one of the daemon's roots; a manifest (.csv, .tsv, .jsonl); a list
                of files with labels (``millrace.Samples``); torchvision's ``ImageFolder``, and PyTorch's ``Subset`` and ``ConcatDataset``
                of these, whose transform, target_transform and samples count; a dataset of Hugging Face's or webdataset's, or
                ``millrace.Encoded``; images and their masks (``millrace.Pairs``).
            transform: what to make of each image, of a fixed size: a ``Recipe``, or transforms of torchvision's, timm's or
                Albumentations', as ``millrace.torch.from_torchvision``, ... translate them; None: the dataset's own, else
                ``Recipe.evaluate(256, 224)``.
            options: see ``Options``.

        Raises:
            InvalidRequest: an argument is wrong, or the dataset does what the daemon cannot; says which and what to do.
            Unsupported: a transform of torchvision's is not something that the daemon does; says which.
        """
        super().__init__(dataset, transform, **options)

    def _convert(self, batch: Batch, labels: Labels) -> tuple[NDArray[Any], Any]:
        found = batch.labels if labels is None else labels.numpy() if isinstance(labels, Tensor) else labels
        if self.recipe.views:
            return [view.numpy() for view in batch.views], found  # type: ignore[return-value]
        return batch.images.numpy(), found
