"""Pillow's side of the comparisons: its verdict on a file, its pixels, what it makes of them, and files that it writes.

Ends the program with status 77, which ctest counts as skipped, where Pillow or numpy is missing.
"""

import io
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from skips import skip_all

try:
    import numpy
    from PIL import ExifTags, Image, ImageFile, ImageOps, features
except ImportError as missing:
    skip_all(f"comparing with Pillow: {missing}; install tests/requirements.txt for {sys.executable}")

Image.MAX_IMAGE_PIXELS = None

FILTERS = ["NEAREST", "BOX", "BILINEAR", "HAMMING", "BICUBIC", "LANCZOS"]
FORMATS = ["JPEG", "MPO", "PNG", "WEBP", "PPM", "BMP", "GIF", "TIFF", "AVIF", "HEIF"]


class Picture:
    """What Pillow makes of a file, upright and in RGB; or why it does not. `size` is None where it cannot even be opened.

    truncated: LOAD_TRUNCATED_IMAGES, with which Pillow makes something of most damaged files. most_pixels: of what claims more, only
    the size is read. path: a file of the same bytes, which Pillow opens instead; it maps uncompressed pixels of some modes then.
    """

    def __init__(self, name, data, truncated=False, most_pixels=None, path=None):
        self.name, self.data, self.error, self.is_ours, self.size = name, data, None, True, None
        self.is_turned = self.is_tiff_on_its_side = False
        ImageFile.LOAD_TRUNCATED_IMAGES = truncated
        try:
            with Image.open(path or io.BytesIO(data)) as image:
                self.is_ours, self.size = image.format in FORMATS, image.size
                self.is_tiff_on_its_side = image.format == "TIFF" and image.tag_v2.get(ExifTags.Base.Orientation, 1) in (5, 6, 7, 8)
                if most_pixels is None or image.width * image.height <= most_pixels:
                    self.rgb = ImageOps.exif_transpose(image).convert("RGB")
                    self.size = self.rgb.size
                    self.is_turned = image.getexif().get(ExifTags.Base.Orientation, 1) != 1  # once it is loaded: PNG has EXIF at its end, too
        except Exception as error:  # whatever Pillow raises is its verdict
            self.error = f"{type(error).__name__}: {error}"


def with_pillow(image, crop=None, size=None, window=None, flip=0, resampling=2, channels=0):
    if crop:
        image = image.crop(crop)
    if size:
        image = image.resize(size, Image.Resampling[FILTERS[resampling]])
    if window:
        image = image.crop((window[0], window[1], window[0] + window[2], window[1] + window[3]))
    if flip:
        image = ImageOps.mirror(image)
    pixels = numpy.asarray(image.convert("L") if channels == 2 else image)
    return pixels[:, :, ::-1] if channels == 1 else pixels
