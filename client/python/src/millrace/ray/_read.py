"""``read_images``: a source of Ray Data's whose read tasks have the daemon of their node make the images."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import ray.data
from ray.data.block import BlockMetadata
from ray.data.datasource import Datasource, ReadTask

import millrace
from millrace._wire.messages import path_text
from millrace.errors import InvalidRequest
from millrace.ray._listing import Listing, listed
from millrace.ray._node import Daemon
from millrace.ray._work import SESSIONS, BadImages, OnBad, Work, batch_of, column_of, full, image_bytes, pixels, places, reasons, slots_for
from millrace.recipe import CacheUse, Fidelity, Recipe
from millrace.samples import AnyPath

_TASK_CPUS = 0.25  # a task waits for the daemon and copies
RECORDED = {"id": pa.int64(), "label": pa.int64()}


class MillraceImages(Datasource):  # type: ignore[misc]
    """The source. ``ray.data`` names the read operator after it."""

    def __init__(self, listing: Listing, work: Work, columns: tuple[str, ...], shuffle: bool, epoch: int | None) -> None:
        super().__init__()
        self._listing = listing
        self._work = work
        self._columns = columns
        self._shuffle = shuffle
        self._epoch = epoch
        self._executions = 0

    def estimate_inmemory_data_size(self) -> int:
        """Bytes of all tensors."""
        return len(self._listing.paths) * image_bytes(self._work.recipe, "read_images")

    def get_read_tasks(self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None) -> list[ReadTask]:
        """At most so many, each of whole batches. Executions, for which alone Ray gives a context, are epochs, if none is given."""
        epoch = self._executions if self._epoch is None else self._epoch
        if data_context is not None:
            self._executions += 1
        work = dataclasses.replace(self._work, epoch=epoch)
        images = len(self._listing.paths)
        order = np.random.default_rng([work.seed, epoch]).permutation(images) if self._shuffle else np.arange(images)
        batches = math.ceil(images / work.batch)
        bounds = [min(images, part[0] * work.batch) for part in np.array_split(np.arange(batches), max(1, min(parallelism, batches)))]
        return [self._task(work, order[a:b], per_task_row_limit) for a, b in itertools.pairwise([*bounds, images])]

    def _task(self, work: Work, share: Any, limit: int | None) -> ReadTask:
        if limit is not None and work.on_error != "skip":
            share = share[:limit]
        paths = [self._listing.paths[number] for number in share]
        labels = np.array([self._listing.labels[number] for number in share], np.int64)
        columns, rows = self._columns, len(paths)

        def read() -> Iterator[pa.Table]:
            return _read(work, columns, paths, share, labels)

        size = rows * image_bytes(work.recipe, "read_images")
        metadata = BlockMetadata(num_rows=None if work.on_error == "skip" else rows, size_bytes=size, input_files=paths, exec_stats=None)
        return ReadTask(read, metadata, per_task_row_limit=limit)


def _read(work: Work, columns: tuple[str, ...], paths: list[str], ids: Any, labels: Any) -> Iterator[pa.Table]:
    """A task's tables, each in a slot of its own. Batches are asked for ahead, as many as there are slots."""
    bad, slots = BadImages(work), slots_for(work, len(paths))
    starts, waiting = deque(range(0, len(paths), work.batch)), deque[tuple[int, int]]()
    with SESSIONS.open(work, slots) as opened:
        while starts or waiting:
            while starts and len(waiting) < slots:
                start = starts.popleft()
                chosen = range(start, min(start + work.batch, len(paths)))
                samples = [millrace.Sample(millrace.Path(paths[n]), id=int(ids[n]), label=int(labels[n])) for n in chosen]
                waiting.append((start, work.submit(opened.session, samples)))
            start, number = waiting.popleft()
            batch = opened.session.get(number)
            bad.note(batch, min(work.batch, len(paths) - start))
            if len(batch):
                images = pixels(batch, copied=bool(starts or waiting) and full(opened))
                table = _table(work, columns, paths[start : start + work.batch], batch, images)
                del images
                del batch  # the table keeps the slot, and no longer than Ray keeps the table
                yield table
                del table
    bad.say()


def _table(work: Work, columns: tuple[str, ...], paths: list[str], batch: millrace.Batch, images: Any) -> pa.Table:
    made: dict[str, Any] = {name: column_of(view) for name, view in zip(work.columns, images, strict=True)}
    for name in columns:
        if name == "path":
            made[name] = pa.array([paths[place] for place in places(batch)], pa.string())
        else:
            made[name] = pa.array(batch.labels if name == "label" else batch.ids.astype(np.int64), RECORDED[name])
    if work.error_column:
        made[work.error_column] = pa.array(reasons(batch), pa.string())
    return pa.table(made)


def read_images(
    paths: AnyPath | Iterable[AnyPath],
    recipe: Recipe,
    *,
    include_labels: bool = False,
    include_paths: bool = False,
    include_ids: bool = False,
    include_errors: bool = False,
    on_error: OnBad = "fail",
    shuffle: Literal["files"] | None = None,
    seed: int = 0,
    epoch: int | None = None,
    batch_size: int | None = None,
    file_extensions: Iterable[str] | None = None,
    fidelity: Fidelity = "exact",
    cache: CacheUse = "tensors",
    daemon: Daemon | None = None,
    num_cpus: float = _TASK_CPUS,
    concurrency: int | None = None,
    override_num_blocks: int | None = None,
    **ray_options: Any,
) -> ray.data.Dataset:
    """A dataset of images that the daemons of the nodes have read, decoded and made as ``recipe`` says.

    Columns: ``image``, tensors C x H x W (or as the recipe says) of its type, of a recipe with views ``image_0``, ``image_1``, ..., one for
    each; then what ``include_*`` ask for. Folders are listed now, on this machine; everything else happens when the dataset is consumed, on
    the nodes, which have the files at the same paths.

    Args:
        paths: a folder, a file, or several; every node has them. Of folders all pictures beneath, in ``ImageFolder``'s order.
        recipe: of one size (``Recipe.train(224)``).
        include_labels: a column ``label``, int64: the number of the sample's class folder, as ``ImageFolder`` counts; ``class_names`` has
            the names. Takes one folder; files beside its class folders are no samples then.
        include_paths: a column ``path``.
        include_ids: a column ``id``, int64: the sample's place in the listing; with labels its place in ``ImageFolder.samples``.
        include_errors: a column ``error``, with ``on_error="zero"``: why the image is blank; null: it is not.
        on_error: what becomes of images that cannot be read or decoded: ``fail`` the dataset, leave ``zero`` pixels, or ``skip`` them. The
            log, which Ray shows on the driver, has how many there were of how many, and the first with their reasons. A file that this user
            or the daemon may not read is always an error, and so are files that are all missing.
        shuffle: ``"files"``: all samples in another order, drawn from (seed, epoch); None: in order.
        seed: of the order, and of random crops, flips and augmentations, which depend on (seed, epoch, id) and on nothing else.
        epoch: the same; None: each execution of the dataset is the next epoch, from 0 on.
        batch_size: images that the daemon makes at a time, in one slot of shared memory; None: a power of two, as many as have 64 MiB, or
            less where that makes fewer tasks than two for each CPU.
        file_extensions: of the files in folders that are samples; None: those that the daemon decodes; ``"*"``: every file.
        fidelity: ``exact`` or ``fast``, as ``Session.submit`` has it.
        cache: as ``Client.session`` has it.
        daemon: which, on each node; None: ``Daemon()``: the one that runs, else one is started.
        num_cpus: that Ray reserves for a read task, beside the daemon's.
        concurrency: read tasks at a time; None: as many as there is room for.
        override_num_blocks: read tasks; None: one for each batch. A block that is one batch is one piece of memory, and consumers'
            batches that divide it are views of it; of a block of several Ray makes another copy for them.
        ray_options: further ones of ``ray.data.read_datasource``: ``resources``, ``label_selector``, ``runtime_env``, ...

    Raises:
        InvalidRequest: an argument cannot be honoured; says which and what to do.
        NotFound: a path does not exist, or there is no picture.
    """
    errors = "error" if include_errors else ""
    size = batch_of(recipe, "read_images") if batch_size is None else batch_size
    work = Work(recipe, size, on_error, "image", errors, seed, epoch or 0, daemon or Daemon(), fidelity, cache)
    work.check("read_images")
    if shuffle not in (None, "files"):
        raise InvalidRequest(f'read_images: shuffle is "files" or None, not {shuffle!r}')
    listing = listed(paths, file_extensions, include_labels)
    if include_paths:
        _check_names(listing)
    images = len(listing.paths)
    if batch_size is None:
        work = dataclasses.replace(work, batch=batch_of(recipe, "read_images", images // _tasks_least()))
    columns = tuple(name for name, asked in (("label", include_labels), ("id", include_ids), ("path", include_paths)) if asked)
    source = MillraceImages(listing, work, columns, shuffle is not None, epoch)
    blocks = math.ceil(images / work.batch) if override_num_blocks is None else override_num_blocks
    options = {"num_cpus": num_cpus, "concurrency": concurrency, "override_num_blocks": blocks, **ray_options}
    return ray.data.read_datasource(source, **options)


def _tasks_least() -> int:
    """So that small datasets are spread over the cluster, too."""
    if not ray.is_initialized():
        ray.init()  # as Ray Data does in the next moment
    return max(1, 2 * int(ray.cluster_resources().get("CPU", 1)))


def _check_names(listing: Listing) -> None:
    for path in listing.paths:
        try:
            path.encode()
        except UnicodeEncodeError:
            raise InvalidRequest(
                f"read_images: the name of {path_text(path)} is not UTF-8, as Arrow's strings are: rename it, or take include_paths out"
            ) from None
