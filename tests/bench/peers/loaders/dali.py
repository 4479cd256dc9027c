"""NVIDIA DALI on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import nvidia.dali
from nvidia.dali import fn, pipeline_def, types

from loaders.base import Peer
from work import BATCH, MEAN, SIDE, STD, Sample, batches, centre, resized

_MEAN = [255 * value for value in MEAN]
_STD = [255 * value for value in STD]
_PIXELS = {"axis_names": "WH", "normalized_anchor": False, "normalized_shape": False}  # what boxes are counted in


@pipeline_def(batch_size=BATCH)
def training(source: Any) -> Any:
    encoded, anchor, shape, mirror = fn.external_source(source, num_outputs=4, batch=True, cycle=False, no_copy=True)
    pixels = fn.decoders.image_slice(encoded, anchor, shape, **_PIXELS, use_fast_idct=True)
    pixels = fn.resize(pixels, size=[SIDE, SIDE], interp_type=types.INTERP_LINEAR, antialias=True)
    return fn.crop_mirror_normalize(pixels, dtype=types.FLOAT16, output_layout="CHW", mean=_MEAN, std=_STD, mirror=mirror)


@pipeline_def(batch_size=BATCH)
def inference(source: Any) -> Any:
    encoded, size, x, y = fn.external_source(source, num_outputs=4, batch=True, cycle=False, no_copy=True)
    pixels = fn.resize(fn.decoders.image(encoded, use_fast_idct=True), size=size, interp_type=types.INTERP_LINEAR, antialias=True)
    return fn.crop_mirror_normalize(
        pixels, dtype=types.FLOAT16, output_layout="CHW", mean=_MEAN, std=_STD, crop=(SIDE, SIDE), crop_pos_x=x, crop_pos_y=y
    )


class Loader(Peer):
    antialias = "yes"
    output = "float16 NCHW"
    tuned = "decoders.image_slice with use_fast_idct, resize, crop_mirror_normalize; num_threads = cores, prefetch_queue_depth 2"

    def versions(self) -> str:
        return str(nvidia.dali.__version__)

    def epoch(self, recipe: str, samples: Sequence[Sample]) -> Callable[[], Iterator[Any]]:
        define = training if recipe == "train" else inference
        source = map(_fed if recipe == "train" else _fed_whole, batches(samples))
        pipeline = define(source, num_threads=self.cores, device_id=None, prefetch_queue_depth=2)
        pipeline.build()

        def run() -> Iterator[Any]:
            while True:
                try:
                    (out,) = pipeline.run()
                except StopIteration:
                    return
                yield out

        return run

    def array(self, batch: Any) -> Any:
        return batch.as_array()


def _encoded(part: Sequence[Sample]) -> list[Any]:
    return [np.fromfile(sample.path, np.uint8) for sample in part]


def _fed(part: Sequence[Sample]) -> tuple[Any, ...]:
    boxes = np.array([sample.box for sample in part], np.float32)
    return _encoded(part), list(boxes[:, :2]), list(boxes[:, 2:]), [np.int32(sample.flip) for sample in part]


def _fed_whole(part: Sequence[Sample]) -> tuple[Any, ...]:
    sizes = [resized(sample.width, sample.height) for sample in part]
    corners = [centre(width, height) for width, height in sizes]
    x = [np.float32(left / (width - SIDE) if width > SIDE else 0) for (left, _), (width, _) in zip(corners, sizes, strict=True)]
    y = [np.float32(top / (height - SIDE) if height > SIDE else 0) for (_, top), (_, height) in zip(corners, sizes, strict=True)]
    return _encoded(part), [np.array([height, width], np.float32) for width, height in sizes], x, y
