"""TIFF files as Pillow writes them, and put together by hand: every kind of pixels, strips and tiles, what is odd about a directory.

Each function takes a pillow_decode.Comparison and a random.Random.
"""

import struct

from made_pictures import exif_with, noisy_gradient, random_image, saved
from PIL import Image

SHORT, LONG, LONG8 = 3, 4, 16
PACKED = {SHORT: "H", LONG: "I", LONG8: "Q", 1: "B", 6: "b", 7: "B", 8: "h", 9: "i", 11: "f", 12: "d", 13: "I"}


def tiff(tags, parts, big_endian=False, big=False):
    """`tags`: {number: (type, values)}; `parts`: the data of strips or tiles, whose places and lengths are added as tags 273 and 279, or 324 and 325."""
    order = ">" if big_endian else "<"
    header = 16 if big else 8
    places, data = [], b""
    for part in parts:
        places.append(header + len(data))
        data += part + bytes(len(part) % 2)
    at, lengths = (324, 325) if 322 in tags else (273, 279)
    tags = {at: (LONG, places), lengths: (LONG, [len(part) for part in parts])} | tags
    entries, outside = b"", b""
    directory = header + len(data)
    size, inside = (20, 8) if big else (12, 4)
    values_at = directory + (8 if big else 2) + size * len(tags) + (8 if big else 4)
    for number, (kind, values) in sorted(tags.items()):
        packed = struct.pack(f"{order}{len(values)}{PACKED[kind]}", *values)
        place = packed.ljust(inside, b"\0")
        if len(packed) > inside:
            place = struct.pack(order + ("Q" if big else "I"), values_at + len(outside))
            outside += packed + bytes(len(packed) % 2)
        entries += struct.pack(order + ("HHQ" if big else "HHI"), number, kind, len(values)) + place
    start = (b"MM" if big_endian else b"II") + (struct.pack(order + "HHHQ", 43, 8, 0, directory) if big else struct.pack(order + "HI", 42, directory))
    count = struct.pack(order + ("Q" if big else "H"), len(tags))
    return start + data + count + entries + bytes(8 if big else 4) + outside


def shape(width, height, bits, photometric, samples=1, **more):
    return {256: (LONG, [width]), 257: (LONG, [height]), 258: (SHORT, [bits] * samples), 259: (SHORT, [1]), 262: (SHORT, [photometric]), 277: (SHORT, [samples])} | {
        int(name[1:]): value for name, value in more.items()
    }


def compare_saved_tiffs(comparison, rng):
    for number in range(160):
        mode = rng.choice(["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16"])
        compression = rng.choice([None, "tiff_lzw", "tiff_adobe_deflate", "tiff_deflate", "packbits", "jpeg", "group3", "group4", "tiff_ccitt"])
        if compression in ("group3", "group4", "tiff_ccitt"):
            mode = "1"
        if compression == "jpeg":
            mode = rng.choice(["L", "RGB", "CMYK"])
        options = {"compression": compression}
        if rng.random() < 0.3 and mode != "1" and compression in ("tiff_lzw", "tiff_adobe_deflate"):
            options["tiffinfo"] = {317: 2}
        if rng.random() < 0.4:
            options["exif"] = exif_with(rng.randint(1, 8))
        if compression != "jpeg" and rng.random() < 0.3:
            options["strip_size"] = rng.choice([100, 1000])
        if rng.random() < 0.3:
            options["big_tiff"] = True
        image = random_image(rng, mode)
        whole = saved(image, format="TIFF", **options)
        name = f"tiff {number} {mode} {compression} {sorted(options)}"
        comparison.compare(name, whole)


def compare_tiff_pixels(comparison, rng):
    kinds = [
        (bits, photometric, 1, {}) for photometric in (0, 1) for bits in (1, 2, 4, 8, 16)
    ] + [(bits, 3, 1, {"_320": (SHORT, [rng.randrange(65536) for _ in range(3 << bits)])}) for bits in (1, 2, 4, 8)]
    kinds += [(bits, 2, 3, {}) for bits in (8, 16)]
    for extra in (0, 1, 2):
        kinds += [(bits, 2, 4, {"_338": (SHORT, [extra])}) for bits in (8, 16)]
        kinds += [(8, 2, 5, {"_338": (SHORT, [extra, 0])}), (8, 1, 2, {"_338": (SHORT, [extra])})]
    kinds += [(8, 2, 4, {}), (16, 2, 4, {}), (8, 5, 4, {}), (16, 5, 4, {}), (8, 5, 5, {"_338": (SHORT, [0])})]
    for bits, photometric, samples, more in kinds:
        for big_endian, big, order in ((False, False, 1), (True, False, 1), (False, True, 1), (False, False, 2)):
            width, height = rng.randint(1, 40), rng.randint(1, 20)
            row = (width * bits * samples + 7) // 8
            rows = rng.choice([1, 3, height])
            strips = [rng.randbytes(row * min(rows, height - y)) for y in range(0, height, rows)]
            if bits == 16 and photometric < 2 and rng.random() < 0.5:
                strips = [bytes(byte if (at % 2 == 0) != big_endian else byte % 2 for at, byte in enumerate(strip)) for strip in strips]
            tags = shape(width, height, bits, photometric, samples, **more) | {278: (LONG, [rows])}
            if order == 2:
                tags[266] = (SHORT, [2])
                is_read = (photometric < 2 and samples == 1 and (bits < 8 or (bits == 8 and photometric == 1))) or (photometric == 2 and samples == 3 and bits == 8)
                if not is_read:  # by Pillow; here all are
                    continue
            name = f"made/tiff {bits} bits, {photometric}, {samples} samples, {more.get('_338', '')} {'MM' if big_endian else 'II'} {big} {order}"
            comparison.compare(name, tiff(tags, strips, big_endian, big))
            wide, high = rng.choice([(16, 16), (32, 16), (64, 48)])
            tile = (wide * bits * samples + 7) // 8 * high
            count = -(-width // wide) * -(-height // high)
            del tags[278]
            tags |= {322: (SHORT, [wide]), 323: (SHORT, [high])}
            comparison.compare(f"{name}, tiles", tiff(tags, [rng.randbytes(tile) for _ in range(count)], big_endian, big))


def compare_tiff_directories(comparison, rng):
    width, height = 23, 17
    rows = rng.randbytes(width * 3 * height)
    good = shape(width, height, 8, 2, 3) | {278: (LONG, [height])}
    for orientation in range(10):
        comparison.compare(f"made/tiff turned {orientation}", tiff(good | {274: (SHORT, [orientation])}, [rows]))
    for kind in PACKED:
        comparison.compare(f"made/tiff turned by type {kind}", tiff(good | {274: (kind, [6])}, [rows]), 0)
    xmp = b'<rdf:Description tiff:Orientation="6"/>'
    comparison.compare("made/tiff turned by XMP", tiff(good | {700: (1, list(xmp))}, [rows]))
    comparison.compare("made/tiff turned by itself, and XMP", tiff(good | {274: (SHORT, [3]), 700: (1, list(xmp))}, [rows]))
    for tag in (256, 257, 258, 259, 262, 277, 278):
        tags = dict(good)
        del tags[tag]
        comparison.compare(f"made/tiff without {tag}", tiff(tags, [rows]), 0)
    for tag, value in ((258, 12), (258, 32), (258, 3), (259, 2), (259, 5), (259, 6), (259, 7), (259, 8), (259, 34712), (259, 50000), (262, 6), (262, 8), (262, 9), (339, 2), (339, 3), (284, 3), (266, 3)):
        comparison.compare(f"made/tiff {tag}: {value}", tiff(good | {tag: (SHORT, [value] * (3 if tag in (258, 339) else 1))}, [rows]), 0)
    whole = tiff(good, [rows])
    for size in (0, 4, 7, 8, 100, len(whole) - 1, len(whole) - 8, len(whole) - 40):
        comparison.compare(f"made/tiff cut off at {size}", whole[:size], 0)
    comparison.compare("made/tiff cut off in a strip", tiff(good | {273: (LONG, [100]), 279: (LONG, [len(rows)])}, [rows[:200]]), 0)
    image = Image.fromarray(noisy_gradient(rng, 60, 50, 3))
    for compression in ("tiff_lzw", "tiff_adobe_deflate", "packbits", "jpeg"):
        whole = saved(image, format="TIFF", compression=compression, strip_size=60 * 3 * 16)
        for _ in range(12):
            data = bytearray(whole)
            for _ in range(rng.randint(1, 2)):
                data[rng.randrange(8, len(data) // 2)] = rng.randrange(256)
            comparison.compare(f"made/tiff damaged {compression}", bytes(data), 1)


def packed_runs(rng, count):
    """PackBits (TIFF 6.0, section 9) of `count` bytes, in runs that end where they like."""
    data = b""
    while count > 0:
        length = min(rng.randint(1, 128), count)
        if length > 1 and rng.random() < 0.6:
            data += bytes([257 - length, rng.randrange(256)])
        else:
            data += bytes([length - 1]) + rng.randbytes(length)
        count -= length
        if rng.random() < 0.1:
            data += b"\x80"  # of which no byte comes
    return data


def compare_packed_runs(comparison, rng):
    for number in range(24):
        bits, photometric, samples = rng.choice([(1, 0, 1), (1, 1, 1), (8, 1, 1), (8, 2, 3), (16, 1, 1), (8, 5, 4)])
        width, height = rng.randint(1, 60), rng.randint(1, 40)
        row, rows = (width * bits * samples + 7) // 8, rng.choice([1, 3, height])
        strips = [packed_runs(rng, row * min(rows, height - y)) for y in range(0, height, rows)]
        tags = shape(width, height, bits, photometric, samples) | {259: (SHORT, [32773]), 278: (LONG, [rows])}
        name = f"made/tiff packbits {number}, {bits} bits, {samples} samples, {rows} rows"
        comparison.compare(name, tiff(tags, strips))
        for what in ("short", "long", "changed"):
            strip = bytearray(rng.choice(strips))
            at = rng.randrange(len(strip))
            strip[at : at + 1] = {"short": b"", "long": bytes([strip[at]]) * 2, "changed": bytes([rng.randrange(256)])}[what]
            others = [rng.choice(strips) for _ in strips[1:]]
            comparison.compare(f"{name}, {what}", tiff(tags, [bytes(strip), *others]), 1)


COMPARISONS = [compare_saved_tiffs, compare_tiff_pixels, compare_tiff_directories]
