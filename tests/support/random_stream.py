"""The random numbers of a sample: a second implementation of daemon/draw's, from its README alone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

OF_A_VIEW = 65536  # so far apart are the uses of a sample's views


def single(value: float) -> float:
    """Rounded to single precision."""
    return float(np.float32(value))


class Key(NamedTuple):
    """What all numbers of a sample are a function of; the first three 64 bits each."""

    seed: int
    epoch: int
    sample: int
    view: int = 0


def philox4x32(counter: list[int], key: list[int]) -> list[int]:
    """Ten rounds (Salmon, Moraes, Dror, Shaw, SC 2011)."""
    a, b, c, d = counter
    k, m = key
    for _ in range(10):
        first, second = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (second >> 32) ^ b ^ k, second & 0xFFFFFFFF, (first >> 32) ^ d ^ m, first & 0xFFFFFFFF
        k, m = (k + 0x9E3779B9) & 0xFFFFFFFF, (m + 0xBB67AE85) & 0xFFFFFFFF
    return [a, b, c, d]


def words(value: int) -> list[int]:
    """The lower half and the upper one."""
    return [value & 0xFFFFFFFF, value >> 32]


class Stream:
    """The numbers of one key and use, in order."""

    def __init__(self, key: Key, use: int) -> None:
        self._hidden = philox4x32(words(key.epoch) + words(key.sample), words(key.seed))
        self._words = self._of(use + OF_A_VIEW * key.view)

    def _of(self, use: int) -> Iterator[int]:
        block = 0
        while True:
            yield from philox4x32([*self._hidden[2:], use, block], self._hidden[:2])
            block += 1

    def next(self) -> int:
        """32 bits."""
        return next(self._words)

    def uniform(self, low: float = 0.0, high: float = 1.0) -> float:
        """53 bits: 27 of a number, then 26 of the next."""
        upper, lower = self.next(), self.next()
        return low + (high - low) * (((upper >> 5) * 2**26 + (lower >> 6)) / 2**53)

    def below(self, bound: int) -> int:
        """Lemire's multiplication, of 32 bits or 64."""
        bits = 32 if bound < 2**32 else 64
        while True:
            number = self.next() if bits == 32 else self.next() | self.next() << 32
            product = number * bound
            if product % 2**bits >= 2**bits % bound:
                return product >> bits

    def normal(self) -> float:
        """The first number of Box and Muller."""
        radius = math.sqrt(-2.0 * math.log(1.0 - self.uniform()))
        return radius * math.cos(2.0 * math.pi * self.uniform())

    def permutation(self, count: int) -> list[int]:
        """Fisher and Yates."""
        order = list(range(count))
        for place in range(count - 1, 0, -1):
            other = self.below(place + 1)
            order[place], order[other] = order[other], order[place]
        return order

    def of(self, interval: tuple[float, float]) -> float:
        """One of a recipe's interval."""
        return self.uniform(single(interval[0]), single(interval[1]))
