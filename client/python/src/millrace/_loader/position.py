"""Positions of other ranks, of other divisions into ranks, and of batches that nobody has read.

An ``EpochPosition`` (dataset.proto) is opaque but for this: ranks that take batches in step stand at the same batch of their shares, so
the checkpoint of one resumes all, and as many others as the order allows. Pure functions.
"""

from __future__ import annotations

from typing import Any, NamedTuple, get_args

from millrace._wire import schema as _schema
from millrace._wire.messages import shard_tail_number
from millrace.errors import FailedPrecondition, InvalidRequest
from millrace.recipe import ShardTail

_VERSION = 1
_POLYNOMIAL = 0x82F63B78  # CRC-32C (Castagnoli), reflected


class Order(NamedTuple):
    """What decides which samples are whose: the fields of an ``EpochPosition``."""

    fingerprint: int
    seed: int
    epoch: int
    shuffle: bool
    drop_last: bool
    batch_size: int
    rank: int
    world_size: int
    shard_tail: int
    block_samples: int = 0
    window_blocks: int = 0


def _crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (_POLYNOMIAL if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def with_fingerprint(position: bytes, fingerprint: int) -> bytes:
    """The same place in an equal order of another dataset. Raises InvalidRequest: no position."""
    message = _parsed(position)
    message.fingerprint = fingerprint
    return _token(message)


def for_rank(position: bytes, rank: int) -> bytes:
    """The position of ``rank`` that corresponds to another rank's ``position``; empty stays empty.

    Raises:
        InvalidRequest: no position.
    """
    if not position:
        return position
    message = _parsed(position)
    message.rank = rank
    return _token(message)


class Place(NamedTuple):
    """Where a rank's epoch begins."""

    position: bytes
    batches: int  # of this rank's, before it


def for_shares(position: bytes, now: Order, samples: int) -> Place:
    """Where a rank goes on with an epoch, which may have been divided otherwise.

    Rank r of W has the samples at r, r + W, r + 2 W, ... of the epoch's order. So after k batches of B by all ranks what they have read
    are the first k B W of it, and any other division that has read as many after whole batches goes on from exactly there.

    Args:
        position: of any of the ranks before, which took batches in step; of a loader's state.
        now: the epoch as it is to go on. With as many ranks as before its batches are as large as before.
        samples: of the whole dataset.

    Raises:
        InvalidRequest: no position.
        FailedPrecondition: it is of another order; or the new division has no batch that begins there. Says what to do.
    """
    then = _parsed(position)
    _check_order(then, now)
    if then.world_size != now.world_size:
        then.next_batch = _next_batch(then, now.world_size, now.batch_size, samples)
        then.world_size, then.batch_size = now.world_size, now.batch_size
    then.rank = now.rank
    return Place(_token(then), int(then.next_batch))


def _check_order(then: Any, now: Order) -> None:
    """As the daemon would, in the words of a loader's user, who knows its state and has never seen a position."""
    anew = f"begin epoch {then.epoch} anew: set_epoch({then.epoch}), without the state"
    if then.fingerprint != now.fingerprint:
        raise FailedPrecondition(
            f"load_state_dict: the state was saved with another dataset, or its files have changed since: put them back, or {anew}"
        )
    names = ["seed", "shuffle", "drop_last", "shard_tail"] + ["batch_size"] * (then.world_size == now.world_size)
    for name in names:
        values = getattr(then, name), getattr(now, name)
        if values[0] != values[1]:
            before, is_now = (_told(name, value) for value in values)
            raise FailedPrecondition(
                f"load_state_dict: the state was saved with {name}={before}, and this loader has {name}={is_now}: make the loader with "
                f"{name}={before}, or {anew}"
            )
    if (then.block_samples, then.window_blocks) != (now.block_samples, now.window_blocks):
        raise FailedPrecondition(
            f"load_state_dict: the state was saved with {_shuffle_told(then)}, and this loader has {_shuffle_told(now)}: make the loader "
            f"with shuffle= and window= as they were then, or {anew}"
        )


def _shuffle_told(order: Any) -> str:
    if not order.block_samples:
        return f"shuffle={order.shuffle}"
    return f'shuffle="blocks" that mixes {order.window_blocks} blocks of {order.block_samples} images'


def _told(name: str, value: Any) -> str:
    return repr(_tails().get(value, "pad")) if name == "shard_tail" else str(value)


def _tails() -> dict[int, ShardTail]:
    return {shard_tail_number(name): name for name in get_args(ShardTail)}


def _next_batch(then: Any, world_size: int, batch_size: int, samples: int) -> int:
    read, step = then.next_batch * then.batch_size * then.world_size, batch_size * world_size
    if then.next_batch >= _batches(then, samples):
        return -(-samples // step)  # the epoch was over
    if read % step == 0:
        return int(read // step)
    same_step, rest = divmod(then.batch_size * then.world_size, world_size)
    fitting = f"choose batch_size={same_step}, which leaves as many images in a step of all ranks; or " if rest == 0 else ""
    raise FailedPrecondition(
        f"load_state_dict: the state was saved by {then.world_size} ranks after {then.next_batch} batches of {then.batch_size}, which is "
        f"after {read} images of the epoch; {world_size} ranks with batches of {batch_size} take {step} in a step, so none of their "
        f"batches begins there: {fitting}finish epoch {then.epoch} with {then.world_size} ranks; or begin it anew: "
        f"set_epoch({then.epoch}), without the state"
    )


def _batches(then: Any, samples: int) -> int:
    """Of a whole epoch, as it was divided then."""
    whole, rest = divmod(samples, then.world_size)
    tail = _tails().get(then.shard_tail, "pad")
    own = whole + (rest > 0 if tail == "pad" else tail == "uneven" and then.rank < rest)
    return int(own // then.batch_size if then.drop_last else -(-own // then.batch_size))


def after_batches(batches: int, order: Order) -> bytes:
    """The position after so many batches of an epoch of which none has been read.

    Raises:
        InvalidRequest: a number is none that an epoch may have.
    """
    try:
        return _token(_schema.EpochPosition(version=_VERSION, next_batch=batches, **order._asdict()))
    except (TypeError, ValueError) as why:
        raise InvalidRequest(f"epoch: {why}") from why


def _parsed(position: bytes) -> Any:
    """The message without its checksum, which was right."""
    message = _schema.EpochPosition()
    try:
        message.ParseFromString(position)
    except Exception as why:  # protobuf's DecodeError is another class in every runtime
        raise InvalidRequest("position: not a position token, or damaged") from why
    given = message.checksum
    message.ClearField("checksum")
    if _crc32c(message.SerializeToString(deterministic=True)) != given:
        raise InvalidRequest("position: not a position token, or damaged")
    return message


def _token(message: Any) -> bytes:
    message.checksum = _crc32c(message.SerializeToString(deterministic=True))
    return bytes(message.SerializeToString(deterministic=True))
