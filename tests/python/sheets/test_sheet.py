"""`python -m millrace`: the contact sheet, as PNG and in a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import millrace
import numpy as np
import pytest
from millrace._sheets import sheet as _sheet

from pictures import CLASSES, decoded, pixels_of, png


def run(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "millrace", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, timeout=300, check=False)


def test_png_and_composition() -> None:
    pictures = [pixels_of(0), None, pixels_of(2)]
    sheet = _sheet.compose(pictures, 48, 2)
    assert sheet.shape == (2 * 52 + 4, 2 * 52 + 4, 3)
    np.testing.assert_array_equal(sheet[4 + 8 : 4 + 8 + 32, 4 : 4 + 48], pixels_of(0))
    np.testing.assert_array_equal(decoded(_sheet.png(sheet)), sheet)


def test_the_daemon_reads_the_png_that_we_write(session: millrace.Session) -> None:
    batch = session.get(session.submit([_sheet.png(pixels_of(3))]))
    np.testing.assert_array_equal(batch.images.numpy()[0], pixels_of(3))


def test_text_has_two_pixels_a_cell() -> None:
    (line,) = _sheet.text(np.array([[[1, 2, 3]], [[4, 5, 6]]], np.uint8))
    assert line == "\x1b[38;2;1;2;3;48;2;4;5;6m\u2580\x1b[0m"


def test_a_sheet_of_a_folder(daemon: millrace.PrivateDaemon, folder: Path, tmp_path: Path) -> None:
    result = run(folder, "-n", 6, "--columns", 3, "--side", 48, "-o", tmp_path / "s.png", MILLRACE_SOCKET=daemon.address)
    assert (result.returncode, result.stderr) == (0, "")
    assert "6 pictures" in result.stdout
    sheet = decoded((tmp_path / "s.png").read_bytes())
    np.testing.assert_array_equal(sheet[12:44, 4:52], pixels_of(0))
    np.testing.assert_array_equal(sheet[12:44, 56:104], pixels_of(10))


def test_without_a_running_daemon_it_starts_one(folder: Path, tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "MILLRACE_SOCKET"}
    command = [sys.executable, "-m", "millrace", str(folder), "-o", str(tmp_path / "s.png")]
    subprocess.run(command, env=environment, timeout=300, check=True)
    assert (tmp_path / "s.png").exists()


def test_in_a_terminal(daemon: millrace.PrivateDaemon, folder: Path) -> None:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "MILLRACE_SOCKET": daemon.address, "COLUMNS": "80"}
    environment.pop("NO_COLOR", None)
    command = [sys.executable, "-m", "millrace", str(folder / CLASSES[0]), "-n", "2", "--columns", "2"]
    with subprocess.Popen(command, stdout=theirs, env=environment) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 1 << 16)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            shown += part
    os.close(ours)
    assert process.returncode == 0
    assert shown.decode().count("\u2580") > 200


@pytest.mark.parametrize("environment", [{}, {"NO_COLOR": "1"}])
def test_without_a_terminal_it_lists_and_says_how_to_see(daemon: millrace.PrivateDaemon, folder: Path, environment: dict[str, str]) -> None:
    result = run(folder, "-n", 6, MILLRACE_SOCKET=daemon.address, **environment)
    assert (result.returncode, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0] == f"6 pictures of {folder}, which has 60:"
    assert lines[1:3] == ["  ant/0000.png: 48 x 32", "  ant/0010.png: 48 x 32"]
    assert f"millrace.preview('{folder}')" in lines[-1]
    assert len(lines) == 8


def test_bad_pictures_are_named_and_crossed_out(daemon: millrace.PrivateDaemon, folder: Path, tmp_path: Path) -> None:
    some = folder.parent / "some bad"
    some.mkdir(exist_ok=True)
    (some / "a.png").write_bytes(png(0))
    (some / "b.png").write_bytes(b"bad")
    result = run(some, "--side", 48, "-o", tmp_path / "s.png", MILLRACE_SOCKET=daemon.address)
    assert result.returncode == 0
    assert "b.png: not an image" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["/nowhere"], 2, "is not a folder"),
        ([".", "-o", "x.png", "--side", "1"], 2, "--side"),
        (["{empty}", "-o", "x.png"], 1, "no pictures"),
        (["{folder}", "-o", "x.png", "--socket", "/nowhere/s"], 3, "cannot reach the daemon"),
        (["{folder}", "-o", "/nowhere/x.png"], 1, "/nowhere/x.png"),
    ],
)
def test_what_is_wrong(
    arguments: list[str], status: int, message: str, daemon: millrace.PrivateDaemon, folder: Path, tmp_path: Path
) -> None:
    given = [argument.format(empty=tmp_path, folder=folder) for argument in arguments]
    result = run(*given, MILLRACE_SOCKET=daemon.address)
    assert result.returncode == status
    assert message in result.stderr
