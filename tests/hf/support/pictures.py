"""Pictures to compare processors with."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

# Widths and heights: around one tile, around a patch, odd and even, wide, tall, tiny; 1344 x 896 is exactly 3 x 2 tiles.
SIZES = ((448, 448), (450, 447), (641, 480), (1344, 896), (1000, 301), (301, 1000), (29, 27), (77, 200), (1501, 1120), (9, 640))


def scenery(width: int, height: int, seed: int) -> NDArray[np.uint8]:
    """Uint8 H x W x 3: waves of several lengths, edges and noise, so that a filter or an offset that is a little off shows."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    picture = np.zeros((height, width, 3))
    for channel in range(3):
        for length in (3.1, 17.0, 120.0):
            angle = random.uniform(0, np.pi)
            picture[..., channel] += np.sin((x * np.cos(angle) + y * np.sin(angle)) * 2 * np.pi / length)
    picture += 1.5 * ((x // 23 + y // 31) % 2)[..., None] + random.normal(0, 0.2, picture.shape)
    low, high = picture.min(), picture.max()
    return ((picture - low) / (high - low) * 255).astype(np.uint8)


def make_pictures(folder: Path, most_pixels: int = 10_000_000) -> list[Path]:
    """JPEG, PNG and WebP files in colour, grey, with alpha, with a palette, and turned by EXIF, of up to ``most_pixels``."""
    paths = []

    def save(name: str, image: Image.Image, **options: object) -> None:
        image.save(folder / name, **options)
        paths.append(folder / name)

    for number, (width, height) in enumerate(SIZES):
        if width * height > most_pixels:
            continue
        image = Image.fromarray(scenery(width, height, number))
        save(f"{width}x{height}.{'jpg' if number % 2 else 'png'}", image)
    image = Image.fromarray(scenery(500, 333, 100))
    save("grey.jpg", image.convert("L"))
    save("grey.png", image.convert("L"))
    save("palette.png", image.quantize(64))
    save("lossy.webp", image, quality=80)
    alpha = image.convert("RGBA")
    alpha.putalpha(image.convert("L"))
    save("alpha.png", alpha)
    for orientation in (3, 6, 7):
        exif = Image.Exif()
        exif[0x0112] = orientation
        save(f"turned{orientation}.jpg", image, exif=exif)
    return paths


def photographs() -> list[Path]:
    """The photographs of MILLRACE_TEST_DATA, if it is set and has some."""
    data = os.environ.get("MILLRACE_TEST_DATA")
    return sorted(Path(data, "photos").glob("*.JPEG")) if data else []
