"""What draw_designs.py draws of designs."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import draw_designs
import pytest


def design(rate: float, watts: float, source: str = "jpeg", fits: bool = True, front: bool = True) -> str:
    row = {"model": "design", "card": "Alveo U50", "source": source, "images_a_second": rate, "watts": watts, "lut": watts * 9e3}
    return json.dumps({**row, "fits": fits, "worth_by_watts": front, "worth_by_lut": front})


def test_only_designs_that_fit_are_drawn_each_once_a_panel() -> None:
    lines = [design(10_000, 30), design(30_000, 50), design(70_000, 60, "packed"), design(90_000, 90, fits=False)]
    text = draw_designs.draw([draw_designs.read_designs(lines)])
    assert text.count("<circle") == 3 * 2
    assert "model" in text.lower()


def test_a_front_goes_through_its_designs_by_their_cost() -> None:
    lines = [design(30_000, 50), design(10_000, 30), design(9_000, 40, front=False)]
    root = ElementTree.fromstring(draw_designs.draw([draw_designs.read_designs(lines)]))
    lines_drawn = [line.get("points", "").split() for line in root.iter("{http://www.w3.org/2000/svg}polyline")]
    jpeg = [points for points in lines_drawn if points]
    assert [len(points) for points in jpeg] == [2, 2]
    first, second = (tuple(map(float, point.split(","))) for point in jpeg[0])
    assert first[0] < second[0] and first[1] > second[1]  # y goes down


def test_all_points_lie_within_their_panel() -> None:
    rows = draw_designs.read_designs([design(99_999, 74.9, "packed"), design(100_000, 75)])
    root = ElementTree.fromstring(draw_designs.draw([rows]))
    for circle in root.iter("{http://www.w3.org/2000/svg}circle"):
        assert 0 < float(circle.get("cx", -1)) < 900
        assert 58 <= float(circle.get("cy", -1)) <= 58 + 250


@pytest.mark.parametrize("text", ["", design(1, 2, fits=False)])
def test_a_file_without_designs_is_said(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(text)
    assert draw_designs.main([str(tmp_path / "out.svg"), str(file)]) == 1
    assert "no design" in capsys.readouterr().err
