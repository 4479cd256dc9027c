#!/usr/bin/env python3
"""What has to be built for a selection of tests: `ctest --show-only=json-v1 ... | needed_targets.py BUILD`, one of ninja's targets a line.

A test names in its property REQUIRED_FILES what it needs. A test without that property needs everything, which is ninja's target `all`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def required_by(test: dict[str, Any]) -> list[str] | None:
    """The files of a test's REQUIRED_FILES; None where it has no such property."""
    for held in test.get("properties", []):
        if held["name"] == "REQUIRED_FILES":
            return list(held["value"])
    return None


def needed(tests: list[dict[str, Any]], build: Path) -> list[str]:
    """Targets of ``build`` for ``tests``."""
    targets: set[str] = set()
    for test in tests:
        required = required_by(test)
        if required is None:
            return ["all"]
        files = [Path(file).resolve() for file in required]
        targets |= {str(file.relative_to(build)) for file in files if file.is_relative_to(build)}
    return sorted(targets)


def main() -> None:
    print("\n".join(needed(json.load(sys.stdin)["tests"], Path(sys.argv[1]).resolve())))


if __name__ == "__main__":
    main()
