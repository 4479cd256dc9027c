"""Examples of the package's pages and of the first page, executed as they stand, but for the paths."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import queue
import re
import tarfile
import textwrap
import threading
from pathlib import Path
from typing import Any

import millrace
import millrace.aio
import millrace.recipes
import numpy as np
import pytest
from millrace import steps

from pictures import CLASSES, COUNT, EACH, SIZE, path_of, pixels_of, png
from processes import eventually

pytest.importorskip("torch", reason="PyTorch is not installed: the pages' examples are not executed")
pytestmark = pytest.mark.torch

import millrace.torch  # noqa: E402

from paired import make_place  # noqa: E402

TOP = Path(__file__).parents[3]
PACKAGE = TOP / "client" / "python"
PAGES = [PACKAGE / "README.md", *sorted((PACKAGE / "doc").glob("*.md"))]


def examples(*pages: Path) -> list[str]:
    return [block for page in pages or PAGES for block in re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.M | re.S)]


def test_training_in_three_lines(daemon: millrace.PrivateDaemon, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILLRACE_SOCKET", daemon.address)
    seen = []

    def train(images: Any, labels: Any) -> None:
        assert images.shape[1:] == (3, 224, 224)
        seen.append(len(labels))

    code = example_with('loader = millrace.torch.Loader("/data/train", millrace.Recipe.train(224), batch_size=64, shuffle=True, dtype=')
    names: dict[str, Any] = {"train": train}
    exec(code.replace("/data/train", str(folder)), names)
    names["loader"].close()
    assert sum(seen) == COUNT


def test_training_of_the_projects_readme(daemon: millrace.PrivateDaemon, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILLRACE_SOCKET", daemon.address)
    seen = []

    def train(images: Any, labels: Any) -> None:
        assert images.shape[1:] == (3, 224, 224)
        assert images.min() >= 0
        assert images.max() <= 1
        seen.append(len(labels))

    (code,) = examples(TOP / "README.md")
    exec(code.replace("/data/train", str(folder)).replace("range(90)", "range(2)"), {"train": train})
    assert sum(seen) == 2 * COUNT


def test_serving_in_three_lines(daemon: millrace.PrivateDaemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILLRACE_SOCKET", daemon.address)
    names: dict[str, Any] = {"jpeg": png(0), "png": png(1), "model": lambda images: images.mean(dim=(1, 2, 3))}

    exec(example_with("session = millrace.connect().session(millrace.Recipe.evaluate(256, 224)"), names)

    assert names["logits"].shape == (2,)
    exec(example_with("ring = session.ring("), names)
    assert len(names["batch"]) == 2
    names["session"].close()


def test_a_thread_that_takes_ahead_keeps_the_batches(daemon: millrace.PrivateDaemon, folder: Path) -> None:
    names: dict[str, Any] = {}
    exec(example_with("def with_batches(loader)"), names)
    waiting: queue.Queue[Any] = queue.Queue(3)

    def take() -> None:
        for one in names["with_batches"](loader):
            waiting.put(one, timeout=300)
        waiting.put(None)

    recipe = millrace.Recipe(resize=millrace.ExactSize(SIZE))
    with millrace.torch.Loader(folder, recipe, batch_size=8, slots=5, shuffle=True, address=daemon.address) as loader:
        assert loader.batch is None
        ahead = threading.Thread(target=take, daemon=True)
        ahead.start()
        seen: list[int] = []
        while (one := waiting.get(timeout=300)) is not None:
            images, labels, batch = one
            assert batch.paths == [path_of(folder, int(number)) for number in batch.ids]
            assert labels.tolist() == [int(number) // EACH for number in batch.ids]
            for image, number in zip(images.permute(0, 2, 3, 1).numpy(), batch.ids.tolist(), strict=True):
                np.testing.assert_array_equal(image, pixels_of(number))
            seen += batch.ids.tolist()
            if len(seen) == 8:
                eventually(waiting.full, "the thread is ahead")
                assert loader.batch is not batch
            del one, images, labels, batch
        ahead.join(300)
        assert sorted(seen) == list(range(COUNT))
        assert loader.batch is None


def test_asyncio(daemon: millrace.PrivateDaemon, own_size: millrace.Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILLRACE_SOCKET", daemon.address)
    names: dict[str, Any] = {"millrace": millrace, "recipe": own_size, "jpeg": png(0)}

    exec(f"async def example():\n{textwrap.indent(example_with('import millrace.aio'), '    ')}    return len(batch)", names)

    assert asyncio.run(names["example"]()) == 1


def example_with(text: str) -> str:
    (code,) = (code for code in examples() if text in code)
    return code


@pytest.fixture
def names(daemon: millrace.PrivateDaemon, folder: Path, own_size: millrace.Recipe, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the examples about datasets presuppose."""
    import millrace.torch
    import numpy as np
    import torch

    monkeypatch.setenv("MILLRACE_SOCKET", daemon.address)
    paths = [path_of(folder, n) for n in range(COUNT)]
    texts = [f"picture {n}" for n in range(COUNT)]
    return {"millrace": millrace, "torch": torch, "recipe": own_size, "paths": paths, "vectors": np.eye(COUNT), "captions": texts}


def test_lists_of_files(names: dict[str, Any], folder: Path) -> None:
    seen: list[str] = []

    def train(images: Any, vectors: Any, captions: list[str]) -> None:
        assert [f"picture {n}" for n in vectors.int().argmax(1)] == captions
        seen.extend(captions)

    code = example_with("samples=[(")
    for n, name in enumerate(("cat/1.jpg", "dog/7.jpg")):
        code = code.replace(f"/data/train/{name}", path_of(folder, n))
    exec(code, {**names, "train": train})
    assert len(seen) == COUNT


def test_manifests(names: dict[str, Any], folder: Path, tmp_path: Path) -> None:
    lines = "".join(f"{Path(path_of(folder, n)).relative_to(folder)},{CLASSES[n // EACH]}\n" for n in range(COUNT))
    (tmp_path / "train.csv").write_text("image,breed\n" + lines)

    code = example_with("read_manifest").replace("train.csv", str(tmp_path / "train.csv")).replace("/data/photos", str(folder))
    exec(code, names)

    with names["loader"] as loader:
        assert (sum(len(labels) for _, labels in loader), loader.classes) == (54, CLASSES)


def test_images_and_masks(daemon: millrace.PrivateDaemon, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILLRACE_SOCKET", daemon.address)
    make_place(folder.parent / "readme")
    code, seen = example_with("millrace.Pairs").replace("/data/", f"{folder.parent}/readme/pairs/").replace("512", "64"), []

    def model(images: Any) -> Any:
        seen.append(images.shape)
        return images.mean(1, keepdim=True).repeat(1, 12, 1, 1)

    exec(code, {"millrace": millrace, "model": model})
    assert seen == [(16, 3, 64, 64), (4, 3, 64, 64)]


def test_splitting_a_transform(names: dict[str, Any], folder: Path) -> None:
    torchvision = pytest.importorskip("torchvision", reason="torchvision is not installed: its example is not executed")
    v2 = pytest.importorskip("torchvision.transforms.v2")
    code = example_with("millrace.torch.split(transform)").replace("/data/train", str(folder))

    names |= {"torchvision": torchvision, "train": lambda images, labels: None}
    for rest, count in (([v2.Lambda(lambda image: image), v2.ToImage()], 3), ([], 0)):
        names["transform"] = v2.Compose([v2.Resize((20, 24)), *rest])
        exec(code, names)
        assert len(names["rest"]) == count
        assert names["images"].shape[1:] == (3, 20, 24)


def test_augmentation(daemon: millrace.PrivateDaemon, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILLRACE_SOCKET", daemon.address)
    names: dict[str, Any] = {}
    code = example_with("Mixed(loader").replace("/data/train", str(folder)).replace("batch_size=256", "batch_size=20")

    exec(code, names)

    names["loader"].close()
    assert (names["images"].shape, names["targets"].shape) == ((20, 3, 224, 224), (20, 1000))


def table_after(head: str) -> list[list[str]]:
    """The cells of the table's rows."""
    (page,) = (text for text in (page.read_text() for page in PAGES) if head in text)
    lines = page.partition(head)[2].splitlines()[2:]
    return [re.split(r"(?<!\\) \| ", line[2:-2]) for line in itertools.takewhile(lambda line: line.startswith("| "), lines)]


def test_the_table_of_a_recipes_fields_has_all_of_them_with_their_defaults() -> None:
    rows = {row[0]: row for row in table_after("| field | default |")}

    assert set(rows) == {f"`{field.name}`" for field in dataclasses.fields(millrace.Recipe)}
    for field in dataclasses.fields(millrace.Recipe):
        assert rows[f"`{field.name}`"][1] == f"`{field.default!r}`"
    for name in re.findall(r"`(\w+)\(|`([A-Z][A-Za-z]+)`", "".join(row[2] for row in rows.values())):
        assert hasattr(millrace, name[0] or name[1]) or name[1] in ("RGB", "BGR", "NCHW", "NHWC", "True"), name


def test_the_table_of_steps_has_all_of_them_with_their_arguments() -> None:
    rows = table_after("| `millrace.steps` | arguments")
    told = {name.strip("`"): arguments for names, arguments in rows for name in names.split(", ")}

    kinds = {name: kind for name, kind in vars(steps).items() if isinstance(kind, type) and issubclass(kind, steps.Step)}
    del kinds["Step"]
    assert set(told) == set(kinds)
    for name, kind in kinds.items():
        fields = [field for field in dataclasses.fields(kind) if field.name not in ("_", "probability")]
        said = ", ".join(f"{field.name}={field.default!r}" for field in fields).replace("'", '"')
        assert told[name].strip("`") == (said or "none")


def test_the_published_recipes_that_are_not_normalised_are_named() -> None:
    unit = {name for name in millrace.recipes.__all__ if getattr(millrace.recipes, name)().normalise is None}

    assert unit == {"simclr", "letterbox", "large_scale_jitter"}
    assert "but for `simclr`, `letterbox` and `large_scale_jitter`, which are in [0, 1]" in (PACKAGE / "doc/overview.md").read_text()


def test_samplers(names: dict[str, Any], folder: Path) -> None:
    names["weights"] = [1.0] * COUNT
    exec(example_with("WeightedRandomSampler(").replace("/data/train", str(folder)), names)

    with names["loader"] as loader:
        assert sum(len(labels) for _, labels in loader) == COUNT


def test_several_views(daemon: millrace.PrivateDaemon, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILLRACE_SOCKET", daemon.address)
    names: dict[str, Any] = {}

    exec(example_with("recipes.dino()").replace("/data/train", str(folder)).replace("batch_size=64", "batch_size=20"), names)

    assert [tuple(image.shape) for image in names["student"]] == [(20, 3, 224, 224)] * 2 + [(20, 3, 96, 96)] * 8
    assert len(names["teacher"]) == 2
    assert len(names["pair"].views) == 2


def test_padding(daemon: millrace.PrivateDaemon, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILLRACE_SOCKET", daemon.address)
    names: dict[str, Any] = {}

    exec(example_with("recipes.detr()").replace("/data/train", str(folder)).replace("batch_size=8", "batch_size=4"), names)

    with names["batches"]:
        assert names["images"].shape == (4, 3, 1333, 1333)
        assert all(480 <= height <= 800 and abs(width - 1.5 * height) < 2 for _, _, width, height in names["filled"])
    for name in ("letterbox", "cifar", "jitter"):
        assert names[name].fixed_size is not None


def test_boxes(names: dict[str, Any]) -> None:
    seen: list[Any] = []

    def train(images: Any, targets: list[Any]) -> None:
        assert images.shape[1:] == (3, 640, 640)
        assert len(images) == len(targets)
        for target, number in zip(targets, names["loader"].batch.ids.tolist(), strict=True):
            assert target["boxes"].shape == (len(target["labels"]), 4)
            assert set(target["labels"].tolist()) <= {number, 100 + number}
        seen.extend(targets)

    boxes = [[[0, 0, 48, 32], [6, 4, 24, 16]][: 1 + n % 2] for n in range(COUNT)]
    names.update(train=train, boxes=boxes, classes=[[n, 100 + n][: 1 + n % 2] for n in range(COUNT)])
    exec(example_with("map_boxes("), names)

    names["loader"].close()
    assert len(seen) == COUNT
    assert sum(len(target["labels"]) for target in seen) > COUNT


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # webdataset leaves its files to the garbage collector
def test_sources(names: dict[str, Any], tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="Hugging Face's datasets is not installed: its example is not executed")
    webdataset = pytest.importorskip("webdataset", reason="webdataset is not installed: its example is not executed")
    from sources import table_of

    for n in range(COUNT):
        (tmp_path / f"{n:02d}.png").write_bytes(png(n))
        (tmp_path / f"{n:02d}.cls").write_text(str(n))
    with tarfile.open(tmp_path / "0.tar", "w") as tar:
        for path in sorted(tmp_path.glob("*.[cp]*")):
            tar.add(path, path.name)
    known = {**names, "load_dataset": lambda *_, **__: table_of(datasets, COUNT), "webdataset": webdataset, "urls": str(tmp_path / "0.tar")}
    first, second = re.findall(r"^(?:pipeline.*\n)?loader.*\n", example_with("load_dataset"), re.M)
    for code in (first, second):
        exec(code, known)
        with known["loader"] as loader:
            assert sum(len(labels) for _, labels in loader) == COUNT
