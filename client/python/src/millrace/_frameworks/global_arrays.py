"""Arrays of JAX that several processes make together, each of the batches that its own loader gets.

    process 0   batch of 8 --+
                             +--> one jax.Array of 16 x C x H x W, and one of 16 labels, sharded over both
    process 1   batch of 8 --+

All of them must have as many images in every batch, or the arrays' shapes differ and the processes wait for each other for ever; so what
makes batches of different sizes is refused.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from millrace._loader.options import Options
from millrace._loader.ranks import Ranks
from millrace.errors import InvalidRequest


def sharding_of_axes(device: Any, axes: tuple[int, ...]) -> Any:
    """Where goes what has these of the images' axes, in their order, if images go there: of a ``NamedSharding`` what it says of them."""
    if isinstance(device, NamedSharding):
        spec = PartitionSpec(*(device.spec[axis] for axis in axes if axis < len(device.spec)))
        return NamedSharding(device.mesh, spec, memory_kind=device.memory_kind)
    return device


class GlobalArrays:
    """Makes the arrays of a sharding that spans processes. Immutable."""

    def __init__(self, sharding: jax.sharding.Sharding, labels: jax.sharding.Sharding, options: Options) -> None:
        """Of the loader's sharding, that of its labels or masks, and its options.

        Raises:
            InvalidRequest: with these options batches of the processes may differ in size, or the sharding has no axis for images.
        """
        if not isinstance(sharding, NamedSharding):
            raise InvalidRequest(f"loader: a device that spans processes is a NamedSharding, not a {type(sharding).__name__}")
        if options.batch_sampler is not None:
            raise InvalidRequest(
                "loader: a batch_sampler may give processes batches of different sizes, and their sharding needs equal ones: give "
                "sampler=, with as many samples in every process"
            )
        if options.shard_tail == "uneven":
            raise InvalidRequest(
                'loader: shard_tail="uneven" gives processes batches of different sizes, and their sharding needs equal ones'
            )
        if options.on_error == "skip" or (options.on_error is None and not options.shuffle):
            raise InvalidRequest(
                "loader: bad images would be left out, which gives processes batches of different sizes, and their sharding needs equal "
                'ones: choose on_error="substitute", "zero" or "fail", or shuffle=True'
            )
        self._images, self._labels = sharding, labels
        self._batch = options.batch_size
        self._groups = self._groups_of_processes()

    def _groups_of_processes(self) -> int:
        """Among how many groups of processes the images are divided; those of a group have the same ones."""
        devices, first = len(self._images.device_set), sharding_of_axes(self._images, (0,))
        rows: dict[int, set[tuple[int, int]]] = defaultdict(set)
        for device, (index,) in first.devices_indices_map((devices,)).items():
            rows[device.process_index].add(index.indices(devices)[:2])
        groups = {frozenset(each) for each in rows.values()}
        if len(groups) < 2 or len(frozenset.union(*groups)) != sum(map(len, groups)):
            raise InvalidRequest(
                "loader: the device spans processes, and does not divide the images among them: name an axis of the mesh for the first "
                'axis of the images, as NamedSharding(mesh, PartitionSpec("data")) does'
            )
        self._parts = len(next(iter(groups)))
        return len(groups)

    def check(self, ranks: Ranks, samples: int, drop_last: bool) -> None:
        """At the beginning of a loop, of which this process reads so many samples.

        Raises:
            InvalidRequest: the shares that the processes read are not those that the sharding divides a batch into, or a batch cannot be
                divided among this process's devices.
        """
        if ranks.world_size != self._groups:
            raise InvalidRequest(
                f"loader: the device divides the images among {self._groups} groups of processes, and this loader reads the share of rank "
                f"{ranks.rank} of {ranks.world_size}: give rank= and world_size={self._groups}, the same rank to processes with the same "
                "images"
            )
        last = 0 if drop_last else samples % self._batch
        for images, which, advice in ((self._batch, "batch", "another batch_size"), (last, "last batch", "drop_last=True")):
            if images % self._parts:
                raise InvalidRequest(
                    f"loader: a {which} of {images} images cannot be divided into the {self._parts} parts that a process has of the "
                    f"device: choose {advice}"
                )

    def images(self, images: Any) -> jax.Array:
        """The global array of which these, NumPy's, are this process's part."""
        return self._whole(self._images, images)

    def labels(self, column: Any) -> Any:
        """Likewise of labels or masks; what is no array (texts, ...) stays as it is, this process's own."""
        return self._whole(self._labels, column) if isinstance(column, np.ndarray) else column

    def _whole(self, sharding: NamedSharding, part: Any) -> jax.Array:
        return jax.make_array_from_process_local_data(sharding, part, (len(part) * self._groups, *part.shape[1:]))
