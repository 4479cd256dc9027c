"""Sources that hold encoded images: Hugging Face's datasets, webdataset's pipelines, any iterable. A thread reads them and sends them."""

from __future__ import annotations

import gc
import io
import json
import pickle
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import millrace
import millrace.numpy
import numpy as np
import pytest
from millrace._permutation import permutation, share

from pictures import CLASSES, COUNT, EACH, SIZE, path_of, pixels_of, png

OWN_SIZE = millrace.Recipe(resize=millrace.ExactSize(SIZE), layout="NHWC")


class Rows:
    """A source that can be iterated anew: dictionaries, made as they are asked for."""

    def __init__(self, count: int = COUNT, make: Callable[[int], Any] | None = None) -> None:
        self.count, self.taken = count, 0
        self._make = make or (lambda n: {"jpg": png(n), "cls": n // EACH})

    def __iter__(self) -> Iterator[Any]:
        for n in range(self.count):
            self.taken += 1
            yield self._make(n)


@pytest.fixture
def make(daemon: millrace.PrivateDaemon) -> Iterator[Callable[..., Any]]:
    made = []

    def loader(source: Any, *arguments: Any, **options: Any) -> Any:
        made.append(millrace.numpy.Loader(source, *(arguments or (OWN_SIZE,)), **{"batch_size": 8, "address": daemon.address, **options}))
        return made[-1]

    yield loader
    for one in made:
        one.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "millrace-feed"]


@pytest.fixture
def hugging() -> Any:
    return pytest.importorskip("datasets", reason="Hugging Face's datasets is not installed: its datasets are not tried")


@pytest.fixture
def table(hugging: Any) -> Any:
    """The tests' pictures as a ``Dataset``, labels as class labels."""
    return table_of(hugging, COUNT)


def table_of(hugging: Any, count: int) -> Any:
    features = hugging.Features(
        {"image": hugging.Image(), "label": hugging.ClassLabel(names=list(CLASSES)), "caption": hugging.Value("string")}
    )
    rows = {
        "image": [{"bytes": png(n), "path": None} for n in range(count)],
        "label": [n // EACH for n in range(count)],
        "caption": [f"picture {n}" for n in range(count)],
    }
    return hugging.Dataset.from_dict(rows, features=features)


def seen_of(loader: Any, most: int | None = None) -> list[tuple[int, int, bytes]]:
    """Ids, labels and pixels of a loop, or of its first batches."""
    seen = []
    for number, (images, labels) in enumerate(loader, 1):
        seen += [(int(n), int(label), image.tobytes()) for n, label, image in zip(loader.batch.ids, labels, images, strict=True)]
        if number == most:
            break
    return seen


def test_images_labels_and_ids_of_an_iterable(make: Any) -> None:
    loader = make(millrace.Encoded(Rows()))

    for _ in range(2):
        assert seen_of(loader) == [(n, n // EACH, pixels_of(n).tobytes()) for n in range(COUNT)]
    assert loader.batch is None
    with pytest.raises(TypeError, match="has no len"):
        len(loader)


def test_paths_are_read_by_the_daemon(make: Any, folder: Path) -> None:
    loader = make(millrace.Encoded(Rows(make=lambda n: (path_of(folder, n), float(n)))))

    labels = np.concatenate([labels for _, labels in loader])

    assert labels.dtype == np.float64
    assert labels.tolist() == list(range(COUNT))


def test_what_is_beside_an_image_comes_with_it(make: Any) -> None:
    rows = Rows(20, lambda n: {"__key__": str(n), "png": png(n), "cls": str(n).encode(), "txt": f"picture {n}".encode(), "json": b"[1, 2]"})

    for _, labels in make(millrace.Encoded(rows, columns=["txt", "json"]), batch_size=20):
        assert labels["label"].tolist() == list(range(20))
        assert labels["label"].dtype == np.int64
        assert labels["txt"][17] == "picture 17"
        assert labels["json"].tolist() == [[1, 2]] * 20


def test_functions_find_what_is_wanted(make: Any) -> None:
    rows = Rows(8, lambda n: [n, {"content": png(n)}])
    encoded = millrace.Encoded(rows, image=lambda row: row[1]["content"], label=lambda row: [row[0], 2 * row[0]])

    for _, labels in make(encoded):
        np.testing.assert_array_equal(labels, [[n, 2 * n] for n in range(8)])


def test_large_batches_go_through_the_ring(make: Any, client: millrace.Client) -> None:
    large = [png(n) + bytes(300_000) for n in range(8)]  # a decoder reads to a picture's end
    loader = make(millrace.Encoded(Rows(400, lambda n: (large[n % 8], n))), slots=3)

    assert [label for _, label, _ in seen_of(loader)] == list(range(400))


def test_the_thread_reads_only_so_far_ahead(make: Any) -> None:
    rows = Rows(10_000)
    loader = make(millrace.Encoded(rows), slots=3)
    iterator = iter(loader)
    next(iterator)
    time.sleep(0.5)
    assert rows.taken <= 8 * (1 + 3 + 1 + 1)
    iterator.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "millrace-feed"]


def test_what_the_source_raises_ends_the_loop_after_what_came_before(make: Any) -> None:
    def broken(n: int) -> Any:
        if n == 19:
            raise ZeroDivisionError("the nineteenth")
        return png(n), n

    loader = make(millrace.Encoded(Rows(make=broken)))
    seen: list[int] = []
    loop = (seen.extend(labels.tolist()) for _, labels in loader)  # type: ignore[func-returns-value]
    with pytest.raises(ZeroDivisionError, match="the nineteenth"):
        list(loop)
    assert seen == list(range(16))


def test_drop_last(make: Any) -> None:
    assert len(seen_of(make(millrace.Encoded(Rows()), batch_size=16, drop_last=True))) == 48


def test_a_source_that_ends_for_good_is_refused() -> None:
    with pytest.raises(millrace.InvalidRequest, match="only once"):
        millrace.Encoded(iter([png(0)]))
    with pytest.raises(millrace.InvalidRequest, match="a dataset or an iterable of rows, not a int"):
        millrace.Encoded(3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (np.zeros((4, 4, 3)), r"gives a numpy\.ndarray: the daemon decodes, so leave that out"),
        ({"text": "no picture"}, "no image: its keys are 'text'; say where it is with image="),
        ({"png": png(0), "caption": "x"}, "no label: its keys are 'png', 'caption'; say where it is with label="),
        ((png(0), 1, 2), "no image: it is a tuple of 3"),
        ({"png": png(0), "cls": b"one"}, "'cls' of a row cannot be read"),
    ],
)
def test_rows_that_are_not_understood_are_refused_with_what_to_do(make: Any, row: Any, said: str) -> None:
    with pytest.raises(millrace.InvalidRequest, match=said):
        seen_of(make(millrace.Encoded(Rows(make=lambda n: row))))


def test_whoever_else_says_the_order_is_refused(make: Any) -> None:
    for options in ({"shuffle": True}, {"sampler": [0, 1]}, {"shard_tail": "drop"}):
        with pytest.raises(millrace.InvalidRequest, match="which says the order itself"):
            make(millrace.Encoded(Rows()), **options)
    with pytest.raises(millrace.InvalidRequest, match="extensions= is for folders"):
        seen_of(make(millrace.Encoded(Rows()), extensions="jpg"))


def test_ranks_need_a_source_that_is_sharded(make: Any) -> None:
    with pytest.raises(millrace.InvalidRequest, match=r"each would get all of the source.*sharded=True"):
        seen_of(make(millrace.Encoded(Rows()), rank=0, world_size=2))
    assert len(seen_of(make(millrace.Encoded(Rows(), sharded=True), rank=0, world_size=2))) == COUNT


def test_bad_images_are_left_out_and_warned_of(make: Any) -> None:
    rows = Rows(make=lambda n: (b"no picture" if n in (3, 20) else png(n), n))
    loader = make(millrace.Encoded(rows))

    with pytest.warns(millrace.BadImageWarning, match=r"^sample (3|20): not an image") as told:
        labels = [label for _, label, _ in seen_of(loader)]

    assert labels == [n for n in range(COUNT) if n not in (3, 20)]
    assert (loader.bad, len(told)) == (2, 2)


@pytest.mark.parametrize(("on_error", "count"), [("skip", COUNT - 16), ("zero", COUNT)])
def test_on_error_says_it_otherwise(make: Any, on_error: Any, count: int) -> None:
    rows = Rows(make=lambda n: (b"no picture" if n < 16 else png(n), n))

    with pytest.warns(millrace.BadImageWarning):
        assert len(seen_of(make(millrace.Encoded(rows), on_error=on_error))) == count
    with pytest.raises(millrace.SampleFailed):
        seen_of(make(millrace.Encoded(rows), on_error="fail"))


def test_a_source_of_which_much_is_bad_ends_the_loop(make: Any) -> None:
    rows = Rows(3000, lambda n: (b"no picture" if n % 10 == 0 else png(n % 8), n))
    loader = make(millrace.Encoded(rows), batch_size=50)
    with pytest.warns(millrace.BadImageWarning), pytest.raises(millrace.SampleFailed, match="100 of 1000 images are bad"):
        seen_of(loader)
    with pytest.raises(millrace.SampleFailed, match="no image of the batch is good"):
        seen_of(make(millrace.Encoded(Rows(make=lambda n: (b"no picture", n)))))


@pytest.mark.parametrize("taken", [1, 3, 8])
def test_a_state_resumes_by_taking_again(make: Any, taken: int) -> None:
    recipe = millrace.Recipe.train(24)
    whole = seen_of(make(millrace.Encoded(Rows()), recipe, seed=5))
    first = make(millrace.Encoded(Rows()), recipe, seed=5)
    before = seen_of(first, taken)

    second = make(millrace.Encoded(Rows()), recipe, seed=5)
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))

    assert before + seen_of(second) == whole
    assert seen_of(second)[0][0] == 0


def test_a_source_that_gives_others_than_then_is_refused(make: Any) -> None:
    first = make(millrace.Encoded(Rows()))
    seen_of(first, 2)
    for other in (Rows(make=lambda n: (png(n + 1), n)), Rows(10)):
        second = make(millrace.Encoded(other))
        second.load_state_dict(first.state_dict())
        with pytest.raises(millrace.FailedPrecondition, match="gave other rows than when the state was saved"):
            seen_of(second)


def test_states_of_another_kind_are_refused(make: Any, folder: Path, table: Any) -> None:
    loaders = [lambda: make(millrace.Encoded(Rows())), lambda: make(folder), lambda: make(table)]
    for one in loaders:
        first = one()
        next(iter(first))
        for other in loaders:
            if other is not one:
                second = other()
                second.load_state_dict(first.state_dict())
                with pytest.raises(millrace.FailedPrecondition, match="state"):
                    next(iter(second))


def test_the_daemon_that_ends_ends_the_loop(folder: Path) -> None:
    with millrace.serve(folder, lanes=1) as daemon:
        loader = millrace.numpy.Loader(millrace.Encoded(Rows(10_000)), OWN_SIZE, batch_size=8, address=daemon.address)
        iterator = iter(loader)
        next(iterator)
        daemon.stop()
        with pytest.raises(millrace.DaemonUnavailable):
            list(map(len, iterator))
    assert not [thread for thread in threading.enumerate() if thread.name == "millrace-feed"]


def test_a_source_that_gives_nothing_is_waited_for_only_so_long(make: Any) -> None:
    release = threading.Event()

    def slow(n: int) -> Any:
        release.wait(20)
        return png(n), n

    loader = make(millrace.Encoded(Rows(make=slow)), timeout=0.2)
    threading.Timer(0.6, release.set).start()
    with pytest.raises(millrace.DeadlineExceeded, match=r"the source gave nothing within 0\.2 s"):
        next(iter(loader))


# ------------------------------------------------------------------------------------------------------------ Hugging Face


def test_a_hugging_face_dataset(make: Any, table: Any) -> None:
    loader = make(table)

    assert (len(loader), loader.classes, loader.dataset is table) == (8, CLASSES, True)
    assert seen_of(loader) == [(n, n // EACH, pixels_of(n).tobytes()) for n in range(COUNT)]
    assert not isinstance(table[0]["image"], dict)  # the user's goes on decoding


def test_its_columns_by_name(make: Any, hugging: Any, table: Any) -> None:
    for _, labels in make(millrace.Encoded(table, label="caption")):
        assert labels[0].startswith("picture ")
    for _, labels in make(millrace.Encoded(table, columns=["caption"])):
        assert labels.keys() == {"label", "caption"}
    two = table.add_column("other", [{"bytes": png(0), "path": None}] * COUNT).cast_column("other", hugging.Image())
    with pytest.raises(millrace.InvalidRequest, match=r"2 columns of images among .*Encoded\(dataset, image=\.\.\.\)"):
        make(two)
    assert len(seen_of(make(millrace.Encoded(two, image="other")))) == COUNT
    with pytest.raises(millrace.InvalidRequest, match="no column 'picture'"):
        millrace.Encoded(table, image="picture")


def test_what_would_decode_in_python_is_refused(make: Any, hugging: Any, table: Any) -> None:
    with pytest.raises(millrace.InvalidRequest, match="transform of its own"):
        make(table.with_transform(lambda rows: rows))
    with pytest.raises(millrace.InvalidRequest, match="has the splits 'train'"):
        make(hugging.DatasetDict({"train": table}))
    with pytest.raises(millrace.InvalidRequest, match=r"gives a PIL\."):
        seen_of(make(millrace.Encoded(Rows(make=lambda n: table[n]))))


def test_shuffled_epochs_are_permutations(make: Any, table: Any) -> None:
    loader = make(table, shuffle=True, seed=9)
    orders = [[n for n, _, _ in seen_of(loader)] for _ in range(2)]

    assert orders == [permutation(COUNT, 9, epoch).tolist() for epoch in range(2)]
    assert [sorted(order) for order in orders] == [list(range(COUNT))] * 2


def test_the_documented_permutation() -> None:
    def mix(x: int) -> int:
        x = (x + 0x9E3779B97F4A7C15) % 2**64
        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        x = (x ^ x >> 27) * 0x94D049BB133111EB % 2**64
        return x ^ x >> 31

    for seed, epoch in ((0, 0), (7, 3), (2**64 - 1, 12)):
        expected = sorted(range(500), key=lambda i: mix(i + mix(seed + mix(epoch))))
        assert permutation(500, seed, epoch).tolist() == expected
    assert [share(np.arange(5), rank, 2, tail).tolist() for tail in ("pad", "drop", "uneven") for rank in (0, 1)] == [
        [0, 2, 4], [1, 3, 0], [0, 2], [1, 3], [0, 2, 4], [1, 3],
    ]  # fmt: skip


@pytest.mark.parametrize("tail", ["pad", "drop", "uneven"])
def test_ranks_share_it(make: Any, hugging: Any, tail: Any) -> None:
    table = table_of(hugging, 23)
    seen = []
    for rank in range(4):
        loader = make(table, rank=rank, world_size=4, shuffle=True, shard_tail=tail, batch_size=3)
        mine = [n for n, _, _ in seen_of(loader)]
        assert (len(mine), -(-len(mine) // 3)) == (loader.samples, len(loader))
        seen += mine
    assert len(seen) == {"pad": 24, "drop": 20, "uneven": 23}[tail]
    assert len(set(seen)) == {"pad": 23, "drop": 20, "uneven": 23}[tail]


@pytest.mark.parametrize("taken", [1, 5])
@pytest.mark.parametrize("shuffle", [False, True])
def test_its_state_resumes_exactly(make: Any, table: Any, taken: int, shuffle: bool) -> None:
    recipe = millrace.Recipe.train(24)
    whole = seen_of(make(table, recipe, shuffle=shuffle, seed=3))
    first = make(table, recipe, shuffle=shuffle, seed=3)
    before = seen_of(first, taken)
    second = make(pickle.loads(pickle.dumps(table)), recipe, shuffle=shuffle, seed=3)
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))

    assert before + seen_of(second) == whole
    other = make(table, recipe, shuffle=shuffle, seed=4)
    other.load_state_dict(first.state_dict())
    with pytest.raises(millrace.FailedPrecondition, match="seed was 3 and is 4"):
        next(iter(other))


def test_it_takes_samplers_and_repeated_samples_have_boxes_of_their_own(make: Any, table: Any) -> None:
    loader = make(table, millrace.Recipe.train(24), sampler=[5, 5, 7, 5, 7, 59], batch_size=2)
    boxes: dict[int, set[bytes]] = {}
    ids = []
    for _, labels in loader:
        ids += loader.batch.ids.tolist()
        assert (labels == loader.batch.ids // EACH).all()
        for n, box in zip(loader.batch.ids.tolist(), loader.batch.boxes, strict=True):
            boxes.setdefault(n, set()).add(box.tobytes())

    assert ids == [5, 5, 7, 5, 7, 59]
    assert {n: len(found) for n, found in boxes.items()} == {5: 3, 7: 2, 59: 1}
    assert (len(loader), loader.samples) == (3, 6)


@pytest.mark.parametrize("buffered", [False, True])
@pytest.mark.parametrize("taken", [2, 4])
def test_a_streamed_dataset_resumes_exactly(make: Any, table: Any, buffered: bool, taken: int) -> None:
    def stream() -> Any:
        found = table.to_iterable_dataset(num_shards=5)
        return found.shuffle(seed=7, buffer_size=20) if buffered else found

    reference = make(stream())
    assert reference.classes == CLASSES
    whole = [seen_of(reference) for _ in range(2)]
    first = make(stream())
    seen_of(first)
    before = seen_of(first, taken)
    state = json.loads(json.dumps(first.state_dict()))
    second = make(stream())
    second.load_state_dict(state)

    after = seen_of(second)
    assert [label for _, label, _ in before + after] == [label for _, label, _ in whole[1]]
    assert before + after == whole[1]
    assert sorted(pixels for _, _, pixels in whole[1]) == sorted(pixels_of(n).tobytes() for n in range(COUNT))
    assert (whole[0] != whole[1]) == buffered
    assert seen_of(make(stream())) == whole[0]


def test_a_streamed_dataset_is_split_by_its_own_means(make: Any, table: Any) -> None:
    from datasets.distributed import split_dataset_by_node

    seen = set()
    for rank in range(2):
        stream = split_dataset_by_node(table.to_iterable_dataset(num_shards=2), rank=rank, world_size=2)
        seen |= {pixels for _, _, pixels in seen_of(make(stream, rank=rank, world_size=2))}
    assert len(seen) == COUNT
    with pytest.raises(millrace.InvalidRequest, match="split_dataset_by_node"):
        seen_of(make(table.to_iterable_dataset(), rank=0, world_size=2))


# -------------------------------------------------------------------------------------------------------------- webdataset


@pytest.fixture
def shards(tmp_path: Path) -> str:
    """Three tar files of the tests' pictures."""
    for shard in range(3):
        with tarfile.open(tmp_path / f"{shard}.tar", "w") as tar:
            for n in range(shard * EACH, (shard + 1) * EACH):
                for name, content in ((f"{n:03d}.png", png(n)), (f"{n:03d}.cls", str(n // EACH).encode())):
                    member = tarfile.TarInfo(name)
                    member.size = len(content)
                    tar.addfile(member, io.BytesIO(content))
    return str(tmp_path / "{0..2}.tar")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # it leaves its files to the garbage collector
def test_a_webdataset(make: Any, shards: str) -> None:
    web = pytest.importorskip("webdataset", reason="webdataset is not installed: its pipelines are not tried")
    pipeline = web.WebDataset(shards, shardshuffle=False)

    loader = make(pipeline)

    assert seen_of(loader) == [(n, n // EACH, pixels_of(n).tobytes()) for n in range(COUNT)]
    assert loader.dataset is pipeline
    first = make(pipeline)
    before = seen_of(first, 3)
    second = make(web.WebDataset(shards, shardshuffle=False))
    second.load_state_dict(first.state_dict())
    assert before + seen_of(second) == seen_of(loader)
    assert seen_of(make(millrace.Encoded(pipeline.to_tuple("png", "cls"))))[37][1] == 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_webdataset_that_decodes_is_refused(make: Any, shards: str) -> None:
    web = pytest.importorskip("webdataset", reason="webdataset is not installed: its pipelines are not tried")

    with pytest.raises(millrace.InvalidRequest, match=r'leave that out in the source \(webdataset: \.decode\("pil"\)'):
        seen_of(make(web.WebDataset(shards, shardshuffle=False).decode("pil")))


def test_nothing_is_left_of_loops_that_were_left(make: Any) -> None:
    for _ in range(5):
        for _ in make(millrace.Encoded(Rows(10_000))):
            break
    gc.collect()
    assert not [thread for thread in threading.enumerate() if thread.name == "millrace-feed"]
