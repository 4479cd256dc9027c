#!/usr/bin/env python3
"""One peer in a process of its own, pinned to its cores before any library is loaded. Started by bench.py.

worker.py PEER CORES WORK     CORES as 0 or 0,1; then one JSON object a line on stdin, one answer a line on stdout
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CORES = [int(core) for core in sys.argv[2].split(",")]
os.sched_setaffinity(0, CORES)

import numpy as np  # noqa: E402

from processes import processor_seconds  # noqa: E402
from work import MEAN, SIDE, STD, read_work  # noqa: E402

SETTLE = 0.05  # seconds in which what is put off still counts as processor time


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries that print do not get in between
    work = read_work(Path(sys.argv[3]))
    try:
        peer = importlib.import_module(f"loaders.{sys.argv[1]}").Loader(work, len(CORES))
        about = {name: getattr(peer, name) for name in ("antialias", "output", "recipes", "decodes", "given_boxes", "tuned")}
        answer(answers, {"ready": True, "versions": peer.versions(), **about})
        for line in sys.stdin:
            request = json.loads(line)
            answer(answers, ACTIONS[request.pop("action")](peer, **request))
        peer.close()
    except Exception as why:
        traceback.print_exc()
        answer(answers, {"failed": f"{type(why).__name__}: {why}".splitlines()[0]})
        sys.exit(1)


def answer(stream: Any, what: dict[str, Any]) -> None:
    print(json.dumps(what), file=stream, flush=True)


def timed(peer: Any, recipe: str, number: int, count: int) -> dict[str, Any]:
    return {"passes": timed_passes(peer.passes(recipe, number, count))}


def warm_up(peer: Any, recipe: str) -> dict[str, Any]:
    return {"passes": timed_passes(peer.warm_up(recipe))}


def timed_passes(passes: Iterator[Any]) -> list[dict[str, Any]]:
    """Each from nothing to the last batch."""
    found = []
    for made in passes:
        gc.collect()  # not in the middle, and nothing of the pass before is left
        cpu, began, images = processor_seconds(os.getpid()), time.monotonic(), 0
        for batch in made.run():
            images += len(batch)
            del batch
        seconds = time.monotonic() - began
        time.sleep(SETTLE)
        cpu = processor_seconds(os.getpid()) - cpu
        if images != made.images:
            raise ValueError(f"{images} images came of {made.images}")
        found.append({"row": made.row, "images": images, "seconds": seconds, "cpu": cpu})
        found[-1] |= {"note": made.note(), "kept": made.kept()}
    return found


def pixels(peer: Any, folder: str, count: int) -> dict[str, Any]:
    """The first ``count`` images, as float32 in 0 ... 255 before normalisation, to FOLDER/RECIPE.ROW.npy."""
    scale, shift = 255 * np.array(STD, np.float32), 255 * np.array(MEAN, np.float32)
    rows = []
    for recipe in peer.recipes:
        for made in peer.passes(recipe, 0, count):
            out = np.empty((count, 3, SIDE, SIDE), np.float32)
            done = 0
            for batch in made.run():
                array = peer.array(batch)[: count - done].astype(np.float32)
                if array.shape[1:] != out.shape[1:]:
                    raise ValueError(f"{recipe}: shape {array.shape}")
                out[done : done + len(array)] = array * scale[:, None, None] + shift[:, None, None]
                done += len(array)
                if done == count < made.images:
                    break
            np.save(Path(folder, f"{recipe}.{made.row}.npy"), out)
            rows.append(made.row)
    return {"rows": sorted(set(rows))}


ACTIONS = {"warm_up": warm_up, "timed": timed, "pixels": pixels}

if __name__ == "__main__":
    main()
