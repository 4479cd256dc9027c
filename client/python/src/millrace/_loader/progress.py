"""Where a loader's loop is, and where the next one begins: after a state, on however many ranks, or after batches that are left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from operator import index
from typing import Any

from millrace._blocks.window import BLOCK_SAMPLES, WINDOW, window_of_files
from millrace._data.dataset_argument import Listed
from millrace._loader.options import Options
from millrace._loader.order import Batches, OrderState
from millrace._loader.position import Order, Place, after_batches, for_rank, for_shares
from millrace._loader.ranks import Ranks
from millrace._wire.messages import shard_tail_number
from millrace.errors import FailedPrecondition, InvalidRequest
from millrace.recipe import BlockShuffle

_VERSION = 1
_VERSION_OF_ORDERS = 2  # where the loader says the order, which earlier packages do not know
_WHOLE = "give it what state_dict() of a loader gave, whole and unchanged"


@dataclass
class Progress:
    """After which batch of which epoch the loop is. Belongs to the loop's thread."""

    epoch: int
    position: bytes = b""  # of whichever rank it was saved by
    batches: int = 0  # that the loop has got in this epoch; without a position: that it leaves out
    begun: bool = False  # the loop is within the epoch, or was and left it
    failed: bool = False  # an exception ended it
    beginning: tuple[bytes, int, OrderState | None] = (b"", 0, None)  # position, batches and order when it began
    order: OrderState | None = None  # of loaders that say the order; None: the epoch's start

    def begins_in(self, epoch: int) -> bool:
        """Whether the next loop is one of that epoch."""
        return self.epoch == epoch and (self.failed or not self.begun)

    def next_loop(self) -> Progress:
        """Where the next loop begins: a failed one is repeated, any other is followed by the next epoch."""
        if not self.begun:
            following = self
        elif self.failed:
            position, batches, order = self.beginning
            following = Progress(self.epoch, position, batches, order=order)
        else:
            following = Progress(self.epoch + 1)
        following.begun, following.beginning = True, (following.position, following.batches, following.order)
        return following

    def begins_at(self, order: OrderState) -> None:
        """Where the order is now that the loop has begun; a loop that fails begins there again."""
        self.order = order
        position, batches, before = self.beginning
        self.beginning = (position, batches, before or order)

    def skipping(self, batches: int) -> Progress:
        """Where the next loop begins if so many batches of its epoch are left out."""
        if self.begun and not self.failed:
            return Progress(self.epoch + 1, b"", batches)
        order = self.beginning[2] if self.begun else self.order
        return Progress(self.epoch, b"", batches, order=order._replace(taken=0, crc=0) if order is not None else None)

    def state(self) -> dict[str, Any]:
        """Plain values, for JSON too."""
        state = {"version": _VERSION, "epoch": self.epoch, "batches": self.batches, "position": self.position.hex()}
        return state if self.order is None else {**state, "version": _VERSION_OF_ORDERS, "order": self.order.plain()}

    @staticmethod
    def of(state: Mapping[str, Any]) -> Progress:
        """What ``state()`` gave.

        Raises:
            FailedPrecondition: the state is of a newer version.
            InvalidRequest: it is none, or damaged; says what is wrong with it.
        """
        if not isinstance(state, Mapping):
            raise InvalidRequest(f"load_state_dict: a state is what state_dict() gave, not {state!r}")
        version = state.get("version", _VERSION)
        if version not in (_VERSION, _VERSION_OF_ORDERS):
            raise FailedPrecondition(
                f"load_state_dict: the state is of version {version!r}, and this package reads {_VERSION} and {_VERSION_OF_ORDERS}: take "
                "the package that saved it, or begin the epoch anew: set_epoch(...), without the state"
            )
        needed = ["version", "epoch", "batches", "position"] + ["order"] * (version == _VERSION_OF_ORDERS)
        missing = [name for name in needed if name not in state]
        if missing:
            raise InvalidRequest(f"load_state_dict: the state has no {', '.join(map(repr, missing))}: {_WHOLE}")
        try:
            position, epoch, batches = bytes.fromhex(state["position"]), index(state["epoch"]), index(state["batches"])
            order = OrderState.of(state["order"]) if version == _VERSION_OF_ORDERS else None
            for_rank(position, 0)
        except (TypeError, ValueError) as why:  # InvalidRequest, too
            raise InvalidRequest(f"load_state_dict: the state is damaged ({why}): {_WHOLE}") from why
        return Progress(epoch, position, batches, order=order)


def shuffle_of_files(listed: Listed, options: Options) -> bool | BlockShuffle:
    """How the daemon shuffles files."""
    if not isinstance(options.shuffle, str):
        return options.shuffle
    lengths = getattr(getattr(listed.shown, "paths", None), "lengths", None)
    return BlockShuffle(BLOCK_SAMPLES, window_of_files(lengths, options.window or WINDOW))


def place_of(progress: Progress, listed: Listed, options: Options, ranks: Ranks) -> bytes:
    """The position that the daemon is given; ``progress`` says from then on what it means for this rank.

    Raises:
        FailedPrecondition: the state is of another dataset or order, or of another number of ranks, whose batches do not end where this
            one's begin; says what to do.
    """
    assert listed.dataset is not None
    if progress.position:
        place = for_shares(progress.position, _order(progress.epoch, listed, options, ranks), len(listed.dataset))
    elif progress.batches:
        place = Place(after_batches(progress.batches, _order(progress.epoch, listed, options, ranks)), progress.batches)
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


def _order(epoch: int, listed: Listed, options: Options, ranks: Ranks) -> Order:
    assert listed.dataset is not None
    shuffle = shuffle_of_files(listed, options)
    samples, window = shuffle if isinstance(shuffle, BlockShuffle) else (0, 0)
    return Order(
        fingerprint=listed.dataset.fingerprint,
        seed=options.seed,
        epoch=epoch,
        shuffle=bool(shuffle),
        drop_last=options.drop_last,
        batch_size=options.batch_size,
        rank=ranks.rank,
        world_size=ranks.world_size,
        shard_tail=shard_tail_number(options.shard_tail),
        block_samples=samples,
        window_blocks=window,
    )
