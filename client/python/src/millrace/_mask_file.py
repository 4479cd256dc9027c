"""What the header of a mask's file says about whether the levels that the daemon gives are its classes."""

from __future__ import annotations

from millrace._messages import path_text
from millrace.errors import Unsupported

_JPEG = b"\xff\xd8\xff"
_PNG = b"\x89PNG\r\n\x1a\n"
_READ = 26  # bytes: up to the colour type in IHDR
_BITS, _COLOUR = 24, 25
_GREY = 0
_NOT_CLASSES = {2: "RGB", 4: "grey with transparency", 6: "RGB with transparency"}
_CONVERT = 'convert it once: Image.fromarray(numpy.array(Image.open(path)).astype("uint8")).save(path)'


def check_mask(path: str) -> None:
    """Refuses a grey PNG whose levels are not its numbers. All else is the daemon's to judge, and so is what this process cannot read.

    Raises:
        Unsupported: says what it is, and how to convert it.
    """
    wrong = _refused(_beginning(path))
    if wrong:
        raise Unsupported(f"the mask {path_text(path)} {wrong}; {_CONVERT}")


def kind_of_mask(path: str) -> str:
    """Why the file of a mask that is an error has no classes, and what to do, where its header says so; else empty."""
    begins = _beginning(path)
    if begins.startswith(_JPEG):
        return "it is a JPEG file, whose levels are not exact: make the masks anew as PNG"
    kind = _NOT_CLASSES.get(begins[_COLOUR]) if begins.startswith(_PNG) and len(begins) == _READ else None
    return f"it is {kind}: convert it to a palette or grey, a class for each colour" if kind is not None else ""


def _beginning(path: str) -> bytes:
    """Empty where this process cannot read it."""
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read(_READ)
    except OSError:
        return b""


def _refused(begins: bytes) -> str:
    if not begins.startswith(_PNG) or len(begins) < _READ or begins[_COLOUR] != _GREY:
        return ""
    if begins[_BITS] == 1:
        return "is a grey PNG of 1 bit, whose levels are 0 and 255 where Pillow's mode 1 has 0 and 1"
    return "is a grey PNG of 16 bits, and classes have 8" if begins[_BITS] > 8 else ""
