"""What tests of sources of encoded images have in common."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import millrace
import millrace.numpy
import pytest

from pictures import CLASSES, COUNT, EACH, SIZE, png

OWN_SIZE = millrace.Recipe(resize=millrace.ExactSize(SIZE), layout="NHWC")


class Rows:
    """A source that can be iterated anew: dictionaries, made as they are asked for."""

    def __init__(self, count: int = COUNT, make: Callable[[int], Any] | None = None) -> None:
        self.count, self.taken = count, 0
        self._make = make or (lambda n: {"jpg": png(n), "cls": n // EACH})

    def __iter__(self) -> Iterator[Any]:
        for n in range(self.count):
            self.taken += 1
            yield self._make(n)


@pytest.fixture(name="make")
def make_loader(daemon: millrace.PrivateDaemon) -> Iterator[Callable[..., Any]]:
    made = []

    def loader(source: Any, *arguments: Any, **options: Any) -> Any:
        made.append(millrace.numpy.Loader(source, *(arguments or (OWN_SIZE,)), **{"batch_size": 8, "address": daemon.address, **options}))
        return made[-1]

    yield loader
    for one in made:
        one.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "millrace-feed"]


@pytest.fixture(name="hugging")
def hugging_face() -> Any:
    return pytest.importorskip("datasets", reason="Hugging Face's datasets is not installed: its datasets are not tried")


@pytest.fixture(name="table")
def pictures_table(hugging: Any) -> Any:
    """The tests' pictures as a ``Dataset``, labels as class labels."""
    return table_of(hugging, COUNT)


def table_of(hugging: Any, count: int) -> Any:
    features = hugging.Features(
        {"image": hugging.Image(), "label": hugging.ClassLabel(names=list(CLASSES)), "caption": hugging.Value("string")}
    )
    rows = {
        "image": [{"bytes": png(n), "path": None} for n in range(count)],
        "label": [n // EACH for n in range(count)],
        "caption": [f"picture {n}" for n in range(count)],
    }
    return hugging.Dataset.from_dict(rows, features=features)


def seen_of(loader: Any, most: int | None = None) -> list[tuple[int, int, bytes]]:
    """Ids, labels and pixels of a loop, or of its first batches."""
    seen = []
    for number, (images, labels) in enumerate(loader, 1):
        seen += [(int(n), int(label), image.tobytes()) for n, label, image in zip(loader.batch.ids, labels, images, strict=True)]
        if number == most:
            break
    return seen
