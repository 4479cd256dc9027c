"""How many tiles an image becomes, as the classes of transformers choose it: functions from the source's size to columns and rows."""

from __future__ import annotations

import math

from millrace.recipe import Size

Grid = tuple[int, int]
"""Columns and rows."""


def grids(least: int, most: int) -> list[Grid]:
    """Those of ``least`` to ``most`` tiles: fewest tiles first, then fewest columns."""
    all_of_them = [(columns, rows) for columns in range(1, most + 1) for rows in range(1, most // columns + 1) if least <= columns * rows]
    return sorted(all_of_them, key=lambda grid: grid[0] * grid[1])


def nearest_ratio(source: Size, tile: Size, least: int, most: int) -> Grid:
    """Whose ratio is nearest to the source's; of equals a larger one where the source fills more than half of it."""
    ratio, area = source.width / source.height, source.width * source.height
    best, apart = (1, 1), math.inf
    for grid in grids(least, most):
        difference = abs(ratio - grid[0] / grid[1])
        fills = area > 0.5 * tile.width * tile.height * grid[0] * grid[1]
        if difference < apart or (difference == apart and fills):
            best, apart = grid, difference
    return best


def covering(source: Size, tile: Size, most: int, enough: float = 0.9) -> Grid:
    """Ovis 2's: the fewest tiles in which more than ``enough`` of the source's pixels are kept; else those that keep the most.

    It takes its grids as rows and columns here, and as columns and rows afterwards; so does this.
    """
    kept = [(grid, _kept(source, grid, tile.height)) for grid in grids(1, most)]
    sufficient = [pair for pair in kept if pair[1] > enough]
    if sufficient:
        return min(sufficient, key=lambda pair: (pair[0][0] * pair[0][1], -pair[1]))[0]
    return min(kept, key=lambda pair: (-pair[1], pair[0][0] * pair[0][1]))[0]


def _kept(source: Size, grid: Grid, side: int) -> float:
    down, across = source.height // grid[0], source.width // grid[1]
    total = 0.0
    for row in range(grid[0]):
        for column in range(grid[1]):
            right = source.width if column == grid[1] - 1 else (column + 1) * across
            bottom = source.height if row == grid[0] - 1 else (row + 1) * down
            width, height = right - column * across, bottom - row * down
            long, short = float(max(width, height)), float(min(width, height))
            if long > side:
                long, short = float(side), short / long * side
            total += long * short
    return total / (source.width * source.height)


def least_enlarged(source: Size, tile: Size, most: int) -> Grid:
    """Cohere's: the grid that the source has to be enlarged least for, or, where all are smaller, shrunk least."""
    choices = grids(1, most)
    scales = [min(columns * tile.height / source.width, rows * tile.height / source.height) for columns, rows in choices]
    if max(scales) < 1:
        return choices[scales.index(max(scales))]
    enlarging = [scale if scale >= 1 else math.inf for scale in scales]
    return choices[enlarging.index(min(enlarging))]


def canvas(source: Size, side: int, most: int) -> Grid:
    """Mllama's: the same, of equals the one of fewest tiles; as columns and rows."""
    choices = [(high, wide) for high in range(1, most + 1) for wide in range(1, most // high + 1)]
    scales = [min(wide * side / source.width, high * side / source.height) for high, wide in choices]
    enlarging = [scale for scale in scales if scale >= 1]
    chosen = min(enlarging) if enlarging else max(scales)
    high, wide = min((choice for choice, scale in zip(choices, scales, strict=True) if scale == chosen), key=lambda c: c[0] * c[1])
    return wide, high


def fitted_in_canvas(source: Size, grid: Grid, side: int) -> Size:
    """Mllama's: the largest of the source's ratio in the canvas; where the source is smaller than that, only a tile's side is filled."""
    width = min(max(source.width, side), grid[0] * side)
    height = min(max(source.height, side), grid[1] * side)
    down, across = height / source.height, width / source.width
    if across < down:
        return Size(width, min(math.floor(source.height * across) or 1, height))
    return Size(min(math.floor(source.width * down) or 1, width), height)
