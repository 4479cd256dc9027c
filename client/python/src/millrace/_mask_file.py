"""What the header of a mask's file says about whether its numbers are classes."""

from __future__ import annotations

from millrace._messages import path_text
from millrace.errors import Unsupported

_PNG = b"\x89PNG\r\n\x1a\n"
_READ = 26  # bytes: up to the colour type in IHDR
_BITS, _COLOUR = 24, 25
_GREY, _PALETTE = 0, 3
_CONVERT = "convert it once: Image.fromarray(numpy.array(Image.open(path))).save(path)"


def check_mask(path: str) -> None:
    """Refuses a picture whose numbers the daemon does not give. One that this process cannot read is the daemon's to judge.

    Raises:
        Unsupported: says what it is, and how to convert it.
    """
    try:
        with open(path, "rb", buffering=0) as file:
            begins = file.read(_READ)
    except OSError:
        return
    wrong = _refused(begins)
    if wrong:
        raise Unsupported(f"the mask {path_text(path)} {wrong}")


def _refused(begins: bytes) -> str:
    palette = f"has a palette (mode P): its classes are places in it, and the daemon gives its colours; {_CONVERT}"
    if begins.startswith((b"GIF8", b"BM")):
        return palette
    if not begins.startswith(_PNG) or len(begins) < _READ:
        return ""
    if begins[_COLOUR] == _PALETTE:
        return palette
    if begins[_COLOUR] != _GREY:
        return "is a PNG of colours or with transparency: make it one channel of classes (mode L)"
    return "is a PNG of 16 bits: make it one of 8 (mode L)" if begins[_BITS] > 8 else ""
