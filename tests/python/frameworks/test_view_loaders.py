"""Loaders of recipes with views: a list of tensors in the place of one, for the training loops of self-supervised learning."""

from __future__ import annotations

import csv
import importlib.util
import json
import os
import pickle
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import millrace
import millrace.numpy
import numpy as np
import pytest
from millrace import Recipe, recipes

from pictures import COUNT, EACH, path_of, png

torch = pytest.importorskip("torch", reason="PyTorch is not installed: loaders of views are not tested")

import millrace.torch  # noqa: E402
from millrace.torch import CutMix, Mixed, MixUp  # noqa: E402

pytestmark = pytest.mark.torch
CROPS = recipes.dino(32, 16, 3)
SHAPES = [(3, 32, 32)] * 2 + [(3, 16, 16)] * 3


@pytest.fixture(name="make")
def make_loader(daemon: millrace.PrivateDaemon, folder: Path) -> Iterator[Any]:
    made = []

    def loader(kind: Any = millrace.torch.Loader, recipe: Recipe = CROPS, **options: Any) -> Any:
        given = {"batch_size": 8, "shuffle": True, "seed": 3, "address": daemon.address, **options}
        made.append(kind(*([] if "samples" in given else [given.pop("dataset", folder)]), transform=recipe, **given))
        return made[-1]

    yield loader
    for one in made:
        one.close()


def seen_of(loader: Any, most: int | None = None) -> list[Any]:
    """Ids, labels and bytes of each batch's views."""
    seen = []
    for number, (views, labels) in enumerate(loader, 1):
        seen.append((loader.batch.ids.tolist(), np.asarray(labels).tolist(), [np.asarray(view).tobytes() for view in views]))
        if number == most:
            break
    return seen


def test_it_yields_what_dataloader_collates_of_a_list_of_crops(make: Any, folder: Path) -> None:
    torchvision = pytest.importorskip("torchvision", reason="torchvision is not installed: no transform makes crops")
    crop = torchvision.transforms.Compose([torchvision.transforms.Resize((32, 32)), torchvision.transforms.ToTensor()])
    small = torchvision.transforms.Compose([torchvision.transforms.Resize((16, 16)), torchvision.transforms.ToTensor()])
    dataset = torchvision.datasets.ImageFolder(str(folder), lambda image: [crop(image), crop(image), *(small(image) for _ in range(3))])
    theirs, labels = next(iter(torch.utils.data.DataLoader(dataset, 8)))
    recipe = Recipe.of_views([millrace.torch.from_torchvision(crop)] * 2, [millrace.torch.from_torchvision(small)] * 3)
    ours, found = next(iter(make(recipe=recipe, shuffle=False)))

    assert type(ours) is type(theirs) is list
    assert torch.equal(found, labels)
    for one, other in zip(ours, theirs, strict=True):
        assert (one.dtype, one.shape, one.is_contiguous()) == (other.dtype, other.shape, True)
        torch.testing.assert_close(one, other)


def test_dinos_loop(make: Any) -> None:
    """As github.com/facebookresearch/dino has it: images are moved one by one, joined by size, and go through two networks."""
    student, teacher = (torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(4), torch.nn.Flatten(), torch.nn.Linear(48, 7)) for _ in range(2))
    optimiser = torch.optim.SGD(student.parameters(), 0.1)
    loader = make(drop_last=True)

    def through(network: Any, images: list[Any]) -> Any:
        sizes = torch.unique_consecutive(torch.tensor([image.shape[-1] for image in images]), return_counts=True)[1]
        ends = torch.cumsum(sizes, 0).tolist()
        begins = [0, *ends[:-1]]
        return torch.cat([network(torch.cat(images[begin:end])) for begin, end in zip(begins, ends, strict=True)])

    losses = []
    for epoch in range(2):
        loader.sampler.set_epoch(epoch)
        for images, _ in loader:
            images = [image.to("cpu", non_blocking=True) for image in images]
            with torch.no_grad():
                targets = torch.softmax(through(teacher, images[:2]), -1).chunk(2)
            outputs = torch.log_softmax(through(student, images), -1).chunk(len(images))
            assert [len(output) for output in outputs] == [8] * 5
            pairs = [(t, s) for i, t in enumerate(targets) for k, s in enumerate(outputs) if i != k]
            loss = -sum((t * s).sum(-1).mean() for t, s in pairs) / len(pairs)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses.append(float(loss.detach()))
    assert len(losses) == 2 * (COUNT // 8)
    assert np.isfinite(losses).all()


@pytest.mark.parametrize("recipe", [recipes.simclr(24), recipes.moco_v3(24)], ids=["simclr", "moco_v3"])
def test_two_views_and_an_assignment_to_the_list(make: Any, recipe: Recipe) -> None:
    for images, _ in make(recipe=recipe):
        images[0] = images[0].to("cpu", copy=True)  # as MoCo's loop, with cuda()
        first, second = images
        assert first.shape == second.shape == (len(first), 3, 24, 24)
        assert not torch.equal(first, second)


def test_memory_is_the_slots_and_may_be_written_to(make: Any) -> None:
    loader = make()
    before = seen_of(make())
    for (_, _, unchanged), (views, _) in zip(before, loader, strict=True):
        for number, view in enumerate(views):
            assert view.data_ptr() == loader.batch.views[number].numpy().ctypes.data
            assert view.numpy().tobytes() == unchanged[number]  # whatever the batch before was overwritten with
            view.fill_(7.0)
            assert all((other == 7.0).all() for other in views[: number + 1])


def test_kept_batches_become_copies(make: Any) -> None:
    with pytest.warns(millrace.SlotsHeld):
        kept = [views for views, _ in make(slots=2)]
    for views, (_, _, whole) in zip(kept, seen_of(make()), strict=True):
        assert [view.numpy().tobytes() for view in views] == whole


def test_channels_last_and_types(make: Any) -> None:
    loader = make(memory_format=torch.channels_last, dtype=torch.bfloat16)
    views, _ = next(iter(loader))
    for view, shape in zip(views, SHAPES, strict=True):
        assert view.shape == (8, *shape)
        assert view.dtype == torch.bfloat16
        assert view.is_contiguous(memory_format=torch.channels_last)
    same, _ = next(iter(make(dtype=torch.bfloat16)))
    assert all(torch.equal(one, other) for one, other in zip(views, same, strict=True))


def test_on_another_device(make: Any) -> None:
    loader = make(device="meta")
    for views, labels in loader:
        assert [tuple(view.shape[1:]) for view in views] == SHAPES
        assert {view.device.type for view in [*views, labels]} == {"meta"}


@pytest.mark.parametrize("kind", [millrace.torch.Loader, millrace.numpy.Loader])
def test_a_loop_goes_on_after_its_state(make: Any, kind: Any) -> None:
    whole = seen_of(make(kind))
    first = make(kind)
    assert seen_of(first, 3) == whole[:3]
    state = json.loads(json.dumps(first.state_dict()))
    other = make(kind)
    other.load_state_dict(state)
    assert seen_of(other) == whole[3:]
    ids = sorted(number for ids, _, _ in whole for number in ids)
    assert ids == list(range(COUNT))
    assert all(labels == [number // EACH for number in ids] for ids, labels, _ in whole)


STOPPED = """
import json, sys, millrace, millrace.torch
from millrace import recipes
loader = millrace.torch.Loader(sys.argv[1], recipes.dino(32, 16, 3), batch_size=8, shuffle=True, seed=3)
for number, (views, _) in enumerate(loader, 1):
    print(json.dumps({"state": loader.state_dict(), "sums": [float(view.sum()) for view in views]}), flush=True)
"""


@pytest.mark.long
def test_a_killed_program_goes_on_in_another(make: Any, daemon: millrace.PrivateDaemon, folder: Path) -> None:
    environment = {**os.environ, "MILLRACE_SOCKET": daemon.address}
    with subprocess.Popen([sys.executable, "-c", STOPPED, str(folder)], env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.kill()
    whole = [[float(view.sum()) for view in views] for views, _ in make()]
    assert [line["sums"] for line in lines] == whole[:2]
    rest = make()
    rest.load_state_dict(lines[1]["state"])
    assert [[float(view.sum()) for view in views] for views, _ in rest] == whole[2:]


def test_ranks_samplers_and_lists(make: Any, folder: Path, tmp_path: Path) -> None:
    ranks = [seen_of(make(rank=rank, world_size=2)) for rank in range(2)]
    assert sorted(number for seen in ranks for ids, _, _ in seen for number in ids) == list(range(COUNT))
    rows = [(path_of(folder, number), number % 7) for number in range(20)]
    with (tmp_path / "rows.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("path", "label"), *rows])
    listed = seen_of(make(samples=rows, shuffle=False))
    assert listed == seen_of(make(dataset=tmp_path / "rows.csv", shuffle=False))
    assert [label for _, labels, _ in listed for label in labels] == [number % 7 for number in range(20)]
    sampled = make(samples=rows, shuffle=False, sampler=[5, 5, 0])
    (views, _), *_ = list(sampled)
    assert not torch.equal(views[0][0], views[0][1])  # the same image twice, drawn anew
    encoded = millrace.Encoded([{"jpg": png(number), "cls": number} for number in range(9)])
    (views, labels), *_ = list(make(dataset=encoded, shuffle=False, recipe=Recipe.of_views([Recipe.train(8)] * 2)))
    assert (len(views), labels.tolist()) == (2, list(range(8)))


@pytest.mark.parametrize("on_error", ["skip", "zero", "substitute"])
def test_a_bad_file_is_one_in_every_view(make: Any, folder: Path, on_error: str) -> None:
    bad = folder.parent / f"bad-{on_error}.png"
    bad.write_bytes(png(1)[:100])
    rows = [(path_of(folder, 0), 0), (str(bad), 1), (path_of(folder, 2), 2)]
    whole = make(samples=[row for row in rows if row[1] != 1], shuffle=False, recipe=Recipe.of_views([Recipe.evaluate(24, 20)] * 3))
    (good, _), *_ = list(whole)
    with pytest.warns(millrace.BadImageWarning):
        (views, labels), *_ = list(
            make(samples=rows, shuffle=False, on_error=on_error, recipe=Recipe.of_views([Recipe.evaluate(24, 20)] * 3))
        )
    expected = {"skip": [0, 2], "zero": [0, 1, 2], "substitute": [0, 0, 2]}[on_error]
    assert labels.tolist() == expected
    for view, other in zip(views, good, strict=True):
        zero = torch.zeros_like(other[0])
        rows_of = {"skip": [other[0], other[1]], "zero": [other[0], zero, other[1]], "substitute": [other[0], other[0], other[1]]}
        assert torch.equal(view, torch.stack(rows_of[on_error]))


def test_what_is_not_done_says_so(make: Any) -> None:
    for ways in ([MixUp()], [CutMix()]):
        with pytest.raises(millrace.InvalidRequest, match="makes several views of each image"):
            Mixed(make(), ways, 3)
    with pytest.raises(millrace.InvalidRequest, match="must make images of one size"):
        make(recipe=Recipe.of_views(Recipe.train(8), Recipe(resize=millrace.ShorterSide(8))))


def test_it_says_what_it_is_and_is_pickled(make: Any) -> None:
    loader = make(dtype="uint8", recipe=recipes.swav(32, 16, 1).normalised("uint8"))
    assert "batches of 8 images in 2 views 32 x 32 and 1 view 16 x 16 uint8, shuffled" in repr(loader)
    other = pickle.loads(pickle.dumps(loader))
    assert seen_of(other) == seen_of(loader)
    other.close()


@pytest.mark.long
def test_keras_gets_a_list_of_inputs(make: Any, daemon: millrace.PrivateDaemon, folder: Path) -> None:
    if importlib.util.find_spec("keras") is None:  # importing it here would choose a backend
        pytest.skip("Keras is not installed: a model of two views is not trained")
    program = """
import sys, keras, millrace, millrace.torch, millrace.keras
recipe = millrace.Recipe.of_views([millrace.Recipe.train(16).normalised("float32")] * 2)
inputs = [keras.Input((3, 16, 16)) for _ in range(2)]
outputs = keras.layers.Dense(3)(keras.layers.Concatenate()([keras.layers.Flatten()(each) for each in inputs]))
model = keras.Model(inputs, outputs)
model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
loader = millrace.torch.Loader(sys.argv[1], recipe, batch_size=8, shuffle=True)
print(len(model.fit(millrace.keras.Dataset(loader), epochs=2, verbose=0).history["loss"]))
"""
    environment = {**os.environ, "MILLRACE_SOCKET": daemon.address, "KERAS_BACKEND": "torch", "OMP_NUM_THREADS": "1"}
    ran = subprocess.run(
        [sys.executable, "-c", program, str(folder)], env=environment, capture_output=True, text=True, check=False, timeout=90
    )
    assert (ran.returncode, ran.stdout.split()[-1:]) == (0, ["2"]), ran.stderr


def test_accelerate_and_lightning_take_the_list(make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loader = make(recipe=recipes.simclr(16))
    accelerate = pytest.importorskip("accelerate", reason="accelerate is not installed: a loader of views is not prepared")
    assert accelerate.Accelerator(cpu=True).prepare(loader) is loader
    lightning = pytest.importorskip("lightning", reason="Lightning is not installed: a model of two views is not trained")

    class Model(lightning.LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(3, 3)
            self.shapes: list[Any] = []

        def training_step(self, batch: Any, number: int) -> Any:
            (first, second), labels = batch
            self.shapes.append((first.shape, second.shape, labels.shape))
            return -torch.nn.functional.cosine_similarity(*(self.layer(view.mean((2, 3))) for view in (first, second))).mean()

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    monkeypatch.chdir(tmp_path)
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Lightning's own
        model = Model()
        lightning.Trainer(accelerator="cpu", devices=1, max_epochs=2, **quiet).fit(model, loader)
    assert model.shapes == [((n, 3, 16, 16), (n, 3, 16, 16), (n,)) for n in [*[8] * 7, 4]] * 2


@pytest.mark.jax
def test_jax(make: Any) -> None:
    jax = pytest.importorskip("jax", reason="JAX is not installed: its loader of views is not tested")
    import millrace.jax

    ours = seen_of(make(millrace.jax.Loader))
    assert ours == seen_of(make(millrace.numpy.Loader))
    views, _ = next(iter(make(millrace.jax.Loader)))
    assert all(isinstance(view, jax.Array) for view in views)
    assert [view.shape[1:] for view in views] == SHAPES


@pytest.mark.ray
@pytest.mark.filterwarnings("default")
def test_ray_has_a_column_for_each_view(daemon: millrace.PrivateDaemon, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray.data", reason="Ray Data is not installed: columns of views are not tested")
    import millrace.ray
    import pyarrow as pa
    from millrace.ray._work import SESSIONS

    monkeypatch.setenv("MILLRACE_SOCKET", daemon.address)
    recipe = CROPS.normalised("uint8")
    batch = {"bytes": [png(number) for number in range(5)], "label": np.arange(5)}
    stage = millrace.ray.Preprocess(recipe, "bytes", batch_size=5)
    (part,) = list(stage(batch))
    assert list(part) == ["label", "image_0", "image_1", "image_2", "image_3", "image_4"]
    assert [part[f"image_{number}"].shape for number in range(5)] == [(5, *shape) for shape in SHAPES]
    (table,) = list(stage(pa.table({"bytes": batch["bytes"], "label": batch["label"]})))
    assert table.column_names == list(part)
    for name in table.column_names[1:]:
        np.testing.assert_array_equal(np.stack([each.to_numpy() for each in table.column(name)]), part[name])
    with pytest.raises(millrace.InvalidRequest, match="column 'image_3' already"):
        list(stage({**batch, "image_3": np.arange(5)}))
    SESSIONS.close()
