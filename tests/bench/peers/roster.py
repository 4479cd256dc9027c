"""The peers and the virtual environment that each lives in; config/setup.sh makes them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Entry:
    """``name`` is the module in loaders/; ``environment`` a folder, and requirements-*.txt says what is in it."""

    name: str
    title: str
    environment: str
    settings: tuple[tuple[str, str], ...] = ()  # environment variables
    step: str = ""  # of config/bench.sh that makes it and may fail; empty: of its own name


# What glibc frees stays with the process: arrays of a batch's size are not mapped and zeroed anew each time, which helps all of them.
_KEEP = (("MALLOC_MMAP_THRESHOLD_", str(1 << 30)), ("MALLOC_TRIM_THRESHOLD_", str(1 << 31)))
_TENSORFLOW = (*_KEEP, ("TF_CPP_MIN_LOG_LEVEL", "3"), ("CUDA_VISIBLE_DEVICES", ""))

ROSTER = (
    Entry("millrace", "Millrace, exact", "venv-peers"),
    Entry("millrace_fast", "Millrace, fast", "venv-peers"),
    Entry("torchvision", "torchvision, tensors", "venv-peers", _KEEP),
    Entry("torchvision_decoded", "torchvision, decoded before", "venv-peers", _KEEP),
    Entry("torchvision_pil", "torchvision, PIL images", "venv-peers", _KEEP),
    Entry("pillow_simd", "Pillow-SIMD", "venv-peers-simd", _KEEP),
    Entry("pillow_simd_decoded", "Pillow-SIMD, decoded before", "venv-peers-simd", _KEEP, step="pillow_simd"),
    Entry("pillow", "Pillow", "venv-peers", _KEEP),
    Entry("opencv", "OpenCV, linear", "venv-peers", _KEEP),
    Entry("opencv_area", "OpenCV, area", "venv-peers", _KEEP),
    Entry("simplejpeg", "simplejpeg + OpenCV", "venv-peers", _KEEP),
    Entry("pyvips", "pyvips", "venv-peers", (*_KEEP, ("VIPS_CONCURRENCY", "1"))),
    Entry("spdl", "SPDL", "venv-peers", _KEEP),
    Entry("dali", "DALI (CPU)", "venv-peers", _KEEP),
    Entry("ffcv", "FFCV", "venv-peers", _KEEP),
    Entry("ffcv_raw", "FFCV, raw", "venv-peers", _KEEP, step="ffcv"),
    Entry("tfdata", "tf.data", "venv-peers-tf", _TENSORFLOW),
    Entry("tfdata_cache", "tf.data, cache()", "venv-peers-tf", _TENSORFLOW, step="tfdata"),
)


def interpreter(entry: Entry, environments: Path) -> Path:
    return environments / entry.environment / "bin" / "python"


def why_missing(entry: Entry, environments: Path) -> str | None:
    """Why this peer cannot run here; None: it can, as far as one can tell without starting it."""
    note = environments / f"peers.{entry.step or entry.name}.failed"
    if note.exists():
        return note.read_text().strip()
    if interpreter(entry, environments).exists():
        return None
    return f"there is no {entry.environment}; config/setup.sh bench --peers makes it"
