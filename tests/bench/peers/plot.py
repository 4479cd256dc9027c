"""The rates as an SVG of horizontal bars, one panel a recipe."""

from __future__ import annotations

from html import escape
from typing import Any

from work import RECIPES

_WIDTH, _LEFT, _BAR, _GAP, _TOP = 860, 230, 9, 7, 46
_COLOURS = {1: "#1f4e79", 2: "#9dc3e6"}
_OURS = {1: "#b45309", 2: "#f6c177"}
_DECODED_BEFORE = {1: "#4d4d4d", 2: "#bdbdbd"}
_TITLES = {"train": "Training: RandomResizedCrop 224, flip, normalise", "infer": "Inference: resize 256, centre crop 224, normalise"}


def draw_plot(summary: dict[str, Any]) -> str:
    parts, y = [], 28
    for recipe in RECIPES:
        rows = [row for row in summary["rows"] if row["recipe"] == recipe]
        if rows:
            panel, y = _panel(recipe, rows, y)
            parts += panel
    known = summary["conditions"]
    run = f"{known['processor']}, {known['cores']} cores, {known['date']}; medians of {known['rounds']} rounds"
    key = "whiskers: range; * antialiases, + box filter; dark: one core, light: two; grey: of pixels that were in memory before"
    parts += [_text(12, y + 8, run, 11, "#555"), _text(12, y + 24, key, 11, "#555")]
    height = y + 38
    frame = f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" font-family="sans-serif">'
    return "\n".join([frame, f'<rect width="{_WIDTH}" height="{height}" fill="white"/>', *parts, "</svg>"]) + "\n"


def _panel(recipe: str, rows: list[dict[str, Any]], y: int) -> tuple[list[str], int]:
    rates = {id(row): {cores: _rate(row, cores) for cores in (1, 2)} for row in rows}
    most = max((rate["high"] for found in rates.values() for rate in found.values() if rate), default=1)
    scale = (_WIDTH - _LEFT - 90) / most
    parts = [_text(12, y, f"{_TITLES[recipe]}, images/s", 14, "#000", "bold")]
    y += 14
    for row in sorted(rows, key=lambda row: -((rates[id(row)][1] or rates[id(row)][2] or {"median": 0})["median"])):
        colours = _OURS if row["peer"].startswith("millrace") else _COLOURS if row["decodes"] else _DECODED_BEFORE
        title = row["title"] + {"yes": " *", "box": " +"}.get(row["antialias"], "")
        parts.append(_text(_LEFT - 8, y + _BAR + 4, title, 11, "#000", anchor="end"))
        for cores in (1, 2):
            rate = rates[id(row)][cores]
            if rate:
                parts += _bar(y, rate, scale, colours[cores])
            y += _BAR
        y += _GAP
    return parts, y + 26


def _rate(row: dict[str, Any], cores: int) -> Any:
    return row.get(f"cores_{cores}", {}).get("images_per_second")


def _bar(y: int, rate: dict[str, float], scale: float, colour: str) -> list[str]:
    length, low, high = (scale * rate[key] for key in ("median", "low", "high"))
    middle = y + _BAR / 2
    return [
        f'<rect x="{_LEFT}" y="{y}" width="{length:.1f}" height="{_BAR}" fill="{colour}"/>',
        f'<line x1="{_LEFT + low:.1f}" x2="{_LEFT + high:.1f}" y1="{middle}" y2="{middle}" stroke="#333" stroke-width="1"/>',
        _text(_LEFT + max(length, high) + 5, y + _BAR - 1, f"{rate['median']:,.0f}", 9, "#333"),
    ]


def _text(x: float, y: float, text: str, size: int, colour: str, weight: str = "normal", anchor: str = "start") -> str:
    style = f'font-size="{size}" fill="{colour}" font-weight="{weight}" text-anchor="{anchor}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(text)}</text>'
