"""FFCV in its JPEG mode. Its file holds the photographs' own bytes, so that it decodes what the others decode."""

from __future__ import annotations

import fcntl
import importlib.metadata
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from ffcv.fields import RGBImageField
from ffcv.fields.rgb_image import IMAGE_MODES, CenterCropRGBImageDecoder, RandomResizedCropRGBImageDecoder
from ffcv.loader import Loader as FfcvLoader
from ffcv.loader import OrderOption
from ffcv.transforms import NormalizeImage, RandomHorizontalFlip, ToTensor, ToTorchImage
from ffcv.writer import DatasetWriter

from loaders.base import Peer
from work import BATCH, MEAN, SHORTER, SIDE, STD, Sample, Work

_MEAN = np.array(MEAN) * 255
_STD = np.array(STD) * 255


class OriginalBytes(RGBImageField):
    """An image field that stores a JPEG file as it is; FFCV's own would encode it anew."""

    def encode(self, destination: Any, image: Any, malloc: Any) -> None:
        encoded, width, height = image
        destination["mode"] = IMAGE_MODES["jpg"]
        destination["width"], destination["height"] = width, height
        destination["data_ptr"], storage = malloc(encoded.nbytes)
        storage[:] = encoded


class Files:
    """What FFCV's writer takes: for each sample what its field encodes."""

    def __init__(self, samples: Sequence[Sample], read: Callable[[Sample], Any]) -> None:
        self._samples, self._read = samples, read

    def __len__(self) -> int:
        return len(self._samples)

    def __getitem__(self, index: int) -> Any:
        return (self._read(self._samples[index]),)


def written(work: Work, name: str, field: Any, read: Callable[[Sample], Any]) -> Path:
    """The photographs in FFCV's format; written by whichever worker comes first."""
    target = Path(work.folder).parent / name
    with target.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists() or target.stat().st_mtime < Path(work.folder, "class").stat().st_mtime:
            part = target.with_suffix(".part")
            DatasetWriter(str(part), {"image": field}, num_workers=1).from_indexed_dataset(Files(work.epochs[0], read))
            part.rename(target)
    return target


class Loader(Peer):
    antialias = "box"
    output = "float16 NHWC"
    given_boxes = ()
    custom_fields: ClassVar[dict[str, Any]] = {"image": OriginalBytes}
    tuned = "OS cache, workers = cores, its own decoders (fast DCT, INTER_AREA) and crops; its file holds the photographs' own bytes"

    def __init__(self, work: Work, cores: int) -> None:
        super().__init__(work, cores)
        torch.set_num_threads(cores)
        self._file = self.written()
        self._loaders: dict[str, Any] = {}
        for recipe in self.recipes:  # compiles it
            for _ in self.epoch(recipe, work.samples(0, 1))():
                pass

    def written(self) -> Path:
        read = lambda sample: (np.fromfile(sample.path, np.uint8), sample.width, sample.height)  # noqa: E731
        return written(self.work, "photographs.beton", OriginalBytes(), read)

    def versions(self) -> str:
        return f"{importlib.metadata.version('ffcv')}, OpenCV and libjpeg-turbo of Debian"

    def kept(self, samples: Sequence[Sample]) -> float:
        return self._file.stat().st_size * len(samples) / len(self.work.files)

    def _loader(self, recipe: str) -> Any:
        if recipe not in self._loaders:
            if recipe == "train":
                steps = [RandomResizedCropRGBImageDecoder((SIDE, SIDE)), RandomHorizontalFlip()]
            else:
                steps = [CenterCropRGBImageDecoder((SIDE, SIDE), ratio=SIDE / SHORTER)]
            steps += [NormalizeImage(_MEAN, _STD, np.float16), ToTensor(), ToTorchImage()]
            self._loaders[recipe] = FfcvLoader(
                str(self._file),
                BATCH,
                num_workers=self.cores,
                os_cache=True,
                order=OrderOption.SEQUENTIAL,
                pipelines={"image": steps},
                custom_fields=self.custom_fields,
                drop_last=False,
            )
        return self._loaders[recipe]

    def epoch(self, recipe: str, samples: Sequence[Sample]) -> Callable[[], Iterator[Any]]:
        loader = self._loader(recipe)
        loader.indices = loader.traversal_order.indices = loader.first_traversal_order = np.arange(len(samples), dtype=np.uint64)
        return lambda: (images for (images,) in loader)

    def array(self, batch: Any) -> Any:
        return batch.view(torch.float16).numpy()
