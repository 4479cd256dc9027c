"""The tables of transforms against the libraries that are installed: each transform once, and the translation does what they say."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import millrace
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: the table of transforms is not compared")
v2 = pytest.importorskip("torchvision.transforms.v2", reason="torchvision is not installed: the table of transforms is not compared")

import millrace.torch  # noqa: E402

pytestmark = pytest.mark.torch
PAGES = Path(__file__).parents[3] / "client" / "python" / "doc"
TABLES = [(PAGES / name).read_text() for name in ("transforms.md", "albumentations_and_dali.md")]
DONE = ("exact", "bound")
RESIZE = v2.Resize((32, 32))


def rows(section: str) -> dict[str, str]:
    """Verdicts by name; no name is there twice."""
    (text,) = [part for table in TABLES for part in table.split("\n## ") if part.startswith(section)]
    found = re.findall(r"^\| `([\w.]+)` \| (\w+) \| \S", text, re.M)
    assert len(found) == len(dict(found)) == text.count("\n| `")
    return dict(found)


def _to_tensor() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is deprecated
        return v2.ToTensor()


JITTER = v2.ColorJitter(0.3)
MADE: dict[str, Callable[[], Any]] = {
    "CenterCrop": lambda: v2.CenterCrop(8),
    "ColorJitter": lambda: JITTER,
    "Compose": lambda: v2.Compose([JITTER]),
    "ConvertBoundingBoxFormat": lambda: v2.ConvertBoundingBoxFormat("XYXY"),
    "CutMix": lambda: v2.CutMix(num_classes=3),
    "FiveCrop": lambda: v2.FiveCrop(8),
    "GaussianBlur": lambda: v2.GaussianBlur(3),
    "JPEG": lambda: v2.JPEG(50),
    "Lambda": lambda: v2.Lambda(lambda image: image),
    "LinearTransformation": lambda: v2.LinearTransformation(torch.eye(3), torch.zeros(3)),
    "MixUp": lambda: v2.MixUp(num_classes=3),
    "Normalize": lambda: v2.Compose([_to_tensor(), v2.Normalize([0.5] * 3, [0.5] * 3)]),
    "Pad": lambda: v2.Pad(1),
    "RandomAdjustSharpness": lambda: v2.RandomAdjustSharpness(2),
    "RandomAffine": lambda: v2.RandomAffine(10),
    "RandomApply": lambda: v2.RandomApply([JITTER]),
    "RandomChoice": lambda: v2.RandomChoice([JITTER, JITTER]),
    "RandomCrop": lambda: v2.RandomCrop(32, padding=4),
    "RandomOrder": lambda: v2.RandomOrder([JITTER, JITTER]),
    "RandomPosterize": lambda: v2.RandomPosterize(3),
    "RandomResize": lambda: v2.RandomResize(8, 16),
    "RandomResizedCrop": lambda: v2.RandomResizedCrop(8),
    "RandomRotation": lambda: v2.RandomRotation(10),
    "RandomShortestSize": lambda: v2.RandomShortestSize(8),
    "RandomSolarize": lambda: v2.RandomSolarize(100),
    "Resize": lambda: v2.Resize(8),
    "ScaleJitter": lambda: v2.ScaleJitter((8, 8)),
    "SetClampingMode": lambda: v2.SetClampingMode("soft"),
    "TenCrop": lambda: v2.TenCrop(8),
    "ToDtype": lambda: v2.ToDtype(torch.float32, scale=True),
    "ToTensor": _to_tensor,
    "UniformTemporalSubsample": lambda: v2.UniformTemporalSubsample(2),
}
NO_WORK = {"Identity", "PILToTensor", "RGB", "ToImage", "ToPureTensor"}


def test_torchvisions_classes_are_all_there_once() -> None:
    installed = {name for name, each in vars(v2).items() if inspect.isclass(each) and issubclass(each, torch.nn.Module)}
    assert set(rows("torchvision")) == installed


@pytest.mark.parametrize("name", rows("torchvision"))
def test_torchvisions_verdicts_are_what_the_translation_does(name: str) -> None:
    verdict = rows("torchvision")[name]
    transform = MADE.get(name, getattr(v2, name))()
    before = [] if "Resize" in name or name in ("CenterCrop", "RandomShortestSize", "ScaleJitter") else [RESIZE]

    if verdict in DONE:
        recipe = millrace.torch.from_torchvision([*before, transform])
        unchanged = recipe == millrace.Recipe(resize=millrace.ExactSize(millrace.Size(32, 32)))
        assert unchanged == (name in NO_WORK)
    else:
        assert verdict in ("device", "no")
        with pytest.raises(millrace.Unsupported, match=f"{name} is not something that the daemon does: "):
            millrace.torch.from_torchvision([*before, transform])
        assert transform in millrace.torch.split([*before, transform])[1]


OPTIONS: dict[str, Any] = {
    "no_aug": True,
    "scale": (0.5, 1.0),
    "ratio": (0.5, 2.0),
    "vflip": 0.5,
    "color_jitter": 0.2,
    "color_jitter_prob": 0.5,
    "grayscale_prob": 0.5,
    "gaussian_blur_prob": 0.5,
    "auto_augment": "rand-m9-mstd0.5-inc1",
    "re_prob": 0.5,
    "use_prefetcher": True,
    "normalize": False,
    "separate": True,
    "interpolation": "random",
    "re_count": 3,
    "naflex": True,
    "patchify": True,
}


def test_timms_arguments() -> None:
    timm = pytest.importorskip("timm.data", reason="timm is not installed: the table of its arguments is not compared")
    verdicts = rows("timm")

    assert list(verdicts) == list(inspect.signature(timm.create_transform).parameters)
    for name, value in OPTIONS.items():
        transform = timm.create_transform(24, is_training=True, **{"interpolation": "bilinear", "re_prob": 0.1, name: value})
        if verdicts[name] in DONE:
            assert millrace.torch.from_timm(transform).fixed_size == millrace.Size(24, 24)
        else:
            with pytest.raises(millrace.Unsupported):
                millrace.torch.from_timm(transform)
    with pytest.raises(millrace.Unsupported):
        millrace.torch.from_timm(timm.create_transform(24, crop_border_pixels=2))


ALBUMENTATIONS: dict[str, Any] = {
    "CenterCrop": {"height": 8, "width": 8},
    "Crop": {"x_max": 8, "y_max": 8},
    "CropAndPad": {"px": 4, "keep_size": False},
    "LongestMaxSize": {"max_size": 8},
    "Pad": {"padding": 4},
    "PadIfNeeded": {"min_height": 80, "min_width": 80},
    "RandomCrop": {"height": 8, "width": 8},
    "RandomResizedCrop": {"size": (8, 8)},
    "Resize": {"height": 8, "width": 8},
    "SmallestMaxSize": {"max_size": 8},
    "Solarize": {"threshold_range": (0.5, 0.5)},
}


def test_albumentations() -> None:
    library = pytest.importorskip("albumentations", reason="Albumentations is not installed: its table is not compared")
    verdicts = rows("Albumentations")

    assert len(verdicts) == 52
    for name, verdict in verdicts.items():
        groups = {"Compose", "OneOf", "Sequential"}
        transform = getattr(library, name)(*([[library.InvertImg()]] if name in groups else []), **ALBUMENTATIONS.get(name, {}))
        first = [] if "Resize" in name or "MaxSize" in name or name == "CenterCrop" else [library.Resize(8, 8)]
        if verdict in DONE or name in ("Resize", "RandomResizedCrop", "LongestMaxSize", "SmallestMaxSize"):
            millrace.torch.from_albumentations([*first, transform])
        else:
            with pytest.raises(millrace.Unsupported, match=f"{name} is not something that the daemon does"):
                millrace.torch.from_albumentations([*first, transform])


def test_dalis_verdicts_are_verdicts() -> None:
    assert set(rows("DALI").values()) <= {"exact", "bound", "like", "device", "no"}
