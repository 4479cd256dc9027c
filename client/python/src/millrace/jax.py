"""Batches as JAX arrays.

>>> for images, labels in millrace.jax.Loader("/data/train", millrace.Recipe.train(224), shuffle=True, dtype="bfloat16"):
...     ...

Every process makes its own and reads its share: ``jax.process_index()`` of ``jax.process_count()``.
"""

from __future__ import annotations

import gc
from collections import deque
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from millrace._core.batch import Batch
from millrace._core.epoch import Epoch
from millrace._core.session import HOST
from millrace._data.columns import Labels, each_column
from millrace._data.dataset_argument import AnyDataset
from millrace._frameworks.global_arrays import GlobalArrays, sharding_of_axes
from millrace._frameworks.same_gpu import memory_on
from millrace._loader.feed import Feed
from millrace._loader.loader import BaseLoader
from millrace._loader.options import LoaderOptions, documented
from millrace._loader.progress import Progress
from millrace._loader.ranks import Ranks
from millrace._memory.device_tensor import DeviceTensor
from millrace._memory.tensor import Tensor
from millrace._transforms.transform import AnyTransform
from millrace.client import Client
from millrace.pairs import Pairs

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["Loader"]


class Loader(BaseLoader[tuple[jax.Array, Any]]):
    """Yields ``(images, labels)``: ``jax.Array`` N x C x H x W (or as the recipe says), and int32 [N].

    Labels that are other numbers or arrays are arrays [N, ...] of the type that JAX has for theirs, texts and other values lists; with
    several columns they are a dictionary of these (``millrace.Samples``). Of a recipe with views (``Recipe.of_views``), in the place of the
    images a list of arrays. Of ``millrace.Pairs`` masks are in the place of labels: uint8 N x H x W.

    **On the CPU** images and masks alias the slot's memory, which JAX does not write to; donating them to a jitted function is not allowed.

    **On a GPU** that the daemon has as well, the images are in its memory already. They are copied there once, into JAX's own memory, so
    they may be kept and donated; the slot is given back when the copy has ended. In the slot itself they could not stay: the stream that
    JAX names for DLPack is not the one on which it computes, and it may let go of an array when what uses it is queued, so nobody could
    say when the slot is free.

    On another device, on several (a ``Sharding``), or where the GPU's memory cannot be had (a warning says why), they are copied there from
    the host's memory, and the slot is given back when the copy has ended. So are images and masks of ``Pairs``, on whichever GPU.

    **Several processes**: with a ``NamedSharding`` that spans them, the arrays are global ones: ``batch_size`` is one process's, the global
    batch has as many times that as there are processes, and each fills the part that its devices have. What would give processes batches of
    different sizes is refused.

    **Ranks** are found when the loader is first used, and anew for each loop: as given, else ``jax.process_index()`` of
    ``jax.process_count()`` if there are several, else $RANK and $WORLD_SIZE. Asking JAX initialises its devices: as every use of JAX, the
    loader's first comes after ``jax.distributed.initialize()``.
    """

    _moves = True
    _label_type = np.int32

    @documented
    def __init__(
        self,
        dataset: AnyDataset | None = None,
        transform: AnyTransform | None = None,
        *,
        device: jax.Device | jax.sharding.Sharding | None = None,
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
            device: where the arrays go: a device, or a ``Sharding``, of which labels follow the first axis, and masks all but the
                channels'; None: JAX's default.
            options: see ``Options``.

        Raises:
            InvalidRequest: an argument is wrong, or the dataset does what the daemon cannot; says which and what to do.
            Unsupported: a transform of torchvision's is not something that the daemon does; says which.
        """
        super().__init__(dataset, transform, **options)
        self._device = device
        spans = isinstance(device, jax.sharding.Sharding) and not device.is_fully_addressable
        axes = (0,) if not isinstance(dataset, Pairs) else (0, 1, 2) if self.recipe.layout == "NHWC" else (0, 2, 3)
        self._labels_device = sharding_of_axes(device, axes)
        self._global = GlobalArrays(device, self._labels_device, self._options) if spans else None
        self._copies: deque[tuple[Any, Any]] = deque()  # (arrays ready with them, images in the slot) of copies that may be under way

    def _memory(self, client: Client) -> str:
        gpu = _cuda_device(self._device)
        return memory_on(client, gpu.local_hardware_id) if gpu is not None else HOST

    def _frameworks_ranks(self) -> Ranks | None:
        processes = jax.process_count()
        return Ranks(jax.process_index(), processes) if processes > 1 else None

    def _start(self, progress: Progress) -> Epoch | Feed:
        if self._global is not None:
            self._global.check(self._ranks(), self.samples, self.drop_last)
        return super()._start(progress)

    def _convert(self, batch: Batch, labels: Labels) -> tuple[Any, Any]:
        found = each_column(batch.labels if labels is None else labels, _column)
        if self.recipe.views:
            return [_converted(view) for view in batch.views], found
        return _converted(batch.images), found

    def _moved(self, item: tuple[Any, Any]) -> tuple[Any, Any]:
        images, labels = item
        there = each_column(labels, self._put if self._global is None else self._global.labels)
        if not isinstance(images, list):
            return self._there([images])[0], there
        return self._there(images), there

    def _there(self, views: list[Any]) -> list[jax.Array]:
        if self._global is not None:
            return [self._global.images(view.numpy() if isinstance(view, DeviceTensor) else view) for view in views]
        if not isinstance(views[0], DeviceTensor):
            return [jax.device_put(view, self._device, may_alias=True) for view in views]
        on_device = self._copied(views) if self._has(views[0]) else [view.numpy() for view in views]
        return [jax.device_put(view, self._device) for view in on_device]

    def _put(self, column: Any) -> Any:
        return jax.device_put(column, self._labels_device) if isinstance(column, np.ndarray) else column

    def _has(self, images: DeviceTensor) -> bool:
        """Whether they lie on the GPU to which they go."""
        gpu = _cuda_device(self._device)
        return gpu is not None and images.__dlpack_device__()[1] == gpu.local_hardware_id

    def _copied(self, views: list[Tensor]) -> list[jax.Array]:
        """The images in JAX's memory, on their device; until the copies have ended they keep their slot."""
        there = [jax.dlpack.from_dlpack(view) for view in views]
        copies, ready = zip(*map(_copy, there), strict=True)
        self._copies.append((ready, there))
        return list(copies)

    def _reclaim(self) -> None:
        while self._copies and (len(self._copies) > self._options.slots - 2 or all(copy.is_ready() for copy in self._copies[0][0])):
            jax.block_until_ready(self._copies.popleft()[0])
        # JAX lets go of host memory when it is called next, or from the hook that it puts into the garbage collector.
        gc.collect(0)

    def close(self) -> None:
        """Ends the session with the daemon, after copies that are under way; the next use connects again. Idempotent."""
        while self._copies:
            jax.block_until_ready(self._copies.popleft()[0])
        super().close()

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_copies": deque()}


def _converted(images: Tensor) -> Any:
    return images if isinstance(images, DeviceTensor) else images.numpy()  # of a GPU's memory NumPy's would be a copy


def _column(column: Any) -> Any:
    if isinstance(column, Tensor):  # masks
        return column.numpy()
    return column.astype(np.int32) if isinstance(column, np.ndarray) and column.dtype == np.int64 else column


@jax.jit  # type: ignore[untyped-decorator]
def _copy(images: jax.Array) -> tuple[jax.Array, jax.Array]:
    """A copy, and an array that is ready when the copy is: the program that gets the copy may donate it, and then nobody can ask."""
    return jax.numpy.copy(images), images.ravel()[:1]


def _cuda_device(device: jax.Device | jax.sharding.Sharding | None) -> jax.Device | None:
    """The GPU of NVIDIA's, in this process, to which arrays go that are put there; None: another device, or several."""
    if isinstance(device, jax.sharding.Sharding):
        if len(device.device_set) > 1 or device.memory_kind not in (None, "device"):
            return None
        (device,) = device.device_set
    elif device is None:
        (device,) = jax.device_put(0).devices()
    here = device.platform in ("gpu", "cuda") and device.process_index == jax.process_index()
    return device if here and "cuda" in device.client.platform_version else None
