#!/usr/bin/env python3
"""millrace_bench where there are no photographs: `without_photographs_test.py MILLRACE_BENCH`."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from skips import skip

ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "MILLRACE_TEST_DATA"}
SEGMENT = 900 << 20  # what handover.x10 takes of /dev/shm


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.argv[1], "--quick", *arguments]
    return subprocess.run(command, env={**ENVIRONMENT, **environment}, capture_output=True, text=True, check=False)


def check(wanted: bool, what: str, ran: subprocess.CompletedProcess[str]) -> None:
    if not wanted:
        sys.exit(f"{what}: status {ran.returncode}\n{ran.stdout}{ran.stderr}")


def main() -> None:
    for figure in ("daemon.rss", "control.cpu", "jpeg.entropy"):
        ran = run("--filter", figure)
        check(ran.returncode == 2 and "MILLRACE_TEST_DATA" in ran.stderr, f"{figure} without photographs", ran)
    ran = run("--filter", "no.such.figure")
    check(ran.returncode == 2 and "no figure" in ran.stderr, "a figure that does not exist", ran)
    ran = run("--filter", "service.ceiling")
    check(ran.returncode == 0 and "service.ceiling" in ran.stdout, "tiny files without photographs", ran)
    if shutil.disk_usage("/dev/shm").free < SEGMENT:
        skip("figures of the hand-over: /dev/shm has less than 900 MiB free")
        return
    for environment in ({}, {"MILLRACE_TEST_DATA": "/nowhere"}):
        ran = run("--filter", "handover", **environment)
        names = {line.split()[0] for line in ran.stdout.splitlines()[2:]}
        wanted = {"handover.p50", "handover.p99", "latency.submit_to_view", "handover.x10.p50"}
        check(ran.returncode == 0 and names == wanted, f"handover without photographs, {environment}", ran)


if __name__ == "__main__":
    main()
