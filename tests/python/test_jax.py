"""JAX: DLPack and the loader. Run them with JAX installed."""

from __future__ import annotations

import gc
import warnings
from collections import deque
from pathlib import Path
from typing import Any

import millrace
import numpy as np
import pytest

from pictures import COUNT, EACH, SIZE, pixels_of, png

jax = pytest.importorskip("jax", reason="JAX is not installed: nothing of millrace.jax is tested")

import millrace.jax  # noqa: E402

pytestmark = pytest.mark.jax
NHWC = millrace.Recipe(resize=millrace.ExactSize(SIZE), layout="NHWC")


@pytest.mark.parametrize("dtype", ["uint8", "float16", "bfloat16", "float32"])
def test_dlpack(client: millrace.Client, dtype: Any) -> None:
    recipe = millrace.Recipe(resize=millrace.ExactSize(SIZE), layout="NHWC", dtype=dtype, range="raw")
    with client.session(recipe, batch=2) as session:
        batch = session.get(session.submit([png(0), png(1)]))
        array = jax.dlpack.from_dlpack(batch.images)
        assert array.dtype == dtype
        np.testing.assert_array_equal(np.asarray(array[1]).astype(np.float32), pixels_of(1))
        np.testing.assert_array_equal(np.asarray(jax.numpy.asarray(batch.images)[0]).astype(np.float32), pixels_of(0))


@pytest.mark.parametrize("dtype", ["uint8", "bfloat16", "float32"])
def test_loader(daemon: millrace.PrivateDaemon, folder: Path, dtype: Any) -> None:
    with millrace.jax.Loader(folder, NHWC, batch_size=8, dtype=dtype, address=daemon.address) as loader:
        seen = 0
        for images, labels in loader:
            assert isinstance(images, jax.Array)
            assert (images.dtype, labels.dtype) == (dtype, np.int32)
            scale = 1 if dtype == "uint8" else 255
            for image, label, number in zip(images, labels, loader.batch.ids, strict=True):  # type: ignore[union-attr]
                found = np.asarray(image).astype(np.float32) * scale
                np.testing.assert_allclose(found, pixels_of(int(number)), atol=0.5)
                assert int(label) == number // EACH
                seen += 1
        assert seen == COUNT


def test_arrays_keep_their_slot(client: millrace.Client, daemon: millrace.PrivateDaemon, folder: Path) -> None:
    with millrace.jax.Loader(folder, NHWC, batch_size=4, slots=3, address=daemon.address) as loader:
        iterator = iter(loader)
        first, _ = next(iterator)
        numbers = loader.batch.ids.tolist()  # type: ignore[union-attr]
        for _ in iterator:
            pass
        gc.collect()
        for image, number in zip(np.asarray(first), numbers, strict=True):
            np.testing.assert_array_equal(image, pixels_of(number))


def test_a_prefetch_as_deep_as_there_are_slots(daemon: millrace.PrivateDaemon, folder: Path) -> None:
    queue: deque[Any] = deque()
    seen: list[Any] = []
    with (
        millrace.jax.Loader(folder, NHWC, batch_size=4, address=daemon.address) as loader,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", millrace.SlotsHeld)
        for images, _ in loader:
            queue.append(images)
            if len(queue) > 4:
                seen.append(np.array(queue.popleft()))
    seen += [np.asarray(images) for images in queue]
    np.testing.assert_array_equal(np.concatenate(seen), np.stack([pixels_of(number) for number in range(COUNT)]))
