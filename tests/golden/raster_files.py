"""PNM files put together by hand: every size of samples, odd headers, missing rows.

Each function takes a pillow_decode.Comparison and a random.Random.
"""

from made_pictures import random_image, saved


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


COMPARISONS = [compare_pnms]
