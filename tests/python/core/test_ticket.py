"""Tickets: a tensor of an epoch is made again, to the bit, by another process."""

from __future__ import annotations

import dataclasses
import os
import subprocess
from pathlib import Path
from typing import Any

import millrace
import numpy as np
import pytest
from millrace import steps

from pictures import png

CLI = Path(os.environ["MILLRACE_DAEMON"]).with_name("millrace")
AUGMENTED = dataclasses.replace(
    millrace.Recipe.train(24),
    steps=[steps.RandAugment(), steps.ColorJitter(0.4, 0.4, 0.4, 0.1, probability=0.8), steps.OneOf((steps.Grayscale(), steps.Invert()))],
    erasing=millrace.Erasing(0.5, value=3.0),
)
RECIPES = {
    "uint8": AUGMENTED,
    "float32": dataclasses.replace(AUGMENTED.normalised("float32"), erasing=millrace.Erasing(0.5, value="pixel")),
    "bfloat16 NHWC": dataclasses.replace(AUGMENTED.normalised("bfloat16"), layout="NHWC"),
    "packed": dataclasses.replace(millrace.Recipe.thumbnail(20), steps=[steps.TrivialAugmentWide()]),
    "padded": millrace.Recipe(
        resize=millrace.ScaleJitter(millrace.Size(24, 24)),
        pad=millrace.Pad(2, 1, to=millrace.Size(30, 30), place="random", mode="reflect"),
        centre_crop=millrace.Size(24, 24),
        crop_place="random",
        random_filters=("bilinear", "lanczos"),
        erasing=millrace.Erasing(0.5, value=3.0, most=3),
    ),
    "patches": dataclasses.replace(
        AUGMENTED, resize=millrace.ExactSize(millrace.Size(28, 14)), patches=millrace.Patches(millrace.Size(14, 14)), erasing=None
    ),
}


def replay(daemon: millrace.PrivateDaemon, ticket: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [CLI, "replay", "--socket", daemon.address.removeprefix("unix:"), ticket, *arguments]
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, timeout=300)


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES.keys())
def test_a_tensor_of_an_epoch_is_made_again(
    client: millrace.Client, daemon: millrace.PrivateDaemon, folder: Path, tmp_path: Path, recipe: millrace.Recipe
) -> None:
    made: list[Any] = []
    with client.session(recipe, batch=5, slot_bytes=1 << 20) as session:
        for batch in session.epoch(session.dataset(folder), shuffle=True, seed=9, epoch=4, batches=2):
            for index in (0, 3, -1):
                ticket = batch.ticket(index)
                assert ticket.sample == batch.ids[index]
                ticket.save(tmp_path / f"{len(made)}.ticket")
                made.append(batch.image(index).bits().copy())
    for number, pixels in enumerate(made):
        path = tmp_path / f"{number}.ticket"
        assert path.stat().st_size < 4000
        ran = replay(daemon, path, "--raw", tmp_path / "raw")
        assert ran.returncode == 0, ran.stderr
        assert "seed 9, epoch 4" in ran.stdout
        assert "the same tensor, crc32" in ran.stdout
        assert (tmp_path / "raw").read_bytes() == np.ascontiguousarray(pixels).tobytes()
    picture = replay(daemon, tmp_path / "0.ticket", "-o", tmp_path / "0.png")
    if recipe.patches is None:
        assert picture.returncode == 0
        assert (tmp_path / "0.png").read_bytes().startswith(b"\x89PNG")
    else:
        assert picture.returncode == 1
        assert "this tensor is patches, no picture: use --raw" in picture.stderr


def test_another_file_makes_another_tensor_and_that_is_said(
    client: millrace.Client, daemon: millrace.PrivateDaemon, folder: Path, tmp_path: Path
) -> None:
    with client.session(AUGMENTED, batch=4) as session:
        batch = next(iter(session.epoch(session.dataset(folder))))
        batch.ticket(1).save(tmp_path / "one.ticket")
        same = tmp_path / "moved.png"
        same.write_bytes(Path(batch.paths[1]).read_bytes())
        other = folder / "other.png"
        try:
            other.write_bytes(png(7))
            ran = replay(daemon, tmp_path / "one.ticket", "--file", other)
        finally:
            other.unlink()
    assert ran.returncode == 1
    assert "another tensor than the ticket's: the file is another one than it was" in ran.stderr


def test_what_has_no_ticket_says_so(client: millrace.Client, folder: Path) -> None:
    with client.session(AUGMENTED, batch=4) as session:
        submitted = session.get(session.submit([png(0)]))
        with pytest.raises(millrace.Unsupported, match="this is a submitted batch; tickets are of epochs"):
            submitted.ticket(0)
        ordered = next(iter(session.epoch(session.dataset(folder), order=[[0, 1]])))
        with pytest.raises(millrace.Unsupported, match="an order of the caller's own"):
            ordered.ticket(0)
        batch = next(iter(session.epoch(session.dataset(folder))))
        with pytest.raises(IndexError):
            batch.ticket(4)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "version: must be 1, is 0"),
        ("version: 2 path: 'x'", "version: must be 1, is 2"),
        ("version: 1", "path: is not set"),
        ("version: 1 path: 'x' recipe { steps { posterize: 'a' } }", "column 50: Expected integer"),
        ("version: 1 path: 'x' recipe { steps { } }", "recipe.steps[0].kind: is not set"),
        (
            "version: 1 path: '/etc/passwd' recipe { packing: PACKING_PACKED } shape: 99999999999 shape: 99999999",
            "shape is none of a tensor",
        ),
        ("\x00\xff" * 50, "column 1:"),
        ("recipe { " + "steps { sequence { " * 5000, "too deep"),
    ],
)
def test_what_is_no_ticket_is_refused(daemon: millrace.PrivateDaemon, tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "t").write_bytes(text.encode("latin-1"))
    ran = replay(daemon, tmp_path / "t")
    assert ran.returncode == 1
    assert says.lower() in ran.stderr.lower()
