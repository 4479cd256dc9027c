"""Memory of what is read, which is used again: fresh pages of this size cost as much of a processor's time as receiving into them."""

from __future__ import annotations

import os
import weakref
from collections import deque
from typing import Any

import numpy as np

_KEPT = 8  # buffers
_LEAST, _MOST = 1 << 20, 32 << 20  # bytes of those that are kept

_kept: deque[bytearray] = deque(maxlen=_KEPT)  # of one thread or another, whose operations are atomic
os.register_at_fork(after_in_child=_kept.clear)


def room_for(length: int) -> memoryview:
    """So many bytes of any content. They are given to others once no view of them is left."""
    if not _LEAST <= length <= _MOST:
        return memoryview(bytearray(length))
    try:
        buffer = _kept.pop()
    except IndexError:
        buffer = bytearray()
    if not length <= len(buffer) <= 2 * length:
        buffer = bytearray(length)
    owner: Any = np.frombuffer(buffer, np.uint8, length)  # which each view of it keeps
    weakref.finalize(owner, _kept.append, buffer).atexit = False
    return memoryview(owner)
