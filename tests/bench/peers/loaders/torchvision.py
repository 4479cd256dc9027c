"""torchvision on tensors behind PyTorch's DataLoader."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
import torchvision
from torchvision.io import ImageReadMode, decode_jpeg, read_file
from torchvision.transforms.v2 import functional

from loaders.base import Peer
from work import BATCH, MEAN, SHORTER, SIDE, STD, Sample, Work

_MEAN, _STD = list(MEAN), list(STD)


class Files(torch.utils.data.Dataset[Any]):
    """Keys are the samples themselves, so that one set of workers serves every epoch."""

    def __init__(self, recipe: str) -> None:
        self.recipe = recipe

    def __getitem__(self, sample: Sample) -> Any:
        picture = self.decode(sample.path)
        if self.recipe == "train":
            left, top, width, height = sample.box
            picture = functional.resized_crop(picture, top, left, height, width, [SIDE, SIDE], antialias=True)
            if sample.flip:
                picture = functional.horizontal_flip(picture)
        else:
            picture = functional.center_crop(functional.resize(picture, [SHORTER], antialias=True), [SIDE, SIDE])
        return functional.normalize(functional.to_dtype(self.tensor(picture), torch.float32, scale=True), _MEAN, _STD, inplace=True)

    def decode(self, path: str) -> Any:
        return decode_jpeg(read_file(path), ImageReadMode.RGB)

    def tensor(self, picture: Any) -> Any:
        return picture


class Order(torch.utils.data.Sampler[Any]):
    """Hands out whatever samples it was given last."""

    samples: Sequence[Sample] = ()

    def __iter__(self) -> Iterator[Sample]:
        return iter(self.samples)

    def __len__(self) -> int:
        return len(self.samples)


class Loader(Peer):
    antialias = "yes"
    dataset: type[Files] = Files
    tuned = "transforms.v2 on uint8 tensors; one core: in the process, two: a persistent worker each"

    def __init__(self, work: Work, cores: int) -> None:
        super().__init__(work, cores)
        torch.set_num_threads(1)
        self._order = {recipe: Order() for recipe in ("train", "infer")}
        self._loaders: dict[str, Any] = {}

    def versions(self) -> str:
        return f"{torchvision.__version__}, PyTorch {torch.__version__}"

    def epoch(self, recipe: str, samples: Sequence[Sample]) -> Callable[[], Iterator[Any]]:
        if recipe not in self._loaders:
            workers = 0 if self.cores == 1 else self.cores
            self._loaders[recipe] = torch.utils.data.DataLoader(
                self.dataset(recipe), BATCH, sampler=self._order[recipe], num_workers=workers, persistent_workers=workers > 0
            )
        self._order[recipe].samples = samples
        return lambda: iter(self._loaders[recipe])

    def array(self, batch: Any) -> Any:
        return batch.numpy()
