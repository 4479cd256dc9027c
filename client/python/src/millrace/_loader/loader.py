"""What the loaders of all frameworks share: an iterable over epochs of a dataset, with state, ranks and reconnection.

A framework's loader says in ``_convert`` what becomes of a batch.
"""

from __future__ import annotations

import dataclasses
import functools
import time
import weakref
from collections.abc import Callable, Generator, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import DTypeLike

from millrace._core.batch import Batch
from millrace._core.epoch import Epoch
from millrace._core.findings import LoaderSaysWhy
from millrace._core.session import HOST, Session
from millrace._data.columns import Labels, each_column, selected
from millrace._data.dataset_argument import AnyDataset, Listed, given_of
from millrace._loader.bad_images import BadImages
from millrace._loader.beginning import begin, order_of, samples_of
from millrace._loader.costs import Costed, Costs
from millrace._loader.dataloader_arguments import check_dataloader_arguments, check_samplers
from millrace._loader.feed import Feed
from millrace._loader.loop import Loop
from millrace._loader.options import DEFAULTS, LoaderOptions, Options, called, whole_number
from millrace._loader.order import OrderState, SamplerOrder
from millrace._loader.progress import Progress
from millrace._loader.ranks import Ranks, given_ranks, ranks_of_environment
from millrace._loader.reads_dataset import ReadsDataset
from millrace._process.warn import warn
from millrace._recipe.dtype import dtype_name
from millrace._transforms.transform import AnyTransform, check_one_size, recipe_of
from millrace._wire.messages import path_text
from millrace.client import Client, connect
from millrace.errors import DaemonUnavailable, FailedPrecondition, InvalidRequest, NotFound, ResourceExhausted, Unsupported
from millrace.recipe import Layout, described

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

Item = TypeVar("Item")

_RETRY = 0.25  # seconds between attempts to reconnect


class BaseLoader(Costed, LoaderSaysWhy, ReadsDataset, Generic[Item]):
    """An iterable over the batches of an epoch, as ``torch.utils.data.DataLoader`` is one.

    Every ``iter()`` begins the next epoch, also after a loop that was left early; a loop that ended with an exception of ``next`` is
    repeated. It ends the loop that is running, whose next ``next`` raises ``FailedPrecondition``. The daemon reads ahead as far as there
    are slots. What a loop gets is memory of a slot, not a copy (unless the framework's loader says otherwise). It may be written to: pages
    that are written become this process's own, and go with the batch. Keep it and its slot is missing; when a loop keeps so many that no
    slot is left, they become copies, with a warning (``SlotsHeld``).
    It connects when it is first used, so it may be made before processes are started (``spawn``). Belongs to one thread.
    """

    _layout: Layout | None = None
    _moves = False  # whether _moved does anything
    _shares = False  # batches are copied on from the shared mapping, which may be page-locked, and never seen by the loop
    _label_type: DTypeLike = np.int64

    def __init__(self, dataset: AnyDataset | None = None, transform: AnyTransform | None = None, **options: Unpack[LoaderOptions]) -> None:
        """Describes the loader; connects later.

        Args:
            dataset: see ``AnyDataset``.
            transform: what to make of each image, of a fixed size: a recipe, or another library's transforms; None: the dataset's own,
                else ``Recipe.evaluate(256, 224)``.
            options: see ``Options``.

        Raises:
            InvalidRequest: an argument is wrong; says which.
            Unsupported: a transform is not something that the daemon does; says which.
        """
        check_dataloader_arguments(called(type(self)), options, DEFAULTS)
        check_samplers(called(type(self)), options)
        if options.get("batch_sampler") is not None:
            options.setdefault("batch_size", getattr(options["batch_sampler"], "batch_size", 0))
        self._options = Options(**options)
        if isinstance(transform, int):
            recipe_of(transform, None)
        self._data = given_of(dataset, options.get("samples"), in_blocks=options.get("shuffle") == "blocks")
        self._order = order_of(self._options, options, self._data)
        self._after: Callable[[], OrderState | None] | None = None  # where the order of the running loop is, a batch later
        recipe = recipe_of(transform, self._data.transform)
        dtype = recipe.dtype if self._options.dtype is None else dtype_name(self._options.dtype)
        self.recipe = dataclasses.replace(recipe, dtype=dtype, layout=self._layout or recipe.layout)
        """What is made of each image."""
        check_one_size(self.recipe)
        self._data.check(self.recipe, self._options)
        self._given_ranks = given_ranks(self._options.rank, self._options.world_size)
        self._loops_ranks: Ranks | None = None  # of the loop that is running
        self.batch: Batch | None = None
        """Of the loop's current turn, whose slot is given back when the next one is asked for; None outside of the loop. Who takes batches
        ahead of their use (a thread, a wrapper) keeps this object in its turn, with what the loop got: later there is another one.
        """
        self._bad, self._costs = BadImages(), Costs()
        self._session: Session | None = None
        self._told_of_memory = False  # that the GPU's cannot be had
        self._listed: Listed | None = None
        self._listed_as: Any = None  # what the dataset was made of then
        self._connected = False  # a daemon has been there
        self._emptied = 0  # batches of the loop of which nothing was left
        self._running: weakref.ref[Loop[Item]] | None = None
        self._progress = Progress(0)

    # ------------------------------------------------------------------------------------------------------------ the loop

    def __iter__(self) -> Iterator[Item]:
        previous = self._running() if self._running is not None else None
        if previous is not None:
            previous.displace()
        loop = Loop(self._iterate())
        self._running = weakref.ref(loop)
        return loop

    def _iterate(self) -> Generator[Item, None, None]:
        progress = self._progress = self._progress.next_loop()
        epoch = None
        try:
            self._loops_ranks = self._ranks()
            epoch = self._begin_loop(progress)
            while True:
                self.batch = None
                self._reclaim()
                try:
                    batch = epoch.next()
                except DaemonUnavailable:
                    if not self._options.resume:
                        self._leave_lost_memory()
                        raise
                    epoch = self._start_again(progress)
                    continue
                if batch is None:
                    break
                if batch.bad:
                    self._bad.note(batch)
                progress.position = batch.position
                progress.batches += 1
                if self._after is not None:
                    progress.order = self._after()
                item, batch.prepared = batch.prepared, None
                if item is not None:  # of some batches nothing is left, with on_error="skip"
                    self.batch = batch
                    del batch
                    yield self._moved(item) if self._moves else item
                    del item
                else:
                    self._emptied += 1
            self._costs.look(*self._sessions())
            if self._progress is progress:  # else set_epoch or load_state_dict has said where the next loop begins
                self._progress = Progress(progress.epoch + 1)
        except Exception:
            progress.failed = True
            raise
        finally:
            self._loops_ranks = self._after = None
            if epoch is not None:
                epoch.stop()

    def _begin_loop(self, progress: Progress) -> Epoch | Feed:
        if self._listed is not None and self._data.now() != self._listed_as:
            self._listed = None  # its user has edited it
        self._emptied = 0
        try:
            return self._start(progress)
        except DaemonUnavailable:
            if not (self._options.resume and self._connected):  # it went away since the loop before, or was never there
                raise
            return self._start_again(progress)

    def _start(self, progress: Progress) -> Epoch | Feed:
        ranks, listed = self._ranks(), self._opened()
        assert self._session is not None
        convert, labels_of = self._convert, self._labels_of
        epoch, self._after = begin(self._session, self._data, listed, self._order, self._options, ranks, progress, convert, labels_of)
        return epoch

    def _start_again(self, progress: Progress) -> Epoch | Feed:
        deadline = time.monotonic() + self._options.resume_within
        while True:
            self.close()
            try:
                return self._start(progress)
            except DaemonUnavailable:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_RETRY)

    def _opened(self) -> Listed:
        if self._session is not None and self._session.closed:
            self.close()
        options = self._options
        if self._session is None:
            with connect(options.address) as client:
                self._session = self._session_of(client)
        if self._listed is None:
            self._listed_as = self._data.now()
            encoded = self._data.encoded
            self._listed = self._data.listed(self._session, options.extensions, self._label_type, options.patience)
            if self._data.encoded is not encoded and self._order is None:  # the daemon refused the parts of a table
                self._order = order_of(options, {}, self._data)
        self._connected = True
        return self._listed

    def _session_of(self, client: Client) -> Session:
        options = self._options
        open_in = functools.partial(
            client.session,
            self.recipe,
            options.batch_size,
            options.slots,
            name=self._session_name(),
            job=options.job,
            writable=options.writable and not self._shares,
            cache=options.cache,
            cache_at_once=options.cache_at_once,
        )
        if options.memory is not None:
            return open_in(memory=options.memory)
        try:
            memory = HOST if self._data.on_host else self._memory(client)
            if memory != HOST:
                return open_in(memory=memory)
        except (FailedPrecondition, NotFound, ResourceExhausted, Unsupported) as why:
            if not self._told_of_memory:
                self._told_of_memory = True
                warn(f"{called(type(self))}: batches come by the host's memory, not the GPU's: {why}")
        return open_in()

    def _leave_lost_memory(self) -> None:
        """So that the next loop has another session: one whose GPU was lost is not closed, but no batch comes in it any more."""
        if self._session is not None and self._session.memory_name != HOST:
            self.close()

    def _memory(self, client: Client) -> str:
        """Where the session's tensors should lie unless the loader was told. Raises Unsupported: where that cannot be had; says why."""
        return HOST

    def _session_name(self) -> str:
        if self._options.name:
            return self._options.name
        try:
            return f"loader rank {self.rank}"
        except InvalidRequest:  # what is asked may not depend on it
            return "loader"

    def _labels_of(self, batch: Batch) -> Labels:
        """What the dataset has beside those images; None: the batch's own labels."""
        labels = self._listed.labels if self._listed is not None else None
        if labels is None:
            return getattr(batch, "masks", None)
        ids = batch.ids.astype(np.int64)
        return each_column(labels, lambda column: selected(column, ids))  # type: ignore[no-any-return]

    def _convert(self, batch: Batch, labels: Labels) -> Item:
        """What the loop gets of a batch, as far as it can be made ahead, in the session's thread.

        Args:
            batch: with at least an image.
            labels: of its images; None: ``batch.labels``.
        """
        raise NotImplementedError

    def _moved(self, item: Item) -> Item:
        """What the loop gets of it, in the loop's thread; with ``_moves``."""
        return item

    def _reclaim(self) -> None:
        """Lets go of slots that the framework needs no more. Called before the next batch is waited for."""

    # ------------------------------------------------------------------------------------------------------------ its shape

    @property
    def samples(self) -> int:
        """Images of this rank in an epoch.

        Raises:
            TypeError: it is not known: the source or the sampler has no ``len()``.
        """
        return samples_of(self._data, self._order, self._options, self._ranks, self._opened)

    def __len__(self) -> int:
        """Batches of this rank in a whole epoch. Raises as ``samples``."""
        if isinstance(self._order, SamplerOrder):
            return self._order.batches()
        full, rest = divmod(self.samples, self.batch_size)
        return full + (rest > 0 and not self.drop_last)

    @property
    def sampler(self) -> Any:
        """The one that was given."""
        return self._options.sampler

    @property
    def batch_sampler(self) -> Any:
        """The one that was given."""
        return self._options.batch_sampler

    @property
    def batch_size(self) -> int:
        """Images in a batch."""
        return self._options.batch_size

    @property
    def drop_last(self) -> bool:
        """Whether the last batch is left out if it is not full."""
        return self._options.drop_last

    @property
    def num_workers(self) -> int:
        """0: there are no worker processes; the daemon does the work."""
        return 0

    @property
    def prefetch_factor(self) -> None:
        """None, as DataLoader's without workers; ``slots`` says how far the daemon reads ahead."""
        return None

    @property
    def rank(self) -> int:
        """Whose share of the samples this is. While a loop runs it does not change; else it is found anew."""
        return self._ranks().rank

    @property
    def world_size(self) -> int:
        """Among how many; as ``rank``."""
        return self._ranks().world_size

    def _ranks(self) -> Ranks:
        return self._loops_ranks or self._given_ranks or self._frameworks_ranks() or ranks_of_environment()

    def _frameworks_ranks(self) -> Ranks | None:
        """What the framework knows; None if it knows nothing of several processes."""
        return None

    @property
    def bad(self) -> int:
        """Bad images in the batches that the loops got, since the loader was made. ``loader.batch.errors`` says which and why."""
        return self._bad.count

    # ------------------------------------------------------------------------------------------------------------- its state

    @property
    def epoch(self) -> int:
        """The number of the epoch that is under way, or that the next ``iter()`` begins."""
        return self._progress.epoch

    def set_epoch(self, epoch: int) -> None:
        """The next ``iter()`` begins that epoch, or where it would begin anyway in that epoch. Without it they count up.

        A sampler with a ``set_epoch`` is told; also when they count up, unless somebody else has told it.

        It would begin within the epoch if a state was loaded, and begin there again if the loop then failed.

        Raises:
            InvalidRequest: no whole number.
        """
        epoch = whole_number(epoch, "set_epoch: epoch is a whole number")
        if not 0 <= epoch < 2**64:
            raise InvalidRequest(f"set_epoch: epochs are numbered from 0 on, not {epoch}")
        if isinstance(self._order, SamplerOrder):
            self._order.set_epoch(epoch)
        if not self._progress.begins_in(epoch):
            self._progress = Progress(epoch)

    def _repeat(self) -> None:
        """The next ``iter()`` begins where the loop that is running, or was left, began."""
        self._progress.failed = True

    def skip_first_batches(self, batches: int) -> Self:
        """The next ``iter()`` begins after so many batches of its epoch, of this rank; nothing is read or decoded for them.

        Returns the loader, so that it may stand for accelerate's ``skip_first_batches(loader, batches)``.

        Raises:
            InvalidRequest: no whole number, or a negative one.
        """
        batches = whole_number(batches, "skip_first_batches: a number of batches")
        if batches < 0:
            raise InvalidRequest(f"skip_first_batches: a number of batches, not {batches}")
        self._progress = self._progress.skipping(batches)
        return self

    def state_dict(self) -> dict[str, Any]:
        """Where the loop is: after the batch that it got last; what was read ahead does not count. Plain values, for JSON too.

        With a sampler it has the states of its generators and private copies of the global ones, 10 kB, and is of this rank.
        """
        progress = self._progress
        if progress.order is None and isinstance(self._order, SamplerOrder):  # between two loops
            progress = dataclasses.replace(progress, order=self._order.resting())
        return progress.state()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The next ``iter()`` goes on after that batch. The state of any rank does for all, if they took batches in step.

        There may be more or fewer ranks than then: at the beginning of an epoch always, within it where one of their batches begins where
        the old ones ended, which it does if a step of all ranks has as many images as before. The recipe may be another.

        Raises:
            FailedPrecondition: the state is of a newer version. (One of another dataset, seed, batch size, ... raises in ``iter()``.)
            InvalidRequest: it is none, or damaged.
        """
        self._progress = Progress.of(state)

    # ---------------------------------------------------------------------------------------------------------- its life

    def close(self) -> None:
        """Ends the session with the daemon; the next use connects again. Idempotent."""
        opened = self._sessions()
        self._costs.end(*opened)
        self._session = self._listed = self.batch = None
        for session in opened:
            if session is not None:
                session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        gone = ("_session", "_listed", "_listed_as", "_running", "_loops_ranks", "batch", "_after")
        return {**self.__dict__, **dict.fromkeys(gone), "_costs": Costs()}

    def __repr__(self) -> str:
        size, recipe = self.recipe.fixed_size, self.recipe
        what = f" {size.width} x {size.height} {recipe.dtype}" if size is not None and not recipe.views else described(recipe)
        images = f"{self.batch_size} images{what}"
        sampler = self._options.batch_sampler if self._options.sampler is None else self._options.sampler
        order = self._options.order if sampler is None else f"by {type(sampler).__name__}"
        return f"<{called(type(self))} of {path_text(self._data.path)}: batches of {images}, {order}, epoch {self.epoch}>"
