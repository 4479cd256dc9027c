"""What a recipe does not say, done to each image of a loader's batches, in threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import torch

from millrace._frameworks.over_loader import OverLoader
from millrace.errors import InvalidRequest
from millrace.pairs import Pairs

if TYPE_CHECKING:
    from millrace.torch import Loader


class Rest(OverLoader):
    """A loader's images through the transforms that ``split`` has left over: ``for images, labels in Rest(loader, rest)``.

        >>> recipe, rest = millrace.torch.split(transform)
        >>> loader = millrace.torch.Rest(millrace.torch.Loader("/data/train", recipe, batch_size=256, shuffle=True), rest)

    Each image by itself, so that random transforms draw for each one; of a batch several at a time. The results become one batch again
    as DataLoader's would: tensors of one shape are stacked, on their device. They are new memory; labels are the loader's. Transforms
    draw from their own library's generators, which threads share: a resumed epoch does not draw the same again there, nor does a seed
    decide it, but with ``threads=1``. What a transform raises ends the loop, with the image's id and file in a note.

    It stands where the loader stands, as ``OverLoader`` says; ``batch`` is as the daemon made it.
    """

    def __init__(self, loader: Loader, rest: Sequence[Callable[[Any], Any]] | Callable[[Any], Any], threads: int | None = None) -> None:
        """Of a loader that makes one image of each sample.

        Args:
            loader: its images are given to the first transform as they are, [C, H, W].
            rest: done one after the other, or one that does it all; empty: batches are the loader's.
            threads: at most so many images at a time; None: as many as the process has cores.

        Raises:
            InvalidRequest: a transform cannot be called, there is no thread, or the loader makes views or has Pairs.
        """
        transforms: list[Any] = list(rest) if isinstance(rest, (list, tuple)) else [rest]
        if not all(map(callable, transforms)):
            raise InvalidRequest(f"Rest: rest must be transforms, as millrace.torch.split() gives them; is {rest!r}")
        if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
            raise InvalidRequest(f"Rest: threads must be a whole number, at least 1, or None; is {threads!r}")
        if loader.recipe.views:
            raise InvalidRequest("Rest: the loader makes several views of each image: transform them in the loop")
        if isinstance(loader.dataset, Pairs):
            raise InvalidRequest("Rest: the loader has Pairs, and masks would stay as they are: transform both in the loop")
        super().__init__(loader)
        self._rest: list[Callable[[Any], Any]] = transforms
        self._threads = threads or len(os.sched_getaffinity(0))

    def __repr__(self) -> str:
        return f"<millrace.torch.Rest of {len(self._rest)} transforms in {self._threads} threads: {self._loader!r}>"

    def _each(self, batches: Iterator[Any]) -> Iterator[Any]:
        if not self._rest:
            yield from batches
            return
        with ThreadPoolExecutor(self._threads, "millrace-rest") as pool:
            for images, labels in batches:
                finished = torch.utils.data.default_collate(list(pool.map(self._finished, range(len(images)), images)))
                del images  # which may hold a slot
                yield finished, labels
                del finished, labels

    def _finished(self, position: int, image: Any) -> Any:
        try:
            for transform in self._rest:
                image = transform(image)
        except Exception as why:
            _note(why, self._where(position))
            raise
        return image

    def _where(self, position: int) -> str:
        batch = self._loader.batch
        if batch is None:
            return "in millrace.torch.Rest"
        return f"in millrace.torch.Rest, of sample {int(batch.ids[position])} ({batch.paths[position]})"


def _note(why: Exception, text: str) -> None:
    add = getattr(why, "add_note", None)  # since Python 3.11
    if add is not None:
        add(text)
