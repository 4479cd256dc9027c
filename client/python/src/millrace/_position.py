"""Positions of other ranks.

An ``EpochPosition`` (dataset.proto) is opaque but for this: ranks that take batches in step stand at the same batch of their shares, so
the checkpoint of one resumes all.
"""

from __future__ import annotations

from millrace import _schema
from millrace.errors import InvalidRequest

_POLYNOMIAL = 0x82F63B78  # CRC-32C (Castagnoli), reflected


def _crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (_POLYNOMIAL if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def for_rank(position: bytes, rank: int) -> bytes:
    """The position of ``rank`` that corresponds to another rank's ``position``; empty stays empty.

    Raises:
        InvalidRequest: no position.
    """
    if not position:
        return position
    message = _schema.EpochPosition()
    try:
        message.ParseFromString(position)
    except Exception as why:  # protobuf's DecodeError is another class in every runtime
        raise InvalidRequest("position: not a position token, or damaged") from why
    given = message.checksum
    message.ClearField("checksum")
    if _crc32c(message.SerializeToString(deterministic=True)) != given:
        raise InvalidRequest("position: not a position token, or damaged")
    message.rank = rank
    message.checksum = _crc32c(message.SerializeToString(deterministic=True))
    return bytes(message.SerializeToString(deterministic=True))
