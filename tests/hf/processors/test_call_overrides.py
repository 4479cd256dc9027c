"""What a call may say otherwise than the configuration, and how what cannot be is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import millrace
import numpy as np
import pytest
from millrace.hf import ImageProcessor
from PIL import Image
from transformers.image_utils import load_image

from folders import assert_same, both
from peers import example

CLIP = "clip_vit_base_patch32"
QWEN = "qwen2_5_vl_7b"

OVERRIDES: list[tuple[str, dict[str, Any]]] = [
    (CLIP, {"size": {"shortest_edge": 100}, "crop_size": {"height": 90, "width": 80}}),
    (CLIP, {"size": 300}),
    (CLIP, {"size": {"height": 224, "width": 250}, "do_center_crop": False}),
    (CLIP, {"crop_size": 200}),
    (CLIP, {"resample": Image.Resampling.BILINEAR}),
    (CLIP, {"resample": 1, "image_mean": 0.5, "image_std": 0.25}),
    (CLIP, {"image_mean": [0.1, 0.2, 0.3], "image_std": (0.4, 0.5, 0.6)}),
    (CLIP, {"do_normalize": False}),
    (CLIP, {"do_rescale": False, "do_normalize": False}),
    (CLIP, {"crop_size": {"height": 300, "width": 300}}),  # padded
    (CLIP, {"rescale_factor": 1 / 127.5}),
    (CLIP, {"data_format": "channels_first", "disable_grouping": True}),
    ("vit_base_patch16_224", {"size": {"height": 50, "width": 77}}),
    ("vit_base_patch16_224", {"size": 60}),
    ("siglip_so400m_patch14_384", {"size": {"height": 128, "width": 128}, "do_convert_rgb": True}),
    ("idefics_9b", {"size": {"height": 90, "width": 100}}),
    (QWEN, {"min_pixels": 20_000, "max_pixels": 60_000}),
    (QWEN, {"max_pixels": 60_000}),
    (QWEN, {"size": {"shortest_edge": 5_000, "longest_edge": 30_000}}),
    (QWEN, {"do_normalize": False, "max_pixels": 50_000}),
    (QWEN, {"patch_size": 16, "max_pixels": 100_000}),
    ("qwen2_vl_7b", {"size": {"shortest_edge": 5_000, "longest_edge": 30_000}}),  # its file has min_pixels and max_pixels
    ("idefics2_8b", {"do_image_splitting": False, "size": {"shortest_edge": 60, "longest_edge": 200}}),
    ("internvl3_1b", {"crop_to_patches": True, "max_patches": 4}),
    ("internvl3_1b", {"size": {"height": 100, "width": 60}}),
]


@pytest.mark.filterwarnings("ignore:Passing `min_pixels`:FutureWarning")
@pytest.mark.parametrize(("name", "overrides"), OVERRIDES)
def test_a_call_overrides_what_it_overrides_in_transformers(
    client: millrace.Client, made: list[Path], tmp_path: Path, name: str, overrides: dict[str, Any]
) -> None:
    paths = [made[6], made[-1]]
    images = [load_image(str(path)) for path in paths]
    with both(client, name, tmp_path) as (ours, theirs):
        usual = ours(paths, return_tensors="np", copy=True)

        assert_same(ours(paths, return_tensors="np", **overrides), theirs(images, return_tensors="np", **overrides))

        assert_same(ours(paths, return_tensors="np"), usual)


@pytest.mark.filterwarnings("ignore:Passing `min_pixels`:FutureWarning")
@pytest.mark.parametrize(("name", "overrides"), [one for one in OVERRIDES if one[0] != "idefics_9b"])
def test_it_does_without_transformers(
    client: millrace.Client, made: list[Path], tmp_path: Path, name: str, overrides: dict[str, Any]
) -> None:
    with both(client, name, tmp_path) as (ours, _), ImageProcessor.from_config(example(name), client=client) as plain:
        wanted = ours([made[6]], return_tensors="np", **overrides)

        got = plain([made[6]], **overrides)

        for key in wanted.keys():  # noqa: SIM118 (a BatchFeature)
            np.testing.assert_array_equal(got[key], wanted[key])


def test_attributes_count_as_they_are_when_a_call_begins(client: millrace.Client, made: list[Path], tmp_path: Path) -> None:
    image = load_image(str(made[-1]))
    with both(client, CLIP, tmp_path) as (ours, theirs):
        for edit in (
            lambda processor: setattr(processor, "image_mean", (0.1, 0.2, 0.3)),
            lambda processor: processor.size.__setitem__("shortest_edge", 300),
            lambda processor: setattr(processor, "do_normalize", False),
        ):
            before = ours(made[-1], return_tensors="np", copy=True)
            for processor in (ours, theirs):
                edit(processor)

            got = ours(made[-1], return_tensors="np")
            assert_same(got, theirs(image, return_tensors="np"))
            assert not np.array_equal(got["pixel_values"], before["pixel_values"])
        assert ours.recipe.resize == millrace.ShorterSide(300)


def test_arguments_that_do_not_exist_are_refused_by_name(client: millrace.Client, made: list[Path], tmp_path: Path) -> None:
    with both(client, CLIP, tmp_path) as (ours, _), pytest.raises(TypeError, match="'do_sharpen'"):
        ours(made[-1], do_sharpen=True)
    with ImageProcessor.from_config(example(CLIP), client=client) as plain:
        for name in ("do_sharpen", "retrun_tensors", "max_pixels"):
            with pytest.raises(millrace.Unsupported, match=f"this call: key {name}: not known for CLIPFeatureExtractor"):
                plain(made[-1], **{name: True})
        with pytest.raises(millrace.Unsupported, match="key image_processor_type: a call cannot change"):
            plain(made[-1], image_processor_type="ViTImageProcessor")


@pytest.mark.parametrize(
    ("overrides", "error", "words"),
    [
        ({"do_pad": True}, millrace.Unsupported, "key do_pad: True is not supported"),
        ({"pad_size": {"height": 300, "width": 300}}, millrace.Unsupported, "key pad_size"),
        ({"data_format": "channels_last"}, millrace.Unsupported, "key data_format"),
        ({"do_resize": False, "do_center_crop": False}, millrace.Unsupported, "different sizes"),
        ({"image_std": [0.5, 0.0, 0.5]}, millrace.InvalidRequest, "key image_std"),
        ({"device": "cuda"}, millrace.Unsupported, 'key device: .* ask for return_tensors="pt"'),
        ({"input_data_format": "none"}, millrace.InvalidRequest, "input_data_format"),
    ],
)
def test_what_cannot_be_honoured_is_refused_with_the_reason(
    client: millrace.Client, made: list[Path], tmp_path: Path, overrides: dict[str, Any], error: type[Exception], words: str
) -> None:
    with both(client, CLIP, tmp_path) as (ours, _), ImageProcessor.from_config(example(CLIP), client=client) as plain:
        for processor in (ours, plain):
            with pytest.raises(error, match=words):
                processor(made[-1], return_tensors="np", **overrides)
            assert processor(made[-1], return_tensors="np")["pixel_values"].shape == (1, 3, 224, 224)


def test_other_frameworks_than_numpy_and_pytorch_are_refused(client: millrace.Client, made: list[Path], tmp_path: Path) -> None:
    with both(client, CLIP, tmp_path) as (ours, _), pytest.raises(millrace.Unsupported, match=r"return_tensors.*ask for np or pt"):
        ours(made[-1], return_tensors="mlx")


def test_maps_beside_images_are_refused(client: millrace.Client, made: list[Path], tmp_path: Path) -> None:
    with both(client, CLIP, tmp_path) as (ours, _), pytest.raises(millrace.Unsupported, match="maps, masks and annotations"):
        ours(made[-1], np.zeros((8, 8), np.int64))


def test_functions_of_the_callers_are_refused(client: millrace.Client, made: list[Path], tmp_path: Path) -> None:
    with both(client, "idefics_9b", tmp_path) as (ours, _), pytest.raises(millrace.Unsupported, match="key transform"):
        ours(made[-1], transform=np.asarray)


def test_ever_new_overrides_do_not_fill_the_memory(client: millrace.Client, made: list[Path]) -> None:
    with ImageProcessor.from_config(example(CLIP), client=client) as plain:
        for number in range(300):
            plain._calls.plan_with({"image_mean": number / 1000})

        assert len(plain._calls._plans) <= 128
        assert plain._calls.plan_with({"image_mean": 0.299}) is plain._calls.plan_with({"image_mean": 0.299})
