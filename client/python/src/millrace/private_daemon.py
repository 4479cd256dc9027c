"""A daemon of one's own, for tests, notebooks and machines without the service.

    >>> with millrace.serve(["photos"]) as daemon:
    ...     client = millrace.connect(daemon.address)

It listens in a fresh folder that only this user can enter, and stops with its owner, however that ends.

MILLRACE_SOCKET names the one that was started last and still runs. That one lives until it is stopped or the process ends, whether or not
anything refers to it; the others stop when nothing does.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import queue
import select
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Literal

from millrace._core.own_daemons import RUNNING, program_of
from millrace._wire import address as _address
from millrace._wire.messages import path_text
from millrace.client import Client, connect
from millrace.errors import DaemonUnavailable, Error, InvalidRequest, NotFound
from millrace.samples import AnyPath

_PREFIX = "millrace-"
_LOCK = "owner"  # locked as long as the folder's owner lives
_LISTENING = b"listening on "

# Between fork and exec: PR_SET_PDEATHSIG stops the daemon when the thread that started it is gone. In a program of its own, because
# code of ours must not run in the forked child of a process that has threads.
_LAUNCHER = """
import ctypes, os, signal, sys
parent = int(sys.argv[1])
os.setpgid(0, 0)
ctypes.CDLL(None).prctl(1, int(signal.SIGTERM))
if os.getppid() != parent:
    sys.exit(126)
signal.pthread_sigmask(signal.SIG_SETMASK, [])
os.execv(sys.argv[2], sys.argv[2:])
"""


class PrivateDaemon:
    """A running daemon; made by ``millrace.serve``; a context manager. Thread-safe."""

    _ours = True  # not a forked child's, as far as stop() has seen

    def __init__(self, program: str, roots: Iterable[str], lanes: int, arguments: Iterable[str], timeout: float) -> None:
        self._roots = [os.path.abspath(root) for root in roots]
        self._folder, self._lock = _make_folder()
        self.address = os.path.join(self._folder, "millrace.sock")
        """The path of its socket, for ``millrace.connect``."""
        command = [program, "--socket", self.address]
        for root in self._roots:
            os.stat(root)  # says so at once if it is not there
            command += ["--root", root]  # the daemon knows it by this name and by its real one
        if lanes:
            command += ["--lanes", str(lanes)]
        command += arguments
        self._process: subprocess.Popen[bytes] | None = None
        self._pid = os.getpid()
        self._stopping = threading.Lock()
        self._status = 0
        try:
            self._start(command, timeout)
        except BaseException:
            self.stop(0)
            raise
        atexit.register(_stop_at_exit, weakref.ref(self))

    def _start(self, command: list[str], timeout: float) -> None:
        born: queue.SimpleQueue[subprocess.Popen[bytes] | OSError] = queue.SimpleQueue()
        # The kernel stops the daemon when the thread that started it ends, so one that lasts as long as the daemon does it.
        owner = threading.Thread(target=_own, args=(command, self._log_path, born), name="millrace-serve", daemon=True)
        owner.start()
        process = born.get()
        if isinstance(process, OSError):
            raise NotFound(f"private daemon: {command[0]} cannot be started: {process.strerror}")
        self._process = process
        assert process.stdout is not None
        why = _wait_listening(process.stdout.fileno(), timeout)
        if why:
            raise DaemonUnavailable(f"private daemon: {command[0]} {why}; it says: {self.log()}")
        RUNNING.began(self)

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process is not None
        return self._process.pid

    @property
    def _log_path(self) -> str:
        return os.path.join(self._folder, "log")

    def log(self) -> str:
        """What it has written to stderr, the last 64 KiB."""
        try:
            with open(self._log_path, "rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - (64 << 10)))
                return file.read().decode("utf-8", "replace")
        except OSError:
            return ""

    def stop(self, patience: float = 10.0) -> int:
        """SIGTERM, so that it finishes what is under way; SIGKILL after ``patience`` seconds. Idempotent.

        Returns:
            Its exit status: 0 after draining, 128 + the signal's number if one ended it.
        """
        if os.getpid() != self._pid:  # a forked child is not its owner
            self._ours = False
            self._lock.close()  # the owner has it still
            return 0
        with self._stopping:
            if self._process is not None:
                self._status = _end(self._process, patience)
                self._process = None
                RUNNING.ended(self)
            shutil.rmtree(self._folder, ignore_errors=True)
            self._lock.close()
        return self._status

    def __enter__(self) -> PrivateDaemon:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.__del__()

    def __del__(self) -> None:
        if self._ours and getattr(self, "_process", None) is not None:  # else there is nothing to end, and at the interpreter's end no way
            self.stop()

    def __fspath__(self) -> str:
        return self.address

    def __repr__(self) -> str:
        state = f"process {self._process.pid}" if self._process is not None else "stopped"
        return f"<millrace.PrivateDaemon {self.address}: {state}, reads {', '.join(map(path_text, self._roots)) or 'no files'}>"


class _SomebodysDaemon(PrivateDaemon):
    """One that ran already. ``stop()`` leaves it alone."""

    def __init__(self, client: Client) -> None:
        self.address = client.path
        self._running = client.statistics().pid

    @property
    def pid(self) -> int:
        return self._running

    def __repr__(self) -> str:
        return f"<millrace.PrivateDaemon {self.address}: process {self._running}, somebody else's, which stop() leaves running>"

    def log(self) -> str:
        return ""

    def stop(self, patience: float = 10.0) -> int:
        return 0


def serve(
    roots: AnyPath | Iterable[AnyPath] = (),
    *,
    lanes: int = 0,
    cuda: Literal["no", "auto", "yes"] = "no",
    program: str | None = None,
    arguments: Iterable[str] = (),
    timeout: float = 10.0,
    reuse: bool = False,
) -> PrivateDaemon:
    """Starts a daemon of this user's own. It stops with ``stop()``, the end of the ``with`` block, or this process, however that ends.

    What it keeps for its next start (seek indexes, packed forms of pictures, and tensors that were asked for) lies in
    $XDG_STATE_HOME/millrace or ~/.local/state/millrace, whose daemons share it; with XDG_STATE_HOME=/dev/null nothing is kept.
    While it runs ``millrace.connect()`` without an address finds it, in this process and those that it starts: MILLRACE_SOCKET is set. Of
    several it finds the one that began last and still runs. That one runs on when nothing refers to it; others stop then.

    Args:
        roots: folders that it may read; relative ones are made absolute.
        lanes: CPU lanes; 0: one for each core that this process may use, and no more than its control group's share of time, which is right
            where the model is on a GPU. Beside a model on the CPU: a quarter, and fewer threads for the framework (doc/cores.md).
        cuda: whether NVIDIA's GPUs decode: ``auto``, where there are some; ``yes``: or it does not start. Takes 1 GiB of each one's memory
            while it works, and the daemon longer to begin: then give it a ``timeout`` of a minute.
        program: millraced; None: $MILLRACE_DAEMON, else that of the package ``millrace-daemon`` in this Python environment, else the one
            in $PATH.
        arguments: further ones for the command line.
        timeout: seconds until it listens.
        reuse: True: only if none runs. One that ``millrace.connect()`` finds is taken as it is, with its own roots and lanes, and left
            running.

    Raises:
        NotFound: no millraced, or no such root; says where it was looked for.
        InvalidRequest: ``cuda`` is none of its words.
        DaemonUnavailable: it ended or did not listen in time, with what it wrote last.
    """
    if reuse:
        with contextlib.suppress(DaemonUnavailable), connect() as client:
            return _SomebodysDaemon(client)
    folders = [roots] if isinstance(roots, (str, bytes, os.PathLike)) else list(roots)
    for folder in folders:
        if not os.path.isdir(folder):
            raise NotFound(f"private daemon: root {path_text(folder)} is not a folder")
    if cuda not in ("no", "auto", "yes"):
        raise InvalidRequest(f'private daemon: cuda is "no", "auto" or "yes", not {cuda!r}')
    further = list(arguments) if cuda == "no" else ["--cuda", cuda, *arguments]
    return PrivateDaemon(program_of(program), [os.fsdecode(folder) for folder in folders], lanes, further, timeout)


def _sweep(base: str) -> None:
    """Removes what owners that were killed have left behind; only what nobody else can have a hand in."""
    with os.scandir(base) as listed:
        entries = [entry for entry in listed if entry.name.startswith(_PREFIX)]
    for entry in entries:
        try:
            status = entry.stat(follow_symlinks=False)  # its owner may have removed it meanwhile
            if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) != 0o700:
                continue
            with open(os.open(os.path.join(entry.path, _LOCK), os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "wb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(entry.path, ignore_errors=True)
        except OSError:
            continue


def _make_folder() -> tuple[str, Any]:
    """A fresh folder that only this user can enter, short enough for a socket's path, and its lock, taken before it has its name."""
    for base in (os.environ.get("XDG_RUNTIME_DIR"), os.environ.get("TMPDIR"), "/tmp"):
        if not base or not os.path.isabs(base):
            continue
        try:
            _address.resolve(os.path.join(base, f"{_PREFIX}xxxxxxxx", "millrace.sock"))
            _sweep(base)
            folder = tempfile.mkdtemp(prefix=_PREFIX, dir=base)
            lock = open(os.path.join(folder, f"{_LOCK}.new"), "wb")  # noqa: SIM115, it stays open
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.rename(lock.name, os.path.join(folder, _LOCK))
        except (OSError, InvalidRequest):
            continue
        return folder, lock
    raise Error("private daemon: no folder for its sockets in $XDG_RUNTIME_DIR, $TMPDIR or /tmp; make one of them writable")


def _wait_listening(output: int, timeout: float) -> str | None:
    """None once the daemon listens, else what it did instead."""
    deadline, text = time.monotonic() + timeout, b""
    while _LISTENING not in text or b"\n" not in text[text.index(_LISTENING) :]:
        if not select.select([output], [], [], max(0, deadline - time.monotonic()))[0]:
            return "did not listen in time"
        data = os.read(output, 512)
        if not data:
            return "ended before it listened"
        text += data
    return None


def _own(command: list[str], log: str, born: queue.SimpleQueue[subprocess.Popen[bytes] | OSError]) -> None:
    launcher = [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(os.getpid()), *command]
    # Without what the owner's service manager told it alone: there the daemon would answer in its owner's name.
    environment = {name: value for name, value in os.environ.items() if name not in ("NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC")}
    try:
        with open(log, "ab") as errors:
            process = subprocess.Popen(launcher, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, env=environment)
    except OSError as why:
        born.put(why)
        return
    born.put(process)
    process.wait()


def _end(process: subprocess.Popen[bytes], patience: float) -> int:
    process.send_signal(signal.SIGTERM)
    try:
        status = process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()
        status = process.wait()
    if process.stdout is not None:
        process.stdout.close()
    return status if status >= 0 else 128 - status


def _stop_at_exit(daemon: weakref.ref[PrivateDaemon]) -> None:
    alive = daemon()
    if alive is not None:
        alive.stop()
