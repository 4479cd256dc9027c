"""PNM, BMP and GIF files put together by hand: every size of samples, odd headers, missing rows, random codes.

Each function takes a pillow_decode.Comparison and a random.Random.
"""

import struct

from made_pictures import random_image, saved
from PIL import Image


def compare_pnms(comparison, rng):
    for number in range(40):
        mode = rng.choice(["1", "L", "RGB", "I;16"])
        comparison.compare(f"pnm {number} {mode}", saved(random_image(rng, mode), format="PPM"))
    for number in range(60):
        kind, bands = rng.choice([("P5", 1), ("P6", 3)])
        most = rng.choice([1, 2, 3, 100, 254, 255, 256, 1000, 4095, 65534, 65535])
        width, height = rng.randint(1, 40), rng.randint(1, 40)
        samples = [
            rng.randrange(256) if most < 256 else rng.choice([rng.randrange(65536), rng.randrange(300)])
            for _ in range(width * height * bands)
        ]
        data = b"".join(value.to_bytes(1 if most < 256 else 2, "big") for value in samples)
        comparison.compare(f"made/pnm {number} {kind} {most}", f"{kind} {width} {height} {most}\n".encode() + data)
    for header in (
        b"P6\n2 2\n255\n",
        b"P6 2#x\n 2 255#y\n ",
        b"P6#\n2 2 255\n",
        b"P6 2 2\r255\r",
        b"P6\v2\f2\t255 ",
        b"P6 02 2 255 ",
        b"P6 2 2 0255\n",
        b"P6 1#\r1#\n 1 255\n",
    ):
        comparison.compare(f"made/pnm {header}", header + bytes(range(33)))
        comparison.compare(f"made/pnm {header} cut off", header + bytes(range(11)), 0)
    for header in (
        b"P6 2 2 0\n",
        b"P6 2 2 65536\n",
        b"P6 a 2 255\n",
        b"P6 2 2 255.0\n",
        b"P6 12345678901 2 255\n",
        b"P6 2 2",
        b"P6 -2 2 255\n",
        b"P6 0 2 255\n",
    ):
        comparison.compare(f"made/pnm {header}", header + bytes(60), 0)


def bmp(rng, *, width, height, bits, header=40, compression=0, masks=(), colours=0, palette=b"", data=None, gap=0, offset=None):
    """A BMP file of random pixels, or of `data`; height < 0: top down. `gap`: bytes between the palette and the pixels."""
    if header == 12:
        info = struct.pack("<HHHH", width, height, 1, bits)
    else:
        info = struct.pack("<iiHHIIIIII", width, height, 1, bits, compression, 0, 0, 0, colours, 0)
        fields = b"".join(struct.pack("<I", mask) for mask in masks)
        info += fields if header == 40 else (fields + bytes(header))[: header - 40]
    if data is None:
        data = rng.randbytes((width * bits + 31) // 32 * 4 * abs(height))
    begin = 18 + len(info) + len(palette) + gap
    start = b"BM" + struct.pack("<IHHI", begin + len(data), 0, 0, begin if offset is None else offset) + struct.pack("<I", header)
    return start + info + palette + bytes(gap) + data


MASKS = {
    16: [(0xF800, 0x7E0, 0x1F), (0x7C00, 0x3E0, 0x1F), (0xF00, 0xF0, 0xF)],
    24: [(0xFF0000, 0xFF00, 0xFF), (0xFF, 0xFF00, 0xFF0000)],
    32: [
        (0xFF0000, 0xFF00, 0xFF, 0),
        (0xFF000000, 0xFF0000, 0xFF00, 0),
        (0xFF000000, 0xFF00, 0xFF, 0),
        (0xFF000000, 0xFF0000, 0xFF00, 0xFF),
        (0xFF, 0xFF00, 0xFF0000, 0xFF000000),
        (0xFF0000, 0xFF00, 0xFF, 0xFF000000),
        (0xFF000000, 0xFF00, 0xFF, 0xFF0000),
        (0, 0, 0, 0),
        (0xFF, 0xFF00, 0xFF0000, 0),
    ],
}


def random_palette(rng, colours, entry):
    return b"".join(rng.randbytes(3) + bytes(entry - 3) for _ in range(colours))


def compare_bmps(comparison, rng):
    for number in range(40):
        mode = rng.choice(["1", "L", "P", "RGB", "RGBA"])
        comparison.compare(f"bmp {number} {mode}", saved(random_image(rng, mode), format="BMP"))
    for number in range(150):
        header, bits = rng.choice([12, 40, 40, 40, 52, 56, 64, 108, 124]), rng.choice([1, 4, 8, 16, 24, 32])
        width, height = rng.randint(1, 40), rng.randint(1, 30)
        options = {"header": header}
        if bits <= 8:
            colours = (1 << bits) if header == 12 else rng.choice([1 << bits, rng.randint(1, 1 << bits)])
            options |= {"palette": random_palette(rng, colours, 3 if header == 12 else 4), "colours": 0 if colours == 1 << bits else colours}
        elif header != 12 and rng.random() < 0.6:
            options |= {"compression": 3, "masks": rng.choice(MASKS[bits])}
        if header != 12 and rng.random() < 0.3:
            height = -height
        name = f"made/bmp {number} {bits} bits, header {header}"
        whole = bmp(rng, width=width, height=height, bits=bits, gap=rng.choice([0, 0, 6]), **options)
        comparison.compare(name, whole)
        comparison.compare(f"{name}, cut off", whole[: -rng.choice([1, 2, 4])], 0)
        for offset in (0, 14 + header):
            comparison.compare(f"{name}, pixels at {offset}", bmp(rng, width=width, height=height, bits=bits, offset=offset, **options), 0)
    for header, bits, compression in ((41, 24, 0), (40, 2, 0), (40, 24, 1), (40, 24, 4), (40, 8, 5), (40, 8, 3), (16, 24, 0), (40, 64, 0)):
        comparison.compare(f"made/bmp {header} {bits} {compression}", bmp(rng, width=3, height=3, bits=bits, header=header, compression=compression, palette=bytes(1024)), 0)
    greys = b"".join(bytes([i, i, i, 0]) for i in range(256))
    comparison.compare("made/bmp greys", bmp(rng, width=9, height=3, bits=8, palette=greys))
    comparison.compare("made/bmp fewer greys", bmp(rng, width=9, height=3, bits=8, palette=greys[:800], colours=200))
    comparison.compare("made/bmp a short palette of greys", bmp(rng, width=9, height=3, bits=8, palette=greys)[:700], 0)
    comparison.compare("made/bmp black and white", bmp(rng, width=9, height=3, bits=1, palette=b"\0\0\0\0\xff\xff\xff\0"))
    comparison.compare("made/bmp white and black", bmp(rng, width=9, height=3, bits=1, palette=b"\xff\xff\xff\0\0\0\0\0"))
    comparison.compare("made/bmp one colour", bmp(rng, width=9, height=3, bits=1, palette=bytes(4), colours=1))
    comparison.compare("made/bmp black and white in 8 bits", bmp(rng, width=9, height=3, bits=8, palette=b"\0\0\0\0\xff\xff\xff\0", colours=2), 0)
    for colours in (256, 257):
        comparison.compare(f"made/bmp {colours} greys", bmp(rng, width=9, height=3, bits=8, palette=(greys * 2)[: 4 * colours], colours=colours), 0)
    for bits in (1, 4):
        comparison.compare(f"made/bmp three dark greys in {bits} bits", bmp(rng, width=9, height=3, bits=bits, palette=greys[:12], colours=3), 0)
    comparison.compare("made/bmp dark greys in 4 bits", bmp(rng, width=9, height=3, bits=4, palette=greys[:64]), 0)


def runs(rng, width, height, half):
    """Random run-length codes, mostly of a whole picture."""
    out = b""
    for _ in range(height):
        left = width
        while left > 0:
            kind, count = rng.random(), rng.randint(1, min(left + (rng.random() < 0.1), 255))
            if kind < 0.6 or count < 3:
                out += bytes([count, rng.randrange(256)])
            elif kind < 0.95:
                size = (count + 1) // 2 if half else count
                out += bytes([0, count]) + rng.randbytes(size) + bytes(size % 2)
            else:
                count = min(count, left)
                out += bytes([0, 2, count, rng.choice([0, 0, 0, 1])])
            left -= count
        if rng.random() < 0.97:
            out += b"\0\0"
    return out + b"\0\1"


def compare_bmp_runs(comparison, rng):
    for number in range(250):
        half = rng.random() < 0.5
        width, height = rng.randint(1, 40), rng.randint(1, 20)
        data = runs(rng, width, height, half)
        if rng.random() < 0.2:
            data = data[: rng.randrange(len(data))]
        if rng.random() < 0.2:
            data = bytes(rng.randrange(256) if rng.random() < 0.05 else byte for byte in data)
        bits = 4 if half else 8
        palette = random_palette(rng, 1 << bits, 4)
        name = f"made/bmp {number} of {bits} bits in runs"
        file = bmp(rng, width=width, height=-height if rng.random() < 0.2 else height, bits=bits, compression=2 if half else 1, palette=palette, data=data, gap=rng.randrange(2))
        comparison.compare(name, file, 1)


# --- GIF ---------------------------------------------------------------------------------------------------------------------------------


def compare_gifs(comparison, rng):
    for number in range(100):
        mode = rng.choice(["1", "L", "P", "P", "RGB"])
        options = {"interlace": rng.randrange(2)}
        if rng.random() < 0.3:
            options["transparency"] = rng.randrange(4)
        image = random_image(rng, mode)
        comparison.compare(f"gif {number} {mode} {options}", saved(image, format="GIF", **options))
        if mode != "1":
            frames = [image, *(random_image(rng, mode).resize(image.size) for _ in range(rng.randint(1, 2)))]
            comparison.compare(f"animated gif {number} {mode}", saved(frames[0], format="GIF", save_all=True, append_images=frames[1:], **options))


def gif(rng, *, screen, frame, data, flags=0, palette=b"", own=b"", before=b"", behind=b";"):
    """`data`: of a picture, from the number of bits on."""
    start = b"GIF89a" + struct.pack("<HHBBB", *screen, 0x80 | (len(palette) // 3).bit_length() - 2 if palette else 0, 0, 0) + palette
    own_flags = 0x80 | (len(own) // 3).bit_length() - 2 if own else 0
    return start + before + b"," + struct.pack("<HHHHB", *frame, flags | own_flags) + own + data + behind


def gif_data(image):
    """The data of a picture, as Pillow writes it, without interlacing."""
    whole = saved(image, format="GIF", interlace=0)
    at = 13 + (3 << ((whole[10] & 7) + 1) if whole[10] & 0x80 else 0)
    while whole[at : at + 1] == b"!":
        at += 2
        while whole[at]:
            at += 1 + whole[at]
        at += 1
    flags = whole[at + 9]
    return whole[at + 10 + (3 << ((flags & 7) + 1) if flags & 0x80 else 0) : -1]


def compare_gif_parts(comparison, rng):
    control = b"!\xf9\x04\x01\0\0\x07\0"
    extras = {
        "nothing": b"",
        "transparent": control,
        "two controls": control + b"!\xf9\x04\x00\0\0\x05\0",
        "short control": b"!\xf9\x03\x00\0\0\0",
        "too short control": b"!\xf9\x02\x00\0\0",
        "short transparent control": b"!\xf9\x03\x01\0\0\0",
        "empty control": b"!\xf9\0\0",
        "comment": b"!\xfe\x03abc\x02de\0",
        "empty comment": b"!\xfe\0",
        "application": b"!\xff\x0bNETSCAPE2.0\x03\x01\0\0\0",
        "empty application": b"!\xff\0\0",
        "plain text": b"!\x01\x0c" + bytes(12) + b"\x02hi\0",
        "junk": b"junk\0",
        "end": b";",
    }
    for number in range(60):
        image = random_image(rng, "L", 40)
        (width, height), data = image.size, gif_data(image)
        palette, own = rng.choice([b"", rng.randbytes(768), bytes(i // 3 for i in range(768)), rng.randbytes(48)]), rng.choice([b"", b"", rng.randbytes(768), rng.randbytes(12)])
        left, top = rng.choice([0, 0, 3]), rng.choice([0, 0, 5])
        screen = rng.choice([(width + left, height + top), (width + 9, height + 8), (0, 0), (width // 2, height * 2)])
        for name, extra in extras.items():
            file = gif(rng, screen=screen, frame=(left, top, width, height), data=data, flags=rng.choice([0, 0x40]), palette=palette, own=own, before=extra)
            comparison.compare(f"made/gif {number}, {name}", file, 1)
        file = gif(rng, screen=screen, frame=(left, top, width, height), data=data, palette=palette, own=own)
        for size in (rng.randrange(len(file)), len(file) - 1, len(file) - 2, len(file) - 3):
            comparison.compare(f"made/gif {number}, cut off at {size}", file[:size], 0)
        for _ in range(3):
            damaged = bytearray(file)
            for _ in range(rng.randint(1, 3)):
                damaged[rng.randrange(len(file) - len(data), len(file) - 2)] = rng.randrange(256)
            comparison.compare(f"made/gif {number}, damaged", bytes(damaged), 1)
        comparison.compare(f"made/gif {number}, higher", gif(rng, screen=screen, frame=(left, top, width, height + 1), data=data, palette=palette, own=own), 0)
        comparison.compare(f"made/gif {number}, lower", gif(rng, screen=screen, frame=(left, top, width, max(1, height - 1)), data=data, palette=palette, own=own), 0)
    data = gif_data(Image.new("L", (9, 9), 77))
    file = gif(rng, screen=(9, 11), frame=(0, 0, 9, 11), data=data, behind=b"," + struct.pack("<HHHHB", 0, 0, 9, 9, 0) + data + b"\1" * 900)
    comparison.compare("made/gif ends early, another follows", file, 0)
    comparison.compare("made/gif of no pixels", gif(rng, screen=(3, 3), frame=(0, 0, 0, 3), data=data), 0)
    for bits in (0, 1, 8, 9, 11, 12, 13, 255):
        codes = bytes(rng.randrange(256) for _ in range(600))
        blocks = b"".join(bytes([200]) + codes[at : at + 200] for at in range(0, 600, 200))
        comparison.compare(f"made/gif of {bits} bits", gif(rng, screen=(9, 9), frame=(0, 0, 9, 9), data=bytes([bits]) + blocks + b"\0"), 0)
        comparison.compare(f"made/gif of {bits} bits and zeros", gif(rng, screen=(9, 9), frame=(0, 0, 9, 9), data=bytes([bits]) + b"\xff" + bytes(256)), 0)


def compare_small_palettes(comparison, rng):
    for bits in (4, 8):
        comparison.compare(f"made/bmp black alone in {bits} bits", bmp(rng, width=32, height=32, bits=bits, palette=bytes(4), colours=1), 0)
        comparison.compare(f"made/bmp white alone in {bits} bits", bmp(rng, width=32, height=32, bits=bits, palette=b"\xff\xff\xff\0", colours=1), 0)
    comparison.compare("made/bmp black and white in 4 bits", bmp(rng, width=9, height=3, bits=4, palette=b"\0\0\0\0\xff\xff\xff\0", colours=2), 0)


COMPARISONS = [compare_pnms, compare_bmps, compare_bmp_runs, compare_gifs, compare_gif_parts]
