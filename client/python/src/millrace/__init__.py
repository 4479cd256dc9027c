"""Image preprocessing by the host's Millrace daemon: finished tensors in shared memory, or in a GPU's, mapped without a copy.

    >>> client = millrace.connect()
    >>> session = client.session(millrace.Recipe.train(224), batch=64)
    >>> for batch in session.dataset("/data/train").epoch(shuffle=True):
    ...     train(torch.from_dlpack(batch.images), torch.from_numpy(batch.labels))

Frameworks: ``millrace.torch.Loader``, ``millrace.jax.Loader``, ``millrace.numpy.Loader``; event loops: ``millrace.aio``.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from millrace._bad_images import BadImageWarning
from millrace._erasing import Erasing
from millrace._given_order import OrderedBatch
from millrace._limits import Limits
from millrace._skipped import SkippedFiles, SkippedFilesWarning, UnlabelledWarning
from millrace.batch import Batch
from millrace.client import Client, Device, Metric, SessionStatistics, Statistics, connect
from millrace.dataset import Dataset
from millrace.device_tensor import DeviceTensor
from millrace.encoded import Encoded
from millrace.epoch import Epoch, EpochShape
from millrace.errors import (
    Cancelled,
    DaemonUnavailable,
    DeadlineExceeded,
    Error,
    FailedPrecondition,
    Forked,
    InternalError,
    InvalidRequest,
    NotFound,
    PermissionDenied,
    Released,
    ResourceExhausted,
    SampleError,
    SampleFailed,
    SlotsHeld,
    SlotsWithdrawn,
    StaleHandle,
    Unsupported,
)
from millrace.manifest import read_manifest
from millrace.recipe import (
    BoundedSides,
    Box,
    BoxCrop,
    CentreCrop,
    ExactSize,
    GridCell,
    LongerSide,
    Normalise,
    Pad,
    Patches,
    RandomResizedCrop,
    RandomShorterSide,
    Recipe,
    ScaleJitter,
    ShorterSide,
    Size,
    SmartResize,
    TileGrid,
)
from millrace.ring import Ring, RingRoom
from millrace.sample_list import Samples
from millrace.samples import DatasetSample, Path, Sample
from millrace.session import Session
from millrace.tensor import Tensor

if _TYPE_CHECKING:
    from millrace import recipes, steps
    from millrace._preview import Preview, preview
    from millrace.pairs import Pairs, mask_recipe
    from millrace.private_daemon import PrivateDaemon, serve

__version__: str

_LATER = {
    "Pairs": "pairs",
    "Preview": "_preview",
    "PrivateDaemon": "private_daemon",
    "mask_recipe": "pairs",
    "preview": "_preview",
    "recipes": "recipes",
    "serve": "private_daemon",
    "steps": "steps",
}  # not everybody's; imported when they are asked for


def __getattr__(name: str) -> _Any:
    if name == "__version__":
        from importlib.metadata import version

        found: _Any = version("millrace")
    elif name in _LATER:
        from importlib import import_module

        module = import_module(f"millrace.{_LATER[name]}")
        found = getattr(module, name, module)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})


__all__ = [
    "BadImageWarning",
    "Batch",
    "BoundedSides",
    "Box",
    "BoxCrop",
    "Cancelled",
    "CentreCrop",
    "Client",
    "DaemonUnavailable",
    "Dataset",
    "DatasetSample",
    "DeadlineExceeded",
    "Device",
    "DeviceTensor",
    "Encoded",
    "Epoch",
    "EpochShape",
    "Erasing",
    "Error",
    "ExactSize",
    "FailedPrecondition",
    "Forked",
    "GridCell",
    "InternalError",
    "InvalidRequest",
    "Limits",
    "LongerSide",
    "Metric",
    "Normalise",
    "NotFound",
    "OrderedBatch",
    "Pad",
    "Pairs",
    "Patches",
    "Path",
    "PermissionDenied",
    "Preview",
    "PrivateDaemon",
    "RandomResizedCrop",
    "RandomShorterSide",
    "Recipe",
    "Released",
    "ResourceExhausted",
    "Ring",
    "RingRoom",
    "Sample",
    "SampleError",
    "SampleFailed",
    "Samples",
    "ScaleJitter",
    "Session",
    "SessionStatistics",
    "ShorterSide",
    "Size",
    "SkippedFiles",
    "SkippedFilesWarning",
    "SlotsHeld",
    "SlotsWithdrawn",
    "SmartResize",
    "StaleHandle",
    "Statistics",
    "Tensor",
    "TileGrid",
    "UnlabelledWarning",
    "Unsupported",
    "connect",
    "mask_recipe",
    "preview",
    "read_manifest",
    "recipes",
    "serve",
    "steps",
]
