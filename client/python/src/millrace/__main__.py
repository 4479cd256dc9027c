"""``python -m millrace DIR``: a contact sheet of a folder's pictures, in the terminal or as PNG."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import millrace
from millrace import _sheet
from millrace._layout import slot_bytes_of_images
from millrace._messages import path_text

_PICTURES = {".jpg", ".jpeg", ".png", ".webp", ".mrp"}
_FAILED, _UNREACHABLE, _INTERRUPTED = 1, 3, 130
_PART = 16  # pictures in a batch
_MARGIN = 4  # pixels between pictures, as _sheet has it


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m millrace",
        description="A contact sheet of the pictures in a folder, made by the daemon: a running one, else a private one.",
        epilog="exit status: 0 fine, 1 failed, 2 wrong usage, 3 daemon unreachable, 130 interrupted",
    )
    parser.add_argument("folder", type=Path, help="JPEG, PNG, WebP and MRP files in it and beneath it")
    parser.add_argument("-n", "--count", type=int, default=24, help="how many, evenly spread over the folder (24)")
    parser.add_argument("-o", "--output", type=Path, help="write a PNG file instead of text to the terminal")
    parser.add_argument("--side", type=int, help="pixels of a picture's longer side (160; in the terminal as fits)")
    parser.add_argument("--columns", type=int, default=6, help="pictures in a row (6)")
    parser.add_argument("--socket", help="the daemon's; none: $MILLRACE_SOCKET, else the service's, else a private daemon")
    given = parser.parse_args()
    if not given.folder.is_dir():
        parser.error(f"{given.folder} is not a folder")
    if given.count < 1 or given.columns < 1 or (given.side is not None and not 2 <= given.side <= 4096):
        parser.error("--count and --columns are at least 1, --side is 2 to 4096")
    if given.output is None and (not sys.stdout.isatty() or "NO_COLOR" in os.environ):
        parser.error("pictures need a terminal with colours: write a PNG file with -o FILE")
    return given


def _chosen(folder: Path, count: int) -> list[Path]:
    paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in _PICTURES and path.is_file())
    count = min(count, len(paths))
    return [paths[index * len(paths) // count] for index in range(count)]


@contextmanager
def _connected(socket: str | None, folder: Path) -> Iterator[millrace.Client]:
    try:
        client = millrace.connect(socket)
    except millrace.DaemonUnavailable:
        if socket is not None or "MILLRACE_SOCKET" in os.environ:
            raise
        with millrace.serve(folder) as daemon, millrace.connect(daemon.address) as client:
            yield client
        return
    with client:
        yield client


def _pictures(client: millrace.Client, paths: list[Path], side: int) -> list[_sheet.Picture | None]:
    recipe = millrace.Recipe.thumbnail(side)
    pictures: list[_sheet.Picture | None] = [None] * len(paths)
    room = slot_bytes_of_images(side * side * 3, _PART)
    with client.session(recipe, batch=_PART, slots=2, slot_bytes=room, name="contact sheet") as session:
        parts = [range(first, min(first + _PART, len(paths))) for first in range(0, len(paths), _PART)]
        numbers = [session.submit([paths[n].resolve() for n in part], on_error="skip") for part in parts]
        for part, number in zip(parts, numbers, strict=True):
            with session.get(number) as batch:
                for index, place in enumerate(batch.records["index"].tolist()):
                    pictures[part[place]] = batch.image(index).numpy().copy()
                for error in batch.errors:
                    print(f"{error.source}: {error.message}", file=sys.stderr)
    return pictures


def _run(given: argparse.Namespace) -> int:
    paths = _chosen(given.folder, given.count)
    if not paths:
        print(f"millrace: no JPEG, PNG, WebP or MRP files in {path_text(given.folder)}", file=sys.stderr)
        return _FAILED
    columns = min(given.columns, len(paths))
    width = shutil.get_terminal_size().columns
    side = given.side or (160 if given.output else max(2, (width - _MARGIN) // columns - _MARGIN))
    with _connected(given.socket, given.folder) as client:
        sheet = _sheet.compose(_pictures(client, paths, side), side, columns)
    if given.output is None:
        print(*_sheet.text(sheet), sep="\n")
    else:
        given.output.write_bytes(_sheet.png(sheet))
        print(f"{len(paths)} pictures of {path_text(given.folder)}: {path_text(given.output)}")
    return 0


def main() -> int:
    """Runs the command line; its exit status."""
    given = _arguments()
    try:
        return _run(given)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except (millrace.DaemonUnavailable, millrace.NotFound) as why:
        print(f"millrace: {why}", file=sys.stderr)
        return _UNREACHABLE
    except (millrace.Error, OSError) as why:
        print(f"millrace: {why}", file=sys.stderr)
        return _FAILED


if __name__ == "__main__":
    sys.exit(main())
