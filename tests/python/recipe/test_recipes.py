"""Published recipes against the transforms that their sources build, and each as the daemon does it."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import millrace
import numpy as np
import pytest
from millrace import recipes

from pictures import png

NAMES = recipes.__all__


@pytest.mark.parametrize("name", NAMES)
def test_each_says_its_source_and_is_done(client: millrace.Client, name: str) -> None:
    make = getattr(recipes, name)
    variants = [make(), make(training=False)] if "training" in inspect.signature(make).parameters else [make()]

    assert "Source: " in (make.__doc__ or "")
    for recipe in variants:
        with client.session(recipe, batch=8, slots=1) as session:
            batch = session.get(session.submit([png(number) for number in range(8)]))
            assert batch.bad == 0
            for view in batch.views:
                images = view.numpy()
                assert images.dtype == np.float32
                assert np.isfinite(images).all()
                assert images.std() > 0.05


def test_the_list_is_what_is_there() -> None:
    made = [name for name, each in vars(recipes).items() if inspect.isfunction(each) and each.__module__ == recipes.__name__]
    assert sorted(NAMES) == sorted(name for name in made if not name.startswith("_"))
    assert millrace.recipes is recipes


def test_sizes_and_numbers_of_views() -> None:
    def sides(recipe: millrace.Recipe) -> list[int]:
        return [view.fixed_size.width for view in recipe.views if view.fixed_size is not None]

    assert sides(recipes.simclr()) == sides(recipes.byol()) == sides(recipes.moco_v3()) == [224] * 2
    assert sides(recipes.swav()) == [224] * 2 + [96] * 6
    assert sides(recipes.dino()) == [224] * 2 + [96] * 8
    assert sides(recipes.dinov2()) == [224] * 2 + [98] * 8
    assert sides(recipes.dinov2(112, 42, 0)) == [112] * 2
    assert recipes.simclr(views=1) == recipes.simclr(views=5).views[4]
    with pytest.raises(millrace.InvalidRequest, match="at least 1, is 0"):
        recipes.simclr(views=0)


@pytest.fixture(scope="module")
def of() -> Any:
    pytest.importorskip("torch", reason="PyTorch is not installed: published recipes are not compared with their sources")
    return pytest.importorskip("torchvision.transforms", reason="torchvision is not installed: published recipes are not compared")


@pytest.fixture(scope="module")
def from_torchvision(of: Any) -> Any:
    import millrace.torch

    return millrace.torch.from_torchvision


@pytest.fixture(scope="module")
def from_timm(of: Any) -> Any:
    """Of create_transform's options."""
    timm = pytest.importorskip("timm.data", reason="timm is not installed: recipes that are timm's are not compared")
    import millrace.torch

    def translated(**options: Any) -> millrace.Recipe:
        return millrace.torch.from_timm(timm.create_transform(224, interpolation="bicubic", **options))

    return translated


def _normalised(of: Any, *transforms: Any, mean: Any = (0.485, 0.456, 0.406), std: Any = (0.229, 0.224, 0.225)) -> Any:
    return of.Compose([*transforms, of.ToTensor(), of.Normalize(mean, std)])


pytorch = pytest.mark.torch


@pytorch
def test_imagenet(of: Any, from_torchvision: Any) -> None:
    import torch

    def preset(crop_size: int, *augmentations: Any, erased: float = 0.0) -> Any:
        convert = [of.PILToTensor(), of.ConvertImageDtype(torch.float), of.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))]
        last = [of.RandomErasing(p=erased)] if erased else []
        return of.Compose([of.RandomResizedCrop(crop_size), of.RandomHorizontalFlip(0.5), *augmentations, *convert, *last])

    bilinear = of.InterpolationMode.BILINEAR
    assert from_torchvision(preset(224)) == recipes.imagenet_v1()
    assert from_torchvision(preset(176, of.TrivialAugmentWide(interpolation=bilinear), erased=0.1)) == recipes.imagenet_v2()


@pytorch
@pytest.mark.parametrize("version", [1, 2])
def test_imagenets_tests_are_those_of_the_weights(of: Any, from_torchvision: Any, version: int) -> None:
    from torchvision.models import ResNet50_Weights

    weights = getattr(ResNet50_Weights, f"IMAGENET1K_V{version}")
    assert from_torchvision(weights.transforms()) == getattr(recipes, f"imagenet_v{version}")(training=False)


@pytorch
def test_timms(from_timm: Any) -> None:
    assert from_timm(is_training=True, auto_augment="rand-m7-mstd0.5-inc1") == recipes.a1()
    assert from_timm(crop_pct=0.95) == recipes.a1(training=False)
    assert from_timm(is_training=True, auto_augment="rand-m9-mstd0.5-inc1", re_prob=0.25, re_mode="pixel") == recipes.deit()
    assert from_timm(is_training=True, auto_augment="3a", color_jitter=0.3) == recipes.deit3()


@pytorch
def test_mae(of: Any, from_torchvision: Any) -> None:
    cropped = of.RandomResizedCrop(224, scale=(0.2, 1.0), interpolation=of.InterpolationMode.BICUBIC)

    assert from_torchvision(_normalised(of, cropped, of.RandomHorizontalFlip())) == recipes.mae()


@pytorch
def test_clip(of: Any, from_torchvision: Any) -> None:
    mean, std = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
    resized = of.Resize(224, interpolation=of.InterpolationMode.BICUBIC)

    assert from_torchvision(_normalised(of, resized, of.CenterCrop(224), mean=mean, std=std)) == recipes.clip()


@pytorch
def test_cifar(of: Any, from_torchvision: Any) -> None:
    values = {"mean": (0.4914, 0.4822, 0.4465), "std": (0.2023, 0.1994, 0.2010)}
    resized = of.Resize((32, 32))

    assert from_torchvision(_normalised(of, resized, of.RandomCrop(32, padding=4), of.RandomHorizontalFlip(), **values)) == recipes.cifar()
    assert from_torchvision(_normalised(of, resized, **values)) == recipes.cifar(training=False)


@pytorch
def test_detection(from_torchvision: Any) -> None:
    import torch
    from torchvision.transforms import v2

    floats = v2.ToDtype(torch.float32, scale=True)
    normalised = [floats, v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])]
    shortest = from_torchvision([v2.RandomShortestSize(list(range(480, 801, 32)), 1333), *normalised])
    assert dataclasses.replace(recipes.detr(), pad=None) == shortest
    resized = from_torchvision([v2.Resize(800, max_size=1333), *normalised])
    assert dataclasses.replace(recipes.detr(training=False), pad=None) == resized

    jittered = from_torchvision([v2.ScaleJitter((1024, 1024)), v2.RandomCrop(1024, pad_if_needed=True), v2.RandomHorizontalFlip(), floats])
    lsj = recipes.large_scale_jitter()
    assert lsj.pad is not None
    assert lsj == dataclasses.replace(jittered, pad=dataclasses.replace(lsj.pad, place="top_left"))


def test_sizes_of_detection() -> None:
    for recipe, side in ((recipes.detr(), 1333), (recipes.detr(training=False), 1333), (recipes.letterbox(320), 320)):
        assert recipe.fixed_size == millrace.Size(side, side)
    assert recipes.large_scale_jitter(512).fixed_size == millrace.Size(512, 512)


def test_boxes_come_back_from_a_letterbox(client: millrace.Client) -> None:
    """What the documentation says of sizes beside a batch."""
    with client.session(recipes.letterbox(100), batch=1, slots=1) as session:
        batch = session.get(session.submit([png(1)]))
        assert batch.filled.tolist() == [[0, 17, 100, 66]]  # of 48 x 32 pixels
        assert batch.source_sizes.tolist() == [[48, 32]]
        grey = batch.images.numpy()[0, :, [0, 16, 83, 99]]
        np.testing.assert_array_equal(grey, np.float32(114 / 255))
