#!/usr/bin/env python3
"""millrace-fpga-model as it is run: `program_test.py MILLRACE_FPGA_MODEL MILLRACE_MAKE_PICTURES`, with pictures made up."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "MILLRACE_TEST_DATA"}


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.argv[1], *arguments], env=ENVIRONMENT, capture_output=True, text=True, check=False)


def check(wanted: bool, what: str, ran: subprocess.CompletedProcess[str]) -> None:
    if not wanted:
        sys.exit(f"{what}: status {ran.returncode}\n{ran.stdout[-2000:]}{ran.stderr}")


def main() -> None:
    ran = run()
    check(ran.returncode == 2 and "MILLRACE_TEST_DATA" in ran.stderr, "without photographs", ran)
    ran = run("--help")
    check(ran.returncode == 0 and "model" in ran.stdout and "--explore" in ran.stdout, "help", ran)
    with tempfile.TemporaryDirectory() as folder:
        ran = run("--data", folder)
        check(ran.returncode == 2 and "no JPEG files" in ran.stderr, "an empty folder", ran)
        subprocess.run([sys.argv[2], folder, "4"], check=True, capture_output=True)
        ran = run("--data", folder, "--no-calibrate", "--images", "32", "--source", "packed")
        check(ran.returncode == 0 and "Model of packed" in ran.stdout, "a design", ran)
        output = str(Path(folder) / "u50")
        ran = run("--data", folder, "--no-calibrate", "--images", "4", "--explore", "--json", "--output", output)
        rows = [json.loads(line) for line in ran.stdout.splitlines()]
        check(ran.returncode == 0 and len(rows) > 100 and all("model" in row for row in rows), "JSON of all designs", ran)
        csv = Path(output + ".csv").read_text().splitlines()
        check("model" in csv[0] and len(csv) == len(rows) + 1, "a CSV line for each design", ran)
        drawn = subprocess.run([sys.executable, "-B", str(Path(__file__).parent / "draw_designs.py"), output + ".svg", output + ".jsonl"], check=False)
        check(drawn.returncode == 0 and "Model" in Path(output + ".svg").read_text(), "the figure", ran)


if __name__ == "__main__":
    main()
