"""Undamaged files of the formats: real ones and what Pillow makes of them where there is test data, made-up ones elsewhere."""

import functools
import io
import os
import random
import struct
import zlib

import raster_files
from heic_files import pillow_heif
from made_pictures import exif_with, noisy_gradient, saved
from pillow_side import Image, Picture, numpy

LARGEST = 250_000  # bytes of a file: larger photographs only make the test longer


def jpeg(image, rng, **options):
    options["quality"] = rng.choice((30, 75, 85, 92))
    options["subsampling"] = rng.randrange(3)
    options["optimize"] = rng.random() < 0.3
    if rng.random() < 0.3:
        options["exif"] = exif_with(rng.randint(1, 8))
    return saved(image, format="JPEG", **options)


def again(image, rng):
    return jpeg(image.convert(rng.choice(("RGB", "RGB", "L", "CMYK"))), rng)


def restarts(image, rng):
    every = {"restart_marker_rows": rng.choice((1, 1, 2, 5))} if rng.random() < 0.6 else {"restart_marker_blocks": rng.choice((1, 4, 13, 50))}
    return jpeg(image.convert(rng.choice(("RGB", "RGB", "RGB", "L"))), rng, **every)


def progressive(image, rng):
    every = {"restart_marker_rows": 1} if rng.random() < 0.2 else {}
    return jpeg(image.convert(rng.choice(("RGB", "RGB", "L", "CMYK"))), rng, progressive=True, **every)


def png(image, rng):
    mode = rng.choice(("RGB", "RGB", "RGB", "RGBA", "L", "LA", "P", "1", "I;16"))
    small = image.resize((rng.randint(1, 24) * 16, rng.randint(1, 16) * 16))
    small = small.quantize(rng.choice((4, 16, 200))) if mode == "P" else small.convert("I" if mode == "I;16" else mode)
    options = {"compress_level": rng.choice((1, 6))}
    if rng.random() < 0.3:
        options["exif"] = exif_with(rng.randint(1, 8))
    return saved(small.convert("I;16") if mode == "I;16" else small, format="PNG", **options)


PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))  # x, y, dx, dy of Adam7


def interlaced(image, rng):
    """An interlaced PNG in many small chunks, which Pillow does not write."""
    pixels = numpy.asarray(image.resize((rng.randint(1, 300), rng.randint(1, 200))))
    rows = []
    for x, y, dx, dy in PASSES:
        rows += [b"\0" + row.tobytes() for row in pixels[y::dy, x::dx] if row.size]
    stream, size = zlib.compress(b"".join(rows)), rng.choice((100, 8192))
    height, width = pixels.shape[:2]
    parts = [(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 1))]
    parts += [(b"IDAT", stream[at : at + size]) for at in range(0, len(stream), size)]
    parts.append((b"IEND", b""))
    written = (struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in parts)
    return b"\x89PNG\r\n\x1a\n" + b"".join(written)


def webp(image, rng, mode="RGB", **options):
    small = image.resize((rng.randint(4, 20) * 16, rng.randint(4, 20) * 16)).convert(mode)
    if mode == "RGBA":
        small.putalpha(small.convert("L"))
    if rng.random() < 0.2:
        options["exif"] = exif_with(rng.randint(1, 8))
    return saved(small, format="WEBP", quality=rng.choice((40, 80, 95)), method=0, **options)


def webp_lossless(image, rng):
    return webp(image, rng, mode=rng.choice(("RGB", "RGBA")), lossless=True)


def webp_alpha(image, rng):
    return webp(image, rng, mode="RGBA")


def small_of(image, rng, mode="RGB"):
    small = image.resize((rng.randint(2, 200), rng.randint(2, 150)))
    return small.quantize(rng.choice((2, 16, 200))) if mode == "P" else small.convert(mode)


def bmp(image, rng):
    return saved(small_of(image, rng, rng.choice(("RGB", "RGBA", "L", "P", "1"))), format="BMP")


def bmp_runs(_, rng):
    """BMP in run-length codes, which Pillow does not write."""
    width, height, bits = rng.randint(1, 60), rng.randint(1, 40), rng.choice((4, 8))
    palette = raster_files.random_palette(rng, 1 << bits, 4)
    while True:  # until its codes are as many as the picture wants
        data = raster_files.runs(rng, width, height, bits == 4)
        file = raster_files.bmp(rng, width=width, height=height, bits=bits, compression=2 if bits == 4 else 1, palette=palette, data=data)
        if Picture("", file).error is None:
            return file


def gif(image, rng):
    return saved(small_of(image, rng, rng.choice(("P", "L", "1"))), format="GIF", interlace=rng.randrange(2))


def pnm(image, rng):
    return saved(small_of(image, rng, rng.choice(("RGB", "L", "1"))), format="PPM")


def tiff_kind(name, compression, modes, **more):
    def tiff(image, rng):
        options = {"compression": compression} | more
        if compression != "jpeg":  # its rows have to be whole blocks
            options["strip_size"] = rng.choice((500, 8192, 65536))
        return saved(small_of(image, rng, rng.choice(modes)), format="TIFF", **options)

    tiff.__name__ = f"tiff_{name}"
    return tiff


ANY = ("RGB", "RGB", "RGBA", "L", "LA", "P", "1", "CMYK")
TIFFS = [
    tiff_kind("raw", None, ANY),
    tiff_kind("lzw", "tiff_lzw", ANY),
    tiff_kind("lzw_predicted", "tiff_lzw", ("RGB", "L"), tiffinfo={317: 2}),
    tiff_kind("deflate", "tiff_adobe_deflate", ANY),
    tiff_kind("packbits", "packbits", ANY),
    tiff_kind("jpeg", "jpeg", ("RGB", "L", "CMYK")),
    tiff_kind("fax3", "group3", ("1",)),
    tiff_kind("fax4", "group4", ("1",)),
]


def avif(image, rng):
    small = small_of(image, rng, rng.choice(("RGB", "RGB", "RGBA", "L")))
    return saved(small, format="AVIF", quality=rng.choice((30, 60, 90)), subsampling=rng.choice(("4:2:0", "4:4:4")), speed=8)


def heic(image, rng):
    tiles = {"tile_size": 64} if rng.random() < 0.3 else {}
    small = small_of(image, rng)
    even = small.resize((small.width + small.width % 2, small.height + small.height % 2))
    return saved(even, format="HEIF", quality=rng.choice((30, 80)), chroma=rng.choice((420, 444)), **tiles)


# The kinds of file; those that occur twice are drawn twice as often.
USUAL = ["photo", "photo", "photo", again, restarts, restarts, progressive, png, png, interlaced, webp, webp_lossless, webp_alpha]
OTHERS = [bmp, bmp, bmp_runs, gif, gif, pnm, *TIFFS, avif, avif, avif, *([heic, heic, heic] if pillow_heif else [])]


def files_in(folder):
    paths = [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
    return [path for path in paths if os.path.getsize(path) <= LARGEST or path.endswith(".png")]


class Originals:
    """The files to damage, of these kinds; `data`: the folder of test data, or None."""

    def __init__(self, data, kinds):
        self.kinds, self.made = kinds, not data
        self.photos = files_in(os.path.join(data, "photos")) if data else [f"made {number}" for number in range(12)]
        self.kodak = files_in(os.path.join(data, "kodak")) if data else self.photos

    @functools.cache
    def source(self, path):
        """(a file's bytes, its picture)."""
        if self.made:
            rng = random.Random(path)
            image = Image.fromarray(noisy_gradient(rng, rng.randint(90, 260), rng.randint(90, 260), 3))
            return saved(image, format="JPEG", quality=90, subsampling=rng.choice((0, 2))), image
        with open(path, "rb") as file:
            data = file.read()
        return data, Image.open(io.BytesIO(data)).convert("RGB")

    @functools.cache
    def file(self, kind, path):
        data, image = self.source(path)
        return data if kind == "photo" else kind(image, random.Random(f"{kind.__name__} {path}"))

    def draw(self, rng):
        """(kind, name of the source, bytes)."""
        kind = rng.choice(self.kinds)
        path = rng.choice(self.kodak if kind in (png, interlaced) else self.photos)
        name = kind if kind == "photo" else kind.__name__.replace("_", " ")
        return name, os.path.basename(path), self.file(kind, path)
