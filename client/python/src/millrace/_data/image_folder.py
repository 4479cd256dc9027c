"""torchvision's ``ImageFolder`` and ``DatasetFolder`` as lists of files: their samples, labels and transform, as the object has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from millrace._data.columns import Coded, Column, column_of
from millrace.errors import InvalidRequest
from millrace.sample_list import Samples

_MODULE = "torchvision.datasets.folder"
KEEP = "keep torch.utils.data.DataLoader for it"


class FolderDataset(Protocol):
    """torchvision's ``ImageFolder``."""

    @property
    def root(self) -> Any: ...
    @property
    def classes(self) -> Sequence[str]: ...
    @property
    def samples(self) -> Sequence[tuple[str, int]]: ...
    def __len__(self) -> int: ...


def is_folder(dataset: Any) -> bool:
    """Whether it is one.

    Raises:
        InvalidRequest: it is, and does something with a sample that the daemon does not.
    """
    for base in type(dataset).__mro__:
        if (base.__module__, base.__name__) == (_MODULE, "DatasetFolder"):
            _check_class(dataset, base)
            return True
    return False


def samples_of_folder(dataset: Any) -> Samples:
    """Its samples, in its order, with the labels that it gives.

    Raises:
        InvalidRequest: it has other items than its samples, or its target_transform is random.
    """
    samples = dataset.samples
    if len(dataset) != len(samples):
        raise InvalidRequest(
            f"loader: the {type(dataset).__name__} has {len(dataset)} items and {len(samples)} samples; for fewer give a Subset of it"
        )
    labels = _labels(dataset, [target for _, target in samples])
    made = Samples([path for path, _ in samples], labels)
    made.classes = tuple(dataset.classes)
    return made


def _labels(dataset: Any, targets: list[Any]) -> Column:
    transform = dataset.target_transform
    if transform is None:
        return column_of(targets, len(targets), "labels of the ImageFolder")
    try:
        distinct = dict.fromkeys(targets)
    except TypeError:  # lists and the like: nothing that a dictionary takes
        return column_of([transform(target) for target in targets], len(targets), "labels of target_transform")
    made = [transform(target) for target in distinct]
    for target, label in zip(distinct, made, strict=True):
        if not _same(label, transform(target)):
            raise InvalidRequest(
                "loader: the ImageFolder's target_transform is random; here it is asked once for each different target: apply it to the "
                "labels that the loader yields, and make the ImageFolder without it"
            )
    table: Any = column_of(made, len(made), "labels of target_transform")
    positions = {target: position for position, target in enumerate(distinct)}
    codes = np.fromiter(map(positions.__getitem__, targets), np.int64, len(targets))
    return table[codes] if isinstance(table, np.ndarray) and table.ndim == 1 else Coded(table, codes)


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(_same, one, other))
    if hasattr(one, "__array__"):
        return bool(np.array_equal(np.asarray(one), np.asarray(other)))
    return bool(one == other)


def _check_class(dataset: Any, base: type[Any]) -> None:
    """Refuses an object that would do something with a sample that the daemon does not."""
    name = type(dataset).__name__
    if type(dataset).__getitem__ is not base.__getitem__ or hasattr(dataset, "__getitems__"):
        raise InvalidRequest(
            f"loader: {name} has a __getitem__ of its own, which the daemon cannot call: do in the loop what it does, with "
            f"samples={name.lower()}.samples as the loader's dataset, or {KEEP}"
        )
    if getattr(dataset.loader, "__module__", None) != _MODULE:
        raise InvalidRequest(
            f"loader: the {name} reads files with a function of its own (loader={dataset.loader!r}), which the daemon cannot call: it "
            f"decodes them itself; make the {name} without it, or {KEEP}"
        )
