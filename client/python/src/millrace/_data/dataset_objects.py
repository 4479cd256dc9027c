"""Dataset objects of PyTorch's and torchvision's as lists of files: ``ImageFolder``, ``Subset``, ``ConcatDataset``, within each other.

Tables (``Parquet``, Hugging Face's ``Dataset``) may be within them, where their images are parts of files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from millrace._blocks.source import BlockSource
from millrace._data.columns import joined_labels
from millrace._data.file_parts import FileParts
from millrace._data.hugging_face import is_table
from millrace._data.image_folder import KEEP, is_folder, samples_of_folder
from millrace._tables.parquet import Parquet
from millrace.encoded import Encoded
from millrace.errors import InvalidRequest
from millrace.pairs import Pairs
from millrace.sample_list import Samples

_TORCH = "torch.utils.data.dataset"
_PAIRS = 'samples=[(path, label), ...] or columns by name: samples={"path": [...], "label": [...]}'


def kind_of(dataset: Any) -> str | None:
    """``"Subset"`` or ``"ConcatDataset"``; None: neither.

    Raises:
        InvalidRequest: a class of the user's that does something else with a sample.
    """
    for base in type(dataset).__mro__:
        if base.__module__ == _TORCH and base.__name__ in ("Subset", "ConcatDataset"):
            for method in ("__getitem__", "__getitems__", "__len__"):
                if getattr(type(dataset), method, None) is not getattr(base, method, None):
                    told = f"{type(dataset).__name__} has a {method} of its own, which the daemon cannot call"
                    raise InvalidRequest(f"loader: {told}: give {_PAIRS}, or {KEEP}")
            return base.__name__
    return None


def is_list(dataset: Any) -> bool:
    """Whether it is a list of files of the user's: paths, pairs, dictionaries or columns."""
    return isinstance(dataset, (Samples, list, tuple, Mapping)) or (hasattr(dataset, "keys") and hasattr(dataset, "__getitem__"))


def _is_table(dataset: Any) -> bool:
    return isinstance(dataset, Parquet) or is_table(dataset.source if isinstance(dataset, Encoded) else dataset)


def parts_of(dataset: Any) -> Iterator[Any]:
    """The ``ImageFolder`` objects, lists and tables that it is made of.

    Raises:
        InvalidRequest: one is nothing of which the files are known; says what to do.
    """
    kind = kind_of(dataset)
    if kind == "Subset":
        yield from parts_of(dataset.dataset)
    elif kind == "ConcatDataset":
        for part in dataset.datasets:
            yield from parts_of(part)
    elif is_list(dataset) or is_folder(dataset) or _is_table(dataset):
        yield dataset
    else:
        name = type(dataset).__name__
        if isinstance(dataset, BlockSource):
            raise InvalidRequest(
                f"loader: {dataset!r} is read in blocks, so no Subset and no ConcatDataset of it is taken: name the shards or files of "
                "each part when you make it"
            )
        if isinstance(dataset, Pairs):
            raise InvalidRequest(
                "loader: of Pairs no Subset and no ConcatDataset is taken: pairs.subset(ids) has those of a split "
                "(pairs.subset(split.indices)), millrace.Pairs([*first, *second]) one list of several"
            )
        if isinstance(dataset, BlockSource):
            raise InvalidRequest(
                f"loader: of {name} no Subset and no ConcatDataset is taken, for it is read in whole blocks: name all of its files in one "
                f"{name}, or unpack them: millrace.Shards"
            )
        raise InvalidRequest(
            f"loader: the files of a {name} are not known, and the daemon cannot call its __getitem__: give {_PAIRS}; images' bytes "
            f"as millrace.Encoded(...); or {KEEP}. Known are folders, lists, manifests (.csv, .tsv, .jsonl), millrace.Shards "
            "and Parquet, torchvision's ImageFolder, Subset and ConcatDataset of PyTorch, datasets of Hugging Face, and webdataset"
        )


def contents_of(dataset: Any) -> tuple[Any, ...]:
    """What its samples are made of: copies of lists, which cost little to compare with themselves, and the functions."""
    kind = kind_of(dataset)
    if kind == "Subset":
        return kind, list(dataset.indices), contents_of(dataset.dataset)
    if kind == "ConcatDataset":
        return kind, *map(contents_of, dataset.datasets)
    if is_list(dataset) or _is_table(dataset):
        return (id(dataset),)
    functions = (dataset.transform, dataset.target_transform)
    return list(dataset.samples), *(_Same(function) for function in functions)


class _Same:
    """Equal if it is the same object: what a function's own ``==`` says does not count."""

    def __init__(self, what: Any) -> None:
        self.what = what

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.what is other.what

    __hash__ = None  # type: ignore[assignment]


def samples_of(dataset: Any) -> Samples:
    """Its samples: sample i is ``dataset[i]``.

    Raises:
        InvalidRequest: as ``parts_of``; or the parts of a ``ConcatDataset`` have labels of several kinds.
    """
    kind = kind_of(dataset)
    if kind == "Subset":
        return samples_of(dataset.dataset).subset(dataset.indices)
    if kind == "ConcatDataset":
        return _joined([samples_of(part) for part in dataset.datasets])
    if _is_table(dataset):
        from millrace._tables.given_table import samples_of_table

        return samples_of_table(dataset)
    return Samples.of(dataset) if is_list(dataset) else samples_of_folder(dataset)


def _joined(parts: list[Samples]) -> Samples:
    of_parts = any(isinstance(part.paths, FileParts) for part in parts)
    made = Samples(FileParts.joined([part.paths for part in parts]) if of_parts else [path for part in parts for path in part.paths], None)
    made.labels = joined_labels([part.labels for part in parts])
    first = parts[0].classes
    made.classes = first if all(part.classes == first for part in parts) else ()
    return made
