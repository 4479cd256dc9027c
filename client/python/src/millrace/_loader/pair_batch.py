"""A batch of images with the batch of their masks: which pairs are bad, and what becomes of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from millrace._core.batch import Batch
from millrace._data.file_parts import file_at, source_at
from millrace._data.mask_file import kind_of_mask
from millrace._memory.layout import RECORD, SUBSTITUTED, ZEROED
from millrace._memory.lease import Held
from millrace._memory.tensor import Tensor
from millrace._wire.messages import path_text
from millrace.errors import CODE_NAMES, Released, SampleError
from millrace.recipe import OnError

_INVALID_NAME = "INVALID_ARGUMENT"
_INVALID = CODE_NAMES.index(_INVALID_NAME)
_TURNED = 5  # EXIF orientations from here on exchange the sides


class OwnMemory(Held):
    """A copy of a batch's bytes, in the place of its lease: where they are read-only, and something has to be written."""

    def __init__(self, held: Held, end: int) -> None:
        """``end``: of the batch's bytes, from the segment's start."""
        self.start = held.start
        self._lease = None
        self._bytes = held.bytes()[: end - held.start].copy()

    @property
    def released(self) -> bool:
        return self._bytes is None

    def check(self) -> Any:
        """Raises Released: it was let go."""
        if self._bytes is None:
            raise Released("this batch was released; copy what you need before")
        return None

    def bytes(self) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """Of this process alone."""
        self.check()
        assert self._bytes is not None
        return self._bytes

    @property
    def on_device(self) -> bool:
        """Never."""
        return False

    def release(self) -> bool:
        """The slot went back before."""
        self._bytes = None
        return True


class PairBatch(Batch):
    """A batch of a loader of ``Pairs``: the images', with their masks."""

    __slots__ = ("_masks",)

    def __init__(self, images: Batch, masks: Batch) -> None:
        """Of both, which are used up."""
        for name in Batch.__slots__:
            setattr(self, name, getattr(images, name))
        self._masks = masks

    @property
    def masks(self) -> Tensor:
        """The masks, uint8 N x H x W, in the images' order.

        Raises:
            Released: the batch was released.
            SampleFailed: no pair of the batch is left.
        """
        self._require()
        made = self._masks.images
        return Tensor(made._held, made._offset, (made.shape[0], *made.shape[2:]), (made.strides[0], *made.strides[2:]), made.dtype_name)

    def release(self) -> bool:
        """Gives the slots back. As ``Batch.release``."""
        gone = self._masks.release()
        return super().release() and gone


def bad_pairs(
    batch: PairBatch, paths: Any, no_files: Mapping[int, str], *, ignores_orientation: bool, drawn_upright: bool
) -> NDArray[np.bool_]:
    """Which pairs of a batch are bad, of which none has been left out yet; ``batch.errors`` and ``batch.bad`` say so from then on.

    Args:
        batch: of two epochs that blank bad images.
        paths: of the masks, or parts of files, by sample id.
        no_files: why masks are bad that the daemon made, by position.
        ignores_orientation: as the recipe.
        drawn_upright: as of ``Pairs``.
    """
    images, masks = batch._copied_records(), batch._masks._copied_records()
    bad: NDArray[np.bool_] = ((images["flags"] | masks["flags"]) & ZEROED) != 0
    missing = np.zeros_like(bad)
    missing[list(no_files)] = True
    missing &= ~bad
    bad |= missing
    turned, mask_turned = images["orientation"], masks["orientation"]
    if ignores_orientation:
        turned, mask_turned = np.zeros_like(turned), np.zeros_like(turned)
    sizes, mask_sizes = _oriented(images, turned), _oriented(masks, mask_turned)
    other_size = (sizes != mask_sizes).any(axis=1) & ~bad
    other_turn = (np.maximum(turned, 1) != np.maximum(mask_turned, 1)) & ~bad & ~other_size
    if drawn_upright:
        other_turn[:] = False
    found = _of_pairs(batch.errors, batch._masks.errors, paths)
    for number in np.flatnonzero(missing).tolist():
        sample = int(images["id"][number])
        found.append(SampleError(number, sample, path_text(paths[sample]), _INVALID_NAME, no_files[number], file_at(paths, sample)))
    for number in np.flatnonzero(other_size | other_turn).tolist():
        sample = int(images["id"][number])
        told = (
            f"the mask is {_sides(mask_sizes[number])} pixels, and its image {_sides(sizes[number])}"
            + _exchanged(images[number], masks[number], ignores_orientation=ignores_orientation)
            if other_size[number]
            else f"EXIF turns the image (orientation {turned[number]}), and not the mask: Pairs(drawn_upright=True) or "
            "Recipe(ignore_orientation=True) say over what it was drawn"
        )
        found.append(SampleError(number, sample, path_text(paths[sample]), _INVALID_NAME, told, file_at(paths, sample)))
    bad |= other_size | other_turn
    batch._errors = tuple(sorted(found, key=lambda error: error.index))
    batch.bad = int(np.count_nonzero(bad))
    return bad


def _exchanged(image: Any, mask: Any, *, ignores_orientation: bool) -> str:
    """Of records of a pair whose sizes differ: what to do, where it is width and height that are exchanged, and EXIF may be why."""
    stored = (image["source_width"], image["source_height"])
    mask_stored = (mask["source_width"], mask["source_height"])
    if ignores_orientation and stored == mask_stored[::-1]:
        return (
            ": the recipe has ignore_orientation=True; where EXIF turns the image, and the mask was drawn over it as it is turned, leave "
            "that out and say Pairs(drawn_upright=True)"
        )
    if ignores_orientation or stored != mask_stored:
        return ""
    turned, by, other = ("image", image, "mask") if image["orientation"] >= _TURNED else ("mask", mask, "image")
    return (
        f": EXIF turns the {turned} (orientation {by['orientation']}), and not the {other}; where masks were drawn over the stored pixels, "
        "say Recipe(ignore_orientation=True)"
    )


def _of_pairs(images: Sequence[SampleError], masks: Sequence[SampleError], paths: Sequence[str]) -> list[SampleError]:
    """One for each pair: the image's, which tells of its mask's, too, or else the mask's."""
    found = {error.index: error for error in images}
    for error in (_with_kind(error, paths) for error in masks):
        image = found.get(error.index)
        both = image and dataclasses.replace(image, message=f"{image.message}; nor is its mask good: {error.source}: {error.message}")
        found[error.index] = both or error
    return list(found.values())


def _with_kind(error: SampleError, paths: Sequence[str]) -> SampleError:
    kind = kind_of_mask(source_at(paths, error.sample_id)) if error.path is not None else ""
    return dataclasses.replace(error, message=f"{error.message}; {kind}") if kind else error


def apply_error_policy(batch: PairBatch, bad: NDArray[np.bool_], how: OnError, fill: int) -> None:
    """Does to images and masks alike what the policy says; as the daemon does it to images (daemon/pipeline/batch/mend.h).

    Args:
        batch: its slots are written to, in this process alone; batches that are read-only become copies.
        bad: of each pair; some are.
        how: ``skip``, ``zero`` or ``substitute``; of the latter one pair is good.
        fill: the class of a blank image.
    """
    good, codes = np.flatnonzero(~bad), _codes(batch)
    if how == "skip" and not len(good):
        batch._masks.release()
        batch._held = None
        return
    for each, blank in ((batch, 0), (batch._masks, fill)):
        _make_own(each)
        rows, records = _rows(each), _records(each)
        offsets = records["pixels_offset"].copy()
        if how == "zero":
            rows[bad] = blank
            records["status"][bad], records["flags"][bad] = codes[bad], records["flags"][bad] | ZEROED
        elif how == "substitute":
            for number in np.flatnonzero(bad).tolist():
                other = _stand_in(good, number)
                rows[number], records[number] = rows[other], records[other]
                records["index"][number], records["status"][number] = number, codes[number]
                records["flags"][number] |= SUBSTITUTED
        else:
            for number, other in enumerate(good.tolist()):  # downwards: none is overwritten before it has moved
                if number != other:
                    rows[number], records[number] = rows[other], records[other]
            handle = each._completed.handle
            handle.samples = handle.shape[0] = len(good)
        records["pixels_offset"] = offsets
        each._records = each._images = None


def _codes(batch: PairBatch) -> NDArray[np.uint16]:
    """Of what is wrong with each pair, as its error says, were it bad."""
    image, mask = batch._copied_records()["status"], batch._masks._copied_records()["status"]
    codes: NDArray[np.uint16] = np.where(image != 0, image, np.where(mask != 0, mask, _INVALID)).astype(np.uint16)
    return codes


def _stand_in(good: NDArray[np.intp], number: int) -> int:
    """The nearest good one before it, else after it."""
    place = int(np.searchsorted(good, number))
    return int(good[place - 1] if place else good[0])


def _make_own(batch: Batch) -> None:
    held = batch._require()
    if not held.bytes().flags.writeable:
        handle = batch._completed.handle
        batch._held, batch._images = OwnMemory(held, handle.records_offset + handle.samples * RECORD.itemsize), None


def _rows(batch: Batch) -> NDArray[np.uint8]:
    """The pixels' bytes, image by image."""
    bits = batch.images.bits()
    size = bits.nbytes // len(bits)
    start = batch._completed.handle.offset - batch._require().start
    rows: NDArray[np.uint8] = np.ndarray((len(bits), size), np.uint8, batch._require().bytes(), start)
    return rows


def _records(batch: Batch) -> NDArray[Any]:
    handle, held = batch._completed.handle, batch._require()
    records: NDArray[Any] = np.ndarray((handle.samples,), RECORD, held.bytes(), handle.records_offset - held.start)
    return records


def _oriented(records: NDArray[Any], orientation: NDArray[Any]) -> NDArray[np.int64]:
    stored = np.stack([records["source_width"], records["source_height"]], axis=1).astype(np.int64)
    return np.where((orientation >= _TURNED)[:, None], stored[:, ::-1], stored)


def _sides(size: NDArray[np.int64]) -> str:
    return f"{size[0]} x {size[1]}"


def as_failed(error: SampleError) -> str:
    """What a batch says that failed because of it."""
    return f"{dataclasses.replace(error)}; on_error is fail (skip, zero or substitute keep the others)"
