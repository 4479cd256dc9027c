"""Ray Data with our daemon beside Ray Data by itself: the same photographs, the same work, the same two CPUs in Ray's books.

Ours: ``millrace.ray.read_images``, whose daemon has a lane a CPU; Ray reserves all CPUs but one for it. Ray's: ``ray.data.read_images``,
fused with a ``map_batches`` that makes the shorter side 256 pixels and cuts 224 x 224 from the middle. Tuned: tasks of one CPU, as many at
once as there are; as many blocks as CPUs; OpenCV would be no help, since Ray decodes with Pillow; ``uint8``, the smallest form, which is
kinder to the side that copies more; Pillow's own resize (``reducing_gap=None``), which gives our pixels. The daemon keeps nothing
(``cache="off"``). Both run once before, so that processes are there and files are in memory.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from pathlib import Path
from typing import Any

import millrace
import numpy as np
from PIL import Image

RECIPE = millrace.Recipe(resize=millrace.ShorterSide(256), centre_crop=millrace.Size(224, 224), layout="NHWC")


def resized(row: Any) -> Any:
    """A batch of one of Ray's images: evaluate(256, 224), as torchvision does it on Pillow's images."""
    made = []
    for pixels in row["image"]:
        image = Image.fromarray(pixels)
        width, height = image.size
        short = min(width, height)
        sides = (256, 256 * height // width) if width == short else (256 * width // height, 256)
        image = image.resize(sides, Image.Resampling.BILINEAR)
        left, top = round((sides[0] - 224) / 2), round((sides[1] - 224) / 2)
        made.append(np.asarray(image.crop((left, top, left + 224, top + 224))))
    return {"image": np.stack(made)}


def sums(dataset: Any) -> list[int]:
    """Of each image's pixels, in order of size: whether both sides make the same of the same files."""
    found: list[int] = []
    for batch in dataset.iter_batches(batch_size=64, batch_format="numpy"):
        found += batch["image"].reshape(len(batch["image"]), -1).sum(axis=1, dtype=np.int64).tolist()
    return sorted(found)


def rate(dataset: Any, expected: int) -> float:
    """Images/s of one execution."""
    began, images = time.monotonic(), 0
    for batch in dataset.iter_batches(batch_size=64, batch_format="numpy"):
        assert batch["image"].shape[1:] == (224, 224, 3)
        images += len(batch["image"])
    assert images == expected, (images, expected)
    return images / (time.monotonic() - began)


def run(given: argparse.Namespace, data: Path) -> dict[str, Any]:
    """Medians of interleaved pairs over the photographs in ``data``."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import millrace.ray
    import ray

    cpus = given.lanes or len(os.sched_getaffinity(0))
    ray.init(num_cpus=cpus, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    try:
        files = sorted(str(path) for path in data.rglob("*") if path.is_file())
        ours = millrace.ray.read_images(files, RECIPE, cache="off", daemon=millrace.ray.Daemon(lanes=cpus))
        blocks = 4 * cpus
        theirs = ray.data.read_images(files, mode="RGB", override_num_blocks=blocks).map_batches(resized, batch_size=32)
        pairs = []
        if sums(ours) != sums(theirs):
            raise SystemExit("Ray's pixels are not ours")
        for number in range(given.rounds):  # who is first alternates
            sides = {"ours": ours, "theirs": theirs}
            rates = {name: rate(sides[name], len(files)) for name in (sorted(sides) if number % 2 else sorted(sides, reverse=True))}
            pairs.append((rates["ours"], rates["theirs"]))
        millrace.ray.stop_daemons()
    finally:
        ray.shutdown()
    mine, others = (statistics.median(side) for side in zip(*pairs, strict=True))
    ratio = statistics.median(a / b for a, b in pairs)
    return {"images_per_s": mine, "ray_images_per_s": others, "ratio": ratio, "pairs": [[round(a), round(b)] for a, b in pairs]}
