"""A bar while the daemon lists a large folder or shards are indexed, drawn by tqdm where there is one and somebody who looks at it."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

_PATIENCE = 1.0  # seconds without a bar


class ListingBar:
    """Call it with the number of files or the like done so far. Within ``with``; leaves nothing on the screen. Belongs to one thread."""

    def __init__(self, path: str, doing: str = "listing", unit: str = " files") -> None:
        self._what, self._unit = f"{doing} {path}", unit
        self._began = time.monotonic()
        self._bar: Any = None
        self._wanted = _watched()

    def __call__(self, files: int) -> None:
        if self._bar is None and self._wanted and time.monotonic() - self._began >= _PATIENCE:
            self._bar = _tqdm_bar(self._what, self._unit)
            self._wanted = self._bar is not None
        if self._bar is not None:
            self._bar.update(files - self._bar.n)

    def __enter__(self) -> ListingBar:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.close()


def _watched() -> bool:
    """Whether stderr is a terminal's or a notebook's."""
    return "ipykernel" in sys.modules or bool(sys.stderr is not None and sys.stderr.isatty())


def _tqdm_bar(what: str, unit: str) -> Any:
    """None where tqdm is not installed."""
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    return tqdm(desc=what, unit=unit, leave=False)
