"""Tar shards through loaders and a daemon: the same as a folder of the same files, in any order, on ranks, resumed, after a kill."""

from __future__ import annotations

import json
import os
import random
import signal
import tarfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import millrace
import millrace.numpy
import numpy as np
import pytest

from archives import write_tar
from pictures import COUNT, EACH, SIZE, path_of, pixels_of, png, png_of

OWN_SIZE = millrace.Recipe(resize=millrace.ExactSize(SIZE), layout="NHWC")
SHARDS = 4
Seen = list[tuple[int, int, int, bytes]]


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


def members_of(n: int) -> list[tuple[str, bytes]]:
    return [(f"k/{n:03d}.cls", b"%d" % (n // EACH)), (f"k/{n:03d}.json", json.dumps({"n": n}).encode()), (f"k/{n:03d}.png", png(n))]


@pytest.fixture(scope="module")
def archives(folder: Path) -> Path:
    """As webdataset's TarWriter writes them: with times that need an extended header before each member. Beneath the daemon's root."""
    place = folder.parent / "archives"
    place.mkdir()
    each = COUNT // SHARDS
    for number in range(SHARDS):
        members = [member for n in range(number * each, (number + 1) * each) for member in members_of(n)]
        write_tar(place / f"t-{number}.tar", members, format=tarfile.PAX_FORMAT, mtime=1.5)
    return place


@pytest.fixture
def make(daemon: millrace.PrivateDaemon) -> Iterator[Callable[..., Any]]:
    made = []

    def loader(source: Any, **options: Any) -> Any:
        made.append(millrace.numpy.Loader(source, OWN_SIZE, **{"batch_size": 8, "address": daemon.address, **options}))
        return made[-1]

    yield loader
    for one in made:
        one.close()


def seen_of(loader: Any, most: int = 0) -> Seen:
    """Ids, labels, JSON and pixels of a loop, or of its first batches."""
    seen: Seen = []
    for number, (images, labels) in enumerate(loader, 1):
        for n, label, value, image in zip(loader.batch.ids, labels["label"], labels["json"], images, strict=True):
            seen.append((int(n), int(label), value["n"], image.tobytes()))
        if number == most:
            break
    return seen


def expected(order: Any) -> Seen:
    return [(n, n // EACH, n, pixels_of(n).tobytes()) for n in order]


def test_they_are_as_a_folder_of_the_same_files(make: Any, archives: Path, folder: Path) -> None:
    shards = millrace.Shards(archives, columns=["json"])
    loader, files = make(shards), make(folder)

    assert (len(loader), loader.dataset is shards, loader.classes) == (8, True, ())
    assert seen_of(loader) == expected(range(COUNT))
    for (one, labels), (other, numbers) in zip(make(shards), files, strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(labels["label"], numbers)
    for _, _ in loader:
        part = shards.paths.part_of(0)
        assert part is not None
        assert loader.batch.paths[0] == f"{archives}/t-0.tar[{part.offset}+{part.length}] k/000.png"
        break
    shuffled = make(shards, shuffle=True, seed=5)
    order = [n for n, *_ in seen_of(shuffled)]
    assert sorted(order) == list(range(COUNT))
    assert len({n // (COUNT // SHARDS) for n in order[:8]}) > 1  # of several shards in the first batch


def test_the_order_is_that_of_any_list(make: Any, archives: Path, folder: Path) -> None:
    paths = sorted(str(path) for path in folder.rglob("*.png"))
    lists = make(None, samples=paths, shuffle=True, seed=5)
    order = [n for _, _ in lists for n in lists.batch.ids.tolist()]
    assert [n for n, *_ in seen_of(make(millrace.Shards(archives, columns=["json"]), shuffle=True, seed=5))] == order


def test_ranks_and_going_on_within_an_epoch(make: Any, archives: Path) -> None:
    shards = millrace.Shards(f"{archives}/t-{{0..3}}.tar", columns=["json"])
    options: dict[str, Any] = {"shuffle": True, "seed": 3, "batch_size": 4}
    both: Seen = []
    for rank in (0, 1):
        loader = make(shards, rank=rank, world_size=2, **options)
        both += seen_of(loader, 4)
        state = loader.state_dict()
    alone = make(millrace.Shards(f"{archives}/*.tar", columns=["json"]), **options)
    alone.load_state_dict(json.loads(json.dumps(state)))
    both += seen_of(alone)
    assert sorted(n for n, *_ in both) == list(range(COUNT))
    assert both == expected(n for n, *_ in both)


@pytest.mark.torch
def test_splits_and_joined_ones(make: Any, archives: Path) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: Subset and ConcatDataset of shards are not tried")
    first = millrace.Shards(archives / "t-0.tar", label="cls")
    rest = millrace.Shards([archives / f"t-{number}.tar" for number in (1, 2, 3)])
    joined = torch.utils.data.ConcatDataset([rest, first])
    loader = make(torch.utils.data.Subset(joined, [50, 0, 44, 59]))
    ((images, labels),) = [(images.copy(), labels) for images, labels in loader]
    numbers = [5, 15, 59, 14]
    assert [image.tobytes() for image in images] == [pixels_of(n).tobytes() for n in numbers]
    assert labels.tolist() == [n // EACH for n in numbers]
    assert first.subset([3]).paths[0].endswith("k/003.png")
    assert first[2][1] == 0


def test_images_and_masks(make: Any, folder: Path) -> None:
    masks = [np.full((SIZE.height, SIZE.width, 1), n, np.uint8) for n in range(5)]
    members = [member for n in range(5) for member in ((f"{n}.png", png(n)), (f"{n}.mask.png", png_of(masks[n])))]
    path = write_tar(folder.parent / "masked.tar", members)

    pairs = millrace.Pairs.of_shards(path, image="png", mask="mask.png")

    ((images, found),) = [(images.copy(), found.copy()) for images, found in make(pairs)]
    for n in range(5):
        np.testing.assert_array_equal(images[n], pixels_of(n))
        np.testing.assert_array_equal(found[n], masks[n][:, :, 0])
    with pytest.raises(millrace.InvalidRequest, match=r"5 of 5 images in .*masked.tar have no mask, such as 0.png; name its extension"):
        millrace.Pairs.of_shards(path, image="png", mask="seg.png")


def test_a_shard_that_changes_is_an_error_of_its_samples(make: Any, archives: Path, folder: Path) -> None:
    path = write_tar(folder.parent / "changing.tar", [member for n in range(3) for member in members_of(n)])
    other = write_tar(folder.parent / "lasting.tar", members_of(3))
    shards = millrace.Shards([path, other])
    write_tar(path, [member for n in (9, 9, 9) for member in members_of(n)])  # as long, and other pictures
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 10**9))
    loader = make(shards, on_error="skip")
    with pytest.warns(millrace.BadImageWarning, match="changing.tar"):
        found = [(loader.batch.ids.tolist(), [image.tobytes() for image in images]) for images, _ in loader]
    assert found == [([3], [pixels_of(3).tobytes()])]


@pytest.mark.torch
def test_a_shard_that_changes_is_noticed_beside_files(make: Any, folder: Path) -> None:
    from torch.utils.data import ConcatDataset

    path = write_tar(folder.parent / "changing_too.tar", [member for n in range(3) for member in members_of(n)])
    files = millrace.Samples([path_of(folder, 3)], [3])
    dataset = ConcatDataset([files, millrace.Shards(path, label="cls"), files])
    write_tar(path, [member for n in (9, 9, 9) for member in members_of(n)])  # as long, and other pictures
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 10**9))
    loader = make(dataset, on_error="skip")
    with pytest.warns(millrace.BadImageWarning, match="changing_too.tar"):
        found = [loader.batch.ids.tolist() for _ in loader]
    assert found == [[0, 4]]


def test_killed_daemons(archives: Path) -> None:
    """What came before the daemon died and after another began is the epoch, each sample once."""
    shards = millrace.Shards(archives, columns=["json"])
    options: dict[str, Any] = {"batch_size": 4, "shuffle": True, "seed": 7}
    seen: Seen = []
    state: Any = None
    for most in (5, 3, 0):
        with (
            millrace.serve(archives, lanes=1) as daemon,
            millrace.numpy.Loader(shards, OWN_SIZE, address=daemon.address, **options) as loader,
        ):
            if state is not None:
                loader.load_state_dict(state)
            seen += seen_of(loader, most)
            state = loader.state_dict()
            if most:
                os.kill(daemon.pid, signal.SIGKILL)
    assert sorted(n for n, *_ in seen) == list(range(COUNT))
    assert seen == expected(n for n, *_ in seen)


@pytest.mark.torch
def test_what_webdataset_writes(make: Any, folder: Path) -> None:
    webdataset = pytest.importorskip("webdataset", reason="webdataset is not installed: what it writes is not read")
    place = folder.parent / "written"
    place.mkdir()
    with webdataset.ShardWriter(str(place / "t-%02d.tar"), maxcount=25, verbose=0) as writer:
        for n in range(COUNT):
            writer.write({"__key__": f"k/{n:03d}", "png": png(n), "cls": n // EACH, "json": {"n": n}})
    shards = millrace.Shards(place, columns=["json"])
    assert [os.path.basename(path) for path in shards.shards] == ["t-00.tar", "t-01.tar", "t-02.tar"]
    assert seen_of(make(shards)) == expected(range(COUNT))


@pytest.mark.torch
def test_webdataset_groups_members_alike(tmp_path: Path) -> None:
    iterators = pytest.importorskip("webdataset.tariterators", reason="webdataset is not installed: its rules are not compared with")
    dice = random.Random(8)
    for _ in range(100):
        names = []
        for _ in range(30):
            key = dice.choice(["1", "2", "a/1", "a.b/2", "./3", "../4", "/5", "a b", "README"])
            name = key + dice.choice([".jpg", ".JPG", ".seg.png", ".", "", ".tar.jpg"])
            if not names or name.lower() not in names[-5:]:  # twice in a sample is an error there
                names.append(name.lower() if dice.random() < 0.5 else name)
        names = [name for number, name in enumerate(names) if name.lower() not in [other.lower() for other in names[:number][-8:]]]
        members = [(name, b"%d" % number) for number, name in enumerate(names)]
        files = [{"fname": name, "data": data, "__url__": ""} for name, data in members]
        theirs = [(row["__key__"], row["jpg"]) for row in iterators.group_by_keys(iter([*files, {}])) if "jpg" in row]
        if not theirs:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", millrace.ShardWarning)
            shards = millrace.Shards(write_tar(tmp_path / "a.tar", members), image="jpg", label="", columns=["__key__", "jpg"])
        columns: Any = shards.labels
        assert list(zip(columns["__key__"], columns["jpg"], strict=True)) == theirs
