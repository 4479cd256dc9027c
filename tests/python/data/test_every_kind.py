"""Every kind of dataset, written by the libraries of its users, is the same to a loop as a folder of the same files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import millrace
import millrace.numpy
import numpy as np
import pytest

from kinds import CLASSES, KINDS, json_of, write_all
from pictures import SIZE, pixels_of

pytestmark = pytest.mark.torch  # these packages are there where PyTorch is
torch = pytest.importorskip("torch", reason="PyTorch is not installed: its loader is not tried")
for package in ("datasets", "PIL", "pyarrow", "webdataset"):
    pytest.importorskip(package, reason=f"{package} is not installed: what it writes is not compared")

COUNT = 130


@pytest.fixture(scope="module", name="place")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("kinds")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        write_all(folder, COUNT)
        yield folder


@pytest.fixture(scope="module", name="address")
def daemon_of_the_place(place: Path) -> Iterator[str]:
    with millrace.serve(place, lanes=2) as daemon:
        yield daemon.address


def seen_of(loader: Any) -> dict[int, tuple[int, Any, Any]]:
    """Of an epoch by id, in its order: label, JSON and image."""
    seen: dict[int, tuple[int, Any, Any]] = {}
    for images, labels in loader:
        for n, label, value, image in zip(loader.batch.ids.tolist(), labels["label"].tolist(), labels["json"], images, strict=True):
            assert n not in seen
            seen[n] = label, value, image.clone()
    return seen


def loader_of(kind: str, place: Path, address: str, recipe: millrace.Recipe, **options: Any) -> Any:
    import millrace.torch

    options = {**KINDS[kind].options, "batch_size": 16, "seed": 3, "address": address, **options}
    return millrace.torch.Loader(KINDS[kind].open(place), recipe, **options)


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_as_a_folder_of_the_same_files(kind: str, place: Path, address: str) -> None:
    in_turn = {} if "in blocks" in KINDS[kind].read_by else {"shuffle": False}
    with loader_of(kind, place, address, millrace.Recipe(resize=millrace.ExactSize(SIZE)), **in_turn) as loader:
        seen = seen_of(loader)
        assert loader.read_by.startswith(KINDS[kind].read_by)
    assert (list(seen) if in_turn else sorted(seen)) == list(range(COUNT))
    for n, (label, value, image) in seen.items():
        assert (label, value) == (n % CLASSES, json_of(n))
        np.testing.assert_array_equal(image.permute(1, 2, 0).numpy(), pixels_of(n))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "files"])
def test_a_model_is_trained_on_the_same_crops(kind: str, place: Path, address: str) -> None:
    """Shuffled: what is drawn for an image depends on its id, the seed and the epoch."""
    recipe = millrace.Recipe.train(24)
    torch.manual_seed(8)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 24 * 24, CLASSES))
    optimiser = torch.optim.SGD(model.parameters(), 0.01)
    losses = []
    with loader_of("files", place, address, recipe) as files, loader_of(kind, place, address, recipe) as loader:
        for _ in range(4):
            expected, seen = seen_of(files), seen_of(loader)
            assert list(seen) != sorted(seen) == sorted(expected)
            assert all(seen[n][:2] == expected[n][:2] and torch.equal(seen[n][2], expected[n][2]) for n in expected)
            labels, images = torch.tensor([label for label, *_ in seen.values()]), torch.stack([image for *_, image in seen.values()])
            loss = torch.nn.functional.cross_entropy(model(images / 255), labels)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses.append(float(loss.detach()))
    assert losses[-1] < losses[0]
