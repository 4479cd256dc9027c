"""The arguments that the loaders of all frameworks have, once: their types, defaults and descriptions."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import math
import operator
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast

import numpy as np

from millrace._core.session import PATIENCE
from millrace._loader.dataloader_arguments import DataLoaderArguments
from millrace._recipe.dtype import AnyDType
from millrace.errors import InvalidRequest
from millrace.recipe import CacheUse, Fidelity, OnError, ShardTail
from millrace.sample_list import AnySamples

Constructor = TypeVar("Constructor", bound=Callable[..., None])


class LoaderOptions(DataLoaderArguments, total=False):
    """The keywords of every loader, for type checkers; ``Options`` describes them."""

    batch_size: int
    shuffle: bool | Literal["blocks"]
    window: int | None
    seed: int
    rank: int | None
    world_size: int | None
    drop_last: bool
    shard_tail: ShardTail
    dtype: AnyDType | None
    on_error: OnError | None
    extensions: Iterable[str] | None
    fidelity: Fidelity
    slots: int
    address: str | os.PathLike[str] | None
    resume: bool
    resume_within: float
    timeout: float | None
    name: str
    job: str
    writable: bool
    memory: str | None
    cache: CacheUse
    cache_at_once: bool
    sampler: Iterable[Any] | None
    batch_sampler: Iterable[Iterable[Any]] | None
    samples: AnySamples | None


@dataclass(frozen=True)
class Options:
    """The keywords of every loader.

    Attributes:
        batch_size: images in a batch (of this rank); with ``batch_sampler`` the most that one has, by default its ``batch_size``.
        shuffle: in an order drawn from (seed, epoch). The transform does not depend on it. ``"blocks"``: blocks of neighbouring samples
            in random order, of which a window is mixed; for sources that are read in blocks, and for disks on which single reads are
            dear.
        window: bytes of images that ``shuffle="blocks"`` mixes; of a source in blocks: that are in memory, half of them mixed. None:
            1 GiB; of a source in blocks at most a quarter of the free memory. Another window is another order. Of what the
            daemon reads it has no effect without ``shuffle="blocks"``.
        seed: of the order, the boxes and the flips.
        rank: whose share; None: found at the first use, see the loader.
        world_size: among how many; None: the same.
        drop_last: leave out the last batch if it is not full.
        shard_tail: what becomes of samples that do not divide by the world size: ``pad``, ``drop`` or ``uneven`` (``Session.epoch``).
        dtype: of the images, instead of the transform's: uint8, float16, bfloat16 or float32, as a name or as NumPy's, PyTorch's or
            JAX's type.
        on_error: what a bad image does: ``fail`` raises ``SampleFailed`` and ends the loop, ``skip`` leaves it out, ``zero`` blanks it,
            ``substitute`` another. None: ``substitute`` with ``shuffle``, else ``skip``, as long as bad images are the exception: a
            batch without a good one raises ``SampleFailed``, and so does an epoch of which more than one image in 20 is bad, after
            at least 1,000. Each bad file is one ``BadImageWarning``, up to 20; ``bad`` counts them.
        extensions: of the files in a folder that are samples: ``"jpg"``, ``["jpg", "png"]``; None: as ``Session.dataset``. With a list of
            files it is an error if one ends otherwise; ``"*"`` also takes those that are named as pictures which the daemon does not
            decode.
        fidelity: ``exact``, or ``fast``: 0.4 levels of 255 off on average, at most 64 (photographs).
        slots: batches in shared memory at once: the one in the loop, those that the loop keeps, and those read ahead.
        address: of the daemon; None: as ``millrace.connect``.
        resume: when the daemon goes away in the middle of an epoch, connect again and go on after the last batch.
        resume_within: seconds to try so.
        timeout: seconds to wait for one batch; 0 or None: for ever, as DataLoader. A daemon that went away ends the waiting at once.
        name: for the daemon's statistics.
        job: whose costs it adds to, with the user's other sessions of that job (``Client.session``).
        writable: the loop may write to its batches, in place; False: they are read-only, and kept ones are never copied.
        memory: where the daemon puts the images: ``"host"``, or in the memory of a GPU by the daemon's name of it (``Client.session``),
            and then it is an error where that cannot be had. None: in the memory of the GPU to which they go, if the daemon has it.
        cache: the most that the daemon keeps of the images (``Client.session``).
        cache_at_once: the same, from the first epoch on.
        sampler: an iterable of samples' numbers, positions in the dataset, once an epoch: PyTorch's ``WeightedRandomSampler``,
            ``DistributedSampler``, ...; it says this rank's samples, in their order.
        batch_sampler: an iterable of batches of these.
        samples: in the place of ``dataset``: files and labels (``Samples.of``).
        num_workers: DataLoader's, no effect, with a warning if it is not DataLoader's default; and so are persistent_workers,
            prefetch_factor, multiprocessing_context, worker_init_fn, generator, pin_memory_device and in_order.
        persistent_workers: see num_workers.
        prefetch_factor: see num_workers.
        multiprocessing_context: see num_workers.
        worker_init_fn: see num_workers.
        generator: see num_workers; the order depends on ``seed``.
        pin_memory_device: see num_workers.
        in_order: see num_workers.
        collate_fn: DataLoader's; only None. What to do instead is in the error.
    """

    batch_size: int = 64
    shuffle: bool | Literal["blocks"] = False
    window: int | None = None
    seed: int = 0
    rank: int | None = None
    world_size: int | None = None
    drop_last: bool = False
    shard_tail: ShardTail = "pad"
    dtype: AnyDType | None = None
    on_error: OnError | None = None
    extensions: Iterable[str] | None = None
    fidelity: Fidelity = "exact"
    slots: int = 4
    address: str | os.PathLike[str] | None = None
    resume: bool = False
    resume_within: float = 60.0
    timeout: float | None = PATIENCE
    name: str = ""
    job: str = ""
    writable: bool = True
    memory: str | None = None
    cache: CacheUse = "tensors"
    cache_at_once: bool = False
    sampler: Iterable[Any] | None = None
    batch_sampler: Iterable[Iterable[Any]] | None = None
    samples: AnySamples | None = None
    num_workers: int = 0
    persistent_workers: bool = False
    prefetch_factor: int | None = None
    multiprocessing_context: Any = None
    worker_init_fn: Callable[[int], None] | None = None
    generator: Any = None
    pin_memory_device: str = ""
    in_order: bool = True
    collate_fn: None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "samples", None)  # the loader has them as its dataset
        for name in DataLoaderArguments.__annotations__:  # not kept: functions and generators may not go to another process
            object.__setattr__(self, name, DEFAULTS[name])
        object.__setattr__(self, "batch_size", whole_number(self.batch_size, "loader: batch_size is a number of images"))
        self._check_blocks()
        for name in ("writable", "resume", *(["shuffle"] if self.shuffle != "blocks" else []), "drop_last"):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                raise InvalidRequest(f"loader: {name} is True or False, not {getattr(self, name)!r}")
            object.__setattr__(self, name, bool(getattr(self, name)))
        if not _is_seconds(self.resume_within):
            raise InvalidRequest(f"loader: resume_within is a number of seconds, not {self.resume_within!r}")
        if self.memory == "":
            raise InvalidRequest('loader: memory is "host", the daemon\'s name of a GPU ("cuda:0"), or None')
        if self.extensions is not None:
            if isinstance(self.extensions, bytes) or not isinstance(self.extensions, Iterable):
                raise InvalidRequest(f'loader: extensions are names, "jpg" or ["jpg", "png"], not {self.extensions!r}')
            names = (self.extensions,) if isinstance(self.extensions, str) else tuple(self.extensions)
            object.__setattr__(self, "extensions", names)
        if self.timeout is not None and not _is_seconds(self.timeout):
            raise InvalidRequest(f"loader: timeout is a number of seconds, 0 or None for ever; it is {self.timeout!r}")

    def _check_blocks(self) -> None:
        if isinstance(self.shuffle, str) and self.shuffle != "blocks":
            raise InvalidRequest(f'loader: shuffle is True, False or "blocks", not {self.shuffle!r}')
        if self.window is None:
            return
        object.__setattr__(self, "window", whole_number(self.window, "loader: window is a number of bytes"))
        if self.window < 1:
            raise InvalidRequest(f"loader: window is a number of bytes, at least 1, not {self.window}")

    @property
    def order(self) -> str:
        """For people, without a sampler."""
        return f"shuffled{' in blocks' if self.shuffle == 'blocks' else ''} by seed {self.seed}" if self.shuffle else "in order"

    @property
    def patience(self) -> float:
        """Seconds to wait for one batch."""
        return self.timeout or math.inf


DEFAULTS: Mapping[str, Any] = {field.name: field.default for field in dataclasses.fields(Options)}


def _is_seconds(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool) and bool(value >= 0)


def whole_number(value: Any, rule: str) -> int:
    """An integer of Python's, of a number of Python's, NumPy's, ...

    Args:
        value: the argument.
        rule: what it must be, for the message: ``"loader: batch_size is a number of images"``.

    Raises:
        InvalidRequest: a string, a fraction, a truth value, or what else is no whole number.
    """
    if not isinstance(value, bool):
        with contextlib.suppress(TypeError):
            return operator.index(value)
    raise InvalidRequest(f"{rule}, not {value!r}")


def called(cls: type[Any]) -> str:
    """The class as its user writes it: ``millrace.torch.Loader``."""
    return f"{cls.__module__}.{cls.__qualname__}"


def documented(init: Constructor) -> Constructor:
    """Makes ``help()``, completion and errors know every keyword of a loader's ``__init__(..., **options: Unpack[LoaderOptions])``."""
    signature = _signature(init)

    @functools.wraps(init)
    def constructor(self: Any, *arguments: Any, **options: Any) -> None:
        try:
            signature.bind(self, *arguments, **options)
        except TypeError as why:
            raise TypeError(f"{called(type(self))}: {why}{_hint(arguments)}") from None
        init(self, *arguments, **options)

    constructor.__signature__ = signature  # type: ignore[attr-defined]
    described = inspect.getdoc(Options)
    if init.__doc__ is not None and described is not None:
        own, _, after = inspect.cleandoc(init.__doc__).partition("    options:")
        constructor.__doc__ = own + described.partition("Attributes:\n")[2] + "\n" + after.partition("\n")[2]
    return cast("Constructor", constructor)


def _signature(init: Callable[..., None]) -> inspect.Signature:
    own = [parameter for parameter in inspect.signature(init).parameters.values() if parameter.kind is not parameter.VAR_KEYWORD]
    shared = [
        inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=field.type)
        for field in dataclasses.fields(Options)
    ]
    return inspect.Signature([*own, *shared], return_annotation=None)


def _hint(arguments: tuple[Any, ...]) -> str:
    return "; the transform is the second argument here, batch_size= and shuffle= are keywords" if len(arguments) > 2 else ""
