"""Packed batches: images of many sizes in one tensor, in every element type, layout and channel order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import millrace
import numpy as np
import pytest
from millrace.tensor import VERSIONED
from numpy.typing import NDArray

from pictures import pixels_of, png_of

PICTURES = [pixels_of(0), pixels_of(1)[:20, :31].copy(), pixels_of(2)[:7, :45].copy()]
DTYPES = ["uint8", "float16", "bfloat16", "float32"]


def values(bits: NDArray[Any]) -> NDArray[np.float32]:
    """The numbers that ``Tensor.bits()`` holds: the uint16 of bfloat16 as what they stand for."""
    if bits.dtype == np.uint16:
        return (bits.astype(np.uint32) << 16).view(np.float32)
    return bits.astype(np.float32)


@pytest.fixture
def roomy(client: millrace.Client) -> Iterator[millrace.Session]:
    with client.session(slots=2, slot_bytes=1 << 17) as opened:
        yield opened


def made(session: millrace.Session, recipe: millrace.Recipe, pictures: list[bytes], **options: Any) -> millrace.Batch:
    return session.get(session.submit(pictures, recipe=recipe, **options))


def alone(session: millrace.Session, picture: bytes, recipe: millrace.Recipe, size: list[int], fidelity: Any) -> NDArray[np.float32]:
    """The picture in a batch of one size, as uint8."""
    width, height = size
    resize = millrace.ExactSize(millrace.Size(width, height))
    one = millrace.Recipe(resize=resize, layout=recipe.layout, channels=recipe.channels)
    return values(made(session, one, [picture], fidelity=fidelity).image(0).bits())


@pytest.mark.parametrize("channels", ["RGB", "BGR", "grey"])
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("resize", [None, millrace.LongerSide(17)])
def test_every_element_type_holds_the_pixels_of_a_batch_of_one_size(
    roomy: millrace.Session, layout: Any, channels: Any, resize: Any
) -> None:
    files = [png_of(picture) for picture in PICTURES]
    for fidelity in ("exact", "fast"):
        for dtype in DTYPES:
            recipe = millrace.Recipe(
                resize=resize,
                layout=layout,
                channels=channels,
                dtype=dtype,  # type: ignore[arg-type]
                range="raw",
                packing="packed",
            )
            batch = made(roomy, recipe, files, fidelity=fidelity)
            for index, size in enumerate(batch.sizes.tolist()):
                image = values(batch.image(index).bits())
                np.testing.assert_array_equal(image, alone(roomy, files[index], recipe, size, fidelity))


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_whole_tensor_is_one_axis_of_elements(roomy: millrace.Session, dtype: Any) -> None:
    recipe = millrace.Recipe(layout="NHWC", dtype=dtype, range="raw", packing="packed")
    batch = made(roomy, recipe, [png_of(picture) for picture in PICTURES])
    images = batch.images
    size = millrace.recipe.DTYPE_BYTES[dtype]

    assert images.strides == (size,)
    assert images.nbytes == batch._completed.handle.bytes
    flat = values(images.bits())
    first = int(batch.records["pixels_offset"][0])
    for record, picture in zip(batch.records, PICTURES, strict=True):
        begin, remainder = divmod(int(record["pixels_offset"]) - first, size)
        assert remainder == 0
        np.testing.assert_array_equal(flat[begin : begin + picture.size].reshape(picture.shape), picture)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32"])
def test_no_interface_of_numpy_copies_or_stretches(roomy: millrace.Session, dtype: Any) -> None:
    recipe = millrace.Recipe(layout="NHWC", dtype=dtype, range="raw", packing="packed")
    batch = made(roomy, recipe, [png_of(picture) for picture in PICTURES])

    here = batch.images.numpy()
    for there in (np.asarray(batch.images), *([np.from_dlpack(batch.images)] if VERSIONED else [])):
        assert (there.shape, there.strides, there.dtype) == (here.shape, here.strides, here.dtype)
        assert there.ctypes.data == here.ctypes.data
    for index, picture in enumerate(PICTURES):
        np.testing.assert_array_equal(np.from_dlpack(batch.image(index)), picture)


def test_a_zeroed_image_of_unknown_size_is_empty(roomy: millrace.Session) -> None:
    recipe = millrace.Recipe(layout="NHWC", dtype="float32", range="raw", packing="packed")

    batch = made(roomy, recipe, [png_of(PICTURES[0]), b"bad", png_of(PICTURES[1])], on_error="zero")

    assert batch.status.tolist() == [0, 1, 0]
    assert batch.image(1).numpy().shape == (0, 0, 3)
    np.testing.assert_array_equal(batch.image(0).numpy(), PICTURES[0])
    np.testing.assert_array_equal(batch.image(2).numpy(), PICTURES[1])
