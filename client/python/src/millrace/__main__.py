"""``python -m millrace DIR``: a contact sheet of a folder's pictures, in the terminal or as PNG; without a terminal a list of them.

``python -m millrace COMMAND`` runs a command: see ``_COMMANDS``.
"""

from __future__ import annotations

import argparse
import importlib
import os
import shutil
import sys
from pathlib import Path

import millrace
from millrace._sheets import sheet as _sheet
from millrace._sheets.preview import Pictures, pictures_in, preview_of
from millrace._wire.messages import path_text

_FAILED, _UNREACHABLE, _INTERRUPTED = 1, 3, 130
_COMMANDS = {"index": "millrace._shards.command", "list": "millrace._commands.listing"}
_EPILOG = """\
exit status: 0 fine, 1 failed, 2 wrong usage, 3 daemon unreachable, 130 interrupted

Commands, each with its own --help (of a folder with such a name write ./list):
  python -m millrace index SHARDS            make the indexes of tar shards that are missing
  python -m millrace list SOURCE -o FILE     write a dataset's samples as JSON lines
"""
_MARGIN = 4  # pixels between pictures, as _sheet has it


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m millrace",
        description="A contact sheet of the pictures in a folder, made by the daemon: a running one, else a private one.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, help="its pictures (JPEG, PNG, WebP, ...), and those beneath it")
    parser.add_argument("-n", "--count", type=int, default=24, help="how many, evenly spread over the folder (24)")
    parser.add_argument("-o", "--output", type=Path, help="write a PNG file; without: pictures to a terminal with colours, else a list")
    parser.add_argument("--side", type=int, help="pixels of a picture's longer side (160; in the terminal as fits)")
    parser.add_argument("--columns", type=int, default=6, help="pictures in a row (6)")
    parser.add_argument("--socket", help="the daemon's; none: $MILLRACE_SOCKET, else the service's, else a private daemon")
    given = parser.parse_args()
    if not given.folder.is_dir():
        parser.error(
            f"{given.folder} is not a folder; millrace preview shows a list, which python -m millrace list writes of shards and tables"
        )
    if given.count < 1 or given.columns < 1 or (given.side is not None and not 2 <= given.side <= 4096):
        parser.error("--count and --columns are at least 1, --side is 2 to 4096")
    return given


def _run(given: argparse.Namespace, pictures: Pictures) -> int:
    in_colours = given.output is None and sys.stdout.isatty() and "NO_COLOR" not in os.environ
    columns = min(given.columns, given.count, len(pictures.paths))
    room = max(2, (shutil.get_terminal_size().columns - _MARGIN) // columns - _MARGIN)
    side = given.side or (room if in_colours else 160)
    seen = preview_of(pictures, given.count, side, columns, given.socket)
    for one in seen.bad:
        assert one.error is not None
        print(f"{one.error.source}: {one.error.message}", file=sys.stderr)
    if in_colours:
        print(*_sheet.text(seen.sheet), sep="\n")
        return 0
    said = f"{len(seen.shown)} pictures of {path_text(given.folder)}"
    if given.output is not None:
        seen.save(given.output)
        print(f"{said}: {path_text(given.output)}")
        return 0
    print(f"{said}, which has {seen.found}:", *seen.lines(len(seen.shown)), sep="\n")
    print(f"To see them: -o FILE.png; in a notebook, in a cell: import millrace; millrace.preview({str(given.folder)!r})")
    return 0


def main() -> int:
    """Runs the command line; its exit status."""
    if len(sys.argv) > 1 and sys.argv[1] in _COMMANDS:
        status: int = importlib.import_module(_COMMANDS[sys.argv[1]]).main(sys.argv[2:])
        return status
    given = _arguments()
    try:
        pictures = pictures_in(given.folder)
    except millrace.NotFound as why:
        print(f"millrace: {why}", file=sys.stderr)
        return _FAILED
    try:
        return _run(given, pictures)
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
