"""Millrace: its Python client and a private daemon, both on the peer's cores."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import millrace
import millrace.numpy

from loaders.base import Pass, Peer
from work import BATCH, SHORTER, SIDE, Sample, Work

RECIPES = {
    "train": millrace.Recipe.train(SIDE).normalised("float16"),
    "infer": millrace.Recipe.evaluate(SHORTER, SIDE).normalised("float16"),
}


class Loader(Peer):
    antialias = "yes"
    output = "float16 NCHW"
    fidelity: Any = "exact"
    tuned = "private daemon with a lane a core, millrace.numpy.Loader; both share the cores"

    def __init__(self, work: Work, cores: int) -> None:
        super().__init__(work, cores)
        self._state = ""
        self._daemon: millrace.PrivateDaemon | None = None

    def versions(self) -> str:
        with millrace.serve(self.work.folder) as daemon, millrace.connect(daemon.address) as client:
            return client.statistics().daemon_version

    def epoch(self, recipe: str, samples: Sequence[Sample]) -> Callable[[], Iterator[Any]]:
        raise NotImplementedError("the daemon draws by itself: see passes()")

    def passes(self, recipe: str, number: int, count: int) -> Iterator[Pass]:
        """Two passes over all files with a daemon that has not seen them, and no state of an earlier one; warmed up with other files."""
        self._start_daemon()
        loader = self._loader(self.work.warm_folder, recipe)
        for _ in loader:
            pass
        loader.close()
        loader = self._loader(self.work.folder, recipe)
        try:
            loader.set_epoch(number % len(self.work.epochs))
            yield Pass("first", len(self.work.files), lambda: _images(loader))
            before = self._index_hits()
            if before is None:
                return
            loader.set_epoch((number + 1) % len(self.work.epochs))
            yield Pass("indexed", len(self.work.files), lambda: _images(loader), lambda: self._hits_since(before))
        finally:
            loader.close()
            self.close()

    def warm_up(self, recipe: str) -> Iterator[Pass]:
        """Whole passes, for a daemon that has not seen the files makes all of them."""
        return self.passes(recipe, 0, len(self.work.files))

    def _loader(self, folder: str, recipe: str) -> Any:
        assert self._daemon is not None
        return millrace.numpy.Loader(folder, RECIPES[recipe], batch_size=BATCH, fidelity=self.fidelity, address=self._daemon.address)

    def _index_hits(self) -> float | None:
        """None: this daemon keeps no seek index."""
        assert self._daemon is not None
        with millrace.connect(self._daemon.address) as client:
            metrics = client.statistics().metrics
        hits = [metric.value for name, metric in metrics.items() if "index" in name and "hit" in name]
        return hits[0] if hits else None

    def _hits_since(self, before: float) -> str:
        return f"{(self._index_hits() or 0) - before:.0f} index hits in {len(self.work.files)} images"

    def _start_daemon(self) -> None:
        self._state = tempfile.mkdtemp(prefix="millrace-bench-state-")
        os.environ["XDG_STATE_HOME"] = os.environ["STATE_DIRECTORY"] = self._state
        self._daemon = millrace.serve([self.work.folder, self.work.warm_folder], lanes=self.cores, timeout=60)

    def close(self) -> None:
        if self._daemon is not None:
            self._daemon.stop()
            self._daemon = None
            shutil.rmtree(self._state, ignore_errors=True)


def _images(loader: Any) -> Iterator[Any]:
    for images, _ in loader:
        yield images
