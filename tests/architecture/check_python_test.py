#!/usr/bin/env python3
"""A check that cannot fail is none: every rule of check_python.py, broken on purpose."""

import os
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check_python  # noqa: E402

GOOD = {
    "__init__.py": "from millrace._core.batch import Batch\nfrom millrace.errors import Error\n",
    "errors.py": "class Error(Exception): ...\n",
    "recipe.py": "from millrace._memory.layout import align_up\nfrom millrace.errors import Error\n",
    "_memory/__init__.py": "",
    "_memory/layout.py": "import struct\n",
    "_memory/lease.py": "from millrace._memory import layout as _layout\n",
    "_core/__init__.py": "",
    "_core/batch.py": "from millrace._memory.lease import Lease\nfrom millrace.recipe import Recipe\n",
    "_core/session.py": "import os\n\nfrom millrace._core.batch import Batch\n",
    "_loader/__init__.py": "",
    "_loader/loader.py": "from millrace._core.session import Session\n",
    "torch.py": "import torch\n\nfrom millrace._loader.loader import BaseLoader\n",
}
LATE = "def later():\n    from millrace.{} import {}\n"
TYPING = "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from millrace.{} import {}\n"


def found_in(**files):
    return check_python.violations({check_python.FOLDER + path: text for path, text in {**GOOD, **files.pop("more", {}), **files}.items()})


class CheckPython(unittest.TestCase):
    def assert_one(self, path, text, *words):
        found = found_in(more={path: text})
        self.assertEqual(len(found), 1, found)
        for word in words:
            self.assertIn(word, found[0])

    def test_a_good_package_has_no_violation(self):
        self.assertEqual(found_in(), [])

    def test_a_package_imports_what_its_row_names(self):
        self.assert_one("_core/x.py", "from millrace._loader.loader import BaseLoader\n", "_core/x.py", "_core may not import _loader")
        self.assert_one("_memory/x.py", "import millrace._core.batch\n", "_memory may not import _core")
        self.assert_one("ring.py", "from millrace import recipe\n", "ring may not import recipe")
        self.assert_one("_loader/x.py", "from millrace import torch\n", "_loader may not import torch")

    def test_a_row_may_name_one_module_of_a_package(self):
        self.assert_one("recipe.py", "from millrace._memory.lease import Lease\n", "recipe may not import _memory")

    def test_what_a_function_imports_counts_for_the_rows(self):
        self.assert_one("_core/x.py", LATE.format("_loader.loader", "BaseLoader"), "_core may not import _loader")
        self.assert_one("_core/x.py", "class X:\n    async " + LATE.format("_loader", "loader").replace("\n    ", "\n        "), "_core may not")

    def test_what_only_type_checkers_read_counts_nowhere(self):
        self.assertEqual(found_in(more={"_memory/layout.py": TYPING.format("torch", "Loader")}), [])
        spelled = "import typing as t\n\nif t.TYPE_CHECKING:\n    from millrace.torch import Loader\n"
        self.assertEqual(found_in(more={"_memory/layout.py": spelled}), [])
        otherwise = TYPING.format("torch", "Loader") + "else:\n    from millrace.torch import Loader\n"
        self.assert_one("_core/x.py", otherwise, "_core may not import torch")

    def test_modules_import_each_other_in_no_circle(self):
        ring = {f"_core/{name}.py": f"from millrace._core.{other} import {other}\n" for name, other in ("ab", "bc", "ca")}

        found = found_in(more={**ring, "_core/d.py": "from millrace._core import b\n"})

        self.assertEqual(len(found), 1, found)
        self.assertIn("circle: _core.a -> _core.b -> _core.c -> _core.a", found[0])

    def test_an_import_in_a_condition_or_a_class_runs_all_the_same(self):
        for text in ("try:\n    {}\nexcept ImportError:\n    pass\n", "if True:\n    {}\n", "class X:\n    {}\n", "with open('x'):\n    {}\n"):
            self.assert_one("_memory/layout.py", text.format("from millrace._memory.lease import Lease"), "circle: _memory.lease -> _memory.layout -> ")

    def test_what_runs_later_or_never_closes_no_circle(self):
        for text in (LATE, TYPING):
            self.assertEqual(found_in(more={"_memory/layout.py": text.format("_memory.lease", "Lease")}), [])

    def test_a_module_without_a_row_is_noticed(self):
        self.assert_one("helpers.py", "", "helpers.py", "no package of the architecture")
        self.assert_one("_misc/x.py", "", "_misc/x.py", "no package of the architecture")

    def test_an_import_starts_at_the_package(self):
        self.assert_one("_core/x.py", "from . import batch\n", "begins with a dot")

    def test_a_folder_with_too_many_modules_is_named(self):
        many = {f"_core/m{number}.py": "" for number in range(check_python.MOST_MODULES)}
        found = found_in(more=many)
        self.assertEqual(len(found), 1, found)
        self.assertIn("_core: 23 modules, over 20", found[0])

    def test_a_folder_of_tests_with_too_many_modules_is_named(self):
        room = {f"{check_python.TESTS}core/test_{number}.py": "" for number in range(check_python.MOST_MODULES)}
        self.assertEqual(check_python.violations({**room, "tests/python/core/page.md": "", "tests/python/run.py": ""}), [])

        found = check_python.violations({**room, "tests/python/core/pictures.py": ""})

        self.assertEqual(found, ["tests/python/core: 21 modules, over 20: make a folder of those of one subject"])

    def test_every_allowed_package_has_a_row(self):
        named = set().union(*check_python.MAY_IMPORT.values()) - {"*"}
        self.assertEqual({name for name in named if check_python.row_of(name) is None}, set())

    def test_other_files_are_none_of_its_business(self):
        self.assertEqual(check_python.violations({"tests/python/test_x.py": "from millrace import _core\n", "daemon/x.cc": "import"}), [])


if __name__ == "__main__":
    unittest.main()
