"""Rooms and crumbs: how many sources a folder has, and which small ones belong with their only user.

check_tree.py runs both with its own rules. A header and its source are one unit.
"""

import collections
import os
import re

CODE = (".cc", ".cu", ".cpp", ".h", ".cuh")
MAX_UNITS = 20  # of a folder
SMALL = 40  # lines: a unit of fewer has two users, tests among them
INCLUDED = re.compile(r'^#include "([^"]+)"', re.M)


def unit_of(path):
    return os.path.splitext(path)[0]


def full_folders(tree):
    units = {unit_of(path) for path in tree if path.endswith(CODE)}
    counts = collections.Counter(os.path.dirname(unit) for unit in units)
    for folder in sorted(counts):
        if counts[folder] > MAX_UNITS:
            yield f"{folder}: {counts[folder]} sources with their headers, over {MAX_UNITS}: make folders"


def lonely_units(tree):
    """Small headers of the product, with their sources, that one other file needs. Users of the library need those in client/include."""
    lines, users = collections.Counter(), collections.defaultdict(set)
    for path, text in tree.items():
        if not path.endswith(CODE):
            continue
        lines[unit_of(path)] += text.count("\n")
        for header in INCLUDED.findall(text):
            users[header].add(unit_of(path))
    for path in sorted(tree):
        unit = unit_of(path)
        if not path.endswith(".h") or path.startswith(("tests/", "client/include/")) or lines[unit] >= SMALL:
            continue
        others = users[path] - {unit}
        if len(others) == 1:
            yield f"{path}: {lines[unit]} lines that {others.pop()} alone needs: put them there"
