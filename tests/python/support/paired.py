"""Images and masks that the tests make: a class for each pixel, by chance, so that a pixel's shift shows."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import millrace
import millrace.numpy
import numpy as np
from numpy.typing import NDArray
from PIL import Image

COUNT, CLASSES, IGNORED = 20, 12, 255


def classes_of(number: int) -> NDArray[np.uint8]:
    """The mask of that number."""
    return np.random.default_rng(number).integers(0, CLASSES, (60 + number, 100 - number), np.uint8)


def image_of(mask: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Grey: 20 times the class."""
    return np.repeat(mask[..., None] * 20, 3, axis=2)


def write_mask(path: Path, mask: NDArray[np.uint8], **options: Any) -> None:
    """With a palette of random colours."""
    image = Image.fromarray(mask).convert("P")
    image.putdata(mask.ravel().tolist())
    image.putpalette(np.random.default_rng(1).integers(0, 256, 768, np.uint8).tobytes())
    image.save(path, **options)


def make_place(base: Path) -> Path:
    """base/pairs with images 0 to 19 and their masks, of odd numbers grey, of even ones with a palette."""
    place = base / "pairs"
    (place / "images").mkdir(parents=True)
    (place / "masks").mkdir()
    for number in range(COUNT):
        mask, name = classes_of(number), f"{number:02}.png"
        Image.fromarray(image_of(mask)).save(place / "images" / name)
        if number % 2:
            Image.fromarray(mask).save(place / "masks" / name)
        else:
            write_mask(place / "masks" / name, mask)
    return place


def drain(loader: Any) -> None:
    for _ in loader:
        pass


def check_alike(images: Any, masks: Any) -> None:
    """Each image is 20 times its mask."""
    for image, mask in zip(images, masks, strict=True):
        np.testing.assert_array_equal(image, np.broadcast_to(np.where(mask == IGNORED, IGNORED, mask * 20), image.shape))


@contextlib.contextmanager
def loaders(address: str, pairs: millrace.Pairs) -> Iterator[Callable[..., Any]]:
    """Makes loaders, of ``pairs`` where nothing else is given, which end with it."""
    with contextlib.ExitStack() as stack:

        def loader(given: Any = pairs, recipe: Any = None, kind: Any = millrace.numpy.Loader, **options: Any) -> Any:
            options = {"batch_size": 8, "address": address, **options}
            recipe = recipe or dataclasses.replace(millrace.Recipe.train(48), filter="nearest")
            return stack.enter_context(kind(given, recipe, **options))

        yield loader
