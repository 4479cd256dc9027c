"""What resample.py computes by itself. Needs pytest, and neither Pillow-SIMD nor our program."""

from __future__ import annotations

import pytest

from resample import answered, figures, report

ROUNDS = [
    {"Pillow-SIMD": 100.0, "exact": 50.0, "exact.kept": 25.0},
    {"Pillow-SIMD": 120.0, "exact": 30.0, "exact.kept": 20.0},
    {"Pillow-SIMD": 130.0, "exact": 50.0, "exact.kept": 26.0},
]


def test_a_line_of_the_program_is_read() -> None:
    assert answered("exact 70.12 fast 53.58 exact.kept 46.43 fast.kept 39.40\n") == {
        "exact": 70.12,
        "fast": 53.58,
        "exact.kept": 46.43,
        "fast.kept": 39.4,
    }
    assert answered("") == {}


def test_the_aim_is_of_weights_made_on_both_sides() -> None:
    _, made, kept = report(ROUNDS)

    assert made.split() == ["resample", "exact", "50.0", "us", "2.60", "x,", "at", "least", "3:", "missed"]
    assert kept.split() == ["resample", "exact.kept", "25.0", "us", "5.00", "x"]


def test_figures_have_their_baseline_and_the_median_of_the_ratios() -> None:
    made, kept = figures(ROUNDS)

    assert made["baseline"] == {"name": "Pillow-SIMD", "value": 120.0}
    assert (made["name"], made["value"], made["ratio"], made["rounds"]) == ("resample.exact", 50.0, pytest.approx(2.6), 3)
    assert (kept["name"], kept["ratio"]) == ("resample.exact.kept", pytest.approx(5.0))


def test_an_aim_that_is_met_is_not_called_missed() -> None:
    assert report([{"Pillow-SIMD": 300.0, "exact": 100.0}])[1].endswith("3.00 x, at least 3")
