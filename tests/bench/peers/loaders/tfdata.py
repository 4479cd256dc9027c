"""TensorFlow's tf.data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from loaders.base import Peer
from work import BATCH, MEAN, SIDE, STD, Sample, Work, centre, resized

_SCALE = np.array([1 / (255 * std) for std in STD], np.float32)
_SHIFT = np.array([-mean / std for mean, std in zip(MEAN, STD, strict=True)], np.float32)


def _training(path: Any, window: Any, flip: Any) -> Any:
    return made(tf.image.decode_and_crop_jpeg(tf.io.read_file(path), window, channels=3), flip)


def made(crop: Any, flip: Any) -> Any:
    """The training image of its crop, but for normalising."""
    pixels = tf.image.resize(crop, [SIDE, SIDE])
    pixels = tf.cond(flip, lambda: tf.reverse(pixels, [1]), lambda: pixels)
    return tf.ensure_shape(pixels, [SIDE, SIDE, 3])


def _inference(path: Any, window: Any, _: Any) -> Any:
    pixels = tf.image.resize(tf.io.decode_jpeg(tf.io.read_file(path), channels=3), window[2:])
    return tf.slice(pixels, [window[0], window[1], 0], [SIDE, SIDE, 3])


def _normalised(pixels: Any) -> Any:
    return pixels * _SCALE + _SHIFT


class Loader(Peer):
    output = "float32 NHWC"
    tuned = "decode_and_crop_jpeg, parallel map, normalised by the batch; private thread pool of one a core, prefetch"

    def __init__(self, work: Work, cores: int) -> None:
        super().__init__(work, cores)
        tf.config.threading.set_intra_op_parallelism_threads(cores)
        tf.config.threading.set_inter_op_parallelism_threads(cores)

    def versions(self) -> str:
        return str(tf.__version__)

    def epoch(self, recipe: str, samples: Sequence[Sample]) -> Callable[[], Iterator[Any]]:
        dataset = self.images(recipe, samples).batch(BATCH).map(_normalised).prefetch(2)
        options = tf.data.Options()
        options.threading.private_threadpool_size = self.cores
        options.threading.max_intra_op_parallelism = 1
        options.deterministic = True
        dataset = dataset.with_options(options)
        return lambda: iter(dataset)

    def images(self, recipe: str, samples: Sequence[Sample]) -> Any:
        """The dataset of the images, 224 x 224 x 3 float32 in 0 ... 255."""
        parts = ([sample.path for sample in samples], windows(recipe, samples), [sample.flip for sample in samples])
        step = _training if recipe == "train" else _inference
        return tf.data.Dataset.from_tensor_slices(parts).map(step, num_parallel_calls=self.cores)

    def array(self, batch: Any) -> Any:
        return np.moveaxis(batch.numpy(), 3, 1)


def windows(recipe: str, samples: Sequence[Sample]) -> Any:
    return np.array([_window(recipe, sample) for sample in samples], np.int32)


def _window(recipe: str, sample: Sample) -> tuple[int, int, int, int]:
    """Top, left, height, width of the crop; for inference top and left of the middle, and the size to resize to."""
    if recipe == "train":
        left, top, width, height = sample.box
        return top, left, height, width
    width, height = resized(sample.width, sample.height)
    left, top = centre(width, height)
    return top, left, height, width
