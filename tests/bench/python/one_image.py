"""One image's way through an idle daemon: from ``submit()`` to the array, less what its stages took of it by the sample's own record."""

from __future__ import annotations

import argparse
import io
import os
import time
from pathlib import Path
from typing import Any

import millrace
import numpy as np
from PIL import Image

SIDE, USUAL, LARGE = 32, 200_000, 1_000_000  # pixels; bytes
STAGES = ("fetch_us", "decode_us", "transform_us")
WARM_UP = 30


def tiny() -> bytes:
    kept = io.BytesIO()
    Image.fromarray(np.random.default_rng(1).integers(0, 255, (SIDE, SIDE, 3), np.uint8)).save(kept, "jpeg")
    return kept.getvalue()


def ask(session: millrace.Session, source: bytes | str, rounds: int) -> np.ndarray[Any, Any]:
    """Microseconds of each round beside the stages."""
    beside = np.empty(rounds)
    for n in range(-WARM_UP, rounds):
        began = time.perf_counter_ns()
        batch = session.get(session.submit([source]))
        pixels = batch.images.numpy()
        took = (time.perf_counter_ns() - began) / 1e3
        assert pixels.shape == (1, 3, SIDE, SIDE)
        record = batch.records[0]
        if n >= 0:
            beside[n] = took - sum(int(record[name]) for name in STAGES)
        del pixels, record
        batch.release()
    return beside


def one_image(given: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Medians and 99th percentiles; ``folder`` of photographs."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    usual = min(files, key=lambda path: abs(path.stat().st_size - USUAL))
    photograph = usual.read_bytes()
    sources: dict[str, bytes | str] = {
        "tiny": tiny(),
        "inline": photograph,
        "path": os.fspath(usual),
        "large": photograph + bytes(LARGE - len(photograph)),  # decoders stop at the picture's end
    }
    figures = {}
    with millrace.serve(folder, lanes=1) as daemon, millrace.connect(daemon.address) as client:
        recipe = millrace.Recipe(resize=millrace.ExactSize(millrace.Size(SIDE, SIDE)))
        with client.session(recipe, batch=1, slots=2, cache="off") as session:
            for name, source in sources.items():
                beside = ask(session, source, 200 * given.rounds)
                figures[f"{name}_us"] = float(np.median(beside))
                figures[f"{name}_p99_us"] = float(np.percentile(beside, 99))
    return figures
