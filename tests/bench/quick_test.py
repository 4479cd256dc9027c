#!/usr/bin/env python3
"""The smallest run of all figures: `quick_test.py MILLRACE_BENCH MILLRACE_MAKE_PICTURES`. What the figures are nobody should quote."""

import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from skips import skip

SEGMENT = 900 << 20  # what handover.x10 takes of /dev/shm
PICTURES = 48

SERVICE = {"service.efficiency.1", "service.cpu.1", "service.ceiling", "daemon.rss", "daemon.rss.growth"}
SERVICE |= {"control.cpu", "control.cpu.many", "fetch.cpu", "service.efficiency.packed.1", "batch.tail", "observe.cost", "observe.cost.tiny"}
TWO_CORES = {"service.efficiency.packed.2", "service.efficiency.2", "service.cpu.2", "daemon.scaling"}
ENGINE = {"jpeg.entropy", "jpeg.entropy.indexed", "jpeg.entropy.restarts", "jpeg.decode.exact", "train.exact.first", "train.exact.indexed"}
ENGINE |= {"train.exact.recording", "train.fast.first", "train.fast.indexed"}
ENGINE |= {"png.decode"}
ENGINE |= {"l3.decode", "l3.decode.scalar", "l3.crop", "l3.encode.fast", "l3.encode.best"}
ENGINE |= {"infer.exact.first", "infer.exact.packed", "train.exact.packed", "train.fast.packed"}
PACKED = {"packed.size", "packed.decode", "packed.decode.avx2", "packed.encode", "packed.encode.memory", "packed.encode.avx2"}
CACHE = {"cache.epoch.1", "cache.epoch.2", "cache.epoch.3", "cache.epoch.4", "cache.share.4.first", "cache.share.4.later"}
DISK = {"cache.disk", "cache.disk.read", "service.efficiency.disk.1"}
HOST = {"idle.cpu", "reclaim.p50", "reclaim.p99"}
ISOLATION = {f"isolation.{what}{kind}" for what in ("cost", "cpu") for kind in ("", ".png", ".webp", ".progressive")}
STAGES = {"entropy.first", "entropy.index", "unpack", "unpack_and_dct.apart", "unpack_and_dct", "chroma", "colour", "across", "down"}
STAGES |= {"store.float16", "store.float32", "whole.first", "whole.index", "whole.packed"}
STAGES = {f"engine.{stage}.scalar" for stage in STAGES}
AVX2 = {"train.exact.first.avx2", "train.fast.first.avx2", "png.decode.avx2", "l3.decode.avx2"}
NEIGHBOURS = {"fair.error", "latency.busy", "fair.victim.sessions", "fair.victim.cancelled"}
HANDOVER = {"handover.p50", "handover.p99", "latency.submit_to_view", "handover.x10.p50"}


def figures_of(bench: str, pictures: str, group: str) -> dict[str, float]:
    command = [bench, "--quick", "--json", "--data", pictures, "--filter", group]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        sys.exit(f"{group}: status {ran.returncode}\n{ran.stdout}{ran.stderr}")
    machine, *figures = [json.loads(line) for line in ran.stdout.splitlines()]
    if machine["quick"] is not True:
        sys.exit(f"{group}: the figures do not say that nobody should quote them: {machine}")
    return {figure["name"]: figure["value"] for figure in figures}


def main() -> None:
    bench, make_pictures = sys.argv[1:]
    wanted = SERVICE | ENGINE | PACKED | CACHE | HOST | ISOLATION | STAGES
    groups = ["service", "control", "daemon", "batch", "jpeg", "train", "infer", "png", "l3", "packed", "engine", "cache", "idle", "isolation", "observe"]
    if " avx2" in Path("/proc/cpuinfo").read_text(encoding="utf-8"):
        wanted |= AVX2
    if os.geteuid() == 0:
        wanted |= {"open.caller"} | NEIGHBOURS
        groups += ["open.caller", "fair.", "latency.busy"]
    if len(os.sched_getaffinity(0)) > 1:
        wanted |= TWO_CORES
    if shutil.disk_usage("/dev/shm").free < SEGMENT:
        skip("figures of the hand-over: /dev/shm has less than 900 MiB free")
    else:
        wanted |= HANDOVER
        groups.append("handover")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([make_pictures, folder, str(PICTURES)], check=True)
        found: dict[str, float] = {}
        for group in groups:
            found |= figures_of(bench, folder, group)
    if DISK & set(found):
        wanted |= DISK
    else:
        skip("figures of what is kept on disk: the file system of temporary files is none where pictures are kept")
    if missing := wanted - set(found):
        sys.exit(f"figures that did not come: {sorted(missing)}; these did: {sorted(found)}")
    if odd := {name: value for name, value in found.items() if not (math.isfinite(value) and value > 0)}:
        sys.exit(f"figures that are none: {odd}")


if __name__ == "__main__":
    main()
