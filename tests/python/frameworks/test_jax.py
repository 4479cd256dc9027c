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

from gpu_clients import Run
from pictures import COUNT, EACH, SIZE, pixels_of, png

jax = pytest.importorskip("jax", reason="JAX is not installed: nothing of millrace.jax is tested")

import millrace.jax  # noqa: E402
from millrace.jax import _cuda_device  # noqa: E402

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


class Copying(millrace.jax.Loader):
    """Copies batches out of their slots, as the loader does in a GPU's memory, which this JAX need not have."""

    def _convert(self, batch: millrace.Batch, labels: Any) -> tuple[Any, Any]:
        return batch.views, batch.labels

    def _moved(self, item: tuple[Any, Any]) -> tuple[Any, Any]:
        return self._copied(item[0]), item[1]


@pytest.mark.parametrize("views", [0, 3])
@pytest.mark.parametrize("slots", [1, 2, 4])
def test_copies_on_the_device_may_be_kept_and_donated_and_give_their_slots_back(
    daemon: millrace.PrivateDaemon, folder: Path, slots: int, views: int
) -> None:
    recipe = millrace.Recipe.of_views([NHWC] * views) if views else NHWC
    change = jax.jit(lambda images: images + 1, donate_argnums=0)
    with (
        Copying(folder, recipe, batch_size=7, slots=slots, address=daemon.address) as loader,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("error", millrace.SlotsHeld)
        kept = [images[-1] for images, _ in loader]
        changed = [change(images[-1]) for images, _ in loader]
        np.testing.assert_array_equal(np.concatenate(kept), np.stack([pixels_of(number) for number in range(COUNT)]))
        np.testing.assert_array_equal(np.concatenate(changed), np.stack([pixels_of(number) + np.uint8(1) for number in range(COUNT)]))
        assert len(loader._copies) < max(2, slots)
        loader.close()
        assert not loader._copies


def test_the_hosts_memory_is_for_all_that_is_no_single_gpu() -> None:
    cpu = jax.devices("cpu")[0]
    single = jax.sharding.SingleDeviceSharding(cpu)
    mesh = jax.sharding.NamedSharding(jax.sharding.Mesh(np.array([cpu]), ("batch",)), jax.sharding.PartitionSpec("batch"))

    assert [_cuda_device(device) for device in (cpu, single, mesh)] == [None] * 3


def test_images_of_a_gpus_memory_for_the_cpu_are_copies(in_client: Run) -> None:
    in_client("""
import millrace.jax

def epoch(memory):
    options = {"batch_size": 8, "memory": memory, "dtype": "bfloat16"}
    with millrace.jax.Loader(FOLDER, millrace.Recipe.train(24), address=sys.argv[1], **options) as loader:
        kept = [(np.array(images), labels.tolist()) for images, labels in loader]
        assert loader._session.memory_name == memory
        return kept

for (there, labels), (here, others) in zip(epoch("cuda:0"), epoch("host"), strict=True):
    np.testing.assert_array_equal(there, here)
    assert labels == others
""")
