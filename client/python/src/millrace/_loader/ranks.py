"""Whose share of an epoch a loader reads. Pure functions; the environment is read whenever they are called."""

from __future__ import annotations

import operator
import os
from typing import NamedTuple

from millrace.errors import InvalidRequest


class Ranks(NamedTuple):
    """One of ``world_size`` processes that share an epoch."""

    rank: int
    world_size: int


def given_ranks(rank: int | None, world_size: int | None) -> Ranks | None:
    """What the arguments say; None if they say nothing.

    Raises:
        InvalidRequest: one of them without the other, or a rank that there is not.
    """
    if rank is None and world_size is None:
        return None
    if rank is None or world_size is None:
        raise InvalidRequest("loader: give rank and world_size together, or neither of them")
    try:
        return _checked(operator.index(rank), operator.index(world_size), "rank", "world_size")
    except TypeError as why:
        raise InvalidRequest(f"loader: rank and world_size are whole numbers: {why}") from why


def ranks_of_environment() -> Ranks:
    """What $RANK and $WORLD_SIZE say (torchrun sets them); without them the only rank.

    Raises:
        InvalidRequest: they are no numbers, or $WORLD_SIZE is over 1 and there is no $RANK.
    """
    rank, world_size = os.environ.get("RANK"), os.environ.get("WORLD_SIZE")
    try:
        numbers = int(rank or "0"), int(world_size or "1")
    except ValueError as why:
        raise InvalidRequest(f"loader: RANK and WORLD_SIZE in the environment must be numbers: {why}") from why
    if not rank and numbers[1] > 1:
        raise InvalidRequest(
            f"loader: WORLD_SIZE is {world_size} and RANK is not set, so which share is this process's is not known. Use the loader after "
            "torch.distributed (or jax.distributed) is initialised, which Lightning does before its loop begins; or set RANK; or give "
            "rank= and world_size="
        )
    return _checked(*numbers, "RANK", "WORLD_SIZE")


def _checked(rank: int, world_size: int, rank_name: str, world_size_name: str) -> Ranks:
    if not 0 <= rank < world_size:
        raise InvalidRequest(f"loader: {rank_name} must be 0 to {world_size_name} - 1; they are {rank} and {world_size}")
    return Ranks(rank, world_size)
