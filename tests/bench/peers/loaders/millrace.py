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
        self._others = 0.0  # bytes kept of the files that warm it up
        self._daemon: millrace.PrivateDaemon | None = None

    def versions(self) -> str:
        with millrace.serve(self.work.folder) as daemon, millrace.connect(daemon.address) as client:
            return client.statistics().daemon_version

    def epoch(self, recipe: str, samples: Sequence[Sample]) -> Callable[[], Iterator[Any]]:
        raise NotImplementedError("the daemon draws by itself: see passes()")

    def passes(self, recipe: str, number: int, count: int) -> Iterator[Pass]:
        """Passes over all files with a daemon that has not seen them, and no state of an earlier one; warmed up with other files.

        At first touch, by seek indexes, and, after a pass that nobody times and that packs them, from packed coefficients.
        """
        self._start_daemon()
        loader = self._loader(self.work.warm_folder, recipe, cache="index")
        for _ in loader:
            pass
        loader.close()
        self._others = self._metric("millrace_cache_bytes").value
        try:
            loader = self._loader(self.work.folder, recipe, cache="index")
            loader.set_epoch(number % len(self.work.epochs))
            yield Pass("first", len(self.work.files), lambda: _images(loader))
            yield self._later("indexed", loader, number + 1, "index")
            loader.close()
            loader = self._loader(self.work.folder, recipe, cache="packed", cache_at_once=True)
            for _ in loader:
                pass
            yield self._later("packed", loader, number + 2, "packed")
        finally:
            loader.close()
            self.close()

    def _later(self, row: str, loader: Any, number: int, kind: str) -> Pass:
        before = self._hits(kind)
        loader.set_epoch(number % len(self.work.epochs))
        note = lambda: f"{self._hits(kind) - before:.0f} {kind} hits in {len(self.work.files)} images"  # noqa: E731
        kept = lambda: self._metric("millrace_cache_bytes").value - self._others  # noqa: E731
        return Pass(row, len(self.work.files), lambda: _images(loader), note, kept)

    def warm_up(self, recipe: str) -> Iterator[Pass]:
        """Whole passes, for a daemon that has not seen the files makes all of them."""
        return self.passes(recipe, 0, len(self.work.files))

    def _loader(self, folder: str, recipe: str, **cache: Any) -> Any:
        assert self._daemon is not None
        daemon = self._daemon.address
        return millrace.numpy.Loader(folder, RECIPES[recipe], batch_size=BATCH, fidelity=self.fidelity, address=daemon, **cache)

    def _hits(self, kind: str) -> float:
        return self._metric("millrace_cache_hits_total").values.get(kind, 0)

    def _metric(self, name: str) -> Any:
        assert self._daemon is not None
        with millrace.connect(self._daemon.address) as client:
            return client.statistics().metrics[name]

    def _start_daemon(self) -> None:
        self._state = tempfile.mkdtemp(prefix="millrace-bench-state-")
        os.environ["XDG_STATE_HOME"] = os.environ["STATE_DIRECTORY"] = self._state
        settings = os.environ.get("MILLRACE_BENCH_CONFIG")
        arguments = ["--config", settings] if settings else []
        folders = [self.work.folder, self.work.warm_folder]
        self._daemon = millrace.serve(folders, lanes=self.cores, arguments=arguments, timeout=60)

    def close(self) -> None:
        if self._daemon is not None:
            self._daemon.stop()
            self._daemon = None
            shutil.rmtree(self._state, ignore_errors=True)


def _images(loader: Any) -> Iterator[Any]:
    for images, _ in loader:
        yield images
