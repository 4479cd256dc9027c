"""Where public classes are found, as pickles, tracebacks and ``help()`` say it: at a public path, wherever their code lies."""

from __future__ import annotations

import sys
from collections.abc import Iterable

_MODULES = ("_core.batch", "_core.dataset", "_core.epoch", "_core.session", "_memory.device_tensor", "_memory.tensor")
"""Modules that are public without their folder: ``millrace.session`` and ``millrace._core.session`` are one module."""


def found_at(path: str, *members: object) -> None:
    """Says of those of the members that are classes in a private module that they are found at ``path``, where they are, too."""
    for member in members:
        if isinstance(member, type) and member.__module__.startswith("millrace.") and "._" in member.__module__:
            member.__module__ = path


def settle(members: Iterable[object]) -> None:
    """Gives the public modules their paths, and the classes in them, in ``millrace.recipe`` and among ``members`` theirs."""
    for name in _MODULES:
        module, short = sys.modules[f"millrace.{name}"], name.rpartition(".")[2]
        sys.modules[f"millrace.{short}"] = module
        setattr(sys.modules["millrace"], short, module)
        found_at(f"millrace.{short}", *(each for each in vars(module).values() if getattr(each, "__module__", "") == module.__name__))
    found_at("millrace.recipe", *vars(sys.modules["millrace.recipe"]).values())
    found_at("millrace", *members)
