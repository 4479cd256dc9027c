"""TIFF files that are read here in another way than by Pillow, each with one thing about it.

Each function takes a pillow_decode.Comparison and a random.Random.
"""

import random
import struct

from made_pictures import noisy_gradient, saved
from odd_files import lossless_jpeg
from pillow_side import Image, numpy
from tiff_files import LONG, SHORT, shape, tiff

BYTE, FLOAT = 1, 11
# See pillow_decode.py.
EXCEPTIONS = {
    "made/tiff of 12 bits, sample format 1": "no tensor shows them",
    **{f"made/tiff of 32 bits, sample format {kind}": "nor these" for kind in (1, 2, 3)},
    **{f"made/tiff compressed by {name}": "a library that nobody asks for" for name in ("zstd", "lzma")},
    "made/tiff compressed by JPEG of the old style": "libtiff itself advises against it",
    "made/tiff compressed by lossless JPEG": "SOF3: libjpeg-turbo 3, in Pillow's wheels, decodes it; Debian's 2.1 cannot",
    "made/tiff of Fax4 that says Fax3": "libtiff 4.5 makes other rows of it than 4.7, or none",
    "made/tiff planes of 16 bits, []": "Pillow takes each plane for one of 8 bits a sample",
    "made/tiff planes of 16 bits, [2]": "the same",
    "made/tiff planes of 8 bits, [0]": "Pillow has no name for planes that are neither colours nor alpha",
    "made/tiff planes of 8 bits, [2, 0]": "the same",
    "made/tiff planes of CMYK": "a conversion that nobody asks for",
    **{
        f"made/tiff in reverse order, {kind}": "Pillow has no name for it"
        for kind in ("1, 2 samples of 8 bits", "2, 3 samples of 16 bits", "2, 4 samples of 8 bits", "5, 4 samples of 8 bits", "16 bits of grey, big-endian")
    },
    **{
        f"made/tiff of {kind} colours": "libtiff takes a picture with a palette of another length for grey: refused"
        for kind in ("4 bits with 15", "4 bits with 17", "8 bits with 255")
    },
    "made/tiff with more values than the file has": "libtiff would copy each: refused",
    "made/tiff whose tag 32996 is [1]": "Debian's libtiff 4.5 reads it as SampleFormat",
    **{f"made/tiff whose tag {what}": "libtiff refuses what Pillow passes over" for what in ("278 is [10, 10]", "280 is [0.0]", "281 is [255, 255]")},
    **{f"made/tiff whose tag {tag} is a byte": "libtiff takes any whole number, Pillow two bytes or four" for tag in (256, 257, 259, 266, 339)},
    **{
        f"made/tiff of {what}": "libtiff goes by the number of samples, and Pillow has no name for such a picture"
        for what in (
            "2 samples, 1, and {258: [8]}",
            "2 samples, 1, and {258: [8, 8, 8]}",
            "1 samples, 1, and {258: [8, 8, 8], 338: [0]}",
            "2 samples, 1, and {}",
            "5 samples, 2, and {}",
            "3 samples, 2, and {258: [8], 338: [0]}",
            "3 samples, 2, and {338: [0]}",
        )
    },
}
REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


def compare_tiff_depths(comparison, _):
    rng = random.Random(1)
    for bits, sample_format in ((12, 1), (32, 1), (32, 2), (32, 3)):
        tags = shape(24, 10, bits, 1) | {278: (LONG, [10]), 339: (SHORT, [sample_format])}
        data = struct.pack("<240f", *range(240)) if sample_format == 3 else rng.randbytes(24 * bits // 8 * 10)
        comparison.compare(f"made/tiff of {bits} bits, sample format {sample_format}", tiff(tags, [data]), 0)


def compare_tiff_compressions(comparison, _):
    pixels = noisy_gradient(random.Random(1), 40, 32, 3)
    image = Image.fromarray(pixels)
    for compression in ("zstd", "lzma"):
        comparison.compare(f"made/tiff compressed by {compression}", saved(image, format="TIFF", compression=compression), 0)
    webp = shape(40, 32, 8, 2, 3) | {259: (SHORT, [50001]), 278: (LONG, [32])}
    comparison.compare("made/tiff compressed by WebP", tiff(webp, [saved(image, format="WEBP", lossless=True)]), 0)
    jpeg = saved(image, format="JPEG", quality=90, subsampling=0)
    old = shape(40, 32, 8, 6, 3) | {259: (SHORT, [6]), 278: (LONG, [32]), 530: (SHORT, [1, 1]), 513: (LONG, [8]), 514: (LONG, [len(jpeg)])}
    comparison.compare("made/tiff compressed by JPEG of the old style", tiff(old, [jpeg]), 0)
    lossless = shape(40, 32, 8, 1) | {259: (SHORT, [7]), 278: (LONG, [32])}
    comparison.compare("made/tiff compressed by lossless JPEG", tiff(lossless, [lossless_jpeg(pixels[..., 0].tolist())]), 0)
    fax = saved(image.convert("1"), format="TIFF", compression="group4")
    at = fax.index(struct.pack("<HHIHH", 259, 3, 1, 4, 0))
    comparison.compare("made/tiff of Fax4", fax, 0)
    comparison.compare("made/tiff of Fax4 that says Fax3", fax[: at + 8] + b"\3" + fax[at + 9 :], 0)


def compare_tiff_planes_and_orders(comparison, _):
    rng = random.Random(1)
    width, height = 24, 10
    for bits, extra in ((8, []), (16, []), (8, [0]), (8, [2]), (16, [2]), (8, [2, 0])):
        samples = 3 + len(extra)
        planes = [rng.randbytes(width * bits // 8 * height) for _ in range(samples)]
        tags = shape(width, height, bits, 2, samples) | {278: (LONG, [height]), 284: (SHORT, [2])} | ({338: (SHORT, extra)} if extra else {})
        name = f"made/tiff planes of {bits} bits, {extra}"
        comparison.compare(name, tiff(tags, planes), 0)
        comparison.expect_pixels(name, tiff(tags, planes), upper_bytes(planes, bits, (height, width)))
    inks = shape(width, height, 8, 5, 4) | {278: (LONG, [height]), 284: (SHORT, [2])}
    comparison.compare("made/tiff planes of CMYK", tiff(inks, [rng.randbytes(width * height) for _ in range(4)]), 0)
    for photometric, bits, samples, extra in ((1, 8, 1, []), (1, 8, 2, [2]), (2, 16, 3, []), (2, 8, 4, [2]), (5, 8, 4, [])):
        data = rng.randbytes(width * bits // 8 * samples * height)
        tags = shape(width, height, bits, photometric, samples) | {278: (LONG, [height])} | ({338: (SHORT, extra)} if extra else {})
        file = tiff(tags | {266: (SHORT, [2])}, [data.translate(REVERSED)])
        name = f"made/tiff in reverse order, {photometric}, {samples} samples of {bits} bits"
        comparison.compare(name, file, 0)
        rows = numpy.frombuffer(data, numpy.uint8).reshape(height, width, samples, bits // 8)[..., -1]
        if photometric < 5:
            comparison.expect_pixels(name, file, rows[..., 0] if photometric == 1 else rows[..., :3])
    grey = shape(width, height, 16, 1) | {278: (LONG, [height]), 266: (SHORT, [2])}
    pixels = rng.randbytes(width * height)
    file = tiff(grey, [b"".join(bytes([0, value]) for value in pixels).translate(REVERSED)], big_endian=True)
    comparison.compare("made/tiff in reverse order, 16 bits of grey, big-endian", file, 0)
    shown = numpy.frombuffer(pixels, numpy.uint8).reshape(height, width)
    comparison.expect_pixels("made/tiff in reverse order, 16 bits of grey, big-endian", file, shown)


def upper_bytes(planes, bits, shape_of_plane):
    return numpy.stack([numpy.frombuffer(plane, numpy.uint8).reshape(*shape_of_plane, bits // 8)[..., -1] for plane in planes[:3]], axis=-1)


def compare_tiff_directories(comparison, _):
    """A value at a time that is missing, of another type or length, or contradicts another one."""
    pixels = noisy_gradient(random.Random(1), 24, 10, 5)
    good = shape(24, 10, 8, 2, 3) | {278: (LONG, [10])}
    colour = pixels[..., :3].tobytes()
    for bits, colours in ((4, 15), (4, 16), (4, 17), (8, 255), (8, 256)):
        tags = shape(24, 10, bits, 3) | {278: (LONG, [10]), 320: (SHORT, [value * 80 for value in range(1, 3 * colours + 1)])}
        file = tiff(tags, [bytes(i % 15 * 17 if bits == 4 else i for i in range(24 * bits // 8 * 10))])
        comparison.compare(f"made/tiff of {bits} bits with {colours} colours", file, 0)
    whole = tiff(good | {65000: (BYTE, [1, 2, 3, 4, 5])}, [colour])
    at = whole.index(struct.pack("<HHI", 65000, BYTE, 5)) + 4
    comparison.compare("made/tiff with a tag nobody knows", whole, 0)
    comparison.compare("made/tiff with more values than the file has", whole[:at] + struct.pack("<I", 1 << 20) + whole[at + 4 :], 0)
    for tag, kind, values in ((32996, SHORT, [1]), (278, SHORT, [10, 10]), (280, FLOAT, [0.0]), (281, SHORT, [255, 255])):
        comparison.compare(f"made/tiff whose tag {tag} is {values}", tiff(good | {tag: (kind, values)}, [colour]), 0)
    for tag in (256, 257, 259, 266, 339):
        value = {256: 24, 257: 10}.get(tag, 1)
        file = tiff(good | {tag: (BYTE, [value])}, [colour])
        comparison.compare(f"made/tiff whose tag {tag} is a byte", file, 0)
        comparison.expect_pixels(f"made/tiff whose tag {tag} is a byte", file, pixels[..., :3])
    for photometric, samples, more in (
        (1, 2, {258: [8]}),
        (1, 2, {258: [8] * 3}),
        (1, 1, {258: [8] * 3, 338: [0]}),
        (1, 2, {}),
        (2, 5, {}),
        (2, 3, {258: [8], 338: [0]}),
        (2, 3, {338: [0]}),
    ):
        tags = shape(24, 10, 8, photometric, samples) | {278: (LONG, [10])} | {tag: (SHORT, values) for tag, values in more.items()}
        file = tiff(tags, [pixels[..., :samples].tobytes()])
        name = f"made/tiff of {samples} samples, {photometric}, and {more}"
        comparison.compare(name, file, 0)
        comparison.expect_pixels(name, file, pixels[..., 0] if photometric == 1 else pixels[..., :3])


# --- by path ------------------------------------------------------------------------------------------------------------------------------

LYING = {"grey": (8, 1, 1), "16-bit grey": (16, 1, 1), "palette": (8, 3, 1), "RGBA": (8, 2, 4), "CMYK": (8, 5, 4)}
MIXED_UP_BY_PATH = {f"made/tiff on its side, {kind} {orientation}" for kind in LYING for orientation in (5, 6, 7, 8)}


def compare_tiffs_on_their_side(comparison, _):
    """Uncompressed, in one strip: Pillow maps such a file where it opens it by its path."""
    rng = random.Random(1)
    for kind, (bits, photometric, samples) in LYING.items():
        data = rng.randbytes(24 * bits // 8 * samples * 10)
        tags = shape(24, 10, bits, photometric, samples) | {278: (LONG, [10])}
        if photometric == 3:
            tags[320] = (SHORT, [rng.randrange(65536) for _ in range(768)])
        if kind == "RGBA":
            tags[338] = (SHORT, [2])
        for orientation in range(1, 9):
            comparison.compare(f"made/tiff on its side, {kind} {orientation}", tiff(tags | {274: (SHORT, [orientation])}, [data]), 0)


COMPARISONS = [
    compare_tiff_depths,
    compare_tiff_compressions,
    compare_tiff_planes_and_orders,
    compare_tiff_directories,
    compare_tiffs_on_their_side,
]
