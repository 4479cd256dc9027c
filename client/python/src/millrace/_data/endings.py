"""What the names of pictures end with that the daemon decodes: lower case, without the dot, in the order in which it tells them."""

from __future__ import annotations

DECODED = (
    "jpg",
    "jpeg",
    "png",
    "webp",
    "mrp",
    "pbm",
    "pgm",
    "ppm",
    "pnm",
    "pam",
    "bmp",
    "gif",
    "tif",
    "tiff",
    "avif",
    "avifs",
    "heic",
    "heif",
    "l3",
)
"""Of daemon/formats; a test holds them to the daemon's own."""
