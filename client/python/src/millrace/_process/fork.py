"""fork(): what belongs to the parent must not be used in the child, and must not keep the parent's memory alive there.

A session's threads do not exist in a forked child, and gRPC's locks may be held by them for ever. So in the child every inherited
session says ``Forked``, nothing of gRPC is touched or collected, and the inherited hand-off connection is closed (the parent has its
own descriptor of it), so that the daemon notices when the parent dies.
"""

from __future__ import annotations

import os
import weakref
from typing import Any, Protocol

from millrace.errors import Forked


class Inherited(Protocol):
    """What has to know that it was forked."""

    def after_fork_in_child(self) -> object:
        """Closes what the child must not hold; returns what must never be collected there."""


_alive: weakref.WeakSet[Any] = weakref.WeakSet()
_kept: list[Any] = []  # never collected: their destructors would touch gRPC
_grpc_used_by_parent = False
_grpc_used = False


def register(thing: Inherited) -> None:
    """``thing`` is told in every forked child, as long as it lives."""
    _alive.add(thing)


def check_grpc() -> None:
    """Call before making a gRPC channel.

    Raises:
        Forked: the parent of this process used gRPC through this package, which does not survive fork().
    """
    global _grpc_used
    if _grpc_used_by_parent:
        raise Forked(
            "this process was forked from one that was connected to a Millrace daemon, and gRPC does not survive fork(); "
            'start workers with the "spawn" or "forkserver" method, or connect in the child only'
        )
    _grpc_used = True


def _in_child() -> None:
    global _grpc_used_by_parent
    _grpc_used_by_parent = _grpc_used
    for thing in list(_alive):
        _kept.append((thing, thing.after_fork_in_child()))


os.register_at_fork(after_in_child=_in_child)
