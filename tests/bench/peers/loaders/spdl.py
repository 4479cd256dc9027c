"""SPDL, which decodes and resizes with FFmpeg."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import spdl.io
import spdl.pipeline

from loaders.base import Peer, normalise, read
from work import SIDE, Sample, batches, centre, resized

_SWSCALE = "flags=bilinear"


def graph(recipe: str, sample: Sample) -> str:
    """The FFmpeg filter graph of one image."""
    if recipe == "train":
        left, top, width, height = sample.box
        steps = [f"crop={width}:{height}:{left}:{top}:exact=1", f"scale={SIDE}:{SIDE}:{_SWSCALE}", *(["hflip"] if sample.flip else [])]
    else:
        width, height = resized(sample.width, sample.height)
        left, top = centre(width, height)
        steps = [f"scale={width}:{height}:{_SWSCALE}", f"crop={SIDE}:{SIDE}:{left}:{top}:exact=1"]
    return ",".join([*steps, "format=pix_fmts=rgb24"])


def image(recipe: str, sample: Sample) -> Any:
    packets = spdl.io.demux_image(read(sample.path))
    return spdl.io.decode_packets(packets, filter_desc=graph(recipe, sample))


def batch(recipe: str, part: Sequence[Sample]) -> Any:
    pixels = spdl.io.to_numpy(spdl.io.convert_frames([image(recipe, sample) for sample in part]))
    out = np.empty((len(part), 3, SIDE, SIDE), np.float32)
    for index in range(len(part)):
        normalise(pixels[index], out[index])
    return out


class Loader(Peer):
    antialias = "yes"
    tuned = "Pipeline with a thread a core, each making whole batches; crop and scale in one FFmpeg filter graph"

    def versions(self) -> str:
        import importlib.metadata

        return importlib.metadata.version("spdl")

    def epoch(self, recipe: str, samples: Sequence[Sample]) -> Callable[[], Iterator[Any]]:
        builder = spdl.pipeline.PipelineBuilder().add_source(batches(samples))
        pipeline = builder.pipe(lambda part: batch(recipe, part), concurrency=self.cores).add_sink(2).build(num_threads=self.cores)

        def run() -> Iterator[Any]:
            with pipeline.auto_stop():
                yield from pipeline

        return run
