"""What the bench asks of a peer."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from work import BATCH, MEAN, RECIPES, SIDE, STD, Sample, Work, batches

WARM_UP = 6 * BATCH


class Pass(NamedTuple):
    """One pass to be timed. ``row`` tells passes of one round apart; most peers have one, without a name."""

    row: str
    images: int
    run: Callable[[], Iterator[Any]]  # the clock starts before the call and stops after the last batch
    note: Callable[[], str] = lambda: ""  # asked after it, and so is
    kept: Callable[[], float] = lambda: 0  # bytes that it had of these images beside their files, or in their place


class Peer(ABC):
    """A library with the settings that its documentation advises. Lives in a process of its own that is pinned to ``cores`` cores."""

    antialias = "no"
    """``yes``, ``no`` or what kind."""
    output = "float32 NCHW"
    recipes: tuple[str, ...] = RECIPES
    """Those that it takes part in."""
    decodes = True
    """In each pass; else it has the photographs' pixels before the clock starts."""
    given_boxes: tuple[str, ...] = RECIPES
    """The recipes in which it takes the boxes and flips that it is told to."""
    tuned = ""
    """How it is set, in one line, for the table."""

    def __init__(self, work: Work, cores: int) -> None:
        self.work = work
        self.cores = cores

    @abstractmethod
    def versions(self) -> str:
        """Of what it is made of."""

    @abstractmethod
    def epoch(self, recipe: str, samples: Sequence[Sample]) -> Callable[[], Iterator[Any]]:
        """Gets ready, outside of the timed part, for one pass over ``samples`` in this order, ``BATCH`` at a time."""

    def passes(self, recipe: str, number: int, count: int) -> Iterator[Pass]:
        samples = self.work.samples(number, count)
        yield Pass("", count, self.epoch(recipe, samples), kept=lambda: self.kept(samples))

    def kept(self, samples: Sequence[Sample]) -> float:
        """Bytes that a pass over ``samples`` has of them beside their files, or in their place."""
        return 0

    def warm_up(self, recipe: str) -> Iterator[Pass]:
        """Passes that nobody reports; a part of a timed one does."""
        samples = self.work.samples(0, WARM_UP)
        yield Pass("", len(samples), self.epoch(recipe, samples))

    def array(self, batch: Any) -> Any:
        """The batch as a NumPy array, N x 3 x 224 x 224; no copy if that can be avoided."""
        return batch

    def close(self) -> None:  # noqa: B027, most have nothing to end
        """Ends what the process started."""


class ThreadedPeer(Peer):
    """A library that makes one image at a time and lets the interpreter go while it does: one thread a core, each making whole batches."""

    def __init__(self, work: Work, cores: int) -> None:
        super().__init__(work, cores)
        self._pool = ThreadPoolExecutor(cores)
        self._scratch = threading.local()

    @abstractmethod
    def image(self, recipe: str, sample: Sample) -> Any:
        """One image, 224 x 224 x 3 uint8, flipped if the sample says so."""

    def epoch(self, recipe: str, samples: Sequence[Sample]) -> Callable[[], Iterator[Any]]:
        parts = batches(samples)
        return (lambda: (self._batch(recipe, part) for part in parts)) if self.cores == 1 else (lambda: self._ahead(recipe, parts))

    def _ahead(self, recipe: str, parts: Sequence[Sequence[Sample]]) -> Iterator[Any]:
        waiting: deque[Future[Any]] = deque()
        for part in parts:
            waiting.append(self._pool.submit(self._batch, recipe, part))
            if len(waiting) > 2 * self.cores:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    def _batch(self, recipe: str, part: Sequence[Sample]) -> Any:
        out = np.empty((len(part), 3, SIDE, SIDE), np.float32)
        for index, sample in enumerate(part):
            normalise(self.image(recipe, sample), out[index])
        return out

    def close(self) -> None:
        self._pool.shutdown()


_SCALE = [1 / (255 * std) for std in STD]
_SHIFT = [-mean / std for mean, std in zip(MEAN, STD, strict=True)]


def normalise(pixels: Any, out: Any) -> None:
    """H x W x 3 uint8 to 3 x H x W float; the fastest of six ways with NumPy."""
    for channel in range(3):
        plane = out[channel]
        np.copyto(plane, pixels[..., channel])
        plane *= _SCALE[channel]
        plane += _SHIFT[channel]


def read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
