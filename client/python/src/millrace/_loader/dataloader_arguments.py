"""Arguments of ``torch.utils.data.DataLoader`` that a loader takes only so that one can stand where the other stood."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypedDict

from millrace._process.warn import warn
from millrace.errors import InvalidRequest


class DataLoaderArguments(TypedDict, total=False):
    """With DataLoader's types; what is None here is refused with a hint."""

    num_workers: int
    persistent_workers: bool
    prefetch_factor: int | None
    multiprocessing_context: Any
    worker_init_fn: Callable[[int], None] | None
    generator: Any
    pin_memory_device: str
    in_order: bool
    collate_fn: None


_WORKERS = "the daemon reads, decodes and transforms ahead in threads of its own, as far as there are slots"
_NO_EFFECT: Mapping[str, str] = {
    "num_workers": _WORKERS,
    "persistent_workers": _WORKERS,
    "prefetch_factor": _WORKERS,
    "multiprocessing_context": _WORKERS,
    "worker_init_fn": _WORKERS,
    "generator": "order, boxes and flips are drawn from seed=",
    "pin_memory_device": "pin_memory is for the device of device=, else for CUDA",
    "in_order": "batches come in order",
}
_REFUSED: Mapping[str, str] = {
    "collate_fn": (
        "batches come made up by the daemon; apply the function to what the loop gets (mixup and CutMix: millrace.torch.Mixed), "
        "or keep DataLoader"
    ),
}


def check_dataloader_arguments(called: str, given: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
    """Warns once of all arguments that have no effect.

    Args:
        called: the loader's name.
        given: its arguments.
        defaults: of those that are DataLoader's.

    Raises:
        InvalidRequest: one that cannot be ignored; says what to do instead.
    """
    for name, instead in _REFUSED.items():
        if given.get(name) is not None:
            raise InvalidRequest(f"{called}: {name} is not taken: {instead}")
    reasons: dict[str, list[str]] = {}
    for name, reason in _NO_EFFECT.items():
        if name in given and given[name] is not defaults[name] and given[name] != defaults[name]:
            reasons.setdefault(reason, []).append(name)
    if reasons:
        said = "; ".join(f"{', '.join(names)}: {reason}" for reason, names in reasons.items())
        warn(f"{called}: arguments of DataLoader that have no effect here: {said}")


def check_samplers(called: str, given: Mapping[str, Any]) -> None:
    """Looks at ``sampler``, ``batch_sampler`` and what goes with them.

    Args:
        called: the loader's name.
        given: its arguments.

    Raises:
        InvalidRequest: two of them say the order, the batches or the shares; or one is none.
    """
    names = [name for name in ("sampler", "batch_sampler") if given.get(name) is not None]
    if len(names) > 1:
        raise InvalidRequest(f"{called}: sampler and batch_sampler both say the order; give one of them")
    for name in names:
        if not hasattr(given[name], "__iter__") and not hasattr(given[name], "__getitem__"):
            raise InvalidRequest(f"{called}: {name} is an iterable of samples' numbers, not a {type(given[name]).__name__}")
        if given.get("shuffle"):
            raise InvalidRequest(f"{called}: {name} says the order, so leave out shuffle=True (RandomSampler shuffles)")
        shares = [share for share in ("rank", "world_size") if given.get(share) is not None] + ["shard_tail"] * ("shard_tail" in given)
        if shares:
            raise InvalidRequest(
                f"{called}: {name} says which samples are this rank's, so leave out {', '.join(shares)}: "
                "torch.utils.data.DistributedSampler(dataset, num_replicas, rank) gives a share"
            )
    if "batch_sampler" in names:
        if given.get("drop_last"):
            raise InvalidRequest(f"{called}: batch_sampler says the batches, so leave out drop_last")
        if "batch_size" not in given and not isinstance(getattr(given["batch_sampler"], "batch_size", None), int):
            raise InvalidRequest(f"{called}: batch_sampler has no batch_size: give batch_size=, the most samples that a batch of it has")
