"""AVIF and HEIC files that are read here in another way than by Pillow, each with one thing about it: their boxes are put together by hand.

Each function takes a pillow_decode.Comparison and a random.Random.
"""

import io
import random
import struct

from avif_files import XMP, box
from heic_files import pillow_heif
from made_pictures import exif_with, noisy_gradient, saved
from pillow_side import Image, features, numpy

# See pillow_decode.py.
EXCEPTIONS = {
    "avif animation without a picture beside its track": "libavif before version 1 cannot read it: refused",
    "avif animation with sound": "the same",
    "avif animation whose primary item is not its first picture": "Pillow shows the first of the track, here is the primary item",
    "avif turned by XMP in 2": "only what lies in one piece is read: upright",
    "heic of matrix RGB": "not converted here: refused",
    "heic of matrix YCgCo": "the same",
    "heic of mode RGBa": "colours that were multiplied by alpha: refused",
    "heic with damage in its alpha": "alpha is not decoded",
    "heic of limited range, turned": "of odd size: libheif stretches its colours twice",
    "heic in a grid, turned": "of odd size: libheif smooths chroma across parts",
    "heic of 4:2:2 upside down, turned": "of odd width: libheif moves chroma by a pixel",
    "heic of 4:2:2 in a grid, turned": "libheif smooths chroma across parts",
    "heic of noise, 4:4:4, of limited range": "not found yet",
    "heic image data in 2": "only what lies in one piece is read: refused",
    "heic whose thumbnail refers the wrong way": "Pillow shows the thumbnail, here is the picture that `pitm` names",
    "avif beside it more XMP than the file has": "the picture is whole",
    "heic beside it more XMP than the file has": "the same",
    "heic beside it EXIF that is no TIFF": "the same",
    "heic beside it a profile of no kind": "the same",
    "heic behind it another beginning": "the same",
}
FULL = bytes(4)  # version and flags of a box


def heif_of(brand, items, refers=()):
    """`items`: (its "infe" from the type on, its pieces, its property boxes) each, numbered from 1 on; the first is the primary item.

    `refers`: (kind, from, to) each. A piece is an extent of its own, and does not touch the next one.
    """
    numbers = range(1, len(items) + 1)
    entries = b"".join(box(b"infe", b"\2\0\0\0", struct.pack(">HH", number, 0), item[0]) for number, item in zip(numbers, items, strict=True))
    properties, uses, used = b"", b"", 0
    for number, (_, _, own) in zip(numbers, items, strict=True):
        properties += b"".join(own)
        uses += struct.pack(">HB", number, len(own)) + bytes(range(used + 1, used + 1 + len(own)))
        used += len(own)
    references = b"".join(box(kind, struct.pack(">HHH", one, 1, other)) for kind, one, other in refers)
    beginning = box(b"ftyp", brand, FULL, brand + b"mif1miaf")
    data = box(b"mdat", *[piece + b"gap." for item in items for piece in item[1]])

    def meta(at):
        places = b""
        for number, (_, pieces, _) in zip(numbers, items, strict=True):
            places += struct.pack(">HHH", number, 0, len(pieces))
            for piece in pieces:
                places += struct.pack(">II", at, len(piece))
                at += len(piece) + 4
        return box(
            b"meta",
            FULL,
            box(b"hdlr", FULL, FULL, b"pict", bytes(13)),
            box(b"pitm", FULL, struct.pack(">H", 1)),
            box(b"iloc", FULL, struct.pack(">HH", 0x4400, len(items)), places),
            box(b"iinf", FULL, struct.pack(">H", len(items)), entries),
            box(b"iprp", box(b"ipco", properties), box(b"ipma", FULL, struct.pack(">I", len(items)), uses)),
            box(b"iref", FULL, references),
        )

    return beginning + meta(len(beginning) + len(meta(0)) + 8) + data


def box_in(whole, name):
    at = whole.index(name) - 4
    return whole[at : at + int.from_bytes(whole[at : at + 4], "big")]


def in_two(data):
    return [data[: len(data) // 2], data[len(data) // 2 :]]


# --- AVIF ---------------------------------------------------------------------------------------------------------------------------------


def animation(rng):
    """An animation as Pillow writes it, its pictures, and another picture's data of the same kind."""
    pictures = [Image.fromarray(noisy_gradient(rng, 48, 32, 3)) for _ in range(4)]
    whole = saved(pictures[0], format="AVIF", save_all=True, append_images=pictures[1:3])
    return whole, box_in(saved(pictures[3], format="AVIF", save_all=True, append_images=pictures[:1]), b"mdat")[8:]


def sound_track():
    """Half a second of PCM, which nobody reads."""
    times = bytes(8)
    matrix = struct.pack(">9I", 0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000)
    header = box(b"tkhd", b"\0\0\0\3", times, struct.pack(">III", 2, 0, 500), bytes(8), struct.pack(">hhHH", 0, 1, 0x100, 0), matrix, bytes(8))
    entry = box(b"sowt", bytes(6), struct.pack(">H", 1), bytes(8), struct.pack(">HHHHI", 1, 16, 0, 0, 8000 << 16))
    table = box(
        b"stbl",
        box(b"stsd", FULL, struct.pack(">I", 1), entry),
        box(b"stts", FULL, struct.pack(">III", 1, 4000, 1)),
        box(b"stsc", FULL, struct.pack(">IIII", 1, 1, 4000, 1)),
        box(b"stsz", FULL, struct.pack(">II", 2, 4000)),
        box(b"stco", FULL, struct.pack(">II", 1, 0)),
    )
    media = box(
        b"minf",
        box(b"smhd", FULL, FULL),
        box(b"dinf", box(b"dref", FULL, struct.pack(">I", 1), box(b"url ", b"\0\0\0\1"))),
        table,
    )
    names = box(b"hdlr", FULL, FULL, b"soun", bytes(13))
    return box(b"trak", header, box(b"mdia", box(b"mdhd", FULL, times, struct.pack(">IIHH", 8000, 4000, 0x55C4, 0)), names, media))


def compare_avif_animations(comparison, _):
    rng = random.Random(1)
    whole, other = animation(rng)
    comparison.compare("avif animation as it was", whole, 0)
    comparison.compare("avif animation without a picture beside its track", whole.replace(b"pitm", b"free", 1), 0)
    # The old track's box is passed over, and the same one stands at the file's end, so that no place in it changes.
    track = box_in(whole, b"moov")
    comparison.compare("avif animation, moved", whole.replace(b"moov", b"free", 1) + track, 0)
    comparison.compare("avif animation with sound", whole.replace(b"moov", b"free", 1) + box(b"moov", track[8:], sound_track()), 0)
    at = whole.index(b"iloc") + 8 + 2 + 2 + 6
    place = struct.pack(">II", len(whole) + 8, len(other))
    comparison.compare("avif animation whose primary item is not its first picture", whole[:at] + place + whole[at + 8 :] + box(b"mdat", other), 0)
    comparison.expect_exceptions("avif animation")


def compare_avif_pieces(comparison, _):
    image = Image.fromarray(noisy_gradient(random.Random(1), 48, 32, 3))
    whole = saved(image, format="AVIF")
    picture = b"av01\0", [box_in(whole, b"mdat")[8:]], [box_in(whole, b"ispe"), box_in(whole, b"av1C")]
    for count, pieces in ((1, lambda data: [data]), (2, in_two)):
        xmp = b"mime\0application/rdf+xml\0", pieces(XMP % 6), []
        comparison.compare(f"avif turned by XMP in {count}", heif_of(b"avif", [picture, xmp], [(b"cdsc", 2, 1)]), 0)
        coded = picture[0], pieces(picture[1][0]), picture[2]
        comparison.compare(f"avif image data in {count}", heif_of(b"avif", [coded]), 0)
    comparison.expect_exceptions("avif turned by XMP")


# --- HEIC ---------------------------------------------------------------------------------------------------------------------------------


def compare_heic_colours(comparison, _):
    image = Image.fromarray(noisy_gradient(random.Random(1), 64, 64, 3))
    for name, matrix in (("RGB", 0), ("YCgCo", 8)):
        options = {"matrix_coefficients": matrix, "chroma": 444, "full_range_flag": 1, "color_primaries": 1, "transfer_characteristics": 13}
        comparison.compare(f"heic of matrix {name}", saved(image, format="HEIF", quality=90, **options), 0)
    for mode in ("RGBA", "RGBa"):
        file = io.BytesIO()
        pillow_heif.encode(mode, (64, 64), noisy_gradient(random.Random(1), 64, 64, 4).tobytes(), file, quality=90)
        comparison.compare(f"heic of mode {mode}", file.getvalue(), 0)
        if mode == "RGBA":
            whole = file.getvalue()
            at = whole.index(b"iinf") - 8  # the length of what stands last in the file
            (length,) = struct.unpack_from(">I", whole, at)
            comparison.compare("heic with damage in its alpha", whole[:-length] + bytes(length), 0)


def compare_heic_odd_sizes(comparison, _):
    """Those that are turned by EXIF: each that libheif turns in another way, and how it is without what makes it so."""
    pixels = noisy_gradient(random.Random(1), 131, 97, 3)
    for name, orientation, size, options in (
        ("of limited range", 2, (67, 45), {"full_range_flag": 0}),
        ("in a grid", 2, (131, 97), {"tile_size": 64}),
        ("of 4:2:2 upside down", 3, (67, 46), {"chroma": 422}),
        ("of 4:2:2 in a grid", 6, (128, 64), {"chroma": 422, "tile_size": 64}),
    ):
        image = Image.fromarray(pixels[: size[1], : size[0]])
        options = {"full_range_flag": 1, "chroma": 420, "matrix_coefficients": 6, "color_primaries": 1, "transfer_characteristics": 13} | options
        comparison.compare(f"heic {name}", saved(image, format="HEIF", quality=90, **options), 0)
        comparison.compare(f"heic {name}, turned", saved(image, format="HEIF", quality=90, exif=exif_with(orientation), **options), 0)


def compare_heic_levels(comparison, _):
    """One value of green in 100,000 is a level off; these have one."""
    for mode, matrix in (("RGB", 6), ("RGB;16", 5), ("RGB;16", 6)):
        kind = numpy.uint8 if mode == "RGB" else numpy.uint16
        pixels = numpy.random.default_rng(5).integers(0, numpy.iinfo(kind).max + 1, (180, 220, 3), dtype=kind)
        options = {"chroma": 444, "full_range_flag": 0, "matrix_coefficients": matrix, "color_primaries": 1, "transfer_characteristics": 13}
        file = io.BytesIO()
        pillow_heif.encode(mode, (220, 180), pixels.tobytes(), file, quality=90, **options)
        comparison.compare("heic of noise, 4:4:4, of limited range", file.getvalue(), 0)


def heic_item(rng, size):
    whole = saved(Image.fromarray(noisy_gradient(rng, *size, 3)), format="HEIF", quality=90)
    return b"hvc1\0", [box_in(whole, b"mdat")[8:]], [box_in(whole, name) for name in (b"hvcC", b"ispe", b"colr")]


def compare_heic_items(comparison, _):
    rng = random.Random(1)
    large, small = heic_item(rng, (128, 64)), heic_item(rng, (64, 64))
    comparison.compare("heic put together", heif_of(b"heic", [large]), 0)
    comparison.compare("heic image data in 2", heif_of(b"heic", [(large[0], in_two(large[1][0]), large[2])]), 0)
    comparison.compare("heic with a thumbnail", heif_of(b"heic", [large, small], [(b"thmb", 2, 1)]), 0)
    comparison.compare("heic whose thumbnail refers the wrong way", heif_of(b"heic", [large, small], [(b"thmb", 1, 2)]), 0)


# --- both ---------------------------------------------------------------------------------------------------------------------------------


def compare_beside_the_picture(comparison, _):
    """Damage to what no pixel depends on."""
    image = Image.fromarray(noisy_gradient(random.Random(1), 64, 64, 3))
    for kind, name in (("avif", "AVIF"), ("heic", "HEIF")):
        if name not in Image.SAVE:
            continue
        whole = saved(image, format=name, exif=exif_with(6), xmp=XMP % 6)
        at = whole.index(b"iinf") - 8  # the length of its last item
        comparison.compare(f"{kind} beside it nothing damaged", whole, 0)
        comparison.compare(f"{kind} beside it more XMP than the file has", whole[:at] + struct.pack(">I", 1 << 20) + whole[at + 4 :], 0)
        if kind == "heic":
            comparison.compare("heic beside it EXIF that is no TIFF", whole.replace(b"MM\0*", b"junk"), 0)
            comparison.compare("heic beside it a profile of no kind", whole.replace(b"nclx", b"abcd"), 0)
            comparison.compare("heic behind it another beginning", whole + whole[:60], 0)
        comparison.expect_exceptions(f"{kind} beside it")


def expect_heics(comparison, _):
    comparison.expect_exceptions("heic ")


COMPARISONS = [compare_beside_the_picture]
if features.check("avif"):
    COMPARISONS += [compare_avif_animations, compare_avif_pieces]
if pillow_heif:
    COMPARISONS += [compare_heic_colours, compare_heic_odd_sizes, compare_heic_levels, compare_heic_items, expect_heics]
