"""What the header of a mask's file says about whether the levels that the daemon gives are its classes."""

from __future__ import annotations

from millrace._messages import path_text
from millrace.errors import Unsupported

_PNG = b"\x89PNG\r\n\x1a\n"
_READ = 26  # bytes: up to the colour type in IHDR
_BITS, _COLOUR = 24, 25
_GREY = 0
_CONVERT = 'convert it once: Image.fromarray(numpy.array(Image.open(path)).astype("uint8")).save(path)'


def check_mask(path: str) -> None:
    """Refuses a grey PNG whose levels are not its numbers. All else is the daemon's to judge, and so is what this process cannot read.

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
        raise Unsupported(f"the mask {path_text(path)} {wrong}; {_CONVERT}")


def _refused(begins: bytes) -> str:
    if not begins.startswith(_PNG) or len(begins) < _READ or begins[_COLOUR] != _GREY:
        return ""
    if begins[_BITS] == 1:
        return "is a grey PNG of 1 bit, whose levels are 0 and 255 where Pillow's mode 1 has 0 and 1"
    return "is a grey PNG of 16 bits, and classes have 8" if begins[_BITS] > 8 else ""
