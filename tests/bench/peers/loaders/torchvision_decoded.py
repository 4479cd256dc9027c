"""torchvision with every photograph decoded before, as uint8 tensors in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from loaders import torchvision
from work import Sample, Work

_pictures: dict[str, Any] = {}  # before the workers start, which share it


class Files(torchvision.Files):
    def decode(self, path: str) -> Any:
        return _pictures[path]


class Loader(torchvision.Loader):
    recipes = ("train",)
    decodes = False
    dataset = Files
    tuned = "as torchvision; decode_jpeg's tensors in memory, whole, since crops differ each epoch; workers share them"

    def __init__(self, work: Work, cores: int) -> None:
        super().__init__(work, cores)
        files = torchvision.Files("train")
        _pictures.update((path, files.decode(path)) for path in work.files)

    def kept(self, samples: Sequence[Sample]) -> float:
        return sum(_pictures[sample.path].nbytes for sample in samples)
