"""The layout of a session's shared memory: what proto/shm/segment_layout.h says, where it is drawn, under the same names."""

from __future__ import annotations

import struct

import numpy as np

SEGMENT_MAGIC = 0x31474553_4C4C494D  # "MILLSEG1"
SEGMENT_VERSION = 1
RECORD_ALIGNMENT = 64
IMAGE_ALIGNMENT = 64

SEGMENT_HEADER = struct.Struct("<QIIQQQQQQ")
SLOT_HEADER = struct.Struct("<IIQ48x")
SEALED = 2

RECORD = np.dtype(
    [
        ("id", "<u8"),
        ("label", "<i8"),
        ("pixels_offset", "<u8"),
        ("pixels_bytes", "<u8"),
        ("width", "<u4"),
        ("height", "<u4"),
        ("source_width", "<u4"),
        ("source_height", "<u4"),
        ("crop_left", "<i4"),
        ("crop_top", "<i4"),
        ("crop_width", "<i4"),
        ("crop_height", "<i4"),
        ("fetch_us", "<u4"),
        ("queue_us", "<u4"),
        ("decode_us", "<u4"),
        ("transform_us", "<u4"),
        ("status", "<u2"),
        ("flags", "u1"),
        ("orientation", "u1"),
        ("backend", "S12"),
        ("index", "<u4"),
        ("resized_width", "<u4"),
        ("resized_height", "<u4"),
        ("window_left", "<i4"),
        ("window_top", "<i4"),
        ("unpacked", "u1"),
        ("reserved", "u1", (11,)),
    ]
)
"""``SampleRecord``: what happened to one image. Offsets count from the segment's start; times are microseconds.

``window_left`` and ``window_top`` say where the image in the tensor begins in the resized one; less than 0 where it is padded."""

FLIPPED, ZEROED, SUBSTITUTED = 1, 2, 4
"""Bits of a record's ``flags``."""


MOST_BESIDE_PIXELS = RECORD.itemsize + IMAGE_ALIGNMENT
"""Bytes that an image takes in a slot beside its pixels, at most: its record, and the gap to the next image."""


def align_up(size: int, alignment: int) -> int:
    """``size`` rounded up to a multiple of ``alignment``."""
    return -(-size // alignment) * alignment


def records_offset(tensor: int) -> int:
    """Of the first record from the slot's first byte, after a tensor of so many bytes."""
    return align_up(tensor, RECORD_ALIGNMENT)


def slot_bytes(tensor: int, samples: int) -> int:
    """What a slot needs for a tensor and its records."""
    return records_offset(tensor) + RECORD.itemsize * samples


def slot_bytes_of_images(image: int, samples: int) -> int:
    """The same for ``samples`` images of ``image`` bytes at most, in either packing."""
    return slot_bytes(align_up(image, IMAGE_ALIGNMENT) * samples, samples)
