"""What size a processor gives an image, as its class in transformers computes it: functions from the source's size to the new one.

Each is made of the keys that it depends on with ``functools.partial``. One that cannot be is a ValueError whose text says why.
"""

from __future__ import annotations

import math

from millrace.recipe import Size

LONGEST_RATIO = 200


def shorter_side(source: Size, pixels: int) -> Size:
    """The shorter side gets so many pixels, the other one keeps the ratio, truncated."""
    if source.width <= source.height:
        return Size(pixels, int(pixels * source.height / source.width))
    return Size(int(pixels * source.width / source.height), pixels)


def between(source: Size, shortest: int, longest: int) -> Size:
    """DETR's: the shorter side gets ``shortest`` pixels, or fewer, so that the longer one has ``longest`` at most."""
    short, long = float(min(source)), float(max(source))
    side, exact = shortest, float(shortest)
    if long / short * shortest > longest:
        exact = longest * short / long
        side = round(exact)
    width, height = source
    if min(width, height) == side:
        return source
    if width < height:
        return Size(side, _some(int(exact * height / width)))
    return Size(_some(int(exact * width / height)), _some(side))


def between_multiples(source: Size, shortest: int, longest: int, multiple: int) -> Size:
    """The same, each side then rounded up to a multiple: MaskFormer's."""
    width, height = between(source, shortest, longest)
    return Size(math.ceil(width / multiple) * multiple, math.ceil(height / multiple) * multiple)


def between_sixteenths(source: Size, shortest: int, longest: int) -> Size:
    """The same, each side then a multiple of 16, rounded down: YOLOS's."""
    width, height = source
    side, exact = shortest, float(shortest)
    if max(source) / min(source) * shortest > longest:
        exact = longest * min(source) / max(source)
        side = round(exact)
    if width < height:
        high, wide = int(exact * height / width), side
    elif height < width:
        high, wide = side, int(exact * width / height)
    else:
        high, wide = side, side
    if height <= width and height == side:
        high, wide = height, width
    return Size(_some(wide - wide % 16), _some(high - high % 16))


def within(source: Size, room: Size) -> Size:
    """The largest of the source's ratio within ``room``, truncated."""
    scale = min(room.height / source.height, room.width / source.width)
    return Size(_some(int(source.width * scale)), _some(int(source.height * scale)))


def divided(source: Size, shortest: int, multiple: int) -> Size:
    """ViLT's: the shorter side ``shortest``, the longer one 1333/800 of that at most, both then rounded down to a multiple."""
    longest = int(1333 / 800 * shortest)
    scale = shortest / min(source)
    if source.height < source.width:
        height, width = float(shortest), scale * source.width
    else:
        height, width = scale * source.height, float(shortest)
    if max(height, width) > longest:
        scale = longest / max(height, width)
        height, width = scale * height, scale * width
    return Size(*(_some(int(side + 0.5) // multiple * multiple) for side in (width, height)))


def shorter_side_up(source: Size, pixels: int, multiple: int) -> Size:
    """TextNet's: the shorter side, then both rounded up to a multiple."""
    width, height = shorter_side(source, pixels)
    return Size(math.ceil(width / multiple) * multiple, math.ceil(height / multiple) * multiple)


def multiples_down(source: Size, multiple: int) -> Size:
    """GLPN's: each side rounded down to a multiple."""
    return Size(_some(source.width // multiple * multiple), _some(source.height // multiple * multiple))


def nearest_multiples(source: Size, room: Size, multiple: int, *, keeps_ratio: bool) -> Size:
    """DPT's: ``room``, or with ``keeps_ratio`` the source scaled by whichever side needs less of it, each side the nearest multiple."""
    across, down = room.width / source.width, room.height / source.height
    if keeps_ratio:
        across = down = across if abs(1 - across) < abs(1 - down) else down
    width, height = (round(scale * side / multiple) * multiple for scale, side in ((across, source.width), (down, source.height)))
    return Size(_some(width), _some(height))


def longer_side(source: Size, pixels: int) -> Size:
    """SAM's: the longer side gets so many pixels, both are rounded half up."""
    scale = pixels / max(source)
    return Size(_some(int(source.width * scale + 0.5)), _some(int(source.height * scale + 0.5)))


def longer_side_at_least(source: Size, pixels: int, least: int) -> Size:
    """Janus's: the longer side gets so many pixels, neither fewer than ``least``; rounded half to even."""
    scale = pixels / max(source)
    return Size(max(round(source.width * scale), least), max(round(source.height * scale), least))


def longer_side_down(source: Size, pixels: int, least: int) -> Size:
    """Aria's: the same, truncated."""
    scale = pixels / max(source)
    if source.width >= source.height:
        return Size(pixels, max(int(source.height * scale), least))
    return Size(max(int(source.width * scale), least), pixels)


def whole_patches(source: Size, room: Size, patch: Size) -> Size:
    """Pixtral's: shrunk into ``room`` where it is larger, then each side rounded up to whole patches."""
    width, height = source
    ratio = max(height / room.height, width / room.width)
    if ratio > 1:
        height, width = math.floor(height / ratio), math.floor(width / ratio)
    return Size(((width - 1) // patch.width + 1) * patch.width, ((height - 1) // patch.height + 1) * patch.height)


def most_patches(source: Size, patch: int, most: int) -> Size:
    """SigLIP 2's: about the source's ratio in at most so many patches, by bisection of the scale."""

    def scaled(scale: float) -> tuple[int, int]:
        high, wide = (max(patch, math.ceil(side * scale / patch) * patch) for side in (source.height, source.width))
        return high, wide

    least, largest, precision = 1e-6, 100.0, 1e-5
    while largest - least >= precision:
        scale = (least + largest) / 2
        high, wide = scaled(scale)
        if (high / patch) * (wide / patch) <= most:
            least = scale
        else:
            largest = scale
    high, wide = scaled(least)
    return Size(wide, high)


def soft_tokens(source: Size, patch: int, most: int, pooling: int) -> Size:
    """Gemma 4's: about the source's ratio in at most ``most`` patches, each side a multiple of ``pooling`` patches."""
    unit = pooling * patch
    factor = math.sqrt(most * patch**2 / (source.height * source.width))
    height, width = (math.floor(factor * side / unit) * unit for side in (source.height, source.width))
    longest = most // pooling**2 * unit
    if height == 0 and width == 0:
        raise ValueError("there is no room for one token of its ratio")
    if height == 0:
        return Size(min(source.width // source.height * unit, longest), unit)
    if width == 0:
        return Size(unit, min(source.height // source.width * unit, longest))
    return Size(width, height)


def smart(source: Size, factor: int, least: int, most: int) -> Size:
    """Qwen2-VL's: multiples of ``factor``, ``least`` to ``most`` pixels."""
    _check_ratio(source.height, source.width)
    return _smart(source.height, source.width, 1, factor, least, most)


def smart_of_frames(source: Size, frames: int, factor: int, least: int, most: int) -> Size:
    """GLM-4V's: the same for an image that counts as ``frames`` frames; what is smaller than ``factor`` is enlarged first."""
    height, width = source.height, source.width
    if height < factor or width < factor:
        scale = max(factor / height, factor / width)
        height, width = int(height * scale), int(width * scale)
    _check_ratio(height, width)
    return _smart(height, width, frames, factor, least, most)


def smart_enlarged(source: Size, factor: int, least: int, most: int) -> Size:
    """PaddleOCR-VL's: Qwen2-VL's, but what is smaller than ``factor`` is enlarged first."""
    height, width = source.height, source.width
    if height < factor:
        height, width = factor, round(width * factor / height)
    if width < factor:
        height, width = round(height * factor / width), factor
    _check_ratio(height, width)
    return _smart(height, width, 1, factor, least, most)


def _check_ratio(height: int, width: int) -> None:
    if max(height, width) / min(height, width) > LONGEST_RATIO:
        raise ValueError(f"one side is over {LONGEST_RATIO} times the other, which the processor refuses")


def _smart(height: int, width: int, frames: int, factor: int, least: int, most: int) -> Size:
    high, wide = round(height / factor) * factor, round(width / factor) * factor
    if frames * high * wide > most:
        beta = math.sqrt(frames * height * width / most)
        high, wide = (max(factor, math.floor(side / beta / factor) * factor) for side in (height, width))
    elif frames * high * wide < least:
        beta = math.sqrt(least / (frames * height * width))
        high, wide = (math.ceil(side * beta / factor) * factor for side in (height, width))
    return Size(wide, high)


def _some(side: int) -> int:
    if side < 1:
        raise ValueError("it is too small, or too long and thin: a side would have no pixels")
    return side
