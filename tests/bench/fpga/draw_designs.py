#!/usr/bin/env python3
"""Draws what `millrace-fpga-model --explore` wrote: `draw_designs.py OUT.svg FILE.jsonl...`, a row of panels for each file.

A panel has a point for each design that the card has room and power for: images a second against watts, and against
LUT. Lines join the fronts: designs that no other beats. Everything drawn is a model's.
"""

from __future__ import annotations

import json
import sys
from html import escape
from pathlib import Path
from typing import Any

_WIDTH, _PANEL, _HIGH, _LEFT, _GAP, _TOP = 900, 350, 250, 70, 90, 58
_COLOURS = {"jpeg": "#1f4e79", "packed": "#b45309"}
_TARGETS = {"jpeg": 25_000, "packed": 60_000}
_AXES = (("watts", "worth_by_watts", "watts of the card (model)", 1.0), ("lut", "worth_by_lut", "thousand LUT, without the shell (model)", 1e3))

Design = dict[str, Any]


def read_designs(lines: list[str]) -> list[Design]:
    return [row for row in map(json.loads, lines) if row["model"] == "design" and row["fits"]]


def draw(rows: list[list[Design]]) -> str:
    parts, y = [], _TOP
    for designs in rows:
        parts.append(_text(_LEFT, y - 10, f"Model: designs for {designs[0]['card']}, no card was used", 14, "#000", "bold"))
        for number, axis in enumerate(_AXES):
            parts += _panel(designs, axis, _LEFT + number * (_PANEL + _GAP), y)
        y += _HIGH + 74
    key = "blue: from JPEG files; orange: from packed forms; lines: fronts; dashed: 25,000 and 60,000 images/s; RandomResizedCrop(224) to uint8"
    parts += [_text(_LEFT, 20, "A model's prediction, calibrated on published designs: see hls/model/README.md", 12, "#555"), _text(_LEFT, y - 18, key, 11, "#555")]
    frame = f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{y}" font-family="sans-serif">'
    return "\n".join([frame, f'<rect width="{_WIDTH}" height="{y}" fill="white"/>', *parts, "</svg>"]) + "\n"


def _panel(designs: list[Design], axis: tuple[str, str, str, float], left: int, top: int) -> list[str]:
    field, mark, title, unit = axis
    most_x, step_x = _scale(max(design[field] for design in designs) / unit)
    most_y, step_y = _scale(max(design["images_a_second"] for design in designs))

    def x(value: float) -> float:
        return left + _PANEL * value / unit / most_x

    def y(value: float) -> float:
        return top + _HIGH * (1 - value / most_y)

    parts = [f'<rect x="{left}" y="{top}" width="{_PANEL}" height="{_HIGH}" fill="none" stroke="#999"/>']
    for tick in range(1, int(most_x / step_x) + 1):
        at = left + _PANEL * tick * step_x / most_x
        parts += [_line(at, top, at, top + _HIGH, "#eee"), _text(at, top + _HIGH + 14, f"{tick * step_x:,.0f}", 10, "#333", anchor="middle")]
    for tick in range(int(most_y / step_y) + 1):
        at = y(tick * step_y)
        parts += [_line(left, at, left + _PANEL, at, "#eee"), _text(left - 6, at + 4, f"{tick * step_y:,.0f}", 10, "#333", anchor="end")]
    parts.append(_text(left + _PANEL / 2, top + _HIGH + 30, title, 11, "#333", anchor="middle"))
    for source, colour in _COLOURS.items():
        own = [design for design in designs if design["source"] == source]
        if _TARGETS[source] < most_y:
            at = y(_TARGETS[source])
            parts.append(f'<line x1="{left}" x2="{left + _PANEL}" y1="{at:.1f}" y2="{at:.1f}" stroke="{colour}" stroke-dasharray="5 4"/>')
        parts += [f'<circle cx="{x(one[field]):.1f}" cy="{y(one["images_a_second"]):.1f}" r="1.8" fill="{colour}" fill-opacity="0.3"/>' for one in own]
        front = sorted((one[field], one["images_a_second"]) for one in own if one[mark])
        points = " ".join(f"{x(cost):.1f},{y(rate):.1f}" for cost, rate in front)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
    return parts


def _scale(most: float) -> tuple[float, float]:
    """The end of an axis that has `most` on it, and the distance of its ticks."""
    step = next(step for power in range(9) for step in (10.0**power, 2 * 10.0**power, 5 * 10.0**power) if most / step <= 8)
    return step * (int(most / step) + 1), step


def _line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def _text(x: float, y: float, text: str, size: int, colour: str, weight: str = "normal", anchor: str = "start") -> str:
    style = f'font-size="{size}" fill="{colour}" font-weight="{weight}" text-anchor="{anchor}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(text)}</text>'


def main(arguments: list[str]) -> int:
    if len(arguments) < 2:
        print(__doc__.splitlines()[0], file=sys.stderr)
        return 2
    rows = [read_designs(Path(name).read_text().splitlines()) for name in arguments[1:]]
    if not all(rows):
        print("draw_designs.py: a file has no design that fits its card", file=sys.stderr)
        return 1
    Path(arguments[0]).write_text(draw(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
