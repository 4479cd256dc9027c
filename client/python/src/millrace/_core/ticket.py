"""Tickets: what made one tensor, as a file from which ``millrace replay`` makes the very same tensor again, anywhere."""

from __future__ import annotations

import os
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from google.protobuf import text_format

from millrace._memory.tensor import Tensor
from millrace._wire import schema as _schema
from millrace._wire.messages import fidelity_number, path_text, recipe_message
from millrace.errors import Unsupported

if TYPE_CHECKING:
    from millrace._core.batch import Batch

_VERSION = 1


@dataclass(frozen=True)
class Ticket:
    """Of one tensor: file, recipe, and what its random choices were drawn from; a few hundred bytes."""

    text: str
    """Protobuf's text format of a ``millrace.v1.Ticket``."""
    path: str
    """Of the image."""
    sample: int
    """Its id."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the file that ``millrace replay`` takes."""
        Path(path).write_text(self.text)

    def __repr__(self) -> str:
        return f"<millrace ticket of sample {self.sample}, {path_text(self.path)}; save(FILE), then: millrace replay FILE -o IMAGE.png>"


def ticket_of(batch: Batch, index: int, view: int) -> Ticket:
    """See ``Batch.ticket``."""
    start: Any = batch._start
    if start is None or start.given:
        kind = "a batch of an order of the caller's own" if start is not None else "a submitted batch"
        raise Unsupported(f"batch.ticket: this is {kind}; tickets are of epochs in the daemon's order")
    if start.fidelity == fidelity_number("fast"):
        raise Unsupported("batch.ticket: pixels of fidelity fast depend on the processor and on what is kept; tickets are of exact ones")
    image = batch.image(index, view)
    if not isinstance(image, Tensor):
        raise Unsupported("batch.ticket: the tensor is in a GPU's memory; make the session with memory='host' to have tickets of it")
    index %= len(batch)
    if batch.status[index] != 0:
        raise Unsupported(f"batch.ticket: image {index} is a bad one, which was not made of its file; its reason is in batch.errors")
    path, sample = batch.paths[index], int(batch.ids[index])
    message = _schema.Ticket(
        version=_VERSION, path=os.fsencode(path), recipe=recipe_message(batch.recipe), fidelity=start.fidelity, sample=sample
    )
    message.seed, message.epoch = start.seed, start.epoch
    message.view = view % (len(batch.recipe.views) or 1)
    message.shape.extend(image.shape)
    message.crc32 = zlib.crc32(image.bits().tobytes())
    return Ticket(text_format.MessageToString(message), os.fsdecode(path), sample)
