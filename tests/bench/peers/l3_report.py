"""The tables that l3.py prints, from what it measured. Needs nothing but Python."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from figures import ratio_in_rounds, spread

Times = dict[tuple[str, str, str], list[float]]  # seconds, by peer, pass and set
PEER_TITLES = {
    "libpng": "libpng, by imagecodecs",
    "pillow": "Pillow's PNG",
    "kornia_rs": "kornia-rs' PNG",
    "dali": "DALI's PNG, CPU",
    "qoi": "QOI",
    "webp": "lossless WebP",
    "jpeg_xl_1": "JPEG XL, effort 1",
    "jpeg_xl_3": "JPEG XL, effort 3",
    "lz4": "LZ4",
}
OUR_TITLES = {
    "png": "Millrace's PNG",
    "l3.scalar": "L3 without vectors",
    "l3.avx2": "L3 with AVX2",
    "l3.avx512": "L3 with AVX-512 VBMI",
    "fast": "L3, encoder, fast",
    "best": "L3, encoder, best",
}
OF_SIZES = ("qoi", "webp", "jpeg_xl_1", "jpeg_xl_3", "lz4")
PAPER_7A = {"1280x720": (5.67, 2.41), "1920x1080": (9.29, 3.25), "3840x2160": (15.71, 4.51)}  # beside PNG, beside lossless WebP; A100


@dataclass(frozen=True)
class Measured:
    sets: list[dict[str, Any]]
    speed_sets: Sequence[str]
    load_sizes: Sequence[str]
    sizes: dict[str, dict[str, float | None]]  # bytes, by set and format
    times: Times
    epochs: dict[str, list[list[float]]]  # images/s by what the cache keeps, a list a round
    notes: list[str]

    def raw(self, name: str) -> int:
        return next(found["raw_bytes"] for found in self.sets if found["name"] == name)

    def rate(self, peer: str, what: str, name: str) -> float | None:
        """GB/s of pixels."""
        found = spread(self.times.get((peer, what, name), ()))
        return self.raw(name) / found.median / 1e9 if found else None

    def faster(self, ours: str, other: tuple[str, str], name: str) -> float | None:
        """How many times our pass takes less time than that of (peer, pass)."""
        return self.times_as_long((other[0], other[1]), ("millrace", ours), name)

    def times_as_long(self, one: tuple[str, str], other: tuple[str, str], name: str) -> float | None:
        first, second = (dict(enumerate(self.times.get((*key, name), ()))) for key in (one, other))
        found = ratio_in_rounds(first, second)
        return found.median if found else None

    def share(self, name: str, of: str = "raw") -> float:
        beside = self.raw(name) if of == "raw" else self.sizes[name][of]
        return (self.sizes[name]["l3"] or 0) / (beside or 1)

    def epoch(self, cache: str, number: int) -> float:
        found = spread(rates[number] for rates in self.epochs[cache])
        return found.median if found else 0

    def epoch_ratio(self, number: int) -> float | None:
        kept, nothing = (dict(enumerate(rates[number] for rates in self.epochs[cache])) for cache in ("packed", "off"))
        found = ratio_in_rounds(kept, nothing)
        return found.median if found else None


@dataclass(frozen=True)
class Aim:
    figure: str
    value: float | None
    unit: str
    bound: float
    at_least: bool

    def cells(self) -> list[str]:
        aim = f"at {'least' if self.at_least else 'most'} {self.bound:g}{self.unit}"
        if self.value is None:
            return [self.figure, "not measured", aim, "not measured"]
        met = self.value >= self.bound if self.at_least else self.value <= self.bound
        return [self.figure, f"{self.value:.4g}{self.unit}", aim, "met" if met else "**missed**"]


def aims(found: Measured) -> Iterator[Aim]:
    for name, title, of, bound in (
        ("kodak", "Kodak", "raw", 0.470),
        ("photographs", "photographs", "raw", 0.455),
        ("screens", "screens and documents", "png", 1.4),
        ("rgba", "RGBA", "png", 0.9),
        ("ct_mr", "CT and MR of 16 bits", "png", 0.8),
        ("random", "random", "raw", 1.002),
        ("black", "black", "raw", 0.004),
    ):
        yield Aim(f"size, {title}", found.share(name, of), " x PNG" if of == "png" else " of raw", bound, False)
    libpng = ("libpng", "decode")
    yield Aim("decode, Kodak, AVX-512 VBMI", found.rate("millrace", "l3.avx512", "kodak"), " GB/s", 6, True)
    yield Aim("decode, Kodak, AVX2", found.rate("millrace", "l3.avx2", "kodak"), " GB/s", 2.5, True)
    yield Aim("decode, Kodak, AVX2", found.faster("l3.avx2", libpng, "kodak"), " x libpng", 18, True)
    for name in ("kodak", found.load_sizes[-1]):
        best = "l3.avx512" if ("millrace", "l3.avx512", name) in found.times else "l3.avx2"
        crop = found.times_as_long(("millrace", "crop"), ("millrace", best), name)
        yield Aim(f"a quarter of each side as crop, {name}", crop, " of the whole picture's time", 0.15, False)
    yield Aim("encode, Kodak, fast", found.rate("millrace", "fast", "kodak"), " GB/s", 0.4, True)
    yield Aim("encode, Kodak, best", found.rate("millrace", "best", "kodak"), " GB/s", 0.1, True)
    for size in found.load_sizes:
        yield Aim(f"load and decode, {size}", found.faster("load.l3", ("libpng", "load"), size), " x libpng", 12, True)
    yield Aim("third epoch of 2048x1024 PNG files", found.epoch_ratio(2), " x nothing kept", 4, True)


def print_report(found: Measured) -> None:
    print(f"{processor()}, {os.cpu_count()} cores, {datetime.date.today().isoformat()}, load {' '.join(loads())}.", *found.notes)
    print_sizes(found)
    print_speeds(found)
    print_loads(found)
    print("\nEpochs of RandomResizedCrop 224, 2048x1024 PNG files, images/s:")
    kinds = [("nothing kept", "off"), ("what the cache keeps", "packed")]
    numbers = range(len(found.epochs["off"][0]))
    print_table(["epoch", *map(str, (number + 1 for number in numbers))])
    for title, cache in kinds:
        print_row([title, *(f"{found.epoch(cache, number):,.0f}" for number in numbers)])
    print_row(["times as fast", *(ratio(found.epoch_ratio(number)) for number in numbers)])
    print("\nAims:")
    print_table(["figure", "value", "aim", ""])
    for aim in aims(found):
        print_row(aim.cells())


def print_sizes(found: Measured) -> None:
    print("\nSizes, of raw samples (the paper's table 4 with sets of our own):")
    peers = [name for name in OF_SIZES if any(name in of_set for of_set in found.sizes.values())]
    print_table(["set", "pictures", "MB", "PNG", "L3", "L3 beside PNG", *(PEER_TITLES[name] for name in peers)])
    for about in found.sets:
        sizes, raw = found.sizes[about["name"]], about["raw_bytes"]
        shares = [share(sizes[name], raw) for name in ("png", "l3")]
        row = [about["title"], str(about["pictures"]), f"{raw / 1e6:.1f}", *shares, ratio(found.share(about["name"], "png"))]
        print_row([*row, *(share(sizes.get(name), raw) for name in peers)])


def print_speeds(found: Measured) -> None:
    print("\nDecoding in memory, GB/s of pixels, and how many times as fast as libpng:")
    titles = {found_set["name"]: found_set["title"] for found_set in found.sets}
    print_table(["", *(titles[name] for name in found.speed_sets)])
    passes = [(title, peer, "decode") for peer, title in PEER_TITLES.items()]
    passes += [(title, "millrace", what) for what, title in OUR_TITLES.items()]
    for title, peer, what in passes:
        if any((peer, what, name) in found.times for name in found.speed_sets):
            print_row([title, *(speed(found, peer, what, name) for name in found.speed_sets)])


def speed(found: Measured, peer: str, what: str, name: str) -> str:
    rate = found.rate(peer, what, name)
    if rate is None:
        return ""
    beside = found.times_as_long(("libpng", "decode"), (peer, what), name)
    return f"{rate:.3f}" if what in ("fast", "best") else f"{rate:.3f}, {ratio(beside)}"


def print_loads(found: Measured) -> None:
    print("\nLoading and decoding, ms a picture, one core (the paper's figure 7a on the CPU; its ratios are of an A100):")
    passes = [(PEER_TITLES[name], name, "load") for name in PEER_TITLES if (name, "load", found.load_sizes[0]) in found.times]
    passes += [("Millrace's PNG", "millrace", "load.png"), ("L3", "millrace", "load.l3")]
    beside = ["L3 beside libpng", "beside lossless WebP", "paper, beside PNG", "beside WebP"]
    print_table(["size", *(title for title, _, _ in passes), *beside])
    for size in found.load_sizes:
        medians = [spread(found.times.get((peer, what, size), ())) for _, peer, what in passes]
        ratios = [ratio(found.faster("load.l3", (peer, "load"), size)) for peer in ("libpng", "webp")]
        paper = [f"{value:.2f} x" for value in PAPER_7A.get(size, ())] or ["", ""]
        print_row([size, *(f"{1000 * median.median:.2f}" if median else "" for median in medians), *ratios, *paper])


def share(size: float | None, raw: float) -> str:
    return "" if size is None else f"{size / raw:.4f}" if size < raw / 100 else f"{size / raw:.3f}"


def ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.2f} x"


def print_table(titles: list[str]) -> None:
    print()
    print_row(titles)
    print("|" + "---|" * len(titles))


def print_row(cells: list[str]) -> None:
    print("| " + " | ".join(cells) + " |")


def processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown processor")


def loads() -> list[str]:
    return Path("/proc/loadavg").read_text().split()[:3]
