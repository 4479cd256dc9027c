"""An encoded image as one of PIL's, which nobody has decoded yet. Needs Pillow; imported when it is there.

transformers' processors fetch images before they look at the text, and count them. The daemon decodes these; a caller that looks at the
pixels here, or asks for the size, has them decoded here.
"""

from __future__ import annotations

import io
import os
from typing import Any

from PIL import Image, ImageOps

from millrace.samples import Path, Source


class LazyImage(Image.Image):  # type: ignore[misc]
    """RGB, turned as EXIF says, as of ``transformers.image_utils.load_image()``. Thread-bound, as PIL's images are.

    Once it is decoded, its pixels are what counts, for somebody may have changed them.
    """

    def __init__(self, source: Source) -> None:
        super().__init__()
        self.millrace_source = source
        self._mode = "RGB"
        self._im: Any = None  # the pixels, as PIL has them

    @property
    def size(self) -> tuple[int, int]:
        """Width and height, pixels."""
        self.load()
        width, height = self._size
        return width, height

    def load(self) -> Any:
        """Decodes it, if that has not happened. Raises what PIL raises."""
        if self._im is None:
            with Image.open(_file(self.millrace_source)) as opened:
                image = ImageOps.exif_transpose(opened).convert("RGB")
            self._im, self._size = image.im, image.size
            for key, value in image.info.items():
                self.info.setdefault(key, value)
        return super().load()


def _file(source: Any) -> Any:
    if isinstance(source, Path):
        return os.fsdecode(source.path)
    return io.BytesIO(source) if isinstance(source, (bytes, bytearray, memoryview)) else source
