"""Every supported family beside transformers' own slow processor, on the same files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import millrace
import numpy as np
import pytest
from millrace.hf import ImageProcessor
from transformers import AutoImageProcessor

from peers import EXAMPLES, difference, example, theirs
from room import ROOMY

TOLERANCE = 1e-6
"""Of pixel_values, in units of the normalised pixels; all other arrays are equal."""

MEAN_OF_TORCHVISION = 0.02
"""Of one picture's pixel_values against torchvision's processors, in the same units."""

FAMILIES: list[tuple[str, dict[str, Any]]] = [
    ("clip_vit_base_patch32", {}),
    ("clip_vit_large_patch14_336", {}),
    ("llava_1_5_7b", {}),
    ("llava_v1_6_mistral_7b", {}),
    ("vit_base_patch16_224", {}),
    ("siglip_so400m_patch14_384", {}),
    ("idefics_9b", {}),
    ("idefics2_8b", {}),
    ("idefics2_8b", {"do_image_splitting": False}),
    ("qwen2_vl_7b", {}),
    ("qwen2_vl_7b", {"min_pixels": 256 * 28 * 28, "max_pixels": 1280 * 28 * 28}),
    ("qwen2_5_vl_7b", {}),
    ("qwen3_vl_8b", {}),
    ("paligemma_3b_pt_224", {}),
    ("siglip2_base_patch16_256", {}),
    ("gemma_3n_e4b", {}),
    ("internvl3_1b", {}),
    ("internvl3_1b", {"crop_to_patches": True}),
    ("internvl3_1b", {"crop_to_patches": True, "min_patches": 2, "max_patches": 6}),
]

SHORT: list[tuple[str, dict[str, Any]]] = [
    ("clip_vit_base_patch32", {}),
    ("llava_v1_6_mistral_7b", {}),
    ("siglip_so400m_patch14_384", {}),
    ("idefics2_8b", {"do_image_splitting": False}),
    ("qwen2_vl_7b", {}),
    ("siglip2_base_patch16_256", {}),
    ("internvl3_1b", {"crop_to_patches": True}),
]
"""Of those, one that resizes as no other does; the rest is long."""


def but(short: list[Any], cases: list[tuple[str, dict[str, Any]]]) -> list[Any]:
    """The cases; those that are not among the short ones are long."""
    return [pytest.param(*case, marks=[] if case in short else pytest.mark.long) for case in cases]


PINPOINTS = [[100, 400], [300, 200], [200, 300], [100, 100]]

# Values that published configurations rarely have.
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("vit_base_patch16_224", {"resample": 0}),
    ("vit_base_patch16_224", {"resample": 1}),
    ("vit_base_patch16_224", {"resample": 4}),
    ("vit_base_patch16_224", {"resample": 5}),
    ("vit_base_patch16_224", {"size": 200}),
    ("vit_base_patch16_224", {"size": {"height": 100, "width": 301}}),
    ("vit_base_patch16_224", {"size": {"shortest_edge": 256}, "do_center_crop": True, "crop_size": {"height": 224, "width": 201}}),
    ("vit_base_patch16_224", {"rescale_factor": 1 / 127.5}),
    ("vit_base_patch16_224", {"do_normalize": False}),
    ("vit_base_patch16_224", {"do_normalize": False, "rescale_factor": 1 / 100}),
    ("vit_base_patch16_224", {"do_normalize": False, "do_rescale": False}),
    ("vit_base_patch16_224", {"do_rescale": False, "image_mean": [120.0, 110.0, 100.0], "image_std": [60.0, 61.0, 62.0]}),
    ("llava_v1_6_mistral_7b", {"size": {"height": 100, "width": 100}, "crop_size": 100, "image_grid_pinpoints": PINPOINTS}),
    ("llava_v1_6_mistral_7b", {"do_normalize": False, "rescale_factor": 1 / 127.5}),
    ("llava_v1_6_mistral_7b", {"do_normalize": False, "do_rescale": False}),
    ("qwen2_vl_7b", {"patch_size": 16, "merge_size": 1, "temporal_patch_size": 1}),
    ("qwen2_vl_7b", {"patch_size": 8, "merge_size": 3}),
    ("idefics2_8b", {"size": {"shortest_edge": 50, "longest_edge": 300}}),
    ("idefics2_8b", {"size": {"height": 90, "width": 70}}),
    ("internvl3_1b", {"crop_to_patches": True, "size": {"height": 100, "width": 60}}),
]


CHUNK = 6 if ROOMY else 1  # images in a call: padded to a common size, many of them would take gigabytes


def check(client: millrace.Client, config: dict[str, Any], images: list[Any]) -> None:
    with ImageProcessor.from_config(config, client=client, slots=3 if ROOMY else 1) as processor:
        for at in range(0, len(images), CHUNK):
            check_call(processor, config, images[at : at + CHUNK])


def check_call(processor: ImageProcessor, config: dict[str, Any], images: list[Any]) -> None:
    wanted, got = theirs(config, images), processor(images)
    assert sorted(got) == sorted(wanted)
    for key, array in wanted.items():
        assert got[key].shape == array.shape, key
        if key != "pixel_values":
            np.testing.assert_array_equal(got[key], array)
            continue
        assert got[key].dtype == array.dtype
        assert difference(got[key], array).largest <= TOLERANCE * max(1.0, float(np.abs(array).max()))


@pytest.mark.parametrize(("name", "changes"), but(SHORT, FAMILIES))
def test_a_family_gives_what_transformers_gives(client: millrace.Client, pictures: list[Path], name: str, changes: dict[str, Any]) -> None:
    check(client, {**example(name), **changes}, pictures)


@pytest.mark.parametrize(("name", "changes"), but(SHORT[:1], [(name, changes) for name, changes in FAMILIES if ROOMY or not changes]))
def test_torchvisions_processors_are_as_near_as_the_readme_says(
    client: millrace.Client, made: list[Path], name: str, changes: dict[str, Any]
) -> None:
    pytest.importorskip("torchvision", reason="the processors that AutoImageProcessor gives by default are not compared with")
    config = {**example(name), **changes}
    with ImageProcessor.from_config(config, client=client, slots=1) as processor:
        for path in made:
            got, wanted = processor([path], copy=True), theirs(config, [path], "torchvision")
            apart = difference(got["pixel_values"], wanted["pixel_values"])
            assert apart.largest <= 0.5, path.name
            assert apart.mean <= MEAN_OF_TORCHVISION, path.name
            assert all(np.array_equal(got[key], wanted[key]) for key in wanted.keys() - {"pixel_values"})


@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.json")))
def test_a_configuration_that_transformers_has_read_and_saved_gives_the_same(
    client: millrace.Client, made: list[Path], tmp_path: Path, name: str
) -> None:
    (tmp_path / "read").mkdir()
    (tmp_path / "read" / "preprocessor_config.json").write_text((EXAMPLES / f"{name}.json").read_text())
    AutoImageProcessor.from_pretrained(tmp_path / "read", backend="pil").save_pretrained(tmp_path / "saved")

    with (
        ImageProcessor.from_config(tmp_path / "read", client=client, slots=1) as as_read,
        ImageProcessor.from_config(tmp_path / "saved", client=client, slots=1) as as_saved,
    ):
        assert as_saved.recipe == as_read.recipe
        for image in (made[5], made[-1]):
            before, after = as_read([image], copy=True), as_saved([image], copy=True)
            assert before.keys() == after.keys()
            for key, array in before.items():
                np.testing.assert_array_equal(after[key], array)


@pytest.mark.parametrize(("name", "changes"), but(VARIANTS[::4], VARIANTS))
def test_rare_values_give_what_transformers_gives(client: millrace.Client, made: list[Path], name: str, changes: dict[str, Any]) -> None:
    check(client, {**example(name), **changes}, made)


def test_idefics2_takes_rows_of_images(client: millrace.Client, made: list[Path]) -> None:
    check(client, example("idefics2_8b"), [made[-1:], made[-4:-1], made[6:8]])
