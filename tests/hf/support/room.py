"""Whether this machine has shared memory for what a vision-language model takes of a large picture."""

from __future__ import annotations

import shutil

import pytest

ROOMY = shutil.disk_usage("/dev/shm").free > 1 << 30
"""Containers have 64 MiB, unless they are given more: room for one picture at a time, and not for the largest."""

needs_room = pytest.mark.skipif(not ROOMY, reason="/dev/shm has less than 1 GiB free")
