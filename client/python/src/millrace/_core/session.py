"""One consumer's session with the daemon: shared memory for its batches and one stream of messages."""

from __future__ import annotations

import itertools
import os
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from types import TracebackType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from millrace._core import full_slots as _full_slots
from millrace._core.batch import Batch
from millrace._core.cost import Cost, session_cost
from millrace._core.dataset import Dataset
from millrace._core.dataset_requests import Datasets
from millrace._core.epoch import Epoch
from millrace._core.findings import SaysWhy
from millrace._core.given_order import GivenOrder, OrderedBatch
from millrace._core.inbox import Inbox
from millrace._core.opening import open_session
from millrace._core.session_wire import Wire, leave, outgoing_queue
from millrace._memory.segment import Segment
from millrace._process import fork as _fork
from millrace._wire import messages, schema
from millrace._wire.calls import channel_to, told_of
from millrace._wire.daemon_knowledge import DaemonKnowledge
from millrace._wire.handoff import HandoffConnection, left
from millrace._wire.limits import Limits
from millrace.errors import Cancelled, Error, Forked, InvalidRequest, ResourceExhausted
from millrace.recipe import Fidelity, OnError, Priority, Recipe, ShardTail, Shuffle, described
from millrace.ring import Ring, whole_pages
from millrace.samples import AnyPath, Part, Sample, Source

T = TypeVar("T")
HOST = "host"
PATIENCE = 120.0
"""Seconds that calls which wait for the daemon's work do so unless told otherwise; then ``DeadlineExceeded``."""


class Session(SaysWhy):
    """Made by ``Client.session``; thread-safe; a context manager.

    If the daemon goes away, every call that waits and every later one gets ``DaemonUnavailable`` at once; batches that exist stay readable.
    Closing cancels what is under way. A process that dies, however it dies, leaves nothing behind.
    """

    def __init__(
        self,
        path: str,
        recipe: Recipe,
        batch: int,
        slots: int,
        slot_bytes: int,
        name: str,
        timeout: float,
        *,
        writable: bool,
        asked: dict[str, Any],
    ) -> None:
        deadline = time.monotonic() + timeout
        self._path, self._recipe, self._batch = path, recipe, batch
        self._numbers = itertools.count(1)
        self._forked = False
        self._end: weakref.finalize[..., Session] | None = None
        connection = HandoffConnection(path, deadline)
        try:
            channel = channel_to(path)
            fields = {"ticket": connection.ticket, "name": messages.text_bytes(name), "slots": slots, "slot_bytes": slot_bytes, **asked}
            opened = open_session(channel, schema.OpenSessionRequest(**fields), path, deadline)
            self._knowledge = DaemonKnowledge(opened)
            memory = asked.get("memory", "")
            self._segment: Segment | None = Segment(connection, deadline, writable=writable and not memory)
            if memory:
                self._segment.receive_device_memory(opened, memory, deadline)
        except BaseException as why:
            told = told_of(why, path, connection)
            connection.close()
            if isinstance(why, (TypeError, ValueError)) and not isinstance(why, Error):
                raise InvalidRequest(f"session: {why}") from why
            raise told from why.__cause__
        self.id: int = opened.session_id
        """The daemon's number for it, as in its statistics and log."""
        self.limits: Limits = Limits.told(opened)
        """What the daemon takes in one request."""
        self._undecoded = frozenset(opened.undecoded)  # what names of pictures end with that the daemon does not decode
        self.slot_bytes: int = opened.slot_bytes
        """Room for one batch's tensor and records; in a GPU's memory for the tensor alone."""
        self.memory_name: str = memory or HOST
        """Where the batches' tensors lie: ``"host"``, or the daemon's name of a GPU, ``"cuda:0"``."""
        outgoing = outgoing_queue()
        self._inbox = Inbox(self._segment, outgoing, self._knowledge)
        self._wire = Wire(path, channel, self._inbox, outgoing, connection.ticket, connection.take_replies())
        self._datasets = Datasets(self)
        self._wire.farewell = self._end = weakref.finalize(self, leave, self._segment, self._wire)
        _fork.register(self)
        try:
            self._inbox.wait(self._inbox.take_attached, left(deadline), "session")
        except BaseException as why:
            told = told_of(why, path, connection)
            self.close()
            raise told from why.__cause__

    # ------------------------------------------------------------------------------------------------------- batch by batch

    def submit(
        self,
        samples: Iterable[Sample | Source],
        *,
        recipe: Recipe | None = None,
        seed: int = 0,
        epoch: int = 0,
        on_error: OnError = "fail",
        fidelity: Fidelity = "exact",
        priority: Priority = "normal",
        deadline: float | None = None,
        backend: str = "",
    ) -> int:
        """Asks for a batch and returns its number at once; ``get`` brings it.

        Args:
            samples: paths, bytes (``limits.inline_bytes`` in all), room in a ring, ``DatasetSample``; or ``Sample`` with id and label.
            recipe: instead of the session's.
            seed: of the random choices, which depend on (seed, epoch, sample id) and on nothing else.
            epoch: the same.
            on_error: what becomes of images that cannot be read or decoded: ``fail`` the batch, ``skip`` them, leave ``zero`` bytes, or
                ``substitute`` the nearest good one.
            fidelity: ``exact``, equal to Pillow's pixels bit by bit, or ``fast``: 0.4 levels of 255 off on average, at most 64
                (photographs). The picture of several views is decoded as for ``exact``, and resampled as for ``fast``.
            priority: ``high`` for interactive serving, ``low`` for whatever is left over.
            deadline: seconds from receipt by the daemon; None: none.
            backend: pin to this one (``"cpu"``, ``"cuda:0"``) or to all of a type (``"cuda"``); an image that it does not make is then bad.
                Empty: the daemon places.

        Raises:
            InvalidRequest: malformed, or more than ``limits`` allow: names the daemon's setting.
            ResourceExhausted: the daemon does not take messages any faster.
            Unsupported: the daemon is older and does not know something that is asked for; names it.
            DaemonUnavailable: it is gone. All else that is wrong with the request comes from ``get``.
        """
        self._check()
        number = next(self._numbers)
        message = schema.ClientMessage()
        submit = message.submit
        rooms, images = messages.fill_samples(submit.samples, samples)
        used = recipe or self._recipe
        submit.recipe.CopyFrom(messages.recipe_message(used))
        messages.fill_choices(submit, seed, epoch, fidelity, priority, backend)
        submit.on_error = messages.on_error_number(on_error)
        submit.batch_id = number
        if deadline is not None:
            submit.deadline_ms = max(1, min(int(deadline * 1000), 2**32 - 1))
        self._knowledge.check(message)
        parts = self.limits.checked_parts(message, images)
        self._inbox.expect_batch(number, used, rooms)
        self._wire.send_now(parts)
        return number

    def get(self, batch_id: int | None = None, timeout: float | None = None) -> Batch:
        """That batch; without a number whichever of the submitted ones has ended first.

        Args:
            batch_id: what ``submit`` returned.
            timeout: seconds; None: two minutes. When batches that were taken have held all slots for two seconds of it, they become
                copies, with a warning (``SlotsHeld``), and the wait goes on.

        Raises:
            SampleFailed: an image of it is bad, with ``on_error="fail"``; ``sample_errors`` says which.
            DeadlineExceeded: not within ``timeout``, or not within the batch's own deadline.
            NotFound: never submitted here, or taken already.
            FailedPrecondition: without a number, and none is under way.
            DaemonUnavailable: it went away.
        """
        take, patience = partial(self._inbox.take_batch, batch_id), PATIENCE if timeout is None else timeout
        outcome: Batch | Error = self._inbox.waits.timed(lambda: self._wait(take, patience, "get", _full_slots.SHARED))
        if isinstance(outcome, Error):
            try:
                raise outcome
            finally:
                del outcome  # a cycle of exception and frame would keep the callers' batches until the next garbage collection
        return outcome

    def cancel(self, batch_id: int) -> None:
        """Drops a batch: what has not begun does not begin. ``get`` still ends, with ``Cancelled`` unless it was on its way."""
        self._send(schema.ClientMessage(cancel={"batch_id": batch_id}))

    def _give_up(self, batch_id: int) -> None:
        """Nobody will take that batch: it is cancelled if it is under way, and what comes of it is let go."""
        if self._inbox.forget_batch(batch_id):
            self.cancel(batch_id)

    def ring(self, size: int, timeout: float = PATIENCE) -> Ring:
        """Shared memory of ``size`` bytes for encoded images, once a session.

        Raises:
            ResourceExhausted: no memory for it, or more than the daemon allows.
            FailedPrecondition: the session has one already.
        """
        self._check()
        pages, segment = whole_pages(size), self._segment
        if segment is None:
            raise Cancelled("the session was closed")
        memfd = segment.request_ring(pages, time.monotonic() + timeout)
        try:
            return Ring(memfd, pages)
        finally:
            os.close(memfd)

    # ------------------------------------------------------------------------------------------------------ epoch by epoch

    def dataset(
        self,
        path: AnyPath,
        extensions: Iterable[str] | None = None,
        *,
        unclassified: bool = False,
        progress: Callable[[int], None] | None = None,
        timeout: float = PATIENCE,
    ) -> Dataset:
        """Lists a folder tree in the daemon, as torchvision's ``ImageFolder`` does unless told otherwise.

        Files that are no samples are in ``Dataset.skipped``; without ``extensions`` a ``SkippedFilesWarning`` tells of them, once.

        Args:
            path: beneath one of the daemon's roots; a relative one is made absolute. Any folder's name: ``bytes``, or as ``os`` has it.
            extensions: what the samples' names end with, in any case, with or without the dot: ``"jpg"``, ``(".JPG", "png")``; None: the
                pictures that the daemon decodes (jpg, png, webp, ...); ``"*"``: every file.
            unclassified: where there are class folders, files beside them are samples, too, with the label -1.
            progress: called now and then with the number of files seen so far; None: tqdm's bar in a terminal or notebook, after a second.
            timeout: seconds for the whole listing.

        Raises:
            PermissionDenied: outside the daemon's roots, which it names, or not readable by this user.
            NotFound: there is no such folder, or no sample in it: says what was skipped.
            InvalidRequest: a URL, or extensions that are none.
        """
        return self._datasets.of_folder(path, extensions, unclassified, progress, timeout)

    def dataset_of(
        self,
        paths: Sequence[AnyPath | Part],
        labels: Any = None,
        *,
        progress: Callable[[int], None] | None = None,
        timeout: float = PATIENCE,
    ) -> Dataset:
        """Gives the daemon a list of files, or of parts of files, as a dataset: sample i is ``paths[i]``, with the label ``labels[i]``.

        A file may be in it more than once; a missing one is its sample's error when it is read. The daemon keeps 17 bytes a sample beside
        the paths (without the folder that they have in common). Absolute ``str`` or ``bytes`` are quickest.

        Args:
            paths: beneath the daemon's roots; relative ones are made absolute. ``millrace.Part(path, offset, length)`` is a part of a file.
            labels: integers, as many, a NumPy array of them for instance; None: -1 for all.
            progress: called now and then with the number of files that the daemon has taken.
            timeout: seconds for all.

        Raises:
            PermissionDenied: a path outside the daemon's roots: which, and which roots there are.
            InvalidRequest: a path that is none, labels that are no integers or not as many; an empty list.
            ResourceExhausted: more files than the daemon takes, or no memory for them: names the setting.
        """
        return self._datasets.of_files(paths, labels, progress, timeout)

    def epoch(
        self,
        dataset: Dataset,
        *,
        order: Iterable[Sequence[int] | NDArray[Any] | OrderedBatch] | None = None,
        batch: int | None = None,
        recipe: Recipe | None = None,
        seed: int = 0,
        epoch: int = 0,
        shuffle: Shuffle = False,
        drop_last: bool = False,
        rank: int = 0,
        world_size: int = 1,
        shard_tail: ShardTail = "pad",
        on_error: OnError | None = None,
        fidelity: Fidelity = "exact",
        priority: Priority = "normal",
        position: bytes = b"",
        backend: str = "",
        batches: int = 0,
        timeout: float = PATIENCE,
        prepare: Callable[[Batch], Any] | None = None,
    ) -> Epoch:
        """Begins one pass over a dataset at once; errors come from its first batch.

        Epochs under way share the session's slots: take batches from all of them (one thread each), or give each a session of its own.

        Args:
            dataset: of this session.
            order: the caller's own: batches, each at most ``batch`` numbers of samples, which may come more than once; taken some batches
                ahead, by the thread that takes the epoch's. Then ``shuffle``, ``drop_last``, ``rank``, ``world_size``, ``shard_tail``,
                ``position`` and ``batches`` are not for it, and batches have no ``position``. None: the daemon's.
            batch: samples; None: the session's.
            recipe: instead of the session's.
            seed: of the order and of the random choices.
            epoch: its number, which changes both.
            shuffle: in an order drawn from (seed, epoch); ``"blocks"``: as ``BlockShuffle()``, see there.
            drop_last: leave out the last batch if it is not full.
            rank: whose share of the samples, 0 ... world_size - 1.
            world_size: among how many.
            shard_tail: what becomes of samples that do not divide by it: ``pad`` with the first ones again (as DistributedSampler),
                ``drop``, or ``uneven``: the first ranks get one more.
            on_error: as for ``submit``. None: ``substitute`` with ``shuffle``, else ``skip``, as long as bad images are the exception: a
                batch without a good one fails, and so does the epoch once more than one image in 20 is bad, after at least 1,000 (a
                wrong root looks like that; where a position goes on the count begins anew), or when the daemon's root is not there.
            fidelity: as for ``submit``.
            priority: as for ``submit``.
            position: goes on after the batch that carried it (``Batch.position``); empty: from the start.
            backend: as for ``submit``.
            batches: stop after so many; 0: the whole epoch.
            timeout: seconds to wait for one batch.
            prepare: called with every batch as it arrives, in the session's own thread; what it returns is in ``Batch.prepared``.
        """
        self._check()
        if dataset._session is not self:
            raise InvalidRequest("epoch: the dataset is of another session; open it in this one")
        number, message = next(self._numbers), schema.ClientMessage()
        start = message.start_epoch
        used = recipe or self._recipe
        start.recipe.CopyFrom(messages.recipe_message(used))
        messages.fill_choices(start, seed, epoch, fidelity, priority, backend)
        if on_error is not None:
            start.on_error = messages.on_error_number(on_error)
        try:
            start.stream_id, start.dataset_id, start.first_batches = number, dataset.id, batches
            start.batch_size = self._batch if batch is None else batch
            messages.fill_shuffle(start, shuffle)
            start.rank, start.world_size, start.drop_last, start.position = rank, world_size, drop_last, position
        except (TypeError, ValueError) as why:
            raise InvalidRequest(f"epoch: {why}") from why
        start.shard_tail = messages.shard_tail_number(shard_tail)
        given = GivenOrder(order, start, len(dataset), self.slots, self._send) if order is not None else None
        self._knowledge.check(message)
        state = self._inbox.expect_epoch(number, used, prepare)
        self._send(message)
        return Epoch(self, dataset, start, state, timeout, given)

    # ------------------------------------------------------------------------------------------------------------ the session

    def memory(self) -> NDArray[np.uint8]:
        """The session's whole shared memory, uint8, read-only, the same array every time; for page-locking, not for reading batches.

        Batches lie in it with ``writable=False``; else each is in a copy-on-write mapping of the same memory, at other addresses. A slot is
        mapped there when the first batch comes in it: page-lock what a batch lies in, not the whole, most of which may be zeros still.
        Where the tensors are in a GPU's memory it has the records alone.

        Raises:
            Cancelled: the session was closed.
        """
        if self._segment is None:
            raise Cancelled("the session was closed")
        return self._segment.bytes

    def slot_of(self, address: int) -> tuple[int, int]:
        """The address and the bytes of the slot in ``memory()`` in which an address of a batch is; for page-locking it.

        Raises:
            Cancelled: the session was closed.
        """
        if self._segment is None:
            raise Cancelled("the session was closed")
        return self._segment.slot_of(address)

    @property
    def slots(self) -> int:
        """Batches that may be finished or under way at once.

        Their memory is filled one slot after the other, and batches wait for it. Where the host has no room for the later ones they are
        fewer from then on, with a ``SlotsWithdrawn`` warning for the caller that waits for a batch; with 0 every batch fails.
        """
        return self._inbox.slots

    def cost(self, timeout: float = 5.0) -> Cost | None:
        """What it has cost the daemon until now; None: the daemon is older. Raises DaemonUnavailable: the session is over."""
        self._check_fork()
        return session_cost(self._path, self.id, timeout)

    @property
    def leased(self) -> int:
        """Slots that this process holds, in batches and arrays that are alive."""
        segment = self._segment
        return sum(end() is not None for end in tuple(segment.leases)) if segment is not None else 0

    @property
    def closed(self) -> bool:
        """Whether nothing can be asked of it any more."""
        return self._forked or self._inbox.ended

    def close(self, timeout: float = 5.0) -> None:
        """Cancels what is under way and ends the session. Batches that were taken stay readable. Idempotent."""
        if self._end is not None and self._end.detach() is not None:
            if self._segment is not None:
                self._segment.say_goodbye()
            self._wire.close(timeout)
            self._inbox.drop()
            self._segment = None  # unmapped now, or with the last batch that was taken

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def after_fork_in_child(self) -> object:
        """For the child of a fork: it may not use the session."""
        self._forked = True
        if self._end is not None:
            self._end.detach()
        self._wire.after_fork_in_child()
        return self._wire

    def _check_fork(self) -> None:
        if self._forked:
            raise Forked("this session belongs to the process that forked this one; connect anew after fork()")

    def _check(self) -> None:
        self._check_fork()
        if (end := self._inbox.end) is not None:
            raise end
        if self._wire.congested:
            raise ResourceExhausted("the daemon does not take messages any faster; take batches with get() between submits")

    def _send(self, message: Any) -> None:
        if not self._forked:
            self._wire.send(message)

    def _wait(self, take: Callable[[], Any], timeout: float, what: str, grace: float | None = None) -> Any:
        self._check_fork()
        return self._inbox.wait(take, timeout, what, grace)

    def _stop_epoch(self, stream: int) -> None:
        self._send(schema.ClientMessage(stop_epoch={"stream_id": stream}))

    def _close_dataset(self, dataset: int) -> None:
        if not self.closed:  # else destructors may call, which at the interpreter's end have no modules any more
            self._wire.send(schema.ClientMessage(close_dataset={"dataset_id": dataset}))

    def __repr__(self) -> str:
        batches = f"batches of {self._batch} images{described(self._recipe)}"
        slots = f"{self.slots} slots of {self.slot_bytes / 1e6:.3g} MB"
        return f"<millrace.Session {self.id}: {batches}, {slots}{', closed' if self.closed else ''}>"
