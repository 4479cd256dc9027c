"""Settings and images with which a result could silently be another one than transformers': it is equal, or refused by name."""

from __future__ import annotations

import copy
import io
import logging
import threading
from collections.abc import Callable
from typing import Any

import millrace
import numpy as np
import pytest
from millrace.hf import ImageProcessor, drop_in, from_pretrained
from millrace.hf._families.families import FAMILIES, converts, is_taken_as_it_is
from millrace.serving.settings import Settings
from millrace.serving.takeover import taken_over
from millrace.serving.upload import opened
from PIL import Image, ImageDraw

from folders import assert_same
from pictures import scenery
from roster import BOUNDS, DEFAULTS, OLDER_NAMES, classes, processor_class

EQUAL = sorted(FAMILIES.keys() - OLDER_NAMES.keys() - BOUNDS.keys())
"""The classes that have a PIL backend."""


@pytest.fixture(scope="module")
def client() -> Any:
    with millrace.serve([], lanes=1) as daemon, millrace.connect(daemon.address) as connected:
        yield connected


def picture(width: int = 150, height: int = 100, seed: int = 1) -> Image.Image:
    return Image.fromarray(scenery(width, height, seed))


def config(name: str, **changes: Any) -> dict[str, Any]:
    return {"image_processor_type": f"{name}ImageProcessor", **DEFAULTS.get(name, {}), **changes}


def theirs(name: str, **changes: Any) -> Any:
    return processor_class(name)(**{**DEFAULTS.get(name, {}), **changes})


# -------------------------------------------------------------------------------------------------- what comes out


@pytest.mark.parametrize("name", EQUAL)
def test_a_class_gives_its_keys_in_its_order_and_as_what_it_gives_them(client: millrace.Client, name: str) -> None:
    raw = {"do_rescale": False, "do_normalize": False}
    with from_pretrained(config(name), client=client, slots=1) as ours:
        for options in ({}, raw):
            for kind in ("np", None):
                assert_alike(ours(picture(), return_tensors=kind, **options), theirs(name)(picture(), return_tensors=kind, **options))
    with ImageProcessor.from_config(config(name), client=client, slots=1) as plain:
        made = theirs(name)(picture(), return_tensors="np", **raw)
        assert plain(picture(), **raw)["pixel_values"].dtype == (made if not hasattr(made, "keys") else made["pixel_values"]).dtype


def assert_alike(got: Any, wanted: Any) -> None:
    """The same keys in the same order; down to the arrays of lists the same kinds."""
    if not hasattr(wanted, "keys"):
        got, wanted = {"pixel_values": got}, {"pixel_values": wanted}
    assert list(got.keys()) == list(wanted.keys())
    for key in wanted.keys():  # noqa: SIM118 (a BatchFeature)
        one, other = got[key], wanted[key]
        while True:
            assert type(one) is type(other), key
            if not isinstance(other, (list, tuple)) or not other:
                break
            assert len(one) == len(other)
            one, other = one[0], other[0]
        if isinstance(other, np.ndarray):
            assert (one.shape, one.dtype) == (other.shape, other.dtype), key


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("BridgeTower", {"do_center_crop": False}),
        ("Ovis2", {"crop_to_patches": True}),
        ("Pixtral", {"do_pad": False}),
        ("RTDetr", {"do_pad": True}),
    ],
)
def test_so_it_is_with_other_settings(client: millrace.Client, name: str, changes: dict[str, Any]) -> None:
    with from_pretrained(config(name, **changes), client=client, slots=1) as ours:
        for kind in ("np", None):
            assert_alike(ours(picture(), return_tensors=kind), theirs(name, **changes)(picture(), return_tensors=kind))


def test_which_classes_convert_is_what_they_say() -> None:
    for name in FAMILIES.keys() - OLDER_NAMES.keys():
        said = bool(getattr(processor_class(name), "do_convert_rgb", False)) if classes()[name].pil else None
        if said is not None and not is_taken_as_it_is(f"{name}ImageProcessor"):
            assert converts(f"{name}ImageProcessor") == said, name


# ------------------------------------------------------------------------------------------------------------ nulls

NULLS = [
    ("CLIP", {"do_normalize": None}),
    ("CLIP", {"do_rescale": None}),
    ("Bit", {"do_resize": None}),
    ("CLIP", {"do_convert_rgb": None}),
    ("Siglip", {"do_normalize": None}),
    ("DeiT", {"do_center_crop": None}),
    ("Perceiver", {"do_center_crop": None}),
    ("BridgeTower", {"do_center_crop": None}),
    ("BridgeTower", {"do_pad": None}),
    ("Sam", {"do_pad": None}),
    ("Sam", {"pad_size": None}),
    ("DeepseekVL", {"do_pad": None}),
    ("Detr", {"do_pad": None}),
    ("EfficientNet", {"do_normalize": None}),
    ("Gemma4", {"do_rescale": None}),
    ("Qwen2VL", {"do_normalize": None}),
    ("Siglip", {"crop_size": None}),
    ("Siglip", {"pad_size": None}),
]


@pytest.mark.parametrize(
    ("name", "changes"), [pytest.param(*case, marks=[pytest.mark.long] if n % 3 else []) for n, case in enumerate(NULLS)]
)
def test_null_switches_off_as_in_transformers(client: millrace.Client, name: str, changes: dict[str, Any]) -> None:
    image = picture(400, 300)
    wanted = theirs(name, **changes)(image, return_tensors="np")
    usual = theirs(name)(image, return_tensors="np")
    with from_pretrained(config(name, **changes), client=client, slots=1) as ours:
        assert_near(ours(image, return_tensors="np"), wanted)
    with from_pretrained(config(name), client=client, slots=1) as ours:
        assert_near(ours(image, return_tensors="np", copy=True, **changes), wanted)
        for key in changes:
            setattr(ours, key, None)
        assert_near(ours(image, return_tensors="np", copy=True), wanted)
    with ImageProcessor.from_config(config(name, **changes), client=client, slots=1) as plain:
        assert_near(plain(image), wanted)
    with ImageProcessor.from_config(config(name), client=client, slots=1) as plain:
        assert_near(plain(image, copy=True, **changes), wanted)
        assert_near(plain(image), usual)
    served = taken_over(theirs(name, **changes), Settings("required", client.path, timeout=300), logging.getLogger("a server's"))
    assert_near(served(image, return_tensors="np"), wanted)


def assert_near(got: Any, wanted: Any) -> None:
    """The same keys, and the same numbers within the tolerance of the other tests."""
    assert list(got.keys()) == list(wanted.keys())
    for key in wanted.keys():  # noqa: SIM118 (a BatchFeature)
        assert got[key].shape == wanted[key].shape
        largest = max(1.0, float(np.abs(wanted[key]).max()))
        np.testing.assert_allclose(np.asarray(got[key], float), np.asarray(wanted[key], float), rtol=0, atol=1e-6 * largest, err_msg=key)


def test_null_for_a_flag_of_ones_own_is_off_too(client: millrace.Client) -> None:
    for name, key in (("MobileViT", "do_flip_channel_order"), ("EfficientNet", "include_top")):
        with from_pretrained(config(name, **{key: None}), client=client, slots=1) as ours:
            assert_near(ours(picture(), return_tensors="np"), theirs(name, **{key: None})(picture(), return_tensors="np"))


@pytest.mark.parametrize(
    ("name", "key"), [("CLIP", "image_mean"), ("CLIP", "size"), ("CLIP", "crop_size"), ("ViT", "resample"), ("Qwen2VL", "patch_size")]
)
def test_null_where_something_is_needed_is_refused(client: millrace.Client, name: str, key: str) -> None:
    with pytest.raises(millrace.InvalidRequest, match=f"key {key}: is null, and .* needs it"):
        ImageProcessor.from_config(config(name, **{key: None}))


def test_null_leaves_the_bounds_of_pixels_as_they_are(client: millrace.Client) -> None:
    with ImageProcessor.from_config(config("Qwen2VL", max_pixels=20_000, min_pixels=None), client=client) as plain:
        wanted = plain(picture(), copy=True)["image_grid_thw"]
        np.testing.assert_array_equal(plain(picture(), max_pixels=None)["image_grid_thw"], wanted)


# ----------------------------------------------------------------------------------------- what a class does not look at

BOTH = {"shortest_edge": 60, "longest_edge": 100}
NOT_LOOKED_AT = [
    *[("HunYuanVL", {"resample": resample}, {}) for resample in (0, 1, 2)],
    ("HunYuanVL", {}, {"resample": 1}),
    *[(name, {"min_pixels": 3136, "max_pixels": 20_000}, {}) for name in ("Ernie4_5_VLMoe", "Glm46V", "Glm4v", "Glmga", "Cosmos3Edge")],
    ("OneFormer", {"size": BOTH, "pad_size": {"height": 130, "width": 135}}, {}),
    ("OneFormer", {"size": BOTH}, {"pad_size": {"height": 130, "width": 135}}),
    ("SegGpt", {"do_center_crop": True, "crop_size": {"height": 50, "width": 50}}, {}),
    ("Janus", {}, {"image_mean": [0.1, 0.5, 0.9]}),
    ("DeepseekVL", {}, {"image_mean": [0.1, 0.5, 0.9]}),
    ("DeepseekVL", {"image_mean": [0.2, 0.3, 0.4]}, {"image_std": [0.1, 0.5, 0.9]}),
]


@pytest.mark.parametrize(("name", "changes", "overrides"), NOT_LOOKED_AT)
def test_what_a_class_does_not_look_at_changes_nothing(
    client: millrace.Client, name: str, changes: dict[str, Any], overrides: dict[str, Any]
) -> None:
    image = picture(500, 333)
    wanted = theirs(name, **changes)(image, return_tensors="np", **overrides)
    for made in (from_pretrained, ImageProcessor.from_config):
        with made(config(name, **changes), client=client, slots=1) as ours:
            np.testing.assert_array_equal(ours(image, return_tensors="np", **overrides)["pixel_values"], wanted["pixel_values"])


def test_the_colour_of_padding_is_an_attribute(client: millrace.Client) -> None:
    own = theirs("Janus")
    with from_pretrained(config("Janus"), client=client, slots=1) as ours:
        for processor in (ours, own):
            processor.background_color = (200, 10, 0)
        assert_same(ours(picture(), return_tensors="np"), own(picture(), return_tensors="np"))
        ours.image_mean = own.image_mean = (0.1, 0.5, 0.9)
        assert_same(ours(picture(), return_tensors="np"), own(picture(), return_tensors="np"))


@pytest.mark.parametrize("mode", ["YCbCr", "HSV", "LAB"])
@pytest.mark.parametrize(
    ("name", "options"), [("SegGpt", {}), ("SegGpt", {"do_convert_rgb": True}), ("PromptDepthAnything", {"do_convert_rgb": True})]
)
def test_classes_that_convert_nothing_take_three_channels_as_they_are(
    client: millrace.Client, name: str, options: dict[str, Any], mode: str
) -> None:
    image = picture().convert(mode)
    wanted = theirs(name)(image, return_tensors="np", **options)
    for made in (from_pretrained, ImageProcessor.from_config):
        with made(config(name), client=client, slots=1) as ours:
            np.testing.assert_array_equal(ours(image, return_tensors="np", **options)["pixel_values"], wanted["pixel_values"])
            for other in ("L", "RGBA", "P"):
                with pytest.raises(millrace.InvalidRequest, match=f"convert it to RGB, which {name}ImageProcessor does not do"):
                    ours(picture().convert(other), **options)


# ------------------------------------------------------------------------------------------------------- what is refused

REFUSED: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("Glm4v", {}, {"max_pixels": 20_000}, "key max_pixels: this processor does not look at it: give `size`"),
    ("LlavaOnevision", {"crop_size": {"height": 60, "width": 33}}, {}, "key crop_size: is the side of tiles"),
    ("LlavaOnevision", {}, {"crop_size": {"height": 60, "width": 60}}, "key crop_size: is the side of tiles"),
    ("Janus", {}, {"resample": 0}, "key resample: 0 in a call is taken for none"),
    ("CLIP", {"image_mean": [0.5]}, {}, "key image_mean: must have one number for each of three channels"),
    ("CLIP", {}, {"image_std": (0.5,)}, "key image_std: must have one number for each of three channels"),
    ("CLIP", {"resample": "bilinear"}, {}, "key resample: must be one of"),
    ("Idefics2", {"size": 300}, {}, "key size: this processor understands"),
    ("Sam", {"size": 300}, {}, "key size: this processor understands"),
    ("Mllama", {"max_image_tiles": 10**9}, {}, "key max_image_tiles: must be at most 1024"),
    ("GotOcr2", {"crop_to_patches": True, "max_patches": 10**9}, {}, "key max_patches: must be at most 1024"),
    ("Siglip2", {"max_num_patches": 2**63}, {}, "key max_num_patches: must be at most"),
    ("CLIP", {"rescale_factor": 1e-308}, {}, "key rescale_factor: must be a number above 0"),
    ("MaskFormer", {"pad_size": {"height": 10**9, "width": 10**9}}, {}, "there is no memory to pad them"),
    ("CLIP", {"image_mean": [0.5, 0.5, float("inf")]}, {}, "key image_mean: must hold numbers"),
]


@pytest.mark.parametrize(("name", "changes", "overrides", "words"), REFUSED)
def test_what_would_be_another_result_is_refused_by_its_key(
    client: millrace.Client, name: str, changes: dict[str, Any], overrides: dict[str, Any], words: str
) -> None:
    def call() -> None:
        with ImageProcessor.from_config(config(name, **changes), client=client, slots=1) as plain:
            plain(picture(), **overrides)

    with pytest.raises((millrace.Unsupported, millrace.InvalidRequest), match=words):
        call()


def test_a_call_without_a_filter_takes_the_processors(client: millrace.Client) -> None:
    for changes, resample in (({"resample": 0}, 0), ({"resample": 2}, 2)):
        with from_pretrained(config("Janus", **changes), client=client, slots=1) as ours:
            wanted = theirs("Janus", **changes)(picture(), return_tensors="np", resample=resample)
            assert_same(ours(picture(), return_tensors="np", resample=resample), wanted)
        with ImageProcessor.from_config(config("Janus", **changes), client=client, slots=1) as plain:
            np.testing.assert_array_equal(plain(picture(), resample=resample)["pixel_values"], wanted["pixel_values"])
    with from_pretrained(config("Janus"), client=client, slots=1) as ours, pytest.raises(millrace.Unsupported, match="key resample: 0"):
        ours(picture(), resample=0)


def test_many_tiles_are_chosen_in_no_time(client: millrace.Client) -> None:
    with ImageProcessor.from_config(config("Mllama", max_image_tiles=1000, size={"height": 8, "width": 8}), client=client) as plain:
        assert plain(picture(30, 20), timeout=300)["aspect_ratio_ids"].shape == (1, 1)


def test_rows_of_several_images_are_refused_where_they_are_something_else(client: millrace.Client) -> None:
    image, other = picture(), picture(seed=2)
    with from_pretrained(config("LlavaOnevision"), client=client, slots=1) as ours:
        for images in ([image, other], [[image], [other]], [[image], [], [other]]):
            assert_same(ours(images, return_tensors="np"), theirs("LlavaOnevision")(images, return_tensors="np"))
        for images, row in (([[image, other]], 0), ([[image], [image, other]], 1)):
            with pytest.raises(millrace.InvalidRequest, match=rf"images\[{row}\]: is a row of 2 images"):
                ours(images)


def test_images_that_mean_nothing_certain_are_refused(client: millrace.Client) -> None:
    with (
        ImageProcessor.from_config(config("CLIP"), client=client) as plain,
        pytest.raises(millrace.InvalidRequest, match="array of bool"),
    ):
        plain(np.ones((8, 9, 3), bool))
    with (
        ImageProcessor.from_config(config("Perceiver"), client=client) as plain,
        pytest.raises(millrace.InvalidRequest, match=r"images\[0\]: of 1 x 40 pixels: the share of it that is cut out has none"),
    ):
        plain(picture(1, 40))


# ------------------------------------------------------------------------------------------------- images that are edited


def _all_pixels(image: Image.Image) -> None:
    access = image.load()
    for x in range(60):
        for y in range(60):
            access[x, y] = (0, 255, 0)


EDITS: dict[str, Callable[[Image.Image], Any]] = {
    "putpixel": lambda image: [image.putpixel((x, y), (255, 0, 0)) for x in range(50) for y in range(50)],
    "paste": lambda image: image.paste((0, 0, 255), (0, 0, 80, 80)),
    "thumbnail": lambda image: image.thumbnail((30, 30)),
    "ImageDraw": lambda image: ImageDraw.Draw(image).rectangle((0, 0, 80, 80), fill=(1, 2, 3)),
    "putalpha": lambda image: image.putalpha(100),
    "putdata": lambda image: image.putdata([(9, 9, 9)] * (image.width * image.height)),
    "frombytes": lambda image: image.frombytes(b"\1" * (image.width * image.height * 3)),
    "load()[x, y] =": _all_pixels,
    "nothing": lambda image: None,
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_of_a_fetched_or_uploaded_image_counts(client: millrace.Client, edit: str) -> None:
    file = io.BytesIO()
    picture().save(file, "JPEG", quality=95)
    content = file.getvalue()
    own = theirs("CLIP")
    served = taken_over(own, Settings("required", client.path, timeout=300), logging.getLogger("a server's"))
    edited = Image.open(io.BytesIO(content)).convert("RGB")
    EDITS[edit](edited)
    wanted = own(edited, return_tensors="np")
    with from_pretrained(config("CLIP"), client=client) as ours:
        for processor, image in ((ours, ours.fetch_images(content)), (served, opened(content))):
            EDITS[edit](image)
            assert_same(processor(image, return_tensors="np"), wanted)
            assert_same(processor(copy.copy(image), return_tensors="np"), wanted)


# ------------------------------------------------------------------------------------- attributes of a drop-in, remembered


def test_an_attribute_may_be_an_array(client: millrace.Client) -> None:
    own = theirs("CLIP")
    with from_pretrained(config("CLIP"), client=client) as ours:
        for value in (np.array([0.4, 0.5, 0.6]), [np.float32(0.4)] * 3, [0.4, 0.5, 0.6], own.image_mean):
            ours.image_mean = own.image_mean = value
            for _ in range(2):
                assert_same(ours(picture(), return_tensors="np", copy=True), own(picture(), return_tensors="np"))


def test_another_threads_edit_during_a_call_is_not_remembered(client: millrace.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    scale = {"rescale_factor": 1 / 256}
    wanted = theirs("CLIP")(picture(), return_tensors="np", **scale)
    settings = drop_in.Remembering._settings
    asked, edited = threading.Event(), threading.Event()

    def slow(self: Any, options: dict[str, Any]) -> dict[str, Any]:
        asked.set()
        assert edited.wait(300)
        return settings(self, options)

    with from_pretrained(config("CLIP"), client=client) as ours:
        ours(picture())
        monkeypatch.setattr(drop_in.Remembering, "_settings", slow)
        thread = threading.Thread(target=lambda: ours(picture(), return_tensors="np", **scale))
        thread.start()
        assert asked.wait(300)
        ours.do_normalize = False
        edited.set()
        thread.join()
        ours.do_normalize = True
        monkeypatch.setattr(drop_in.Remembering, "_settings", settings)
        assert_near(ours(picture(), return_tensors="np", **scale), wanted)
