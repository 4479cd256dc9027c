"""A finished tensor in shared memory, for NumPy, PyTorch, JAX and every library that speaks DLPack; nothing is copied.

Writing to it changes this batch and nothing else; in a session with ``writable=False`` it is read-only. What is made of a tensor
(``numpy()``, ``numpy.asarray``, ``torch.from_dlpack``, ``jax.dlpack.from_dlpack``) keeps its slot in the daemon
until it is collected, also when the batch has been released before.
"""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from millrace._memory.lease import Held
from millrace.errors import InternalError, Unsupported
from millrace.recipe import DTYPE_BYTES, DType

_CPU = (1, 0)  # kDLCPU, device 0
_BFLOAT = 4  # kDLBfloat
VERSIONED = np.lib.NumpyVersion(np.__version__) >= "2.1.0"
"""Whether NumPy makes DLPack capsules that can say that their memory is read-only."""
ELEMENTS: dict[DType, np.dtype[Any]] = {
    "uint8": np.dtype(np.uint8),
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(np.uint16),  # NumPy has none of its own: the bits
    "float32": np.dtype(np.float32),
}
"""NumPy's element types."""


class Tensor:
    """Pixels in shared memory. Made by ``Batch.images`` and ``Batch.image``; thread-safe for reading.

    Every access raises ``Released`` once the batch has been released.
    """

    __slots__ = ("_array", "_held", "_offset", "dtype_name", "shape", "strides")

    def __init__(self, held: Held, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: DType) -> None:
        self._held = held
        self._offset = offset
        self._array: NDArray[Any] | None = None
        self.shape = shape
        """Elements along each axis: N x C x H x W or N x H x W x C for a batch; one axis for a packed one."""
        self.strides = strides
        """Bytes from one element to the next along each axis."""
        self.dtype_name = dtype
        """``"uint8"``, ``"float16"``, ``"bfloat16"`` or ``"float32"``."""

    @property
    def device(self) -> str:
        """Where the pixels are: ``"cpu"``; of a ``DeviceTensor`` ``"cuda:N"``."""
        return "cpu"

    def used_by(self, stream: int | None) -> None:
        """For programs that take both: on the host nothing has to be said of streams. See ``DeviceTensor``."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's element type; for bfloat16 that of the package ``ml_dtypes``.

        Raises:
            Unsupported: bfloat16, and ``ml_dtypes`` is not installed.
        """
        return _bfloat16() if self.dtype_name == "bfloat16" else ELEMENTS[self.dtype_name]

    @property
    def ndim(self) -> int:
        """How many axes there are."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return math.prod(self.shape) * DTYPE_BYTES[self.dtype_name]

    def numpy(self) -> NDArray[Any]:
        """An array of these very bytes. bfloat16 needs the package ``ml_dtypes``; ``bits()`` does without.

        Raises:
            Released: the batch was released.
            Unsupported: bfloat16, and ``ml_dtypes`` is not installed.
        """
        array = self.bits()
        if self.dtype_name == "bfloat16":
            array = array.view(_bfloat16())
        return array

    def bits(self) -> NDArray[Any]:
        """As ``numpy()``, but bfloat16 comes as the uint16 of its bits (the upper half of a float32).

        Raises:
            Released: the batch was released.
        """
        return inside(self._held.bytes(), self._offset - self._held.start, self.shape, self.strides, self.dtype_name)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        if self.dtype_name == "bfloat16":
            raise AttributeError("bfloat16 has no __array_interface__")  # NumPy asks __array__ then
        array = self.bits()
        # `data` is the array and not its address, so that a library that uses it keeps the slot.
        return {
            "version": 3,
            "shape": self.shape,
            "typestr": array.dtype.str,
            "strides": self.strides,
            "data": self._held.bytes(),
            "offset": self._offset - self._held.start,
        }

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        array = self.numpy()
        if dtype is not None and np.dtype(dtype) != array.dtype:
            if copy is False:
                raise ValueError(f"a {self.dtype_name} tensor is no {np.dtype(dtype)} array without a copy")
            return array.astype(dtype)
        return array.copy() if copy else array

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CPU

    def __dlpack__(
        self,
        *,
        stream: None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A DLPack capsule of these very bytes, versioned, and flagged read-only where they are.

        Args:
            stream: must be None: the memory is the CPU's.
            max_version: the newest DLPack that the consumer understands. Before 1.0 a capsule cannot say that its memory is read-only.
            dl_device: where the consumer wants it; only the CPU, (1, 0).
            copy: True: a copy of the consumer's own. False: never a copy. None: none, but for consumers from before DLPack 1.0 where the
                memory is read-only, because they would take it for writable. With NumPy before 2.1, which makes capsules from before
                DLPack 1.0 only, all consumers are such.

        Raises:
            BufferError: what is asked for cannot be had.
            Released: the batch was released.
        """
        if stream is not None:
            raise BufferError("the tensor is in the CPU's memory, which has no streams: stream must be None")
        if dl_device is not None and tuple(dl_device) != _CPU:
            raise BufferError(f"the tensor is in the CPU's memory, (1, 0); it cannot be exported to device {dl_device}")
        array = self.bits()
        if copy is None:
            copy = not array.flags.writeable and (not VERSIONED or max_version is None or max_version[0] < 1)
        if copy:
            array = array.copy()
        capsule = array.__dlpack__(max_version=max_version) if VERSIONED else array.__dlpack__()
        if self.dtype_name == "bfloat16":
            mark_bfloat16(capsule)
        return capsule

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> Any:
        return self.numpy()[index]

    def __repr__(self) -> str:
        state = ", released" if self._held.released else ""
        return f"<millrace.Tensor {self.dtype_name} {' x '.join(map(str, self.shape))}{state}>"


def _bfloat16() -> np.dtype[Any]:
    try:
        from ml_dtypes import bfloat16
    except ImportError:
        raise Unsupported("NumPy has no bfloat16: install ml_dtypes, or take the elements' bits as uint16 with bits()") from None
    dtype: np.dtype[Any] = np.dtype(bfloat16)
    return dtype


def inside(slot: NDArray[np.uint8], offset: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: DType) -> NDArray[Any]:
    """An array of bytes of the slot, bfloat16 as uint16.

    Raises:
        InternalError: they do not lie in it.
    """
    try:
        array: NDArray[Any] = np.ndarray(shape, ELEMENTS[dtype], slot, offset, strides)
        return array
    except (TypeError, ValueError) as why:
        raise InternalError(f"the daemon's handle does not lie in its slot ({why}); please report it") from why


def mark_bfloat16(capsule: Any) -> None:
    """Makes the capsule of an array of bits one of bfloat16: rewrites ``dtype.code`` in its DLTensor."""
    ctypes.c_uint8.from_address(dl_tensor(capsule) + 8 + 8 + 4).value = _BFLOAT


def dl_tensor(capsule: Any) -> int:
    """The address of the DLTensor in a DLPack capsule.

    The structs are dlpack.h's: DLTensor = {void* data; {i32, i32} device; i32 ndim; {u8 code, u8 bits, u16 lanes} dtype; ...}, behind
    {version {u32, u32}, manager_ctx, deleter, u64 flags} in a DLManagedTensorVersioned, first in a DLManagedTensor.
    """
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    versioned = "dltensor_versioned" in repr(capsule)
    at: int = get(capsule, b"dltensor_versioned" if versioned else b"dltensor")
    return at + (32 if versioned else 0)
