"""Where the package's public names are: what the documents mention is found there, whatever private module its code lies in."""

from __future__ import annotations

import pickle
import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import millrace
import pytest
from millrace import recipe, steps

from processes import python

DOCUMENTS = Path(__file__).parents[3] / "client" / "python"
NEEDED = {"hf": (), "jax": ("jax",), "keras": ("keras", "torch"), "ray": ("ray",), "torch": ("torch",)}
"""What of other people's the modules of the package import, that not everybody has."""
MARKED = {"jax": pytest.mark.jax, "keras": pytest.mark.torch, "ray": pytest.mark.ray, "torch": pytest.mark.torch}
MODULES = (
    *(
        "aio",
        "batch",
        "client",
        "dataset",
        "device_tensor",
        "encoded",
        "epoch",
        "errors",
        "hf",
        "manifest",
        "numpy",
        "pairs",
        "private_daemon",
    ),
    *("recipe", "recipes", "ring", "sample_list", "samples", "serving", "session", "steps", "tensor"),
)  # without a framework
FIND = """
import importlib, sys
for name in sys.argv[1:]:
    parts = name.split(".")
    found = importlib.import_module(parts[0])
    for depth, part in enumerate(parts[1:], 2):
        if not hasattr(found, part):
            importlib.import_module(".".join(parts[:depth]))
        found = getattr(found, part)
"""


def mentioned() -> dict[str, list[str]]:
    """All dotted names in the documents, by the module or name of the package that they begin with."""
    names: dict[str, list[str]] = {}
    for document in [DOCUMENTS / "README.md", *sorted((DOCUMENTS / "doc").glob("*.md"))]:
        for name in re.findall(r"(?<![\w./-])millrace(?:\.[A-Za-z]\w*)+", document.read_text()):
            names.setdefault(name.split(".")[1], []).append(name)
    return names


NAMES = mentioned()


@pytest.mark.parametrize("first", [pytest.param(first, marks=MARKED.get(first, ())) for first in sorted(NAMES)])
def test_a_name_that_the_documents_mention_is_there(first: str) -> None:
    missing = [module for module in NEEDED.get(first, ()) if find_spec(module) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)}: not installed, which millrace.{first} needs")

    with python("import os; os.environ['KERAS_BACKEND'] = 'torch'\n" + FIND, *sorted(set(NAMES[first]))) as process:
        _, errors = process.communicate()

    assert process.returncode == 0, errors


def test_the_documents_mention_names() -> None:
    assert {"torch", "jax", "numpy", "aio", "recipes", "steps", "hf", "serving", "ray", "keras", "Recipe", "connect"} <= NAMES.keys()


def test_a_public_module_is_one_by_itself() -> None:
    lines = [
        f"import millrace.{module} as one; assert one is millrace.{module}; from millrace.{module} import __doc__" for module in MODULES
    ]

    with python("\n".join(["import millrace", *lines])) as process:
        _, errors = process.communicate()

    assert (process.returncode, errors) == (0, "")


@pytest.mark.parametrize("where", [millrace, recipe, steps], ids=lambda where: str(where.__name__))
def test_a_public_class_is_found_where_it_says(where: Any) -> None:
    for name in getattr(where, "__all__", None) or [name for name in vars(where) if not name.startswith("_")]:
        member = getattr(where, name)
        if isinstance(member, type) and member.__module__.startswith("millrace"):
            assert "._" not in member.__module__, member
            assert getattr(import_module(member.__module__), name) is member


def test_a_pickled_recipe_names_no_private_module() -> None:
    made = recipe.Recipe(
        crop=recipe.RandomResizedCrop(), steps=(steps.RandAugment(), steps.Grayscale(probability=0.2)), erasing=steps.Erasing()
    )

    pickled = pickle.dumps(made, 0)

    assert b"millrace._" not in pickled
    assert pickle.loads(pickled) == made
