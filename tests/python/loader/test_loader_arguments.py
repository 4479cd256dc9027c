"""What stands in DataLoader's place is called as DataLoader is: its arguments, its attributes, and what help() and errors say of them."""

from __future__ import annotations

import dataclasses
import inspect
import os
import pickle
import pydoc
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import millrace
import millrace.numpy
import pytest
from millrace._loader.options import DEFAULTS, LoaderOptions, Options

from pictures import COUNT, SIZE

OWN_SIZE = millrace.Recipe(resize=millrace.ExactSize(SIZE), layout="NHWC")
Loader = millrace.numpy.Loader


@pytest.fixture
def make(daemon: millrace.PrivateDaemon, folder: Path) -> Iterator[Callable[..., Any]]:
    made = []

    def loader(**options: Any) -> Any:
        made.append(Loader(folder, OWN_SIZE, **{"batch_size": 8, "address": daemon.address, **options}))
        return made[-1]

    yield loader
    for one in made:
        one.close()


def test_help_and_signature_show_every_keyword(folder: Path) -> None:
    signature = inspect.signature(Loader)

    assert list(signature.parameters)[:3] == ["dataset", "transform", "batch_size"]
    assert {"shuffle", "seed", "drop_last", "timeout", "num_workers", "extensions"} <= set(signature.parameters)
    assert not any(parameter.kind is parameter.VAR_KEYWORD for parameter in signature.parameters.values())
    shown = pydoc.plain(pydoc.render_doc(Loader.__init__))
    for name in signature.parameters:
        assert f"{name}: " in shown, name
    assert "batch_size: 'int' = 64" in shown


def test_type_checkers_and_help_agree() -> None:
    fields = {field.name: field.type for field in dataclasses.fields(Options)}

    types = {name: getattr(hint, "__forward_arg__", hint) for name, hint in LoaderOptions.__annotations__.items()}

    assert types == fields


def test_a_typing_error_is_one_of_the_class_that_was_called(folder: Path) -> None:
    class Mine(Loader):
        pass

    with pytest.raises(TypeError, match=r"^millrace\.numpy\.Loader: .*'shufle'"):
        Loader(folder, shufle=True)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"Mine: too many positional arguments"):
        Mine(folder, 64, True)  # type: ignore[arg-type,call-arg,misc]
    with pytest.raises(TypeError, match="batch_size= and shuffle= are keywords"):
        Loader(folder, 64, True)  # type: ignore[arg-type,call-arg,misc]
    with pytest.raises(millrace.InvalidRequest, match="batch_size=64"):
        Loader(folder, 64)  # type: ignore[arg-type]


WITHOUT_EFFECT: dict[str, Any] = {
    "num_workers": 8,
    "persistent_workers": True,
    "prefetch_factor": 2,
    "multiprocessing_context": "spawn",
    "worker_init_fn": print,
    "generator": object(),
    "pin_memory_device": "cuda",
    "in_order": False,
}


def test_arguments_without_effect_are_told_once(make: Any) -> None:
    with pytest.warns(UserWarning, match=r"millrace\.numpy\.Loader: .*num_workers, persistent_workers, prefetch_factor") as told:
        loader = make(**WITHOUT_EFFECT)

    assert len(told) == 1
    assert told[0].filename == __file__
    assert all(name in str(told[0].message) for name in WITHOUT_EFFECT)
    assert sum(len(labels) for _, labels in loader) == COUNT


def test_what_has_no_effect_does_not_keep_a_loader_from_travelling(make: Any) -> None:
    with pytest.warns(UserWarning, match="worker_init_fn"):
        loader = make(worker_init_fn=lambda worker: None, num_workers=1)

    with pickle.loads(pickle.dumps(loader)) as other:
        assert other.samples == COUNT


def test_dataloaders_defaults_are_silent(make: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(**{name: DEFAULTS[name] for name in WITHOUT_EFFECT}, collate_fn=None, sampler=None, batch_sampler=None)


def test_what_cannot_be_ignored_is_refused_with_what_to_do(make: Any) -> None:
    with pytest.raises(millrace.InvalidRequest, match=r"millrace\.numpy\.Loader: collate_fn is not taken: .*what the loop gets"):
        make(collate_fn=list)


def test_dataloaders_attributes(make: Any, folder: Path) -> None:
    loader = make(drop_last=True, rank=0, world_size=2, shuffle=True, seed=7)

    assert len(loader.dataset) == COUNT
    assert loader.dataset.classes == loader.classes
    assert (loader.batch_size, loader.drop_last, loader.num_workers, len(loader)) == (8, True, 0, 3)


def test_repr_says_what_it_is(make: Any, folder: Path) -> None:
    assert repr(make()) == f"<millrace.numpy.Loader of {folder}: batches of 8 images 48 x 32 uint8, in order, epoch 0>"
    assert "shuffled by seed 3" in repr(make(shuffle=True, seed=3))
    repr(make(address="/nowhere/s"))


@pytest.mark.parametrize("timeout", [-1, -0.001, float("nan"), "1", -float("inf")])
def test_a_timeout_that_is_none_is_refused(make: Any, timeout: Any) -> None:
    with pytest.raises(millrace.InvalidRequest, match="timeout is a number of seconds, 0 or None for ever"):
        make(timeout=timeout)


@pytest.mark.parametrize("batch_size", [None, 2.5, 8.0, "8", True])
def test_a_batch_size_that_is_none_is_refused(make: Any, batch_size: Any) -> None:
    with pytest.raises(millrace.InvalidRequest, match="batch_size is a number of images"):
        make(batch_size=batch_size)


@pytest.mark.parametrize("writable", [None, 1, "no"])
def test_writable_is_one_of_two(make: Any, client: millrace.Client, writable: Any) -> None:
    with pytest.raises(millrace.InvalidRequest, match="loader: writable is True or False"):
        make(writable=writable)
    with pytest.raises(millrace.InvalidRequest, match="session: writable is True or False"):
        client.session(OWN_SIZE, writable=writable)


@pytest.mark.parametrize("timeout", [0, 0.0, None])
def test_without_a_timeout_a_loop_waits_until_the_daemon_is_gone(folder: Path, timeout: Any) -> None:
    daemon = millrace.serve(folder, lanes=1)
    with daemon, Loader(folder, OWN_SIZE, batch_size=4, slots=2, timeout=timeout, address=daemon.address) as loader:
        iterator = iter(loader)
        next(iterator)
        os.kill(daemon.pid, signal.SIGSTOP)  # what it has read ahead still comes, and then nothing
        threading.Timer(0.3, os.kill, (daemon.pid, signal.SIGKILL)).start()
        with pytest.raises(millrace.DaemonUnavailable):
            list(map(len, iterator))


@pytest.mark.torch
def test_a_sampler_to_set_the_epoch_of(daemon: millrace.PrivateDaemon, folder: Path) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: its sampler is not tried")
    import millrace.torch

    options: dict[str, Any] = {"batch_size": 8, "address": daemon.address}
    with millrace.torch.Loader(folder, OWN_SIZE, shuffle=True, rank=1, world_size=2, **options) as loader:
        loader.sampler.set_epoch(3)
        assert (loader.epoch, len(loader.sampler)) == (3, 30)
        assert not isinstance(loader.sampler, torch.utils.data.SequentialSampler)
        with pytest.raises(millrace.Unsupported, match=r"loader\.batch\.ids"):
            list(loader.sampler)
    assert isinstance(millrace.torch.Loader(folder, OWN_SIZE).sampler, torch.utils.data.SequentialSampler)


@pytest.mark.torch
def test_torchs_loader_shows_its_own_keywords_and_all_others() -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed: its loader's signature is not looked at")
    import millrace.torch

    names = list(inspect.signature(millrace.torch.Loader).parameters)

    assert names[:5] == ["dataset", "transform", "device", "memory_format", "pin_memory"]
    assert names[5:] == list(DEFAULTS)


@pytest.mark.jax
def test_jaxs_loader_shows_its_own_keywords_and_all_others() -> None:
    pytest.importorskip("jax", reason="JAX is not installed: its loader's signature is not looked at")
    import millrace.jax

    names = list(inspect.signature(millrace.jax.Loader).parameters)

    assert names == ["dataset", "transform", "device", *DEFAULTS]
