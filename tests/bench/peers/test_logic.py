"""The bench's own logic: boxes, statistics, /proc, the report. Needs pytest and nothing of the peers."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from drive import Failed, Worker
from figures import Spread, best, ratio_in_rounds, settled, spread
from plot import draw_plot
from processes import parse_pss, parse_stat, processor_seconds, proportional_set_size, tree
from report import Results, published, write_markdown
from roster import Entry
from work import BATCH, Sample, Work, batches, centre, pass_images, read_work, resized


@pytest.mark.parametrize(
    ("size", "expected"), [((500, 375), (341, 256)), ((375, 500), (256, 341)), ((256, 256), (256, 256)), ((100, 333), (256, 852))]
)
def test_the_shorter_side_gets_256_and_the_other_is_truncated(size: tuple[int, int], expected: tuple[int, int]) -> None:
    assert resized(*size) == expected


@pytest.mark.parametrize(("size", "expected"), [((341, 256), (58, 16)), ((225, 227), (0, 2)), ((224, 224), (0, 0))])
def test_halves_of_the_centre_round_to_even(size: tuple[int, int], expected: tuple[int, int]) -> None:
    assert centre(*size) == expected


def some_work(copies: int = 3, distinct: int = 2) -> Work:
    samples = tuple(Sample(f"{number}.jpg", 10, 20, (0, 0, 5, 5), False) for number in range(copies * distinct))
    return Work("all", "warm", distinct, tuple(sample.path for sample in samples), (samples, samples[::-1]))


@pytest.mark.parametrize(
    ("wanted", "cores", "expected"), [(20, [1, 2], 20), (19, [1, 2], 20), (1, [2], 2), (20, [1], 20), (20, [2, 3], 24), (0, [1], 1)]
)
def test_a_pass_is_whole_batches_of_which_every_core_gets_as_many(wanted: int, cores: list[int], expected: int) -> None:
    images = pass_images(wanted, cores)

    assert images == expected * BATCH
    assert all(images % (count * BATCH) == 0 for count in cores)


@pytest.mark.parametrize(
    ("rates", "expected"),
    [([], False), ([100.0, 100.0], False), ([1.0, 100.0, 104.0], True), ([1.0, 50.0, 100.0], False), ([90.0, 100.0, 80.0], True)],
)
def test_a_peer_is_warm_when_its_passes_get_no_faster(rates: list[float], expected: bool) -> None:
    assert settled(rates) == expected


def test_epochs_repeat() -> None:
    work = some_work()

    assert work.samples(2, 3) == work.epochs[0][:3]
    assert work.samples(3, 1) == work.epochs[1][:1]


def test_batches_are_in_order_and_the_last_is_short() -> None:
    samples = some_work().epochs[0]

    assert [list(part) for part in batches(samples, 4)] == [list(samples[:4]), list(samples[4:])]


def test_work_is_read_as_it_was_written(tmp_path: Path) -> None:
    epoch = {"boxes": [[0, 1, 2, 3]], "flips": [True]}
    stored = {"folder": "f", "warm_folder": "w", "distinct": 1, "files": ["a"], "sizes": [[4, 5]], "epochs": [epoch]}
    (tmp_path / "work.json").write_text(json.dumps(stored))

    assert read_work(tmp_path / "work.json") == Work("f", "w", 1, ("a",), ((Sample("a", 4, 5, (0, 1, 2, 3), True),),))


def test_median_and_range() -> None:
    assert spread([3.0, 1.0, 2.0]) == Spread(2.0, 1.0, 3.0)
    assert spread([]) is None


def test_ratios_are_of_rounds_that_both_have() -> None:
    assert ratio_in_rounds({0: 10.0, 1: 30.0, 2: 8.0}, {0: 5.0, 1: 10.0, 3: 1.0}) == Spread(2.5, 2.0, 3.0)
    assert ratio_in_rounds({0: 1.0}, {1: 1.0}) is None


def test_the_best_is_the_fastest() -> None:
    assert best({"a": 1.0, "b": 2.0}) == "b"
    assert best({}) is None


def test_stat_is_read_whatever_the_name_holds() -> None:
    tick = os.sysconf("SC_CLK_TCK")
    fields = "S 7 1 1 0 -1 4194304 1 2 3 4 100 50 30 20 20 0 4 0"

    assert parse_stat(f"12 (a) b (c)) {fields}") == (7, 200 / tick)


def test_proportional_set_size_is_in_bytes() -> None:
    assert parse_pss("00400000-7ff [rollup]\nRss:  900 kB\nPss:   12 kB\nPss_Dirty: 4 kB\n") == 12 * 1024


def test_a_tree_has_all_descendants_and_nobody_else() -> None:
    assert tree(2, {1: 0, 2: 1, 3: 2, 4: 3, 5: 1}) == {2, 3, 4}


def test_this_process_uses_processor_and_memory() -> None:
    before = processor_seconds(os.getpid())
    while processor_seconds(os.getpid()) < before + 0.05:
        sum(range(100_000))

    assert proportional_set_size(os.getpid()) > 1 << 20


@pytest.fixture
def results(tmp_path: Path) -> Results:
    conditions = {"processor": "<P>", "cores": 2, "python": "3", "date": "2000-01-01", "load": [0, 0, 0], "rounds": 2, "images": 600}
    made = Results(tmp_path / "passes.jsonl", {**conditions, "file_bytes": 600 * 102_400}, resume=False)
    about = {"antialias": "yes", "output": "float32 NCHW", "versions": "1", "tuned": "well", "decodes": True}
    made.about = {"millrace": about, "pillow": about, "opencv": {**about, "antialias": "no"}, "opencv_area": {**about, "antialias": "box"}}
    made.about["torchvision_decoded"] = {**about, "decodes": False}
    rates = {("millrace", "first"): 300, ("millrace", "indexed"): 600, ("pillow", ""): 100, ("opencv", ""): 200, ("opencv_area", ""): 150}
    rates["torchvision_decoded", ""] = 400
    kept = {("millrace", "indexed"): 600 * 1024, ("torchvision_decoded", ""): 600 * 512_000}
    for number in range(2):
        for (peer, row), rate in rates.items():
            found = {"row": row, "images": 600, "seconds": 600 / rate, "cpu": 0.5, "note": "", "kept": kept.get((peer, row), 0)}
            made.add(number, peer, 1, "train", found)
    return made


@pytest.mark.parametrize(
    ("filtered", "against", "first", "indexed"),
    [("yes", "Pillow", 3.0, 6.0), ("box", "OpenCV, area", 2.0, 4.0), ("decoded", "torchvision, decoded before", 0.75, 1.5)],
)
def test_baselines_are_the_fastest_of_those_that_decode_by_their_filter_and_of_those_that_do_not(
    results: Results, filtered: str, against: str, first: float, indexed: float
) -> None:
    figures = {item["figure"]: item for item in results.summary()["figures"] if item["filter"] == filtered}

    assert {item["against"] for item in figures.values()} == {against}
    assert figures["peers.train.first"]["ratio"]["median"] == pytest.approx(first)
    assert figures["peers.train.indexed"]["ratio"]["median"] == pytest.approx(indexed)


def test_a_figure_that_is_missed_says_so_beside_either_baseline(results: Results) -> None:
    beside, box, _ = write_markdown(results.summary()).split("Beside the fastest ")[1:]

    assert "| `peers.train.first` | exact | 1 | 3.00x (3.00 - 3.00) | 3.2, **missed** | 4.0, **missed** | Pillow |" in beside
    assert "| `peers.train.indexed` | exact | 1 | 6.00x (6.00 - 6.00) | 4.3 | 7.0, **missed** | Pillow |" in beside
    assert "| `peers.train.first` | exact | 1 | 2.00x (2.00 - 2.00) | 3.2, **missed** | 4.0, **missed** | OpenCV, area |" in box


def test_beside_pixels_in_memory_nothing_is_aimed_at(results: Results) -> None:
    last = write_markdown(results.summary()).split("Beside the fastest ")[-1]

    assert "| `peers.train.indexed` | exact | 1 | 1.50x (1.50 - 1.50) |  |  | torchvision, decoded before |" in last


def test_who_keeps_something_beside_the_files_says_how_much(results: Results) -> None:
    table = write_markdown(results.summary()).split("| train, from what is kept |")[1].split("\n\n")[0].splitlines()

    assert "times its file, 100 KiB" in table[0]
    assert [line.split("|")[1:4] for line in table[2:]] == [
        [" Millrace, exact, with index ", " 1.0 ", " 0.01 "],
        [" torchvision, decoded before ", " 500.0 ", " 5 "],
    ]


def test_a_pass_of_another_length_is_refused(results: Results) -> None:
    with pytest.raises(ValueError, match="pillow: a pass of 300 images, where this run's are of 600"):
        results.add(2, "pillow", 1, "train", {"row": "", "images": 300, "seconds": 1.0, "cpu": 0.5, "note": ""})

    assert not results.has(2, "pillow", 1, "train")


def test_a_run_of_other_passes_is_not_gone_on_with(results: Results, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a pass of 600 images, where this run's are of 1280"):
        Results(tmp_path / "passes.jsonl", {**results.conditions, "images": 1280}, resume=True)


def test_a_peer_that_failed_is_named_with_the_reason_and_has_no_row(results: Results) -> None:
    results.failures["opencv"] = "no such library"

    text = write_markdown(results.summary())

    assert "- OpenCV, linear: not run: no such library" in text
    assert "| OpenCV, linear | no |" not in text


def test_a_run_goes_on_where_it_stopped(results: Results, tmp_path: Path) -> None:
    again = Results(tmp_path / "passes.jsonl", results.conditions, resume=True)

    assert again.passes == results.passes
    assert again.has(1, "pillow", 1, "train")
    assert not again.has(2, "pillow", 1, "train")
    assert Results(tmp_path / "passes.jsonl", results.conditions, resume=False).passes == []


def test_a_page_shows_the_run_that_was_published_last() -> None:
    page = "Before\n<!-- peers: written by bench.py --publish from here -->\n\nold\n\n<!-- to here -->\nafter\n"

    assert published(published(page, "new\n"), "newer\n") == page.replace("old", "newer")


def test_the_plot_is_well_formed(results: Results) -> None:
    bars = ElementTree.fromstring(draw_plot(results.summary())).findall("{http://www.w3.org/2000/svg}rect")

    assert len(bars) == 1 + 6  # the ground and a bar a row


@pytest.fixture
def environments(tmp_path: Path) -> Callable[[str], Path]:
    """An environment whose interpreter is a shell script."""

    def make(script: str) -> Path:
        program = tmp_path / "room" / "bin" / "python"
        program.parent.mkdir(parents=True)
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        return tmp_path

    return make


def started(environments: Path) -> Any:
    return Worker(Entry("someone", "Someone", "room"), (0,), environments / "work.json", environments, environments / "log")


def test_a_worker_answers_line_by_line(environments: Callable[[str], Path]) -> None:
    worker = started(environments("""echo '{"ready": true}'; read line; echo '{"passes": []}'"""))

    worker.wait_ready(10)

    assert worker.about == {"ready": True}
    assert worker.ask("timed", 10) == {"passes": []}
    worker.close()


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo 'no such thing' >&2; exit 3", "ended with status 3: no such thing"),
        ("""echo '{"failed": "bad file"}'""", "bad file"),
        ("exec sleep 60", "no answer within"),
    ],
)
def test_a_worker_that_fails_says_why(environments: Callable[[str], Path], script: str, message: str) -> None:
    with pytest.raises(Failed, match=message):
        started(environments(script)).wait_ready(2)
