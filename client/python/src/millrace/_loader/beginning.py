"""Beginning an epoch of a loader's: who says its order, and who brings the images.

=====================  ==========================  =====================================
dataset                order                       images
=====================  ==========================  =====================================
folder, list           the daemon                  ``Session.epoch``
folder, list           ``SamplerOrder``            ``Session.epoch(order=...)``
source with numbers    ``Permuted``, a sampler     ``Feed``
source in blocks       ``PermutedInBlocks``        ``Feed``
source that iterates   the source                  ``Feed``
=====================  ==========================  =====================================
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from millrace._core.batch import Batch
from millrace._core.epoch import Epoch
from millrace._core.full_slots import ALONE
from millrace._core.session import Session
from millrace._data.columns import Labels
from millrace._data.dataset_argument import Given, Listed
from millrace._loader.block_epoch import BlockEpoch, GivenBlocks, PermutedInBlocks, order_in_blocks
from millrace._loader.feed import Feed, Submitting
from millrace._loader.options import Options
from millrace._loader.order import OrderState, SamplerOrder
from millrace._loader.permutation import Permuted
from millrace._loader.progress import Progress, leave_out, place_of, shuffle_of_files
from millrace._loader.ranks import Ranks
from millrace._loader.source_rows import rows_by_number, rows_in_turn
from millrace.errors import FailedPrecondition, InvalidRequest

Order = SamplerOrder | Permuted | None


class Begun(NamedTuple):
    """An epoch under way.

    Attributes:
        epoch: has ``next()`` and ``stop()``.
        order: where its order is after one more batch, called once for each; None: the batches' positions say it.
    """

    epoch: Epoch | Feed
    order: Callable[[], OrderState | None] | None


def order_of(options: Options, given: Mapping[str, Any], data: Given) -> Order:
    """Who says a loader's order, of the two that are the loader's.

    Raises:
        InvalidRequest: a source that iterates, and somebody else who says the order.
    """
    encoded = data.encoded
    if isinstance(data, GivenBlocks):
        return order_in_blocks(options, data.source)
    if encoded is not None and not encoded.is_map:
        wrong = [name for name in ("sampler", "batch_sampler", "shuffle", "shard_tail") if given.get(name)]
        if wrong:
            raise InvalidRequest(
                f"loader: {', '.join(wrong)} cannot be had of a source that is iterated ({data.path}), which says the order itself: let it "
                "shuffle and choose (Hugging Face: dataset.shuffle(seed, buffer_size=n); webdataset: .shuffle(n))"
            )
        return None
    if options.sampler is not None or options.batch_sampler is not None:
        return SamplerOrder(options.sampler, options.batch_sampler, options.batch_size, options.drop_last)
    if encoded is None:
        return None
    if options.shuffle == "blocks":
        raise InvalidRequest(f"loader: {data.path} has no blocks, for it is read by {data.read_by}: take shuffle=True")
    return Permuted(options.seed, options.shuffle, options.batch_size, options.drop_last, options.shard_tail, encoded.fingerprint)


def begin(
    session: Session,
    data: Given,
    listed: Listed,
    order: Order,
    options: Options,
    ranks: Ranks,
    progress: Progress,
    convert: Callable[[Batch, Labels], Any],
    labels_of: Callable[[Batch], Labels],
) -> Begun:
    """Begins the epoch that ``progress`` says, where it says.

    Args:
        session: whose images they are.
        data: what the loader was given.
        listed: what the session knows of that.
        order: see ``order_of``.
        options: the loader's.
        ranks: whose share.
        progress: where; its order is set to where the order is now.
        convert: what becomes ``Batch.prepared`` of a batch and its labels.
        labels_of: these, of a dataset's batch.

    Raises:
        FailedPrecondition: the progress is of something else.
        InvalidRequest: each of several ranks would get all of the source.
    """
    if progress.position if order is not None or listed.dataset is None else progress.order is not None:
        raise FailedPrecondition(
            "loader: the state was saved by a loader whose order was made elsewhere: one of the two has a sampler, or reads its source "
            f"itself, and the other does not (this one is read by {data.read_by}): make the loader as it was then, or begin the epoch anew"
        )
    if order is None and listed.dataset is None and progress.batches and (progress.order is None or progress.order.taken == 0):
        raise InvalidRequest(
            f"loader: batches cannot be left out of a source that is iterated ({data.path}): let the source leave out their samples, "
            "or load a state"
        )
    of = _identity(data, listed, options)
    resumed = None if progress.order is None else _of_this(progress.order, of)
    batches = None
    in_blocks: BlockEpoch | None = None
    if order is not None:
        assert listed.samples is not None
        if isinstance(data, GivenBlocks):
            assert isinstance(order, PermutedInBlocks)
            batches, in_blocks = order.begin_blocks(data.source, progress.epoch, resumed, ranks)
        else:
            batches = order.begin(progress.epoch, resumed, listed.samples, ranks)
        batches.state = batches.state._replace(begun={**batches.state.begun, "of": of})
        if progress.batches and batches.state.taken == 0:
            leave_out(progress.batches, batches)
        progress.begins_at(batches.state)
    if listed.dataset is None:
        names: Callable[[int], tuple[str, ...]]
        stop = threading.Event()
        if in_blocks is not None and batches is not None:
            rows: Callable[[Any], Any] = in_blocks.rows(batches.state.taken, options.on_error == "zero", stop)
            names = in_blocks.names
        else:
            assert data.encoded is not None
            names = data.encoded.names
            rows = functools.partial(rows_by_number, data.encoded)
            if batches is None:
                rows = _rows(data, options, ranks, progress.epoch, resumed, of)
        how = Submitting(options.seed, progress.epoch, options.on_error, options.fidelity, bool(options.shuffle))
        feed = Feed(session, rows, batches, how, convert, names, options.patience, stop)
        return Begun(feed, lambda: feed.state)
    chosen: dict[str, Any] = {"on_error": options.on_error, "fidelity": options.fidelity, "timeout": options.patience}
    chosen.update(seed=options.seed, epoch=progress.epoch, prepare=lambda batch: convert(batch, labels_of(batch)))
    if batches is not None:
        chosen["order"] = batches.requests()
    else:
        chosen.update(
            batch=options.batch_size,
            shuffle=shuffle_of_files(listed, options),
            drop_last=options.drop_last,
            rank=ranks.rank,
            world_size=ranks.world_size,
            shard_tail=options.shard_tail,
            position=place_of(progress, listed, options, ranks),
        )
    epoch = listed.dataset.epoch(**chosen)
    epoch._grace = ALONE
    return Begun(epoch, batches.delivered if batches is not None else None)


def _identity(data: Given, listed: Listed, options: Options) -> dict[str, Any]:
    """What an order is of: its ids mean something for that alone, and so do random choices."""
    source = data.source if isinstance(data, GivenBlocks) else data.encoded
    known = listed.dataset.fingerprint if listed.dataset is not None else getattr(source, "fingerprint", "")
    return {"seed": options.seed, "samples": listed.samples, "dataset": known}


def _of_this(order: OrderState, of: Mapping[str, Any]) -> OrderState:
    """The state without what it says of that.

    Raises:
        FailedPrecondition: it is of something else.
    """
    then = order.begun.get("of", of)
    if then != of:
        wrong = [name for name, value in of.items() if then.get(name) != value]
        told = ", ".join(f"{name} was {then.get(name)!r} and is {of[name]!r}" for name in wrong if name != "dataset")
        if "dataset" in wrong:
            told += (", " if told else "") + "its files, columns or content differ, or a table was read in blocks and now is not"
        raise FailedPrecondition(
            f"loader: the state was saved with another {' and another '.join(wrong)} ({told}): make the loader as it was then, or begin "
            "the epoch anew"
        )
    return order._replace(begun={name: value for name, value in order.begun.items() if name != "of"})


def _rows(
    data: Given, options: Options, ranks: Ranks, epoch: int, resumed: OrderState | None, of: Mapping[str, Any]
) -> Callable[[Any], Any]:
    encoded = data.encoded
    assert encoded is not None
    if ranks.world_size > 1 and not encoded.sharded:
        raise InvalidRequest(
            f"loader: there are {ranks.world_size} ranks, and each would get all of the source: let it give each its share (Hugging Face: "
            "split_dataset_by_node; webdataset: nodesplitter=webdataset.split_by_node) and say so: millrace.Encoded(source, sharded=True)"
        )
    return lambda _: rows_in_turn(encoded, epoch, resumed, options.batch_size, options.drop_last, of)


def samples_of(data: Given, order: Order, options: Options, ranks: Callable[[], Ranks], opened: Callable[[], Listed]) -> int:
    """Images of this rank in an epoch. Raises TypeError if nobody knows."""
    if isinstance(order, SamplerOrder):
        return order.samples()
    count = data.count()
    if count is None and data.encoded is None:
        count = opened().samples
    if count is None:
        raise TypeError(f"loader: {data.path} has no len()")
    if data.encoded is not None and not data.encoded.is_map:
        return count
    rank, world_size = ranks()
    whole, rest = divmod(count, world_size)
    tail = options.shard_tail
    return whole + (rest > 0 if tail == "pad" else tail == "uneven" and rank < rest)
