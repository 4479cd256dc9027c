#!/usr/bin/env python3
"""What .ci/run and config/setup.sh test say at their end: what failed, and what was skipped."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests" / "support"))
import skips  # noqa: E402

CTEST = """\
1/2 Test #1: good ....   Passed
50% tests passed, 1 tests failed out of 2

Total Test time (real) =   0.02 sec

The following tests FAILED:
\t  2 - bad (Failed)
Errors while running CTest
Skipped: 1 check.
    1 x  it  (place)
config/setup.sh: failed: bad
"""


def bash(script, **environment):
    """Runs it in a folder of its own that has the scripts; returns status and what was printed."""
    with tempfile.TemporaryDirectory() as folder:
        for name in (".ci", "tests", "config"):
            os.symlink(TOP / name, Path(folder, name))
        Path(folder, "ctest.txt").write_text(CTEST)
        command = ["bash", "-c", script]
        ran = subprocess.run(command, cwd=folder, env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return ran.returncode, ran.stdout


class Steps(unittest.TestCase):
    PREFACE = "set -uo pipefail; . .ci/steps.sh; "

    def test_every_step_runs_and_one_that_failed_ends_the_output_with_its_last_words(self):
        script = "step first sh -c 'seq 1 30; echo broken; exit 3'; step second echo fine; step tests cat ctest.txt; report tests"

        status, said = bash(self.PREFACE + script)

        self.assertEqual(status, 1)
        self.assertIn("===== second: fine", said)
        self.assertIn("===== first: FAILED", said)
        self.assertTrue(said.endswith("\n===== failed: first\n" + "".join(f"{n}\n" for n in range(12, 31)) + "broken\n"), said)

    def test_the_failing_tests_are_the_last_lines(self):
        status, said = bash(self.PREFACE + "step tests sh -c 'cat ctest.txt; exit 8'; report tests release=skipped.txt")

        self.assertEqual(status, 1)
        self.assertTrue(said.endswith("\n===== failed: tests\nThe following tests FAILED:\n\t  2 - bad (Failed)\n"), said)

    def test_when_all_is_fine_the_end_is_the_summary_and_the_skips(self):
        script = "printf 'unit\\tphotographs: none\\n' >a; step tests cat ctest.txt; step later echo x; report tests release=a tsan=b"

        status, said = bash(self.PREFACE + script)

        end = said.partition("===== tests again")[2].partition("\n")[2]
        self.assertEqual(status, 0)
        self.assertTrue(end.startswith("50% tests passed, 1 tests failed out of 2\n"), end)
        self.assertTrue(end.endswith("\n\nNo test ran: tsan.\nSkipped: 1 check.\n  release:\n    1 x  photographs: none  (unit)\n"), end)
        self.assertEqual(end.count("Skipped:"), 1)

    def test_the_end_stands_when_no_test_ran_at_all(self):
        status, said = bash(self.PREFACE + "step tests sh -c 'echo no compiler; exit 1'; report tests release=none.txt")

        self.assertEqual(status, 1)
        self.assertTrue(said.endswith("No test ran: release.\nSkipped: nothing.\n\n===== failed: tests\nno compiler\n"), said)


class SetupTest(unittest.TestCase):
    PREFACE = ". config/setup.sh help >/dev/null; top=$PWD; mkdir -p build/release/Testing/Temporary; "

    def test_the_list_comes_after_ctest_and_what_failed_last(self):
        script = (
            "ctest() { printf 'unit\\tthis\\nunit\\tthis\\n' >>\"$MILLRACE_SKIPPED\"; echo 2:bad >build/release/Testing/Temporary/LastTestsFailed.log; "
            "echo ran; return 8; }; list_after release ctest && echo passed || echo status $?"
        )

        _, said = bash(self.PREFACE + script)

        self.assertEqual(said, "ran\nSkipped: 2 checks.\n    2 x  this  (unit)\nconfig/setup.sh: failed: bad \nstatus 8\n")

    def test_an_earlier_run_leaves_nothing_in_the_list(self):
        script = "echo old >build/release/skipped.txt; echo 1:old >build/release/Testing/Temporary/LastTestsFailed.log; list_after release true"

        self.assertEqual(bash(self.PREFACE + script), (0, "Skipped: nothing.\n"))


class SharedMemory(unittest.TestCase):
    """In a mount namespace of its own, whose /dev/shm is as large as a container's."""

    PREFACE = "mount -t tmpfs -o size=64m small /dev/shm; . config/setup.sh help >/dev/null; top=$PWD; "
    SIZE = "df --output=size -m /dev/shm | tail -n 1"

    def within(self, script):
        if subprocess.run(["unshare", "--mount", "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
            skips.skip("tests with a small /dev/shm: mounting needs root")
            self.skipTest("needs root")
        status, said = bash(f"unshare --mount bash -c '{self.PREFACE}{script}' 2>&1")
        return status, said.split("\n")

    def test_tests_get_a_dev_shm_of_their_own_where_it_is_small(self):
        status, said = self.within(f'with_shared_memory sh -c "{self.SIZE}; exit 3" || echo status $?; {self.SIZE}')

        self.assertEqual(said[0], "config/setup.sh: /dev/shm has 64 MiB free: the tests get one of their own")
        half = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 21
        self.assertAlmostEqual(int(said[1]), half, delta=1)
        self.assertEqual([line.strip() for line in said[2:4]], ["status 3", "64"])
        self.assertEqual(status, 0)

    def test_as_many_tests_run_at_a_time_as_it_has_room_for(self):
        _, own = self.within("nproc() { echo 16; }; jobs_for_tests")
        _, shared = self.within("mount -o remount,size=1500m /dev/shm; can_mount() { return 1; }; nproc() { echo 16; }; jobs_for_tests")

        self.assertGreater(int(own[0]), 7)
        self.assertEqual(shared[0], "7")

    def test_where_it_cannot_be_had_they_do_not_begin(self):
        status, said = self.within("can_mount() { return 1; }; with_shared_memory touch begun; echo not reached")

        self.assertEqual(status, 1)
        self.assertIn("docker run --shm-size=8g", said[0])
        self.assertEqual(said[1:], [""])


class Skips(unittest.TestCase):
    def test_what_is_skipped_for_one_reason_is_counted(self):
        text = "b\twith data\na\twith data\na\tas root\na\twith data\n"

        self.assertEqual(skips.listed(text), ["    3 x  with data  (a, b)", "    1 x  as root  (a)"])

    def test_a_script_says_so_and_appends_it(self):
        script = "python3 -c 'import sys; sys.path.insert(0, \"tests/support\"); import skips; skips.skip_all(\"two\\nlines\", \"x\")'; echo $?; cat list"

        _, said = bash(script, MILLRACE_SKIPPED="list")

        self.assertEqual(said, "SKIPPED: two\nlines\n77\nx\ttwo lines\n")


if __name__ == "__main__":
    unittest.main()
