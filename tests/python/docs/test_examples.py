"""The examples, run as a user runs them; training is killed in the middle and resumed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import millrace
import pytest

from gpus import simulated
from held_training import held_at
from pictures import COUNT, png

pytest.importorskip("torchvision", reason="PyTorch and torchvision are not installed: the examples are not run")
pytestmark = pytest.mark.torch
CORES = len(os.sched_getaffinity(0))
EXAMPLES = Path(__file__).parents[3] / "client" / "python" / "examples"


def train(folder: Path, *arguments: object, variables: dict[str, str] | None = None) -> subprocess.Popen[str]:
    command = [sys.executable, str(EXAMPLES / "train.py"), str(folder), "--size", "32", "--batch", "4", "--epochs", "2", "--device", "cpu"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **(variables or {})}
    return subprocess.Popen([*command, *map(str, arguments)], env=environment, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> None:
    _, errors = process.communicate(timeout=900)
    assert process.returncode == 0, errors


@pytest.mark.parametrize("augment", [(), ("--augment", "--checksums")])
@pytest.mark.long
def test_training_that_is_killed_resumes_with_the_same_samples(
    daemon: millrace.PrivateDaemon, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, augment: tuple[str, ...]
) -> None:
    """Augmented, with the same pixels and targets as well: what was drawn is drawn again."""
    monkeypatch.setenv("MILLRACE_SOCKET", daemon.address)
    dice = random.Random(os.environ.get("MILLRACE_TEST_SEED", "4"))
    whole, parts = tmp_path / "whole.txt", tmp_path / "parts.txt"
    finish(train(folder, "--ids", whole, *augment))
    lines = whole.read_text().splitlines()
    assert len(lines) == 2 * (COUNT // 4)

    again = ["--checkpoint", tmp_path / "run.pt", "--save-every", 3, "--ids", parts, "--resume", *augment]
    kills = 0
    for kill_at in (dice.randrange(2, 12), dice.randrange(16, 28)):
        process = train(folder, *again, variables=held_at(tmp_path, parts, kill_at + 2))
        while process.poll() is None and (not parts.exists() or len(parts.read_text().splitlines()) < kill_at):
            time.sleep(0.005)
        process.kill()
        process.communicate()
        kills += process.returncode == -signal.SIGKILL
    finish(train(folder, *again))

    assert kills == 2
    assert parts.read_text().splitlines() == lines


@pytest.mark.long
def test_training_on_tensors_that_come_by_a_gpus_memory(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILLRACE_SOCKET", "/nowhere/s")
    with simulated(tmp_path, STRICT=0):
        process = train(folder, "--memory", "cuda:0", "--ids", tmp_path / "ids.txt")
        finish(process)

    assert len((tmp_path / "ids.txt").read_text().splitlines()) == 2 * (COUNT // 4)


@pytest.mark.long
def test_training_with_torchvisions_own_loader(folder: Path) -> None:
    finish(train(folder, "--loader", "torchvision", "--workers", "1", "--epochs", "1"))


def ask(url: str, body: bytes) -> tuple[int, Any]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, method="POST"), timeout=300) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as why:
        with why:
            return why.code, json.loads(why.read())


@pytest.mark.parametrize(
    ("arguments", "lanes", "threads"),
    [
        ([], max(1, CORES // 4), max(1, CORES - max(1, CORES // 4))),
        (["--lanes", "2", "--threads", "3"], 2, 3),
    ],
)
@pytest.mark.long
def test_serving_divides_the_cores(monkeypatch: pytest.MonkeyPatch, arguments: list[str], lanes: int, threads: int) -> None:
    monkeypatch.setenv("MILLRACE_SOCKET", "/nowhere/s")
    command = [sys.executable, str(EXAMPLES / "serve.py"), "--port", "0", "--device", "cpu", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        line = server.stdout.readline()
        server.send_signal(signal.SIGINT)
        assert server.wait(300) == 0

    assert line.startswith(f"{CORES} cores: {lanes} lanes, {threads} threads of PyTorch; listening on http://")


def test_serving(daemon: millrace.PrivateDaemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILLRACE_SOCKET", daemon.address)
    command = [sys.executable, str(EXAMPLES / "serve.py"), "--port", "0", "--device", "cpu"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = server.stdout.readline().split()[-1]
        bodies = [png(n % 4) for n in range(12)] + [b"bad"]
        with ThreadPoolExecutor(len(bodies)) as pool:
            answers = list(pool.map(lambda body: ask(url, body), bodies))
        server.send_signal(signal.SIGINT)
        assert server.wait(300) == 0

    assert [status for status, _ in answers] == [200] * 12 + [400]
    assert "not an image" in answers[-1][1]["error"]
    for n in range(4, 12):  # the same picture, in whatever batch, is the same
        ours, before = answers[n][1]["classes"][0], answers[n % 4][1]["classes"][0]
        assert ours["class"] == before["class"]
        assert ours["probability"] == pytest.approx(before["probability"], rel=1e-4)


@pytest.mark.long
def test_serving_goes_on_when_the_daemon_was_killed(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address = str(tmp_path / "s")
    monkeypatch.setenv("MILLRACE_SOCKET", address)
    command = [sys.executable, str(EXAMPLES / "serve.py"), "--port", "0", "--device", "cpu"]
    daemon = [os.environ["MILLRACE_DAEMON"], "--socket", address, "--root", str(folder)]
    private, may_start = tmp_path / "millraced", tmp_path / "may start"  # until it has been seen that the daemon has gone
    private.write_text(f'#!/bin/sh\nuntil [ -e "{may_start}" ]; do sleep 0.1; done\nexec "{daemon[0]}" "$@"\n')
    private.chmod(0o755)
    with subprocess.Popen(daemon, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        assert "listening on" in first.stdout.readline()
        environment = {**os.environ, "MILLRACE_DAEMON": str(private)}
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
            assert server.stdout is not None
            url = server.stdout.readline().split()[-1]
            assert ask(url, png(0))[0] == 200
            os.kill(first.pid, signal.SIGKILL)
            first.wait()
            began = time.monotonic()
            while (status := ask(url, png(0))[0]) == 200 and time.monotonic() < began + 60:
                pass
            assert status == 503
            may_start.touch()
            while (status := ask(url, png(0))[0]) == 503 and time.monotonic() < began + 120:
                time.sleep(0.1)
            assert status == 200
            server.send_signal(signal.SIGINT)
            assert server.wait(300) == 0
