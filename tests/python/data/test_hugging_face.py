"""Datasets of Hugging Face's, and webdataset's pipelines, as a loader's."""

from __future__ import annotations

import io
import json
import pickle
import tarfile
from pathlib import Path
from typing import Any

import millrace
import numpy as np
import pytest
from millrace._loader.permutation import permutation, share

from pictures import CLASSES, COUNT, EACH, pixels_of, png
from sources import Rows, hugging_face, make_loader, pictures_table, seen_of, table_of  # noqa: F401, fixtures

pytestmark = pytest.mark.torch  # these packages are there where PyTorch is

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


@pytest.mark.parametrize("kind", ["plain", "take", "interleaved", "mapped"])
def test_a_stream_that_was_resumed_gives_all_rows_in_later_epochs(make: Any, hugging: Any, table: Any, kind: str) -> None:
    stream = table.to_iterable_dataset(num_shards=4)
    if kind == "take":
        stream = stream.take(COUNT - 8)
    elif kind == "interleaved":
        stream = hugging.interleave_datasets([stream.take(COUNT // 2), stream.skip(COUNT // 2)], stopping_strategy="all_exhausted")
    elif kind == "mapped":
        stream = stream.cast_column("image", hugging.Image(decode=False)).map(lambda row: row)
    whole = [pixels for _, _, pixels in seen_of(make(stream))]
    first, second = make(stream), make(stream)
    loop = iter(first)
    next(loop), next(loop)
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    assert [[pixels for _, _, pixels in seen_of(second)] for _ in range(3)] == [whole[16:], whole, whole]


def test_states_say_what_they_are_of(make: Any, table: Any) -> None:
    def state(loader: Any) -> Any:
        next(iter(loader))
        return loader.state_dict()

    for source in (table, table.to_iterable_dataset()):
        other = make(source, seed=2)
        other.load_state_dict(state(make(source, seed=1)))
        with pytest.raises(millrace.FailedPrecondition, match="seed was 1 and is 2"):
            next(iter(other))
    other = make(table.select(range(COUNT - 1, -1, -1)))
    other.load_state_dict(state(make(table)))
    with pytest.raises(millrace.FailedPrecondition, match="another dataset"):
        next(iter(other))


def test_a_source_with_numbers_goes_on_with_other_ranks(make: Any, table: Any) -> None:
    two = [make(table, shuffle=True, batch_size=6, rank=rank, world_size=2) for rank in range(2)]
    seen, states = [], []
    for loader in two:
        loop = iter(loader)
        for _ in range(2):
            next(loop)
            seen += loader.batch.ids.tolist()
        states.append(loader.state_dict())
    for rank in range(4):
        loader = make(table, shuffle=True, batch_size=3, rank=rank, world_size=4)
        loader.load_state_dict(states[0])
        seen += [n for n, _, _ in seen_of(loader)]
    assert sorted(seen) == list(range(COUNT))
    odd = make(table, shuffle=True, batch_size=7)
    odd.load_state_dict(states[0])
    with pytest.raises(millrace.FailedPrecondition, match=r"batch_size was 6 and is 7.*begin the epoch anew"):
        next(iter(odd))


def test_two_loops_of_one_stream_do_not_disturb_each_other(make: Any, table: Any) -> None:
    stream = table.to_iterable_dataset(num_shards=4)
    both = zip(make(stream, batch_size=4), make(stream, batch_size=4), strict=True)
    assert [[labels.tolist() for labels in (one[1], other[1])] for one, other in both] == [
        [[(4 * batch + k) // EACH for k in range(4)]] * 2 for batch in range(COUNT // 4)
    ]
