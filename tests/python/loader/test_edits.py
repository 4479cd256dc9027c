"""What a program changes between two loops of a loader: its dataset, the daemon, where the next loop begins."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from pathlib import Path
from typing import Any

import millrace
import millrace.numpy
import pytest

from pictures import COUNT, EACH, path_of

RECIPE = millrace.Recipe(crop=millrace.RandomResizedCrop((0.2, 1.0)), resize=millrace.ExactSize(millrace.Size(8, 8)))
OPTIONS = ("writable", "resume", "shuffle", "drop_last")


class Sampler:
    """Draws from a generator of its own."""

    def __init__(self, seed: int) -> None:
        import numpy as np

        self.generator = np.random.default_rng(seed)

    def __iter__(self) -> Any:
        return iter(self.generator.permutation(COUNT).tolist())

    def __len__(self) -> int:
        return COUNT


def ids(loader: Any) -> list[int]:
    return [int(number) for _ in loader for number in loader.batch.ids]


@pytest.mark.torch
def test_an_image_folder_that_is_edited_between_two_loops_is_read_as_it_is_then(daemon: millrace.PrivateDaemon, folder: Path) -> None:
    datasets = pytest.importorskip("torchvision.datasets", reason="torchvision is not installed: it has no ImageFolder")
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    whole = datasets.ImageFolder(str(folder))
    subset = torch.utils.data.Subset(whole, [1, 21, 41])
    with millrace.numpy.Loader(subset, RECIPE, batch_size=COUNT, address=daemon.address) as loader:
        assert [labels.tolist() for _, labels in loader] == [[0, 1, 2]]
        whole.target_transform = lambda label: label + 100
        assert [labels.tolist() for _, labels in loader] == [[100, 101, 102]]
        subset.indices = [59, 0]
        assert [labels.tolist() for _, labels in loader] == [[102, 100]]
        whole.samples[0] = (path_of(folder, EACH), 7)
        assert [labels.tolist() for _, labels in loader] == [[102, 107]]
        whole.transform = lambda image: image
        with pytest.raises(millrace.InvalidRequest, match="another transform"):
            next(iter(loader))


def test_a_daemon_that_went_away_between_two_loops_is_waited_for(folder: Path, tmp_path: Path) -> None:
    program = os.environ["MILLRACE_DAEMON"]
    command = [program, "--socket", str(tmp_path / "s"), "--root", str(folder.parent), "--lanes", "1"]
    running: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        running.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL))

    start()
    starting = threading.Timer(1, start)
    try:
        assert running[0].stdout is not None
        assert b"listening on" in running[0].stdout.readline()
        loader = millrace.numpy.Loader(folder, RECIPE, batch_size=20, address=tmp_path / "s", resume=True, resume_within=60)
        assert ids(loader) == list(range(COUNT))
        running[0].kill()
        running[0].wait()
        starting.start()
        assert ids(loader) == list(range(COUNT))
        loader.close()
        never = millrace.numpy.Loader(folder, RECIPE, address=tmp_path / "nobody", resume=True)
        with pytest.raises(millrace.DaemonUnavailable):  # at once: none was ever there
            next(iter(never))
    finally:
        starting.cancel()
        if starting.ident:
            starting.join()
        for process in running:
            with process:
                process.kill()


def test_batches_are_left_out_of_the_order_that_a_state_has(daemon: millrace.PrivateDaemon, folder: Path) -> None:
    def made(seed: int) -> millrace.numpy.Loader:
        return millrace.numpy.Loader(folder, RECIPE, batch_size=10, sampler=Sampler(seed), address=daemon.address)

    with made(1) as first, made(2) as second:
        whole, states = [], []
        for _ in first:
            whole += first.batch.ids.tolist()
            states.append(json.dumps(first.state_dict()))
        second.load_state_dict(json.loads(states[2]))
        second.skip_first_batches(5)
        assert ids(second) == whole[50:]


def test_a_bad_image_is_named_with_its_id(daemon: millrace.PrivateDaemon, folder: Path) -> None:
    files = [path_of(folder, number) for number in range(COUNT)]
    files[33] = f"{folder}/ant/nowhere.png"
    loader = millrace.numpy.Loader([(file, 0) for file in files], RECIPE, batch_size=10, on_error="fail", address=daemon.address)
    with loader, pytest.raises(millrace.SampleFailed, match="image 3, whose id is 33"):
        ids(loader)


def test_options_that_are_none_are_refused_at_once(folder: Path) -> None:
    wrong: list[dict[str, Any]] = [{name: value} for name in OPTIONS for value in ("False", None, 1)]
    wrong += [{"resume_within": value} for value in (None, "5", -1)]
    wrong += [{"timeout": True}, {"memory": ""}, {"extensions": 5}, {"extensions": b"jpg"}, {"rank": "0", "world_size": 1}]
    for options in wrong:
        with pytest.raises(millrace.InvalidRequest, match=next(iter(options))):
            millrace.numpy.Loader(folder, RECIPE, **options)
    with pytest.raises(millrace.InvalidRequest, match="numbered from 0"):
        millrace.numpy.Loader(folder, RECIPE).set_epoch(-1)
