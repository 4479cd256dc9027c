"""Tar shards as a dataset, in any order.

>>> shards = millrace.Shards("/data/train-{0000..0099}.tar", label="cls", columns=["json"])
>>> loader = millrace.torch.Loader(shards, millrace.Recipe.train(224), shuffle=True)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from millrace._data.endings import DECODED
from millrace._shards.fields import Keys
from millrace._shards.sources import extensions_of, label_extension
from millrace._shards.table import Table, opened
from millrace._wire.messages import path_text
from millrace.errors import InvalidRequest
from millrace.sample_list import Samples

KEY = "__key__"


class Shards(Samples):
    """The samples of tar archives, as webdataset has them. A loader reads them in any order, as it reads a folder's files.

    Members whose names are alike up to the first dot of their last part are a sample, if they follow each other in their archive. The rest
    of a name is the member's extension, in any case of its letters. Hidden members, links and devices are left out.

    The daemon reads the images within the archives: nothing is unpacked. Where members lie is kept in an index beside each shard
    (``train-0000.idx``, which NVIDIA DALI reads, too), or in ``$XDG_CACHE_HOME/millrace/shards``. It is made at the first opening, from the
    headers alone. One that was made of another size or time of its shard, or does not fit it, is made anew.

    Memory: about 30 bytes a sample and those of its image's name; 16 for each column and 8 for a number as its label.
    """

    def __init__(
        self,
        source: Any,
        *,
        image: str | Sequence[str] = DECODED,
        label: str | None = None,
        columns: Iterable[str] = (),
        classes: Sequence[str] | Literal["sorted"] = (),
        strict: bool = False,
    ) -> None:
        """Reads the indexes; makes those that are missing.

        Args:
            source: beneath the daemon's roots: an archive (``.tar``), a folder of them, several as ``train-{0000..0099}.tar`` or
                ``train-*.tar``, or a list of these. Order: as named; of folders and ``*`` that of the names.
            image: extensions, ``"jpg;png"`` or a list; of each sample the first that it has. A key without one is no sample.
            label: the extension of the labels: whole numbers in text. None: ``cls``, where there are such; ``""``: none.
            columns: extensions of further members, which come with the batches (``Samples.labels`` is then a dictionary of these and
                ``"label"``). They are read when a batch needs them: ``json`` as what it says, ``txt`` as text, ``cls`` as a number, others
                as bytes; None where a sample has none. ``"__key__"``: the samples' keys.
            classes: names of the labels; then labels that are texts become positions in them. ``"sorted"``: the texts that there are.
            strict: refuse damaged archives, keys without an image, members of one name, keys that come again, and columns that no sample
                has; else these are warnings.

        Raises:
            InvalidRequest: no shards or no images; a compressed archive; a label that is missing or no number; says which.
            NotFound, PermissionDenied: a shard is not there, or cannot be read.
            FailedPrecondition: a shard is being written to.
        """
        table = opened(source, extensions_of(image, "image"))
        extension = label_extension(label)
        found = table.labels(extension, bool(len(classes))) if extension else None
        if found is None and label:
            raise InvalidRequest(f'shards: no sample has a {label}; label="" reads no labels')
        more: dict[str, Any] = {}
        self.paths = table.parts()
        for name in extensions_of(columns, "columns") if columns else ():
            more[name] = Keys(self.paths.members) if name == KEY else table.column(name)  # type: ignore[arg-type]
        table.report(strict)
        self.labels = (more if found is None else {"label": found, **more}) if more else found
        self.classes = ()
        self.shards: tuple[str, ...] = tuple(shard.path for shard in table.shards)
        """The archives' absolute paths."""
        self.left_out: dict[str, int] = _left_out(table)
        """How many members belong to no sample, by reason: ``"hidden"``, ``"without an extension"``, ``"link or device"``, ``"sparse"``."""
        if len(classes):
            self._name(classes)

    def __repr__(self) -> str:
        return f"<millrace.Shards {path_text(self.shards[0])}{f' and {more} more' if (more := len(self.shards) - 1) else ''}: {len(self)}>"


def _left_out(table: Table) -> dict[str, int]:
    total: Counter[str] = Counter()
    for shard in table.shards:
        if shard.members.told is not None:
            total.update(shard.members.told.left_out)
    return dict(total)
