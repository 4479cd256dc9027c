"""GPUs of the simulated driver (tests/support/cuda_driver), for the processes that tests start: it has to be found when a process begins.

What is here is for those processes, too: a consumer of their own that calls CUDA by ctypes.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator
from ctypes import c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from millrace._memory import cuda as _cuda
from numpy.typing import NDArray

UUIDS = (
    "GPU-e220a839-7b1d-4daf-ae78-9e6aa1b965f4",
    "GPU-06c45d18-8009-454f-b88b-b8a8724c81ec",
    "GPU-1b39896a-51a8-449b-93cb-9f0c747ea2ea",
)
"""Of the simulated GPUs, always (tests/support/cuda_driver/uuid.h)."""
UUID = bytes.fromhex(UUIDS[0].removeprefix("GPU-").replace("-", ""))
"""Of the first one."""
GRANULE, PAGE = 2 << 20, 4096


def driver_folder() -> Path:
    """Where the build has the simulated driver; without one the test is skipped."""
    daemon = Path(os.environ.get("MILLRACE_DAEMON", "/nowhere/bin/millraced")).resolve()
    folder = daemon.parents[1] / "tests" / "support" / "cuda_driver" / "lib"
    if not (folder / "libcuda.so.1").is_file():
        pytest.skip("tensors in a GPU's memory: this build has no simulated CUDA driver beside its millraced")
    if os.environ.get("MILLRACE_GPU_KERNELS") == "0":
        pytest.skip("tensors in a GPU's memory: this build has no GPU kernels: config/setup.sh deps --cuda installs their compiler")
    return folder


@contextlib.contextmanager
def simulated(folder: Path, **settings: object) -> Iterator[pytest.MonkeyPatch]:
    """Processes that begin meanwhile have simulated GPUs, the same ones, of those settings (``SIM_CUDA_...``)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LD_LIBRARY_PATH", str(driver_folder()), prepend=os.pathsep)
        patch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        for name, value in {"CONTROL": folder / "gpus", "VRAM_MIB": 2048, **settings}.items():
            patch.setenv(f"SIM_CUDA_{name}", str(value))
        yield patch


def patient(folder: Path) -> list[str]:
    """Arguments of a daemon that gives its GPU five minutes for an order: a simulated one clears a gigabyte with this host's processors."""
    settings = folder / "patient.toml"
    settings.write_text("[cuda]\nhang_milliseconds = 300000\n")
    return ["--config", str(settings)]


class Cuda:
    """The simulated driver in this process, with a GPU's context current in this thread."""

    def __init__(self, ordinal: int = 0) -> None:
        self.library: Any = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        self.context = c_void_p()
        self.device = c_int(-1)
        self.call("cuDeviceGet", ctypes.byref(self.device), ordinal)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), self.device)
        self.call("cuCtxSetCurrent", self.context)

    def call(self, name: str, *arguments: Any) -> None:
        result = getattr(self.library, name)(*arguments)
        assert result == 0, f"{name}: {result}"

    def current(self) -> int | None:
        context = c_void_p()
        self.call("cuCtxGetCurrent", ctypes.byref(context))
        return context.value

    def stream(self) -> int:
        """The handle of a new one."""
        handle = c_void_p()
        self.call("cuStreamCreateWithPriority", ctypes.byref(handle), 1, 0)
        assert handle.value is not None
        return handle.value

    def registered(self, size: int) -> NDArray[np.uint8]:
        """Page-locked memory of the host, zeros, in pages that nothing else lies in: they are registered whole."""
        room = np.zeros(size + 2 * PAGE, np.uint8)
        memory = room[-room.ctypes.data % PAGE :][:size]
        self.call("cuMemHostRegister_v2", c_void_p(memory.ctypes.data), c_size_t(size), 0)
        return memory

    def read(self, address: int, size: int, stream: int) -> NDArray[np.uint8]:
        host = self.registered(size)
        self.call("cuMemcpyDtoHAsync_v2", c_void_p(host.ctypes.data), c_uint64(address), c_size_t(size), c_void_p(stream))
        self.call("cuStreamSynchronize", c_void_p(stream))
        self.call("cuMemHostUnregister", c_void_p(host.ctypes.data))
        return host

    def fill(self, address: int, value: int, size: int, stream: int) -> None:
        self.call("cuMemsetD8Async", c_uint64(address), value, c_size_t(size), c_void_p(stream))

    def is_mapped(self, address: int) -> bool:
        begin, size = c_uint64(), c_size_t()
        return self.library.cuMemGetAddressRange_v2(ctypes.byref(begin), ctypes.byref(size), c_uint64(address)) == 0

    def exported(self, content: NDArray[np.uint8]) -> int:
        """The descriptor of an allocation of whole granules that begins with those bytes."""
        size = -(-len(content) // GRANULE) * GRANULE
        handle, address, stream, descriptor = c_uint64(), c_uint64(), self.stream(), c_int(-1)
        described, access = _cuda.shared_memory_of(self.device.value), _cuda.Access(_cuda.Location(1, self.device.value), 3)
        self.call("cuMemCreate", ctypes.byref(handle), c_size_t(size), ctypes.byref(described), c_uint64(0))
        self.call("cuMemAddressReserve", ctypes.byref(address), c_size_t(size), c_size_t(0), c_uint64(0), c_uint64(0))
        self.call("cuMemMap", address, c_size_t(size), c_size_t(0), handle, c_uint64(0))
        self.call("cuMemSetAccess", address, c_size_t(size), ctypes.byref(access), c_size_t(1))
        host = self.registered(len(content))
        host[:] = content
        self.call("cuMemcpyHtoDAsync_v2", address, c_void_p(host.ctypes.data), c_size_t(len(content)), c_void_p(stream))
        self.call("cuStreamSynchronize", c_void_p(stream))
        self.call("cuMemExportToShareableHandle", ctypes.byref(descriptor), handle, 1, c_uint64(0))
        return descriptor.value


class Gate:
    """Keeps a stream waiting until it is opened."""

    def __init__(self, cuda: Cuda) -> None:
        self._cuda = cuda
        self._word = cuda.registered(8)

    def hold(self, stream: int) -> None:
        self._cuda.call("cuStreamWaitValue64_v2", c_void_p(stream), c_uint64(self._word.ctypes.data), c_uint64(1), 0)

    def open(self) -> None:
        self._word.view(np.uint64)[0] = 1


class DLTensor(ctypes.Structure):
    """As dlpack.h has it."""

    _fields_ = (
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", ctypes.POINTER(c_int64)),
        ("strides", ctypes.POINTER(c_int64)),
        ("byte_offset", c_uint64),
    )


class Managed(ctypes.Structure):
    """DLManagedTensor: from before DLPack 1.0."""

    _fields_ = (("tensor", DLTensor), ("context", c_void_p), ("deleter", c_void_p))


class ManagedVersioned(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = (
        ("major", c_uint32),
        ("minor", c_uint32),
        ("context", c_void_p),
        ("deleter", c_void_p),
        ("flags", c_uint64),
        ("tensor", DLTensor),
    )


class Consumed:
    """A tensor as a framework has it that took a capsule: the struct is its own, and it calls the deleter once."""

    def __init__(self, capsule: Any) -> None:
        self.versioned = "dltensor_versioned" in repr(capsule)
        name, used = (b"dltensor_versioned", _USED_VERSIONED) if self.versioned else (b"dltensor", _USED)
        pointer, rename = ctypes.pythonapi.PyCapsule_GetPointer, ctypes.pythonapi.PyCapsule_SetName
        pointer.restype, pointer.argtypes = c_void_p, [ctypes.py_object, c_char_p]
        rename.argtypes = [ctypes.py_object, c_void_p]
        self._at = pointer(capsule, name)
        self.managed: Any = (ManagedVersioned if self.versioned else Managed).from_address(self._at)
        rename(capsule, ctypes.cast(used, c_void_p))

    @property
    def shape(self) -> tuple[int, ...]:
        tensor = self.managed.tensor
        return tuple(tensor.shape[n] for n in range(tensor.ndim))

    @property
    def strides(self) -> tuple[int, ...]:
        """Elements. NumPy 1 leaves those of a tensor without gaps out, as DLPack allows."""
        tensor = self.managed.tensor
        if not tensor.strides:
            return tuple(int(np.prod(self.shape[n + 1 :])) for n in range(tensor.ndim))
        return tuple(tensor.strides[n] for n in range(tensor.ndim))

    def let_go(self) -> None:
        """May be called in any thread."""
        ctypes.CFUNCTYPE(None, c_void_p)(self.managed.deleter)(self._at)


_USED, _USED_VERSIONED = c_char_p(b"used_dltensor"), c_char_p(b"used_dltensor_versioned")
