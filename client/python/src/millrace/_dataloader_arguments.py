"""Arguments of ``torch.utils.data.DataLoader`` that a loader takes only so that one can stand where the other stood."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypedDict

from millrace._warn import warn
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
    sampler: None
    batch_sampler: None


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
    "collate_fn": "batches come made up by the daemon; apply the function to what the loop gets, or keep DataLoader",
    "sampler": "the daemon draws the order: shuffle=True and seed=, and each rank gets its share; for another choice keep DataLoader",
    "batch_sampler": "the daemon makes the batches: batch_size=, shuffle=, drop_last=; for another choice keep DataLoader",
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
