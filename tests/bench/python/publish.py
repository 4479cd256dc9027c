#!/usr/bin/env python3
"""Puts a run's figures into the tables of the documents, with their aims, met or missed. config/setup.sh bench --publish calls it.

publish.py RESULTS        a folder that has service.jsonl, resample.jsonl (lines of JSON, the machine first), python.json, kernels.json,
                              policy.jsonl, and load.txt, the machine's load before it was measured
"""

from __future__ import annotations

import datetime
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parents[3]

# What a figure has to be: (of what, at least or at most, bound).
AIMS = {
    "handover.p50": ("value", "most", 80),
    "handover.p99": ("value", "most", 400),
    "handover.x10.p50": ("value", "most", 80),
    "service.efficiency.1": ("ratio", "least", 0.95),
    "service.efficiency.2": ("ratio", "least", 0.95),
    "daemon.scaling": ("ratio", "least", 1.9),
    "service.ceiling": ("value", "least", 121_000),
    "control.cpu": ("value", "most", 3),
    "fetch.cpu": ("value", "most", 20),
    "cache.epoch.1": ("ratio", "least", 0.97),
    "cache.share.4.first": ("ratio", "most", 2.9),
    "cache.share.4.later": ("ratio", "most", 4.2),
    "daemon.rss": ("value", "most", 150),
    "daemon.rss.growth": ("ratio", "most", 1.05),
    "idle.cpu": ("value", "most", 0.1),
    "reclaim.p99": ("value", "most", 100),
    "open.caller": ("value", "most", 5),
    "isolation.cost": ("ratio", "least", 0.93),
    "fair.error": ("value", "most", 5),
    "jpeg.entropy": ("ratio", "least", 2.3),
    "jpeg.entropy.indexed": ("ratio", "least", 2.4),
    "jpeg.decode.exact": ("ratio", "least", 1.9),
    "train.exact.first": ("ratio", "least", 1.9),
    "train.fast.first": ("ratio", "least", 2.1),
    "train.fast.indexed": ("ratio", "least", 2.7),
    "train.exact.recording": ("ratio", "least", 0.97),
    "train.exact.packed": ("ratio", "least", 2.3),
    "train.exact.packed.avx2": ("ratio", "least", 1.7),
    "packed.size": ("ratio", "most", 1.2),
    "packed.encode": ("value", "most", 30),
    "packed.encode.memory": ("value", "most", 70),
    "resample.exact": ("ratio", "least", 3),
    "resample.fast": ("ratio", "least", 4),
    "latency.overhead.tiny": ("value", "most", 60),
    "latency.overhead.inline": ("value", "most", 60),
    "latency.overhead.path": ("value", "most", 60),
    "latency.overhead.large": ("value", "most", 60),
    "one_image.tiny_us": ("value", "most", 150),
    "one_image.inline_us": ("value", "most", 150),
    "one_image.path_us": ("value", "most", 150),
    "one_image.large_us": ("value", "most", 150),
    "client.p50_us": ("value", "most", 150),
    "throughput.ratio": ("value", "least", 0.93),
    "throughput.list_ratio": ("value", "least", 0.93),
    "throughput.sampler_ratio": ("value", "least", 0.93),
    "dataloader.all.ratio": ("value", "least", 6.0),
    "in_place.unwritten_us": ("value", "most", 300),
    "in_place.written_us": ("value", "most", 1000),
    "processors.ratio": ("value", "least", 0.95),
    "import.all_ms": ("value", "most", 150),
}

ATTACKS = "priority sessions giants sparse padded missing links tiny refused cancels statistics cancelled"
AIMS |= {f"fair.victim.{attack}": ("ratio", "least", 0.8) for attack in ATTACKS.split()}

# Which figures stand in which table; by how their names begin.
TABLES = {
    "service": (
        TOP / "tests/bench/README.md",
        ("handover.", "latency.submit_to_view", "latency.overhead", "service.", "control.", "fetch.", "daemon.", "cache."),
    ),
    "neighbours": (TOP / "tests/bench/README.md", ("fair.", "latency.busy", "idle.", "reclaim.", "open.caller", "isolation.")),
    "python": (
        TOP / "tests/bench/README.md",
        ("client.", "throughput.", "dataloader.", "one_image.", "in_place.", "processors.", "steady.", "import."),
    ),
    "engine": (TOP / "daemon/doc/cpu_engine.md", ("jpeg.", "train.", "infer.", "packed.", "resample.")),
}
POLICY = TOP / "tests/bench/README.md"
# By what millrace_bench_cache_policy calls them.
POLICY_COLUMNS = {
    "policy": "policy",
    "policy, rates known, not orders": "rates known, not orders",
    "policy, nothing known": "nothing known",
    "least recently used": "least recently used",
    "first in first out, in two halves": "two generations",
    "who is in stays (MinIO)": "who is in stays (MinIO)",
    "always the same, knowing which": "fixed",
    "best, nothing made at first touch": "second touch",
}
STAGES = TOP / "daemon/doc/cpu_engine.md"
KERNELS = TOP / "kernels/cpu/README.md"
KERNEL_COLUMNS = ("scalar", "avx2", "avx512bw", "avx512", "reference")


def number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def verdict(figure: dict[str, Any]) -> str:
    """Its aim, and whether it is missed."""
    if figure["name"] not in AIMS:
        return ""
    what, side, bound = AIMS[figure["name"]]
    is_met = figure[what] >= bound if side == "least" else figure[what] <= bound
    unit = " x" if what == "ratio" else f" {figure['unit']}".rstrip()
    return f"at {side} {bound}{unit}" + ("" if is_met else ", **missed**")


def table(figures: Iterable[dict[str, Any]]) -> str:
    lines = ["| figure | value | beside | ratio | aim |", "|---|---|---|---|---|"]
    for figure in figures:
        beside = figure.get("baseline")
        compared = f"{beside['name']} {number(beside['value'])}" if beside else ""
        other = "; ".join(text for text in (compared, figure.get("note", "")) if text)
        ratio = f"{figure['ratio']:.3g} x" if "ratio" in figure else ""
        lines.append(
            f"| `{figure['name']}` | {number(figure['value'])} {figure['unit']}".rstrip() + f" | {other} | {ratio} | {verdict(figure)} |"
        )
    return "\n".join(lines)


def kernels_table(results: dict[str, Any]) -> str:
    """A row for each work of millrace_bench_kernels, a column for each instruction set: microseconds of processor time."""
    rows: dict[str, dict[str, str]] = {}
    for found in results["benchmarks"]:
        work, _, column = found["name"].rpartition("/")
        rows.setdefault(work, {})[column] = number(found["cpu_time"])
    lines = [f"| us | {' | '.join(KERNEL_COLUMNS)} |", "|---" * (len(KERNEL_COLUMNS) + 1) + "|"]
    lines += [f"| {work} | {' | '.join(row.get(column, '') for column in KERNEL_COLUMNS)} |" for work, row in rows.items()]
    return "\n".join(lines)


def stages_table(figures: Iterable[dict[str, Any]]) -> str:
    """A row for each stage of engine.STAGE.TARGET, a column for each instruction set."""
    rows: dict[str, dict[str, str]] = {}
    for figure in figures:
        stage, _, target = figure["name"].removeprefix("engine.").rpartition(".")
        row = rows.setdefault(stage, {"unit": figure["unit"], "note": figure["note"]})
        row[target] = number(figure["value"])
    columns = KERNEL_COLUMNS[:-1]
    lines = [f"| stage | {' | '.join(columns)} | |", "|---" * (len(columns) + 2) + "|"]
    lines += [
        f"| `{stage}`, {row['unit']} | {' | '.join(row.get(column, '') for column in columns)} | {row['note']} |"
        for stage, row in rows.items()
    ]
    return "\n".join(lines)


def policy_table(lines: Iterable[dict[str, Any]]) -> str:
    """A row for each trace of millrace_bench_cache_policy: seconds saved, in per cent of the best possible; then what its calls take."""
    rows: dict[str, dict[str, str]] = {}
    calls = []
    for line in lines:
        if "call" in line:
            calls.append(f"`{line['call']}` {number(line['ns'])} ns")
        else:
            shown = "less than nothing" if line["of_best"] < 0 else f"{100 * line['of_best']:.1f}"
            row = rows.setdefault(line["trace"], {})
            row[line["who"]] = shown
            if line["who"] == "policy":
                row["hits"] = f"{100 * line['hit_ratio']:.1f} %"
    head = [f"| trace | hits | {' | '.join(POLICY_COLUMNS.values())} |", "|---" * (len(POLICY_COLUMNS) + 2) + "|"]
    head += [f"| {trace} | {row['hits']} | {' | '.join(row.get(who, '') for who in POLICY_COLUMNS)} |" for trace, row in rows.items()]
    return "\n".join([*head, "", f"Calls, with four datasets in use and 320,000 entries: {', '.join(calls)}."])


def published(page: str, name: str, text: str) -> str:
    """The page with ``text`` between the table's marks, in the place of what is there."""
    begin, end = f"<!-- {name}: written by config/setup.sh bench --publish from here -->", f"<!-- {name}: to here -->"
    before, rest = page.split(begin)
    return f"{before}{begin}\n\n{text}\n\n{end}{rest.split(end)[1]}"


def of_python(results: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """bench.py's results as figures; what a list holds is its last value beside its first."""
    figures = []
    for group, values in results.items():
        for name, value in values.items():
            last, first = (value[-1], value[0]) if isinstance(value, list) else (value, None)
            figure: dict[str, Any] = {"name": f"{group}.{name}", "value": last, "unit": ""}
            figures.append(figure if first is None else {**figure, "baseline": {"name": "after a tenth", "value": first}})
    return figures


def main() -> None:
    results = Path(sys.argv[1])
    machine, *figures = (json.loads(line) for line in (results / "service.jsonl").read_text().splitlines())
    figures += [json.loads(line) for line in (results / "resample.jsonl").read_text().splitlines()[1:]]
    figures += of_python(json.loads((results / "python.json").read_text()))
    load = (results / "load.txt").read_text().strip()
    today = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
    about = (
        f"{machine['processor']}, {machine['cores']} cores, g++ {machine['compiler']}, gRPC {machine['grpc']}, {today}, load before {load}:"
    )
    for name, (page, beginnings) in TABLES.items():
        chosen = [figure for figure in figures if figure["name"].startswith(beginnings)]
        page.write_text(published(page.read_text(), name, f"{about}\n\n{table(chosen)}"))
    stages = stages_table(figure for figure in figures if figure["name"].startswith("engine."))
    STAGES.write_text(published(STAGES.read_text(), "stages", f"{about}\n\n{stages}"))
    kernels = kernels_table(json.loads((results / "kernels.json").read_text()))
    policy = policy_table(json.loads(line) for line in (results / "policy.jsonl").read_text().splitlines())
    POLICY.write_text(published(POLICY.read_text(), "policy", policy))
    KERNELS.write_text(published(KERNELS.read_text(), "kernels", f"{about}\n\n{kernels}"))


if __name__ == "__main__":
    main()
