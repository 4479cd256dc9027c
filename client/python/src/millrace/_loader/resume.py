"""Where a loader's loop begins within an epoch: after a state, on however many ranks, or after batches that are left out."""

from __future__ import annotations

from millrace._core.dataset import Dataset
from millrace._loader.options import Options
from millrace._loader.order import Batches
from millrace._loader.position import Order, Place, after_batches, for_shares
from millrace._loader.progress import Progress
from millrace._loader.ranks import Ranks
from millrace._wire.messages import shard_tail_number


def place_of(progress: Progress, dataset: Dataset, options: Options, ranks: Ranks) -> bytes:
    """The position that the daemon is given; ``progress`` says from then on what it means for this rank.

    Raises:
        FailedPrecondition: the state is of another dataset or order, or of another number of ranks, whose batches do not end where this
            one's begin; says what to do.
    """
    if progress.position:
        place = for_shares(progress.position, _order(progress.epoch, dataset, options, ranks), len(dataset))
    elif progress.batches:
        place = Place(after_batches(progress.batches, _order(progress.epoch, dataset, options, ranks)), progress.batches)
    else:
        return b""
    progress.position, progress.batches = place
    return place.position


def leave_out(number: int, batches: Batches) -> None:
    """Passes over batches of an order that the loader says, as if the loop had got them."""
    for _ in range(number):
        if next(batches, None) is None:
            break
        batches.delivered()


def _order(epoch: int, dataset: Dataset, options: Options, ranks: Ranks) -> Order:
    return Order(
        fingerprint=dataset.fingerprint,
        seed=options.seed,
        epoch=epoch,
        shuffle=options.shuffle,
        drop_last=options.drop_last,
        batch_size=options.batch_size,
        rank=ranks.rank,
        world_size=ranks.world_size,
        shard_tail=shard_tail_number(options.shard_tail),
    )
