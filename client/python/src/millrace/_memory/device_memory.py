"""A session's memory on a GPU, as this process has mapped it, and the streams' work that uses it.

The daemon made it and passed a descriptor. It is mapped in the device's primary context, which is that of PyTorch, JAX and whatever else
uses CUDA's runtime, and stays mapped until the last lease of the session is gone, whatever becomes of the daemon.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
import time
import weakref
from collections.abc import Iterable, Iterator
from ctypes import c_size_t, c_uint64, c_void_p
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from millrace._memory import cuda as _cuda
from millrace._memory.layout import align_up
from millrace.errors import Error, InternalError

if TYPE_CHECKING:
    from millrace._memory.lease import LeaseEnd
    from millrace._wire.handoff import HandoffConnection

_NON_BLOCKING = 1  # a flag of streams
_READ_AND_WRITE = 3
_LOOK = 0.005  # seconds between two looks at the streams that keep memory mapped


class Context:
    """A GPU's primary context, retained until ``release``. Thread-safe."""

    def __init__(self, uuid: bytes) -> None:
        """Raises as ``driver`` and ``Driver.find``."""
        self.driver = _cuda.driver()
        self.ordinal = self.driver.find(uuid)
        """The GPU's number in this process."""
        self.device = self.driver.device(self.ordinal)
        self._context = c_void_p()
        self.driver.call("cuDevicePrimaryCtxRetain", self._context, self.device)

    @contextlib.contextmanager
    def current(self) -> Iterator[_cuda.Driver]:
        """Makes it the thread's own, for the driver's functions; see ``Driver.current``."""
        with self.driver.current(self._context):
            yield self.driver

    def release(self) -> None:
        """Nobody uses it any more."""
        self.driver.result("cuDevicePrimaryCtxRelease_v2", self.device)


class Events:
    """What streams have to do when this is made. Thread-bound."""

    def __init__(self, context: Context, streams: Iterable[int]) -> None:
        """Records an event in each. Raises as ``Driver.check``: a stream was destroyed, the GPU is lost."""
        self._context = context
        self._left: list[c_void_p] = []
        with context.current() as driver:
            try:
                for stream in streams:
                    event = c_void_p()
                    driver.call("cuEventCreate", event, _cuda.WITHOUT_TIMING)
                    self._left.append(event)
                    driver.call("cuEventRecord", event, stream)
            except BaseException:
                self._destroy_all(driver)
                raise

    def passed(self) -> bool:
        """Whether all of it is done. Waits for nothing. Raises as ``Driver.check``."""
        with self._context.current() as driver:
            while self._left and (result := driver.result("cuEventQuery", self._left[-1])) != _cuda.NOT_READY:
                driver.check("cuEventQuery", result)
                driver.result("cuEventDestroy_v2", self._left.pop())
        return not self._left

    def ended(self) -> bool:
        """Whether all of it is done, or never will be, because the GPU is lost. Waits for nothing."""
        try:
            return self.passed()
        except Error:
            self.drop()
            return True

    def wait(self) -> None:
        """Returns when all of it is done. Raises as ``Driver.check``."""
        with self._context.current() as driver:
            try:
                for event in self._left:
                    driver.call("cuEventSynchronize", event)
            finally:
                self._destroy_all(driver)

    def drop(self) -> None:
        """Nobody asks any more."""
        with contextlib.suppress(Error), self._context.current() as driver:
            self._destroy_all(driver)

    def _destroy_all(self, driver: _cuda.Driver) -> None:
        while self._left:
            driver.result("cuEventDestroy_v2", self._left.pop())


class DeviceMemory:
    """The mapping of one session's memory; gone with its last holder. Thread-safe."""

    def __init__(
        self, uuid: bytes, descriptor: int, size: int, slots: int, leases: Iterable[LeaseEnd], connection: HandoffConnection | None = None
    ) -> None:
        """Imports and maps it.

        Args:
            uuid: of the GPU.
            descriptor: of the memory, exported by CUDA; remains the caller's.
            size: bytes that the session has in it.
            slots: that it is divided into.
            leases: the ends of leases that are alive, or that streams still work for; asked when it is unmapped.
            connection: hears when it is unmapped: then the daemon may give the memory to this process's next session.

        Raises:
            Unsupported, Forked, ResourceExhausted, FailedPrecondition: as ``driver``, ``Driver.find`` and ``Driver.check``.
            InternalError: the slots do not divide it.
        """
        if size < 1 or slots < 1 or size % slots != 0:
            raise InternalError(f"{slots} slots of a GPU's memory do not have {size} bytes; please report it with the daemon's version")
        self.size = size
        self.stride = size // slots
        """Bytes from one slot to the next; the first is at the start."""
        self.context = Context(uuid)
        try:
            with self.context.current() as driver:
                self.address, whole = _mapped(driver, self.context.device, descriptor, size)
        except BaseException:
            self.context.release()
            raise
        end = weakref.finalize(self, _unmap, self.context, self.address, whole, leases, connection)
        end.atexit = False  # programs may be at work on it to their very end, and the driver takes all back then

    @property
    def name(self) -> str:
        """As frameworks name the GPU in this process: ``"cuda:0"``."""
        return f"cuda:{self.context.ordinal}"

    def copied(self, address: int, size: int, after: Iterable[int]) -> NDArray[np.uint8]:
        """Bytes of it in the host's memory, as they are when those streams have done what they have to do. Raises as ``Driver.check``."""
        host = np.empty(size, np.uint8)
        if size == 0:
            return host
        Events(self.context, after).wait()
        with self.context.current() as driver:
            stream = c_void_p()
            driver.call("cuStreamCreateWithPriority", stream, _NON_BLOCKING, 0)
            try:
                driver.call("cuMemcpyDtoHAsync_v2", host.ctypes.data, address, size, stream)
                driver.call("cuStreamSynchronize", stream)
            finally:
                driver.result("cuStreamDestroy_v2", stream)
        return host


def _mapped(driver: _cuda.Driver, device: int, descriptor: int, size: int) -> tuple[int, int]:
    """The address of the memory and all of its bytes, of which the session has ``size``. REQUIRES: a current context."""
    described, access = _cuda.shared_memory_of(device), _cuda.Access(_cuda.Location(1, device), _READ_AND_WRITE)
    granule, handle, address = c_size_t(), c_uint64(), c_uint64()
    driver.call("cuMemGetAllocationGranularity", granule, ctypes.addressof(described), 0)
    whole = align_up(size, granule.value)
    driver.call("cuMemImportFromShareableHandle", handle, descriptor, _cuda.FILE_DESCRIPTOR)
    try:
        driver.call("cuMemAddressReserve", address, whole, 0, 0, 0)
        try:
            driver.call("cuMemMap", address, whole, 0, handle, 0)
            try:
                driver.call("cuMemSetAccess", address, whole, ctypes.addressof(access), 1)
                with contextlib.suppress(Error):  # of another GPU
                    for peer in driver.peers_of(device):  # whose kernels may then use the tensors, too
                        access = _cuda.Access(_cuda.Location(1, peer), _READ_AND_WRITE)
                        driver.result("cuMemSetAccess", address, whole, ctypes.addressof(access), 1)
            except BaseException:
                driver.result("cuMemUnmap", address, whole)
                raise
        except BaseException:
            driver.result("cuMemAddressFree", address, whole)
            raise
    finally:
        driver.result("cuMemRelease", handle)  # the mapping keeps the memory
    return address.value, whole


def _unmap(context: Context, address: int, whole: int, leases: Iterable[LeaseEnd], connection: HandoffConnection | None) -> None:
    """Now, or when the streams' work has ended. Waits for nothing: it is called by the thread that lets go of the memory last."""
    if context.driver.pid != os.getpid():  # a forked child, where CUDA cannot be used
        return
    try:
        events = Events(context, {stream for end in tuple(leases) for stream in end.streams})
        if not events.ended():
            later = threading.Thread(
                target=_unmap_later, args=(events, context, address, whole, connection), name="millrace-unmap", daemon=True
            )
            later.start()
            return
    except (Error, RuntimeError):  # a stream was destroyed, or the GPU is lost; there can be no thread
        return  # streams may use it for ever, for all that anyone can say: it stays mapped, and the daemon does not hear otherwise
    _unmap_now(context, address, whole, connection)


def _unmap_later(events: Events, context: Context, address: int, whole: int, connection: HandoffConnection | None) -> None:
    while not events.ended():
        time.sleep(_LOOK)
    _unmap_now(context, address, whole, connection)


def _unmap_now(context: Context, address: int, whole: int, connection: HandoffConnection | None) -> None:
    with contextlib.suppress(Error), context.current() as driver:
        driver.result("cuMemUnmap", address, whole)
        driver.result("cuMemAddressFree", address, whole)
        if connection is not None:
            connection.let_go()
    context.release()


class OnDevice:
    """A stretch of a GPU's memory, for NumPy to describe, never to read: its address means nothing to the CPU."""

    __slots__ = ("__array_interface__", "keeper")

    def __init__(self, address: int, size: int, keeper: Any) -> None:
        """``keeper``: lives as long as this, and what NumPy makes of it."""
        self.keeper = keeper
        self.__array_interface__ = {"version": 3, "data": (address, False), "shape": (size,), "typestr": "|u1", "strides": None}
