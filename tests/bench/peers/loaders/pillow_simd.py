"""Pillow-SIMD: Pillow to its caller, in an environment where it is in Pillow's place."""

from __future__ import annotations

from loaders import pillow


class Loader(pillow.Loader):
    tuned = "as pillow; compiled with AVX2 as its documentation says"
