"""Raw pixels as a file of the PNM family, header and rows: what the daemon takes without anybody encoding or decoding them.

What becomes of transparency, palettes and grey is what ``convert_to_rgb`` of ``transformers`` 5.23 (image_transforms.py) makes of the
same image. EXIF is not looked at: the program that decoded the pixels has turned them, or has not.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from millrace.errors import InvalidRequest

Layout = Literal["channels_first", "channels_last"]

_CHANNELS = (1, 3, 4)


def of_picture(image: Any, name: str, to_rgb: bool, advice: str = "convert it to RGB") -> bytes | memoryview:
    """A PIL image of any mode.

    Args:
        image: it.
        name: for messages.
        to_rgb: what is transparent is laid on white, and all becomes RGB. False: it must have three channels, whatever they are.
        advice: what to do about other channels.

    Raises:
        InvalidRequest: it has no pixels, cannot be read, or has other channels.
    """
    width, height = image.size
    if not width or not height:
        raise InvalidRequest(f"{name}: has no pixels, its size is {width} x {height}")
    try:
        if not to_rgb:
            return _three_channels(np.asarray(image), f"{name}: mode {image.mode}", advice)
        opaque = "A" not in image.getbands() and image.info.get("transparency") is None
        kind, plain = (b"P5", image) if image.mode == "L" and opaque else (b"P6", _rgb(image, opaque))
        return b"".join((_header(kind, width, height), plain.tobytes()))
    except (OSError, SyntaxError) as why:  # a file that PIL opened and cannot decode
        raise InvalidRequest(f"{name}: PIL cannot read it ({why}); give the file's bytes, and the daemon does") from why


def of_array(array: NDArray[Any], name: str, to_rgb: bool, layout: Layout | None, advice: str = "convert it to RGB") -> memoryview:
    """An array with three dimensions: one, three or four channels of whole numbers from 0 to 255, whatever their type.

    Args:
        array: it.
        name: for messages.
        to_rgb: grey is repeated, and what is transparent laid on white. False: it must have three channels.
        layout: None: where there are 1, 3 or 4 channels; if both ways fit, the channels come first.
        advice: what to do about other channels.

    Raises:
        InvalidRequest: another shape, or other numbers.
    """
    if array.ndim != 3 or 0 in array.shape:
        raise InvalidRequest(f"{name}: an array must be [height, width, channels] or [channels, height, width], this one is {array.shape}")
    rows = np.moveaxis(array, 0, 2) if (layout or _layout(array, name)) == "channels_first" else array
    if not to_rgb:
        return _three_channels(_bytes(rows, name), name, advice)
    channels = rows.shape[2]
    if channels not in _CHANNELS:
        raise InvalidRequest(f"{name}: has {channels} channels; give 3 (RGB), 1 (grey) or 4 (RGBA)")
    if channels == 4 and np.issubdtype(rows.dtype, np.floating):
        raise InvalidRequest(f"{name}: RGBA as {rows.dtype}; give uint8, or three channels")
    values = _bytes(rows, name)
    return _pnm(_on_white(values) if channels == 4 else values)


def _rgb(image: Any, opaque: bool) -> Any:
    if opaque:
        return image if image.mode == "RGB" else image.convert("RGB")
    from PIL import Image

    transparent = image.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", image.size, (255, 255, 255, 255)), transparent).convert("RGB")


def _on_white(rgba: NDArray[np.uint8]) -> NDArray[np.uint8]:
    alpha = rgba[..., 3:4] / 255
    return np.round(alpha * rgba[..., :3] + (1 - alpha) * 255).astype(np.uint8)


def _layout(array: NDArray[Any], name: str) -> Layout:
    if array.shape[0] in _CHANNELS:
        return "channels_first"
    if array.shape[2] in _CHANNELS:
        return "channels_last"
    raise InvalidRequest(f"{name}: which axis of {array.shape} are the channels? Give 1, 3 or 4 of them, or say input_data_format=")


def _bytes(array: NDArray[Any], name: str) -> NDArray[np.uint8]:
    """The same numbers as bytes."""
    if array.dtype == np.uint8:
        return array
    if array.dtype == np.bool_:
        raise InvalidRequest(f"{name}: an array of bool; give uint8, 0 to 255: transformers' classes do not agree on what true is")
    if array.dtype.kind not in "uif":
        raise InvalidRequest(f"{name}: an array of {array.dtype}; give uint8")
    least, most = array.min(), array.max()
    if not (least >= 0 and most <= 255):
        raise InvalidRequest(f"{name}: values from {least} to {most}; give uint8, 0 to 255")
    values = array.astype(np.uint8)
    if not np.array_equal(values, array):
        told = "between 0 and 1: multiply by 255 and round" if most <= 1 else "that are no whole numbers: round"
        raise InvalidRequest(f"{name}: {array.dtype} values {told}, and give uint8; transformers resizes 8-bit pixels as well")
    return values


def _three_channels(rows: NDArray[Any], name: str, advice: str) -> memoryview:
    channels = rows.shape[2] if rows.ndim == 3 else 1
    if channels != 3 or rows.dtype != np.uint8:
        raise InvalidRequest(f"{name}: has {channels} channel{'s' if channels > 1 else ''} of {rows.dtype}, not three of uint8; {advice}")
    return _pnm(rows)


def _pnm(rows: NDArray[np.uint8]) -> memoryview:
    """[height, width, 1 or 3], in whatever order in memory, as a file."""
    height, width, channels = rows.shape
    header = _header(b"P5" if channels == 1 else b"P6", width, height)
    file = np.empty(len(header) + rows.size, np.uint8)
    file[: len(header)] = np.frombuffer(header, np.uint8)
    into = file[len(header) :].reshape(rows.shape)
    if rows.flags.c_contiguous:
        into[...] = rows
    else:
        for channel in range(channels):  # 3.5 times faster than all at once where they come first in memory
            into[..., channel] = rows[..., channel]
    return file.data


def _header(kind: bytes, width: int, height: int) -> bytes:
    return b"%s %d %d 255\n" % (kind, width, height)
