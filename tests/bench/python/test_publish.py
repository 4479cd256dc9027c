"""What publish.py writes."""

from __future__ import annotations

from typing import Any

import pytest

from publish import (
    AIMS,
    KERNELS,
    POLICY,
    STAGES,
    TABLES,
    kernels_table,
    number,
    of_python,
    policy_table,
    published,
    stages_table,
    table,
    verdict,
)


def figure(name: str, value: float, ratio: float = 1.0) -> dict[str, Any]:
    return {"name": name, "value": value, "unit": "us", "ratio": ratio}


@pytest.mark.parametrize(
    ("name", "value", "ratio", "expected"),
    [
        ("handover.p50", 80.0, 1.0, "at most 80 us"),
        ("handover.p50", 80.5, 1.0, "at most 80 us, **missed**"),
        ("resample.exact", 9.0, 2.99, "at least 3 x, **missed**"),
        ("resample.exact", 9.0, 3.0, "at least 3 x"),
        ("latency.submit_to_view", 9.0, 1.0, ""),
    ],
)
def test_an_aim_is_met_or_missed(name: str, value: float, ratio: float, expected: str) -> None:
    assert verdict(figure(name, value, ratio)) == expected


def test_a_table_has_a_row_a_figure() -> None:
    beside = {**figure("jpeg.entropy", 2558.2, 2.613), "unit": "images/s", "baseline": {"name": "libjpeg-turbo", "value": 796.4}}
    alone = {"name": "jpeg.photographs", "value": 165, "unit": "files", "note": "of 167"}

    assert table([beside, alone]).splitlines()[2:] == [
        "| `jpeg.entropy` | 2,558 images/s | libjpeg-turbo 796 | 2.61 x | at least 2.3 x |",
        "| `jpeg.photographs` | 165 files | of 167 |  |  |",
    ]


def test_small_numbers_keep_three_digits() -> None:
    assert [number(value) for value in (0.06, 27.04, 99.96, 1234.5)] == ["0.06", "27", "100", "1,234"]


def test_a_page_changes_between_its_marks_alone() -> None:
    marks = ("<!-- {}: written by config/setup.sh bench --publish from here -->", "<!-- {}: to here -->")
    page = "".join(f"{name} before\n{marks[0].format(name)}\n\nold {name}\n\n{marks[1].format(name)}\n" for name in "ab")

    assert published(page, "b", "new") == page.replace("old b", "new")


def test_every_page_has_the_marks_of_its_tables() -> None:
    for name, (page, _) in TABLES.items():
        assert "figure" in published(page.read_text(), name, table([]))
    assert "here it is" in published(KERNELS.read_text(), "kernels", "here it is")
    assert "here it is" in published(STAGES.read_text(), "stages", "here it is")
    assert "here it is" in published(POLICY.read_text(), "policy", "here it is")


def test_a_table_of_the_cache_s_policy_has_a_row_a_trace_and_the_hits_of_ours() -> None:
    lines = [
        {"trace": "t", "who": "policy", "hit_ratio": 0.3333, "of_best": 0.954},
        {"trace": "t", "who": "least recently used", "hit_ratio": 0.9, "of_best": -2.5},
        {"trace": "u", "who": "best, nothing made at first touch", "of_best": 0.5},
        {"call": "asked", "ns": 6.4},
    ]

    assert policy_table([*lines[:2], {**lines[0], "trace": "u"}, *lines[2:]]).splitlines()[2:] == [
        "| t | 33.3 % | 95.4 |  |  | less than nothing |  |  |  |  |",
        "| u | 33.3 % | 95.4 |  |  |  |  |  |  | 50.0 |",
        "",
        "Calls, with four datasets in use and 320,000 entries: `asked` 6.4 ns.",
    ]


def test_a_table_of_stages_has_a_row_a_stage_and_a_column_an_instruction_set() -> None:
    names = ("unpack.scalar", "unpack.avx2", "store.float16.avx2", "store.float16.avx512")
    figures = [{"name": f"engine.{name}", "value": 10.04 * place, "unit": "ns", "note": "n"} for place, name in enumerate(names, 1)]

    assert stages_table(figures).splitlines() == [
        "| stage | scalar | avx2 | avx512bw | avx512 | |",
        "|---|---|---|---|---|---|",
        "| `unpack`, ns | 10 | 20.1 |  |  | n |",
        "| `store.float16`, ns |  | 30.1 |  | 40.2 | n |",
    ]


def test_a_table_of_kernels_has_a_row_a_work_and_a_column_an_instruction_set() -> None:
    names = ("resample/grey/scalar", "resample/grey/avx2", "store/uint8/avx2", "store/uint8/reference")
    results = {"benchmarks": [{"name": name, "cpu_time": 10.04 * place} for place, name in enumerate(names, 1)]}

    assert kernels_table(results).splitlines() == [
        "| us | scalar | avx2 | avx512bw | avx512 | reference |",
        "|---|---|---|---|---|---|",
        "| resample/grey | 10 | 20.1 |  |  |  |",
        "| store/uint8 |  | 30.1 |  |  | 40.2 |",
    ]


def test_every_aim_has_a_table() -> None:
    for name in AIMS:
        assert sum(name.startswith(beginnings) for _, beginnings in TABLES.values()) == 1, name


def test_results_of_python_become_figures() -> None:
    assert of_python({"steady": {"growth_mib": 0.06, "descriptors": [16, 17]}}) == [
        {"name": "steady.growth_mib", "value": 0.06, "unit": ""},
        {"name": "steady.descriptors", "value": 17, "unit": "", "baseline": {"name": "after a tenth", "value": 16}},
    ]
