"""Whose share a loader reads is found when it is used, not when it is made."""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import millrace
import millrace.numpy
import pytest

from folder_loaders import OWN_SIZE, ids_of
from pictures import CLASSES, COUNT


@pytest.fixture
def loader(daemon: millrace.PrivateDaemon, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with millrace.numpy.Loader(folder, OWN_SIZE, batch_size=5, address=daemon.address) as made:
        yield made


def set_ranks(monkeypatch: pytest.MonkeyPatch, rank: int, world_size: int) -> None:
    monkeypatch.setenv("RANK", str(rank))
    monkeypatch.setenv("WORLD_SIZE", str(world_size))


def test_ranks_are_those_of_the_first_use(loader: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    set_ranks(monkeypatch, 1, 3)

    assert (loader.rank, loader.world_size, loader.samples, len(loader)) == (1, 3, 20, 4)
    assert len(ids_of(loader)) == 20


def test_what_was_asked_before_the_ranks_were_known_does_not_hold(loader: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(loader) == 12

    set_ranks(monkeypatch, 0, 2)

    assert len(loader) == 6
    assert len(ids_of(loader)) == 30


def test_ranks_hold_while_a_loop_runs(loader: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    set_ranks(monkeypatch, 0, 2)
    iterator = iter(loader)
    next(iterator)

    set_ranks(monkeypatch, 2, 3)

    assert (loader.rank, loader.world_size, len(loader)) == (0, 2, 6)
    assert len(list(map(len, iterator))) == 5
    assert (loader.rank, loader.world_size, len(loader)) == (2, 3, 4)


def test_ranks_do_not_travel_with_a_loader(loader: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    iterator = iter(loader)
    next(iterator)
    travelled = pickle.dumps(loader)

    set_ranks(monkeypatch, 1, 2)

    with pickle.loads(travelled) as other:
        assert (other.rank, other.world_size, len(other)) == (1, 2, 6)


def test_a_state_is_loaded_before_the_ranks_are_known(loader: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    set_ranks(monkeypatch, 0, 2)
    next(iter(loader))
    state, whole = loader.state_dict(), []
    for rank in range(2):
        monkeypatch.delenv("RANK")
        monkeypatch.setenv("WORLD_SIZE", "1")
        loader.load_state_dict(state)
        set_ranks(monkeypatch, rank, 2)
        whole += ids_of(loader)

    assert len(set(whole)) == COUNT - 10


@pytest.mark.parametrize(
    ("rank", "world_size", "said"), [("", "2", "RANK is not set"), ("2", "2", "RANK must be"), ("-1", "2", "RANK must be")]
)
def test_a_world_without_a_rank_is_an_error_that_says_what_to_do(
    loader: Any, monkeypatch: pytest.MonkeyPatch, rank: str, world_size: str, said: str
) -> None:
    monkeypatch.setenv("WORLD_SIZE", world_size)
    if rank:
        monkeypatch.setenv("RANK", rank)

    for use in (lambda: loader.rank, lambda: len(loader), lambda: next(iter(loader))):
        with pytest.raises(millrace.InvalidRequest, match=said):
            use()
    monkeypatch.setenv("RANK", "0")
    assert ids_of(loader)[0] == 0


def test_what_does_not_depend_on_the_rank_is_known_without_it(loader: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")

    assert loader.classes == CLASSES
    assert len(loader.dataset) == COUNT
    monkeypatch.setenv("RANK", "1")
    assert len(ids_of(loader)) == COUNT // 2


def test_given_ranks_need_no_environment(daemon: millrace.PrivateDaemon, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "9")
    monkeypatch.delenv("RANK", raising=False)
    with millrace.numpy.Loader(folder, OWN_SIZE, rank=1, world_size=2, address=daemon.address) as loader:
        assert loader.samples == 30
    with pytest.raises(millrace.InvalidRequest, match="they are 2 and 2"):
        millrace.numpy.Loader(folder, OWN_SIZE, rank=2, world_size=2)
    with pytest.raises(millrace.InvalidRequest, match="together"):
        millrace.numpy.Loader(folder, OWN_SIZE, world_size=2)


# --------------------------------------------------------------------------------------- processes, as the frameworks start them

SPAWN = """
import os, sys
import torch, torch.distributed, torch.multiprocessing
import millrace, millrace.torch

def work(rank, loader, store, output):
    os.environ.update(WORLD_SIZE="2", LOCAL_RANK=str(rank))  # as Lightning's processes have them
    try:
        len(loader)
    except millrace.InvalidRequest as why:
        assert "torch.distributed" in str(why)
    else:
        sys.exit("a rank was made up")
    torch.distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    ids = [int(n) for _ in loader for n in loader.batch.ids]
    assert (loader.rank, loader.world_size, len(ids)) == (rank, 2, loader.samples)
    with open(f"{output}.{rank}", "w") as file:
        print(*ids, file=file)
    torch.distributed.destroy_process_group()

if __name__ == "__main__":
    address, folder, place = sys.argv[1:]
    loader = millrace.torch.Loader(folder, millrace.Recipe.train(24), batch_size=8, shuffle=True, address=address)
    assert len(loader) == 8
    torch.multiprocessing.spawn(work, (loader, place + "/store", place + "/ids"), nprocs=2)
"""


def clean_environment() -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE", "LOCAL_RANK")}
    return {**environment, "PYTHONWARNINGS": "ignore"}


@pytest.mark.torch
@pytest.mark.long
def test_a_loader_made_before_torch_spawns_its_processes(daemon: millrace.PrivateDaemon, folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed: its processes are not tried")
    (tmp_path / "program.py").write_text(SPAWN)

    command = [sys.executable, str(tmp_path / "program.py"), daemon.address, str(folder), str(tmp_path)]
    subprocess.run(command, env=clean_environment(), check=True, timeout=900)

    ids = [int(n) for rank in range(2) for n in (tmp_path / f"ids.{rank}").read_text().split()]
    assert sorted(ids) == list(range(COUNT))


JAX = """
import sys
import jax
import millrace, millrace.jax
address, folder, coordinator, rank = sys.argv[1:]
loader = millrace.jax.Loader(folder, millrace.Recipe.train(24), batch_size=8, shuffle=True, address=address)
jax.distributed.initialize(coordinator, 2, int(rank))
assert (loader.rank, loader.world_size) == (int(rank), 2)
with loader:
    for _ in loader:
        print(*loader.batch.ids)
jax.distributed.shutdown()
"""


@pytest.mark.jax
def test_ranks_of_jax_processes(daemon: millrace.PrivateDaemon, folder: Path) -> None:
    pytest.importorskip("jax", reason="JAX is not installed: its processes are not tried")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        coordinator = f"127.0.0.1:{free.getsockname()[1]}"
    commands = [[sys.executable, "-c", JAX, daemon.address, str(folder), coordinator, str(rank)] for rank in range(2)]
    environment = {**clean_environment(), "JAX_PLATFORMS": "cpu"}

    processes = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for command in commands]
    outputs = [process.communicate(timeout=900)[0] for process in processes]

    assert [process.returncode for process in processes] == [0, 0]
    assert sorted(int(n) for output in outputs for n in output.split()) == list(range(COUNT))
