"""timm's transforms as recipes, as ``timm.data.create_transform`` makes them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import millrace
import numpy as np
import pytest
from millrace import steps

from pictures import SIZE, pixels_of, png

torch = pytest.importorskip("torch", reason="PyTorch is not installed: timm's transforms are not translated")
timm = pytest.importorskip("timm.data", reason="timm is not installed: its transforms are not translated")
transforms = pytest.importorskip("torchvision.transforms")
Image = pytest.importorskip("PIL.Image")

import millrace.torch  # noqa: E402

pytestmark = pytest.mark.torch
create = timm.create_transform
translate = millrace.torch.from_timm
TRAIN = dataclasses.replace(millrace.Recipe.train(224), filter="bicubic").normalised("float32")
THREE = steps.OneOf((steps.Solarize(128), steps.Grayscale(), steps.PillowBlur((0.1, 2.0))))
GREY = (124, 116, 104)


def training(**options: Any) -> Any:
    return create(224, is_training=True, **{"interpolation": "bicubic", "color_jitter": None, **options})


def test_evaluation() -> None:
    assert translate(create(224)) == millrace.Recipe.evaluate(256, 224).normalised("float32")
    squashed = millrace.Recipe(resize=millrace.ExactSize(millrace.Size(256, 256)), filter="bicubic", centre_crop=millrace.Size(224, 224))
    assert translate(create(224, crop_mode="squash", interpolation="bicubic", normalize=False)) == squashed
    assert translate(create((3, 224, 224), crop_pct=1.0, use_prefetcher=True)) == millrace.Recipe.evaluate(224, 224)
    plain = create(224, is_training=True, no_aug=True, interpolation="random")
    assert translate(plain) == millrace.Recipe.evaluate(224, 224).normalised("float32")


TRAINING: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"hflip": 0, "scale": (0.5, 1)}, {"flip_probability": 0.0, "crop": millrace.RandomResizedCrop((0.5, 1.0))}),
    ({"vflip": 0.2}, {"steps": (steps.VerticalFlip(probability=0.2),)}),
    ({"color_jitter": 0.4}, {"steps": (steps.ColorJitter(0.4, 0.4, 0.4),)}),
    (
        {"color_jitter": (0.1, 0.2, 0.3, 0.1), "color_jitter_prob": 0.8},
        {"steps": (steps.ColorJitter(0.1, 0.2, 0.3, 0.1, probability=0.8),)},
    ),
    (
        {"grayscale_prob": 0.2, "gaussian_blur_prob": 0.5},
        {"steps": (steps.Grayscale(probability=0.2), steps.GaussianBlur(23, probability=0.5))},
    ),
    ({"auto_augment": "rand-m9-mstd0.5-inc1"}, {"steps": (steps.TimmRandAugment(sampling="bicubic", fill=GREY),)}),
    ({"auto_augment": "augmix"}, {"steps": (steps.TimmAugMix(sampling="bicubic", fill=GREY),)}),
    (
        {"auto_augment": "augmix-m5-w4-d2-a0.5-mstd1.5"},
        {"steps": (steps.TimmAugMix(5.0, 1.5, 4, 2, 0.5, "bicubic", GREY),)},
    ),
    ({"auto_augment": "rand-m15-n3-p1"}, {"steps": (steps.TimmRandAugment(3, 10.0, 0.0, 1.0, False, "bicubic", GREY),)}),
    ({"auto_augment": "rand-n0"}, {}),
    ({"auto_augment": "3a", "color_jitter": 0.3}, {"steps": (THREE, steps.ColorJitter(0.3, 0.3, 0.3))}),
    ({"re_prob": 0.25}, {"erasing": steps.Erasing(0.25, (0.02, 1 / 3), (0.3, 3.33333333333))}),
    ({"re_prob": 0.25, "re_mode": "rand"}, {"erasing": steps.Erasing(0.25, (0.02, 1 / 3), (0.3, 3.33333333333), "channel")}),
    ({"re_prob": 0.25, "re_mode": "pixel"}, {"erasing": steps.Erasing(0.25, (0.02, 1 / 3), (0.3, 3.33333333333), "pixel")}),
    ({"re_prob": 0.25, "re_count": 3}, {"erasing": steps.Erasing(0.25, (0.02, 1 / 3), (0.3, 3.33333333333), most=3)}),
    ({"interpolation": "random"}, {"filter": "bilinear", "random_filters": ("bilinear", "bicubic")}),
    ({"normalize": False}, {"dtype": "uint8", "normalise": None}),
]


@pytest.mark.parametrize(("options", "changes"), TRAINING, ids=[str(options) for options, _ in TRAINING])
def test_training(options: dict[str, Any], changes: dict[str, Any]) -> None:
    assert translate(training(**options)) == dataclasses.replace(TRAIN, **changes)


def test_what_else_timm_makes() -> None:
    from timm.data.auto_augment import rand_augment_transform
    from timm.data.transforms import RandomResizedCropAndInterpolation, ToTensor

    assert translate(training(auto_augment="3a", separate=True)) == translate(training(auto_augment="3a"))
    crop = RandomResizedCropAndInterpolation(224, interpolation="nearest")
    assert translate([crop, ToTensor()]) == dataclasses.replace(
        millrace.Recipe.train(224), flip_probability=0.0, filter="nearest", dtype="float32", range="raw"
    )
    drawn = rand_augment_transform("rand-m9-mstd0.5-inc1", {"translate_const": 100, "img_mean": (1, 2, 3)})
    assert translate([crop, drawn]).steps == (steps.TimmRandAugment(fill=(1, 2, 3)),)


REFUSED = [
    ({"auto_augment": "rand-m9-mstd101"}, "mstd0.5"),
    ({"auto_augment": "rand-m9-mmax20"}, "leave mmax out"),
    ({"auto_augment": "rand-m12-mstd0.5"}, "magnitudes over 10"),
    ({"auto_augment": "rand-m9-t3a"}, "leave -t out"),
    ({"auto_augment": "rand-m9-tweights"}, "leave -t out"),
    ({"auto_augment": "rand-m9", "interpolation": "lanczos"}, "RandAugment with interpolation"),
    ({"auto_augment": "original"}, "policy original:.*'3a'"),
    ({"auto_augment": "originalr"}, "policy originalr:"),
    ({"auto_augment": "v0"}, "policy v0:"),
    ({"auto_augment": "v0r"}, "policy v0r:"),
    ({"auto_augment": "3a-mstd0.5"}, "policy 3a with mstd"),
    ({"auto_augment": "augmix-b1"}, "AugMix that is blended.*leave b1 out"),
    ({"auto_augment": "augmix-m12-mstd1"}, "AugMix with magnitudes over 10"),
    ({"auto_augment": "augmix-m5", "interpolation": "lanczos"}, "AugMix with interpolation"),
    ({"re_prob": 0.25, "re_count": 17}, "1 to as many as 16; say min_count=1, re_count=3"),
    ({"train_crop_mode": "rkrc"}, "ResizeKeepRatio is not.*rrc"),
    ({"naflex": True}, "RandomResizedCropToSequence is not.*naflex"),
    ({"patchify": True}, "Patchify is not"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_what_is_refused_is_named_with_what_to_do(options: dict[str, Any], message: str) -> None:
    with pytest.raises(millrace.Unsupported, match=f"(?s)^from_timm: .*{message}"):
        translate(training(**options))


def test_what_is_refused_of_evaluation() -> None:
    for options, message in [
        ({"crop_mode": "border"}, "ResizeKeepRatio"),
        ({"crop_border_pixels": 4}, "TrimBorder"),
        ({"naflex": True}, "ResizeToSequence"),
    ]:
        with pytest.raises(millrace.Unsupported, match=message):
            translate(create(224, **options))
    with pytest.raises(millrace.Unsupported, match="ResizeKeepRatio"):
        translate(create((200, 224)))


def test_torchvisions_translation_knows_none_of_timms() -> None:
    with pytest.raises(millrace.Unsupported, match="RandAugment is not something"):
        millrace.torch.from_torchvision(training(auto_augment="rand-m9").transforms[2])


def test_loaders_take_timms_transforms(daemon: millrace.PrivateDaemon, folder: Path) -> None:
    transform = create((3, 24, 24), is_training=True, interpolation="bicubic", auto_augment="rand-m9-mstd0.5-inc1", re_prob=0.5)

    with millrace.torch.Loader(folder, transform, batch_size=20, address=daemon.address) as loader:
        assert loader.recipe == translate(transform)
        batches = [images.clone() for images, _ in loader]

    assert [(batch.shape, batch.dtype) for batch in batches] == [((20, 3, 24, 24), torch.float32)] * 3
    assert all(torch.isfinite(batch).all() for batch in batches)


@pytest.mark.parametrize("number", range(4))
def test_evaluated_pixels_are_timms(client: millrace.Client, number: int) -> None:
    transform = create(24, interpolation="bicubic")
    expected = transform(Image.fromarray(pixels_of(number))).numpy()

    with client.session(translate(transform), batch=1, slots=1) as session:
        image = session.get(session.submit([png(number)])).images.numpy()[0]

    assert SIZE.width > SIZE.height > 24
    np.testing.assert_allclose(image, expected, atol=1e-5)
