"""HEIC files as pillow-heif writes them, by heif-enc (libheif-examples) where it is, and with their boxes changed.

Each function takes a pillow_decode.Comparison and a random.Random.
"""

import io
import random
import struct

from avif_files import grids_of, with_parts
from made_pictures import exif_with, noisy_gradient, random_image, saved
from pillow_side import Image, numpy
from skips import skip

try:
    import pillow_heif
except ImportError:
    pillow_heif = None
    skip("HEIC: pillow-heif is missing; install tests/requirements.txt")
else:
    pillow_heif.register_heif_opener()

XMP = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:Description tiff:Orientation="3"/></x:xmpmeta>'


def compare_saved_heics(comparison, rng):
    for number in range(120):
        mode = rng.choice(["L", "RGB", "RGB", "RGBA"])
        matrix = rng.choice([6, 6, 1, 2, 4, 5, 7, 9])
        options = {
            "quality": rng.choice([1, 40, 80, 100]),
            "chroma": rng.choice([420, 420, 422, 444]),
            "matrix_coefficients": matrix,
            "full_range_flag": rng.choice([0, 1, 1]),
            "color_primaries": 1,
            "transfer_characteristics": 13,
        }
        image = random_image(rng, mode)
        if rng.random() < 0.4:
            options |= {"exif": exif_with(rng.randint(1, 8)), "full_range_flag": 1}
        if rng.random() < 0.2:
            options |= {"xmp": XMP, "full_range_flag": 1}
        if rng.random() < 0.3:
            options["tile_size"] = 64
        if "tile_size" in options and options["chroma"] == 422:
            options.pop("exif", None)  # nor are grids of 4:2:2 turned as there
        if "tile_size" in options or options["chroma"] == 422:  # libheif turns odd ones in other ways (daemon/backend/cpu/README.md)
            image = image.resize((image.width + image.width % 2, image.height + image.height % 2))
        name = f"heic {number} {mode} {options['chroma']} {matrix} {options['full_range_flag']} {sorted(options)} {image.size}"
        comparison.compare(name, saved(image, format="HEIF", **options), 3)


def compare_deep_heics(comparison, rng):
    for number in range(40):
        mode, bands = rng.choice([("RGB;16", 3), ("RGBA;16", 4), ("L;16", 1)])
        size = rng.randint(2, 150), rng.randint(2, 150)
        pixels = numpy.random.default_rng(rng.getrandbits(64)).integers(0, 65536, (size[1], size[0], bands), dtype=numpy.uint16)
        pixels = (pixels // 8 + noisy_gradient(rng, *size, bands).astype(numpy.uint16) * 220).astype(numpy.uint16)
        options = {"quality": rng.choice([30, 90]), "chroma": rng.choice([420, 422, 444]), "full_range_flag": rng.choice([0, 1])}
        options |= {"matrix_coefficients": rng.choice([1, 6, 9]), "color_primaries": 1, "transfer_characteristics": 13}
        file = io.BytesIO()
        pillow_heif.encode(mode, size, pixels.tobytes(), file, **options)
        comparison.compare(f"heic of more bits {number} {mode} {options['chroma']} {options['full_range_flag']}", file.getvalue(), 2)


def compare_changed_heics(comparison, rng):
    image = Image.fromarray(noisy_gradient(rng, 67, 45, 3))
    for orientation in range(1, 9):
        whole = saved(image, format="HEIF", exif=exif_with(orientation))
        comparison.compare(f"heic turned as EXIF {orientation}", whole, 2)
        comparison.compare(f"heic with EXIF {orientation} alone", whole.replace(b"irot", b"free").replace(b"imir", b"free"), 1)
    whole = saved(image, format="HEIF")
    for size in (0, 7, 12, 31, 100, 200, 280, len(whole) // 2, len(whole) - 1):
        comparison.compare(f"heic cut off at {size}", whole[:size], 0)
    for name in (b"meta", b"pitm", b"iloc", b"iinf", b"infe", b"iprp", b"ipco", b"ipma", b"ispe", b"hvcC", b"pixi", b"mdat"):
        comparison.compare(f"heic without {name.decode()}", whole.replace(name, b"free", 1), 0)
    without = whole.replace(b"colr", b"free")
    comparison.compare("heic without colr", without, 2)
    at = whole.index(b"ispe") + 8
    for size in ((66, 45), (0, 45), (1 << 31, 1 << 31), (134, 90)):
        comparison.compare(f"heic whose ispe says {size}", whole[:at] + struct.pack(">II", *size) + whole[at + 8 :], 0)


def compare_heic_grids_in_disorder(comparison, _):
    rng = random.Random(1)
    whole = saved(random_image(rng, "RGB").resize((192, 128)), format="HEIF", tile_size=64)
    for at, parts in grids_of(whole):
        for order in (parts, parts[::-1], [parts[1], parts[0], *parts[2:]], [parts[0], parts[0], *parts[2:]], [part + 100 for part in parts]):
            comparison.compare(f"heic grid of {order}", with_parts(whole, at, order), 0)


COMPARISONS = [compare_saved_heics, compare_deep_heics, compare_changed_heics, compare_heic_grids_in_disorder] if pillow_heif else []
