"""A finished batch: pixels in shared memory, and what happened to each image."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from millrace._memory.device_tensor import DeviceTensor
from millrace._memory.layout import FLIPPED, RECORD, ZEROED
from millrace._memory.lease import Held
from millrace._memory.tensor import Tensor
from millrace._wire.messages import dtype_name, sample_errors
from millrace.errors import FailedPrecondition, InternalError, InvalidRequest, SampleError, SampleFailed
from millrace.recipe import DTYPE_BYTES, DType, Recipe, described

if TYPE_CHECKING:
    from millrace._core.dataset import Dataset
    from millrace._core.ticket import Ticket


class Batch:
    """A lease on a finished batch. N is the number of images that it has.

    The slot goes back to the daemon when the batch and everything made of its memory has been collected, or by ``release()`` (which
    leaving a ``with`` block calls). Views of the memory that are alive then stay valid and keep the slot until they are gone, too; the
    batch itself and its tensors raise ``Released`` from then on. What comes as a copy (labels, ids, ...) is the caller's.

    Thread-safe for reading.
    """

    __slots__ = (
        "_completed",
        "_dataset",
        "_errors",
        "_held",
        "_images",
        "_records",
        "_start",
        "_views",
        "bad",
        "id",
        "position",
        "prepared",
        "recipe",
    )

    def __init__(self, completed: Any, held: Held | None, recipe: Recipe) -> None:
        """Made by the session from a ``millrace.v1.Completed``; ``held`` is None when no image is left."""
        self._completed = completed
        self.recipe = recipe
        """What it was made with."""
        self.prepared: Any = None
        """A loader's: what its loop gets of the batch."""
        self._held = held
        self._images: Tensor | None = None
        self._views: list[Tensor] | None = None
        self._records: NDArray[Any] | None = None
        self._errors: tuple[SampleError, ...] | None = None
        self._dataset: Dataset | None = None  # of an epoch, which says so
        self._start: Any = None  # likewise: its StartEpoch
        self.id: int = completed.batch_id
        """What ``Session.submit`` returned, or the batch's number in its epoch."""
        self.bad: int = completed.bad  # here, in the session's thread: the first access costs a loop that has waited 10 us
        """How many images did not come out as asked, listed in ``errors`` or not."""
        self.position: bytes = completed.position
        """Of an epoch: goes on after this batch (``Session.epoch(position=...)``), in any process, after any restart."""

    @property
    def images(self) -> Tensor:
        """The pixels: N x 3 x H x W, or as the recipe says; a ``DeviceTensor`` where the session has its tensors in a GPU's memory.

        A packed batch has one axis: the elements of all images and of the gaps between them, which mean nothing; ``image`` has each image.
        Patches, packed or not, are one array of all images' patches: patches x 3 x temporal x height x width.

        Raises:
            InvalidRequest: the recipe makes several views of each sample: ``views`` has a tensor for each.
            Released: the batch was released.
            SampleFailed: no image of the batch is left.
        """
        held = self._require()
        if self._images is None:
            if self.recipe.views:
                raise InvalidRequest(
                    f"batch.images: the recipe makes {len(self.recipe.views)} views of each sample, which are tensors of their own: "
                    "batch.views has them, batch.image(index, view) one image"
                )
            handle = self._completed.handle
            tensor = _tensor(held, handle.offset, tuple(handle.shape), tuple(handle.strides), dtype_name(handle.dtype))
            self._images = tensor
        return self._images

    @property
    def views(self) -> list[Tensor]:
        """A tensor N x 3 x H x W, or as the recipe says, for each of ``Recipe.views``, in their order; of a recipe without: ``[images]``.

        A list of the caller's own. All lie in the batch's slot, and each is contiguous.

        Raises:
            Released: the batch was released.
            SampleFailed: no image of the batch is left.
        """
        if not self.recipe.views:
            return [self.images]
        held = self._require()
        if self._views is None:
            handle, dtype = self._completed.handle, dtype_name(self._completed.handle.dtype)
            if len(handle.views) != len(self.recipe.views):
                raise InternalError(
                    f"the batch has {len(handle.views)} views, and the recipe {len(self.recipe.views)}; please report it with the "
                    "daemon's version"
                )
            self._views = [_tensor(held, view.offset, tuple(view.shape), tuple(view.strides), dtype) for view in handle.views]
        return list(self._views)

    def image(self, index: int, view: int = 0) -> Tensor:
        """The pixels of one image: H x W x C or C x H x W; of packed batches too. Of patches: patches x C x temporal x height x width.

        An image of a packed batch that was zeroed before its size was known is 0 x 0.

        Args:
            index: which sample of the batch.
            view: which of ``Recipe.views``.

        Raises:
            IndexError: there are not so many.
            Released: the batch was released.
        """
        count = len(self)
        if not -count <= index < count:
            raise IndexError(f"image {index} of a batch of {count}")
        views = len(self.recipe.views) or 1
        if not -views <= view < views:
            raise IndexError(f"view {view} of a recipe that makes {views}")
        if self.recipe.views:
            images, offset = self.views[view], self._completed.handle.views[view].offset + index % count * self.views[view].strides[0]
            return _tensor(self._require(), offset, images.shape[1:], images.strides[1:], images.dtype_name)
        images = self.images
        if self.recipe.patches is not None:
            record = self.records[index]
            shape = (int(record["pixels_bytes"]) // images.strides[0], *images.shape[1:])
            return _tensor(self._require(), int(record["pixels_offset"]), shape, images.strides, images.dtype_name)
        if images.ndim == 4:
            index %= count
            offset = self._completed.handle.offset + index * images.strides[0]
            return _tensor(self._require(), offset, images.shape[1:], images.strides[1:], images.dtype_name)
        return self._packed_image(self.records[index], images.dtype_name)

    def _packed_image(self, record: Any, dtype: DType) -> Tensor:
        width, height, size = int(record["width"]), int(record["height"]), DTYPE_BYTES[dtype]
        channels = 1 if self.recipe.channels == "grey" else 3
        if int(record["pixels_bytes"]) != height * width * channels * size:
            raise InternalError("a packed image's record does not fit its pixels; please report it with the daemon's version")
        shape = (height, width, channels) if self.recipe.layout == "NHWC" else (channels, height, width)
        strides = (shape[1] * shape[2] * size, shape[2] * size, size)
        return _tensor(self._require(), int(record["pixels_offset"]), shape, strides, dtype)

    def ticket(self, index: int, view: int = 0) -> Ticket:
        """What made one image: saved as a file, it lets ``millrace replay`` make the very same tensor again, anywhere.

        Ask before the batch is written to in place: the ticket has a checksum of the pixels as they are.

        Args:
            index: which sample of the batch.
            view: which of ``Recipe.views``.

        Raises:
            IndexError: there are not so many.
            Unsupported: the batch was submitted, came in the caller's own order, or is of fidelity fast; the image is a bad one, or in a
                GPU's memory.
            Released: the batch was released.
        """
        from millrace._core.ticket import ticket_of

        return ticket_of(self, index, view)

    @property
    def records(self) -> NDArray[Any]:
        """One ``SampleRecord`` (proto/shm/segment_layout.h) an image: a read-only structured array.

        Fields: id, label, width, height, source_width, source_height, crop_left, crop_top, crop_width, crop_height, fetch_us,
        queue_us, decode_us, transform_us, status, flags, orientation, backend, index, resized_width, resized_height, window_left,
        window_top. It keeps the slot, as any view. Of a recipe with views, size, crop and flip are the first view's; so they are in
        ``sizes``, ``boxes``, ``filled`` and ``flips``.
        """
        if len(self) == 0:
            return np.empty(0, RECORD)
        handle = self._completed.handle
        held = self._require()
        records: NDArray[Any] = np.ndarray((handle.samples,), RECORD, held.bytes(), handle.records_offset - held.start)
        records.flags.writeable = False
        return records

    def _copied_records(self) -> NDArray[Any]:
        if self._records is None:
            copied: NDArray[Any] = self.records.copy()
            self._records = copied
        return self._records

    def _column(self, name: str) -> NDArray[Any]:
        column: NDArray[Any] = self._copied_records()[name].copy()
        return column

    @property
    def labels(self) -> NDArray[np.int64]:
        """int64 [N]: a dataset's class numbers, or what ``Sample.label`` said; -1 where there is none."""
        return self._column("label")

    @property
    def ids(self) -> NDArray[np.uint64]:
        """uint64 [N]: which image it is."""
        return self._column("id")

    @property
    def status(self) -> NDArray[np.uint16]:
        """uint16 [N]: 0, or the code of what went wrong with that image (zeroed and substituted images only)."""
        return self._column("status")

    @property
    def flips(self) -> NDArray[np.bool_]:
        """Bool [N]: whether the image was flipped from left to right."""
        return (self._column("flags") & FLIPPED).astype(np.bool_)

    @property
    def boxes(self) -> NDArray[np.int32]:
        """int32 [N, 4]: left, top, width, height of the crop, pixels of the oriented source."""
        return self._columns("crop_left", "crop_top", "crop_width", "crop_height", np.int32)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """int64 [N, 2]: width and height of each image as it is in the tensor, pixels."""
        return self._columns("width", "height", np.int64)

    @property
    def filled(self) -> NDArray[np.int64]:
        """int64 [N, 4]: left, top, width, height of what is the image itself in the tensor, pixels; the rest is padded (``Recipe.pad``).

        As it lies there, flipped or not; steps of augmentation, which may move it, are left out of account. Nothing of a zeroed image.
        """
        sides, resized = self.sizes, self._columns("resized_width", "resized_height", np.int64)
        begins = self._columns("window_left", "window_top", np.int64)
        resized = np.where(resized > 0, resized, sides)  # which daemons that do not pad leave out
        first = np.clip(-begins, 0, sides)
        last = np.clip(resized - begins, first, sides)
        last[(self._column("flags") & ZEROED) != 0] = 0
        size = last - first
        first[:, 0] = np.where(self.flips, sides[:, 0] - last[:, 0], first[:, 0])
        return np.concatenate([first, size], axis=-1)

    def map_boxes(self, boxes: Sequence[Any] | NDArray[Any], *, min_area: float = 0) -> list[tuple[NDArray[np.float32], NDArray[np.int64]]]:
        """Where boxes of the source's pixels lie in the batch's images: objects to be detected.

            >>> for (mapped, left), names in zip(batch.map_boxes(targets["boxes"]), targets["names"]):
            ...     names = [names[index] for index in left]

        What was cropped, resized, padded and flipped is followed; ``Recipe.erasing`` covers what it covers, and its boxes stay.

        Args:
            boxes: for each image of the batch, in its order, numbers [M, 4]: left, top, right, bottom, pixels of the source after EXIF
                orientation (of the stored one with ``ignore_orientation``). NumPy's arrays, PyTorch's tensors, lists; an empty one where
                there is none. Of torchvision's ``BoundingBoxes`` the numbers are what their ``format`` says: XYXY, XYWH or CXCYWH. The
                image at ``position`` is ``ids[position]``: where another stands in for a bad one (``on_error="substitute"``) that is the
                other's id, and its boxes are to be given. A loader's labels are the right ones.
            min_area: pixels in the tensor; only boxes with more are left.

        Returns:
            For each image: boxes float32 [K, 4], left, top, right, bottom in pixels of the image in the tensor, clipped to what is the
            image itself there (``filled``); and int64 [K]: which of the given ones they are, ascending. Of a zeroed image none is left,
            nor is a box without width or height, or one outside of the crop. Arrays of the caller's own.

        Raises:
            InvalidRequest: ``boxes`` are not as many as images, or something else than numbers [M, 4]; one has a NaN or an infinite number,
                or its right is less than its left, or its bottom than its top, as COCO's [left, top, width, height] often have. Says which.
            Unsupported: the recipe has views, or steps that move pixels (``RandAugment`` may, too) or flip only some images; names it. Or
                boxes are of another ``format``, such as rotated ones; or the daemon is older and does not say enough.
            Released: the batch was released before anything of its records was asked for.
        """
        from millrace._core.boxes import mapped

        return mapped(boxes, self._copied_records(), self.filled, self.recipe, min_area)

    @property
    def source_sizes(self) -> NDArray[np.int64]:
        """int64 [N, 2]: width and height as stored in the file, before orientation; 0 where they are not known."""
        return self._columns("source_width", "source_height", np.int64)

    def _columns(self, *names_and_dtype: Any) -> NDArray[Any]:
        *names, dtype = names_and_dtype
        records = self._copied_records()
        return np.stack([records[name] for name in names], axis=-1).astype(dtype)

    @property
    def paths(self) -> list[str]:
        """The file of each image, absolute, as ``os`` names it; N of them. Of an epoch's batch only; the daemon is asked.

        Of a part of a file its name for people: ``/data/shard.tar[1536+48211]``, offset and length in bytes, and its member if it is known.

        Raises:
            FailedPrecondition: the batch was submitted, by the program or by a loader that reads its source itself.
            DaemonUnavailable, Cancelled: the daemon is gone, or the session closed.
        """
        if self._dataset is None:
            raise FailedPrecondition(
                "batch.paths: this batch was submitted, by the program or by a loader that reads its source itself, and has no list of "
                "files; batch.ids says which samples are in it"
            )
        return self._dataset.paths_of(self.ids)

    @property
    def errors(self) -> tuple[SampleError, ...]:
        """The images that did not come out as asked, with the reason; of more than a thousand the first ones."""
        if self._errors is None:
            self._errors = sample_errors(self._completed.errors)
            if self._dataset is not None:
                self._errors = self._dataset._with_members(self._errors)
        return self._errors

    def release(self) -> bool:
        """Gives the slot back. Idempotent, never waits.

        Returns:
            True if it went back at once; False if views of its memory are alive: they stay valid, and it goes back with the last.
        """
        self._images = self._views = self.prepared = None
        return self._held.release() if self._held is not None else True

    @property
    def released(self) -> bool:
        """Whether ``release()`` was called."""
        return self._held is not None and self._held.released

    def _require(self) -> Held:
        if self._held is None:
            raise SampleFailed(
                "no image of this batch is left: all were bad, and on_error is skip; see errors",
                batch_id=self.id,
                sample_errors=self.errors,
            )
        self._held.check()
        return self._held

    def __len__(self) -> int:
        return int(self._completed.handle.samples) if self._held is not None else 0

    def __enter__(self) -> Batch:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.release()

    def _repr_png_(self) -> bytes | None:
        """A contact sheet of the first images, for notebooks."""
        from millrace._sheets.pictures import sheet_of

        return sheet_of(self)

    def __repr__(self) -> str:
        images = f"{len(self)} images{described(self.recipe)}, {self.bad} bad"
        return f"<millrace.Batch {self.id}: {images}{', released' if self.released else ''}>"


def _tensor(held: Held, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: DType) -> Tensor:
    return (DeviceTensor if held.on_device else Tensor)(held, offset, shape, strides, dtype)
