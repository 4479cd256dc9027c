"""NVIDIA's driver, by ctypes: what mapping a GPU's memory needs of it, with neither a CUDA toolkit nor a framework.

Symbols have the versions that proto/cuda/driver_api.h names. All of it belongs to the process that called ``driver()`` first: CUDA
does not survive fork(), and its children get ``Forked``.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from collections.abc import Iterator
from ctypes import POINTER, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p
from typing import Any

from millrace.errors import Error, FailedPrecondition, Forked, ResourceExhausted, Unsupported

NOT_READY = 600
LEGACY_STREAM = 1  # the default stream, which all blocking streams wait for
FILE_DESCRIPTOR = 1  # CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
WITHOUT_TIMING = 2  # a flag of events
_OUT_OF_MEMORY, _NOT_INITIALIZED, _INVALID_HANDLE = 2, 3, 400
_CAPTURING = range(900, 910)  # CUDA_ERROR_STREAM_CAPTURE_...
_SHARING = {"virtual memory management": 102, "memory that is shared by descriptor": 103}  # attributes of a device
_RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED
_ELSE_HOST = 'or open the session with memory="host"'

_FUNCTIONS: dict[str, list[Any]] = {
    "cuInit": [c_uint],
    "cuGetErrorName": [c_int, POINTER(c_char_p)],
    "cuDeviceGetCount": [POINTER(c_int)],
    "cuDeviceGet": [POINTER(c_int), c_int],
    "cuDeviceGetUuid_v2": [c_void_p, c_int],
    "cuDeviceGetAttribute": [POINTER(c_int), c_int, c_int],
    "cuDeviceCanAccessPeer": [POINTER(c_int), c_int, c_int],
    "cuDevicePrimaryCtxRetain": [POINTER(c_void_p), c_int],
    "cuDevicePrimaryCtxRelease_v2": [c_int],
    "cuCtxGetCurrent": [POINTER(c_void_p)],
    "cuCtxSetCurrent": [c_void_p],
    "cuMemGetAllocationGranularity": [POINTER(c_size_t), c_void_p, c_int],
    "cuMemImportFromShareableHandle": [POINTER(c_uint64), c_void_p, c_int],
    "cuMemRelease": [c_uint64],
    "cuMemAddressReserve": [POINTER(c_uint64), c_size_t, c_size_t, c_uint64, c_uint64],
    "cuMemAddressFree": [c_uint64, c_size_t],
    "cuMemMap": [c_uint64, c_size_t, c_size_t, c_uint64, c_uint64],
    "cuMemUnmap": [c_uint64, c_size_t],
    "cuMemSetAccess": [c_uint64, c_size_t, c_void_p, c_size_t],
    "cuMemcpyDtoHAsync_v2": [c_void_p, c_uint64, c_size_t, c_void_p],
    "cuStreamCreateWithPriority": [POINTER(c_void_p), c_uint, c_int],
    "cuStreamDestroy_v2": [c_void_p],
    "cuStreamSynchronize": [c_void_p],
    "cuEventCreate": [POINTER(c_void_p), c_uint],
    "cuEventDestroy_v2": [c_void_p],
    "cuEventRecord": [c_void_p, c_void_p],
    "cuEventQuery": [c_void_p],
    "cuEventSynchronize": [c_void_p],
    "cuThreadExchangeStreamCaptureMode": [POINTER(c_int)],
}


class Location(ctypes.Structure):
    """CUmemLocation."""

    _fields_ = (("type", c_int), ("id", c_int))


class AllocationProperties(ctypes.Structure):
    """CUmemAllocationProp, of memory that is shared by descriptor."""

    _fields_ = (
        ("type", c_int),
        ("handle_types", c_int),
        ("location", Location),
        ("win32", c_void_p),
        ("flags", c_uint64),
    )


class Access(ctypes.Structure):
    """CUmemAccessDesc."""

    _fields_ = (("location", Location), ("flags", c_int))


def shared_memory_of(device: int) -> AllocationProperties:
    """What describes a device's memory that is shared by descriptor."""
    return AllocationProperties(1, FILE_DESCRIPTOR, Location(1, device), None, 0)


class Driver:
    """The driver of this process. Thread-safe."""

    def __init__(self) -> None:
        """Raises as ``driver``."""
        self.pid = os.getpid()
        try:
            library = ctypes.CDLL("libcuda.so.1")
            self._functions = {name: getattr(library, name) for name in _FUNCTIONS}
        except (OSError, AttributeError) as why:
            raise Unsupported(
                f"this process finds no NVIDIA driver of CUDA 12 or newer ({why}): install it, give the container its GPUs, {_ELSE_HOST}"
            ) from why
        for name, arguments in _FUNCTIONS.items():
            self._functions[name].argtypes, self._functions[name].restype = arguments, c_int
        result = self.result("cuInit", 0)
        if result == _NOT_INITIALIZED:
            raise Forked('this process was forked from one that used CUDA, which does not survive fork(): start it with "spawn"')
        if result != 0:
            raise Unsupported(
                f"CUDA cannot be used in this process ({self.name_of(result)}): look at nvidia-smi and $CUDA_VISIBLE_DEVICES, {_ELSE_HOST}"
            )

    def result(self, function: str, *arguments: Any) -> int:
        """Calls it; what it returned, 0 for success."""
        returned: int = self._functions[function](*arguments)
        return returned

    def call(self, function: str, *arguments: Any) -> None:
        """Calls it. Raises as ``check``."""
        self.check(function, self.result(function, *arguments))

    def check(self, function: str, result: int) -> None:
        """For what the function has returned.

        Raises:
            ResourceExhausted: the GPU's memory, or addresses for it, are used up.
            FailedPrecondition: it failed for another reason, which has CUDA's name.
        """
        if result == 0:
            return
        text = f"CUDA: {function.partition('_')[0]}: {self.name_of(result)}"
        if result == _OUT_OF_MEMORY:
            raise ResourceExhausted(f"{text}: the GPU has no memory left for this process; free some, {_ELSE_HOST}")
        given = "a stream that was given a tensor, by used_by() or DLPack,"
        if result == _INVALID_HANDLE:
            raise FailedPrecondition(f"{text}: {given} was destroyed or never was one")
        if result in _CAPTURING:
            raise FailedPrecondition(f"{text}: {given} is being captured in a CUDA graph")
        raise FailedPrecondition(f"{text}; if the GPU was lost, look at nvidia-smi and start this process anew")

    def name_of(self, result: int) -> str:
        """CUDA's name of a result."""
        name = c_char_p()
        known = self.result("cuGetErrorName", result, name) == 0 and name.value is not None
        return name.value.decode() if known and name.value is not None else f"error {result}"

    def uuids(self) -> list[bytes]:
        """The UUIDs, 16 bytes each, of the GPUs that this process sees, by their numbers here. Raises as ``check``."""
        count = c_int()
        self.call("cuDeviceGetCount", count)
        found = []
        for ordinal in range(count.value):
            uuid = ctypes.create_string_buffer(16)
            self.call("cuDeviceGetUuid_v2", uuid, self.device(ordinal))
            found.append(uuid.raw)
        return found

    def device(self, ordinal: int) -> int:
        """CUDA's handle of that GPU. Raises as ``check``."""
        device = c_int()
        self.call("cuDeviceGet", device, ordinal)
        return device.value

    def peers_of(self, device: int) -> list[int]:
        """CUDA's handles of this process's other GPUs that reach that one's memory. Raises as ``check``."""
        count, can = c_int(), c_int()
        self.call("cuDeviceGetCount", count)
        others = [other for other in map(self.device, range(count.value)) if other != device]
        return [other for other in others if self.result("cuDeviceCanAccessPeer", can, other, device) == 0 and can.value]

    def find(self, uuid: bytes) -> int:
        """The number, in this process, of a GPU whose memory can be mapped.

        Raises:
            Unsupported: this process does not see it, or memory cannot be shared there. Says what to do.
            Error: as ``check``.
        """
        seen = self.uuids()
        if uuid not in seen:
            others = ", ".join(map(uuid_text, seen)) or "none"
            raise Unsupported(
                f"this process does not see {uuid_text(uuid)}, in whose memory the session's tensors would be, but {others}: add it to "
                f"$CUDA_VISIBLE_DEVICES (now {os.environ.get('CUDA_VISIBLE_DEVICES', 'unset')}), give it to the container, {_ELSE_HOST}"
            )
        ordinal = seen.index(uuid)
        for what, attribute in _SHARING.items():
            supported = c_int()
            self.call("cuDeviceGetAttribute", supported, attribute, self.device(ordinal))
            if not supported.value:
                raise Unsupported(f"{uuid_text(uuid)}, or its driver here, has no {what}: {_ELSE_HOST.removeprefix('or ')}")
        return ordinal

    @contextlib.contextmanager
    def current(self, context: c_void_p) -> Iterator[None]:
        """Makes it this thread's current context; afterwards that is what it was. Raises as ``check``.

        Meanwhile a CUDA graph may be captured, here or in another thread, of streams that have nothing to do with it: else to ask for an
        event, or to unmap memory, would end that capture.
        """
        before = c_void_p()
        self.call("cuCtxGetCurrent", before)
        self.call("cuCtxSetCurrent", context)
        mode = c_int(_RELAXED)
        self.result("cuThreadExchangeStreamCaptureMode", mode)
        try:
            yield
        finally:
            self.result("cuThreadExchangeStreamCaptureMode", mode)
            self.result("cuCtxSetCurrent", before)


_lock = threading.Lock()
_of_this_process: Driver | None = None


def driver() -> Driver:
    """The driver, loaded and initialised at the first call.

    Raises:
        Unsupported: there is none, or it has no GPU for this process. Says what to do.
        Forked: the parent of this process used CUDA.
    """
    global _of_this_process
    with _lock:
        if _of_this_process is None:
            _of_this_process = Driver()
        if _of_this_process.pid != os.getpid():
            raise Forked('this process was forked from one that used CUDA, which does not survive fork(): start it with "spawn"')
        return _of_this_process


def uuid_of(ordinal: int) -> bytes | None:
    """The UUID of the GPU that has that number in this process; None where it, or CUDA, cannot be used."""
    try:
        uuids = driver().uuids()
    except Error:
        return None
    return uuids[ordinal] if 0 <= ordinal < len(uuids) else None


def uuid_text(uuid: bytes) -> str:
    """As ``nvidia-smi -L`` prints it."""
    digits = uuid.hex()
    return "GPU-" + "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def uuid_bytes(text: str) -> bytes | None:
    """The 16 bytes of what ``uuid_text`` writes; None: it is no such text."""
    try:
        uuid = bytes.fromhex(text.partition("-")[2].replace("-", ""))
    except ValueError:
        return None
    return uuid if len(uuid) == 16 else None
