"""Dataset objects of torchvision's and PyTorch's as a loader's: what they do is done, or refused with what to do; nothing is dropped."""

from __future__ import annotations

import itertools
import pickle
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import millrace
import millrace.numpy
import numpy as np
import pytest

from pictures import CLASSES, SIZE, make_folder, path_of, pixels_of, png

torch = pytest.importorskip("torch", reason="PyTorch is not installed: ImageFolder objects are not tried")
folders = pytest.importorskip("torchvision.datasets.folder", reason="torchvision is not installed: ImageFolder objects are not tried")

import millrace.torch  # noqa: E402
from torchvision.datasets import ImageFolder  # noqa: E402
from torchvision.transforms import v2 as transforms  # noqa: E402

pytestmark = pytest.mark.torch
OWN_SIZE = millrace.Recipe(resize=millrace.ExactSize(SIZE))
NORMALISED = transforms.Compose(
    [
        transforms.Resize((SIZE.height, SIZE.width)),
        transforms.ToImage(),
        transforms.ToDtype(torch.float32, scale=True),
        transforms.Normalize((0.5, 0.4, 0.3), (0.2, 0.2, 0.3)),
    ]
)


@pytest.fixture
def own(folder: Path) -> Iterator[Path]:
    """A folder as `folder`, to be changed: classes of four."""
    base = folder.parent / "own"
    yield make_folder(base, each=4)
    shutil.rmtree(base)


@pytest.fixture
def make(daemon: millrace.PrivateDaemon) -> Iterator[Callable[..., millrace.torch.Loader]]:
    made = []

    def loader(*arguments: Any, **options: Any) -> millrace.torch.Loader:
        made.append(millrace.torch.Loader(*arguments, **{"batch_size": 8, "address": daemon.address, **options}))
        return made[-1]

    yield loader
    for one in made:
        one.close()


def labels_of(loader: Any) -> list[int]:
    return [int(label) for _, labels in loader for label in labels]


def test_samples_and_labels_are_the_objects(make: Any, folder: Path) -> None:
    dataset = ImageFolder(str(folder))

    loader = make(dataset, OWN_SIZE)

    assert labels_of(loader) == dataset.targets
    assert dataset.imgs[17][0] == path_of(folder, 17)
    assert loader.dataset is dataset
    assert loader.classes == CLASSES
    assert len(loader.dataset) == 60


def test_samples_are_in_the_objects_order(make: Any, own: Path, daemon: millrace.PrivateDaemon) -> None:
    files = ["cat/1", "dog/1", "dog-puppy/1", "dog (old)/1", *(f"cat/{name}" for name in ("a/z", "a/b/0", "a/b-c/1", "a/b/d/2"))]
    shutil.rmtree(own)
    for n, name in enumerate(files):
        path = own / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png(n))
    dataset = ImageFolder(str(own), NORMALISED)
    paths = [path for path, _ in dataset.samples]

    loader = make(dataset, batch_size=3)
    found = [
        (int(n), image.clone(), int(label))
        for images, labels in loader
        for n, image, label in zip(loader.batch.ids, images, labels, strict=True)
    ]

    assert dataset.classes == ["cat", "dog", "dog (old)", "dog-puppy"]
    assert paths.index(str(own / "cat/a/z.png")) < paths.index(str(own / "cat/a/b-c/1.png")) < paths.index(str(own / "cat/a/b/d/2.png"))
    assert [n for n, _, _ in found] == list(range(len(files)))
    assert [label for _, _, label in found] == dataset.targets
    for n, image, _ in found:
        torch.testing.assert_close(image, dataset[n][0], atol=1e-5, rtol=0)


def test_samples_are_in_whatever_order_the_object_has(make: Any, own: Path) -> None:
    dataset = ImageFolder(str(own), target_transform=lambda target: 10 + target)
    dataset.samples = dataset.samples[::-1]

    loader = make(dataset, OWN_SIZE)

    assert labels_of(loader) == [12] * 4 + [11] * 4 + [10] * 4
    for images, _ in loader:
        for n, image in zip(loader.batch.ids.tolist(), images.clone(), strict=True):
            np.testing.assert_array_equal(image.permute(1, 2, 0).numpy(), pixels_of(11 - n))
    assert loader.batch is None


def test_the_objects_transform_is_the_loaders(make: Any, own: Path, daemon: millrace.PrivateDaemon) -> None:
    dataset = ImageFolder(str(own), NORMALISED)
    expected = torch.stack([image for image, _ in dataset])

    images = torch.cat([images.clone() for images, _ in make(dataset)])
    with millrace.numpy.Loader(dataset, batch_size=8, address=daemon.address) as loader:
        arrays = np.concatenate([images.copy() for images, _ in loader])

    assert images.dtype == torch.float32
    torch.testing.assert_close(images, expected, atol=1e-5, rtol=0)
    np.testing.assert_array_equal(arrays, images.numpy())


def test_loaders_of_all_frameworks_take_torchvisions_transforms(folder: Path) -> None:
    recipe = millrace.torch.from_torchvision(NORMALISED)

    assert millrace.numpy.Loader(folder, NORMALISED).recipe == recipe
    assert millrace.numpy.Loader(folder, list(NORMALISED.transforms), dtype="float16").recipe.dtype == "float16"
    assert millrace.torch.Loader(folder, NORMALISED).recipe == recipe


def test_a_transform_beside_the_objects_own_is_refused_unless_it_is_the_same(own: Path) -> None:
    dataset = ImageFolder(str(own), NORMALISED)

    assert millrace.torch.Loader(dataset, NORMALISED).recipe == millrace.torch.Loader(dataset).recipe
    for other in (OWN_SIZE, millrace.Recipe.train(24), transforms.CenterCrop(8)):
        with pytest.raises(millrace.InvalidRequest, match="has a transform of its own"):
            millrace.torch.Loader(dataset, other)
    mixed = ImageFolder(str(own), transforms.ElasticTransform())
    with pytest.raises(millrace.InvalidRequest, match="has a transform of its own"):
        millrace.torch.Loader(mixed, OWN_SIZE)
    with pytest.raises(millrace.Unsupported, match="ElasticTransform is not"):
        millrace.torch.Loader(mixed)


def test_labels_go_through_target_transform(make: Any, own: Path, daemon: millrace.PrivateDaemon) -> None:
    dataset = ImageFolder(str(own), target_transform=lambda target: np.int32(100 - 7 * target))

    loader = make(dataset, OWN_SIZE, shuffle=True)
    pairs = {(int(n), int(label)) for _, labels in loader for n, label in zip(loader.batch.ids, labels, strict=True)}

    assert pairs == {(n, 100 - 7 * (n // 4)) for n in range(12)}
    with millrace.numpy.Loader(dataset, OWN_SIZE, address=daemon.address) as arrays:
        assert sorted(set(labels_of(arrays))) == [86, 93, 100]


def test_labels_of_every_kind(make: Any, own: Path) -> None:
    def labels_by(transform: Any) -> Any:
        return next(iter(make(ImageFolder(str(own), target_transform=transform), OWN_SIZE, batch_size=12)))[1]

    vectors = labels_by(lambda target: [target == k for k in range(3)])
    assert (vectors.dtype, vectors.shape, vectors.int().argmax(1).tolist()) == (torch.bool, (12, 3), [0] * 4 + [1] * 4 + [2] * 4)
    assert labels_by(lambda target: torch.nn.functional.one_hot(torch.tensor(target), 3)).sum(0).tolist() == [4, 4, 4]
    assert labels_by(lambda target: target / 2).tolist() == [0] * 4 + [0.5] * 4 + [1] * 4
    assert labels_by(lambda target: CLASSES[target]) == ["ant"] * 4 + ["bee"] * 4 + ["cat"] * 4
    assert labels_by(lambda target: {"class": target})[11] == {"class": 2}


def test_labels_that_a_loader_cannot_give_are_refused(make: Any, own: Path) -> None:
    dice = itertools.count()
    for transform, said in [
        (lambda target: target + next(dice), "random"),
        (lambda target: np.array([target, next(dice)]), "random"),
        (lambda target: 2**64 + target, "does not fit 64 bits"),
        (lambda target: np.uint64(2**63 + target), "too large"),
    ]:
        with pytest.raises(millrace.InvalidRequest, match=said):
            len(labels_of(make(ImageFolder(str(own), target_transform=transform), OWN_SIZE)))


def test_a_transform_that_comes_later_is_not_dropped(make: Any, own: Path) -> None:
    dataset = ImageFolder(str(own))
    loader = make(dataset, OWN_SIZE)
    dataset.transform = NORMALISED

    with pytest.raises(millrace.InvalidRequest, match="make the loader anew"):
        labels_of(loader)


class TwoClasses(ImageFolder):  # type: ignore[misc]
    """The cat is a bee."""

    def find_classes(self, directory: str) -> Any:
        return ["ant", "other"], {"ant": 0, "bee": 1, "cat": 1}


def test_classes_are_the_objects_own(make: Any, own: Path) -> None:
    dataset = TwoClasses(str(own))
    relabelled = ImageFolder(str(own))
    relabelled.samples = [(path, 2 - target) for path, target in relabelled.samples]

    assert labels_of(make(dataset, OWN_SIZE)) == dataset.targets == [0] * 4 + [1] * 8
    assert make(dataset, OWN_SIZE).classes == ("ant", "other")
    assert labels_of(make(relabelled, OWN_SIZE)) == [2] * 4 + [1] * 4 + [0] * 4


class OneClass(ImageFolder):  # type: ignore[misc]
    """Only the bees."""

    def find_classes(self, directory: str) -> Any:
        return ["bee"], {"bee": 0}


class Short(ImageFolder):  # type: ignore[misc]
    """The first three."""

    def __len__(self) -> int:
        return 3


def edited(own: Path, edit: Callable[[list[Any]], list[Any]]) -> Any:
    dataset = ImageFolder(str(own))
    dataset.samples = edit(dataset.samples)
    return dataset


def test_samples_are_the_objects_and_not_the_folders(make: Any, own: Path, folder: Path) -> None:
    extra = [(path_of(folder, 1), 7)]
    cases: list[Any] = [
        edited(own, lambda samples: samples[:10]),
        ImageFolder(str(own), is_valid_file=lambda path: not path.endswith("1.png")),
        OneClass(str(own)),
        edited(own, lambda samples: samples + extra),
        edited(own, lambda samples: samples[1:] + samples[1:2]),
        edited(own, lambda samples: [(path, k % 2) for k, (path, _) in enumerate(samples)]),
    ]
    for dataset in cases:
        loader = make(dataset, OWN_SIZE)
        assert labels_of(loader) == [target for _, target in dataset.samples]
        assert len(loader) == -(-len(dataset) // 8)
    with pytest.raises(millrace.InvalidRequest, match="has 3 items and 12 samples; for fewer give a Subset"):
        labels_of(make(Short(str(own)), OWN_SIZE))


def test_samples_in_formats_that_the_daemon_does_not_decode_are_refused(make: Any, own: Path) -> None:
    for name in ("ant/0.tga", "bee/1.TGA", "cat/2.jxl"):
        (own / name).write_bytes(png(4))
    dataset = ImageFolder(str(own), is_valid_file=lambda path: True)

    with pytest.raises(millrace.InvalidRequest, match=r"does not decode: 1 \.jxl, 2 \.tga, such as .*/ant/0\.tga\. Convert"):
        labels_of(make(dataset, OWN_SIZE))
    with pytest.warns(millrace.SkippedFilesWarning, match="convert them"):
        assert make(str(own), OWN_SIZE).samples == 12
    assert len(labels_of(make(dataset, OWN_SIZE, extensions=("png", "tga", "jxl")))) == 15
    assert len(labels_of(make(dataset, OWN_SIZE, extensions="*"))) == 15
    with pytest.raises(millrace.InvalidRequest, match=r"ends in none of extensions=\['png', 'tga'\]"):
        labels_of(make(dataset, OWN_SIZE, extensions=("png", ".tga")))


def test_samples_of_any_name_are_samples(make: Any, own: Path) -> None:
    (own / "ant" / "picture.averylongextension").write_bytes(png(4))
    (own / "bee" / ".old").mkdir()
    (own / "bee" / ".old" / "9.png").write_bytes(png(4))
    dataset = ImageFolder(str(own), is_valid_file=lambda path: True)

    assert labels_of(make(dataset, OWN_SIZE)) == dataset.targets
    assert len(dataset) == 14


def test_relative_roots(make: Any, own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(own.parent)
    dataset = ImageFolder("./train")

    assert labels_of(make(dataset, OWN_SIZE)) == dataset.targets


class Split(ImageFolder):  # type: ignore[misc]
    """As torchvision's ImageNet: the root is not where the class folders are."""

    def __init__(self, root: Path) -> None:
        self.split_folder = str(root / "train")
        super().__init__(self.split_folder)
        self.root = root
        self.classes = [("ant", "emmet"), ("bee",), ("cat", "grimalkin")]


def test_class_folders_beneath_the_root(make: Any, own: Path) -> None:
    loader = make(Split(own.parent), OWN_SIZE)

    assert labels_of(loader) == [0] * 4 + [1] * 4 + [2] * 4
    assert loader.classes[2] == ("cat", "grimalkin")


def test_labels_fit_the_frameworks_type(own: Path, daemon: millrace.PrivateDaemon) -> None:
    pytest.importorskip("jax", reason="JAX is not installed: its labels are not tried")
    import millrace.jax

    options: dict[str, Any] = {"batch_size": 12, "address": daemon.address}
    with millrace.jax.Loader(ImageFolder(str(own), target_transform=lambda t: 2 * t), OWN_SIZE, **options) as loader:
        assert [labels.tolist() for _, labels in loader] == [[0] * 4 + [2] * 4 + [4] * 4]
    large = ImageFolder(str(own), target_transform=lambda t: t + 2**31)
    with millrace.jax.Loader(large, OWN_SIZE, **options) as loader, pytest.raises(millrace.InvalidRequest, match="too large"):
        labels_of(loader)


class Doubled(ImageFolder):  # type: ignore[misc]
    """With a __getitem__ of its own."""

    def __getitem__(self, index: int) -> Any:
        image, label = super().__getitem__(index)
        return image, 2 * label


class Part(torch.utils.data.Subset):  # type: ignore[misc,type-arg]
    """With a __getitem__ of its own."""

    def __getitem__(self, index: int) -> Any:
        return super().__getitem__(index)[0]

    def __getitems__(self, indices: Any) -> Any:
        return [self[index] for index in indices]


def test_what_the_daemon_cannot_call_is_refused(own: Path) -> None:
    dataset = ImageFolder(str(own))
    cases: list[tuple[Any, str]] = [
        (Doubled(str(own)), "Doubled has a __getitem__ of its own"),
        (ImageFolder(str(own), loader=lambda path: None), "function of its own"),
        (Part(dataset, [1]), "Part has a __getitem__ of its own"),
        (torch.utils.data.Subset(Doubled(str(own)), [1]), "Doubled has a __getitem__ of its own"),
        (torch.utils.data.TensorDataset(torch.zeros(3)), r"files of a TensorDataset are not known.*samples=\[\(path, label\)"),
        (torch.utils.data.Subset(torch.utils.data.TensorDataset(torch.zeros(3)), [1]), "files of a TensorDataset are not known"),
    ]
    for refused, said in cases:
        with pytest.raises(millrace.InvalidRequest, match=said):
            millrace.torch.Loader(refused, OWN_SIZE)
    for ours in (folders.pil_loader, folders.accimage_loader):
        millrace.torch.Loader(ImageFolder(str(own), loader=ours), OWN_SIZE)


def pairs_of(loader: Any) -> list[tuple[int, int, bytes]]:
    return [
        (int(n), int(label), image.numpy().tobytes())
        for images, labels in loader
        for n, label, image in zip(loader.batch.ids, labels, images.permute(0, 2, 3, 1).contiguous(), strict=True)
    ]


def test_subsets_and_joined_datasets_are_read_as_dataloader_reads_them(make: Any, own: Path, folder: Path) -> None:
    first = ImageFolder(str(own), target_transform=lambda target: target + 100)
    second = ImageFolder(str(folder))
    half, rest = torch.utils.data.random_split(second, [25, 35], generator=torch.Generator().manual_seed(3))
    joined = torch.utils.data.ConcatDataset([torch.utils.data.Subset(first, [3, 3, -1]), half, first])
    nested = torch.utils.data.Subset(joined, torch.tensor([39, 0, 1, 2, 20]))
    as_array = transforms.Compose([transforms.PILToTensor()])

    for dataset in (half, rest, joined, nested):
        first.transform = second.transform = as_array
        expected = [
            (n, label, image.permute(1, 2, 0).numpy().tobytes()) for n, (image, label) in enumerate(dataset[k] for k in range(len(dataset)))
        ]
        first.transform = second.transform = None
        loader = make(dataset, OWN_SIZE)
        assert (len(loader.dataset), loader.dataset is dataset) == (len(expected), True)
        assert pairs_of(loader) == expected
    assert make(half, OWN_SIZE).classes == CLASSES


def test_parts_with_the_same_transform_are_one_dataset(make: Any, own: Path, folder: Path) -> None:
    same = transforms.Compose(list(NORMALISED.transforms))
    parts = [ImageFolder(str(own), NORMALISED), ImageFolder(str(folder), same)]

    assert len(labels_of(make(torch.utils.data.ConcatDataset(parts)))) == 72
    for other in (None, transforms.Compose(NORMALISED.transforms[:2])):
        parts[1].transform = other
        with pytest.raises(millrace.InvalidRequest, match="parts of the dataset have different transforms"):
            make(torch.utils.data.ConcatDataset(parts))


def test_parts_with_labels_of_several_kinds_are_refused(make: Any, own: Path) -> None:
    numbers = ImageFolder(str(own))
    for transform, said in [(str, "several kinds"), (lambda target: [target, 1], "several shapes")]:
        others = ImageFolder(str(own), target_transform=transform)
        with pytest.raises(millrace.InvalidRequest, match=said):
            labels_of(make(torch.utils.data.ConcatDataset([numbers, others]), OWN_SIZE))


def test_vectors_of_joined_parts(make: Any, own: Path) -> None:
    parts = [ImageFolder(str(own), target_transform=lambda target, k=k: np.eye(3, dtype=np.float32)[target] * k) for k in (1, 2)]

    labels = torch.cat([labels for _, labels in make(torch.utils.data.ConcatDataset(parts), OWN_SIZE)])

    assert labels.dtype == torch.float32
    assert labels.sum(0).tolist() == [12, 12, 12]


def test_a_loader_with_an_object_travels(make: Any, own: Path) -> None:
    loader = make(TwoClasses(str(own)), OWN_SIZE)
    labels_of(loader)

    with pickle.loads(pickle.dumps(loader)) as other:
        other.set_epoch(0)
        assert labels_of(other) == [0] * 4 + [1] * 8
