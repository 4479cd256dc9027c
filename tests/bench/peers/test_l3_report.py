"""What l3.py's report reckons and says. Needs pytest and nothing of the peers."""

from __future__ import annotations

import pytest

from l3_report import Aim, Measured, aims, print_report, ratio, share


@pytest.fixture
def found() -> Measured:
    """Two rounds. In the second one everything took twice as long."""
    names = ("kodak", "photographs", "screens", "rgba", "ct_mr", "random", "black", "2048x1024")
    sets = [{"name": name, "title": f"the {name}", "pictures": 2, "raw_bytes": 1_000_000_000} for name in names]
    sizes: dict[str, dict[str, float | None]] = {name: {"png": 500_000_000, "l3": 460_000_000, "lz4": None} for name in names}
    seconds = {
        ("libpng", "decode", "kodak"): 10.0,
        ("libpng", "load", "2048x1024"): 11.0,
        ("millrace", "l3.avx2", "kodak"): 0.5,
        ("millrace", "l3.avx2", "2048x1024"): 0.5,
        ("millrace", "load.l3", "2048x1024"): 1.0,
        ("millrace", "crop", "kodak"): 0.05,
        ("millrace", "fast", "kodak"): 4.0,
    }
    times = {key: [value, 2 * value] for key, value in seconds.items()}
    epochs = {"off": [[10.0, 10.0, 10.0]], "packed": [[9.0, 20.0, 50.0]]}
    return Measured(sets, ("kodak", "photographs"), ("2048x1024",), sizes, times, epochs, ["No DALI here."])


def test_ratios_are_of_times_in_the_same_round(found: Measured) -> None:
    assert found.times_as_long(("libpng", "decode"), ("millrace", "l3.avx2"), "kodak") == 20
    assert found.times_as_long(("qoi", "decode"), ("millrace", "l3.avx2"), "kodak") is None


def test_a_rate_is_of_pixels_by_the_median(found: Measured) -> None:
    assert found.rate("millrace", "l3.avx2", "kodak") == pytest.approx(1 / 0.75)
    assert found.rate("millrace", "l3.avx512", "kodak") is None


def test_sizes_are_beside_raw_samples_or_beside_png(found: Measured) -> None:
    assert found.share("kodak") == 0.46
    assert found.share("kodak", "png") == 0.92


@pytest.mark.parametrize(
    ("aim", "expected"),
    [
        (Aim("a", 2.0, " x", 2, at_least=True), ["a", "2 x", "at least 2 x", "met"]),
        (Aim("a", 1.9, " x", 2, at_least=True), ["a", "1.9 x", "at least 2 x", "**missed**"]),
        (Aim("a", 1.0020, "", 1.002, at_least=False), ["a", "1.002", "at most 1.002", "met"]),
        (Aim("a", 1.0031, "", 1.002, at_least=False), ["a", "1.003", "at most 1.002", "**missed**"]),
        (Aim("a", None, " x", 2, at_least=True), ["a", "not measured", "at least 2 x", "not measured"]),
    ],
)
def test_an_aim_says_whether_it_is_met(aim: Aim, expected: list[str]) -> None:
    assert aim.cells() == expected


def test_every_aim_has_a_row_though_its_pass_was_not_made(found: Measured) -> None:
    rows = {tuple(aim.cells()[::3]) for aim in aims(found)}

    assert ("decode, Kodak, AVX-512 VBMI", "not measured") in rows
    assert ("a quarter of each side as crop, kodak", "met") in rows
    assert ("load and decode, 2048x1024", "**missed**") in rows
    assert ("third epoch of 2048x1024 PNG files", "met") in rows


def test_the_report_names_sets_notes_and_what_is_missing(found: Measured, capsys: pytest.CaptureFixture[str]) -> None:
    print_report(found)

    printed = capsys.readouterr().out
    assert "No DALI here." in printed
    assert "| the kodak | 2 | 1000.0 | 0.500 | 0.460 | 0.92 x |" in printed
    assert "| times as fast | 0.90 x | 2.00 x | 5.00 x |" in printed


def test_small_shares_have_more_digits() -> None:
    assert [share(500, 1000), share(3, 1000), share(None, 1000)] == ["0.500", "0.0030", ""]
    assert [ratio(1.234), ratio(None)] == ["1.23 x", ""]
