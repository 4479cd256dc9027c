"""Damages to files of pictures: seeded, of the kinds that discs, networks and people do.

A damage is a list of splices (at, removed, put): the `removed` bytes of the ORIGINAL at `at` become the bytes `put`. So what a
damage touched is known in the original's places, and a part of it can be done alone.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Splice:
    at: int
    removed: int
    put: bytes

    def __str__(self):
        shown = self.put[:16].hex(" ") + (" ..." if len(self.put) > 16 else "")
        return f"at {self.at}: {self.removed} bytes become {len(self.put)}" + (f" ({shown})" if self.put else "")


def damaged(data, splices):
    for splice in sorted(splices, key=lambda splice: splice.at, reverse=True):
        data = data[: splice.at] + splice.put + data[splice.at + splice.removed :]
    return data


@dataclass(frozen=True)
class Anatomy:
    """Where a file has its coded pixels: [begin, end) of each piece. Before the first is the header."""

    coded: tuple

    @property
    def begin(self):
        return self.coded[0][0]

    @property
    def end(self):
        return self.coded[-1][1]

    def is_coded(self, splice):
        """Whether it hits them, what stands between them (tables of a later scan) or the marker that ends them."""
        return splice.at < self.end + 2 and splice.at + max(splice.removed, 1) > self.begin


def anatomy_of(data):
    if data[:2] == b"\xff\xd8":
        return Anatomy(tuple(jpeg_scans(data)))
    if data[:4] == b"RIFF":
        return Anatomy(tuple(chunks(data, 12, "little", 4, 0, (b"VP8 ", b"VP8L", b"ALPH"))))
    if data[:4] == b"\x89PNG":
        return Anatomy(tuple(chunks(data, 8, "big", 0, 4, (b"IDAT",))))
    return Anatomy(((pixels_at(data), len(data)),))


def pixels_at(data):
    """Where the pixels of another format begin, about: what stands before is its header. Of a TIFF the directory may stand behind them."""
    if data[:2] == b"BM":
        return int.from_bytes(data[10:14], "little")
    if data[:3] == b"GIF":
        return 13 + (3 << 1 + (data[10] & 7) if data[10] & 128 else 0)
    if data[4:8] == b"ftyp":
        return data.index(b"mdat") + 4
    if data[:2] in (b"II", b"MM"):
        directory = int.from_bytes(data[4:8], "little" if data[:2] == b"II" else "big")
        return 8 if directory > 8 else min(200, len(data) // 2)
    return 12


def chunks(data, at, order, size_at, extra, wanted):
    """The contents of a PNG's (`extra`: a CRC behind them) or WebP's chunks."""
    while at + 8 <= len(data):
        size = int.from_bytes(data[at + size_at : at + size_at + 4], order)
        if data[at + 4 - size_at : at + 8 - size_at] in wanted:
            yield (at + 8, at + 8 + size)
        at += 8 + size + (extra or size % 2)


def jpeg_segments(data):
    """(marker, its place, what follows its length) of each; of damaged files what can be told. Coded data is passed over."""
    at = 0
    while True:
        at = data.find(b"\xff", at)
        if at < 0 or at + 1 >= len(data):
            return
        marker = data[at + 1]
        if marker == 0xFF:
            at += 1
            continue
        if marker in (0, 1) or 0xD0 <= marker <= 0xD8:
            at += 2
            continue
        if marker == 0xD9:
            return
        size = int.from_bytes(data[at + 2 : at + 4], "big")
        yield marker, at, data[at + 4 : at + 2 + size]
        at += 2 + max(size, 2)


def jpeg_scans(data):
    """[begin, end) of the coded data of each scan."""
    begin = None
    for marker, at, content in jpeg_segments(data):
        if begin is not None:
            yield (begin, at)
        begin = at + 4 + len(content) if marker == 0xDA else None
    if begin is not None:
        yield (begin, max(data.rfind(b"\xff\xd9"), begin))


# --- the kinds ----------------------------------------------------------------------------------------------------------------------------


def length(rng, most=4096):
    """1 to `most`, short ones as likely as long ones."""
    return min(most, int(2 ** rng.uniform(0, most.bit_length())))


def place(rng, data):
    return rng.randrange(len(data))


def over(data, at, put):
    put = put[: len(data) - at]
    return Splice(at, len(put), put)


def overwritten(rng, data, _anatomy):
    size = length(rng)
    kind = rng.choice(("random", "random", "ff", "zeros"))
    return [over(data, place(rng, data), {"random": rng.randbytes(size), "ff": b"\xff" * size, "zeros": bytes(size)}[kind])]


def flipped(rng, data, anatomy):
    begin, end = rng.choice(anatomy.coded) if rng.random() < 0.8 else (0, len(data))
    at = rng.randrange(begin, max(end, begin + 1))
    return [Splice(at, 1, bytes([data[at] ^ 1 << rng.randrange(8)]))]


def cut_off(rng, data, _anatomy):
    at = rng.choice((place(rng, data), len(data) - length(rng, 64)))
    return [Splice(max(at, 0), len(data) - max(at, 0), b"")]


def removed(rng, data, _anatomy):
    at = place(rng, data)
    return [Splice(at, min(length(rng), len(data) - at), b"")]


def inserted(rng, data, _anatomy):
    return [Splice(place(rng, data), 0, rng.randbytes(length(rng)))]


def sectors(rng, data, _anatomy):
    size = rng.choice((512, 4096))
    count = (len(data) + size - 1) // size
    one, other = rng.randrange(count) * size, rng.randrange(count) * size
    if one == other or rng.random() < 0.4:
        return [over(data, one, bytes(size))]
    first, second = data[one : one + size], data[other : other + size]
    size = min(len(first), len(second))
    return [over(data, one, second[:size]), over(data, other, first[:size])]


def marker(rng, data, anatomy):
    """A marker in coded data, over it or between it; in PNG and WebP just two bytes."""
    begin, end = rng.choice(anatomy.coded)
    kind = rng.choice(("undefined", "undefined", "end", "restart", "lines", "any"))
    put = {
        "undefined": bytes([0xFF, rng.randint(2, 0xBF)]),
        "end": b"\xff\xd9",
        "restart": bytes([0xFF, 0xD0 + rng.randrange(8)]),
        "lines": b"\xff\xdc\x00\x04" + rng.randbytes(2),
        "any": bytes([0xFF, rng.randrange(256)]),
    }[kind]
    return [Splice(rng.randrange(begin, max(end, begin + 1)), rng.choice((0, len(put))), put)]


def header(rng, data, anatomy):
    """Tables, sizes, EXIF, chunks before the coded data."""
    at = rng.randrange(2, anatomy.begin)
    if rng.random() < 0.5:
        return [Splice(at, 1, bytes([data[at] ^ 1 << rng.randrange(8)]))]
    return [over(data, at, rng.randbytes(length(rng, 8)))]


def tail(rng, data, _anatomy):
    """The last 100 bytes: ends of coded data, checksums, end markers."""
    at = max(len(data) - rng.randint(1, rng.choice((4, 20, 100))), 0)
    if rng.random() < 0.3:
        return [Splice(at, min(length(rng, 4), len(data) - at), b"")]
    return [over(data, at, rng.choice((rng.randbytes(length(rng, 8)), b"\xff", b"\0")))]


def trailing(rng, data, _anatomy):
    size = length(rng)
    return [Splice(len(data), 0, rng.choice((rng.randbytes(size), bytes(size), b"\xff" * size, data[:size])))]


KINDS = [overwritten, flipped, cut_off, removed, inserted, sectors, marker, header, tail, trailing]


def several(rng, data, anatomy):
    """Two to four at once, where they do not meet."""
    splices = []
    for _ in range(rng.randint(2, 4)):
        for splice in rng.choice(KINDS)(rng, data, anatomy):
            if all(splice.at >= other.at + other.removed or other.at >= splice.at + splice.removed for other in splices):
                splices.append(splice)
    return splices


def draw(rng, data):
    """(the kind's name, splices) of a damage that changes the file."""
    anatomy = anatomy_of(data)
    while True:
        kind = rng.choice([*KINDS, several])
        splices = kind(rng, data, anatomy)
        if damaged(data, splices) != data:
            return kind.__name__.replace("_", " "), splices
