"""One daemon a node: the one that runs there, or one that an actor starts.

    address_here(), in tasks and actors:
      the service   $MILLRACE_SOCKET, else /run/millrace/millrace.sock, if it answers; else
      NodeDaemon    the actor millrace-daemon-<node> --serve()--> millraced

The actor is named and pinned to its node, so that the first caller has it created and all others get the same; it is detached, so that
it does not end with the worker that happened to come first. It reserves the CPUs of the daemon's lanes. Once nobody has had a session for
a while it ends, and the daemon with it. If the daemon dies, the next who asks has it started again; if the actor dies, Ray restarts it.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import ray
import ray.exceptions
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

import millrace
from millrace._wire.messages import path_text
from millrace.errors import DaemonUnavailable, Error, FailedPrecondition, InvalidRequest
from millrace.samples import AnyPath

_NAMESPACE = "millrace"  # of all jobs
_NAME = "millrace-daemon-"
_DEATHS_MOST, _DEATHS_WITHIN = 5, 600.0  # so many, within so many seconds, are no accident
_LOOK_EVERY = 1.0  # seconds between two looks at whether anybody has a session
_ASKED_MOST = 5  # times, while the actor ends or moves
_WAIT = 120.0  # seconds for the actor's CPUs and the daemon's start


class DaemonLost(DaemonUnavailable, ray.exceptions.RaySystemError):  # type: ignore[misc]
    """The node's daemon went away while a task used it. Ray Data runs such a task again, as after any failure of the system."""

    def __init__(self, message: str) -> None:
        DaemonUnavailable.__init__(self, message)
        self.client_exc = message
        self.traceback_str = None

    def __str__(self) -> str:
        return str(self.client_exc)


@dataclass(frozen=True)
class Daemon:
    """Which daemon the tasks of a node use. A value.

    Attributes:
        roots: folders that a started one may read; None: all that the workers' user may.
        lanes: CPU lanes of a started one; None: one for each CPU that Ray has on the node.
        num_cpus: what it reserves of the node's CPUs; None: its lanes, but at most all CPUs but one (of one CPU a half), so that tasks
            find room.
        find: take the daemon that runs on the node, if one answers at $MILLRACE_SOCKET of Ray's workers or at the service's address.
        start: start one if none is found.
        program: millraced, on every node; None: $MILLRACE_DAEMON of Ray's workers, else ``millraced`` in their $PATH.
        arguments: further ones for its command line.
        linger: seconds that a started one waits for the next session before it ends.
    """

    roots: Sequence[AnyPath] | AnyPath | None = None
    lanes: int | None = None
    num_cpus: float | None = None
    find: bool = True
    start: bool = True
    program: str | None = None
    arguments: tuple[str, ...] = ()
    linger: float = 30.0

    def __post_init__(self) -> None:
        if self.roots is not None:
            roots = [self.roots] if isinstance(self.roots, (str, bytes, os.PathLike)) else list(self.roots)
            if not roots:
                raise InvalidRequest("Daemon: roots names no folder; None: all that the workers' user may read")
            object.__setattr__(self, "roots", tuple(os.path.abspath(os.fsdecode(root)) for root in roots))
        object.__setattr__(self, "arguments", tuple(self.arguments))
        if self.lanes is not None and (not isinstance(self.lanes, int) or self.lanes < 1):
            raise InvalidRequest(f"Daemon: lanes is at least 1, or None, not {self.lanes!r}")
        if self.num_cpus is not None and not self.num_cpus >= 0:
            raise InvalidRequest(f"Daemon: num_cpus is not negative, or None; is {self.num_cpus!r}")
        if not self.linger > 0:
            raise InvalidRequest(f"Daemon: linger is more than 0 seconds, not {self.linger!r}")
        if not (self.find or self.start):
            raise InvalidRequest("Daemon: with find=False and start=False there is none; leave one of them out")

    def reserved(self, cpus: float) -> float:
        """Of a node with so many CPUs; of a head that has none in Ray's books, none."""
        if self.num_cpus is not None:
            return self.num_cpus
        return min(float(self.lanes or cpus), max(cpus - 1, cpus / 2))

    def address_here(self) -> str:
        """The socket of this node's daemon, which runs then. For tasks and actors.

        Raises:
            FailedPrecondition: none runs, and none can be started; says why.
            InvalidRequest: one was started with other options, or there is no room beside it for the task that asks.
            PermissionDenied: one runs, and this user may not use it.
        """
        if self.find:
            try:
                with millrace.connect() as client:
                    return client.path
            except DaemonUnavailable as why:
                if not self.start:
                    raise FailedPrecondition(f"node {_node()}: {why}; or leave start=False out") from why
        for _ in range(_ASKED_MOST):
            with contextlib.suppress(ray.exceptions.RayActorError):  # it ended just now: the next one is another
                return self._ask()
            time.sleep(0.2)
        raise DaemonLost(f"node {_node()}: the actor {_NAME}{_node()} ends again and again; Ray's log of it says why")

    def _ask(self) -> str:
        node, cpus = _node(), _cpus_here()
        reserved = self.reserved(cpus)
        wanted = float(ray.get_runtime_context().get_assigned_resources().get("CPU", 0))
        if wanted > max(0.0, cpus - reserved):
            raise InvalidRequest(
                f"node {node}: of its {cpus:g} CPUs the daemon reserves {reserved:g}, which leaves no room for tasks of "
                f"num_cpus={wanted:g}: ask for less (0.25 is enough: the daemon does the work), or give Daemon(num_cpus=) less"
            )
        options = {
            "name": f"{_NAME}{node}",
            "namespace": _NAMESPACE,
            "get_if_exists": True,
            "lifetime": "detached",
            "num_cpus": reserved,
            "max_restarts": -1,
            "max_task_retries": -1,
            "scheduling_strategy": NodeAffinitySchedulingStrategy(node, soft=False),
        }
        actor = ray.remote(NodeDaemon).options(**options).remote(self, max(1, int(cpus)))
        try:
            return cast(str, ray.get(actor.address.remote(self), timeout=_WAIT))
        except (ray.exceptions.GetTimeoutError, ray.exceptions.ActorUnschedulableError) as why:
            raise FailedPrecondition(
                f"node {node}: there is no room for the daemon's actor, which reserves {reserved:g} of {cpus:g} "
                "CPUs: free some, or give Daemon(num_cpus=) less"
            ) from why
        except ray.exceptions.RayTaskError as why:
            if isinstance(why.cause, Error):
                raise why.cause from None
            raise


class NodeDaemon:
    """The actor. Its methods run one after the other; the thread beside them ends it when nobody needs it."""

    def __init__(self, options: Daemon, cpus: int) -> None:
        self._options = options
        self._lanes = options.lanes or cpus
        self._daemon: millrace.PrivateDaemon | None = None
        self._deaths: deque[float] = deque()
        self._used = time.monotonic()
        self._turn = threading.Lock()  # who has it may start or stop the daemon
        self._me = ray.get_runtime_context().current_actor
        threading.Thread(target=self._watch, daemon=True).start()

    def address(self, options: Daemon) -> str:
        """Of the daemon, started if it does not run.

        Raises:
            FailedPrecondition: it cannot be started, or ends again and again.
            InvalidRequest: it was started with other options.
        """
        self._check(options)
        with self._turn:  # which the thread keeps once it has begun to end all this
            self._used = time.monotonic()
            self._start()
            assert self._daemon is not None
            return self._daemon.address

    def _start(self) -> None:
        if self._daemon is not None and self._ended(self._daemon):
            self._note_death(self._daemon)
            self._daemon.stop()
            self._daemon = None
        if self._daemon is None:
            roots = cast("tuple[str, ...] | None", self._options.roots)
            try:
                self._daemon = millrace.serve(
                    ("/",) if roots is None else roots,
                    lanes=self._lanes,
                    program=self._options.program,
                    arguments=self._options.arguments,
                    timeout=60.0,
                )
            except Error as why:
                raise FailedPrecondition(f"node {_node()}: {why}") from None

    def pid(self) -> int:
        """The daemon's process; 0: none runs."""
        return self._daemon.pid if self._daemon is not None and not self._ended(self._daemon) else 0

    def stop(self) -> None:
        """Ends the daemon, even while clients use it. The actor is to be killed then."""
        self._turn.acquire()  # for good
        if self._daemon is not None:
            self._daemon.stop()

    def _check(self, options: Daemon) -> None:
        for name in ("roots", "lanes", "program"):
            asked, has = getattr(options, name), getattr(self._options, name)
            if asked is not None and asked != has:
                raise InvalidRequest(
                    f"node {_node()}: its daemon was started with {name}={_told(has)}, not {_told(asked)}: give all datasets the "
                    "same Daemon, or end it first with millrace.ray.stop_daemons()"
                )

    @staticmethod
    def _ended(daemon: millrace.PrivateDaemon) -> bool:
        if daemon._process is None or daemon._process.poll() is not None:
            return True
        try:
            os.kill(daemon._process.pid, 0)
        except ProcessLookupError:  # just now, and who waits for it has not heard yet
            return True
        return False

    def _note_death(self, daemon: millrace.PrivateDaemon) -> None:
        now = time.monotonic()
        self._deaths.append(now)
        while self._deaths[0] < now - _DEATHS_WITHIN:
            self._deaths.popleft()
        if len(self._deaths) >= _DEATHS_MOST:
            raise FailedPrecondition(
                f"node {_node()}: the daemon has ended {len(self._deaths)} times within {_DEATHS_WITHIN:g} s and is not started again; "
                f"it says: {daemon.log()}"
            )

    def _idle(self) -> bool:
        return time.monotonic() - self._used > self._options.linger

    def _watch(self) -> None:
        while True:
            time.sleep(min(_LOOK_EVERY, self._options.linger / 2))
            daemon = self._daemon
            if daemon is not None:
                with contextlib.suppress(Error, AssertionError), millrace.connect(daemon.address) as client:
                    if client.statistics().sessions:
                        self._used = time.monotonic()
            with self._turn:
                if self._idle():
                    if daemon is not None:
                        daemon.stop()
                    ray.kill(self._me)
                    time.sleep(_WAIT)


def stop_daemons(timeout: float = 10.0) -> int:
    """Ends the daemons that were started, on all nodes and for all jobs, and gives their CPUs back. Tasks that use them fail.

    Without it they end by themselves, ``Daemon.linger`` seconds after the last session.

    Returns:
        How many there were.
    """
    actors = ray.util.list_named_actors(all_namespaces=True)
    names = [found["name"] for found in actors if found["namespace"] == _NAMESPACE and found["name"].startswith(_NAME)]
    for name in names:
        with contextlib.suppress(ValueError, ray.exceptions.RayError):  # it has ended meanwhile
            actor = ray.get_actor(name, _NAMESPACE)
            with contextlib.suppress(ray.exceptions.RayError):  # its node is gone, or it takes too long
                ray.get(actor.stop.options(max_task_retries=0).remote(), timeout=timeout)
            ray.kill(actor)
    return len(names)


def _node() -> str:
    return cast(str, ray.get_runtime_context().get_node_id())


def _cpus_here() -> float:
    node = _node()
    return next((float(found["Resources"].get("CPU", 0)) for found in ray.nodes() if found["NodeID"] == node), 0.0)


def _told(value: Any) -> str:
    return ", ".join(map(path_text, value)) if isinstance(value, tuple) else "the default" if value is None else str(value)
