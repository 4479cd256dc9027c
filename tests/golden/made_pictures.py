"""Pictures that Pillow writes for the comparisons with it; the same for the same random.Random."""

import io

from pillow_side import Image, numpy


def noisy_gradient(rng, width, height, bands):
    generator = numpy.random.default_rng(rng.getrandbits(64))
    y, x = numpy.mgrid[0:height, 0:width]
    base = numpy.stack([(x * (3 + band) + y * (5 - band)) % 256 for band in range(bands)], axis=-1)
    noise = generator.normal(0, 12, base.shape)
    edges = 90 * ((x // 13 + y // 17) % 2)[..., None]
    return numpy.clip(base * 0.6 + edges + noise, 0, 255).astype(numpy.uint8)


def random_image(rng, mode, largest=160):
    width, height = rng.randint(1, rng.randint(1, largest)), rng.randint(1, rng.randint(1, largest))
    if mode == "I;16":
        values = numpy.random.default_rng(rng.getrandbits(64)).integers(0, rng.choice([400, 65536]), (height, width), dtype=numpy.uint16)
        return Image.fromarray(values)
    bands = len(Image.new(mode, (1, 1)).getbands())
    if mode == "P":
        return Image.fromarray(noisy_gradient(rng, width, height, 3)).quantize(rng.choice([2, 4, 16, 17, 256]))
    if mode == "1":
        return Image.fromarray(noisy_gradient(rng, width, height, 1)[..., 0]).convert("1")
    pixels = noisy_gradient(rng, width, height, bands)
    return Image.frombytes(mode, (width, height), pixels.tobytes())


def exif_with(orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif.tobytes()


def saved(image, **options):
    file = io.BytesIO()
    image.save(file, **options)
    return file.getvalue()
