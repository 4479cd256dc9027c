"""What the loaders of all frameworks share: an iterable over epochs of a dataset, with state, ranks and reconnection.

A framework's loader says in ``_convert`` what becomes of a batch.
"""

from __future__ import annotations

import dataclasses
import os
import time
import weakref
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Generic, TypeVar

from millrace._bad_images import BadImages
from millrace._dtype import AnyDType, dtype_name
from millrace._messages import path_text
from millrace._position import for_rank
from millrace.batch import Batch
from millrace.client import connect
from millrace.dataset import Dataset
from millrace.epoch import Epoch
from millrace.errors import DaemonUnavailable, FailedPrecondition, InvalidRequest
from millrace.recipe import Fidelity, Layout, OnError, Recipe, ShardTail
from millrace.session import PATIENCE, Session

Item = TypeVar("Item")

_RETRY = 0.25  # seconds between attempts to reconnect
_STATE_VERSION = 1


@dataclasses.dataclass
class _Where:
    """After which batch of which epoch the loop is."""

    epoch: int
    position: bytes = b""
    batches: int = 0  # that the loop has got in this epoch
    begun: bool = False  # the loop is within the epoch, or was and left it


def ranks_of(rank: int | None, world_size: int | None) -> tuple[int, int]:
    """Rank and world size: as given, else $RANK and $WORLD_SIZE (torchrun sets them), else one rank."""
    if (rank is None) != (world_size is None):
        raise InvalidRequest("loader: give rank and world_size together, or neither of them")
    if rank is None or world_size is None:
        try:
            return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
        except ValueError as why:
            raise InvalidRequest(f"loader: RANK and WORLD_SIZE in the environment must be numbers: {why}") from why
    return rank, world_size


class BaseLoader(Generic[Item]):
    """An iterable over the batches of an epoch, as ``torch.utils.data.DataLoader`` is one; every ``iter()`` begins the next epoch.

    The daemon reads ahead as far as there are slots. What a loop gets is read-only memory of a slot, not a copy (unless the framework's
    loader says otherwise): keep it and its slot is missing; write to it and the process gets a SIGSEGV.

    It connects when it is first used, so it may be made before processes are started (``spawn``). Belongs to one thread.
    """

    _layout: Layout | None = None
    _moves = False  # whether _moved does anything

    def __init__(
        self,
        dataset: Any,
        transform: Recipe | None = None,
        *,
        batch_size: int = 64,
        shuffle: bool = False,
        seed: int = 0,
        rank: int | None = None,
        world_size: int | None = None,
        drop_last: bool = False,
        shard_tail: ShardTail = "pad",
        dtype: AnyDType | None = None,
        on_error: OnError | None = None,
        fidelity: Fidelity = "exact",
        slots: int = 4,
        address: str | os.PathLike[str] | None = None,
        resume: bool = False,
        resume_within: float = 60.0,
        timeout: float = PATIENCE,
        name: str = "",
    ) -> None:
        """Describes the loader; connects later.

        Args:
            dataset: a folder whose subfolders are the classes, beneath one of the daemon's roots; or torchvision's ``ImageFolder``.
            transform: what to make of each image, of a fixed size; None: ``Recipe.train(224)`` with ``shuffle``, else
                ``Recipe.evaluate(256, 224)``.
            batch_size: images in a batch (of this rank).
            shuffle: in an order drawn from (seed, epoch).
            seed: of the order, the boxes and the flips.
            rank: whose share; None: $RANK, else 0.
            world_size: among how many; None: $WORLD_SIZE, else 1.
            drop_last: leave out the last batch if it is not full.
            shard_tail: what becomes of samples that do not divide by the world size: ``pad``, ``drop`` or ``uneven`` (``Session.epoch``).
            dtype: of the images, instead of the transform's: uint8, float16, bfloat16 or float32, as a name or as NumPy's, PyTorch's or
                JAX's type.
            on_error: what a bad image does: ``fail`` raises ``SampleFailed`` and ends the loop, ``skip`` leaves it out, ``zero`` blanks it,
                ``substitute`` another. None: ``substitute`` with ``shuffle``, else ``skip``, as long as bad images are the exception: a
                batch without a good one raises ``SampleFailed``, and so does an epoch of which more than one image in 20 is bad, after
                at least 1,000. Each bad file is one ``BadImageWarning``, up to 20; ``bad`` counts them.
            fidelity: ``exact``, or ``fast``: 0.4 levels of 255 off on average, at most 64 (photographs).
            slots: batches in shared memory at once: the one in the loop, those that the loop keeps, and those read ahead.
            address: of the daemon; None: as ``millrace.connect``.
            resume: when the daemon goes away in the middle of an epoch, connect again and go on after the last batch.
            resume_within: seconds to try so.
            timeout: seconds to wait for one batch.
            name: for the daemon's statistics.

        Raises:
            InvalidRequest: an argument is wrong; says which.
        """
        self._path, self._classes = _folder_of(dataset)
        recipe = transform or (Recipe.train(224) if shuffle else Recipe.evaluate(256, 224))
        changes: dict[str, Any] = {"dtype": recipe.dtype if dtype is None else dtype_name(dtype), "layout": self._layout or recipe.layout}
        self.recipe = dataclasses.replace(recipe, **changes)
        """What is made of each image."""
        packed = self.recipe.packing == "packed" and self.recipe.patches is None
        if self.recipe.fixed_size is None or packed:
            raise InvalidRequest(
                "loader: the transform must make images of one size: end with an exact resize or a centre crop, not packed"
            )
        self.batch_size = batch_size
        """Images in a batch."""
        self.rank, self.world_size = ranks_of(rank, world_size)
        self._slots, self._address, self._name = slots, address, name or f"loader rank {self.rank}"
        self._resume, self._resume_within, self._timeout = resume, resume_within, timeout
        self._options: dict[str, Any] = {
            "batch": batch_size,
            "seed": seed,
            "shuffle": shuffle,
            "drop_last": drop_last,
            "rank": self.rank,
            "world_size": self.world_size,
            "shard_tail": shard_tail,
            "on_error": on_error,
            "fidelity": fidelity,
            "timeout": timeout,
        }
        self.batch: Batch | None = None
        """What the loop has got last, with ids, boxes, errors, ...; its slot is given back when the next one is asked for."""
        self._bad = BadImages()
        self._session: Session | None = None
        self._dataset: Dataset | None = None
        self._running: weakref.ref[Iterator[Item]] | None = None
        self._where = _Where(0)

    # ------------------------------------------------------------------------------------------------------------ the loop

    def __iter__(self) -> Iterator[Item]:
        previous = self._running() if self._running is not None else None
        if previous is not None:
            previous.close()  # type: ignore[attr-defined]
        iterator = self._iterate()
        self._running = weakref.ref(iterator)
        return iterator

    def _iterate(self) -> Iterator[Item]:
        where = _Where(self._where.epoch + 1) if self._where.begun else self._where
        where.begun = True
        self._where = where
        epoch = self._start()
        try:
            while True:
                self.batch = None
                self._reclaim()
                try:
                    batch = epoch.next()
                except DaemonUnavailable:
                    if not self._resume:
                        raise
                    epoch = self._start_again()
                    continue
                if batch is None:
                    break
                self._bad.note(batch)
                where.position = batch.position
                where.batches += 1
                item, batch.prepared = batch.prepared, None
                if item is not None:  # of some batches nothing is left, with on_error="skip"
                    self.batch = batch
                    del batch
                    yield self._moved(item) if self._moves else item
                    del item
            self._where = _Where(where.epoch + 1)
        finally:
            epoch.stop()

    def _start(self) -> Epoch:
        options = {**self._options, "epoch": self._where.epoch, "position": self._where.position, "prepare": self._convert}
        return self._opened().epoch(**options)

    def _start_again(self) -> Epoch:
        deadline = time.monotonic() + self._resume_within
        while True:
            self.close()
            try:
                return self._start()
            except DaemonUnavailable:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_RETRY)

    def _opened(self) -> Dataset:
        if self._session is not None and self._session.closed:
            self.close()
        if self._dataset is None:
            with connect(self._address) as client:
                self._session = client.session(self.recipe, self.batch_size, self._slots, name=self._name)
            self._dataset = self._session.dataset(self._path, timeout=self._timeout)
            if self._classes is not None and self._dataset.classes != self._classes:
                raise InvalidRequest(
                    f"loader: the daemon finds other classes in {path_text(self._path)} than the dataset object has; "
                    "give the folder's path instead, and take the labels' names from loader.classes"
                )
        return self._dataset

    def _convert(self, batch: Batch) -> Item:
        """What the loop gets of a batch, as far as it can be made ahead, in the session's thread."""
        raise NotImplementedError

    def _moved(self, item: Item) -> Item:
        """What the loop gets of it, in the loop's thread; with ``_moves``."""
        return item

    def _reclaim(self) -> None:
        """Lets go of slots that the framework needs no more. Called before the next batch is waited for."""

    # ------------------------------------------------------------------------------------------------------------ its shape

    @property
    def classes(self) -> tuple[str, ...]:
        """The labels' names."""
        return self._opened().classes

    @property
    def samples(self) -> int:
        """Images of this rank in an epoch."""
        whole, rest = divmod(len(self._opened()), self.world_size)
        tail = self._options["shard_tail"]
        return whole + (rest > 0 if tail == "pad" else tail == "uneven" and self.rank < rest)

    def __len__(self) -> int:
        """Batches of this rank in a whole epoch."""
        full, rest = divmod(self.samples, self.batch_size)
        return full + (rest > 0 and not self._options["drop_last"])

    @property
    def bad(self) -> int:
        """Bad images in the batches that the loops got, since the loader was made. ``loader.batch.errors`` says which and why."""
        return self._bad.count

    # ------------------------------------------------------------------------------------------------------------- its state

    @property
    def epoch(self) -> int:
        """The number of the epoch that is under way, or that the next ``iter()`` begins."""
        return self._where.epoch

    def set_epoch(self, epoch: int) -> None:
        """The next ``iter()`` begins that epoch, or goes on in it if a state within it was loaded. Without it they count up."""
        if self._where.begun or self._where.epoch != epoch:
            self._where = _Where(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Where the loop is: after the batch that it got last; what was read ahead does not count. Plain values, for JSON too."""
        return {
            "version": _STATE_VERSION,
            "epoch": self._where.epoch,
            "batches": self._where.batches,
            "position": self._where.position.hex(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The next ``iter()`` goes on after that batch. The state of any rank does for all, if they took batches in step.

        Raises:
            FailedPrecondition: the state is of another version. (A state of another dataset, seed, batch size, ... raises in ``iter()``.)
            InvalidRequest: it is damaged.
        """
        if state.get("version") != _STATE_VERSION:
            raise FailedPrecondition(f"loader: a state of version {state.get('version')}, this package reads version {_STATE_VERSION}")
        try:
            position, epoch, batches = bytes.fromhex(state["position"]), int(state["epoch"]), int(state["batches"])
        except (KeyError, TypeError, ValueError) as why:
            raise InvalidRequest(f"loader: the state is damaged: {why!r}") from why
        self._where = _Where(epoch, for_rank(position, self.rank), batches)

    # ---------------------------------------------------------------------------------------------------------- its life

    def close(self) -> None:
        """Ends the session with the daemon; the next use connects again. Idempotent."""
        session, self._session, self._dataset, self.batch = self._session, None, None, None
        if session is not None:
            session.close()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_session": None, "_dataset": None, "_running": None, "batch": None}


def _folder_of(dataset: Any) -> tuple[str, tuple[str, ...] | None]:
    """The path, and the classes if they are known already."""
    if isinstance(dataset, (str, bytes, os.PathLike)):
        return os.fsdecode(os.path.abspath(dataset)), None
    root, classes = getattr(dataset, "root", None), getattr(dataset, "classes", None)
    if isinstance(root, (str, bytes, os.PathLike)) and classes is not None:
        return os.fsdecode(os.path.abspath(root)), tuple(classes)
    raise InvalidRequest(f"loader: dataset is a folder's path or torchvision's ImageFolder, not a {type(dataset).__name__}")
