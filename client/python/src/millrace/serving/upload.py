"""Uploaded images that stay encoded on their way through a server, so that the daemon decodes them. Imports Pillow.

A server opens each one as an image of PIL's and passes that on. In its place comes one that knows its size from the file's header and
has no pixels until somebody looks at them: the daemon takes its bytes, and everybody else finds the pixels that the server would have.
"""

from __future__ import annotations

import io
import sys
from typing import Any

from PIL import Image, ImageOps

_SIDEWAYS = (5, 6, 7, 8)  # of EXIF's orientations
_ORIENTATION = 0x0112


class Upload(Image.Image):  # type: ignore[misc]
    """A JPEG in colours, turned as EXIF says. Thread-bound, as PIL's images are.

    Once it is decoded, its pixels are what counts, for somebody may have changed them.
    """

    _im: Any

    def __init__(self, encoded: bytes, size: tuple[int, int]) -> None:
        super().__init__()
        self.millrace_source = encoded  # what millrace.hf looks for
        self._mode = "RGB"
        self._size = size

    @property
    def im(self) -> Any:
        """The pixels, as PIL has them. Raises what PIL raises."""
        if self._im is None:
            with Image.open(io.BytesIO(self.millrace_source)) as opened:
                image = ImageOps.exif_transpose(opened).convert("RGB")
            self._im, self._size = image.im, image.size
        return self._im

    @im.setter
    def im(self, pixels: Any) -> None:
        self._im = pixels

    def load(self) -> Any:
        """Access to the pixels, as PIL's; they are decoded when one is asked for."""
        return _Access(self) if self._im is None else super().load()


class _Access:
    """Of an upload that nobody has decoded."""

    def __init__(self, upload: Upload) -> None:
        self._upload = upload

    def __getitem__(self, place: Any) -> Any:
        return self._pixels()[place]

    def __setitem__(self, place: Any, colour: Any) -> None:
        self._pixels()[place] = colour

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pixels(), name)

    def _pixels(self) -> Any:
        return self._upload.im.pixel_access(self._upload.readonly)


def opened(encoded: bytes) -> Upload | None:
    """An upload of these bytes; None where the server should do with them what it always does: no JPEG, broken, of other colours."""
    try:
        with Image.open(io.BytesIO(encoded), formats=("JPEG",)) as image:
            if image.mode != "RGB":
                return None
            width, height = image.size
            sideways = image.getexif().get(_ORIENTATION) in _SIDEWAYS
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        return None
    return Upload(encoded, (height, width) if sideways else (width, height))


def keep_encoded(image: Any) -> None:
    """Has vLLM's module ``vllm.multimodal.media.image`` keep JPEG files encoded once a processor has been taken over. Idempotent."""
    own = image.ImageMediaIO.load_bytes
    if hasattr(own, "millrace"):
        return

    def load_bytes(self: Any, data: bytes) -> Any:
        takeover = sys.modules.get("millrace.serving.takeover")
        upload = opened(data) if takeover is not None and takeover.taken and self.image_mode == "RGB" else None
        if upload is None:
            return own(self, data)
        pixels, most = upload.width * upload.height, image.envs.VLLM_MAX_IMAGE_PIXELS
        if 0 < most < pixels:
            return own(self, data)  # refuses it, in its own words
        if self.decoded_budget is not None:
            self.decoded_budget.charge(pixels * 4)
        return image.MediaWithBytes(upload, data, None)

    load_bytes.millrace = True  # type: ignore[attr-defined]
    image.ImageMediaIO.load_bytes = load_bytes
