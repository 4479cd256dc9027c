"""Images and masks as JAX arrays: what PyTorch's loader gives of the same pairs, in the slots' memory, and over several devices."""

from __future__ import annotations

import dataclasses
import gc
import itertools
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import millrace
import millrace.numpy
import numpy as np
import pytest
from millrace import Pairs, Recipe

pytestmark = [pytest.mark.jax, pytest.mark.torch]
jax = pytest.importorskip("jax", reason="JAX is not installed: it gets no pairs")
pytest.importorskip("torch", reason="PyTorch is not installed: JAX's pairs are not compared with its")
Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed: there are no masks with palettes")

import millrace.jax  # noqa: E402
import millrace.torch  # noqa: E402

from paired import COUNT, check_alike, drain, loaders, make_place  # noqa: E402
from test_jax_processes import together  # noqa: E402

NEAREST = dataclasses.replace(Recipe.train(48), filter="nearest")
NHWC = dataclasses.replace(NEAREST, layout="NHWC")


@pytest.fixture(scope="module")
def place(folder: Path) -> Path:
    return make_place(folder.parent / "arrays")


@pytest.fixture(scope="module")
def pairs(place: Path) -> Pairs:
    return Pairs.of_folders(place / "images", place / "masks")


@pytest.fixture
def make(daemon: millrace.PrivateDaemon, pairs: Pairs) -> Iterator[Callable[..., Any]]:
    with loaders(daemon.address, pairs) as loader:

        def of_jax(*given: Any, kind: Any = millrace.jax.Loader, **options: Any) -> Any:
            return loader(*given, kind=kind, **options)

        yield of_jax


def copies(loader: Any) -> list[tuple[list[int], bytes, bytes]]:
    """Of each batch the ids, and what is in the images and in the masks; bfloat16 as float32."""
    found = []
    for images, masks in loader:
        plain = np.asarray(images.float() if hasattr(images, "float") else images.astype("float32"))
        found.append((loader.batch.ids.tolist(), plain.tobytes(), np.asarray(masks).tobytes()))
    return found


@pytest.mark.parametrize("dtype", ["uint8", "bfloat16", "float32"])
def test_batches_are_those_of_pytorchs_loader(make: Any, dtype: Any) -> None:
    both = [make(kind=kind, shuffle=True, seed=3, dtype=dtype) for kind in (millrace.jax.Loader, millrace.torch.Loader)]
    for _ in range(2):
        ours, theirs = map(copies, both)
        assert ours == theirs
        assert [len(ids) for ids, *_ in ours] == [8, 8, 4]
    for images, masks in both[0]:
        assert isinstance(images, jax.Array)
        assert isinstance(masks, jax.Array)
        assert (images.dtype, masks.dtype) == (dtype, np.uint8)
        assert masks.shape == (len(images), 48, 48)


def test_the_channels_may_come_last(make: Any) -> None:
    for (last, masks), (first, same) in zip(make(recipe=NHWC), make(), strict=True):
        np.testing.assert_array_equal(np.moveaxis(last, -1, 1), first)
        np.testing.assert_array_equal(masks, same)


def test_images_and_masks_are_the_slots_memory(make: Any) -> None:
    loader = make()
    for images, masks in loader:
        for array, tensor in ((images, loader.batch.images), (masks, loader.batch.masks)):
            assert array.unsafe_buffer_pointer() == tensor.numpy().ctypes.data


@pytest.mark.parametrize("writable", [True, False])
def test_two_slots_are_enough(make: Any, writable: bool) -> None:
    loader = make(batch_size=2, slots=2, writable=writable, timeout=300, shuffle=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", millrace.SlotsHeld)
        for _ in range(3):
            for images, masks in loader:
                check_alike(np.asarray(images), np.asarray(masks))


def test_masks_keep_their_slot(make: Any) -> None:
    loader = make(batch_size=2, slots=3)
    loop = iter(loader)
    images, masks = next(loop)
    at_once = np.array(masks)
    drain(loop)
    loader.close()
    gc.collect()
    np.testing.assert_array_equal(masks, at_once)
    check_alike(np.asarray(images), np.asarray(masks))


@pytest.mark.parametrize("order", [{"shuffle": True}, {"sampler": [5, 7, 5, *range(10), 5, 19]}], ids=["shuffled", "sampler"])
def test_a_loop_goes_on_where_its_state_was_saved(make: Any, order: dict[str, Any]) -> None:
    whole = copies(make(batch_size=4, **order))
    for kind in (millrace.jax.Loader, millrace.torch.Loader):
        loader, other = make(kind=kind, batch_size=4, **order), make(batch_size=4, **order)
        for _ in itertools.islice(loader, 2):
            pass
        other.load_state_dict(loader.state_dict())
        assert copies(other) == whole[2:]


def test_ranks_and_a_last_batch_that_is_left_out(make: Any) -> None:
    options = {"shuffle": True, "batch_size": 4, "drop_last": True, "world_size": 2}
    for rank in range(2):
        ours, theirs = (copies(make(kind=kind, rank=rank, **options)) for kind in (millrace.jax.Loader, millrace.torch.Loader))
        assert ours == theirs
        assert [len(ids) for ids, *_ in ours] == [4, 4]


@pytest.fixture(scope="module")
def bad(pairs: Pairs, place: Path) -> Pairs:
    """3: the mask is no picture; 6: nor the image; 9: the mask is of another size."""
    rows = list(pairs)
    (place / "no.png").write_bytes(b"nothing")
    Image.new("L", (5, 7)).save(place / "small.png")
    rows[3] = rows[3][0], str(place / "no.png")
    rows[6] = str(place / "no.png"), rows[6][1]
    rows[9] = rows[9][0], str(place / "small.png")
    return Pairs(rows)


@pytest.mark.filterwarnings("ignore::millrace.BadImageWarning")
@pytest.mark.parametrize("writable", [True, False])
@pytest.mark.parametrize("how", ["skip", "zero", "substitute"])
def test_bad_pairs_become_what_they_become_with_pytorch(make: Any, bad: Pairs, how: str, writable: bool) -> None:
    both = [make(bad, kind=kind, on_error=how, writable=writable) for kind in (millrace.jax.Loader, millrace.torch.Loader)]
    ours, theirs = map(copies, both)
    assert ours == theirs
    assert [loader.bad for loader in both] == [3, 3]
    assert sum(len(ids) for ids, *_ in ours) == COUNT - 3 * (how == "skip")


def test_a_bad_mask_ends_a_loop_that_may_not_have_any(make: Any, bad: Pairs) -> None:
    with pytest.raises(millrace.SampleFailed, match=r"no\.png"):
        drain(make(bad, on_error="fail"))


def test_what_masks_cannot_follow_is_refused(pairs: Pairs) -> None:
    with pytest.raises(millrace.Unsupported, match="views"):
        millrace.jax.Loader(pairs, Recipe.of_views(NEAREST, NEAREST))
    with pytest.raises(millrace.Unsupported, match="leave out memory=cuda:0"):
        millrace.jax.Loader(pairs, NEAREST, memory="cuda:0")


SHARDINGS = """
import dataclasses, sys
import jax, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
import millrace, millrace.jax, millrace.numpy

place, coordinator, processes, process = sys.argv[1:]
if int(processes) > 1:
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(coordinator, int(processes), int(process))
devices = np.array(jax.devices()).reshape(2, 2)  # of two processes a row for each
rows, flat = Mesh(devices, ("data", "part")), Mesh(devices.reshape(-1), "data")
pairs = millrace.Pairs.of_folders(place + "/images", place + "/masks")
broken = [*pairs]
broken[4] = broken[4][0], place + "/absent.png"
recipe = dataclasses.replace(millrace.Recipe.train(48), filter="nearest")
last = dataclasses.replace(recipe, layout="NHWC")

def pieces(array, axis):
    return {shard.device: shard.index[axis].indices(array.shape[axis])[:2] for shard in array.addressable_shards}

def check(sharding, masks_spec, recipe=recipe, pairs=pairs):
    options = {"batch_size": 4, "shuffle": True, "drop_last": True}
    ours = millrace.jax.Loader(pairs, recipe, device=sharding, slots=3, **options)
    plain = millrace.numpy.Loader(pairs, recipe, rank=ours.rank, world_size=ours.world_size, **options)
    high, wide = (1, 2) if recipe.layout == "NHWC" else (2, 3)
    with ours, plain:
        kept = []
        for (images, masks), (local, local_masks) in zip(ours, plain, strict=True):
            assert ours.batch.ids.tolist() == plain.batch.ids.tolist()
            each, first = len(local), len(local) * ours.rank
            assert masks.dtype == np.uint8 and masks.shape == (each * ours.world_size, 48, 48)
            assert masks.sharding.is_equivalent_to(NamedSharding(sharding.mesh, masks_spec), 3)
            assert [pieces(images, axis) for axis in (0, high, wide)] == [pieces(masks, axis) for axis in range(3)]
            kept.append((images, masks, np.array(local), np.array(local_masks), first))
        assert len(kept) == 5 // ours.world_size
        for images, masks, local, local_masks, first in kept:  # also those whose slot others had wanted
            for array, whole in ((images, local), (masks, local_masks)):
                for shard in array.addressable_shards:
                    begin, end, _ = shard.index[0].indices(len(array))
                    np.testing.assert_array_equal(shard.data, whole[begin - first : end - first][(slice(None), *shard.index[1:])])

check(NamedSharding(flat, P("data")), P("data"))
check(NamedSharding(flat, P("data")), P("data"), pairs=millrace.Pairs(broken))  # with a substitute for a bad pair
check(NamedSharding(rows, P("data", None, None, None)), P("data"))
check(NamedSharding(rows, P("data", None, "part")), P("data", "part"))
check(NamedSharding(rows, P("data", None, None, "part")), P("data", None, "part"))
check(NamedSharding(rows, P("data", "part")), P("data", "part"), last)
check(NamedSharding(rows, P("data", None, "part", None)), P("data", None, "part"), last)
if int(processes) > 1:
    try:
        millrace.jax.Loader(pairs, recipe, device=NamedSharding(flat, P("data")), on_error="skip")
    except millrace.InvalidRequest as why:
        assert 'choose on_error="substitute"' in str(why)
    else:
        raise AssertionError("batches of different sizes")
    jax.distributed.shutdown()
print("done")
"""


@pytest.mark.parametrize("processes", [1, 2])
def test_masks_are_divided_among_devices_as_their_images_are(daemon: millrace.PrivateDaemon, place: Path, processes: int) -> None:
    outputs = together(daemon, processes, "-c", SHARDINGS, place, devices=4 // processes)

    assert outputs == ["done\n"] * processes
