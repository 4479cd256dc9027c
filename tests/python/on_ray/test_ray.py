"""Ray Data: datasets whose images the nodes' daemons make. A cluster of two nodes on this machine, each with a daemon of its own."""

from __future__ import annotations

import collections
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import millrace
import numpy as np
import pytest
from numpy.typing import NDArray

from pictures import COUNT, EACH, SIZE, path_of, pixels_of, png

pytest.importorskip("ray.data", reason="Ray Data is not installed: nothing of millrace.ray is tested")

import millrace.ray
import pyarrow as pa
import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from ray_cluster import Nodes, daemons, kill_all, pids, until

pytestmark = [pytest.mark.ray, pytest.mark.long, pytest.mark.filterwarnings("default")]  # Ray's own warnings are not ours
OWN_SIZE = millrace.Recipe(resize=millrace.ExactSize(SIZE), layout="NHWC")
LARGE = millrace.Recipe(resize=millrace.ExactSize(millrace.Size(160, 160)), layout="NHWC")
PAGE = Path(__file__).parents[3] / "client" / "python" / "doc" / "ray.md"
ONE_ACTOR = ray.data.ActorPoolStrategy(size=1)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Nodes]:
    with Nodes(2) as two:
        yield two


@pytest.fixture(scope="module")
def bad_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six pictures; numbers 1 and 4 are broken."""
    top = tmp_path_factory.mktemp("bad") / "pictures"
    top.mkdir()
    for number in range(6):
        (top / f"{number}.png").write_bytes(png(number) if number not in (1, 4) else png(number)[:60])
    return top


def check(rows: list[dict[str, Any]]) -> None:
    """Every picture once, with its pixels."""
    assert sorted(row["id"] for row in rows) == list(range(COUNT))
    for row in rows:
        np.testing.assert_array_equal(row["image"], pixels_of(row["id"]))


# ------------------------------------------------------------------------------------------------------------ read_images


def test_each_view_has_a_column(cluster: Nodes, folder: Path) -> None:
    recipe = millrace.Recipe.of_views(OWN_SIZE, [millrace.Recipe(centre_crop=millrace.Size(16, 8), layout="NHWC")] * 2)
    rows = millrace.ray.read_images(folder, recipe, batch_size=16, include_ids=True).take_all()

    check([{**row, "image": row["image_0"]} for row in rows])
    for row in rows:
        assert list(row) == ["image_0", "image_1", "image_2", "id"]
        for name in ("image_1", "image_2"):
            np.testing.assert_array_equal(row[name], pixels_of(row["id"])[12:20, 16:32])


def test_every_node_has_a_daemon_of_its_own_and_all_pictures_come_once(cluster: Nodes, folder: Path) -> None:
    columns: dict[str, Any] = {"include_labels": True, "include_ids": True, "include_paths": True}
    dataset = millrace.ray.read_images(folder, OWN_SIZE, batch_size=4, override_num_blocks=15, **columns)
    rows = dataset.take_all()

    check(rows)
    assert [row["label"] for row in rows] == [row["id"] // EACH for row in rows]
    assert [row["path"] for row in rows] == [path_of(folder, row["id"]) for row in rows]
    assert millrace.ray.class_names(folder) == ("ant", "bee", "cat")
    running_daemons = pids()
    assert len(set(running_daemons.values())) == len(running_daemons)
    assert set(running_daemons) <= {node["NodeID"] for node in ray.nodes()}


@ray.remote(num_cpus=0.1)
def _address(daemon: millrace.ray.Daemon) -> tuple[str, str]:
    return ray.get_runtime_context().get_node_id(), daemon.address_here()


def test_tasks_that_come_at_once_get_the_same_daemon_of_their_node(cluster: Nodes) -> None:
    millrace.ray.stop_daemons()
    spread = _address.options(scheduling_strategy="SPREAD")
    found = ray.get([spread.remote(millrace.ray.Daemon()) for _ in range(24)])

    assert len({node for node, _ in found}) == 2
    assert len(set(found)) == 2
    assert len({address for _, address in found}) == 2


def test_each_execution_is_another_epoch_unless_one_is_given(cluster: Nodes, folder: Path) -> None:
    recipe = millrace.Recipe.train(16)

    def pixels(dataset: ray.data.Dataset) -> dict[int, bytes]:
        return {row["id"]: row["image"].tobytes() for row in dataset.take_all()}

    def order(dataset: ray.data.Dataset) -> list[int]:
        return [row["id"] for row in dataset.take_all()]

    each = millrace.ray.read_images(folder, recipe, include_ids=True, seed=3)
    first, second = pixels(each), pixels(each)
    given = millrace.ray.read_images(folder, recipe, include_ids=True, seed=3, epoch=1)
    assert first != second
    assert pixels(given) == pixels(given) == second
    shuffled = millrace.ray.read_images(folder, OWN_SIZE, include_ids=True, shuffle="files", seed=3)
    orders = order(shuffled), order(shuffled)
    assert orders[0] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1]) == list(range(COUNT))


def test_limits_and_counts(cluster: Nodes, folder: Path) -> None:
    dataset = millrace.ray.read_images(folder, OWN_SIZE, include_ids=True)
    assert dataset.count() == COUNT
    assert len(dataset.limit(7).take_all()) == 7


def test_the_daemon_that_runs_is_taken(cluster: Nodes, daemon: millrace.PrivateDaemon, folder: Path) -> None:
    millrace.ray.stop_daemons()
    environment = {"env_vars": {"MILLRACE_SOCKET": daemon.address}}
    rows = millrace.ray.read_images(folder, OWN_SIZE, include_ids=True, runtime_env=environment).take_all()

    check(rows)
    assert not daemons()


# -------------------------------------------------------------------------------------------------------------- failures


class Killer:
    """Kills a daemon, or removes a node, while a dataset is read."""

    def __init__(self, kill: Any) -> None:
        self.kill = kill

    def read(self, folder: Path) -> dict[int, NDArray[Any]]:
        """Ids to pixels of 60 times the folder, more than the nodes' object stores hold; asserts that each came once."""
        paths = [path_of(folder, number) for number in range(COUNT)] * 60
        dataset = millrace.ray.read_images(paths, LARGE, include_ids=True, batch_size=8, override_num_blocks=90)
        seen: collections.Counter[int] = collections.Counter()
        found: dict[int, NDArray[Any]] = {}
        for number, batch in enumerate(dataset.iter_batches(batch_size=8, prefetch_batches=0)):
            if number == 0:  # at once: the nodes read ahead
                self.kill()
            seen.update(batch["id"].tolist())
            for key, image in zip(batch["id"].tolist(), batch["image"], strict=True):
                if key < COUNT:
                    found[key] = np.array(image)
                else:
                    assert image.sum() == found.setdefault(key % COUNT, np.array(image)).sum()
        assert sorted(seen) == list(range(len(paths)))
        assert set(seen.values()) == {1}
        return found


def plain(daemon: millrace.PrivateDaemon, folder: Path) -> NDArray[Any]:
    with millrace.connect(daemon.address) as client, client.session(LARGE, batch=COUNT) as session:
        return np.array(session.get(session.submit([path_of(folder, number) for number in range(COUNT)])).images)


def test_daemons_that_are_killed_in_the_middle_cost_no_sample(cluster: Nodes, daemon: millrace.PrivateDaemon, folder: Path) -> None:
    before: dict[str, int] = {}

    def kill() -> None:
        before.update(pids())
        kill_all(before.values())

    found = Killer(kill).read(folder)

    assert before
    after = pids()
    assert after
    assert not set(after.values()) & set(before.values())
    for number, image in enumerate(plain(daemon, folder)):
        np.testing.assert_array_equal(found[number], image)


def test_a_daemon_that_ends_again_and_again_is_not_started_again(cluster: Nodes) -> None:
    address = _address.options(scheduling_strategy="SPREAD", max_retries=0)

    def use_and_kill() -> None:
        for _ in range(20):
            ray.get([address.remote(millrace.ray.Daemon()) for _ in range(2)])
            kill_all(pids().values())

    with pytest.raises(millrace.FailedPrecondition, match=r"has ended 5 times within 600 s and is not started again; it says: "):
        use_and_kill()
    millrace.ray.stop_daemons()


def test_a_node_that_is_removed_in_the_middle_costs_no_sample(cluster: Nodes, daemon: millrace.PrivateDaemon, folder: Path) -> None:
    def remove() -> None:
        cluster.remove(next(iter(pids())))

    found = Killer(remove).read(folder)

    for number, image in enumerate(plain(daemon, folder)):
        np.testing.assert_array_equal(found[number], image)
    assert until(lambda: len([node for node in ray.nodes() if node["Alive"]]) == 2)
    cluster.add()


# ------------------------------------------------------------------------------------------------------------------ copies


def mappings() -> list[tuple[int, int, str]]:
    """Of this process: first address, the one after the last, and what is mapped."""
    lines = [line.split(maxsplit=5) for line in Path("/proc/self/maps").read_text().splitlines()]
    return [(*(int(end, 16) for end in line[0].split("-")), line[-1]) for line in lines]  # type: ignore[misc]


@ray.remote(num_cpus=0.25)
def _measure(paths: list[str]) -> dict[str, Any]:
    """In a worker of Ray's: what a read task does, and what Ray does with its tables.

    All batches have come before the first is taken, as where the worker is slow: then their slots are all in use from the first table on.
    """
    from millrace.ray._read import _read
    from millrace.ray._work import SESSIONS, Work, slots_for
    from ray.data._internal.output_buffer import BlockOutputBuffer, OutputBlockSizeOption

    recipe = millrace.Recipe(resize=millrace.ExactSize(millrace.Size(256, 256)), dtype="float32")
    work = Work(recipe, 16, "fail", "image", "", 0, 0, millrace.ray.Daemon(), "exact", "tensors")
    ids = np.arange(len(paths))

    def block() -> Any:
        buffer = BlockOutputBuffer(OutputBlockSizeOption.of(target_max_block_size=128 << 20))
        for table in _read(work, ("id",), paths, ids, ids):
            buffer.add_block(table)
            del table
        buffer.finalize()
        return buffer.next()

    def private() -> int:
        status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
        return int(status["RssAnon"].split()[0]) << 10

    def leased(all_of_them: bool) -> tuple[int, int]:
        """How many slots are in use, once it is all that there are, or none; and how many there are."""
        with SESSIONS.open(work, slots_for(work, len(paths))) as opened:
            until(lambda: opened.session.leased == (opened.session.slots if all_of_them else 0))
            return opened.session.leased, opened.session.slots

    get = millrace.Session.get

    def get_late(session: millrace.Session, number: int) -> millrace.Batch:
        assert until(lambda: session.leased == session.slots)
        return get(session, number)

    ray.put(block())  # what Python and Ray load at their first time does not count
    assert leased(False)[0] == 0  # else the next block finds no slot free, and has copies
    before = private()
    with mock.patch.object(millrace.Session, "get", get_late):
        made = block()
    mapped = private()
    held, slots = leased(True)
    buffers = [chunk.storage.buffers()[-1] for chunk in made.column("image").chunks]
    files = [name for buffer in buffers for first, last, name in mappings() if first <= buffer.address < last]
    reference = ray.put(made)
    stored = private()
    del made, buffers
    left, _ = leased(False)
    del reference
    return {"before": before, "mapped": mapped, "stored": stored, "held": held, "slots": slots, "left": left, "files": files}


def test_pixels_are_copied_by_ray_alone_and_slots_go_back_then(cluster: Nodes, folder: Path) -> None:
    pixels = 64 * 3 * 256 * 256 * 4
    found = ray.get(_measure.remote([path_of(folder, number % COUNT) for number in range(64)]))

    assert found["left"] == 0
    assert found["held"] == found["slots"] == 4
    in_slots = [name for name in found["files"] if "millrace" in name or "memfd" in name or "/dev/shm/#" in name]
    assert len(in_slots) == 4, found["files"]
    assert found["mapped"] - found["before"] < pixels / 20
    assert found["stored"] - found["before"] < pixels / 20


def test_a_consumers_batches_are_views_of_the_object_store_where_a_block_is_one_batch(cluster: Nodes, folder: Path) -> None:
    for batch in millrace.ray.read_images(folder, LARGE, batch_size=20).iter_batches(batch_size=10, batch_format="numpy"):
        address = batch["image"].ctypes.data
        assert not batch["image"].flags.writeable
        assert "plasma" in next(name for first, last, name in mappings() if first <= address < last)


def test_batches_of_a_block_that_has_more_than_there_are_slots_are_copied(cluster: Nodes, folder: Path) -> None:
    paths = [path_of(folder, number % COUNT) for number in range(3 * COUNT)]
    rows = millrace.ray.read_images(paths, OWN_SIZE, include_ids=True, batch_size=1, override_num_blocks=1).take_all()

    assert sorted(row["id"] for row in rows) == list(range(3 * COUNT))
    for row in rows:
        np.testing.assert_array_equal(row["image"], pixels_of(row["id"] % COUNT))


# ------------------------------------------------------------------------------------------------------------- bad images


@pytest.mark.parametrize("policy", ["zero", pytest.param("skip", marks=pytest.mark.smoke)])
def test_bad_images_are_blank_or_left_out_and_said(
    cluster: Nodes, bad_folder: Path, policy: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    options: dict[str, Any] = {"include_ids": True, "include_errors": policy == "zero", "batch_size": 6}
    dataset = millrace.ray.read_images(bad_folder, OWN_SIZE, on_error=policy, **options)
    rows = dataset.take_all()

    good = [row for row in rows if row["id"] not in (1, 4)]
    assert [row["id"] for row in good] == [0, 2, 3, 5]
    for row in good:
        np.testing.assert_array_equal(row["image"], pixels_of(row["id"]))
    assert len(rows) == (6 if policy == "zero" else 4)
    if policy == "zero":
        assert not any(row["image"].any() for row in rows if row["id"] in (1, 4))
        assert [row["error"] is None for row in rows] == [True, False, True, True, False, True]
        assert "PNG" in rows[1]["error"]
    else:
        assert dataset.count() == 4
    said: list[str] = []

    def told() -> bool:
        said.append(capfd.readouterr().err)
        return f"2 of 6 images {'are zeros' if policy == 'zero' else 'are left out'}: " in "".join(said)

    assert until(told), said


def test_a_bad_image_fails_the_dataset_by_default(cluster: Nodes, bad_folder: Path) -> None:
    with pytest.raises(millrace.SampleFailed, match=r"1\.png.*on_error is fail"):
        millrace.ray.read_images(bad_folder, OWN_SIZE).take_all()


def test_a_path_outside_the_daemons_roots_is_no_bad_image(cluster: Nodes, folder: Path, bad_folder: Path) -> None:
    millrace.ray.stop_daemons()
    elsewhere = millrace.ray.Daemon(roots=bad_folder)
    with pytest.raises(millrace.PermissionDenied, match=rf"\d+\.png.*roots.*they are {bad_folder}"):
        millrace.ray.read_images(folder, OWN_SIZE, on_error="skip", daemon=elsewhere).take_all()
    (node, *_) = pids()
    there = _address.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False), max_retries=0)
    with pytest.raises(millrace.InvalidRequest, match=r"was started with roots=.*, not /: give all datasets the same Daemon"):
        ray.get(there.remote(millrace.ray.Daemon(roots="/")))
    millrace.ray.stop_daemons()


# -------------------------------------------------------------------------------------------------------------- Preprocess


@pytest.mark.parametrize(
    ("kind", "form"),
    [("path", "numpy"), ("path", "pyarrow"), ("bytes", "numpy"), pytest.param("bytes", "pyarrow", marks=pytest.mark.smoke)],
)
def test_a_column_of_paths_or_bytes_becomes_tensors_and_others_pass_through(cluster: Nodes, folder: Path, form: str, kind: str) -> None:
    numbers = range(COUNT)
    values = [path_of(folder, number) if kind == "path" else png(number) for number in numbers]
    given = ray.data.from_arrow(pa.table({"it": values, "id": list(numbers), "name": [f"n{number}" for number in numbers]}))
    options = {"recipe": OWN_SIZE, "column": "it", "batch_size": 16, "ring_bytes": 1 << 20}
    dataset = given.map_batches(
        millrace.ray.Preprocess, fn_constructor_kwargs=options, batch_size=40, batch_format=form, num_cpus=0.25, compute=ONE_ACTOR
    )
    rows = dataset.take_all()

    check(rows)
    assert [row["name"] for row in rows] == [f"n{row['id']}" for row in rows]
    assert ("it" in rows[0]) == (kind == "path")


def test_the_pages_examples(cluster: Nodes, folder: Path) -> None:
    millrace.ray.stop_daemons()
    training, preprocessing, *_ = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    seen: list[int] = []
    names: dict[str, Any] = {"train": lambda images, labels: seen.append(len(images) * (tuple(images.shape[1:]) == (3, 224, 224)))}

    if importlib.util.find_spec("torch"):
        exec(training.replace("/data/train", str(folder)), names)
        assert sum(seen) == COUNT
    names["millrace"] = millrace
    exec(preprocessing.replace("s3://bucket/pictures", str(folder)), names)
    assert names["dataset"].count() == COUNT


# ------------------------------------------------------------------------------------------------------------- the daemon


def test_tasks_that_leave_no_room_for_the_daemon_are_refused(cluster: Nodes) -> None:
    millrace.ray.stop_daemons()
    greedy = _address.options(num_cpus=2, max_retries=0)
    with pytest.raises(millrace.InvalidRequest, match=r"of its 2 CPUs the daemon reserves 1, which leaves no room for tasks of num_cpus=2"):
        ray.get(greedy.remote(millrace.ray.Daemon()))


def test_no_daemon_at_all_says_how_to_get_one(cluster: Nodes) -> None:
    with pytest.raises(millrace.FailedPrecondition, match=r"cannot reach the daemon.*leave start=False out"):
        ray.get(_address.options(max_retries=0).remote(millrace.ray.Daemon(start=False)))
    millrace.ray.stop_daemons()
    with pytest.raises(millrace.FailedPrecondition, match=r"/nowhere/millraced is not a program"):
        ray.get(_address.options(max_retries=0).remote(millrace.ray.Daemon(program="/nowhere/millraced")))
    millrace.ray.stop_daemons()


def test_a_daemon_that_nobody_uses_ends_and_gives_its_cpus_back(cluster: Nodes) -> None:
    millrace.ray.stop_daemons()
    ray.get(_address.remote(millrace.ray.Daemon(linger=0.5)))
    (pid,) = pids().values()
    assert until(lambda: not daemons()), daemons()
    assert until(lambda: ray.available_resources().get("CPU") == 4), ray.available_resources()
    assert not Path(f"/proc/{pid}").exists()
