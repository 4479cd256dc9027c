"""What tests start and hangs is found out by processes.py: a check that cannot fail is none."""

from __future__ import annotations

import pytest

from processes import python

STUCK = """
import os, time
ready, tell = os.pipe()
def child_is_stuck():
    os.write(tell, b"!")
    time.sleep(600)
def parent_is_stuck():
    print("begun", flush=True)
    time.sleep(600)
child = os.fork()
if child == 0:
    child_is_stuck()
os.read(ready, 1)
print(child)
parent_is_stuck()
"""


def test_a_script_that_hangs_says_where_and_is_ended_with_its_children() -> None:
    with python(STUCK) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        assert process.stdout.readline() == "begun\n"

        with pytest.raises(AssertionError, match=r"did not end within 0\.1 s") as told:
            process.communicate(timeout=0.1)

        assert f"process {process.pid}: python" in str(told.value)
        assert f"process {child}: python" in str(told.value)
        assert "in parent_is_stuck" in str(told.value)
        assert "in child_is_stuck" in str(told.value)
        assert process._group() == []


def test_what_a_script_leaves_behind_is_ended() -> None:
    with python("import os, time\nif os.fork() == 0:\n    time.sleep(600)\n") as process:
        pass

    assert process.returncode == 0
    assert process._group() == []


def test_a_script_is_ended_when_its_test_fails() -> None:
    with pytest.raises(RuntimeError, match="ours"), python("import time; time.sleep(600)") as process:
        raise RuntimeError("ours")

    assert process._group() == []
