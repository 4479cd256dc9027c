"""Steps of augmentation: the daemon's pixels are those of torchvision, Pillow and timm on PIL images, given what draws.py draws."""

from __future__ import annotations

import dataclasses
import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import millrace
import numpy as np
import pytest

pytestmark = pytest.mark.torch
pytest.importorskip("torchvision", reason="torchvision is not installed: steps of augmentation are not compared with its")

from drawn_calls import FILTERS, applied  # noqa: E402
from draws import PUBLISHED, SIGNED, TIMM, WIDE, Call, Key, magnitude, narrow, timm_argument  # noqa: E402
from millrace.steps import (  # noqa: E402
    Affine,
    AnyOrder,
    AugMix,
    AutoAugment,
    AutoContrast,
    ColorJitter,
    Equalize,
    GaussianBlur,
    Grayscale,
    HorizontalFlip,
    Invert,
    OneOf,
    Perspective,
    PillowBlur,
    Posterize,
    RandAugment,
    Rotation,
    Sequence,
    Sharpness,
    Solarize,
    TimmAugMix,
    TimmRandAugment,
    TrivialAugmentWide,
    VerticalFlip,
)
from PIL import Image  # noqa: E402
from torchvision.transforms import RandAugment as RandAugmentOfTorch  # noqa: E402
from torchvision.transforms import TrivialAugmentWide as TrivialAugmentWideOfTorch  # noqa: E402

from augmented import FAR_IDS, SIZES, as_it_is, made, mixed_as_tensors, picture, share_that_differs, stepped, without_steps, write  # noqa: E402
from pictures import COUNT, SIZE, path_of, pixels_of, png_of  # noqa: E402

SIMCLR = (
    Sequence((ColorJitter(0.8, 0.8, 0.8, 0.2),), probability=0.8),
    Grayscale(probability=0.2),
    PillowBlur((0.1, 2.0), probability=0.5),
    Solarize(128, probability=0.2),
)
NESTED = AnyOrder(
    (
        Sequence((Posterize(3, probability=0.5), OneOf((Rotation((-9, 9), "bicubic", 7), VerticalFlip()))), probability=0.9),
        OneOf((RandAugment(3), AnyOrder((Sharpness((0, 2)), Equalize(probability=0.3), TimmRandAugment()))), (0.1, 0.9)),
        HorizontalFlip(probability=0.5),
    )
)
EIGHT_DEEP = Sequence(
    (AnyOrder((Sequence((OneOf((Sequence((AnyOrder((Sequence((Invert(), HorizontalFlip(probability=0.5))),)),)),)),)),)),)
)
ANY_SHEAR = Affine((-20, 20), (0.1, 0.3), (0.7, 1.4), (-10, 10), (-5, 5), "bicubic", (9, 8, 7))

EQUAL: dict[str, tuple[Any, ...]] = {
    "horizontal flip": (HorizontalFlip(probability=0.5),),
    "vertical flip": (VerticalFlip(probability=0.3),),
    "grayscale": (Grayscale(probability=0.7),),
    "invert": (Invert(),),
    "auto contrast": (AutoContrast(probability=0.9),),
    "equalize": (Equalize(),),
    "posterize": (Posterize(3, probability=0.7),),
    "solarize": (Solarize(100.5),),
    "solarize everything, nothing": (Solarize(0, probability=0.5), Solarize(256)),
    "sharpness": (Sharpness((0, 3)),),
    "color jitter": (ColorJitter(0.4, 0.4, 0.4, 0.1),),
    "color jitter, two parts": (ColorJitter(brightness=(0.2, 4), hue=0.5),),
    "color jitter, one part": (ColorJitter(contrast=0.9),),
    "pillow blur": (PillowBlur(),),
    "pillow blur, wide": (PillowBlur((3, 40)),),
    "rotation": (Rotation((-30, 30), fill=(1, 2, 3)),),
    "rotation, bilinear": (Rotation((-180, 180), "bilinear", 77),),
    "rotation, bicubic": (Rotation((-1000, 1000), "bicubic"),),
    "rotation by quarters": (Rotation(90), Rotation(180), Rotation(270), Rotation(-360)),
    "affine": (Affine((-20, 20), (0.1, 0.3), (0.7, 1.4), (-10, 10), (-5, 5)),),
    "affine, bilinear": (Affine((-20, 20), (0.1, 0.3), (0.7, 1.4), (-10, 10), (-5, 5), "bilinear", (9, 8, 7)),),
    "affine, bicubic": (ANY_SHEAR,),
    "affine, shift alone": (Affine(translate=(0.3, 1.0)),),
    "rand augment": (RandAugment(),),
    "rand augment, strong": (RandAugment(4, 15, sampling="bilinear", fill=128),),
    "rand augment, other bins": (RandAugment(3, 4, 9, "bicubic", (4, 5, 6)),),
    "trivial augment wide": (TrivialAugmentWide(),),
    "trivial augment wide, other bins": (TrivialAugmentWide(7, "bilinear", 9),),
    "auto augment, imagenet": (AutoAugment(),),
    "auto augment, cifar10": (AutoAugment("cifar10", "bilinear", 3),),
    "auto augment, svhn": (AutoAugment("svhn", "bicubic", (200, 100, 0)),),
    "timm": (TimmRandAugment(),),
    "timm, no deviation": (TimmRandAugment(4, 10, 0, 1),),
    "timm, all else": (TimmRandAugment(3, 4.5, 30.0, 0.7, False, "bilinear", (4, 5, 6)),),
    "timm, nothing increasing at 0": (TimmRandAugment(6, 0, 0, 1, False, "nearest"),),
    "aug mix": (AugMix(),),
    "aug mix, strong": (AugMix(10, 4, 3, 0.3, sampling="nearest", fill=(9, 8, 7)), HorizontalFlip(probability=0.5)),
    "aug mix, two in a row, fewer operations": (AugMix(5, 1, 2, 4.0, False, "bicubic"), AugMix(2, 2, probability=0.7)),
    "aug mix, widest": (AugMix(10, 8, 6),),
    "timm's aug mix": (TimmAugMix(),),
    "timm's aug mix, all else": (TimmAugMix(9, 2.0, 5, 2, 0.5, "bicubic", 77), Invert(probability=0.5), TimmAugMix(10, width=2)),
    "sequence": (Sequence((Invert(probability=0.5), Posterize(2, probability=0.5)), probability=0.7),),
    "any order": (AnyOrder((Solarize(90), Posterize(2), Sharpness((0, 3)), Equalize())),),
    "one of": (OneOf((HorizontalFlip(), VerticalFlip(), Invert())),),
    "one of, weights": (OneOf((Grayscale(), HorizontalFlip(), VerticalFlip(), Invert()), (0, 0.5, 1e-3, 2)),),
    "SimCLR": SIMCLR,
    "nested": (NESTED, TrivialAugmentWide(probability=0.5)),
    "eight deep": (EIGHT_DEEP, Posterize(4)),
    "sixty-four": tuple(Sharpness((0.5, 1.5), probability=0.1) for _ in range(64)),
}


@pytest.fixture(scope="module")
def roomy(daemon: millrace.PrivateDaemon) -> Iterator[millrace.Session]:
    gc.collect()
    with millrace.connect(daemon.address) as client, client.session(slots=2, slot_bytes=4 << 20) as opened:
        yield opened


@pytest.fixture(scope="module")
def written(folder: Path) -> dict[millrace.Size, millrace.Path]:
    where = folder.parent / "steps"
    where.mkdir()
    return {size: write(where, size) for size in SIZES}


@pytest.mark.parametrize("kind", EQUAL)
def test_pixels_are_those_of_the_libraries(roomy: millrace.Session, written: dict[millrace.Size, millrace.Path], kind: str) -> None:
    for size, path in written.items():
        ids = FAR_IDS + list(range(100, 103 if size.width == 224 else 111))
        recipe, before = as_it_is(size, *EQUAL[kind]), picture(size)
        for seed, epoch in ((0, 0), (42, 7), (2**64 - 1, 2**33 + 1)):
            ours = made(roomy, [millrace.Sample(path, id=id_) for id_ in ids], recipe, seed=seed, epoch=epoch)
            for image, id_ in zip(ours, ids, strict=True):
                np.testing.assert_array_equal(image, stepped(before, recipe, Key(seed, epoch, id_)), f"{size}, {seed=}, {epoch=}, {id_=}")


@pytest.mark.parametrize(
    "blur", [GaussianBlur(9), GaussianBlur(23, (0.1, 2)), GaussianBlur(1, 5), GaussianBlur(35, (3, 20), probability=0.5)]
)
def test_gaussian_blur_is_one_off_in_at_most_200_values_of_a_million(
    roomy: millrace.Session, written: dict[millrace.Size, millrace.Path], blur: GaussianBlur
) -> None:
    values = different = 0
    for size, path in written.items():
        recipe, before = as_it_is(size, HorizontalFlip(probability=0.5), blur), picture(size)
        ours = made(roomy, [millrace.Sample(path, id=id_) for id_ in range(8)], recipe, seed=5)
        for id_, image in enumerate(ours):
            off = np.abs(image.astype(int) - stepped(before, recipe, Key(5, 0, id_)))
            assert off.max() <= 1, (size, id_)
            values, different = values + off.size, different + int(off.sum())
    assert different <= 200e-6 * values


@pytest.mark.parametrize("sampling", ["nearest", "bilinear", "bicubic"])
@pytest.mark.parametrize("distortion", [0.2, 0.5, 0.9])
def test_perspective_differs_in_one_pixel_of_a_thousand_at_most(
    roomy: millrace.Session, written: dict[millrace.Size, millrace.Path], distortion: float, sampling: Any
) -> None:
    """A coefficient's last places decide pixels that lie on an edge."""
    for size, path in written.items():
        recipe, before = as_it_is(size, Perspective(distortion, sampling, (9, 8, 7))), picture(size)
        ids = range(4 if size.width == 224 else 16)
        ours = made(roomy, [millrace.Sample(path, id=id_) for id_ in ids], recipe, seed=3)
        shares = [share_that_differs(image, stepped(before, recipe, Key(3, 0, id_))) for id_, image in zip(ids, ours, strict=True)]
        assert sum(shares) / len(shares) <= 0.0002, size


def test_aug_mix_is_close_to_torchvisions_which_works_on_tensors(
    roomy: millrace.Session, written: dict[millrace.Size, millrace.Path]
) -> None:
    size = SIZES[0]
    recipe, before = as_it_is(size, AugMix()), picture(size)
    ids = range(60)
    ours = made(roomy, [millrace.Sample(written[size], id=id_) for id_ in ids], recipe, seed=6)
    off = [np.abs(image.astype(int) - mixed_as_tensors(before, recipe, Key(6, 0, id_))) for id_, image in zip(ids, ours, strict=True)]
    means = [each.mean() for each in off]
    assert sum(means) / len(means) <= 1.0
    assert max(means) <= 4.0
    assert any(means)  # so it was not compared with itself


@pytest.mark.parametrize("size", [millrace.Size(1, 1), millrace.Size(2, 3), millrace.Size(5, 1)])
@pytest.mark.parametrize(
    "step",
    [
        Perspective(1.0),
        RandAugment(16, 30),
        TrivialAugmentWide(),
        TimmRandAugment(16),
        AugMix(10),
        TimmAugMix(10),
        Affine((-180, 180), (1, 1), (0.001, 1000)),
    ],
)
def test_tiny_pictures_are_as_any_other(roomy: millrace.Session, size: millrace.Size, step: Any) -> None:
    before, recipe = picture(size), as_it_is(size, step)
    data = png_of(before)

    ours = made(roomy, [millrace.Sample(data, id=id_) for id_ in range(20)], recipe, seed=1)

    if isinstance(step, Perspective):  # its corners lie on one line there, and torchvision gives an error or anything
        assert ours.shape == (20, size.height, size.width, 3)
        assert size != (1, 1) or (ours == before).all()
    else:
        for id_, image in enumerate(ours):
            np.testing.assert_array_equal(image, stepped(before, recipe, Key(1, 0, id_)), f"{id_=}")


def test_steps_follow_crop_resize_centre_crop_and_flip(roomy: millrace.Session, written: dict[millrace.Size, millrace.Path]) -> None:
    train = dataclasses.replace(millrace.Recipe.train(57), layout="NHWC", centre_crop=millrace.Size(41, 50), steps=(NESTED, *SIMCLR))
    samples = [millrace.Sample(written[SIZES[2]], id=id_) for id_ in range(16)]
    before = made(roomy, samples, without_steps(train), seed=9, epoch=2)

    ours = made(roomy, samples, train, seed=9, epoch=2)

    for id_, image in enumerate(ours):
        np.testing.assert_array_equal(image, stepped(before[id_], train, Key(9, 2, id_)), f"{id_=}")


def test_another_range_or_probability_of_one_step_leaves_the_others_draws(roomy: millrace.Session) -> None:
    data = [millrace.Sample(png_of(picture(SIZE)), id=id_) for id_ in range(16)]
    last = Affine((-30, 30), (0.2, 0.2), fill=(9, 9, 9))
    never = dataclasses.replace(NESTED, probability=0.0)
    invisible = Sequence((Sharpness((1, 1)), *([Solarize(256)] * (_steps_in(NESTED) - 2))))

    images = [made(roomy, data, as_it_is(SIZE, step, last), seed=4) for step in (never, invisible)]

    np.testing.assert_array_equal(images[0], images[1])


def _steps_in(step: Any) -> int:
    return 1 + sum(map(_steps_in, getattr(step, "steps", ())))


@pytest.mark.parametrize("probability", [0.0, 1.0])
def test_probabilities_0_and_1_are_never_and_always(roomy: millrace.Session, probability: float) -> None:
    before = picture(SIZE)
    samples = [millrace.Sample(png_of(before), id=id_) for id_ in range(200)]

    ours = made(roomy, samples, as_it_is(SIZE, Invert(probability=probability)), seed=8)

    assert (ours == (255 - before if probability else before)).all()


def test_a_sample_has_its_draws_in_any_order_batch_and_repetition(roomy: millrace.Session, folder: Path) -> None:
    recipe = as_it_is(SIZE, NESTED, *SIMCLR)
    samples = [millrace.Sample(millrace.Path(path_of(folder, n)), id=1000 + n) for n in range(12)]
    first = made(roomy, samples, recipe, seed=6, epoch=1)

    again = made(roomy, samples, recipe, seed=6, epoch=1)
    backwards = made(roomy, samples[::-1], recipe, seed=6, epoch=1)
    singly = [made(roomy, [sample], recipe, seed=6, epoch=1)[0] for sample in samples]
    other = [made(roomy, samples, recipe, seed=seed, epoch=epoch) for seed, epoch in ((7, 1), (6, 2))]

    np.testing.assert_array_equal(again, first)
    np.testing.assert_array_equal(backwards[::-1], first)
    np.testing.assert_array_equal(np.stack(singly), first)
    for images in other:
        assert sum(not np.array_equal(a, b) for a, b in zip(images, first, strict=True)) > 6
    for n, image in enumerate(first):
        np.testing.assert_array_equal(image, stepped(pixels_of(n), recipe, Key(6, 1, 1000 + n)))


@pytest.mark.parametrize("batch", [16, 7])
@pytest.mark.parametrize("shuffle", [False, True])
def test_an_epoch_draws_the_same_as_submit_and_after_a_resume(roomy: millrace.Session, folder: Path, batch: int, shuffle: bool) -> None:
    recipe, dataset = as_it_is(SIZE, NESTED, *SIMCLR), roomy.dataset(folder)
    options: dict[str, Any] = {"batch": batch, "recipe": recipe, "seed": 11, "epoch": 3, "shuffle": shuffle}
    seen: dict[int, Any] = {}

    with roomy.epoch(dataset, **options, batches=2) as begun:
        for taken in begun:
            seen.update(zip(taken.ids.tolist(), taken.images.numpy().copy(), strict=True))
            taken.release()
    position = begun.position
    assert len(seen) == 2 * batch
    with roomy.epoch(dataset, **options, position=position) as resumed:
        for taken in resumed:
            seen.update(zip(taken.ids.tolist(), taken.images.numpy().copy(), strict=True))
            taken.release()

    assert sorted(seen) == list(range(COUNT))
    for id_, image in seen.items():
        np.testing.assert_array_equal(image, stepped(pixels_of(id_), recipe, Key(11, 3, id_)), f"{id_=}")


@pytest.mark.parametrize("bins", [2, 3, 5, 7, 9, 10, 13, 25, 31, 32, 100, 997, 1000])
def test_magnitudes_are_torchs_but_for_the_last_place(bins: int) -> None:
    spaces = [(RandAugmentOfTorch()._augmentation_space(bins, (64, 97)), narrow((97, 64)), 4)]
    spaces.append((TrivialAugmentWideOfTorch()._augmentation_space(bins), WIDE, 6))
    for theirs, most, posterized in spaces:
        assert tuple(theirs) == PUBLISHED
        for name, (magnitudes, is_signed) in theirs.items():
            assert is_signed == (name in SIGNED)
            ours = [magnitude(name, most, bins, bin_, posterized) for bin_ in range(bins)]
            expected = magnitudes.tolist() if magnitudes.ndim else [0.0] * bins
            np.testing.assert_allclose(ours, expected, rtol=0 if name == "Posterize" else 3e-7, atol=0 if name != "Solarize" else 3e-5)


@pytest.mark.parametrize("increasing", [False, True])
@pytest.mark.parametrize("level", [0.0, 0.31, 2.5, 9.37, 10.0])
def test_timms_functions_are_called_as_timm_calls_them(level: float, increasing: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    timm = pytest.importorskip("timm.data.auto_augment", reason="timm is not installed: its random augmentations are not compared with it")
    names = timm._RAND_INCREASING_TRANSFORMS if increasing else timm._RAND_TRANSFORMS
    assert [name.removesuffix("Rel").removesuffix("Increasing") for name in names] == list(TIMM)
    image = Image.fromarray(picture(SIZE))
    for ours, name in zip(TIMM, names, strict=True):
        for sign in (1.0, -1.0):
            monkeypatch.setattr(timm, "_randomly_negate", lambda value, sign=sign: sign * value)
            of_level = timm.LEVEL_TO_ARG[name]
            arguments = of_level(level, {}) if of_level else ()
            assert timm_argument(ours, level / 10, sign, increasing) == pytest.approx(arguments, rel=1e-12)
            if ours == "Posterize" and arguments == (0,):
                continue  # Pillow 13 refuses what timm asks for; here nothing is left of the picture
            theirs = timm.NAME_TO_OP[name](image, *arguments, resample=FILTERS["bicubic"], fillcolor=(9, 8, 7))
            mine = applied(image, [Call(f"timm {ours}", (*arguments, "bicubic", (9, 8, 7)))])
            np.testing.assert_array_equal(np.asarray(mine), np.asarray(theirs), name)
