"""``millrace.preview``: a contact sheet of a folder's pictures, for notebooks, terminals and ``python -m millrace``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from millrace._data.endings import DECODED
from millrace._data.file_parts import FileParts, source_at
from millrace._memory.layout import slot_bytes_of_images
from millrace._sheets import sheet as _sheet
from millrace._sheets.pictures import in_rows, picture_of, smaller
from millrace._wire.file_list import common_folder
from millrace._wire.messages import path_text
from millrace.client import Client, connect
from millrace.errors import DaemonUnavailable, InvalidRequest, NotFound, SampleError
from millrace.private_daemon import serve
from millrace.recipe import Recipe
from millrace.sample_list import Samples
from millrace.samples import Sample, Source

if TYPE_CHECKING:
    from millrace._transforms.transform import AnyTransform

_PART = 16  # pictures in a batch
_PART_BYTES = 8 << 20  # of a batch, unless one picture has more
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
    folder: str | os.PathLike[str] | Samples,
    count: int = 24,
    *,
    recipe: AnyTransform | None = None,
    side: int = 160,
    columns: int = 6,
    address: str | os.PathLike[str] | None = None,
) -> Preview:
    """Looks at a folder or a list: a contact sheet of its pictures, made by the daemon; a running one, else a private one.

    In a notebook the last expression of a cell shows it; elsewhere ``save`` writes it.

        >>> millrace.preview("/data/train", 4, recipe=millrace.recipes.dino())  # four rows, of ten views each

    Args:
        folder: its pictures of formats that the daemon decodes, and those beneath it; or ``Samples`` (``Shards``, ``read_manifest``).
        count: how many, evenly spread over them in order of their paths.
        recipe: what to make of each, as a loader's transform; it makes images of one size. Normalisation is undone, random choices are
            drawn with the seed 0. The views of a sample are a row of their own (of more than 12 several). None: the whole picture.
        side: pixels of a picture's longer side.
        columns: pictures in a row; without views.
        address: of the daemon; None: as ``millrace.connect``, and if none runs there is one for the moment.

    Raises:
        InvalidRequest: a number is out of range, or the recipe makes images of several sizes, or patches.
        Unsupported: a transform is not something that the daemon does; says which.
        NotFound: there is no such folder, or no such file in it.
        DaemonUnavailable: the daemon that was named is not there.
    """
    return preview_of(pictures_in(folder), count, side, columns, address, _checked(recipe) if recipe is not None else None)


def _checked(transform: AnyTransform) -> Recipe:
    from millrace._transforms.transform import check_one_size, translated

    recipe = translated(transform)
    check_one_size(recipe, "preview")
    if recipe.patches is not None:
        raise InvalidRequest("preview: the recipe makes patches, which are no picture: leave out Recipe.patches")
    return recipe


class Pictures(NamedTuple):
    """A folder, and what names the pictures in it and beneath it, in order; of a list the list."""

    folder: Path
    paths: Sequence[Path] | Sequence[str]
    samples: Samples | None = None

    def source_of(self, number: int) -> Source:
        """Where one of them is."""
        return Path(self.paths[number]).resolve() if self.samples is None else source_at(self.samples.paths, number)


def pictures_in(folder: str | os.PathLike[str] | Samples) -> Pictures:
    """What there is to show.

    Raises:
        NotFound: nothing.
        InvalidRequest: it is neither folder nor list.
    """
    if isinstance(folder, Samples):
        files = folder.paths.files if isinstance(folder.paths, FileParts) else folder.paths
        return Pictures(Path(os.fsdecode(common_folder(files))), folder.paths, folder)
    if not isinstance(folder, (str, os.PathLike)):
        told = f"not a {type(folder).__name__}; Parquet.samples() are such"
        raise InvalidRequest(f"preview: give a folder or Samples (Shards, read_manifest), {told}")
    base = Path(folder)
    if not base.is_dir():
        raise NotFound(f"preview: {path_text(base)} is not a folder")
    paths = sorted(path for path in base.rglob("*") if path.suffix[1:].lower() in DECODED and path.is_file())
    if not paths:
        raise NotFound(f"no pictures (JPEG, PNG, WebP, ...) in {path_text(base)}")
    return Pictures(base, paths)


def preview_of(
    pictures: Pictures, count: int, side: int, columns: int, address: str | os.PathLike[str] | None, recipe: Recipe | None = None
) -> Preview:
    """See ``preview``."""
    if count < 1 or columns < 1 or not 2 <= side <= 4096:
        raise InvalidRequest("preview: count and columns are at least 1, side is 2 to 4096")
    base, paths, _ = pictures
    chosen = [index * len(paths) // min(count, len(paths)) for index in range(min(count, len(paths)))]
    with connected(address, base) as client:
        named = [Path(paths[number]) for number in chosen]
        shown, small = _shown(client, named, [pictures.source_of(number) for number in chosen], side, recipe)
    if recipe is not None:
        side = max((max(picture.shape[:2]) for picture in small if picture is not None), default=side)
    views = len(recipe.views) or 1 if recipe is not None else 1
    return Preview(base, len(paths), shown, in_rows(small, views, side, columns))


@contextmanager
def connected(address: str | os.PathLike[str] | None, folder: str | os.PathLike[str]) -> Iterator[Client]:
    """A client of the daemon, and if none runs and none was named, of one for the moment, which reads the folder.

    Raises:
        DaemonUnavailable: the daemon that was named is not there.
    """
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


def _shown(
    client: Client, paths: list[Path], sources: list[Source], side: int, recipe: Recipe | None
) -> tuple[list[Shown], list[_sheet.Picture | None]]:
    """And the pictures, of each path one after the other all views."""
    made, size, room = recipe, _PART, None
    if made is None:
        made, room = Recipe.thumbnail(side), slot_bytes_of_images(side * side * 3, _PART)
    elif (one := made.slot_bytes(1)) is not None:
        size = min(_PART, max(1, _PART_BYTES // one))
    views = len(made.views) or 1
    shown = [Shown(path, (0, 0), None) for path in paths]
    pictures: list[_sheet.Picture | None] = [None] * (len(paths) * views)
    with client.session(made, batch=size, slots=2, slot_bytes=room, name="contact sheet") as session:
        parts = [range(first, min(first + size, len(paths))) for first in range(0, len(paths), size)]
        numbers = [session.submit([Sample(sources[n], id=n) for n in part], on_error="skip") for part in parts]
        for part, number in zip(parts, numbers, strict=True):
            with session.get(number) as batch:
                for index, place in enumerate(batch.records["index"].tolist()):
                    for view in range(views):
                        picture = picture_of(batch.image(index, view), made).copy()
                        pictures[part[place] * views + view] = smaller(picture, side)
                    width, height = batch.source_sizes[index].tolist()
                    shown[part[place]] = Shown(paths[part[place]], (width, height), None)
                for error in batch.errors:
                    shown[part[error.index]] = Shown(paths[part[error.index]], (0, 0), error)
    return shown, pictures
