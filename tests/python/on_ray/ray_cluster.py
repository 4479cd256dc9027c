"""A cluster of Ray's for tests: its nodes are processes of this machine, each with a daemon of its own; nothing is left at the end."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # before Ray is imported: it tells nobody
os.environ.setdefault("RAY_DEDUP_LOGS", "0")

import millrace
import millrace.ray
import ray
import ray.cluster_utils

from processes import MODULES


def processes_with(text: str) -> list[int]:
    """Those of this machine that have it in their command line or environment."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(ValueError, OSError):
            pid = int(entry.name)
            if pid != os.getpid() and text.encode() in (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes():
                found.append(pid)
    return found


def until(what: Any, seconds: float = 300.0) -> bool:
    """Whether ``what()`` is true before that."""
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


class Nodes:
    """A cluster of a head without CPUs and some nodes; the driver is connected. A context manager."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._place = tempfile.mkdtemp(prefix="mr-", dir="/tmp")  # short: sockets' paths are

    def __enter__(self) -> Nodes:
        head = {"num_cpus": 0, "object_store_memory": 100 << 20, "include_dashboard": False, "temp_dir": f"{self._place}/ray"}
        with self._environment():
            self.cluster = ray.cluster_utils.Cluster(initialize_head=True, head_node_args=head)
        for _ in range(self._count):
            self.add()
        ray.init(address=self.cluster.address, logging_level="ERROR")
        ray.data.DataContext.get_current().enable_progress_bars = False
        return self

    def add(self) -> None:
        """One more node."""
        with self._environment():
            self.cluster.add_node(num_cpus=2, object_store_memory=100 << 20)

    def remove(self, node_id: str) -> None:
        """As if its machine had lost its power."""
        node = next(node for node in self.cluster.worker_nodes if node.node_id == node_id)
        self.cluster.remove_node(node, allow_graceful=False)

    def __exit__(self, *_: object) -> None:
        try:
            millrace.ray.stop_daemons()
        finally:
            ray.shutdown()
            self.cluster.shutdown()
            left = [] if until(lambda: not processes_with(self._place)) else processes_with(self._place)
            shutil.rmtree(self._place, ignore_errors=True)
        assert not left, f"of Ray's nodes and their daemons these processes live on: {left}"

    @contextlib.contextmanager
    def _environment(self) -> Iterator[None]:
        """Of all processes of a node: daemons have their folders in the cluster's, and no other test's daemon is found.

        Ray gives workers niceness 15, with which tests beside this one would leave them nearly no processor.
        """
        places = [str(Path(__file__).parent), str(MODULES), os.environ.get("PYTHONPATH")]  # tasks are functions of the tests
        path = os.pathsep.join(filter(None, places))
        changed = {"TMPDIR": self._place, "PYTHONPATH": path, "MILLRACE_SOCKET": None, "XDG_RUNTIME_DIR": None, "RAY_worker_niceness": "0"}
        before = {name: os.environ.get(name) for name in changed}
        try:
            _set(changed)
            yield
        finally:
            _set(before)


def _set(variables: dict[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def daemons() -> dict[str, Any]:
    """The actors of the nodes' daemons, by node."""
    found = ray.util.list_named_actors(all_namespaces=True)
    names = [one["name"] for one in found if one["namespace"] == "millrace"]
    return {name.rpartition("-")[2]: ray.get_actor(name, "millrace") for name in names}


def pids() -> dict[str, int]:
    """The daemons' processes, by node; those that run."""
    told = {node: ray.get(actor.pid.remote(), timeout=300) for node, actor in daemons().items()}
    return {node: pid for node, pid in told.items() if pid}


def kill_all(processes: Iterable[int]) -> None:
    """At once, without a chance to tidy up; they are gone then."""
    for pid in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in processes))
