"""Batches as PyTorch tensors, in the place of ``torch.utils.data.DataLoader``.

    >>> loader = millrace.torch.Loader("/data/train", millrace.torch.from_torchvision(transform), batch_size=256, shuffle=True)
    >>> for images, labels in loader:
    ...     ...

Every rank makes its own; rank and world size come from ``torch.distributed`` or from torchrun's environment.
"""

from __future__ import annotations

import contextlib
from collections import deque
from typing import Any

import torch

from millrace._dtype import AnyDType
from millrace._loader import BaseLoader
from millrace._torchvision import from_torchvision
from millrace.batch import Batch
from millrace.errors import InvalidRequest
from millrace.recipe import Recipe

__all__ = ["Loader", "from_torchvision"]

_REGISTER_READ_ONLY = 8  # cudaHostRegisterReadOnly


class Loader(BaseLoader[tuple[Any, Any]]):
    """Yields ``(images, labels)``: images N x 3 x H x W of ``dtype`` on ``device``, labels int64 [N] there.

    Iterable, ``len``, ``set_epoch``, ``state_dict`` and ``load_state_dict``: training loops written for DataLoader run unchanged. The
    current batch's ids, boxes, errors, ... are in ``loader.batch``.

    **On the CPU** the images are the slot's own memory, read-only though PyTorch does not know it: an operation in place
    (``images.div_(255)``) ends the process with SIGSEGV; ``images / 255`` is fine, and so is asking for ``dtype=torch.float32``. Keep a
    batch with ``images.clone()``.

    **On a GPU** the session's shared memory is page-locked once (``cudaHostRegister``) and each batch is copied from there without an
    intermediate copy, on the current stream, not waited for (``non_blocking``); the slot goes back when its copy has ended. Where the
    driver cannot page-lock read-only memory, or with ``pin_memory=False``, it is an ordinary copy.

    **pin_memory** with the CPU as device is DataLoader's: the images are copied into page-locked memory of PyTorch's own, writable, for
    the loop's own ``images.to(device, non_blocking=True)``.
    """

    def __init__(
        self,
        dataset: Any,
        transform: Any = None,
        *,
        device: Any = None,
        dtype: AnyDType | None = None,
        memory_format: torch.memory_format = torch.contiguous_format,
        pin_memory: bool | None = None,
        rank: int | None = None,
        world_size: int | None = None,
        **options: Any,
    ) -> None:
        """As ``BaseLoader``, and further device, memory_format and pin_memory.

        Args:
            dataset: see there.
            transform: a ``Recipe``, or a ``torchvision.transforms.v2`` transform of what ``from_torchvision`` translates.
            device: where the tensors go; None: the CPU.
            dtype: ``torch.uint8``, ``float16``, ``bfloat16`` or ``float32``, or its name.
            memory_format: ``torch.contiguous_format``, or ``torch.channels_last``, which the daemon writes so; the shape is the same.
            pin_memory: see the class; None: where there is a use for it.
            rank: None: of ``torch.distributed``'s default group if there is one, else $RANK, else 0.
            world_size: the same.
            options: see there.
        """
        if memory_format not in (torch.contiguous_format, torch.channels_last):
            raise InvalidRequest(f"loader: memory_format is contiguous_format or channels_last, not {memory_format}")
        self._layout = "NHWC" if memory_format is torch.channels_last else "NCHW"
        if rank is None and world_size is None and torch.distributed.is_available() and torch.distributed.is_initialized():
            rank, world_size = torch.distributed.get_rank(), torch.distributed.get_world_size()
        recipe = transform if transform is None or isinstance(transform, Recipe) else from_torchvision(transform)
        super().__init__(dataset, recipe, dtype=dtype, rank=rank, world_size=world_size, **options)
        self._device = torch.device(device if device is not None else "cpu")
        self._pin = pin_memory
        self._moves = self._device.type != "cpu" or bool(pin_memory)
        self._registered: Any = None  # the array of the segment that is page-locked
        self._copies: deque[tuple[Any, Any]] = deque()  # (event, images in the slot) of copies that may be under way

    def _convert(self, batch: Batch) -> tuple[Any, Any]:
        images = torch.from_dlpack(batch.images)
        if self._layout == "NHWC":
            images = images.permute(0, 3, 1, 2)
        return images, torch.from_numpy(batch.labels)

    def _moved(self, item: tuple[Any, Any]) -> tuple[Any, Any]:
        images, labels = item
        if self._device.type == "cpu":
            return images.pin_memory(), labels.pin_memory()
        return self._to_device(images), labels.to(self._device)

    def _to_device(self, images: Any) -> Any:
        if self._device.type != "cuda" or self._pin is False or not self._page_locked():
            return images.to(self._device)
        moved = images.to(self._device, non_blocking=True)
        copied = torch.cuda.Event()
        copied.record(torch.cuda.current_stream(self._device))
        self._copies.append((copied, images))
        return moved

    def _reclaim(self) -> None:
        while self._copies and (len(self._copies) > self._slots - 2 or self._copies[0][0].query()):
            self._copies.popleft()[0].synchronize()

    def _page_locked(self) -> bool:
        """Page-locks the session's segment the first time."""
        assert self._session is not None
        segment = self._session.memory()
        if self._registered is None or self._registered[0] is not segment:
            address, size = segment.__array_interface__["data"][0], segment.nbytes
            done = int(torch.cuda.cudart().cudaHostRegister(address, size, _REGISTER_READ_ONLY)) == 0
            if not done:  # CUDA reports that error again at the next kernel's launch, unless one has taken it before
                with contextlib.suppress(RuntimeError):
                    torch.zeros(1, device=self._device)
            self._registered = (segment, done)
        return bool(self._registered[1])

    def close(self) -> None:
        """Ends the session with the daemon, after copies that are under way; the next use connects again. Idempotent."""
        while self._copies:
            self._copies.popleft()[0].synchronize()
        if self._registered is not None:
            segment, done = self._registered
            if done:
                torch.cuda.cudart().cudaHostUnregister(segment.__array_interface__["data"][0])
            self._registered = None
        super().close()

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_registered": None, "_copies": deque()}
