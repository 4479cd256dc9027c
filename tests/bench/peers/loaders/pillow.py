"""Pillow, and Pillow-SIMD, which is Pillow to its caller."""

from __future__ import annotations

from typing import Any

import numpy as np
from PIL import Image, features
from PIL import __version__ as version

from loaders.base import ThreadedPeer
from work import SIDE, Sample, centre, resized


class Loader(ThreadedPeer):
    antialias = "yes"
    tuned = "a thread a core; crop, then resize, as torchvision's transforms of PIL images call it"

    def versions(self) -> str:
        return f"{version}, libjpeg-turbo {features.version('libjpeg_turbo')}"

    def image(self, recipe: str, sample: Sample) -> Any:
        picture = self.decode(sample.path)
        if recipe == "train":
            left, top, width, height = sample.box
            made = picture.crop((left, top, left + width, top + height)).resize((SIDE, SIDE), Image.Resampling.BILINEAR)
            if sample.flip:
                made = made.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        else:
            size = resized(sample.width, sample.height)
            left, top = centre(*size)
            made = picture.resize(size, Image.Resampling.BILINEAR).crop((left, top, left + SIDE, top + SIDE))
        return np.asarray(made)

    def decode(self, path: str) -> Image.Image:
        with Image.open(path) as opened:
            opened.load()
            return opened if opened.mode == "RGB" else opened.convert("RGB")
