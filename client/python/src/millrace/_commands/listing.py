"""``python -m millrace list SOURCE -o FILE``: a dataset as JSON lines, which ``millrace run``, ``preview`` and ``cache warm`` take."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from typing import IO, Any

import numpy as np

from millrace._core.listing_bar import ListingBar
from millrace._data.file_kinds import container_of
from millrace._data.file_parts import FileParts
from millrace._sheets.preview import connected
from millrace._wire.messages import path_text
from millrace.client import Client
from millrace.encoded import Encoded
from millrace.errors import DaemonUnavailable, Error, InvalidRequest, NotFound
from millrace.manifest import is_manifest, read_manifest
from millrace.recipe import Recipe
from millrace.sample_list import Samples

_FAILED, _UNREACHABLE, _INTERRUPTED = 1, 3, 130
_AT_ONCE = 16384  # samples

_HELP = """\
SOURCE is one of these:
  /data/train                       a folder, listed by the daemon, with a class for each folder in it
  list.csv, list.jsonl              a manifest
  'train-{0000..0099}.tar'          tar shards; also one of them, 'train-*.tar', and a folder of them
  'train-*.parquet'                 Parquet files with uncompressed images; also one of them, and a folder of them
  /data/saved                       a table that Hugging Face's save_to_disk() has written

Each line is {"path": ..., "offset": ..., "length": ..., "label": ...}; a whole file has no offset and length, and what
has no whole number as its label has none. Names that are not UTF-8 have \\udcXX for a byte XX.

  python -m millrace list 'train-{0000..0099}.tar' -o train.jsonl && millrace run --dataset train.jsonl

exit status: 0 fine, 1 failed, 2 wrong usage, 3 daemon unreachable, 130 interrupted
"""


def main(arguments: Sequence[str]) -> int:
    """Runs the command; its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m millrace list",
        description="Write the samples of a dataset as JSON lines, a line each, in the dataset's order.",
        epilog=_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("source", metavar="SOURCE", help="the dataset, see below")
    parser.add_argument("-o", "--output", metavar="FILE", help="written whole or not at all; without it the lines go to standard output")
    parser.add_argument("--image", help="which members of shards, or column of a table, the images are")
    parser.add_argument("--label", help="likewise the labels; '': none")
    parser.add_argument("--socket", help="the daemon's, for folders; none: $MILLRACE_SOCKET, else the service's, else a private daemon")
    given = parser.parse_args(arguments)
    try:
        samples = _samples_of(given)
        with _written(given.output) as out, ListingBar(given.source) as bar:
            for number, lines in enumerate(_lines(samples)):
                out.write(lines)
                bar(min(len(samples), (number + 1) * _AT_ONCE))
    except KeyboardInterrupt:
        return _INTERRUPTED
    except DaemonUnavailable as why:
        print(f"millrace: {why}", file=sys.stderr)
        return _UNREACHABLE
    except (Error, OSError) as why:
        print(f"millrace: {why}", file=sys.stderr)
        return _FAILED
    if given.output is not None:
        print(f"{len(samples)} samples: {path_text(given.output)}")
    return 0


def _samples_of(given: Any) -> Samples:
    source, wanted = given.source, {name: getattr(given, name) for name in ("image", "label") if getattr(given, name) is not None}
    folder = os.path.isdir(source)
    within = os.listdir(source) if folder else [source]
    kinds = set(map(container_of, within))
    if "Shards" in kinds:
        from millrace._shards.shards import Shards

        return Shards(source, **wanted)
    saved = folder and "dataset_info.json" in within
    if saved or "Parquet" in kinds:
        return _of_table(source, saved, wanted)
    if "CompressedShards" in kinds:
        raise InvalidRequest(f"list: the images of {path_text(source)} have no places of their own in its files: they are compressed")
    if wanted:
        raise InvalidRequest(f"list: {path_text(source)} has neither members nor columns: leave out --{next(iter(wanted))}")
    if is_manifest(source):
        return read_manifest(source)
    if not folder:
        if not os.path.exists(source):
            raise NotFound(f"list: {path_text(source)} is not there")
        raise InvalidRequest(f"list: {path_text(source)} is none of the sources that there are; see python -m millrace list --help")
    with connected(given.socket, source) as client:
        return _of_folder(client, source)


def _of_table(source: str, saved: bool, wanted: dict[str, Any]) -> Samples:
    from millrace._tables.byte_ranges import NotParts
    from millrace._tables.given_table import hugging_face_samples
    from millrace._tables.parquet import Parquet

    try:
        if not saved:
            return Parquet(source, wanted.get("image", "image"), wanted.get("label", "label") or None).samples()
        try:
            datasets = importlib.import_module("datasets")
        except ImportError:
            raise InvalidRequest(f"list: {path_text(source)} is read by Hugging Face's package: pip install datasets") from None
        return hugging_face_samples(Encoded(datasets.load_from_disk(source), **wanted))
    except NotParts as why:
        raise InvalidRequest(f"list: the images of {path_text(source)} have no places of their own in its files: {why}") from why


def _of_folder(client: Client, folder: str) -> Samples:
    with client.session(Recipe.evaluate(32, 32), 1, 1) as session:
        dataset = session.dataset(folder)
        paths = dataset.paths_of(range(len(dataset)))
        begin = len(dataset.path.rstrip("/")) + 1
        numbers = {name: number for number, name in enumerate(dataset.classes)}
        labels = [numbers.get(path[begin:].partition("/")[0], -1) if "/" in path[begin:] else -1 for path in paths]
    return Samples(paths, np.array(labels) if numbers else None)


def _lines(samples: Samples) -> Iterator[str]:
    """Some lines at once."""
    labels = samples.labels["label"] if isinstance(samples.labels, dict) and "label" in samples.labels else samples.labels
    known = labels if isinstance(labels, np.ndarray) and labels.dtype.kind in "iu" and labels.ndim == 1 else None
    for begin in range(0, len(samples), _AT_ONCE):
        end = min(begin + _AT_ONCE, len(samples))
        rows = list(_rows(samples.paths, begin, end))
        if known is not None:
            for row, label in zip(rows, known[begin:end].tolist(), strict=True):
                row["label"] = label
        yield "".join(json.dumps(row) + "\n" for row in rows)


def _rows(paths: Sequence[str], begin: int, end: int) -> Iterator[dict[str, Any]]:
    if not isinstance(paths, FileParts):
        yield from ({"path": path} for path in paths[begin:end])
        return
    for sample in range(begin, end):
        part = paths.part_of(sample)
        if part is None:
            yield {"path": paths.files[paths.which[sample]]}
        else:
            yield {"path": part.path, "offset": part.offset, "length": part.length}


@contextlib.contextmanager
def _written(path: str | None) -> Iterator[IO[str]]:
    """A file that has its name once all of it is on the disk; standard output without a path."""
    if path is None:
        yield sys.stdout
        return
    folder, name = os.path.split(os.path.abspath(path))
    number, beside = tempfile.mkstemp(prefix=f".{name}.", dir=folder)
    try:
        with open(number, "w", encoding="utf-8") as out:
            yield out
            out.flush()
            os.fchmod(out.fileno(), 0o666 & ~_umask())
            os.fsync(out.fileno())
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise


def _umask() -> int:
    umask = os.umask(0o077)
    os.umask(umask)
    return umask
