"""What is particular about datasets of the package ``datasets``, which is never imported here."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from millrace._tables.row_groups import RowGroups
from millrace.errors import InvalidRequest

_MODULES = {"datasets.arrow_dataset": "Dataset", "datasets.iterable_dataset": "IterableDataset"}


class Opened(NamedTuple):
    """A source, whatever it is, and where its rows have what.

    Attributes:
        dataset: the source; of Hugging Face's one that decodes nothing.
        image: the column; None: not known.
        label: likewise.
        classes: the labels' names.
    """

    dataset: Any
    image: Any
    label: Any
    classes: tuple[str, ...]


def is_one(source: Any) -> bool:
    """Whether it is a ``Dataset``, an ``IterableDataset``, or a dictionary of them."""
    return any(base.__module__ in (*_MODULES, "datasets.dataset_dict") for base in type(source).__mro__)


def is_table(source: Any) -> bool:
    """Whether it is a ``Dataset``, whose rows have numbers."""
    return any((base.__module__, base.__name__) == ("datasets.arrow_dataset", "Dataset") for base in type(source).__mro__)


def _is_dataset(source: Any) -> bool:
    return any(_MODULES.get(base.__module__) == base.__name__ for base in type(source).__mro__)


def opened(source: Any, image: Any, label: Any) -> Opened:
    """Switches decoding off; finds the columns that are not named.

    Raises:
        InvalidRequest: it has several splits, a transform of its own, or several columns of images; says what to do.
    """
    if not _is_dataset(source):
        if is_one(source):
            raise InvalidRequest(f"loader: the dataset has the splits {', '.join(map(repr, source))}: give one of them, dataset['train']")
        return Opened(source, image, label, ())
    if (getattr(source, "format", None) or {}).get("type") == "custom":
        raise InvalidRequest(
            "loader: the dataset has a transform of its own (set_transform, with_transform), which would decode in Python and cannot be "
            "called by the daemon: give dataset.with_format(None), and the loader a transform"
        )
    plain = source.with_format(None)
    features = dict(plain.features or {})
    kinds = {name: type(feature).__name__ for name, feature in features.items()}
    if image is None and features:
        image = _only([name for name, kind in kinds.items() if kind == "Image"], "images", "image", kinds)
    if label is None and features:
        classed = [name for name, kind in kinds.items() if kind == "ClassLabel"]
        label = _only(classed, "class labels", "label", kinds) if classed else None
    if isinstance(image, str) and features and image not in features:
        raise InvalidRequest(f"loader: the dataset has no column {image!r}; its columns are {', '.join(map(repr, features))}")
    for name, kind in kinds.items():
        if kind == "Image":
            plain = plain.cast_column(name, type(features[name])(decode=False))
    names = getattr(features.get(label), "names", None) if isinstance(label, str) else None
    return Opened(plain, image, label, tuple(names or ()))


def _only(found: Sequence[str], what: str, argument: str, kinds: dict[str, str]) -> str:
    if len(found) == 1:
        return found[0]
    raise InvalidRequest(
        f"loader: the dataset has {len(found) or 'no'} columns of {what} among {', '.join(map(repr, kinds))}; name the one that is meant: "
        f"millrace.Encoded(dataset, {argument}=...)"
    )


def of_its_own(source: Any) -> Any:
    """A copy for one loop, which may be loaded with a state: every part that counts rows is its own, the data are shared.

    ``copy.copy`` of a dataset gives one that shares all attributes with the source.
    """
    made = object.__new__(type(source))
    made.__dict__.update(source.__dict__)
    if hasattr(source, "_ex_iterable"):
        made._ex_iterable = _stage(source._ex_iterable)
    return made


def _stage(stage: Any) -> Any:
    made = copy.copy(stage)
    if hasattr(stage, "ex_iterable"):
        made.ex_iterable = _stage(stage.ex_iterable)
    if hasattr(stage, "ex_iterables"):
        made.ex_iterables = [_stage(each) for each in stage.ex_iterables]
    return made


def is_sharded(source: Any) -> bool:
    """Whether ``split_dataset_by_node`` has given it a rank."""
    return _is_dataset(source) and getattr(source, "_distributed", None) is not None


def rows(dataset: Any, ids: Sequence[int]) -> Iterator[Any]:
    """Those of a map-style source; of Hugging Face's read together."""
    if isinstance(dataset, RowGroups):
        return iter(dataset.rows(np.asarray(ids, np.int64)))
    if not _is_dataset(dataset):
        return map(dataset.__getitem__, ids)
    columns = dataset[list(ids)]
    return (dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True))


def resumes(dataset: Any) -> bool:
    """Whether its ``state_dict`` goes on exactly: not where it shuffles in a buffer, whose content it does not keep."""
    if not _is_dataset(dataset) or not hasattr(dataset, "state_dict"):
        return False
    return not shuffles(dataset)


def shuffles(dataset: Any) -> bool:
    """Whether an ``IterableDataset`` is the result of ``shuffle()``, somewhere. Others are told no epoch: that would shuffle them."""
    within = getattr(dataset, "_ex_iterable", None)
    while within is not None:
        if "Shuffle" in type(within).__name__:
            return True
        within = getattr(within, "ex_iterable", None)
    return False
