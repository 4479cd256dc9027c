"""What is skipped is listed: the hooks of tests/support/skips.py."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SUPPORT = Path(__file__).resolve().parents[2] / "support"


def test_tests_and_files_that_pytest_skips_are_in_the_list(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(
        "import pytest\n"
        "@pytest.mark.skipif(True, reason='as root')\ndef test_one(): pass\n"
        "def test_two(): pytest.skip('no data')\n"
        "@pytest.mark.xfail\ndef test_three(): assert False\n"
        "def test_four(): pass\n"
    )
    (tmp_path / "test_all.py").write_text("import pytest\npytest.importorskip('no_such_module', reason='it is not installed')\n")
    environment = {**os.environ, "PYTHONPATH": str(SUPPORT), "MILLRACE_SKIPPED": str(tmp_path / "list")}
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "skips", str(tmp_path)]

    ran = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert ran.returncode == 0, ran.stdout
    assert sorted((tmp_path / "list").read_text().splitlines()) == [
        "test_all.py\tit is not installed",
        "test_some.py\tas root",
        "test_some.py\tno data",
    ]
