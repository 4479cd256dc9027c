"""Image preprocessing by the host's Millrace daemon: finished tensors in shared memory, or in a GPU's, mapped without a copy.

    >>> client = millrace.connect()
    >>> session = client.session(millrace.Recipe.train(224), batch=64)
    >>> for batch in session.dataset("/data/train").epoch(shuffle=True):
    ...     train(torch.from_dlpack(batch.images), torch.from_numpy(batch.labels))

Frameworks: ``millrace.torch.Loader``, ``millrace.jax.Loader``, ``millrace.numpy.Loader``; event loops: ``millrace.aio``.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from millrace._core.batch import Batch
from millrace._core.cost import Cost
from millrace._core.dataset import Dataset
from millrace._core.epoch import Epoch, EpochShape
from millrace._core.findings import Finding, Findings
from millrace._core.given_order import OrderedBatch
from millrace._core.session import Session
from millrace._core.skipped_files import SkippedFiles, SkippedFilesWarning, UnlabelledWarning
from millrace._loader.bad_images import BadImageWarning
from millrace._memory.device_tensor import DeviceTensor
from millrace._memory.tensor import Tensor
from millrace._public import found_at as _found_at
from millrace._public import settle as _settle
from millrace._recipe.erasing import Erasing
from millrace._tables.parquet import Parquet
from millrace._wire.limits import Limits
from millrace.client import Client, Device, JobStatistics, Metric, SessionStatistics, Statistics, connect
from millrace.encoded import Encoded
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
    BlockShuffle,
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
from millrace.samples import DatasetSample, Part, Path, Sample

if _TYPE_CHECKING:
    from millrace import recipes, steps
    from millrace._blocks.tar import CompressedShards
    from millrace._remote.files import RemoteFiles
    from millrace._remote.shards import RemoteShards
    from millrace._shards.shards import Shards
    from millrace._shards.sources import ShardWarning
    from millrace._sheets.preview import Preview, preview
    from millrace.pairs import Pairs, mask_recipe
    from millrace.private_daemon import PrivateDaemon, serve

__version__: str

_LATER = {
    "Pairs": "pairs",
    "Preview": "_sheets.preview",
    "PrivateDaemon": "private_daemon",
    "ShardWarning": "_shards.sources",
    "CompressedShards": "_blocks.tar",
    "RemoteFiles": "_remote.files",
    "RemoteShards": "_remote.shards",
    "Shards": "_shards.shards",
    "mask_recipe": "pairs",
    "preview": "_sheets.preview",
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
        _found_at("millrace", found)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})


__all__ = [
    "BadImageWarning",
    "Batch",
    "BlockShuffle",
    "BoundedSides",
    "Box",
    "BoxCrop",
    "Cancelled",
    "CentreCrop",
    "Client",
    "CompressedShards",
    "Cost",
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
    "Finding",
    "Findings",
    "Forked",
    "GridCell",
    "InternalError",
    "InvalidRequest",
    "JobStatistics",
    "Limits",
    "LongerSide",
    "Metric",
    "Normalise",
    "NotFound",
    "OrderedBatch",
    "Pad",
    "Pairs",
    "Parquet",
    "Part",
    "Patches",
    "Path",
    "PermissionDenied",
    "Preview",
    "PrivateDaemon",
    "RandomResizedCrop",
    "RandomShorterSide",
    "Recipe",
    "Released",
    "RemoteFiles",
    "RemoteShards",
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
    "ShardWarning",
    "Shards",
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

_settle([globals()[_name] for _name in __all__ if _name not in _LATER])
