#!/usr/bin/env python3
"""What tests did not check, and why: how they say so, and the list of it that config/setup.sh test and .ci/run end with.

    skips.py TITLE=FILE...      prints what the files hold; without titles where there is one file

A test script calls skip(), or skip_all() in the place of everything it does; a conftest.py imports the two hooks, so that pytest's own skips
are in the list. tests/support/skip.h is the same for C++.
"""

from __future__ import annotations

import collections
import os
import sys
from pathlib import Path
from typing import Any, NoReturn

STATUS = 77
"""What ctest counts as skipped."""


def skip(what: str, where: str = "") -> None:
    """Says that ``what`` was not checked; it holds the reason as well, and is the same for checks that are skipped for the same reason."""
    print(f"SKIPPED: {what}", flush=True)
    path = os.environ.get("MILLRACE_SKIPPED")
    if path:
        line = f"{where or Path(sys.argv[0]).stem}\t{' '.join(what.split())}\n"
        with open(path, "ab", buffering=0) as file:  # one write, so that lines of several programs do not mix
            file.write(line.encode())


def skip_all(what: str, where: str = "") -> NoReturn:
    """Ends the program as a test that ctest counts as skipped."""
    skip(what, where)
    sys.exit(STATUS)


def pytest_runtest_logreport(report: Any) -> None:
    """A hook: pytest has skipped a test."""
    if report.skipped and not hasattr(report, "wasxfail"):
        _skipped_by_pytest(report)


def pytest_collectreport(report: Any) -> None:
    """A hook: pytest has skipped a whole file."""
    if report.skipped:
        _skipped_by_pytest(report)


def _skipped_by_pytest(report: Any) -> None:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    skip(reason.removeprefix("Skipped: "), report.nodeid.partition("::")[0].rpartition("/")[2])


def listed(text: str) -> list[str]:
    """Lines for people: how often, what, and where, the most frequent first."""
    places: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for line in text.splitlines():
        where, _, what = line.partition("\t")
        places[what][where] += 1
    rows = sorted(places.items(), key=lambda row: (-row[1].total(), row[0]))
    return [f"{found.total():5} x  {what}  ({', '.join(sorted(found))})" for what, found in rows]


def main() -> None:
    titled = [argument.partition("=")[::2] for argument in sys.argv[1:]]
    texts = {title: Path(file).read_text(errors="replace") if Path(file).exists() else "" for title, file in titled}
    for title, file in titled:
        if not Path(file).exists():
            print(f"No test ran: {title}.")
    total = sum(len(text.splitlines()) for text in texts.values())
    print(f"Skipped: {total} check{'s' if total > 1 else ''}." if total else "Skipped: nothing.")
    for title, text in texts.items():
        if text and len(texts) > 1:
            print(f"  {title}:")
        print("".join(f"{line}\n" for line in listed(text)), end="")


if __name__ == "__main__":
    main()
