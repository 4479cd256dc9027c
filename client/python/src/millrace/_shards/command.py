"""``python -m millrace index SHARDS``: makes the indexes that are missing."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from millrace._core.listing_bar import ListingBar
from millrace._shards.index_files import Indexed, in_cache, indexed
from millrace._shards.sources import shards_of
from millrace._wire.messages import path_text
from millrace.errors import Error

_FAILED, _INTERRUPTED = 1, 130


def main(arguments: Sequence[str]) -> int:
    """Runs the command; its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m millrace index",
        description="Makes the indexes of tar shards that are missing or older than their shards. Several processes share the work.",
        epilog="exit status: 0 fine, 1 failed or a shard is damaged, 2 wrong usage, 130 interrupted",
    )
    parser.add_argument("shards", nargs="+", help="archives, folders of them, train-{0000..0099}.tar, 'train-*.tar'")
    parser.add_argument("--anew", action="store_true", help="make all of them, those that are there, too")
    given = parser.parse_args(arguments)
    try:
        paths = shards_of(given.shards)
        with ListingBar(f"{len(paths)} shards", "indexing", " shards") as bar:
            found = indexed(paths, bar, anew=given.anew)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except (Error, OSError) as why:
        print(f"millrace: {why}", file=sys.stderr)
        return _FAILED
    return _told(found)


def _told(found: Sequence[Indexed]) -> int:
    made = [shard for shard in found if shard.made and shard.damage is None]
    samples, members = sum(len(shard.members) for shard in found), sum(len(shard.members.offsets) for shard in found)
    print(f"{len(found)} shards, {samples} samples of {members} members; {len(made)} indexes made")
    away = [shard for shard in made if shard.kept == in_cache(shard.path)]
    if away:
        print(f"{len(away)} of them are in the cache, such as {path_text(away[0].kept)} of {path_text(away[0].path)}")
    bad = [shard for shard in found if shard.damage is not None]
    for shard in bad:
        print(f"millrace: {shard.damaged()}; it has no index", file=sys.stderr)
    for shard in made:
        if not shard.kept:
            print(f"millrace: the index of {path_text(shard.path)} could be written nowhere", file=sys.stderr)
            bad.append(shard)
    return _FAILED if bad else 0
