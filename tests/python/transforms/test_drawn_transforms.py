"""Random transforms of torchvision's and timm's against the recipes that they become: both draw from the same distributions.

Seeds are fixed, so a comparison that holds once holds always.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import millrace
import numpy as np
import pytest
from numpy.typing import NDArray

from pictures import SIZE, png_of

torch = pytest.importorskip("torch", reason="PyTorch is not installed: random transforms are not compared")
v2 = pytest.importorskip("torchvision.transforms.v2", reason="torchvision is not installed: random transforms are not compared")
Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed: random transforms are not compared")

import millrace.torch  # noqa: E402

pytestmark = pytest.mark.torch
COUNT = 2000
FLOATS = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]
NORMALISE = v2.Normalize([0.5, 0.4, 0.3], [0.5, 0.6, 0.7])
INVERT, SOLARIZE = v2.RandomInvert(0.5), v2.RandomSolarize(50, 0.5)
BILINEAR = v2.InterpolationMode.BILINEAR
DRAWN: dict[str, list[Any]] = {
    "RandAugment": [v2.RandAugment(fill=[9, 99, 200])],
    "TrivialAugmentWide": [v2.TrivialAugmentWide(interpolation=BILINEAR)],
    "AutoAugment": [v2.AutoAugment()],
    "ColorJitter": [v2.ColorJitter(0.4, 0.4, 0.4, 0.1)],
    "RandomAffine": [v2.RandomAffine(20, (0.2, 0.1), (0.5, 1.5), (10, 20, -30, -5), fill=50)],
    "RandomPerspective": [v2.RandomPerspective(0.6, p=0.7, fill=7)],
    "RandomRotation": [v2.RandomRotation((-10, 90))],
    "RandomCrop": [v2.RandomCrop((SIZE.height, SIZE.width), padding=6, fill=(255, 0, 0))],
    "RandomCrop mirrored": [v2.RandomCrop((20, 60), padding=(6, 3, 14, 0), padding_mode="reflect"), v2.RandomHorizontalFlip()],
    "RandomCrop of what is too small": [v2.RandomCrop((50, 40), pad_if_needed=True, fill=(255, 0, 0))],
    "RandomCrop moved": [v2.RandomHorizontalFlip(), v2.RandomCrop((SIZE.height, SIZE.width), padding=6, fill=(255, 0, 0))],
    "RandomChoice": [v2.RandomChoice([v2.RandomInvert(1.0), v2.RandomSolarize(50, 1.0), v2.Identity()], p=[0.2, 0.5, 0.3])],
    "RandomOrder": [v2.RandomOrder([INVERT, SOLARIZE, v2.RandomPosterize(1, 0.5)])],
    "RandomApply": [v2.RandomApply([v2.RandomPosterize(1, 1.0), v2.RandomInvert(1.0)], p=0.3)],
    "RandomErasing": [*FLOATS, v2.RandomErasing(0.7, value=(0.2, 0.9, 0.4)), NORMALISE],
    "RandomErasing random": [*FLOATS, NORMALISE, v2.RandomErasing(0.7, (0.1, 0.6), (0.2, 5), "random")],
}


@pytest.fixture(scope="module")
def picture(folder: Path) -> Path:
    y, x = np.mgrid[0 : SIZE.height, 0 : SIZE.width]
    waves = [120 + 80 * np.sin(x / 9 + channel) + 30 * np.cos(y / 7 * channel) for channel in (1, 2, 3)]
    pixels = np.stack(waves, -1) + np.random.default_rng(3).normal(0, 10, (SIZE.height, SIZE.width, 3))
    path = folder.parent / "waves.png"
    path.write_bytes(png_of(np.clip(pixels, 0, 255).astype(np.uint8)))
    return path


def statistics(images: NDArray[np.float32]) -> NDArray[np.float64]:
    """Of each image: means, deviations and roughness, of parts of it and of channels."""
    parts = [images, images[:, 0], images[:, 2], images[:, :, : SIZE.height // 2], images[..., : SIZE.width // 2]]
    flat = [part.reshape(len(images), -1).astype(np.float64) for part in parts]
    rough = np.abs(np.diff(images.astype(np.float64), axis=3)).mean((1, 2, 3))
    return np.stack([*(part.mean(1) for part in flat), *(part.std(1) for part in flat), rough])


def compare(client: millrace.Client, recipe: millrace.Recipe, transform: Any, picture: Path) -> None:
    with client.session(recipe, batch=COUNT, slots=1) as session:
        batch = session.get(session.submit([millrace.Sample(picture, id=number) for number in range(COUNT)]))
        ours = statistics(batch.images.numpy().astype(np.float32))
    pil = Image.open(picture).convert("RGB")
    theirs = statistics(np.stack([np.asarray(v2.functional.to_image(transform(pil)), np.float32) for _ in range(COUNT)]))

    error = np.sqrt((ours.var(1) + theirs.var(1)) / COUNT) + 1e-6
    assert (np.abs(ours.mean(1) - theirs.mean(1)) / error).max() < 4
    np.testing.assert_allclose(ours.std(1), theirs.std(1), rtol=0.2, atol=1e-6)
    assert ours.std(1).max() > 0.01


@pytest.fixture(autouse=True)
def seeds() -> None:
    torch.manual_seed(1)
    np.random.seed(1)
    random.seed(1)


SHORT = ("RandAugment", "ColorJitter", "RandomErasing", "RandomShortestSize")
"""Of each kind one; each takes seconds, most of them torchvision's."""


def but_short(cases: dict[str, Any]) -> list[Any]:
    """Their names; those that are not short are long."""
    return [pytest.param(name, marks=[] if name in SHORT else [pytest.mark.long]) for name in cases]


@pytest.mark.parametrize("name", but_short(DRAWN))
def test_torchvisions(client: millrace.Client, picture: Path, name: str) -> None:
    transforms = [v2.Resize((SIZE.height, SIZE.width)), *DRAWN[name]]

    compare(client, millrace.torch.from_torchvision(transforms), v2.Compose(transforms), picture)


SIZED: dict[str, Any] = {
    "ScaleJitter": v2.ScaleJitter((40, 40), (0.3, 1.8)),
    "RandomShortestSize": v2.RandomShortestSize([20, 30, 60], 70),
    "RandomResize": v2.RandomResize(20, 50),
}


@pytest.mark.parametrize("name", but_short(SIZED))
def test_random_sizes(client: millrace.Client, picture: Path, name: str) -> None:
    transforms = [SIZED[name], v2.RandomCrop((40, 44), pad_if_needed=True, fill=200)]

    compare(client, millrace.torch.from_torchvision(transforms), v2.Compose(transforms), picture)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"auto_augment": "rand-m7-mstd0.5-inc1", "re_prob": 0.6, "re_mode": "pixel", "vflip": 0.3}, marks=pytest.mark.long),
        pytest.param({"auto_augment": "rand-m7-n3-mstd1-p0.8-inc1", "hflip": 0}, marks=pytest.mark.long),
        pytest.param({"auto_augment": "3a", "color_jitter": 0.3, "re_prob": 0.6, "re_mode": "rand"}, marks=pytest.mark.long),
        pytest.param({"interpolation": "random", "re_prob": 0.8, "re_mode": "rand", "re_count": 3}, marks=pytest.mark.long),
        pytest.param({"color_jitter": 0.4, "color_jitter_prob": 0.8, "grayscale_prob": 0.2, "re_prob": 0.6}, marks=pytest.mark.long),
    ],
    ids=str,
)
def test_timms(client: millrace.Client, picture: Path, options: dict[str, Any]) -> None:
    timm = pytest.importorskip("timm.data", reason="timm is not installed: its random transforms are not compared")
    transform = timm.create_transform((3, SIZE.height, SIZE.width), is_training=True, **{"interpolation": "bicubic", **options})

    compare(client, millrace.torch.from_timm(transform), transform, picture)
