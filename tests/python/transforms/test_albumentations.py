"""What of Albumentations is a recipe's: the same geometry, the same pixels where nothing is resized."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import millrace
import numpy as np
import pytest
from millrace import steps

from pictures import SIZE, path_of, pixels_of, png

torch = pytest.importorskip("torch", reason="PyTorch is not installed: Albumentations' transforms are not translated")
A = pytest.importorskip("albumentations", reason="Albumentations is not installed: its transforms are not translated")

import millrace.torch  # noqa: E402

pytestmark = pytest.mark.torch
translate = millrace.torch.from_albumentations
RESIZE = A.Resize(SIZE.height, SIZE.width)
OWN_SIZE = millrace.Recipe(resize=millrace.ExactSize(SIZE))


def test_a_training_pipeline() -> None:
    pipeline = A.Compose([A.RandomResizedCrop(size=(20, 30)), A.HorizontalFlip(p=0.25), A.Normalize(), A.ToTensorV2()])

    assert translate(pipeline) == millrace.Recipe(
        crop=millrace.RandomResizedCrop(), resize=millrace.ExactSize(millrace.Size(30, 20)), flip_probability=0.25
    ).normalised("float32")


def test_steps_and_groups() -> None:
    for transform, step in [
        (A.VerticalFlip(p=0.2), steps.VerticalFlip(probability=0.2)),
        (A.InvertImg(), steps.Invert(probability=0.5)),
        (A.Posterize(num_bits=3), steps.Posterize(3, probability=0.5)),
        (A.Solarize(threshold_range=(0.5, 0.5)), steps.Solarize(127.5, probability=0.5)),
        (
            A.OneOf([A.InvertImg(p=0.5), A.VerticalFlip(p=0.25), A.NoOp(p=0.25)], p=0.5),
            steps.OneOf((steps.Invert(), steps.VerticalFlip(), steps.HorizontalFlip(probability=0.0)), (0.5, 0.25, 0.25), probability=0.5),
        ),
        (A.Sequential([A.InvertImg()], p=0.5), steps.Sequence((steps.Invert(probability=0.5),), probability=0.5)),
    ]:
        assert translate([RESIZE, transform]) == dataclasses.replace(OWN_SIZE, steps=(step,))
    assert translate([RESIZE, A.NoOp(), A.ToRGB(), A.ToFloat()]) == dataclasses.replace(OWN_SIZE, dtype="float32")


REFUSED: list[tuple[Any, str]] = [
    (A.ColorJitter(), "ColorJitter is not.*torchvision's ColorJitter"),
    (A.RandomBrightnessContrast(), "RandomBrightnessContrast is not .* put millrace.steps.ColorJitter, .*, into Recipe.steps"),
    (A.CoarseDropout(), "CoarseDropout is not .* put millrace.Erasing, which is torchvision's RandomErasing, into Recipe.erasing"),
    (A.SmallestMaxSize(max_size_hw=(8, 9)), "SmallestMaxSize with max_size_hw"),
    (A.LongestMaxSize(8, area_for_downscale="image"), "LongestMaxSize with max_size_hw or area_for_downscale"),
    (A.LongestMaxSize([8, 9]), "LongestMaxSize that draws from"),
    (A.PadIfNeeded(None, 8, pad_height_divisor=4), "PadIfNeeded to multiples"),
    (A.PadIfNeeded(8, 8, border_mode=3), "PadIfNeeded with border_mode=3"),
    (A.Pad(4, fill=0.5), "Pad with fill 0.5"),
    (A.CropAndPad(px=4), "CropAndPad of another kind"),
    (A.CropAndPad(px=-4, keep_size=False), "CropAndPad of another kind"),
    (A.CropAndPad(px=(1, 4), keep_size=False), "CropAndPad of another kind"),
    (A.GaussNoise(), r"GaussNoise is not .*split\(\) does not divide Albumentations': do it by hand"),
    (A.Resize(8, 8, p=0.5), "Resize with p=0.5"),
    (A.Compose([A.NoOp()], p=0.5), "Compose with p=0.5"),
    (A.Normalize(normalization="image"), "of another kind"),
    (A.ToFloat(max_value=65535), "divides by 255"),
    (A.Posterize(num_bits=(3, 5)), "say one number"),
    (A.Solarize(threshold_range=(0.1, 0.5)), "one threshold"),
]


@pytest.mark.parametrize(("transform", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_what_is_refused_is_named_with_what_to_do(transform: Any, message: str) -> None:
    with pytest.raises(millrace.Unsupported, match=f"^from_albumentations: .*{message}"):
        translate(A.Compose([transform]))


@pytest.mark.parametrize(
    "transforms",
    [
        [A.CenterCrop(11, 20)],
        [A.CenterCrop(35, 41, pad_if_needed=True, fill=9)],
        [A.CenterCrop(11, 81, pad_if_needed=True, pad_position="bottom_right", border_mode=4)],
        [A.PadIfNeeded(64, 71, fill=(1, 2, 3)), A.VerticalFlip(p=1)],
        [A.PadIfNeeded(64, 71, border_mode=2, position="bottom_left"), A.CenterCrop(60, 70)],
        [A.Pad((3, 4), fill=7), A.PadIfNeeded(64, 71, position="top_right", fill=7), A.Normalize()],
        [A.Pad((3, 4, 5, 60), border_mode=1)],
        [A.CropAndPad(px=4, keep_size=False, border_mode=4)],
        [A.RandomCrop(35, 60, pad_if_needed=True, pad_position="top_left")],
        [RESIZE, A.VerticalFlip(p=1), A.Posterize(num_bits=2, p=1), A.HorizontalFlip(p=1)],
        [RESIZE, A.Solarize(threshold_range=(0.3, 0.3), p=1), A.InvertImg(p=1)],
        [RESIZE, A.Normalize()],
    ],
    ids=str,
)
def test_the_daemons_pixels_are_albumentations(client: millrace.Client, transforms: list[Any]) -> None:
    pipeline = A.Compose(transforms)
    recipe = dataclasses.replace(translate(pipeline), layout="NHWC")
    if recipe.fixed_size is None:
        recipe = dataclasses.replace(recipe, packing="packed")
    with client.session(recipe, batch=4, slots=1, slot_bytes=1 << 20) as session:
        batch = session.get(session.submit([png(number) for number in range(4)]))
        for number in range(4):
            image = batch.image(number).numpy()
            np.testing.assert_allclose(image, pipeline(image=pixels_of(number))["image"], atol=1e-5 if image.dtype.kind == "f" else 0)


def test_a_letterbox_and_its_kin() -> None:
    letterbox = [A.LongestMaxSize(64), A.PadIfNeeded(64, 64, fill=(114, 114, 114))]
    assert translate(letterbox) == millrace.Recipe(resize=millrace.LongerSide(64), pad=millrace.Pad(to=millrace.Size(64, 64), fill=114))
    assert translate(letterbox).fixed_size == millrace.Size(64, 64)
    drawn = translate([A.SmallestMaxSize([32, 48]), A.RandomCrop(40, 30, pad_if_needed=True, pad_position="top_left")])
    size = millrace.Size(30, 40)
    assert drawn == millrace.Recipe(
        resize=millrace.RandomShorterSide((32, 48)),
        pad=millrace.Pad(to=size, place="top_left"),
        centre_crop=size,
        crop_place="random",
    )
    assert translate(A.SmallestMaxSize(32)).resize == millrace.ShorterSide(32)
    assert translate(A.CropAndPad(px=3, keep_size=False, fill=7)).pad == millrace.Pad(3, 3, 3, 3, fill=7)


@pytest.mark.parametrize(
    ("transform", "count"),
    [
        (A.PadIfNeeded(SIZE.height + 3, SIZE.width + 2, position="random", fill=9), 12),
        (A.RandomCrop(SIZE.height + 3, SIZE.width - 2, pad_if_needed=True, pad_position="random", border_mode=2), 12),
        (A.RandomCrop(SIZE.height - 3, SIZE.width + 2, pad_if_needed=True, pad_position="center", border_mode=4), 4),
    ],
    ids=["PadIfNeeded", "RandomCrop", "RandomCrop in the middle"],
)
def test_what_is_padded_at_random_is_padded_alike(client: millrace.Client, folder: Path, transform: Any, count: int) -> None:
    recipe = dataclasses.replace(translate(transform), layout="NHWC", packing="packed")
    with client.session(recipe, batch=300, slots=1, slot_bytes=8 << 20) as session:
        batch = session.get(session.submit([millrace.Sample(path_of(folder, 3), id=number) for number in range(300)]))
        ours = {batch.image(number).numpy().tobytes() for number in range(300)}
    assert len(ours) == count
    assert ours == {transform(image=pixels_of(3))["image"].tobytes() for _ in range(300)}
