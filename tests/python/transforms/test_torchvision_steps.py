"""torchvision's augmentations as steps of a recipe: what each becomes, in both of its versions, and the daemon's pixels against its own."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import millrace
import numpy as np
import pytest
from millrace import steps

from pictures import SIZE, pixels_of, png, png_of

torch = pytest.importorskip("torch", reason="PyTorch is not installed: torchvision's augmentations are not translated")
v1 = pytest.importorskip("torchvision.transforms", reason="torchvision is not installed: its augmentations are not translated")
v2 = pytest.importorskip("torchvision.transforms.v2")
Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed: nothing is compared with its pixels")

import millrace.torch  # noqa: E402

pytestmark = pytest.mark.torch
translate = millrace.torch.from_torchvision
BILINEAR, BICUBIC, LANCZOS = (v2.InterpolationMode(name) for name in ("bilinear", "bicubic", "lanczos"))
EXACT = millrace.ExactSize(SIZE)
RESIZE = v2.Resize((SIZE.height, SIZE.width))

STEPS: list[tuple[str, dict[str, Any], steps.Step]] = [
    ("RandomVerticalFlip", {"p": 0.3}, steps.VerticalFlip(probability=0.3)),
    ("RandomGrayscale", {"p": 0.2}, steps.Grayscale(probability=0.2)),
    ("Grayscale", {"num_output_channels": 3}, steps.Grayscale()),
    ("RandomInvert", {}, steps.Invert(probability=0.5)),
    ("RandomAutocontrast", {}, steps.AutoContrast(probability=0.5)),
    ("RandomEqualize", {"p": 1.0}, steps.Equalize()),
    ("RandomPosterize", {"bits": 3}, steps.Posterize(3, probability=0.5)),
    ("RandomSolarize", {"threshold": 100, "p": 0.1}, steps.Solarize(100.0, probability=0.1)),
    ("RandomSolarize", {"threshold": 999}, steps.Solarize(256.0, probability=0.5)),
    ("RandomAdjustSharpness", {"sharpness_factor": 2}, steps.Sharpness((2.0, 2.0), probability=0.5)),
    ("ColorJitter", {"brightness": 0.4, "hue": 0.1}, steps.ColorJitter((0.6, 1.4), hue=(-0.1, 0.1))),
    ("ColorJitter", {"contrast": (0.5, 0.7), "saturation": 2}, steps.ColorJitter(contrast=(0.5, 0.7), saturation=(0.0, 3.0))),
    ("GaussianBlur", {"kernel_size": 5}, steps.GaussianBlur(5, (0.1, 2.0))),
    ("GaussianBlur", {"kernel_size": (9, 9), "sigma": 1.5}, steps.GaussianBlur(9, (1.5, 1.5))),
    ("RandomRotation", {"degrees": 10}, steps.Rotation((-10.0, 10.0))),
    ("RandomRotation", {"degrees": (5, 7), "interpolation": BICUBIC, "fill": 9}, steps.Rotation((5.0, 7.0), "bicubic", (9, 9, 9))),
    ("RandomAffine", {"degrees": 0}, steps.Affine()),
    (
        "RandomAffine",
        {"degrees": 3, "translate": (0.1, 0.2), "scale": (0.5, 2), "shear": 4, "interpolation": BILINEAR, "fill": (1, 2, 3)},
        steps.Affine((-3.0, 3.0), (0.1, 0.2), (0.5, 2.0), (-4.0, 4.0), sampling="bilinear", fill=(1, 2, 3)),
    ),
    ("RandomAffine", {"degrees": 0, "shear": [1, 2, 3, 4]}, steps.Affine(shear_x=(1.0, 2.0), shear_y=(3.0, 4.0))),
    ("RandomPerspective", {"distortion_scale": 0.3, "fill": [7]}, steps.Perspective(0.3, fill=(7, 7, 7), probability=0.5)),
    ("AugMix", {}, steps.AugMix()),
    (
        "AugMix",
        {"severity": 5, "mixture_width": 4, "chain_depth": 2, "alpha": 0.5, "all_ops": False, "fill": 7},
        steps.AugMix(5, 4, 2, 0.5, False, fill=7),
    ),
    ("RandAugment", {}, steps.RandAugment()),
    (
        "RandAugment",
        {"num_ops": 3, "magnitude": 5, "num_magnitude_bins": 11, "fill": [1, 2, 3]},
        steps.RandAugment(3, 5, 11, fill=(1, 2, 3)),
    ),
    ("TrivialAugmentWide", {"interpolation": BILINEAR}, steps.TrivialAugmentWide(sampling="bilinear")),
    *(
        ("AutoAugment", {"policy": v1.AutoAugmentPolicy(name)}, steps.AutoAugment(name))  # type: ignore[arg-type]
        for name in ("imagenet", "cifar10", "svhn")
    ),
]


@pytest.mark.parametrize("of", [v1, v2], ids=["v1", "v2"])
@pytest.mark.parametrize(("name", "arguments", "step"), STEPS)
def test_each_becomes_its_step(of: Any, name: str, arguments: dict[str, Any], step: steps.Step) -> None:
    recipe = translate(of.Compose([RESIZE, getattr(of, name)(**arguments)]))

    assert recipe == millrace.Recipe(resize=EXACT, steps=(step,))


@pytest.mark.parametrize("of", [v1, v2], ids=["v1", "v2"])
def test_groups(of: Any) -> None:
    jitter, made = of.ColorJitter(0.4), steps.ColorJitter(0.4)
    for group, step in [
        (of.RandomApply([jitter], p=0.8), dataclasses.replace(made, probability=0.8)),
        (
            of.RandomApply(torch.nn.ModuleList([of.RandomInvert()]), p=0.8),
            steps.Sequence((steps.Invert(probability=0.5),), probability=0.8),
        ),
        (
            of.RandomApply([jitter, of.RandomHorizontalFlip()]),
            steps.Sequence((made, steps.HorizontalFlip(probability=0.5)), probability=0.5),
        ),
        (of.RandomChoice([jitter, of.Grayscale(3)]), steps.OneOf((made, steps.Grayscale()))),
        (of.RandomChoice([jitter, of.Grayscale(3)], p=[0.25, 0.75]), steps.OneOf((made, steps.Grayscale()), (0.25, 0.75))),
        (of.RandomChoice([of.Compose([jitter, jitter]), v2.Identity()]), steps.OneOf((steps.Sequence((made, made)), NO_CHANGE))),
        (
            of.RandomOrder([jitter, of.Compose([of.Grayscale(3), jitter])]),
            steps.AnyOrder((made, steps.Sequence((steps.Grayscale(), made)))),
        ),
    ]:
        assert translate([RESIZE, group]).steps == (step,)
    assert translate([RESIZE, of.ColorJitter(), of.RandomApply([v2.Identity()])]).steps == ()


NO_CHANGE = steps.HorizontalFlip(probability=0.0)


def test_flips_come_first_or_where_they_stand() -> None:
    flip, invert = v2.RandomHorizontalFlip(0.25), v2.RandomInvert()
    step, inverted = steps.HorizontalFlip(probability=0.25), steps.Invert(probability=0.5)

    assert translate([RESIZE, flip, invert]) == millrace.Recipe(resize=EXACT, flip_probability=0.25, steps=(inverted,))
    assert translate([RESIZE, invert, flip, invert]) == millrace.Recipe(resize=EXACT, steps=(inverted, step, inverted))
    assert translate([RESIZE, flip, flip]) == millrace.Recipe(resize=EXACT, flip_probability=0.25, steps=(step,))
    converted = [v2.ToImage(), RESIZE, invert, v2.ToDtype(torch.float32, scale=True), flip, v2.RandomVerticalFlip(0.5)]
    assert translate(converted).steps == (inverted, step, steps.VerticalFlip(probability=0.5))


FLOATS = v2.ToDtype(torch.float32, scale=True)
NORMALISE = v2.Normalize([0.5, 0.4, 0.3], [0.5, 0.2, 0.1])


@pytest.mark.parametrize("of", [v1, v2], ids=["v1", "v2"])
def test_erasing(of: Any) -> None:
    def erasing(*transforms: Any) -> millrace.Erasing | None:
        return translate([RESIZE, v2.PILToTensor(), *transforms]).erasing

    assert erasing(FLOATS, NORMALISE, of.RandomErasing(0.1, inplace=True)) == millrace.Erasing(0.1)
    assert erasing(FLOATS, NORMALISE, of.RandomErasing(value=(1, 2, 3))) == millrace.Erasing(value=(1.0, 2.0, 3.0))
    assert erasing(FLOATS, NORMALISE, of.RandomErasing(value="random")) == millrace.Erasing(value="pixel")
    assert erasing(FLOATS, of.RandomErasing(value="random", ratio=(0.5, 2))) == millrace.Erasing(ratio=(0.5, 2.0), value="pixel")
    assert erasing(of.RandomErasing(value=7.9)) == millrace.Erasing(value=7.0)
    assert erasing(of.RandomErasing(scale=(0, 0.5))) == millrace.Erasing(scale=(1e-6, 0.5))

    for transforms in [(FLOATS, of.RandomErasing(p=1, value=(0.5, 0.25, 0.1))), (of.RandomErasing(p=1, value=(200, 100, 7.9)), FLOATS)]:
        image = torch.zeros(3, 32, 48, dtype=torch.uint8)
        made = v2.Compose([*transforms, NORMALISE])(image)
        untouched = v2.Compose([FLOATS, NORMALISE])(image)
        value = made[:, (made != untouched).any(0)][:, 0]
        found = erasing(*transforms, NORMALISE)
        assert found is not None
        torch.testing.assert_close(torch.tensor(found.value), value, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("of", [v1, v2], ids=["v1", "v2"])
@pytest.mark.parametrize("padding", [(0, 4), [0, 4, 0, 4]])
def test_behind_a_flip_a_crop_with_padding_of_images_of_its_size_is_a_move(of: Any, padding: Any) -> None:
    moved = translate([RESIZE, v2.RandomHorizontalFlip(0.25), of.RandomCrop((32, 48), padding=padding, fill=9)])

    assert moved == millrace.Recipe(resize=EXACT, flip_probability=0.25, steps=(steps.Shift(0, 4, 9),))
    assert translate([RESIZE, v2.RandomInvert(), of.RandomCrop((32, 48), pad_if_needed=True)]).steps == (steps.Invert(probability=0.5),)


class Preset:
    """As those of torchvision's reference script."""

    def __init__(self, *transforms: Any) -> None:
        self.transforms = v1.Compose(transforms)

    def __call__(self, image: Any) -> Any:
        return self.transforms(image)


class Twice(Preset):
    def __call__(self, image: Any) -> Any:
        return [self.transforms(image), self.transforms(image)]


class Later(Preset):
    """What it does depends on more than its transforms."""

    def __call__(self, image: Any) -> Any:
        return self.transforms(image) if self.epoch else image


def test_presets_of_training_scripts() -> None:
    def preset(of: Any, policy: Any, erased: float, kind: type[Preset] = Preset) -> Preset:
        last = of.ToDtype(torch.float, scale=True) if of is v2 else of.ConvertImageDtype(torch.float)
        crop = [of.RandomResizedCrop(176, antialias=True), of.RandomHorizontalFlip(), policy]
        return kind(*crop, of.PILToTensor(), last, of.Normalize([0.5] * 3, [0.5] * 3), of.RandomErasing(erased))

    for of in (v1, v2):
        assert translate(preset(of, of.TrivialAugmentWide(interpolation=BILINEAR), 0.1)) == dataclasses.replace(
            millrace.Recipe.train(176).normalised("float32", by=millrace.Normalise((0.5,) * 3, (0.5,) * 3)),
            steps=(steps.TrivialAugmentWide(sampling="bilinear"),),
            erasing=millrace.Erasing(0.1),
        )
    evaluation = Preset(v1.Resize(256), v1.CenterCrop(224), v1.PILToTensor(), v1.ConvertImageDtype(torch.float), v1.Normalize([0.5], [0.5]))
    assert translate(evaluation).centre_crop == millrace.Size(224, 224)
    for kind in (Twice, Later):
        with pytest.raises(millrace.Unsupported, match=f"{kind.__name__} is not something"):
            translate(preset(v1, v1.RandAugment(), 0.1, kind))
    holder = type("Holder", (), {"transforms": v1.Compose([v1.Resize(8)])})()
    with pytest.raises(millrace.Unsupported, match="Holder is not something"):
        translate(holder)
    scripted = torch.nn.Sequential(v1.Resize(8), torch.nn.Identity(), v1.CenterCrop(8))
    assert translate(scripted) == millrace.Recipe.evaluate(8, 8)


CROPPED = millrace.Size(8, 8)


def test_conversions_stand_where_scripts_have_them() -> None:
    floats: dict[str, Any] = {"dtype": "float32", "resize": EXACT}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        to_tensor = v2.ToTensor()
    assert translate([v1.ToTensor(), RESIZE]) == millrace.Recipe(**floats)
    assert translate([to_tensor, RESIZE]) == millrace.Recipe(**floats)
    documented = [v2.ToImage(), v2.ToDtype(torch.uint8, scale=True), RESIZE, v2.ToDtype(torch.float32, scale=True), v2.ToPureTensor()]
    assert translate(documented) == millrace.Recipe(**floats)
    assert translate([v1.ToTensor(), v1.ConvertImageDtype(torch.float32), v1.CenterCrop(8), v1.Normalize([0.5], [0.5])]) == millrace.Recipe(
        pad=millrace.Pad(to=CROPPED), centre_crop=CROPPED, dtype="float32", normalise=millrace.Normalise((0.5,), (0.5,))
    )
    assert translate([RESIZE, FLOATS, NORMALISE, v2.ToDtype(torch.bfloat16)]).dtype == "bfloat16"
    from torchvision.tv_tensors import Image as TensorImage

    assert translate([RESIZE, v2.ToDtype({TensorImage: torch.float32, "others": None}, scale=True)]) == millrace.Recipe(**floats)
    assert translate([RESIZE, v2.Grayscale(1), v1.ToTensor(), v1.Normalize([0.5], [0.5])]).channels == "grey"


REFUSED: list[tuple[list[Any], str]] = [
    ([v2.RandomRotation(5, expand=True)], "expand=True"),
    ([v2.RandomRotation(5, center=(1, 2))], "leave center out"),
    ([v2.RandomAffine(5, center=(1, 2))], "leave center out"),
    ([v2.RandomRotation(5, fill={"others": 3})], "a fill for each kind"),
    ([v2.RandomRotation(5, fill=0.5)], "whole level"),
    ([v2.RandomRotation(5, fill=(1, 2))], "whole level"),
    ([v2.RandomRotation(5, interpolation=LANCZOS)], "interpolation lanczos"),
    ([v2.GaussianBlur((3, 5))], "as wide as it is high"),
    ([v2.RandomPosterize(0)], "keeps 1 to 8"),
    ([v2.RandomInvert(), RESIZE], "Resize after RandomInvert.*steps of augmentation"),
    ([FLOATS, v2.ColorJitter(0.3)], "ColorJitter after ToDtype.*put it before ToDtype"),
    ([FLOATS, v2.Resize(8, interpolation=BICUBIC)], "Resize after ToDtype.*put it before"),
    ([v2.ToDtype(torch.float16), v2.Resize(8)], "Resize after ToDtype"),
    ([v2.PILToTensor(), v1.ToTensor()], "leaves a tensor's bytes"),
    ([FLOATS, v2.RandomErasing(), v2.RandomInvert()], "put RandomErasing behind it"),
    ([FLOATS, v2.RandomErasing(), v2.RandomErasing()], "put RandomErasing behind it"),
    ([FLOATS, v2.RandomErasing(value="random"), NORMALISE], "put it behind Normalize"),
    ([v2.RandomErasing(value="random")], "before the image is one of floats"),
    ([v2.RandomErasing(value=300), FLOATS], "from 0 to 255"),
    ([v2.RandomErasing(value=[1, 2])], "one for each channel"),
    ([v2.RandomApply([v2.RandomErasing()])], "RandomErasing in a group"),
    ([v2.RandomApply([v2.Resize(8)])], "Resize in a group"),
    ([v2.RandomApply([v2.Grayscale(1)])], "ask for three"),
    ([v2.Grayscale(1), v2.Resize(8)], "before the resize"),
    ([RESIZE, v2.Grayscale(1), v2.RGB()], r"say Grayscale\(3\)"),
    ([RESIZE, v2.Grayscale(1), v2.ColorJitter(0.1)], "three channels"),
    ([v2.RandomHorizontalFlip(), v2.RandomCrop(8, padding=4)], "put RandomCrop right behind the Resize"),
    ([RESIZE, v2.RandomInvert(), v2.RandomCrop((32, 48), padding=4, padding_mode="reflect")], "with a colour"),
    ([FLOATS, NORMALISE, NORMALISE], "make them one"),
    ([v2.RandomResize(8, 80)], "RandomResize that draws from 72 sizes: the daemon draws from 64"),
    ([v2.RandomZoomOut()], "RandomZoomOut is not something.*use ScaleJitter"),
    ([v2.RandomChoice([v2.ElasticTransform()])], "ElasticTransform is not something"),
    ([v2.AugMix(interpolation=v2.InterpolationMode.BOX)], "AugMix with interpolation box"),
]


@pytest.mark.parametrize(("transforms", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_what_is_refused_is_named_with_what_to_do(transforms: list[Any], message: str) -> None:
    with pytest.raises(millrace.Unsupported, match=f"(?s)^from_torchvision: .*{message}"):
        translate(transforms)


FIXED: list[Any] = [
    v2.RandomVerticalFlip(1.0),
    v2.Grayscale(3),
    v2.RandomInvert(1.0),
    v2.RandomAutocontrast(1.0),
    v2.RandomEqualize(1.0),
    v2.RandomPosterize(2, 1.0),
    v2.RandomSolarize(99, 1.0),
    v2.RandomAdjustSharpness(1.7, 1.0),
    v2.ColorJitter(brightness=(1.3, 1.3)),
    v2.ColorJitter(contrast=(1.3, 1.3)),
    v2.ColorJitter(saturation=(0.3, 0.3)),
    v2.ColorJitter(hue=(0.1, 0.1)),
    v2.RandomRotation((30, 30), interpolation=BILINEAR, fill=(9, 8, 7)),
    v2.RandomRotation((-70, -70)),
    v2.RandomAffine((10, 10), scale=(0.8, 0.8), shear=(3, 3, 5, 5), interpolation=BICUBIC, fill=3),
    v2.Compose([v2.RandomInvert(1.0), v2.RandomHorizontalFlip(1.0), v2.Grayscale(1)]),
]


@pytest.mark.parametrize("transform", FIXED, ids=str)
def test_the_daemons_pixels_are_torchvisions_of_a_pil_image(client: millrace.Client, transform: Any) -> None:
    recipe = dataclasses.replace(translate([RESIZE, transform]), layout="NHWC")
    with client.session(recipe, batch=4, slots=1) as session:
        batch = session.get(session.submit([png(number) for number in range(4)]))
        for number, image in enumerate(batch.images.numpy()):
            expected = np.asarray(transform(Image.fromarray(pixels_of(number))))
            np.testing.assert_array_equal(image, expected.reshape(image.shape))


def test_erased_pixels_are_torchvisions(client: millrace.Client) -> None:
    recipe = translate([RESIZE, FLOATS, v2.RandomErasing(1.0, value=(0.5, 0.25, 0.1)), NORMALISE])
    value = NORMALISE(torch.tensor([0.5, 0.25, 0.1]).reshape(3, 1, 1)).numpy()
    with client.session(recipe, batch=8, slots=1) as session:
        batch = session.get(session.submit([png(number) for number in range(8)]))
        for number, image in enumerate(batch.images.numpy()):
            expected = v2.Compose([FLOATS, NORMALISE])(torch.from_numpy(pixels_of(number).transpose(2, 0, 1))).numpy()
            erased = (image == value).all(0)
            assert 0.01 < erased.mean() < 0.4
            np.testing.assert_allclose(image[:, ~erased], expected[:, ~erased], atol=1e-5)


def test_floats_that_torchvision_resizes_are_within_a_level(client: millrace.Client) -> None:
    pipeline = v2.Compose([v1.ToTensor(), v2.Resize((20, 31))])
    with client.session(translate(pipeline), batch=4, slots=1) as session:
        batch = session.get(session.submit([png(number) for number in range(4)]))
        for number, image in enumerate(batch.images.numpy()):
            expected = pipeline(Image.fromarray(pixels_of(number))).numpy()
            assert np.abs(image - expected).max() <= 1 / 255 + 1e-6


def test_a_crop_with_padding_behind_a_flip_moves_by_each_shift_alike(client: millrace.Client) -> None:
    picture = np.full((32, 48, 3), 255, np.uint8)
    recipe = dataclasses.replace(translate([RESIZE, v2.RandomVerticalFlip(0), v2.RandomCrop((32, 48), padding=2)]), layout="NHWC")
    cases = {
        np.asarray(v2.functional.crop(v2.Pad(2)(Image.fromarray(picture)), i, j, 32, 48)).tobytes() for i in range(5) for j in range(5)
    }
    with client.session(recipe, batch=500, slots=1) as session:
        batch = session.get(session.submit([millrace.Sample(png_of(picture), id=number) for number in range(500)]))
        made = [image.tobytes() for image in batch.images.numpy()]

    assert set(made) == cases
    assert max(made.count(case) for case in cases) < 50  # of 20 on average
