"""A finished tensor in a GPU's memory, for PyTorch, JAX, CuPy and every library that speaks DLPack or has ``__cuda_array_interface__``.

The daemon says that a batch is complete when it is there, so nothing has to be waited for before it is read. A library that takes a tensor
through DLPack names the stream on which it will use it. The slot goes back to the daemon when nothing refers to its memory any more
**and** that stream has done what was queued until then. Work on other streams has to be ordered before that: by an event that the named one
waits for.

JAX names a stream on which it does not compute. What it makes of a tensor has to be ready (``jax.block_until_ready``) before its array is
let go of; ``millrace.jax.Loader`` sees to that.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from millrace._memory.cuda import LEGACY_STREAM
from millrace._memory.lease import Lease
from millrace._memory.tensor import ELEMENTS, VERSIONED, Tensor, dl_tensor, inside, mark_bfloat16
from millrace.errors import Forked, Released
from millrace.recipe import DTYPE_BYTES

_CUDA = 2  # kDLCUDA
_DEFAULT_STREAMS = {-1, 1, 2}  # the per-thread one is a blocking stream, which the legacy one waits for


class DeviceTensor(Tensor):
    """Pixels in a GPU's memory. Made by ``Batch.images`` and ``Batch.image``; thread-safe for reading.

    ``torch.from_dlpack``, ``jax.dlpack.from_dlpack`` and ``cupy.asarray`` copy nothing, and what they make may be written to: that changes
    this batch and nothing else. NumPy's side (``numpy()``, ``numpy.asarray``, ``bits()``, indexing) is a copy of the host's each time.

    Every access raises ``Released`` once the batch has been released.
    """

    __slots__ = ("_lease",)

    _lease: Lease  # of the consumer that keeps this tensor for its address

    @property
    def device(self) -> str:
        """``"cuda:N"``, as CUDA counts in this process."""
        return self._held.device_memory().name

    @property
    def data_ptr(self) -> int:
        """The address of the first element on the GPU, for kernels of one's own; then one says on which stream with ``used_by``."""
        return self._address(self._held.check())

    def used_by(self, stream: int | None) -> None:
        """The slot goes back only when that stream has done what is queued there when the last reference is gone, too.

        Args:
            stream: CUDA's handle of it, as PyTorch's ``stream.cuda_stream`` and CuPy's ``stream.ptr`` are; it lives as long as the
                tensor's memory is referred to. None, or 0, which frameworks have for it: the default stream.

        Raises:
            BufferError: it is no handle.
            Released: the batch was released.
        """
        default = isinstance(stream, int) and not isinstance(stream, bool) and stream == 0  # which DLPack does not allow
        self._held.check().streams.add(_followed(None if default else stream))

    def numpy(self) -> NDArray[Any]:
        """A copy in the host's memory, as ``bits``, in its own element type: bfloat16 needs the package ``ml_dtypes``."""
        return super().numpy()

    def bits(self) -> NDArray[Any]:
        """A copy in the host's memory, after what streams that were named have queued; bfloat16 as the uint16 of its bits.

        Raises:
            Released: the batch was released.
            ResourceExhausted, FailedPrecondition: CUDA cannot copy; says why.
        """
        lease, memory, dtype = self._held.check(), self._held.device_memory(), ELEMENTS[self.dtype_name]
        extent = sum((n - 1) * step for n, step in zip(self.shape, self.strides, strict=True)) + dtype.itemsize if self.nbytes else 0
        copied = memory.copied(self._address(lease), extent, tuple(lease.streams))
        array: NDArray[Any] = np.ndarray(self.shape, dtype, copied, 0, self.strides)
        return array

    @property
    def __array_interface__(self) -> dict[str, Any]:
        raise AttributeError("the tensor is in a GPU's memory")  # NumPy asks __array__ then

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Version 3. It names no stream, because nothing has to be waited for; the slot follows the default one, and ``used_by``.

        A consumer that has the address keeps this object, as the protocol has it, and with it the slot, also when the batch is released.
        """
        if self.dtype_name == "bfloat16":
            raise AttributeError("bfloat16 has no __cuda_array_interface__; DLPack has it")
        self._lease = self._held.check()
        self.used_by(None)
        return {
            "version": 3,
            "shape": self.shape,
            "typestr": ELEMENTS[self.dtype_name].str,
            "strides": None if self._is_contiguous() else self.strides,
            "data": (self.data_ptr, False),
            "stream": None,
        }

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("the tensor is in a GPU's memory: an array of NumPy's is a copy")
        return super().__array__(dtype)

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CUDA, self._held.device_memory().context.ordinal

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A DLPack capsule of these very bytes.

        Args:
            stream: on which the consumer will use them: CUDA's handle; 1, -1 or None: the default one; 2: the thread's default one. It is
                not made to wait, since the batch is complete; the slot goes back when it has done what is queued at the end.
            max_version: the newest DLPack that the consumer understands.
            dl_device: where the consumer wants it; only where it is, ``__dlpack_device__()``.
            copy: True cannot be had: copy what was made of it.

        Raises:
            BufferError: what is asked for cannot be had.
            Released: the batch was released.
        """
        here = self.__dlpack_device__()
        if dl_device is not None and tuple(dl_device) != here:
            raise BufferError(
                f"the tensor is in a GPU's memory, {here}; it cannot be exported to device {dl_device}; numpy() is a copy of the host's"
            )
        if copy:
            raise BufferError("the tensor's memory is exported without a copy; copy what was made of it")
        self._held.check().streams.add(_followed(stream))
        # NumPy makes the capsule, whose deleter is C's: any thread may call it, at any time. It only counts references to the array.
        array = inside(self._held.device_bytes(), self._offset - self._slot_start(), self.shape, self.strides, self.dtype_name)
        capsule = array.__dlpack__(max_version=max_version) if VERSIONED else array.__dlpack__()
        if self.dtype_name == "bfloat16":
            mark_bfloat16(capsule)
        device = (ctypes.c_int32 * 2).from_address(dl_tensor(capsule) + ctypes.sizeof(ctypes.c_void_p))
        device[0], device[1] = here
        return capsule

    def _slot_start(self) -> int:
        return self._held.check().slot * self._held.device_memory().stride

    def _address(self, lease: Lease) -> int:
        memory = self._held.device_memory()
        inside(self._held.device_bytes(), self._offset - lease.slot * memory.stride, self.shape, self.strides, self.dtype_name)
        return memory.address + self._offset

    def _is_contiguous(self) -> bool:
        step = DTYPE_BYTES[self.dtype_name]
        for n, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if n > 1 and stride != step:
                return False
            step *= n
        return True

    def __repr__(self) -> str:
        try:
            state = f" on {self.device}"
        except Released:
            state = ", released"
        except Forked:
            state = ", of the process that forked this one"
        return f"<millrace.DeviceTensor {self.dtype_name} {' x '.join(map(str, self.shape))}{state}>"


def _followed(stream: object) -> int:
    """The handle of the stream whose work is waited for."""
    if stream is None or (isinstance(stream, int) and not isinstance(stream, bool) and stream in _DEFAULT_STREAMS):
        return LEGACY_STREAM
    if not isinstance(stream, int) or isinstance(stream, bool) or not 0 < stream < 1 << 64:
        raise BufferError(f"stream is CUDA's handle of one, or None, -1, 1 or 2 for the default ones, not {stream!r}")
    return stream
