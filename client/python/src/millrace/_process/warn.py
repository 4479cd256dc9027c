"""Warnings that point at the line of the program that called this package."""

from __future__ import annotations

import os
import sys
import warnings

_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep  # all of it, not this folder alone


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """``warnings.warn``, with the nearest line outside of this package as its place."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)
