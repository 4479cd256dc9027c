"""The dataset of a loader of ``Pairs``: two of the daemon's, each in a session of its own, whose epochs go in step.

::

    images' session: epoch, on_error zero --\
                                             PairEpoch.next(): which pairs are bad, what becomes of them --> PairBatch
    masks' session:  epoch, on_error zero --/

Both are told the same order. To the loader it is one dataset: its positions name a fingerprint of both lists.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from millrace._core.batch import Batch
from millrace._core.dataset import Dataset
from millrace._core.epoch import Epoch
from millrace._core.session import HOST, Session
from millrace._data.dataset_argument import Given, Listed
from millrace._data.mask_file import MaskFiles
from millrace._loader.pair_batch import PairBatch, apply_error_policy, as_failed, bad_pairs
from millrace._loader.position import with_fingerprint
from millrace.client import connect
from millrace.errors import InternalError, InvalidRequest, SampleFailed, Unsupported
from millrace.pairs import Pairs, mask_recipe
from millrace.recipe import OnError, Recipe

if TYPE_CHECKING:
    from millrace._loader.options import Options

_TOLERATED, _AFTER = 20, 1000  # one pair in so many may be bad, once there were so many


class GivenPairs(Given):
    """What a loader was given: a ``Pairs``."""

    on_host = True

    def __init__(self, pairs: Pairs) -> None:
        self._pairs = self.shown = pairs
        self.path = pairs.images[0]
        self._options: Options | None = None

    def count(self) -> int:
        """Its pairs."""
        return len(self._pairs)

    def check(self, recipe: Recipe, options: Options) -> None:
        """Whether masks can be made so.

        Raises:
            InvalidRequest: it cannot be known over what they were drawn.
            Unsupported: masks cannot be made so, or not there.
        """
        if recipe.ignore_orientation and self._pairs.drawn_upright:
            raise InvalidRequest(
                "loader: the recipe has ignore_orientation=True, so images are as they are stored, and Pairs(drawn_upright=True) says that "
                "masks were drawn over images as EXIF turns them: leave out the one that is wrong"
            )
        mask_recipe(recipe, self._pairs.fill, erase=self._pairs.erase)
        if options.memory not in (None, HOST):
            raise Unsupported(
                f"loader: pairs come by the host's memory, and go to the device from there: leave out memory={options.memory}"
            )
        self._options = options

    def listed(self, session: Session, extensions: Iterable[str] | None, label_type: DTypeLike, timeout: float) -> Listed:
        """Opens the masks' session, and hands both lists to the daemon. Raises as ``Session.dataset_of``."""
        options, pairs = self._options, self._pairs
        assert options is not None
        if extensions is not None:
            raise InvalidRequest("loader: extensions= is for folders; all files of pairs are read")
        images = session.dataset_of(pairs.images, timeout=timeout)
        assert session._segment is not None
        with connect(options.address) as client:
            beside = client.session(
                mask_recipe(session._recipe, pairs.fill, erase=pairs.erase),
                options.batch_size,
                options.slots,
                name=f"masks of {session.id}",
                job=options.job,
                writable=session._segment.writable,
                cache=options.cache,
                cache_at_once=options.cache_at_once,
            )
        try:
            masks = beside.dataset_of(pairs.masks, timeout=timeout)
        except BaseException:
            beside.close()
            raise
        return Listed(len(pairs), (), None, pairs, PairDataset(images, masks, pairs), beside)


class PairDataset(Dataset):
    """Two of as many samples, of which the first has the images."""

    def __init__(self, images: Dataset, masks: Dataset, pairs: Pairs) -> None:
        self._session = images._session
        self._closed = True  # nothing of its own
        self._samples = len(images)
        self.path, self.id, self.classes, self.skipped, self.skipped_files = images.path, images.id, (), (), 0
        both = images.fingerprint.to_bytes(8, "little") + masks.fingerprint.to_bytes(8, "little")
        self.fingerprint = int.from_bytes(hashlib.blake2b(both, digest_size=8).digest(), "little")
        self.images, self.masks, self.pairs = images, masks, pairs
        self.files = MaskFiles(pairs.masks)
        """The masks', as this process sees them."""

    def epoch(self, **options: Any) -> PairEpoch:  # type: ignore[override]
        """As a loader asks for it."""
        prepare, on_error = options.pop("prepare"), options.pop("on_error")
        position = options.pop("position", b"")
        order = options.pop("order", None)
        shared = _Shared(order) if order is not None else None
        begun = []
        for number, dataset in enumerate((self.images, self.masks)):
            given = dict(options)
            if shared is not None:
                given["order"] = shared.reader(number)
            elif position:
                given["position"] = with_fingerprint(position, dataset.fingerprint)
            if number:
                given["fidelity"] = "exact"
            begun.append(dataset.epoch(on_error="zero", **given))
        how: OnError = on_error or ("substitute" if options.get("shuffle") else "skip")
        return PairEpoch(self, begun[0], begun[1], how, prepare, tolerant=on_error is None, shared=shared)


class PairEpoch:
    """Stands where ``Epoch`` stands, for the loader. Belongs to the loop's thread."""

    def __init__(
        self,
        dataset: PairDataset,
        images: Epoch,
        masks: Epoch,
        how: OnError,
        prepare: Callable[[Batch], Any],
        *,
        tolerant: bool,
        shared: _Shared | None,
    ) -> None:
        self._dataset, self._images, self._masks, self._how, self._prepare = dataset, images, masks, how, prepare
        self._tolerant, self._shared = tolerant, shared
        self._pairs = self._bad = 0

    @property
    def _grace(self) -> float:
        return self._images._grace

    @_grace.setter
    def _grace(self, grace: float) -> None:
        self._images._grace = self._masks._grace = grace

    def next(self) -> PairBatch | None:
        """The next batch; None at the end.

        Raises:
            SampleFailed: as ``Epoch.next``, of pairs.
            Unsupported: a mask's file has numbers that the daemon does not give.
            Error: as ``Epoch.next``.
        """
        images: Batch | None = None
        masks: Batch | None = None
        batch: PairBatch | None = None
        try:
            images, masks = self._images.next(), self._masks.next()
            if images is None and masks is None:
                return None
            if images is None or masks is None or not np.array_equal(images.ids, masks.ids):
                raise InternalError("images and masks came in several orders; please report it with the daemon's version")
            no_files = self._check_files(masks)
            batch = PairBatch(images, masks)
            if batch.position:
                batch.position = with_fingerprint(batch.position, self._dataset.fingerprint)
            self._judge(batch, no_files)
            if batch._held is not None:
                batch.prepared = self._prepare(batch)
            return batch
        finally:
            del images, masks, batch  # what the order raised may have this frame in its traceback: it would keep their slots

    def _check_files(self, masks: Batch) -> dict[int, str]:
        """Why masks that the daemon made are none, by position in the batch."""
        found = {}
        for number, sample in enumerate(masks.ids.astype(np.int64).tolist()):
            told = self._dataset.files.check(
                sample
            )  # of those that it could not make, too: grey that has no classes is nobody's bad sample
            if told and masks.status[number] == 0:
                found[number] = told
        return found

    def _judge(self, batch: PairBatch, no_files: Mapping[int, str]) -> None:
        pairs, ignores = self._dataset.pairs, batch.recipe.ignore_orientation
        bad = bad_pairs(batch, pairs.masks, no_files, ignores_orientation=ignores, drawn_upright=pairs.drawn_upright)
        self._pairs += len(bad)
        if not batch.bad:
            return
        self._bad += batch.bad
        example = f", for example {batch.errors[0].source}: {batch.errors[0].message}" if batch.errors else ""
        if self._how == "fail":
            told = as_failed(batch.errors[0]) if batch.errors else "a pair is bad"
        elif batch.bad == len(bad) and (self._tolerant or self._how == "substitute"):
            force = "no on_error was chosen" if self._tolerant else "on_error is substitute"
            told = f"no pair of the batch's {len(bad)} is good{example}; {force}: skip or zero go on all the same"
        elif self._tolerant and self._pairs >= _AFTER and self._bad * _TOLERATED > self._pairs:
            told = f"{self._bad} of {self._pairs} pairs are bad{example}; on_error= takes them"
        else:
            apply_error_policy(batch, bad, self._how, pairs.fill)
            return
        batch.release()
        raise SampleFailed(told, batch_id=batch.id, sample_errors=batch.errors)

    def stop(self) -> None:
        """Batches that are under way are dropped. Idempotent, never waits."""
        self._images.stop()
        self._masks.stop()
        if self._shared is not None:
            self._shared.close()


class _Shared:
    """An order that two epochs take, each at its pace. Belongs to the loop's thread."""

    def __init__(self, order: Iterable[Any]) -> None:
        self._order = iter(order)
        self._waiting: tuple[deque[Any], deque[Any]] = (deque(), deque())
        self._ended = False
        self._failed: Exception | None = None

    def reader(self, number: int) -> Iterator[Any]:
        return _Reader(self, number)

    def take(self, number: int) -> Any:
        """The next batch of one of the two. What the order raised comes in both.

        Raises:
            StopIteration: there is none. A new one each time: its traceback has frames that hold batches and their slots.
        """
        waiting = self._waiting[number]
        if not waiting and not self._ended:
            self._take_more()
        if waiting:
            return waiting.popleft()
        if self._failed is not None:
            raise self._failed
        raise StopIteration

    def _take_more(self) -> None:
        try:
            batch = next(self._order)
        except StopIteration:
            self._ended = True
        except Exception as why:
            self._ended, self._failed = True, why
        else:
            for each in self._waiting:
                each.append(batch)

    def close(self) -> None:
        """A generator is told that nothing is taken any more."""
        self._ended, self._failed = True, None
        if isinstance(self._order, Generator) and not getattr(self._order, "gi_running", False):
            self._order.close()


class _Reader:
    def __init__(self, shared: _Shared, number: int) -> None:
        self._shared, self._number = shared, number

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return self._shared.take(self._number)
