"""What split() leaves over, done to each image of a loader's batches in threads."""

from __future__ import annotations

import sys
import threading
import traceback
from pathlib import Path
from typing import Any

import millrace
import pytest

from pictures import CLASSES, COUNT

torch = pytest.importorskip("torch", reason="PyTorch is not installed: nothing of millrace.torch is tested")
v2 = pytest.importorskip("torchvision.transforms.v2", reason="torchvision is not installed: none of its transforms are left over")

from millrace.torch import Loader, Rest, split  # noqa: E402

pytestmark = pytest.mark.torch
RECIPE = millrace.Recipe.train(24).normalised("float32")


def loader(daemon: millrace.PrivateDaemon, folder: Path, recipe: Any = RECIPE, **options: Any) -> Loader:
    return Loader(folder, recipe, batch_size=4, shuffle=True, seed=3, address=daemon.address, **options)


def test_each_image_goes_through_all_of_it_with_its_label(daemon: millrace.PrivateDaemon, folder: Path) -> None:
    rest = [lambda image: image + 1.0, lambda image: image[:, :8]]
    with loader(daemon, folder) as plain, loader(daemon, folder) as finished:
        for (images, labels), (ours, our_labels) in zip(plain, Rest(finished, rest, threads=3), strict=True):
            assert torch.equal(ours, images[:, :, :8] + 1.0)
            assert torch.equal(our_labels, labels)


def test_a_divided_transform_is_the_whole_one(daemon: millrace.PrivateDaemon, folder: Path) -> None:
    from torchvision.datasets import ImageFolder

    whole = v2.Compose([v2.Resize((20, 24)), v2.Lambda(lambda image: image.rotate(90)), v2.PILToTensor()])
    recipe, rest = split(whole)
    assert [type(each).__name__ for each in rest] == ["ToPILImage", "Lambda", "PILToTensor"]
    theirs = ImageFolder(str(folder), whole)
    with Loader(folder, recipe, batch_size=5, address=daemon.address) as plain:
        ours = [image for images, _ in Rest(plain, rest) for image in images]
    assert len(ours) == len(theirs) == COUNT
    for image, (wanted, _) in zip(ours, theirs, strict=True):
        assert torch.equal(image, wanted)


def test_images_of_a_batch_are_worked_on_at_a_time(daemon: millrace.PrivateDaemon, folder: Path) -> None:
    all_here = threading.Barrier(4, timeout=300)

    def wait_for_the_others(image: Any) -> Any:
        all_here.wait()
        return image

    with loader(daemon, folder, drop_last=True) as plain:
        images, _ = next(iter(Rest(plain, [wait_for_the_others], threads=4)))
    assert images.shape == (4, 3, 24, 24)


def test_one_thread_draws_as_its_seed_says(daemon: millrace.PrivateDaemon, folder: Path) -> None:
    def drawn() -> list[Any]:
        torch.manual_seed(7)
        with loader(daemon, folder) as plain:
            return [images for images, _ in Rest(plain, [v2.GaussianNoise()], threads=1)]

    first, second = drawn(), drawn()
    assert all(torch.equal(one, other) for one, other in zip(first, second, strict=True))


def test_it_is_resumed_as_its_loader(daemon: millrace.PrivateDaemon, folder: Path) -> None:
    rest = [lambda image: -image]
    with loader(daemon, folder) as plain:
        wanted = [images.clone() for images, _ in Rest(plain, rest)]
    with loader(daemon, folder) as plain:
        stopped = Rest(plain, rest)
        taken = iter(stopped)
        next(taken)
        state = stopped.state_dict()
    with loader(daemon, folder) as plain:
        again = Rest(plain, rest)
        again.load_state_dict(state)
        assert len(again) == len(wanted)
        went_on = [images for images, _ in again]
    assert len(went_on) == len(wanted) - 1
    assert all(torch.equal(one, other) for one, other in zip(went_on, wanted[1:], strict=True))


def test_what_a_transform_raises_says_of_which_image(daemon: millrace.PrivateDaemon, folder: Path) -> None:
    def fail(image: Any) -> Any:
        raise ArithmeticError("no such thing")

    with loader(daemon, folder) as plain, pytest.raises(ArithmeticError, match="no such thing") as caught:
        next(iter(Rest(plain, [fail])))
    if sys.version_info >= (3, 11):
        text = "".join(traceback.format_exception(caught.value))
        assert "millrace.torch.Rest, of sample" in text
        assert any(name in text for name in CLASSES)


def test_nothing_left_over_changes_nothing(daemon: millrace.PrivateDaemon, folder: Path) -> None:
    with loader(daemon, folder) as plain, loader(daemon, folder) as other:
        for (images, _), (same, _) in zip(plain, Rest(other, []), strict=True):
            assert torch.equal(images, same)


def test_what_makes_no_sense_is_refused(daemon: millrace.PrivateDaemon, folder: Path) -> None:
    with loader(daemon, folder) as plain:
        for rest in ("rotate", [None], [v2.RGB(), 3]):
            with pytest.raises(millrace.InvalidRequest, match="must be transforms"):
                Rest(plain, rest)
        for threads in (0, -1, True, 1.5):
            with pytest.raises(millrace.InvalidRequest, match="threads must be"):
                Rest(plain, [v2.RGB()], threads)  # type: ignore[arg-type]
    with (
        loader(daemon, folder, millrace.Recipe.of_views(RECIPE, RECIPE)) as views,
        pytest.raises(millrace.InvalidRequest, match="several views"),
    ):
        Rest(views, [v2.RGB()])
