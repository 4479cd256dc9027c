"""OpenCV."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np

from loaders.base import ThreadedPeer, read
from work import SIDE, Sample, Work, centre, resized

_READ = cv2.IMREAD_COLOR_RGB | cv2.IMREAD_IGNORE_ORIENTATION


class Loader(ThreadedPeer):
    interpolation = cv2.INTER_LINEAR
    tuned = "imdecode to RGB; a thread a core, its own threads off"

    def __init__(self, work: Work, cores: int) -> None:
        super().__init__(work, cores)
        cv2.setNumThreads(1)

    def versions(self) -> str:
        return str(cv2.__version__)

    def decode(self, path: str) -> Any:
        return cv2.imdecode(np.frombuffer(read(path), np.uint8), _READ)

    def image(self, recipe: str, sample: Sample) -> Any:
        picture = self.decode(sample.path)
        if recipe == "train":
            left, top, width, height = sample.box
            made = cv2.resize(picture[top : top + height, left : left + width], (SIDE, SIDE), interpolation=self.interpolation)
            return cv2.flip(made, 1) if sample.flip else made
        size = resized(sample.width, sample.height)
        left, top = centre(*size)
        return cv2.resize(picture, size, interpolation=self.interpolation)[top : top + SIDE, left : left + SIDE]
