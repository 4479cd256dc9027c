#!/usr/bin/env python3
"""What .ci/run's time went to: `clock.py STEPS BUILDS`, tables for people.

STEPS has a line a step: its name, its seconds and its log, between tabs. LOG.clock, where there is one, has what config/setup.sh says of its
share. ctest's lines in the logs tell the tests' seconds. The logs of ninja in the folders of BUILDS that are younger than the first step tell
the objects'.
"""

from __future__ import annotations

import collections
import re
import sys
from pathlib import Path

SHOWN = 20
COLUMNS = ("installing", "compiling", "testing", "objects", "hits")
TEST = re.compile(r"^ *\d+/\d+ Test +#\d+: (\S+) \.*.*?([\d.]+) sec", re.M)


def share(clock: Path) -> collections.Counter[str]:
    """What a step says of itself, added up by kind."""
    told: collections.Counter[str] = collections.Counter()
    if clock.exists():
        for line in clock.read_text().splitlines():
            kind, _, number = line.partition("\t")
            told[kind] += int(number)
    return told


def objects(log: Path) -> dict[str, float]:
    """Seconds of each object in a ninja log of version 5."""
    spent = {}
    for line in log.read_text().splitlines()[1:]:
        fields = line.split("\t")
        if len(fields) != 5:  # cut off where a build was killed
            continue
        start, end, _, output, _ = fields
        if output.endswith(".o"):
            spent[f"{log.parent.name}: {output}"] = (int(end) - int(start)) / 1000
    return spent


def slowest(title: str, spent: dict[str, float]) -> None:
    print(f"\n{title}, {len(spent)} in all, {sum(spent.values()):.0f} s:")
    for name, seconds in sorted(spent.items(), key=lambda row: -row[1])[:SHOWN]:
        print(f"{seconds:9.1f} s  {name}")


def main() -> None:
    steps = [line.split("\t") for line in Path(sys.argv[1]).read_text().splitlines()]
    print(f"{'seconds':>9}" + "".join(f"{column:>12}" for column in COLUMNS) + "  step")
    tests: dict[str, float] = {}
    for name, seconds, log in steps:
        told = share(Path(log + ".clock"))
        print(f"{seconds:>9}" + "".join(f"{told[column] or '':>12}" for column in COLUMNS) + f"  {name}")
        for test, spent in TEST.findall(Path(log).read_text(errors="replace")):
            tests[f"{name}: {test}"] = float(spent)
    slowest("Slowest tests", tests)
    built: dict[str, float] = {}
    began = min((Path(log).stat().st_ctime - int(seconds) for _, seconds, log in steps), default=0)
    for ninja in sorted(Path(sys.argv[2]).glob("*/.ninja_log")):
        if ninja.stat().st_mtime >= began - 1:
            built |= objects(ninja)
    slowest("Slowest objects", built)


if __name__ == "__main__":
    main()
