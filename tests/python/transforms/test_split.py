"""A transform of which the daemon does the beginning and the program the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import millrace
import numpy as np
import pytest
from millrace import steps

from pictures import COUNT, SIZE, pixels_of

torch = pytest.importorskip("torch", reason="PyTorch is not installed: no transform is divided")
v1 = pytest.importorskip("torchvision.transforms", reason="torchvision is not installed: no transform is divided")
v2 = pytest.importorskip("torchvision.transforms.v2")
Image = pytest.importorskip("PIL.Image")

import millrace.torch  # noqa: E402

pytestmark = pytest.mark.torch
split = millrace.torch.split
RESIZE = v2.Resize((SIZE.height, SIZE.width))
OWN_SIZE = millrace.Recipe(resize=millrace.ExactSize(SIZE))
FLOATS = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]
NORMALISE = v2.Normalize([0.5] * 3, [0.5] * 3)


def kinds(rest: list[Any]) -> list[str]:
    return [type(each).__name__ for each in rest]


def test_the_longest_beginning_is_the_recipe() -> None:
    assert split([RESIZE, *FLOATS, NORMALISE]) == (millrace.torch.from_torchvision([RESIZE, *FLOATS, NORMALISE]), [])
    noise = v2.GaussianNoise()
    assert split(v2.Compose([RESIZE, v2.Compose([*FLOATS, noise]), NORMALISE])) == (
        millrace.Recipe(resize=millrace.ExactSize(SIZE), dtype="float32"),
        [noise, NORMALISE],
    )
    recipe, rest = split([RESIZE, v2.RandomInvert(), v2.ElasticTransform(), v1.ToTensor()])
    assert recipe.steps == (steps.Invert(probability=0.5),)
    assert kinds(rest) == ["ToPILImage", "ElasticTransform", "ToTensor"]
    assert kinds(split([v2.RandomResizedCrop(8, interpolation=v2.InterpolationMode.NEAREST)])[1]) == ["ToPILImage", "RandomResizedCrop"]
    assert split([v2.RandomResizedCrop(8, interpolation=v2.InterpolationMode.NEAREST)])[0] == millrace.Recipe()


def test_what_makes_no_sense_without_the_rest_belongs_to_it() -> None:
    to_tensor, erasing = v2.PILToTensor(), v2.RandomErasing(value="random")

    assert split([RESIZE, to_tensor, erasing, v2.ToDtype(torch.float32, scale=True)])[0] == OWN_SIZE
    assert kinds(split([RESIZE, to_tensor, erasing, v2.ToDtype(torch.float32, scale=True)])[1]) == ["RandomErasing", "ToDtype"]


def test_timms(folder: Path) -> None:
    timm = pytest.importorskip("timm.data", reason="timm is not installed: its transforms are not divided")
    transform = timm.create_transform(24, is_training=True, interpolation="bicubic", auto_augment="v0")

    recipe, rest = split(transform)

    assert recipe == millrace.Recipe(
        crop=millrace.RandomResizedCrop(), resize=millrace.ExactSize(millrace.Size(24, 24)), filter="bicubic", flip_probability=0.5
    )
    assert kinds(rest) == ["ToPILImage", "AutoAugment", "MaybeToTensor", "Normalize"]


def test_both_parts_do_what_the_whole_does(daemon: millrace.PrivateDaemon, folder: Path) -> None:
    turn = v1.Lambda(lambda image: image.transpose(Image.Transpose.ROTATE_180))
    whole = v1.Compose([RESIZE, v1.RandomSolarize(100, 1.0), turn, v1.RandomInvert(1.0), v1.ToTensor(), NORMALISE])

    recipe, rest = split(whole)
    finish = v1.Compose(rest)
    seen = 0
    with millrace.torch.Loader(folder, recipe, batch_size=16, address=daemon.address) as loader:
        for images, _ in loader:
            for image, number in zip(images, loader.batch.ids, strict=True):
                np.testing.assert_array_equal(finish(image).numpy(), whole(Image.fromarray(pixels_of(int(number)))).numpy())
                seen += 1
    assert seen == COUNT
    assert kinds(rest) == ["ToPILImage", "Lambda", "RandomInvert", "ToTensor", "Normalize"]


def test_albumentations_transforms_are_not_divided() -> None:
    albumentations = pytest.importorskip("albumentations", reason="Albumentations is not installed: its transforms are not divided")

    with pytest.raises(millrace.Unsupported, match="by hand"):
        split([albumentations.HorizontalFlip(), albumentations.GaussNoise()])
