"""Loaders of the tests' folder of pictures, and what they give."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import millrace
import millrace.numpy
import pytest

from pictures import SIZE

OWN_SIZE = millrace.Recipe(resize=millrace.ExactSize(SIZE), layout="NHWC")


@pytest.fixture(name="make")
def make_loader(daemon: millrace.PrivateDaemon, folder: Path) -> Iterator[Callable[..., Any]]:
    """Makes loaders of the folder, in batches of 8 images of their own size, and closes them."""
    made: list[millrace.numpy.Loader] = []

    def loader(*transform: Any, **options: Any) -> millrace.numpy.Loader:
        options = {"batch_size": 8, "address": daemon.address, **({} if transform else {"transform": OWN_SIZE}), **options}
        made.append(millrace.numpy.Loader(folder, *transform, **options))
        return made[-1]

    yield loader
    for one in made:
        one.close()


def ids_of(loader: Any) -> list[int]:
    """Of a whole loop."""
    return [int(number) for _ in loader for number in loader.batch.ids]
