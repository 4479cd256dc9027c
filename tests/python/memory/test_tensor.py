"""Tensors as other libraries see them: NumPy's interfaces and DLPack, every element type."""

from __future__ import annotations

import ctypes
import importlib.util
import sys
from collections.abc import Iterator
from typing import Any

import millrace
import numpy as np
import pytest
from millrace.tensor import VERSIONED

from pictures import SIZE, pixels_of, png

versioned = pytest.mark.skipif(not VERSIONED, reason="NumPy before 2.1 makes no versioned capsules: DLPack is a copy")
READ_ONLY = 1  # DLPACK_FLAG_BITMASK_READ_ONLY


@pytest.fixture
def images(session: millrace.Session) -> millrace.Tensor:
    return session.get(session.submit([png(0), png(1)])).images


@pytest.fixture
def read_only(client: millrace.Client, own_size: millrace.Recipe) -> Iterator[millrace.Tensor]:
    with client.session(own_size, batch=2, writable=False) as session:
        yield session.get(session.submit([png(0), png(1)])).images


def floats(session: millrace.Session, dtype: Any, value_range: Any = "raw") -> millrace.Tensor:
    recipe = millrace.Recipe(resize=millrace.ExactSize(SIZE), layout="NHWC", dtype=dtype, range=value_range)
    return session.get(session.submit([png(0)], recipe=recipe)).images


@pytest.fixture
def roomy(client: millrace.Client) -> Any:
    with client.session(batch=2, slots=2, slot_bytes=1 << 16) as opened:
        yield opened


def _pointer(capsule: Any, name: bytes) -> int:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(get(capsule, name))


def test_description(images: millrace.Tensor) -> None:
    assert images.shape == (2, 32, 48, 3)
    assert images.strides == (4608, 144, 3, 1)
    assert (images.ndim, images.nbytes, len(images), images.dtype, images.dtype_name) == (4, 9216, 2, np.uint8, "uint8")
    assert repr(images) == "<millrace.Tensor uint8 2 x 32 x 48 x 3>"
    np.testing.assert_array_equal(images[1, 3], pixels_of(1)[3])


@versioned
def test_no_interface_of_numpy_copies(images: millrace.Tensor) -> None:
    here = images.numpy()
    for there in (np.asarray(images), np.from_dlpack(images), np.array(images, copy=False)):
        assert there.ctypes.data == here.ctypes.data
        np.testing.assert_array_equal(there[0], pixels_of(0))
    assert np.array(images).ctypes.data != here.ctypes.data


def test_asarray_with_another_dtype_is_a_copy(images: millrace.Tensor) -> None:
    converted = np.asarray(images, dtype=np.float32)
    np.testing.assert_array_equal(converted[0], pixels_of(0).astype(np.float32))
    with pytest.raises(ValueError):
        images.__array__(np.float32, copy=False)
    assert images.__array__(copy=True).flags.writeable


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 0), ("float16", 0)])
def test_floats(roomy: millrace.Session, dtype: str, tolerance: float) -> None:
    tensor = floats(roomy, dtype)
    assert np.asarray(tensor).dtype == np.dtype(dtype)
    np.testing.assert_allclose(np.asarray(tensor)[0], pixels_of(0), atol=tolerance)


def test_bfloat16_bits_are_the_upper_half_of_float32(roomy: millrace.Session) -> None:
    tensor = floats(roomy, "bfloat16")
    bits = tensor.bits()
    assert bits.dtype == np.uint16
    np.testing.assert_array_equal((bits.astype(np.uint32) << 16).view(np.float32)[0], pixels_of(0))


def test_bfloat16_without_ml_dtypes_says_what_to_install(roomy: millrace.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)  # as if it were not installed

    with pytest.raises(millrace.Unsupported, match="ml_dtypes"):
        np.asarray(floats(roomy, "bfloat16"))


@pytest.mark.skipif(importlib.util.find_spec("ml_dtypes") is None, reason="ml_dtypes is not installed")
def test_bfloat16_with_ml_dtypes(roomy: millrace.Session) -> None:
    array = np.asarray(floats(roomy, "bfloat16"))
    assert array.dtype.name == "bfloat16"
    np.testing.assert_array_equal(array.astype(np.float32)[0], pixels_of(0))


@versioned
def test_capsule_is_versioned_and_read_only(read_only: millrace.Tensor) -> None:
    capsule = read_only.__dlpack__(max_version=(1, 0))

    at = _pointer(capsule, b"dltensor_versioned")
    assert ctypes.c_uint32.from_address(at).value == 1  # the major version
    assert ctypes.c_uint64.from_address(at + 24).value & READ_ONLY


def test_consumers_that_cannot_be_told_read_only_get_a_copy(read_only: millrace.Tensor) -> None:
    for max_version in (None, (0, 8)):
        capsule = read_only.__dlpack__(max_version=max_version)
        assert '"dltensor"' in repr(capsule)
        at = _pointer(capsule, b"dltensor")
        assert ctypes.c_void_p.from_address(at).value != read_only.numpy().ctypes.data
        with pytest.raises(BufferError):
            read_only.__dlpack__(max_version=max_version, copy=False)


def test_dlpack_is_of_the_cpu(images: millrace.Tensor) -> None:
    assert images.__dlpack_device__() == (1, 0)
    images.__dlpack__(max_version=(1, 0), dl_device=(1, 0))
    with pytest.raises(BufferError, match="cannot be exported to device"):
        images.__dlpack__(max_version=(1, 0), dl_device=(2, 0))
    with pytest.raises(BufferError, match="stream must be None"):
        images.__dlpack__(max_version=(1, 0), stream=1)  # type: ignore[arg-type]


def test_without_versioned_capsules_every_consumer_of_what_is_read_only_gets_a_copy(
    read_only: millrace.Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("millrace.tensor.VERSIONED", False)

    for max_version in (None, (1, 0)):
        capsule = read_only.__dlpack__(max_version=max_version)
        at = _pointer(capsule, b"dltensor")
        assert ctypes.c_void_p.from_address(at).value != read_only.numpy().ctypes.data
    copied = np.from_dlpack(read_only)
    np.testing.assert_array_equal(copied, read_only.numpy())
    with pytest.raises(BufferError):
        read_only.__dlpack__(max_version=(0, 8), copy=False)


@versioned
def test_dlpack_copies_when_asked(images: millrace.Tensor) -> None:
    copied = np.from_dlpack(images, copy=True)
    assert copied.ctypes.data != images.numpy().ctypes.data
    np.testing.assert_array_equal(copied, images.numpy())


def test_a_consumer_that_refuses_bfloat16_leaks_nothing(roomy: millrace.Session) -> None:
    for _ in range(4 * roomy.slots):
        with pytest.raises((BufferError, RuntimeError)):
            np.from_dlpack(floats(roomy, "bfloat16"))
    assert len(floats(roomy, "float32")) == 1


def test_strided_and_single_images_go_through_dlpack(session: millrace.Session) -> None:
    batch = session.get(session.submit([png(0), png(1)]))
    np.testing.assert_array_equal(np.from_dlpack(batch.image(1)), pixels_of(1))
