"""``millrace.preview``: a contact sheet of a folder's pictures, for notebooks, terminals and ``python -m millrace``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from millrace import _sheet
from millrace._endings import DECODED
from millrace._layout import slot_bytes_of_images
from millrace._messages import path_text
from millrace.client import Client, connect
from millrace.errors import DaemonUnavailable, InvalidRequest, NotFound, SampleError
from millrace.private_daemon import serve
from millrace.recipe import Recipe

_PART = 16  # pictures in a batch
_MOST_LISTED = 6


@dataclass(frozen=True)
class Shown:
    """One picture of a preview."""

    path: Path
    size: tuple[int, int]
    """Width and height as stored in the file, pixels; 0 where they are not known."""
    error: SampleError | None
    """Why it cannot be shown."""


class Preview:
    """Pictures of a folder: in a notebook a contact sheet, in a terminal a few lines about it. Immutable."""

    def __init__(self, folder: Path, found: int, shown: Sequence[Shown], sheet: _sheet.Picture) -> None:
        self.folder = folder
        """Whose pictures these are."""
        self.found = found
        """How many pictures of formats that the daemon decodes there are in it and beneath it."""
        self.shown = tuple(shown)
        """Those of the sheet, row by row."""
        self.sheet = sheet
        """uint8 height x width x RGB."""

    @property
    def bad(self) -> tuple[Shown, ...]:
        """Those that are no pictures, which the sheet has crossed out."""
        return tuple(one for one in self.shown if one.error is not None)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the sheet as a PNG file."""
        Path(path).write_bytes(self._repr_png_())

    def _repr_png_(self) -> bytes:
        return _sheet.png(self.sheet)

    def lines(self, most: int) -> Iterator[str]:
        """What each of the first pictures is, after those that are bad."""
        ordered = [*self.bad, *(one for one in self.shown if one.error is None)]
        for one in ordered[:most]:
            what = one.error.message if one.error is not None else "{} x {}".format(*one.size)
            yield f"  {path_text(os.path.relpath(one.path, self.folder))}: {what}"
        if len(ordered) > most:
            yield f"  and {len(ordered) - most} more"

    def __repr__(self) -> str:
        head = f"<millrace.preview of {path_text(self.folder)}: {len(self.shown)} of {self.found} pictures, {len(self.bad)} bad;"
        head += " a notebook shows them, save(PATH) writes a PNG file>"
        return "\n".join([head, *self.lines(_MOST_LISTED)])


def preview(
    folder: str | os.PathLike[str], count: int = 24, *, side: int = 160, columns: int = 6, address: str | os.PathLike[str] | None = None
) -> Preview:
    """Looks at a folder: a contact sheet of its pictures, made by the daemon; a running one, else a private one.

    In a notebook the last expression of a cell shows it; elsewhere ``save`` writes it.

    Args:
        folder: its pictures of formats that the daemon decodes, and those beneath it.
        count: how many, evenly spread over them in order of their paths.
        side: pixels of a picture's longer side.
        columns: pictures in a row.
        address: of the daemon; None: as ``millrace.connect``, and if none runs there is one for the moment.

    Raises:
        InvalidRequest: a number is out of range.
        NotFound: there is no such folder, or no such file in it.
        DaemonUnavailable: the daemon that was named is not there.
    """
    return preview_of(pictures_in(folder), count, side, columns, address)


class Pictures(NamedTuple):
    """A folder, and the paths of the pictures in it and beneath it, in order."""

    folder: Path
    paths: Sequence[Path]


def pictures_in(folder: str | os.PathLike[str]) -> Pictures:
    """What there is to show.

    Raises:
        NotFound: nothing.
    """
    base = Path(folder)
    if not base.is_dir():
        raise NotFound(f"preview: {path_text(base)} is not a folder")
    paths = sorted(path for path in base.rglob("*") if path.suffix[1:].lower() in DECODED and path.is_file())
    if not paths:
        raise NotFound(f"no pictures (JPEG, PNG, WebP, ...) in {path_text(base)}")
    return Pictures(base, paths)


def preview_of(pictures: Pictures, count: int, side: int, columns: int, address: str | os.PathLike[str] | None) -> Preview:
    """See ``preview``."""
    if count < 1 or columns < 1 or not 2 <= side <= 4096:
        raise InvalidRequest("preview: count and columns are at least 1, side is 2 to 4096")
    base, paths = pictures
    chosen = [paths[index * len(paths) // min(count, len(paths))] for index in range(min(count, len(paths)))]
    with _connected(address, base) as client:
        shown, small = _shown(client, chosen, side)
    return Preview(base, len(paths), shown, _sheet.compose(small, side, min(columns, len(chosen))))


@contextmanager
def _connected(address: str | os.PathLike[str] | None, folder: Path) -> Iterator[Client]:
    try:
        client = connect(address)
    except DaemonUnavailable:
        if address is not None or "MILLRACE_SOCKET" in os.environ:
            raise
        with serve(folder) as daemon, connect(daemon.address) as client:
            yield client
        return
    with client:
        yield client


def _shown(client: Client, paths: list[Path], side: int) -> tuple[list[Shown], list[_sheet.Picture | None]]:
    shown = [Shown(path, (0, 0), None) for path in paths]
    pictures: list[_sheet.Picture | None] = [None] * len(paths)
    room = slot_bytes_of_images(side * side * 3, _PART)
    with client.session(Recipe.thumbnail(side), batch=_PART, slots=2, slot_bytes=room, name="contact sheet") as session:
        parts = [range(first, min(first + _PART, len(paths))) for first in range(0, len(paths), _PART)]
        numbers = [session.submit([paths[n].resolve() for n in part], on_error="skip") for part in parts]
        for part, number in zip(parts, numbers, strict=True):
            with session.get(number) as batch:
                for index, place in enumerate(batch.records["index"].tolist()):
                    pictures[part[place]] = batch.image(index).numpy().copy()
                    width, height = batch.source_sizes[index].tolist()
                    shown[part[place]] = Shown(paths[part[place]], (width, height), None)
                for error in batch.errors:
                    shown[part[error.index]] = Shown(paths[part[error.index]], (0, 0), error)
    return shown, pictures
