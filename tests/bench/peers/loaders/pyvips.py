"""pyvips (libvips)."""

from __future__ import annotations

from typing import Any

import pyvips

from loaders.base import ThreadedPeer, read
from work import SIDE, Sample, Work, centre, resized


class Loader(ThreadedPeer):
    antialias = "yes"
    tuned = "a thread a core, VIPS_CONCURRENCY=1, no operation cache; sequential access, resize with the linear kernel"

    def __init__(self, work: Work, cores: int) -> None:
        super().__init__(work, cores)
        pyvips.cache_set_max(0)

    def versions(self) -> str:
        return f"{pyvips.__version__}, libvips {'.'.join(str(pyvips.version(part)) for part in range(3))}"

    def image(self, recipe: str, sample: Sample) -> Any:
        picture = pyvips.Image.new_from_buffer(read(sample.path), "", access="sequential")
        if recipe == "train":
            left, top, width, height = sample.box
            made = picture.crop(left, top, width, height).resize(SIDE / width, vscale=SIDE / height, kernel="linear")
            if sample.flip:
                made = made.fliphor()
            if (made.width, made.height) != (SIDE, SIDE):  # where it rounds otherwise
                made = made.gravity("north-west", SIDE, SIDE, extend="copy")
        else:
            width, height = resized(sample.width, sample.height)
            left, top = centre(width, height)
            whole = picture.resize(width / sample.width, vscale=height / sample.height, kernel="linear")
            made = whole.crop(left, top, SIDE, SIDE)
        if made.bands == 1:
            made = made.colourspace("srgb")
        return made.numpy()
