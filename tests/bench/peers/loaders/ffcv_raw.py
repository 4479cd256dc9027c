"""FFCV in its raw mode: its file holds decoded pixels, made smaller where a photograph is larger than its own ImageNet file has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from ffcv.fields import RGBImageField
from PIL import Image

from loaders import ffcv
from work import Sample

_LONGER_SIDE = 500  # of FFCV's ImageNet file for ResNet-50


def _pixels(sample: Sample) -> Any:
    with Image.open(sample.path) as picture:
        return np.asarray(picture.convert("RGB"))


class Loader(ffcv.Loader):
    recipes = ("train",)
    decodes = False
    custom_fields: ClassVar[dict[str, Any]] = {}
    tuned = f"OS cache, workers = cores, its own crops (INTER_AREA); its file holds uint8 pixels, the longer side at most {_LONGER_SIDE}"

    def written(self) -> Path:
        field = RGBImageField(write_mode="raw", max_resolution=_LONGER_SIDE)
        return ffcv.written(self.work, "photographs-raw.beton", field, _pixels)
