"""Which of the daemon's memories lies in a GPU that a framework uses: GPUs have other numbers in other processes, so they go by UUID."""

from __future__ import annotations

from millrace._core.session import HOST
from millrace._memory import cuda as _cuda
from millrace.client import Client
from millrace.errors import Unsupported


def memory_on(client: Client, ordinal: int | None) -> str:
    """``Client.session``'s ``memory`` for tensors in that GPU.

    Args:
        client: of the daemon.
        ordinal: the GPU's number, as CUDA counts in this process; None: it has none.

    Returns:
        The daemon's name of it; ``"host"`` where the daemon does not have that GPU, or this process cannot use CUDA's driver.

    Raises:
        Unsupported: the daemon has that GPU, but it is not ready.
        Error: as ``Client.devices``.
    """
    uuid = _cuda.uuid_of(ordinal) if ordinal is not None else None
    if uuid is None:
        return HOST
    for device in client.devices():
        if _cuda.uuid_bytes(device.properties.get("uuid", "")) == uuid:
            if not device.ready:
                raise Unsupported(f"the daemon's {device.backend} is not ready: {device.detail}")
            return device.backend
    return HOST
