"""Every class of transformers' image processors: supported, with the same results, or refused with a reason."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import millrace
import numpy as np
import pytest
from millrace.hf import ImageProcessor
from millrace.hf._families.families import FAMILIES
from millrace.hf._families.refusals import REFUSED
from numpy.typing import NDArray
from PIL import Image

from peers import EXAMPLES, made_by
from pictures import scenery
from processors_table import counts, table
from roster import BOUNDS, DEFAULTS, OLDER_NAMES, VARIATIONS, classes, processor_class

SIZES = ((201, 130), (97, 131), (320, 90), (64, 64), (20, 31))
TOLERANCE = 1e-6
"""Of pixel_values, in units of the largest of them."""

CASES = [(name, changes) for name in sorted(FAMILIES) if name not in OLDER_NAMES for changes in [DEFAULTS.get(name, {}), *VARIATIONS[name]]]
FIRST = {name: variations[0] for name, variations in VARIATIONS.items()}
"""Of every class one case, with small tensors."""


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("small")
    paths = []
    for number, (width, height) in enumerate(SIZES):
        paths.append(folder / f"{number}.{'jpg' if number % 2 else 'png'}")
        Image.fromarray(scenery(width, height, number)).save(paths[-1])
    return paths


@pytest.fixture(scope="module")
def client(small: list[Path]) -> Any:
    with millrace.serve([str(small[0].parent)], lanes=2) as daemon, millrace.connect(daemon.address) as connected:
        yield connected


def test_every_class_is_supported_or_refused_with_a_reason() -> None:
    known = FAMILIES.keys() | REFUSED.keys()
    assert sorted(classes().keys() - known) == [], "classes of transformers that millrace.hf neither supports nor refuses by name"
    assert sorted(known - classes().keys() - OLDER_NAMES.keys()) == []
    assert not FAMILIES.keys() & REFUSED.keys()
    assert all(len(reason) > 10 for reason in REFUSED.values())
    assert len(FAMILIES.keys() - OLDER_NAMES.keys()) >= 70


def test_the_page_says_what_is_so() -> None:
    page = (EXAMPLES.parents[1] / "doc" / "processors.md").read_text()
    assert page.endswith(f"{counts()}\n\n{table()}\n"), "print it anew with tests/hf/tables/processors_table.py"


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_refusal_says_why(name: str) -> None:
    with pytest.raises(millrace.Unsupported, match=f"{name}ImageProcessor is not supported: "):
        ImageProcessor.from_config({"image_processor_type": f"{name}ImageProcessor"})


@pytest.mark.parametrize(("name", "older"), [(name, older) for older, name in OLDER_NAMES.items()])
def test_an_older_name_is_the_same_class(name: str, older: str) -> None:
    assert FAMILIES[older] == FAMILIES[name]


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        pytest.param(name, changes, id=f"{name}-{n}", marks=[] if changes is FIRST[name] else pytest.mark.long)
        for n, (name, changes) in enumerate(CASES)
    ],
)
def test_a_class_gives_what_transformers_gives(client: millrace.Client, small: list[Path], name: str, changes: dict[str, Any]) -> None:
    if classes()[name].pil is None and importlib.util.find_spec("torchvision") is None:
        pytest.skip("the classes that only torchvision has: there is no torchvision")
    theirs = processor_class(name)(**changes)
    written = theirs.to_dict()
    assert written["image_processor_type"].removesuffix("Pil") == f"{name}ImageProcessor"

    with ImageProcessor.from_config(written, client=client, slots=1) as ours:
        compared = 0
        for paths in [*([path] for path in small), small] if changes else [small[:1], small[2:3], small[:2]]:
            try:
                wanted = made_by(theirs, paths)
            except (ValueError, ZeroDivisionError, AssertionError):  # a picture that is too small, or sizes that make no one array
                with pytest.raises((millrace.InvalidRequest, millrace.SampleFailed)):
                    ours(paths, copy=True)
                continue
            compare(ours(paths), wanted, name)
            compared += 1
    assert compared >= 2


WRITTEN = {
    "Detr": {"feature_extractor_type": "DetrFeatureExtractor", "size": 90, "max_size": 120, "format": "coco_detection"},
    "Yolos": {"feature_extractor_type": "YolosFeatureExtractor", "size": 90, "max_size": 120, "format": "coco_detection"},
    "MaskFormer": {"size": 90, "max_size": 120, "size_divisor": 16, "do_reduce_labels": True, "ignore_index": 255},
    "DPT": {"size": 84, "keep_aspect_ratio": True, "ensure_multiple_of": 14},
    "Pixtral": {"size": {"longest_edge": 100}, "patch_size": 14},
    "ConvNext": {"feature_extractor_type": "ConvNextFeatureExtractor", "size": 90, "crop_pct": 0.95},
    "Beit": {"feature_extractor_type": "BeitFeatureExtractor", "size": 90, "crop_size": 80, "do_center_crop": True},
    "Levit": {"size": 90, "crop_size": 80},
    "Qwen2VL": {"min_pixels": 3136, "max_pixels": 50176},
}
"""As published files write it: other names, bare numbers."""


@pytest.mark.parametrize("name", sorted(WRITTEN))
def test_an_older_way_of_writing_a_configuration_is_understood(client: millrace.Client, small: list[Path], name: str) -> None:
    written = WRITTEN[name]
    theirs = processor_class(name)(**written)
    with ImageProcessor.from_config({"image_processor_type": f"{name}ImageProcessor", **written}, client=client, slots=1) as ours:
        for path in small[:2]:
            compare(ours([path]), made_by(theirs, [path]), name)


@pytest.mark.parametrize(
    ("name", "changes", "key"),
    [
        ("RTDetr", {"size": 640}, "size"),
        ("Mask2Former", {"max_size": 900}, "max_size"),
        ("Detr", {"size": {"shortest_edge": 800}}, "size"),
        ("Gemma3", {"do_pan_and_scan": True}, "do_pan_and_scan"),
        ("LayoutLMv3", {}, "apply_ocr"),
        ("SuperPoint", {"do_grayscale": True}, "do_grayscale"),
        ("Aria", {"split_image": True}, "split_image"),
        ("Flava", {"return_image_mask": True}, "return_image_mask"),
        ("DPT", {"do_pad": True}, "do_pad"),
        ("Sam", {"do_resize": False}, "do_resize"),
        ("ConvNext", {"do_center_crop": True}, "do_center_crop"),
        ("GLPN", {"do_reduce_labels": True}, "do_reduce_labels"),
        ("Mllama", {"do_pad": False}, "do_pad"),
        ("Bit", {"size_divisor": 32}, "size_divisor"),
    ],
)
def test_what_a_class_does_not_support_is_refused_by_its_key(name: str, changes: dict[str, Any], key: str) -> None:
    with pytest.raises(millrace.Unsupported, match=f"key {key}: "):
        ImageProcessor.from_config({"image_processor_type": f"{name}ImageProcessor", **changes})


@pytest.mark.parametrize("name", ["Detr", "Pixtral", "Siglip2", "Mllama", "LlavaOnevision", "Glm4v", "Janus", "MobileViT"])
def test_bfloat16_is_float32_rounded(client: millrace.Client, small: list[Path], name: str) -> None:
    from ml_dtypes import bfloat16

    config = {"image_processor_type": f"{name}ImageProcessor", **VARIATIONS[name][0]}
    with (
        ImageProcessor.from_config(config, client=client, slots=1) as exact,
        ImageProcessor.from_config(config, client=client, slots=1, dtype="bfloat16") as rounded,
    ):
        wanted = exact(small[:1])["pixel_values"].astype(bfloat16)
        np.testing.assert_array_equal(rounded(small[:1])["pixel_values"].view(np.uint16), wanted.view(np.uint16))


@pytest.mark.parametrize("name", ["Aria", "Mllama", "OneFormer", "Siglip2", "Sam"])
def test_what_comes_beside_the_pixels_is_pytorchs_too(client: millrace.Client, small: list[Path], name: str) -> None:
    torch = pytest.importorskip("torch", reason="tensors of PyTorch")
    config = {"image_processor_type": f"{name}ImageProcessor", **VARIATIONS[name][0]}
    with ImageProcessor.from_config(config, client=client, slots=1) as processor:
        arrays, tensors = processor(small[:2]), processor(small[:2], return_tensors="pt")
    for key, array in arrays.items():
        if isinstance(array, list):
            assert tensors[key] == array
        else:
            assert isinstance(tensors[key], torch.Tensor)
            np.testing.assert_array_equal(tensors[key].numpy(), array)


def compare(got: millrace.hf.Features, wanted: dict[str, Any], name: str) -> None:
    assert sorted(got) == sorted(wanted)
    for key, value in wanted.items():
        if isinstance(value, list):
            assert got[key] == value, key
        elif key == "pixel_values":
            compare_pixels(got[key], value, name)
        else:
            assert got[key].dtype == value.dtype, key
            np.testing.assert_array_equal(got[key], value, err_msg=key)


def compare_pixels(got: NDArray[Any], wanted: NDArray[Any], name: str) -> None:
    assert got.shape == wanted.shape
    apart = np.abs(np.asarray(got, np.float64) - np.asarray(wanted, np.float64))
    if classes()[name].pil is None:
        assert apart.max() <= BOUNDS[name].largest
        assert apart.mean() <= BOUNDS[name].mean
        return
    assert got.dtype == wanted.dtype
    assert apart.max() <= TOLERANCE * max(1.0, float(np.abs(wanted).max()))
