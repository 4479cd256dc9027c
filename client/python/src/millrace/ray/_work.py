"""What the stages have in common: what is to be made of images, a session for it, and batches as Arrow's tables.

    slot of shared memory <-- NumPy view <-- Arrow buffer <-- table <-- Ray's block, until Ray has written it into its object store

Nothing here copies pixels: a table's tensors are the slot's memory, and keep the slot. Ray's writing is the one copy.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import math
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray
from ray.data.block import BlockAccessor
from ray.data.context import DataContext

import millrace
from millrace.errors import DaemonUnavailable, InvalidRequest, NotFound, PermissionDenied, SampleError
from millrace.ray._node import Daemon, DaemonLost
from millrace.recipe import DTYPE_BYTES, CacheUse, Fidelity, Recipe, check_choice

OnBad = Literal["fail", "zero", "skip"]
"""What becomes of images that cannot be read or decoded."""

log = logging.getLogger("millrace.ray")
_KEPT_IDLE = 5.0  # seconds that a session without a task stays open
_SLOTS_MOST = 64
_BATCH_BYTES, _BATCH_MOST = 64 << 20, 1024  # of a slot, unless told otherwise
_READ_AHEAD = 2  # batches beside those in Ray's hands
_TOLD_MOST = 3  # bad images that a line of the log names


@dataclass(frozen=True)
class Work:
    """What is to be made of images, and how. A value; goes to the nodes.

    Attributes:
        recipe: of one size.
        batch: images that the daemon makes at a time: one slot.
        on_error: see ``OnBad``.
        column: of the tensors; of a recipe with views see ``columns``.
        error_column: of the reasons; empty: none.
        seed: of random crops, flips and augmentations.
        epoch: likewise.
        daemon: on each node.
        options: of the session and of requests.
    """

    recipe: Recipe
    batch: int
    on_error: OnBad
    column: str
    error_column: str
    seed: int
    epoch: int
    daemon: Daemon
    fidelity: Fidelity
    cache: CacheUse

    @property
    def columns(self) -> list[str]:
        """Of the tensors: ``column``, or with views ``column_0``, ``column_1``, ..., one for each."""
        return [f"{self.column}_{number}" for number in range(len(self.recipe.views))] or [self.column]

    def check(self, what: str) -> None:
        """Refuses what cannot be honoured, before Ray starts anything.

        Raises:
            InvalidRequest: says which argument, and what to do.
        """
        image_bytes(self.recipe, what)
        check_choice(f"{what}: on_error", self.on_error, get_args(OnBad))
        check_choice(f"{what}: fidelity", self.fidelity, get_args(Fidelity))
        check_choice(f"{what}: cache", self.cache, get_args(CacheUse))
        if not isinstance(self.daemon, Daemon):
            raise InvalidRequest(f"{what}: daemon is a millrace.ray.Daemon, not {self.daemon!r}")
        for name in ("batch", "seed", "epoch"):
            value, least = getattr(self, name), 1 if name == "batch" else 0
            if not isinstance(value, int) or not least <= value < 1 << 63:
                shown = "batch_size" if name == "batch" else name
                raise InvalidRequest(f"{what}: {shown} is a whole number from {least} on, not {value!r}")
        if self.error_column and self.on_error != "zero":
            raise InvalidRequest(f'{what}: reasons have a row with on_error="zero" only: take include_errors out, or say that')

    def submit(self, session: millrace.Session, samples: list[millrace.Sample]) -> int:
        """Asks for one batch."""
        return session.submit(samples, recipe=self.recipe, seed=self.seed, epoch=self.epoch, on_error=self.on_error, fidelity=self.fidelity)


def image_bytes(recipe: Recipe, what: str) -> int:
    """Of one image's tensor, or of all its views'.

    Raises:
        InvalidRequest: the tensors are not of one shape, or not of a type that Arrow has.
    """
    if not isinstance(recipe, Recipe):
        raise InvalidRequest(f"{what}: recipe is a millrace.Recipe (millrace.torch.from_torchvision makes one), not {recipe!r}")
    sizes = [view.fixed_size for view in recipe.views or (recipe,)]
    if None in sizes or recipe.packing != "one_size" or recipe.patches is not None:
        raise InvalidRequest(
            f"{what}: a column has tensors of one shape: give a recipe that makes images of one size (centre_crop=, or resize=ExactSize), "
            'with packing="one_size" and without patches'
        )
    if recipe.dtype == "bfloat16":
        raise InvalidRequest(f"{what}: Arrow has no bfloat16: make float16 or float32, or uint8 and convert on the device")
    pixels = sum(size.width * size.height for size in sizes if size is not None)
    return pixels * (1 if recipe.channels == "grey" else 3) * DTYPE_BYTES[recipe.dtype]


def batch_of(recipe: Recipe, what: str, most: int = _BATCH_MOST) -> int:
    """Images of a slot, unless told otherwise: 64 MiB, and not more than ``most``. A power of two. Raises as ``image_bytes``."""
    return 1 << (max(1, min(_BATCH_BYTES // image_bytes(recipe, what), _BATCH_MOST, most)).bit_length() - 1)


# ------------------------------------------------------------------------------------------------------------- sessions


class Opened:
    """A session and, once it is asked for, its ring. Belongs to one task at a time."""

    def __init__(self, session: millrace.Session) -> None:
        self.session = session
        self.since = 0.0
        """When the last task was done with it."""
        self._ring: millrace.Ring | None = None

    def ring(self, size: int) -> millrace.Ring:
        """Room for encoded images. Raises as ``Session.ring``."""
        if self._ring is None:
            self._ring = self.session.ring(size)
        return self._ring


class Sessions:
    """This process's sessions, kept a while for the next task. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[tuple[Any, Opened]] = []
        self._sweeping = False

    @contextlib.contextmanager
    def open(self, work: Work, slots: int) -> Iterator[Opened]:
        """A session with so many slots, the caller's alone, in the daemon of this node.

        Raises:
            DaemonLost: the daemon went away, at the beginning or in the block.
        """
        key = (work.recipe, work.batch, slots, work.daemon, work.cache)
        opened = self._take(key)
        try:
            if opened is None:
                with millrace.connect(work.daemon.address_here()) as client:
                    opened = Opened(client.session(work.recipe, work.batch, slots, name="ray", cache=work.cache))
            yield opened
        except BaseException as why:
            if opened is not None:
                opened.session.close()
            if isinstance(why, DaemonUnavailable) and not isinstance(why, DaemonLost):
                raise DaemonLost(f"{why}; Ray runs the task again") from why
            raise
        self._give(key, opened)

    def _take(self, key: Any) -> Opened | None:
        with self._lock:
            for position in reversed(range(len(self._idle))):
                if self._idle[position][0] == key and not self._idle[position][1].session.closed:
                    return self._idle.pop(position)[1]
        return None

    def _give(self, key: Any, opened: Opened) -> None:
        opened.since = time.monotonic()
        with self._lock:
            self._idle.append((key, opened))
            if not self._sweeping:
                self._sweeping = True
                threading.Thread(target=self._sweep, name="millrace-sessions", daemon=True).start()

    def _sweep(self) -> None:
        while self._sweeping:
            time.sleep(_KEPT_IDLE / 5)
            before = time.monotonic() - _KEPT_IDLE
            with self._lock:
                old = [one for one in self._idle if one[1].since < before or one[1].session.closed]
                self._idle = [one for one in self._idle if one not in old]
                self._sweeping = bool(self._idle)
            for _, opened in old:
                opened.session.close()

    def close(self) -> None:
        """All that are idle."""
        with self._lock:
            kept, self._idle = self._idle, []
        for _, opened in kept:
            opened.session.close()


SESSIONS = Sessions()
atexit.register(SESSIONS.close)


def slots_for(work: Work, images: int | None = None) -> int:
    """Slots with which Ray never waits for one: it keeps the block before while it gathers batches for the next.

    Of batches so small that a block has more of them than that, some are copied (``full``). ``images``: of one task; None: there is no end.
    """
    target: int | None = DataContext.get_current().target_max_block_size
    batches = math.ceil(images / work.batch) if images is not None else _SLOTS_MOST
    if target is None:  # a task's output is one block
        return min(batches, _SLOTS_MOST)
    of_a_block = target // (work.batch * image_bytes(work.recipe, "")) + 1
    return min(batches, 2 * of_a_block + _READ_AHEAD, _SLOTS_MOST)


def full(opened: Opened) -> bool:
    """Whether Ray has all slots of the session, so that the next batch would wait until it has written a block.

    Slots of batches that have come and were not taken yet are not Ray's: they need no other one.
    """
    return opened.session._inbox.all_taken()


# --------------------------------------------------------------------------------------------------------------- batches


class BadImages:
    """Of one task: counted, and said in the log, which Ray shows on the driver. No image is dropped without a word."""

    def __init__(self, work: Work) -> None:
        self._done = {"zero": "are zeros", "skip": "are left out", "fail": "failed"}[work.on_error]
        self.images = 0
        self.bad = 0
        self._examples: list[str] = []

    def note(self, batch: millrace.Batch, images: int) -> None:
        """Counts those of a batch of so many.

        Raises:
            PermissionDenied, NotFound, DaemonUnavailable: it is not the images that are wrong.
        """
        self.images += images
        self.bad += batch.bad
        for error in batch.errors:
            _raise_if_not_the_image(error, all_missing=batch.bad == images)
            if len(self._examples) < _TOLD_MOST:
                self._examples.append(f"{error.source}: {error.message}")

    def say(self) -> None:
        """In the log, if there were some."""
        if self.bad:
            rest = self.bad - len(self._examples)
            told = "; ".join([*self._examples, *([f"and {rest} more"] if rest else [])])
            log.warning("millrace.ray: %d of %d images %s: %s", self.bad, self.images, self._done, told)


def _raise_if_not_the_image(error: SampleError, *, all_missing: bool) -> None:
    if error.code == "PERMISSION_DENIED":
        raise PermissionDenied(str(error), sample_errors=[error])
    if error.code == "UNAVAILABLE":
        raise DaemonUnavailable(str(error), sample_errors=[error])
    if error.code == "NOT_FOUND" and all_missing:
        raise NotFound(f"{error}; every node has to have the files at the same paths", sample_errors=[error])


def pixels(batch: millrace.Batch, *, copied: bool) -> list[NDArray[Any]]:
    """The batch's tensors, one array for each of ``Work.columns``, in the slot's own memory unless ``copied``."""
    views = [view.numpy() for view in batch.views]
    return [view.copy() for view in views] if copied else views


def column_of(images: NDArray[Any]) -> Any:
    """An Arrow column of the very same memory."""
    return BlockAccessor.batch_to_block({"": images}).column("")


def reasons(batch: millrace.Batch) -> list[str | None]:
    """Why each image of a batch is blank; None: it is not."""
    found: list[str | None] = [None] * len(batch)
    for error in batch.errors:
        found[error.index] = error.message
    for index in np.flatnonzero(batch.status):  # of more than a thousand the first ones have their words
        found[index] = found[index] or f"bad: code {batch.status[index]}"
    return found


def places(batch: millrace.Batch) -> list[int]:
    """Where each image of the batch was in the request."""
    return cast("list[int]", batch.records["index"].tolist())
