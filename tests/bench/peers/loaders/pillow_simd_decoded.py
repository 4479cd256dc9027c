"""Pillow-SIMD with every photograph decoded before: what is left is cropping and resizing."""

from __future__ import annotations

from collections.abc import Sequence

from PIL import Image

from loaders import pillow_simd
from work import Sample, Work

_PIXEL = 4  # bytes of an RGB pixel in Pillow's memory


class Loader(pillow_simd.Loader):
    recipes = ("train",)
    decodes = False
    tuned = "as pillow_simd; the photographs as Pillow's images in memory, whole, since crops differ each epoch"

    def __init__(self, work: Work, cores: int) -> None:
        super().__init__(work, cores)
        self._pictures = {path: super(Loader, self).decode(path) for path in work.files}

    def decode(self, path: str) -> Image.Image:
        return self._pictures[path]

    def kept(self, samples: Sequence[Sample]) -> float:
        return _PIXEL * sum(sample.width * sample.height for sample in samples)
