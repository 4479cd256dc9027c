"""pyvips (libvips)."""

from __future__ import annotations

from typing import Any

import pyvips

from loaders.base import ThreadedPeer, read
from work import SIDE, Sample, Work, centre, resized


class Loader(ThreadedPeer):
    antialias = "yes"
    tuned = "a thread a core, VIPS_CONCURRENCY=1, no operation cache; thumbnail_buffer for inference, crop and resize for training"

    def __init__(self, work: Work, cores: int) -> None:
        super().__init__(work, cores)
        pyvips.cache_set_max(0)

    def versions(self) -> str:
        return f"{pyvips.__version__}, libvips {'.'.join(str(pyvips.version(part)) for part in range(3))}"

    def image(self, recipe: str, sample: Sample) -> Any:
        data = read(sample.path)
        if recipe == "train":
            left, top, width, height = sample.box
            picture = pyvips.Image.new_from_buffer(data, "", access="sequential").crop(left, top, width, height)
            made = picture.resize(SIDE / width, vscale=SIDE / height, kernel="linear")
            if sample.flip:
                made = made.fliphor()
            if (made.width, made.height) != (SIDE, SIDE):
                made = made.gravity("north-west", SIDE, SIDE, extend="copy")
        else:
            size = resized(sample.width, sample.height)
            left, top = centre(*size)
            whole = pyvips.Image.thumbnail_buffer(data, size[0], height=size[1], size="force", no_rotate=True)
            made = whole.crop(left, top, SIDE, SIDE)
        if made.bands == 1:
            made = made.colourspace("srgb")
        return made.numpy()
