"""Medians, ranges and ratios. Needs nothing but Python."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

# What a figure has to be at least, and what it is meant to become.
AIMS = {"peers.train.first": (3.2, 4.0), "peers.train.indexed": (4.3, 7.0), "peers.train.packed": (7.0, 9.0), "peers.infer": (3.0, 3.0)}


@dataclass(frozen=True)
class Spread:
    """Over the rounds."""

    median: float
    low: float
    high: float


def spread(values: Iterable[float]) -> Spread | None:
    found = sorted(values)
    return Spread(statistics.median(found), found[0], found[-1]) if found else None


def ratio_in_rounds(ours: Mapping[int, float], theirs: Mapping[int, float]) -> Spread | None:
    """Of the rounds that both have: what disturbs a round disturbs both sides of it."""
    return spread(ours[number] / theirs[number] for number in ours.keys() & theirs.keys() if theirs[number] > 0)


def settled(rates: Sequence[float]) -> bool:
    """Whether somebody is warm: of three passes or more, the last was not over 5 % faster than the fastest before it."""
    return len(rates) >= 3 and rates[-1] <= 1.05 * max(rates[:-1])


def best(medians: Mapping[str, float]) -> str | None:
    return max(medians, key=lambda name: medians[name], default=None)
