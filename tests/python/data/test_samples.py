"""Lists of files with labels, and manifests, as a loader's dataset."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import millrace
import millrace.numpy
import numpy as np
import pytest

from pictures import CLASSES, COUNT, EACH, SIZE, path_of, pixels_of, png

OWN_SIZE = millrace.Recipe(resize=millrace.ExactSize(SIZE), layout="NHWC")


@pytest.fixture
def make(daemon: millrace.PrivateDaemon) -> Iterator[Callable[..., Any]]:
    made = []

    def loader(*arguments: Any, **options: Any) -> Any:
        options = {"batch_size": 8, "address": daemon.address, "transform": OWN_SIZE, **options}
        made.append(millrace.numpy.Loader(*arguments, **options))
        return made[-1]

    yield loader
    for one in made:
        one.close()


@pytest.fixture
def paths(folder: Path) -> list[str]:
    return [path_of(folder, n) for n in range(COUNT)]


def labels_of(loader: Any) -> Any:
    found = [labels for _, labels in loader]
    return np.concatenate(found) if isinstance(found[0], np.ndarray) else list(itertools.chain(*found))


def test_a_list_of_pairs(make: Any, paths: list[str]) -> None:
    numbers = [41, 3, 41, 0]
    for given in ({"samples": [(paths[n], n) for n in numbers]}, {"dataset": [(Path(paths[n]), np.int32(n)) for n in numbers]}):
        loader = make(**given)
        ((images, labels),) = [(images.copy(), labels) for images, labels in loader]
        assert labels.tolist() == numbers
        assert labels.dtype == np.int64
        for image, n in zip(images, numbers, strict=True):
            np.testing.assert_array_equal(image, pixels_of(n))
        assert (len(loader), len(loader.dataset), loader.classes) == (1, 4, ())
        assert loader.dataset.path_of(2) == paths[41]
        assert loader.dataset[1] == (paths[3], 3)


def test_batches_know_their_files_and_the_daemons_labels(make: Any, paths: list[str]) -> None:
    loader = make(samples={"path": paths, "label": np.arange(COUNT) * 2, "caption": [f"picture {n}" for n in range(COUNT)]}, shuffle=True)
    for _, labels in loader:
        ids = loader.batch.ids.tolist()
        assert loader.batch.paths == [paths[n] for n in ids]
        assert loader.batch.labels.tolist() == labels["label"].tolist() == [2 * n for n in ids]
        assert labels["caption"] == [f"picture {n}" for n in ids]


@pytest.mark.parametrize(
    ("labels", "dtype", "shape"),
    [
        ([n / 2 for n in range(COUNT)], np.float64, ()),
        (np.arange(COUNT, dtype=np.float32), np.float32, ()),
        (np.arange(COUNT, dtype=np.uint8), np.int64, ()),
        ([n % 2 == 0 for n in range(COUNT)], np.bool_, ()),
        ([[n, -n] for n in range(COUNT)], np.int64, (2,)),
        (np.arange(6 * COUNT, dtype=np.float16).reshape(COUNT, 2, 3), np.float16, (2, 3)),
        ([np.full((2,), n, np.float32) for n in range(COUNT)], np.float32, (2,)),
    ],
)
def test_labels_of_numbers_keep_type_and_shape(make: Any, paths: list[str], labels: Any, dtype: Any, shape: Any) -> None:
    loader = make(samples={"path": paths, "label": labels}, shuffle=True)
    for _, found in loader:
        expected = np.asarray(labels)[loader.batch.ids.astype(int)]
        assert (found.dtype, found.shape) == (dtype, (len(loader.batch), *shape))
        np.testing.assert_array_equal(found, expected)


def test_labels_of_anything_come_as_they_are(make: Any, paths: list[str]) -> None:
    for labels in ([f"a picture of {n}" for n in range(COUNT)], [{"n": n} for n in range(COUNT)], [[0] * (n % 3) for n in range(COUNT)]):
        assert labels_of(make(samples=list(zip(paths, labels, strict=True)))) == labels
    assert labels_of(make(samples=[{"path": path, "age": 3} for path in paths])).tolist() == [3] * COUNT
    assert labels_of(make(samples=paths)).tolist() == [-1] * COUNT


def test_class_names_become_labels(make: Any, paths: list[str]) -> None:
    names = [CLASSES[n // EACH] for n in range(COUNT)]

    loader = make(millrace.Samples(paths, names, classes="sorted"))
    assert loader.classes == CLASSES
    assert labels_of(loader).tolist() == [n // EACH for n in range(COUNT)]
    assert millrace.Samples(paths, names, classes=["cat", "bee", "ant"]).labels.tolist() == [2 - n // EACH for n in range(COUNT)]  # type: ignore[union-attr]
    with pytest.raises(millrace.InvalidRequest, match="'cat' is none of the 2 classes"):
        millrace.Samples(paths, names, classes=["ant", "bee"])


def test_labels_never_become_other_numbers(make: Any, paths: list[str], tmp_path: Path) -> None:
    for labels in ([2**63, 1, 2], [2**70, 1, 2]):
        with pytest.raises(millrace.InvalidRequest, match=r"does not fit 64 bits|too large"):
            millrace.Samples(paths[:3], labels)
    manifest = tmp_path / "large.csv"
    manifest.write_text(f"path,label\n{paths[0]},1\n{paths[1]},9223372036854775809\n")
    with pytest.raises(millrace.InvalidRequest, match=r"large\.csv.*3.*9223372036854775809"):
        millrace.read_manifest(manifest)
    objects = millrace.Samples(paths[:3], np.array([3, 1, 2], dtype=object)).labels
    assert isinstance(objects, np.ndarray)
    assert (objects.dtype, objects.tolist()) == (np.dtype(np.int64), [3, 1, 2])


def test_classes_are_names_in_the_order_of_labels(paths: list[str]) -> None:
    texts = ["cat", "dog", "cat"]
    named = millrace.Samples(paths[:3], texts, classes={"dog": 0, "cat": 1})
    assert (named.classes, np.asarray(named.labels).tolist()) == (("dog", "cat"), [1, 0, 1])
    assert millrace.Samples(paths[:3], texts, classes=np.array(["cat", "dog"])).classes == ("cat", "dog")
    wrong: list[Any] = [{"cat": 5, "dog": 9}, "srted", {"cat", "dog"}]
    for classes in wrong:
        with pytest.raises(millrace.InvalidRequest, match="classes: "):
            millrace.Samples(paths[:3], texts, classes=classes)
    with pytest.raises(millrace.InvalidRequest, match="2 names, and labels from 0 to 7"):
        millrace.Samples(paths[:3], [0, 7, 1], classes=["cat", "dog"])


def test_refusals_are_short(make: Any, paths: list[str]) -> None:
    class Series(dict[int, str]):  # pandas' index by row
        pass

    for wrong in ([b"\xff\xd8" * 100_000], Series(enumerate(paths * 1_000))):
        with pytest.raises(millrace.Error) as told:
            next(iter(make(wrong)))
        assert len(str(told.value)) < 20_000


def test_columns_of_pandas_are_columns(make: Any, paths: list[str]) -> None:
    class Series:
        def __init__(self, values: Any) -> None:
            self._values = np.array(values, dtype=object if isinstance(values[0], str) else None)

        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return self._values

        def __len__(self) -> int:
            return len(self._values)

    class Frame(dict):  # type: ignore[type-arg]
        __iter__ = None  # type: ignore[assignment]

    assert labels_of(make(samples=Frame(path=Series(paths), label=Series(list(range(COUNT)))))).tolist() == list(range(COUNT))


def test_what_is_no_list_of_samples_is_refused(make: Any, paths: list[str]) -> None:
    wrong: list[tuple[Any, str]] = [
        ([], "there are none"),
        ([(paths[0], 1, 2)], "sample 0 has 3 values"),
        ([3], "sample 0 is a int"),
        ([paths[0], ""], "sample 1 has no path"),
        ([paths[0], "https://example.org/a.jpg"], r"sample 1, https://example\.org/a\.jpg, is a URL"),
        ({"image": paths}, r'columns are \'image\'; .*are to be in "path"'),
        ({"path": paths, "label": [1]}, "labels: there are 1 values for 60 samples"),
        ({"path": paths, "label": "cat"}, "a value for each sample, not a str"),
        ([{"path": paths[0]}, {"path": paths[1], "label": 1}], r"sample 1 has the keys \['label', 'path'\]"),
        ("/data", "samples are .* not a str"),
    ]
    for samples, said in wrong:
        with pytest.raises(millrace.InvalidRequest, match=said):
            make(samples=samples)
    with pytest.raises(millrace.InvalidRequest, match="one of them"):
        make(paths, samples=paths)


def test_bad_files_and_outsiders_are_the_daemons_to_name(make: Any, paths: list[str], folder: Path) -> None:
    with pytest.raises(millrace.PermissionDenied, match="/etc/passwd"):
        labels_of(make(samples=[paths[0], "/etc/passwd"]))
    with pytest.warns(millrace.BadImageWarning, match=r"nowhere\.png"):
        assert len(labels_of(make(samples=[*paths, f"{folder}/nowhere.png"]))) == COUNT


def test_a_list_is_shuffled_sharded_and_resumed_as_a_folder(make: Any, paths: list[str], folder: Path) -> None:
    def ids_of(loader: Any, most: int = 0) -> list[int]:
        seen = []
        for number, _ in enumerate(loader, 1):
            seen += loader.batch.ids.tolist()
            if number == most:
                break
        return seen

    options: dict[str, Any] = {"shuffle": True, "seed": 4, "rank": 1, "world_size": 2}
    whole = ids_of(make(samples=paths, **options))
    assert whole == ids_of(make(folder, **options))
    first = make(samples=paths, **options)
    before = ids_of(first, 2)
    second = make(samples=paths, **options)
    second.load_state_dict(first.state_dict())
    assert before + ids_of(second) == whole


def test_subsets_of_samples(paths: list[str]) -> None:
    samples = millrace.Samples(paths, {"label": range(COUNT), "vector": np.eye(COUNT)})

    some = samples.subset(np.array([5, 5, -1]))

    assert [some[n][0] for n in range(3)] == [paths[5], paths[5], paths[59]]
    assert [label["label"] for _, label in some] == [5, 5, 59]
    for wrong in ([60], [-61], [1.5], []):
        with pytest.raises(millrace.InvalidRequest):
            samples.subset(wrong)


# --------------------------------------------------------------------------------------------------------------- manifests


@pytest.fixture
def written(folder: Path, tmp_path: Path) -> Callable[[str, str], str]:
    """Writes a manifest beside the pictures' folder and returns its path."""

    def write(name: str, text: str) -> str:
        place = folder.parent / "manifests"
        place.mkdir(exist_ok=True)
        (place / name).write_text(text, "utf-8")
        return str(place / name)

    return write


def test_csv_with_class_names_and_relative_paths(make: Any, written: Any) -> None:
    path = written(
        "a.csv", '\ufefffile_name,label\r\n../train/cat/0003.png,cat\r\n\r\n"../train/ant/0001.png", ant\r\n../train/cat/0000.png,cat\r\n'
    )

    loader = make(path)

    assert labels_of(loader).tolist() == [1, 0, 1]
    assert (loader.classes, len(loader.dataset)) == (("ant", "cat"), 3)
    assert loader.batch is None
    assert loader.dataset.path_of(0).endswith("/train/cat/0003.png")


def test_columns_are_chosen_by_name_or_number(written: Any, folder: Path) -> None:
    path = written("b.csv", "id,picture,score,kind\n1,ant/0000.png,0.5,007\n2,bee/0000.png,1,8\n")

    chosen = millrace.read_manifest(path, path_column="picture", label_column="score", root=folder)
    assert chosen.paths == [f"{folder}/ant/0000.png", f"{folder}/bee/0000.png"]
    assert chosen.labels.tolist() == [0.5, 1.0]  # type: ignore[union-attr]
    several: Any = millrace.read_manifest(path, path_column=1, label_column="kind", label_kind="text", columns=["id", "score"]).labels
    assert (several["label"], several["id"].tolist(), several["score"].tolist()) == (["007", "8"], [1, 2], [0.5, 1.0])
    classes = millrace.read_manifest(path, path_column="picture", label_column="kind", label_kind="class")
    assert (classes.classes, classes.labels.tolist()) == (("007", "8"), [0, 1])  # type: ignore[union-attr]
    assert millrace.read_manifest(path, path_column="picture", label_column="").labels is None
    tabs = millrace.read_manifest(written("c.tsv", "/a b.png\t3\n/c.png\t-4\n"), header=False)
    assert (tabs.paths, tabs.labels.tolist()) == (["/a b.png", "/c.png"], [3, -4])  # type: ignore[union-attr]


def test_json_lines(make: Any, written: Any, folder: Path) -> None:
    text = "".join(f'{{"path": "{path_of(folder, n)}", "label": [{n}, 0.5], "caption": "n° {n}"}}\n' for n in range(9))

    assert labels_of(make(written("d.jsonl", text)))[8].tolist() == [8, 0.5]
    several: Any = millrace.read_manifest(written("d.jsonl", text + "\n"), columns=["caption"])
    assert several[7] == (path_of(folder, 7), {"label": pytest.approx([7, 0.5]), "caption": "n° 7"})


@pytest.mark.parametrize(
    ("name", "text", "options", "said"),
    [
        ("e.csv", "path,label\na,1\nb\n", {}, r"e\.csv:3: 1 cells, the first line has 2"),
        ("e.csv", 'path,label\n"a\nb",1\n\n,2\n', {}, r"e\.csv:5: no path in 'path', but ''"),
        ("e.csv", "path,label\na,1\n\nb,\n", {}, r"e\.csv:4: nothing in 'label'"),
        ("e.csv", 'path,label\na,1\n"b,1\n', {}, r"e\.csv:\d: unexpected end of data"),
        ("e.csv", "path,label\na,1\nb,x\n", {"label_kind": "int"}, r"e\.csv:3: 'x' in 'label' is no whole number"),
        ("e.csv", "a.png,1\n", {}, r"its columns are 'a\.png', '1'; name .*path_column=, or say header=False"),
        ("e.csv", "path,kind\na,1\n", {}, r"no column of 'path', 'kind' is called label; name one in label_column="),
        ("e.csv", "path,file,label\na,b,1\n", {}, "both 'path' and 'file' are there"),
        ("e.csv", "path,label\na,1\n", {"columns": ["age"]}, "no single column 'age'; its columns are 'path', 'label'"),
        ("e.csv", "", {}, "the manifest is empty"),
        ("e.csv", "path,label\n", {}, "no line with a file"),
        ("e.jsonl", '{"path": "a", "label": 1}\n{"path": "b"}\n', {}, r"e\.jsonl:2: no 'label' in it; it has 'path'"),
        ("e.jsonl", '{"path": "a"}\n\n{"path": \n', {}, r"e\.jsonl:3: no JSON"),
        ("e.jsonl", '{"path": "a"}\n[1]\n', {}, r"e\.jsonl:2: a line is a JSON object, this one is a list"),
        ("e.jsonl", '{"path": "a", "label": 1}\n{"path": 3, "label": 1}\n', {}, r"e\.jsonl:2: no path in 'path', but 3"),
        ("e.txt", "a\n", {}, r"is called \.csv"),
    ],
)
def test_what_cannot_be_read_is_named_with_file_and_line(written: Any, name: str, text: str, options: Any, said: str) -> None:
    with pytest.raises(millrace.InvalidRequest, match=said):
        millrace.read_manifest(written(name, text), **options)


def test_a_folder_may_be_called_as_a_manifest(make: Any, folder: Path) -> None:
    odd = folder.parent / "odd.csv" / "ant"
    odd.mkdir(parents=True, exist_ok=True)
    (odd / "0.png").write_bytes(png(0))

    assert labels_of(make(odd.parent)).tolist() == [0]
    with pytest.raises(FileNotFoundError):
        make(folder.parent / "nowhere.csv")


def test_names_that_are_not_utf8(make: Any, folder: Path) -> None:
    place = os.fsencode(folder.parent) + b"/odd \xff.png"
    with open(place, "wb") as file:
        file.write(png(3))
    manifest = folder.parent / "odd names.csv"
    manifest.write_bytes(b"path,label\nodd \xff.png,1\n")

    assert labels_of(make(samples=[(place, 7)])).tolist() == [7]
    assert labels_of(make(manifest)).tolist() == [1]


@pytest.mark.torch
def test_torchs_loader_makes_tensors_of_numbers(daemon: millrace.PrivateDaemon, paths: list[str]) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: labels are not tried as tensors")
    import millrace.torch

    columns = {"path": paths, "label": torch.arange(COUNT), "box": torch.ones(COUNT, 4), "text": [str(n) for n in range(COUNT)]}
    with millrace.torch.Loader(samples=columns, transform=OWN_SIZE, batch_size=60, address=daemon.address, pin_memory=False) as loader:
        _, labels = next(iter(loader))
    assert (labels["label"].dtype, labels["box"].shape, labels["box"].dtype, labels["text"][59]) == (
        torch.int64,
        (60, 4),
        torch.float32,
        "59",
    )


@pytest.mark.jax
def test_jaxs_loader_makes_arrays_of_numbers(daemon: millrace.PrivateDaemon, paths: list[str]) -> None:
    jax = pytest.importorskip("jax", reason="JAX is not installed: labels are not tried as its arrays")
    import millrace.jax

    columns = {"path": paths, "label": list(range(COUNT)), "box": np.ones((COUNT, 4), np.float32), "text": [str(n) for n in range(COUNT)]}
    with millrace.jax.Loader(samples=columns, transform=OWN_SIZE, batch_size=60, address=daemon.address) as loader:
        _, labels = next(iter(loader))
        assert all(isinstance(labels[name], jax.Array) for name in ("label", "box"))
        assert (labels["label"].dtype, labels["box"].dtype, labels["text"][59]) == (np.int32, np.float32, "59")
