"""tf.data with cache(), in memory, behind decoding: whole photographs, since crops differ each epoch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from loaders import tfdata
from work import Sample, Work


def _decoded(path: Any) -> Any:
    return tf.io.decode_jpeg(tf.io.read_file(path), channels=3)


def _training(pixels: Any, random: tuple[Any, Any]) -> Any:
    window, flip = random
    return tfdata.made(tf.image.crop_to_bounding_box(pixels, window[0], window[1], window[2], window[3]), flip)


class Loader(tfdata.Loader):
    recipes = ("train",)
    decodes = False
    tuned = "decode_jpeg, cache() of whole photographs, crop, parallel map; else as tf.data"

    def __init__(self, work: Work, cores: int) -> None:
        super().__init__(work, cores)
        self._pictures = tf.data.Dataset.from_tensor_slices(list(work.files)).map(_decoded, num_parallel_calls=cores).cache()
        for _ in self._pictures:  # fills it
            pass

    def images(self, recipe: str, samples: Sequence[Sample]) -> Any:
        random = tf.data.Dataset.from_tensor_slices((tfdata.windows(recipe, samples), [sample.flip for sample in samples]))
        return tf.data.Dataset.zip((self._pictures, random)).map(_training, num_parallel_calls=self.cores)

    def kept(self, samples: Sequence[Sample]) -> float:
        return sum(3 * sample.width * sample.height for sample in samples)
