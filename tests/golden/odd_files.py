"""PNG and WebP files put together chunk by chunk, EXIF and XMP in every place, a lossless JPEG: what is odd about a file, one thing at a time.

Each function takes a pillow_decode.Comparison and a random.Random.
"""

import random
import struct
import zlib

from made_pictures import exif_with, noisy_gradient, saved
from PIL import Image


def png_of(chunks):
    parts = [b"\x89PNG\r\n\x1a\n"]
    for kind, data in chunks:
        parts.append(struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)))
    return b"".join(parts)


def png_header(width, height, depth=8, colour=2, *, compression=0, filtering=0, interlace=0):
    return b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, compression, filtering, interlace)


END = (b"IEND", b"")


def in_pieces(data, size):
    return [(b"IDAT", data[at : at + size]) for at in range(0, len(data), size)]


class Rows:
    """A small RGB picture's chunks, to be put together wrongly."""

    def __init__(self, rng, width=37, height=23):
        self.header = png_header(width, height)
        self.raw = b"".join(bytes([0]) + row.tobytes() for row in noisy_gradient(rng, width, height, 3))
        self.stride = 1 + 3 * width
        self.data = zlib.compress(self.raw)

    def png(self, *, before=(), data=None, behind=(), size=1 << 30):
        return png_of([self.header, *before, *in_pieces(self.data if data is None else data, size), *behind, END])


def compare_png_data(comparison, rng):
    rows = Rows(rng)
    wrong = rows.data[:-1] + bytes([rows.data[-1] ^ 1])
    flat = zlib.compress(bytes(len(rows.raw)))
    for size in (1, 3, 4, 100, 1 << 30):
        comparison.compare(f"made/png in pieces of {size}", rows.png(size=size))
        comparison.compare(f"made/png adler {size}", rows.png(data=wrong, size=size))
        for data in (rows.data, flat):
            for cut in range(1, 14):
                comparison.compare(f"made/png data cut by {cut} in pieces of {size}", rows.png(data=data[:-cut], size=size))
    # The checksum around the end of a piece as Pillow reads them: 64 KiB.
    for length in range(65536 - 8, 65536 + 9):
        raw = bytes(length - 11)
        stream = b"\x78\x01\x01" + struct.pack("<HH", len(raw), 0xFFFF ^ len(raw)) + raw + b"\0\0\0\0"
        if (length - 12) % 3 == 0:
            comparison.compare(f"made/png adler at {length}", png_of([png_header((length - 12) // 3, 1), (b"IDAT", stream), END]))
    comparison.compare("made/png rows more", rows.png(data=zlib.compress(rows.raw + bytes(500))))
    comparison.compare("made/png junk behind the data", rows.png(data=rows.data + b"junk"))
    comparison.compare("made/png data behind the data", rows.png(behind=[(b"IDAT", b"junk"), (b"IDAT", b"")]))
    comparison.compare("made/png rows end early", rows.png(data=zlib.compress(rows.raw[: rows.stride * 9])))
    comparison.compare("made/png inside a row", rows.png(data=zlib.compress(rows.raw[: rows.stride * 9 + 5])))
    comparison.compare("made/png dictionary", rows.png(data=b"\x78\x20" + rows.data[2:]))
    comparison.compare("made/png no data", rows.png(data=b""))
    comparison.compare("made/png filter 5", rows.png(data=zlib.compress(b"\5" + rows.raw[1:])))
    whole = rows.png(behind=[(b"tEXt", b"Comment\0text"), (b"IDAT", b"12345678")])
    for cut in range(1, 70):
        comparison.compare(f"made/png cut by {cut}", whole[:-cut], 0)


def compare_png_headers(comparison, rng):
    rows = Rows(rng)
    image = (b"IDAT", rows.data)
    comparison.compare("made/png header behind text", png_of([(b"tEXt", b"a\0b"), rows.header, image, END]))
    comparison.compare("made/png header of 14 bytes", png_of([(b"IHDR", rows.header[1] + b"x"), image, END]))
    comparison.compare("made/png header of 12 bytes", png_of([(b"IHDR", rows.header[1][:12]), image, END]))
    comparison.compare("made/png compression 1", png_of([png_header(37, 23, compression=1), image, END]))
    comparison.compare("made/png filtering 1", png_of([png_header(37, 23, filtering=1), image, END]))
    comparison.compare("made/png no header", png_of([image, END]))
    comparison.compare("made/png header behind the data", png_of([image, rows.header, END]))
    comparison.compare("made/png data before the header", png_of([(b"IDAT", b"anything"), rows.header, image, END]))
    comparison.compare("made/png two headers", png_of([png_header(1, 1), rows.header, image, END]))
    raw = b"".join(b"\0" + bytes(rng.randrange(256) for _ in range(6)) for _ in range(5))
    for palette in (None, 0, 2, 3, 5, 9, 48, 60, 766, 767, 768, 770, 771):
        chunks = [] if palette is None else [(b"PLTE", bytes(rng.randrange(256) for _ in range(palette)))]
        for depth in (1, 2, 4, 8):
            header = png_header(48 // depth, 5, depth, 3)
            comparison.compare(f"made/png palette of {palette}, depth {depth}", png_of([header, *chunks, (b"IDAT", zlib.compress(raw)), END]))
    header = png_header(6, 5, 8, 3)
    palettes = [(b"PLTE", bytes(range(100, 190))), (b"PLTE", b"\1\2\3")]
    comparison.compare("made/png two palettes", png_of([header, *palettes, (b"IDAT", zlib.compress(raw)), END]))
    comparison.compare("made/png palette first", png_of([palettes[0], header, (b"IDAT", zlib.compress(raw)), END]))
    comparison.compare("made/png palette last", png_of([header, (b"IDAT", zlib.compress(raw)), palettes[0], END]))
    for depth in (0, 1, 2, 3, 4, 8, 16, 32):
        for colour in range(8):
            image = (b"IDAT", zlib.compress(bytes(3000)))
            comparison.compare(f"made/png depth {depth} colour {colour}", png_of([png_header(9, 9, depth, colour), image, END]), 0)


def compare_png_chunks(comparison, rng):
    rows = Rows(rng)
    grey = png_of([png_header(5, 1, 8, 0), (b"tRNS", b"1"), (b"IDAT", zlib.compress(bytes(6))), END])
    comparison.compare("made/png grey transparency of 1 byte", grey)
    sizes = {b"tRNS": 6, b"gAMA": 4, b"cHRM": 32, b"sRGB": 1, b"pHYs": 9, b"acTL": 8, b"fcTL": 26, b"fdAT": 4, b"IHDR": 13, b"ab1_": 1, b"bKGD": 6}
    for kind, size in sizes.items():
        chunk = (kind, bytes(size - 1))
        comparison.compare(f"made/png short {kind} before", rows.png(before=[chunk]), 0)
        comparison.compare(f"made/png short {kind} behind", rows.png(behind=[chunk]), 0)
    for kind in (b"iCCP", b"zTXt", b"iTXt", b"tEXt"):
        for data in (b"", b"k", b"k\0", b"\0\0", b"k\0\1data", b"k\0\0data", b"k\0\1\1a\0b\0c", b"k\0\1\0a\0b\0c"):
            comparison.compare(f"made/png {kind} {data} before", rows.png(before=[(kind, data)]), 0)
            comparison.compare(f"made/png {kind} {data} behind", rows.png(behind=[(kind, data)]), 0)
    bomb = zlib.compress(bytes(2 << 20), 9)
    comparison.compare("made/png long text", rows.png(before=[(b"zTXt", b"k\0\0" + bomb)]))
    comparison.compare("made/png long profile", rows.png(before=[(b"iCCP", b"k\0\0" + bomb)]))
    text = (b"zTXt", b"k\0\0" + zlib.compress(bytes(1 << 20), 9))
    comparison.compare("made/png texts of 64 MiB", rows.png(before=[text] * 64), 0)
    comparison.compare("made/png texts of 65 MiB", rows.png(before=[text] * 65), 0)


def compare_png_animations(comparison, rng):
    rows = Rows(rng)

    def frame(number, width=37, height=23, left=0, top=0):
        return b"fcTL", struct.pack(">IIIIIHHBB", number, width, height, left, top, 1, 10, 0, 0)

    def animation(frames):
        return b"acTL", struct.pack(">II", frames, 0)

    def data(number):
        return b"fdAT", struct.pack(">I", number) + rows.data

    bad = (b"gAMA", b"")
    for frames in (0, 1, 2, 0x80000001):
        name = f"made/png {frames} frames"
        comparison.compare(name, rows.png(before=[animation(frames), frame(0)], behind=[frame(1), data(2)]))
        comparison.compare(f"{name}, trouble behind", rows.png(before=[animation(frames), frame(0)], behind=[frame(1), bad]), 0)
        comparison.compare(f"{name}, default image, trouble behind", rows.png(before=[animation(frames)], behind=[frame(0), bad]), 0)
        comparison.compare(f"{name} twice, trouble behind", rows.png(before=[animation(frames)] * 2, behind=[frame(0), bad]), 0)
    for number in (0, 1, 2, 3):
        comparison.compare(f"made/png first frame {number}", rows.png(before=[frame(number)]), 0)
        comparison.compare(f"made/png later frame {number}", rows.png(before=[frame(0)], behind=[frame(number)]), 0)
        comparison.compare(f"made/png later data {number}", rows.png(before=[frame(0)], behind=[data(number)]), 0)
    comparison.compare("made/png first frame outside", rows.png(before=[frame(0, left=1)]), 0)
    small = zlib.compress(b"".join(rows.raw[y * rows.stride : y * rows.stride + 1 + 3 * 20] for y in range(23)))
    comparison.compare("made/png first frame small", rows.png(before=[animation(2), frame(0, width=20)], data=small), 0)
    comparison.compare("made/png frame before the data", rows.png(before=[data(1)]), 0)
    comparison.compare("made/png image data in fdAT", png_of([rows.header, animation(2), frame(0), data(1), END]), 0)


def text_chunks(keyword, value):
    yield "tEXt", (b"tEXt", keyword + b"\0" + value)
    yield "zTXt", (b"zTXt", keyword + b"\0\0" + zlib.compress(value))
    yield "iTXt", (b"iTXt", keyword + b"\0\0\0en\0key\0" + value)
    yield "compressed iTXt", (b"iTXt", keyword + b"\0\1\0en\0key\0" + zlib.compress(value))


def compare_orientations(comparison, rng):
    rows = Rows(rng)
    exif = [exif_with(orientation)[6:] for orientation in range(9)]
    xmp = [b'<rdf:Description tiff:Orientation="%d"/>' % orientation for orientation in range(9)]
    raw = [b"\nexif\n%8d\n%s\n" % (len(block), block.hex().encode()) for block in exif]
    for orientation in (1, 3, 6, 8):
        texts = [(b"XML:com.adobe.xmp", xmp), (b"Raw profile type exif", raw), (b"exif", exif)]
        for keyword, values in texts:
            for kind, chunk in text_chunks(keyword, values[orientation]):
                name = f"made/png {keyword.decode()} in {kind}: {orientation}"
                if keyword == b"exif" and kind != "tEXt":
                    continue
                comparison.compare(name, rows.png(before=[chunk]), 0)
                comparison.compare(name + ", behind", rows.png(behind=[chunk]), 0)
                comparison.compare(name + ", and eXIf", rows.png(before=[(b"eXIf", exif[5])], behind=[chunk]), 0)
    for _ in range(150):
        chunks = []
        for _ in range(rng.randint(2, 4)):
            orientation = rng.randrange(1, 9)
            values = rng.choice([(b"XML:com.adobe.xmp", xmp), (b"XML:com.adobe.xmp", [b""] * 9), (b"Raw profile type exif", raw)])
            chunks.append(rng.choice([chunk for _, chunk in text_chunks(values[0], values[1][orientation])]))
            if rng.random() < 0.2:
                chunks.append((b"eXIf", exif[rng.randrange(1, 9)]))
        split = rng.randint(0, len(chunks))
        comparison.compare(f"made/png texts {[kind for kind, _ in chunks]}", rows.png(before=chunks[:split], behind=chunks[split:]), 0)
    comparison.compare("made/png exif is no TIFF", rows.png(before=[(b"eXIf", b"nothing")]), 0)
    comparison.compare("made/png exif is empty", rows.png(before=[(b"eXIf", b""), next(text_chunks(b"XML:com.adobe.xmp", xmp[6]))[1]]), 0)
    comparison.compare("made/png raw exif is no hex", rows.png(before=[(b"tEXt", b"Raw profile type exif\0\n\n\nxx")]), 0)
    for keyword, value in ((b"exif", exif[6]), (b"xmp", xmp[6])):
        for kind, chunk in text_chunks(keyword, value):
            if (keyword, kind) != (b"exif", "tEXt"):
                comparison.compare(f"made/png keyword {keyword.decode()} in {kind}", rows.png(before=[chunk]), 0)
    plain = saved(Image.fromarray(noisy_gradient(rng, 33, 20, 3)), format="JPEG")
    no_tiff = b"\xff\xe1" + struct.pack(">H", 2 + 6 + 7) + b"Exif\0\0" + b"nothing"
    for density in (0, 1, 2):  # which JFIF has in dots per inch, dots per centimetre, or of no unit
        jfif = plain[:13] + bytes([density]) + plain[14:20]
        comparison.compare(f"made/jpeg exif is no TIFF, density {density}", jfif + no_tiff + plain[20:], 0)
    for mark in (b"MM\0*", b"MM*\0", b"MM\0+", b"II*\0", b"II\0*", b"II+\0", b"MM+\0", b"XX\0*"):
        order = "<" if mark[:1] == b"I" else ">"
        block = mark + struct.pack(order + "IHHHIHHI", 8, 1, 274, 3, 1, 6, 0, 0)
        for split in (0, 7, 13, len(block)):
            parts = [block] if split == 0 else [block[:split], block[split:]]
            segments = b"".join(b"\xff\xe1" + struct.pack(">H", len(part) + 8) + b"Exif\0\0" + part for part in parts)
            without_density = plain[:2] + plain[20:]  # with one, Pillow does not read EXIF early and would raise
            comparison.compare(f"made/jpeg {mark} split at {split}", without_density[:2] + segments + without_density[2:], 0)
    webp = saved(Image.fromarray(noisy_gradient(rng, 33, 20, 3)), format="WEBP", exif=b"nothing at all")
    comparison.compare("made/webp exif is no TIFF", webp, 0)


def riff(chunks):
    body = b"WEBP" + b"".join(kind + struct.pack("<I", len(data)) + data + bytes(len(data) % 2) for kind, data in chunks)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def riff_chunks(data):
    at = 12
    while at + 8 <= len(data):
        size = struct.unpack("<I", data[at + 4 : at + 8])[0]
        yield data[at : at + 4], data[at + 8 : at + 8 + size]
        at += 8 + size + size % 2


def compare_webp_chunks(comparison, rng):
    for mode, options in (("RGB", {}), ("RGB", {"lossless": True}), ("RGBA", {}), ("RGBA", {"lossless": True})):
        bands = len(mode)
        whole = saved(Image.fromarray(noisy_gradient(rng, 150, 110, bands)), format="WEBP", **options)
        chunks = list(riff_chunks(whole))
        name = f"made/webp {mode} {options}"
        for part in (0.02, 0.3, 0.6, 0.9, 0.99):
            kind, data = chunks[-1]
            comparison.compare(f"{name} with {part} of its data", riff([*chunks[:-1], (kind, data[: int(len(data) * part)])]), 0)
        for position in range(len(chunks) + 1):
            for extra in ((b"what", b"12345"), (b"ALPH", b"\0"), chunks[-1], (b"ANIM", bytes(6))):
                comparison.compare(f"{name} with {extra[0]} at {position}", riff(chunks[:position] + [extra] + chunks[position:]), 0)
        for _ in range(40):
            data = bytearray(whole)
            for _ in range(rng.randint(1, 3)):
                data[rng.randrange(30, len(data))] = rng.randrange(256)
            comparison.compare(f"{name} damaged", bytes(data), 1)


def lossless_jpeg(pixels):
    """A grey picture by ITU-T T.81, annex H: predicted by the sample to the left, differences in categories with codes of five bits."""
    bits = []
    for y, row in enumerate(pixels):
        for x, value in enumerate(row):
            predicted = row[x - 1] if x else pixels[y - 1][0] if y else 128
            difference = int(value) - int(predicted)
            category = abs(difference).bit_length()
            bits.append(f"{category:05b}")
            if category:
                bits.append(f"{difference if difference > 0 else difference + (1 << category) - 1:0{category}b}")
    text = "".join(bits)
    text += "1" * (-len(text) % 8)
    data = int(text, 2).to_bytes(len(text) // 8, "big").replace(b"\xff", b"\xff\0")
    height, width = len(pixels), len(pixels[0])
    frame = b"\xff\xc3" + struct.pack(">HBHHB3B", 11, 8, height, width, 1, 1, 0x11, 0)
    codes = b"\xff\xc4" + struct.pack(">HB", 19 + 17, 0) + bytes([0, 0, 0, 0, 17] + [0] * 11) + bytes(range(17))
    scan = b"\xff\xda" + struct.pack(">HB2B3B", 8, 1, 1, 0, 1, 0, 0)
    return b"\xff\xd8" + frame + codes + scan + data + b"\xff\xd9"


# An orientation of 6 as each type of TIFF 6.0 has it, big-endian.
TYPED = {
    1: b"\6",
    2: b"6\0",
    3: b"\0\6",
    4: b"\0\0\0\6",
    5: struct.pack(">II", 12, 2),
    6: b"\6",
    7: b"\6",
    8: b"\0\6",
    9: b"\0\0\0\6",
    10: struct.pack(">ii", -6, -1),
    11: struct.pack(">f", 6),
    12: struct.pack(">d", 6),
    13: b"\0\0\0\6",
    16: struct.pack(">Q", 6),
}
COUNTS = {2: 2}


def typed_exif(kind):
    value, count = TYPED[kind], COUNTS.get(kind, 1)
    outside = len(value) > 4
    entry = struct.pack(">HHI", 274, kind, count) + (struct.pack(">I", 26) if outside else value.ljust(4, b"\0"))
    return b"MM\0*" + struct.pack(">IH", 8, 1) + entry + bytes(4) + (value if outside else b"")


def compare_types_of_orientations(comparison, _):
    rng = random.Random(1)
    rows = Rows(rng)
    picture = Image.fromarray(noisy_gradient(rng, 40, 30, 3))
    for kind in TYPED:
        exif = typed_exif(kind)
        for suffix in ("JPEG", "WEBP"):
            comparison.compare(f"made/{suffix.lower()} turned by type {kind}", saved(picture, format=suffix, exif=b"Exif\0\0" + exif), 0)
        comparison.compare(f"made/png turned by type {kind}", rows.png(before=[(b"eXIf", exif)]), 0)


def compare_jpeg_segments(comparison, _):
    """A segment too many, of every kind and of lengths that make no sense, before and behind the tables; fill bytes."""
    rng = random.Random(1)
    whole = saved(Image.fromarray(noisy_gradient(rng, 40, 30, 3)), format="JPEG", exif=exif_with(6))
    places = {"first": 2, "before the frame": whole.index(b"\xff\xc0"), "before the scan": whole.index(b"\xff\xda")}
    for where, at in places.items():
        for marker in [0xFE, *range(0xE0, 0xF0), 0xDC, 0xDB, 0xC4, 0xDD, 0xDE, 0xDF, 0xF0]:
            for length in (0, 1, 2, 3, 7):
                segment = bytes([0xFF, marker]) + struct.pack(">H", length) + bytes(max(length - 2, 0))
                comparison.compare(f"made/jpeg segment {marker:02x} of length {length}, {where}", whole[:at] + segment + whole[at:], 0)
        for filled in (b"\xff", b"\xff" * 5, b"\0", b"ab"):
            comparison.compare(f"made/jpeg {filled.hex()} {where}", whole[:at] + filled + whole[at:], 0)
        for marker in (0x01, 0xD0, 0xD7, 0xD8, 0xD9):
            comparison.compare(f"made/jpeg marker {marker:02x} {where}", whole[:at] + bytes([0xFF, marker]) + whole[at:], 0)


def compare_lossless_jpeg(comparison, rng):
    comparison.compare("made/jpeg lossless", lossless_jpeg(noisy_gradient(rng, 40, 30, 1)[..., 0].tolist()), 0)


COMPARISONS = [
    compare_png_data,
    compare_png_headers,
    compare_png_chunks,
    compare_png_animations,
    compare_orientations,
    compare_webp_chunks,
    compare_types_of_orientations,
    compare_jpeg_segments,
    compare_lossless_jpeg,
]
