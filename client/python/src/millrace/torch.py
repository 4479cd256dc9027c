"""Batches as PyTorch tensors, in the place of ``torch.utils.data.DataLoader``.

    >>> loader = millrace.torch.Loader("/data/train", millrace.torch.from_torchvision(transform), batch_size=256, shuffle=True)
    >>> for images, labels in loader:
    ...     ...

Every rank makes its own; rank and world size come from ``torch.distributed`` or from torchrun's environment, when the loader is used.
"""

from __future__ import annotations

import contextlib
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.utils.data import SequentialSampler

from millrace._core.batch import Batch
from millrace._core.epoch import Epoch
from millrace._core.session import HOST
from millrace._data.columns import Labels, each_column
from millrace._data.dataset_argument import AnyDataset, Listed
from millrace._frameworks.mixing import CutMix, Mixed, MixUp
from millrace._frameworks.rest_of_transform import Rest as Rest
from millrace._frameworks.same_gpu import memory_on
from millrace._loader.feed import Feed
from millrace._loader.loader import BaseLoader
from millrace._loader.options import LoaderOptions, called, documented
from millrace._loader.progress import Progress
from millrace._loader.ranks import Ranks
from millrace._memory.device_tensor import DeviceTensor
from millrace._memory.lease import Lease
from millrace._memory.tensor import Tensor
from millrace._process.warn import warn
from millrace._public import found_at
from millrace._transforms.albumentations import from_albumentations
from millrace._transforms.timm import from_timm
from millrace._transforms.torchvision import from_torchvision
from millrace._transforms.transform import AnyTransform, split
from millrace.client import Client
from millrace.errors import InvalidRequest, Unsupported

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["CutMix", "Loader", "MixUp", "Mixed", "Rest", "from_albumentations", "from_timm", "from_torchvision", "split"]
found_at("millrace.torch", CutMix, MixUp, Mixed, Rest)

_REGISTER_READ_ONLY = 8  # cudaHostRegisterReadOnly


class Loader(BaseLoader[tuple[torch.Tensor, Any]]):
    """Yields ``(images, labels)``: images N x 3 x H x W of ``dtype`` on ``device``, labels int64 [N] there.

    Labels that are other numbers or arrays are tensors [N, ...] of their type, texts and other values lists; with several columns they are
    a dictionary of these (``millrace.Samples``). Of ``millrace.Pairs`` masks are in their place: uint8 N x H x W on ``device``.

    Of a recipe with views (``Recipe.of_views``), in the place of the images a list of tensors, one for each view, as DataLoader gives it of
    a transform that makes a list of crops; all that is said of the images holds for each.

    Iterable, ``len``, ``set_epoch``, ``state_dict`` and ``load_state_dict``: training loops written for DataLoader run unchanged. Ids,
    boxes, errors, ... are in ``loader.batch``, the ``Batch`` of the loop's current turn; None outside of the loop.

    **On the CPU** the images are the slot's own memory, copy on write: an operation in place (``images.div_(255)``) changes this batch and
    nothing else. It copies what it writes, so asking for ``dtype=torch.float32`` is cheaper. Keep a batch with ``images.clone()``. With
    ``writable=False`` the memory is read-only; PyTorch has no such tensors, and an operation in place ends the process with SIGSEGV.

    **On a GPU** that the daemon has as well, the images are in its memory already, and nothing is copied: an operation in place changes
    this batch and nothing else, and the slot goes back when the stream that was current when the loop asked for the batch has done what
    was queued there before the batch was let go. Work on other streams: let that one wait for it (``record_stream`` does nothing for this
    memory). A loop that keeps more batches than ``slots - 1`` gets copies, on the GPU. With ``device="cuda"`` it is the GPU that is the
    current one when the loop begins.

    On another GPU, or where its memory cannot be had (a warning says why), each slot of the session's shared memory is page-locked once
    (``cudaHostRegister``) and each batch is copied from there without an intermediate copy, on the current stream, not waited for
    (``non_blocking``); the slot goes back when its copy has ended. Where the driver cannot page-lock read-only memory, or with
    ``pin_memory=False``, it is an ordinary copy.

    **Ranks** are found when the loader is first used, and anew for each loop: as given, else those of ``torch.distributed``'s default group
    if it is initialised, else $RANK and $WORLD_SIZE. So it may be made before Lightning's ``fit`` or ``torch.multiprocessing.spawn``.

    **pin_memory** with the CPU as device is DataLoader's: the images are copied into page-locked memory of PyTorch's own, writable, for
    the loop's own ``images.to(device, non_blocking=True)``. Without an accelerator it has no effect, with a warning.
    """

    @documented
    def __init__(
        self,
        dataset: AnyDataset | None = None,
        transform: AnyTransform | None = None,
        *,
        device: torch.device | str | int | None = None,
        memory_format: torch.memory_format = torch.contiguous_format,
        pin_memory: bool | None = None,
        **options: Unpack[LoaderOptions],
    ) -> None:
        """Describes the loader; connects later.

        Args:
            dataset: a folder whose subfolders are the classes, beneath one of the daemon's roots; a manifest (.csv, .tsv, .jsonl); a list
                of files with labels (``millrace.Samples``); torchvision's ``ImageFolder``, and PyTorch's ``Subset`` and ``ConcatDataset``
                of these, whose transform, target_transform and samples count; a dataset of Hugging Face's or webdataset's, or
                ``millrace.Encoded``; images and their masks (``millrace.Pairs``).
            transform: what to make of each image, of a fixed size: a ``Recipe``, or transforms that ``from_torchvision``, ``from_timm``
                or ``from_albumentations`` translates; None: the dataset's own, else ``Recipe.evaluate(256, 224)``.
            device: where the tensors go; None: the CPU.
            memory_format: ``torch.contiguous_format``, or ``torch.channels_last``, which the daemon writes so; the shape is the same.
            pin_memory: see the class; None: where there is a use for it.
            options: see ``Options``.

        Raises:
            InvalidRequest: an argument is wrong, or the dataset does what the daemon cannot; says which and what to do.
            Unsupported: a transform of torchvision's is not something that the daemon does; says which.
        """
        if memory_format not in (torch.contiguous_format, torch.channels_last):
            raise InvalidRequest(f"loader: memory_format is contiguous_format or channels_last, not {memory_format}")
        self._layout = "NHWC" if memory_format is torch.channels_last else "NCHW"
        super().__init__(dataset, transform, **options)
        self._device = torch.device(device if device is not None else "cpu")
        self._pin = pin_memory
        self._moves = self._shares = self._device.type != "cpu" or bool(pin_memory)
        self._registered: dict[int, bool] = {}  # by a slot's address: whether it could be page-locked
        self._given: list[weakref.ref[Lease]] = []  # of batches in the GPU's memory that the loop has got
        self._copies: deque[tuple[Any, Any]] = deque()  # (event, tensors in the slot) of copies that may be under way

    @property
    def sampler(self) -> Any:
        """The one that was given; else one for programs that call ``loader.sampler.set_epoch``: the order itself is the daemon's."""
        if self._options.sampler is not None:
            return self._options.sampler
        return _Order(self) if self._options.shuffle else _InOrder(self)

    @property
    def batch_sampler(self) -> Any:
        """The one that was given; else one for programs that ask what ``DataLoader.batch_sampler`` is like; it yields nothing."""
        return self._options.batch_sampler if self._options.batch_sampler is not None else _Batches(self)

    def _opened(self) -> Listed:
        if self._moves and self._device.type == "cpu" and not _accelerated():  # asked late: a loader may be made before processes are
            warn(f"{called(type(self))}: pin_memory=True has no effect: PyTorch has no accelerator here to page-lock memory for")
            self._moves = self._shares = False
        return super()._opened()

    def _frameworks_ranks(self) -> Ranks | None:
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            return Ranks(torch.distributed.get_rank(), torch.distributed.get_world_size())
        return None

    def _memory(self, client: Client) -> str:
        if self._device.type != "cuda" or torch.version.cuda is None or not torch.cuda.is_available():  # ROCm calls its GPUs so, too
            return HOST
        return memory_on(client, self._ordinal())

    def _ordinal(self) -> int:
        """The number, in this process, of the GPU that is its device."""
        return self._device.index if self._device.index is not None else int(torch.cuda.current_device())

    def _start(self, progress: Progress) -> Epoch | Feed:
        segment = self._session._segment if self._session is not None else None
        memory = segment.device_memory if segment is not None else None
        if memory is not None and self._options.memory is None and memory.context.ordinal != self._ordinal():
            self.close()  # device="cuda", and another GPU is the current one now
        return super()._start(progress)

    def _convert(self, batch: Batch, labels: Labels) -> tuple[Any, Any]:
        found = each_column(batch.labels if labels is None else labels, _tensor)
        if self.recipe.views:
            return [self._converted(view) for view in batch.views], found
        return self._converted(batch.images), found

    def _converted(self, images: Any) -> Any:
        if not isinstance(images, DeviceTensor):
            return self._shaped(torch.from_dlpack(images))
        if self._device.type != "cuda":
            return self._shaped(_on_host(images))
        return images  # it names the stream on which it is used, which the loop's thread knows

    def _shaped(self, images: torch.Tensor) -> torch.Tensor:
        return images.permute(0, 3, 1, 2) if self._layout == "NHWC" else images

    def _moved(self, item: tuple[Any, Any]) -> tuple[Any, Any]:
        images, labels = item
        views = images if isinstance(images, list) else [images]
        if self._device.type == "cpu":
            there = [view.pin_memory() for view in views]
            labels = _each_tensor(labels, torch.Tensor.pin_memory)
        else:
            if isinstance(views[0], DeviceTensor):  # copied if it is another GPU's
                there = [self._shaped(view.to(self._device, non_blocking=True)) for view in self._in_place(views)]
            else:
                there = self._to_device(views)
            waits_not = self._device.type == "cuda"  # labels are not page-locked: CUDA has taken them when this returns
            labels = _each_tensor(labels, lambda column: column.to(there[0].device, non_blocking=waits_not))
        return (there if isinstance(images, list) else there[0]), labels

    def _in_place(self, views: list[DeviceTensor]) -> list[torch.Tensor]:
        """The slot's own memory, or a copy where the loop keeps so much that no slot would be left for the next batch."""
        there = [torch.from_dlpack(view) for view in views]
        self._given = [given for given in self._given if given() is not None]
        if len(self._given) >= self._options.slots - 1:
            return [view.clone() for view in there]
        self._given.append(weakref.ref(views[0]._held.check()))
        return there

    def _to_device(self, views: list[torch.Tensor]) -> list[torch.Tensor]:
        if self._device.type != "cuda" or self._pin is False or not self._page_locked(views[0]):
            return [view.to(self._device) for view in views]
        moved = [view.to(self._device, non_blocking=True) for view in views]
        copied = torch.cuda.Event()
        copied.record(torch.cuda.current_stream(self._device))
        self._copies.append((copied, views))
        return moved

    def _reclaim(self) -> None:
        while self._copies and (len(self._copies) > self._options.slots - 2 or self._copies[0][0].query()):
            self._copies.popleft()[0].synchronize()

    def _page_locked(self, images: torch.Tensor) -> bool:
        """Page-locks the slot in which they are the first time, whole."""
        assert self._session is not None
        if self.batch is not None and self.batch._require()._lease is None:
            return False  # a copy, as of a batch with bad pairs
        address, size = self._session.slot_of(images.data_ptr())
        if address not in self._registered:
            done = int(torch.cuda.cudart().cudaHostRegister(address, size, _REGISTER_READ_ONLY)) == 0
            if not done:  # CUDA reports that error again at the next kernel's launch, unless one has taken it before
                with contextlib.suppress(RuntimeError):
                    torch.zeros(1, device=self._device)
            self._registered[address] = done
        return self._registered[address]

    def close(self) -> None:
        """Ends the session with the daemon, after copies that are under way; the next use connects again. Idempotent."""
        while self._copies:
            self._copies.popleft()[0].synchronize()
        for address, done in self._registered.items():
            if done:
                torch.cuda.cudart().cudaHostUnregister(address)
        self._registered.clear()
        super().close()

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_registered": {}, "_copies": deque(), "_given": []}


def _tensor(column: Any) -> Any:
    if isinstance(column, Tensor):  # masks
        return torch.from_dlpack(column)
    return torch.from_numpy(np.ascontiguousarray(column)) if isinstance(column, np.ndarray) else column


def _each_tensor(labels: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    return each_column(labels, lambda column: change(column) if isinstance(column, torch.Tensor) else column)


def _on_host(images: DeviceTensor) -> torch.Tensor:
    """A copy."""
    if images.dtype_name == "bfloat16":
        return torch.from_numpy(images.bits().view("int16")).view(torch.bfloat16)
    return torch.from_numpy(images.bits())


def _accelerated() -> bool:
    return bool(getattr(torch, "accelerator", torch.cuda).is_available())  # PyTorch 2.4 and 2.5 have no torch.accelerator


class _Order:
    """What ``DataLoader.sampler`` is to training programs: ``len()``, and ``set_epoch`` as of ``DistributedSampler``."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def set_epoch(self, epoch: int) -> None:
        """As the loader's."""
        self._loader.set_epoch(epoch)

    def __len__(self) -> int:
        return self._loader.samples

    def __iter__(self) -> Iterator[int]:
        raise Unsupported("loader.sampler: the daemon draws the order and does not tell it ahead; loader.batch.ids has a batch's samples")


class _InOrder(_Order, SequentialSampler):  # type: ignore[misc]
    """Without ``shuffle``; Lightning's ``overfit_batches`` asks for the class."""


class _Batches:
    """What ``DataLoader.batch_sampler`` is to Lightning and accelerate."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader
        self.sampler = loader.sampler
        self.batch_size = loader.batch_size
        self.drop_last = loader.drop_last

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[list[int]]:
        raise Unsupported(
            "loader.batch_sampler: the daemon makes the batches, and no other loader can be made of this one. In the place of accelerate's "
            "skip_first_batches(loader, n) say loader.skip_first_batches(n), or go on from loader.state_dict()"
        )
