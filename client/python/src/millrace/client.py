"""The connection to the host's daemon."""

from __future__ import annotations

import os
import socket
import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any

from millrace._core.cost import Cost, cost_of
from millrace._core.findings import Findings, explain
from millrace._core.session import HOST, Session
from millrace._memory import cuda as _cuda
from millrace._memory.layout import MOST_BESIDE_PIXELS
from millrace._process import exit as _exit
from millrace._process import fork as _fork
from millrace._wire import address as _address
from millrace._wire import messages
from millrace._wire import schema as _schema
from millrace._wire.calls import asked_again, channel_to, unary
from millrace.errors import DaemonUnavailable, DeadlineExceeded, Forked, InvalidRequest
from millrace.recipe import CacheUse, Recipe, is_of_first_daemons

if TYPE_CHECKING:
    from millrace._wire.grpc import grpc


@dataclass(frozen=True)
class Metric:
    """One of the daemon's figures, named and measured as OpenMetrics wants."""

    name: str
    value: float
    unit: str
    help: str
    counter: bool
    """Only grows while the daemon lives; else it goes up and down, or is a histogram."""
    label: str = ""
    """What it is told by as well: ``"backend"``, ``"user"`` or ``"code"``; empty if it is not."""
    values: dict[str, float] = field(default_factory=dict)
    """By that label; they add up to ``value``. Of more than a few dozen the later ones are ``"other"``."""
    buckets: tuple[tuple[float, int], ...] = ()
    """Of a histogram of durations: how many were shorter than so many seconds; ``value`` is how many there were."""
    sum: float = 0.0
    """Of a histogram: the seconds of all durations."""


def _metric(message: Any) -> Metric:
    values = {one.label: one.value for one in message.values}
    buckets = tuple((bucket.below, bucket.count) for bucket in message.buckets)
    return Metric(message.name, message.value, message.unit, message.help, message.kind == 1, message.label, values, buckets, message.sum)


@dataclass(frozen=True)
class SessionStatistics:
    """One session as the daemon sees it; sizes are bytes."""

    id: int
    name: str
    uid: int
    pid: int
    slots: int
    slots_free: int
    slots_not_ready: int
    """Of ``slots``: their memory is being filled."""
    slots_withdrawn: int
    """The host had no room for them; not among ``slots``."""
    segment_bytes: int
    batches: int
    samples: int
    bad_samples: int
    lane_seconds: float
    """Lane time that decoding and transforming its samples took."""
    seconds: float = 0.0
    """Since it was opened; 0: the daemon is older."""
    state_seconds: dict[str, float] = field(default_factory=dict)
    """For how long it was in each state, by name: ``"making"``, ``"reading"``, ... They add up to ``seconds``."""
    waited_seconds: dict[str, float] = field(default_factory=dict)
    """In which states its program waited for batches, of those that it has given back: why it waits."""
    waits_told: int = 0
    """Batches for which its program said how long it waited; 0: it does not say, or has given none back."""
    job: str = ""
    """Whose costs it adds to; empty: the daemon is older."""
    cost: Cost | None = None
    """None: the daemon is older."""
    making_seconds: dict[str, float] = field(default_factory=dict)
    """Lane time by stage: ``"decode"``, ``"resample"``, ``"pack"``, and steps of augmentation."""


@dataclass(frozen=True)
class JobStatistics:
    """The sessions of one user that named one job, those that are closed included."""

    name: str
    uid: int
    sessions: int
    """Opened so far."""
    open: int
    """Of these, now."""
    cost: Cost


@dataclass(frozen=True)
class Statistics:
    """What the daemon has done and holds."""

    daemon_version: str
    pid: int
    uptime: float
    """Seconds."""
    metrics: dict[str, Metric]
    sessions: tuple[SessionStatistics, ...]
    jobs: tuple[JobStatistics, ...] = ()
    """Of more than a few dozen the later ones are ``"other"``."""
    users: dict[int, Cost] = field(default_factory=dict)
    """What all jobs of each user cost, by uid."""
    own: Cost | None = None
    """The daemon's, for no session; None: it is older."""
    cpu_seconds: float = 0.0
    """Of the daemon and its processes, as the kernel says."""


@dataclass(frozen=True)
class Device:
    """A preprocessing device of the host."""

    backend: str
    """What ``backend=`` pins: ``"cpu"``."""
    name: str
    ready: bool
    lanes: int
    formats: tuple[str, ...]
    detail: str
    properties: dict[str, str] = field(default_factory=dict)
    """How it is set up, for people; of a GPU also its ``"uuid"``, as ``nvidia-smi -L`` prints it."""


class Client:
    """A connection to the daemon; made by ``millrace.connect``. Thread-safe; a context manager. Sessions do not need it once open."""

    def __init__(self, path: str, timeout: float) -> None:
        self.path = path
        """Of the socket that it is connected to."""
        self._forked = False
        deadline = time.monotonic() + timeout
        _probe(path, timeout)
        self._channel: grpc.Channel = channel_to(path)
        self._closed = False
        _fork.register(self)
        _exit.register_open(self)
        try:
            self.ping(max(0.001, deadline - time.monotonic()))
        except DeadlineExceeded as late:
            self._channel.close()
            raise _address.no_answer(path) from late
        except BaseException:
            self._channel.close()
            raise

    def session(
        self,
        recipe: Recipe | None = None,
        batch: int = 64,
        slots: int = 4,
        slot_bytes: int | None = None,
        name: str = "",
        timeout: float = 30.0,
        writable: bool = True,
        cache: CacheUse = "tensors",
        cache_at_once: bool = False,
        memory: str = "host",
        job: str = "",
    ) -> Session:
        """Opens a session.

        Args:
            recipe: of batches and epochs that bring none; None: whole images in their own size, uint8 NCHW (needs ``slot_bytes``).
            batch: samples in a batch at most.
            slots: batches that may be finished or under way at once.
            slot_bytes: room for one batch's pixels and records; None: computed from recipe and batch.
            name: for statistics: ``"resnet50 rank 3"``; at most 64 bytes, printable.
            timeout: seconds for opening.
            writable: batches may be written to, in place: pages that are written to become copies of this process's own and go with the
                batch. False: batches are read-only, where ``Session.memory()`` is. Of no meaning in a GPU's memory, where a process
                that maps it may write.
            cache: the most that the daemon keeps of the images, and uses, to make the next epochs faster: ``"off"``, ``"index"``,
                ``"packed"`` or ``"tensors"``, each with those before. With ``fidelity="exact"`` pixels are the same whatever is kept.
            cache_at_once: it is kept from the first access on, though that makes the first epoch slower; else from the second.
            memory: where the batches' tensors lie: ``"host"``, or in the memory of a GPU that the daemon has, by its backend's name:
                ``"cuda:0"`` (``devices()``). Then ``Batch.images`` are ``DeviceTensor``; doc/gpu.md says more. The GPU's number in this
                process may be another.
            job: whose costs it adds to, with the user's other sessions of that job: a training's ranks, and its restarts. Text as
                ``name``; empty: $MILLRACE_JOB, else ``name``. ``Statistics.jobs`` has them, and ``Session.cost``.

        Raises:
            Unsupported: this process does not see that GPU, or has no NVIDIA driver; says what to do.
            Forked: it was forked from one that used CUDA.
            NotFound: the daemon has no memory of that name; says which it has.
            InvalidRequest: a field is wrong, or ``slot_bytes`` is needed because the recipe leaves the images' sizes open.
            ResourceExhausted: which budget of the daemon, and how to raise it.
            DaemonUnavailable, PermissionDenied, FailedPrecondition: as they say.
        """
        self._check()
        recipe = recipe or Recipe()
        if batch < 1:
            raise InvalidRequest(f"session: batch must be at least 1, is {batch}")
        if not isinstance(writable, bool):
            raise InvalidRequest(f"session: writable is True or False, not {writable!r}")
        room = slot_bytes or recipe.slot_bytes(batch)
        if room is None:
            raise InvalidRequest(
                "session: slot_bytes must be given, because the recipe leaves the images' sizes open; "
                f"allow for the batch's pixels and {MOST_BESIDE_PIXELS} bytes an image"
            )
        if not isinstance(memory, str):
            raise InvalidRequest(f"session: memory is a name, not {memory!r}")
        asked = messages.cache_fields(cache, cache_at_once)
        if named := job or os.environ.get("MILLRACE_JOB", ""):
            asked["job"] = messages.text_bytes(named)
        if not is_of_first_daemons(recipe):
            asked["recipe"] = messages.recipe_message(recipe)
        if memory not in ("", HOST):
            asked |= {"memory": memory, "samples": min(batch, 0xFFFFFFFF)}
            self._look_for(memory, timeout)
        return asked_again(lambda left: Session(self.path, recipe, batch, slots, room, name, left, writable=writable, asked=asked), timeout)

    def _look_for(self, memory: str, timeout: float) -> None:
        """Before it is asked for: the daemon charges memory until the process that was given it has ended, used or not."""
        _cuda.driver()
        for device in self.devices(timeout):
            uuid = _cuda.uuid_bytes(device.properties.get("uuid", ""))
            if device.backend == memory and uuid is not None:
                _cuda.driver().find(uuid)

    def ping(self, timeout: float = 5.0) -> float:
        """One round trip to the daemon's health service; how many seconds it took.

        Raises:
            DaemonUnavailable: it does not serve (any more).
        """
        self._check()
        began = time.monotonic()
        reply = unary(self._channel, "/grpc.health.v1.Health/Check", b"", None, self.path, timeout)
        if reply != b"\x08\x01":  # HealthCheckResponse{status: SERVING}
            raise DaemonUnavailable(
                f"the daemon at unix:{self.path}: millraced is stopping or draining: it finishes what is under way and takes nothing new"
            )
        return time.monotonic() - began

    def statistics(self, timeout: float = 5.0) -> Statistics:
        """What the daemon has done and holds."""
        self._check()
        method = "/millrace.v1.Statistics/Get"
        reply = unary(self._channel, method, b"", _schema.GetStatisticsReply, self.path, timeout)
        metrics = {m.name: _metric(m) for m in reply.metrics}
        sessions = tuple(
            SessionStatistics(
                id=s.session_id,
                name=s.name,
                uid=s.uid,
                pid=s.pid,
                slots=s.slots,
                slots_free=s.slots_free,
                slots_not_ready=s.slots_not_ready,
                slots_withdrawn=s.slots_withdrawn,
                segment_bytes=s.segment_bytes,
                batches=s.batches,
                samples=s.samples,
                bad_samples=s.bad_samples,
                lane_seconds=s.lane_seconds,
                seconds=s.seconds,
                state_seconds={t.state: t.seconds for t in s.states},
                waited_seconds={t.state: t.waited_seconds for t in s.states},
                waits_told=s.waits_told,
                job=s.job,
                cost=cost_of(s.cost) if s.HasField("cost") else None,
                making_seconds={t.stage: t.seconds for t in s.making},
            )
            for s in reply.sessions
        )
        jobs = tuple(JobStatistics(j.name, j.uid, j.sessions, j.open, cost_of(j.cost)) for j in reply.jobs)
        users = {u.uid: cost_of(u.cost) for u in reply.users}
        own = cost_of(reply.own) if reply.HasField("own") else None
        return Statistics(reply.daemon_version, reply.pid, reply.uptime_seconds, metrics, sessions, jobs, users, own, reply.cpu_seconds)

    def why(self, session: int = 0, timeout: float = 5.0) -> tuple[Findings, ...]:
        """What bounds a session now, or with 0 each one, over the last 20 seconds; printed, the words of ``millrace why``.

        Raises:
            NotFound: there is no such session.
            Unsupported: the daemon is older and cannot say.
        """
        self._check()
        return explain(self.path, self._channel, session, timeout)

    def devices(self, timeout: float = 5.0) -> tuple[Device, ...]:
        """The host's preprocessing devices."""
        self._check()
        reply = unary(self._channel, "/millrace.v1.Devices/List", b"", _schema.ListDevicesReply, self.path, timeout)
        return tuple(
            Device(d.backend, d.name, d.state == 1, d.lanes, tuple(d.formats), d.detail, {p.name: p.value for p in d.properties})
            for d in reply.devices
        )

    def close(self) -> None:
        """Ends the connection. Idempotent; sessions go on."""
        if not self._forked and not self._closed:
            self._closed = True
            self._channel.close()

    def end_at_exit(self) -> None:
        """As ``close``."""
        self.close()

    def after_fork_in_child(self) -> object:
        """For the child of a fork: it may not use the connection."""
        self._forked = True
        return self._channel

    def _check(self) -> None:
        if self._forked:
            raise Forked("this client belongs to the process that forked this one; connect anew after fork()")

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<millrace.Client of the daemon at {self.path}>"


def connect(address: str | os.PathLike[str] | None = None, timeout: float = 5.0) -> Client:
    """Connects to the host's daemon.

    Args:
        address: a socket's path or ``unix:PATH``; None: $MILLRACE_SOCKET, else the service's, /run/millrace/millrace.sock.
        timeout: seconds. While a daemon that systemd starts is not there, it is waited for.

    Raises:
        DaemonUnavailable: nobody answers there; says how to start it, or where to read why it does not start.
        PermissionDenied: this user may not; says which group to join.
        Forked: the parent of this process was connected, and gRPC does not survive fork().
    """
    path = _address.resolve(address)
    return asked_again(lambda left: Client(path, left), timeout)


def _probe(path: str, timeout: float) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as probe:
        try:
            _address.connect(probe, path, timeout)
        except OSError as why:
            raise _address.cannot_reach(path, why) from why
