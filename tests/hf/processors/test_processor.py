"""How a processor behaves: what it takes, whose memory its results are, what goes wrong and how it says so."""

from __future__ import annotations

import io
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import millrace
import numpy as np
import pytest
from millrace.hf import ImageProcessor
from PIL import Image

from peers import example, theirs
from pictures import scenery
from room import needs_room

QWEN = {"image_processor_type": "Qwen2VLImageProcessor"}
CLIP = {"image_processor_type": "CLIPImageProcessor"}

NEXT = {**CLIP, "image_processor_type": "LlavaNextImageProcessor", "size": 336, "crop_size": 336}


@needs_room
def test_bytes_give_what_paths_give_also_when_they_do_not_fit_a_message(client: millrace.Client, made: list[Path]) -> None:
    large = [path for path in made if path.suffix == ".png"]
    encoded = [path.read_bytes() for path in large]
    assert sum(map(len, encoded)) > 1 << 20
    config = {**example("internvl3_1b"), "crop_to_patches": True}

    with ImageProcessor.from_config(config, client=client) as processor:
        by_path = processor(large, copy=True)
        by_bytes = processor(encoded, copy=True)
        one_by_one = [processor(one, copy=True) for one in encoded]

    np.testing.assert_array_equal(by_path.pixel_values, by_bytes.pixel_values)
    np.testing.assert_array_equal(by_path.pixel_values, np.concatenate([one.pixel_values for one in one_by_one]))
    np.testing.assert_array_equal(by_path.num_patches, np.concatenate([one.num_patches for one in one_by_one]))


def test_a_configuration_is_read_from_a_file_its_folder_or_a_processors_part(tmp_path: Path) -> None:
    file = tmp_path / "preprocessor_config.json"
    file.write_text(json.dumps(example("qwen2_vl_7b")))
    whole = {"processor_class": "Qwen2VLProcessor", "image_processor": example("qwen2_vl_7b")}

    recipes = [ImageProcessor.from_config(config).recipe for config in (file, tmp_path, str(file), whole, example("qwen2_vl_7b"))]

    assert len(set(recipes)) == 1
    assert recipes[0].patches == millrace.Patches(millrace.Size(14, 14), merge=2, temporal=2)


@needs_room
def test_results_are_views_that_stay_what_they_were(client: millrace.Client, made: list[Path]) -> None:
    with ImageProcessor.from_config(QWEN, client=client, slots=2) as processor:
        first = processor(made[:1])
        before = first.pixel_values.copy()
        for path in made[1:6]:
            processor([path])

    assert not first.pixel_values.flags.owndata
    assert first.pixel_values.flags.writeable
    np.testing.assert_array_equal(first.pixel_values, before)


@needs_room
def test_tiles_are_copied_only_where_an_image_has_one_tile(client: millrace.Client, made: list[Path]) -> None:
    config = {**example("internvl3_1b"), "crop_to_patches": True}
    single, wide = made[0], made[4]  # 448 x 448, 1000 x 301
    with ImageProcessor.from_config(config, client=client) as processor:
        tiled, mixed = processor([wide]), processor([single, wide])

    assert tiled.num_patches.tolist() == [4]
    assert not tiled.pixel_values.flags.owndata
    assert mixed.num_patches.tolist() == [1, 4]
    assert mixed.pixel_values.flags.owndata
    np.testing.assert_array_equal(mixed.pixel_values[1:], tiled.pixel_values)


@pytest.mark.parametrize("return_tensors", ["np", "pt"])
def test_results_may_be_written_to_and_later_ones_do_not_show_it(client: millrace.Client, made: list[Path], return_tensors: Any) -> None:
    if return_tensors == "pt":
        pytest.importorskip("torch")
    with ImageProcessor.from_config(CLIP, client=client, slots=2) as processor:
        expected = processor(made[:1], copy=True).pixel_values
        for _ in range(4):
            pixels = processor(made[:1], return_tensors=return_tensors).pixel_values
            np.testing.assert_array_equal(np.asarray(pixels), expected)
            pixels -= 1
            pixels[0, 1] = 7
            del pixels


def test_results_that_are_kept_never_stop_calls(client: millrace.Client, made: list[Path]) -> None:
    with ImageProcessor.from_config(CLIP, client=client, slots=3) as processor:
        copies = [processor(made[:1], copy=True) for _ in range(4)]
        kept = [processor(made[:1]) for _ in range(8)]

    for features in (*copies, *kept):
        np.testing.assert_array_equal(features.pixel_values, copies[0].pixel_values)
    assert all(features.pixel_values.flags.writeable for features in copies)
    views = [not features.pixel_values.flags.owndata for features in kept]
    assert views == [True, True, *[False] * 6]  # the last slot is nobody's


@needs_room
def test_slots_grow_with_what_they_must_hold(client: millrace.Client, made: list[Path]) -> None:
    config = {**QWEN, "min_pixels": 4_000_000, "max_pixels": 5_000_000}  # over 96 MB an image, as float32
    with ImageProcessor.from_config(config, client=client) as processor:
        few = processor(made[:1], copy=True)
        more = processor(made[:2], copy=True)

    assert few.pixel_values.nbytes > 90_000_000
    np.testing.assert_array_equal(more.pixel_values[: len(few.pixel_values)], few.pixel_values)


def test_slots_grow_by_little_more_than_they_must(client: millrace.Client, made: list[Path]) -> None:
    config = {**QWEN, "min_pixels": 600_000, "max_pixels": 10_000_000}
    with ImageProcessor.from_config(config, client=client, slots=1) as processor:
        bytes_of_one = processor(made[-1:], copy=True).pixel_values.nbytes
        session = processor._workshop._session
        assert session is not None
        assert bytes_of_one > 8 << 20
        assert session.slot_bytes < 1.3 * bytes_of_one


def test_slots_of_a_given_size_do_not_grow(client: millrace.Client, made: list[Path]) -> None:
    with (
        ImageProcessor.from_config(QWEN, client=client, slot_bytes=100_000) as processor,
        pytest.raises(millrace.ResourceExhausted, match="slot_bytes of at least"),
    ):
        processor(made[:1])


def test_the_bound_of_a_smart_resize_is_one(made: list[Path]) -> None:
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import smart_resize

    random = np.random.default_rng(3)
    for _ in range(3000):
        factor, least = int(random.integers(1, 100)), int(random.integers(1, 100_000))
        most = least + int(random.integers(0, 100_000))
        width, height = (int(side) for side in random.integers(1, 3000, 2))
        if max(width, height) > 200 * min(width, height):
            continue
        config = {**QWEN, "patch_size": factor, "merge_size": 1, "min_pixels": least, "max_pixels": most}
        bound = ImageProcessor.from_config(config)._plan.most_bytes
        high, wide = smart_resize(height, width, factor, least, most)
        assert high * wide * 3 * 2 * 4 <= bound


def test_a_bad_image_is_named_with_its_reason(client: millrace.Client, made: list[Path], tmp_path: Path) -> None:
    with ImageProcessor.from_config(CLIP, client=client) as processor:
        with pytest.raises(millrace.SampleFailed) as failed:
            processor([made[0], b"not an image"])
        with pytest.raises(millrace.SampleFailed, match="nowhere"):
            processor([made[0].parent / "nowhere.jpg"])
        assert processor(made[:2])["pixel_values"].shape == (2, 3, 224, 224)

    assert [error.index for error in failed.value.sample_errors] == [1]


@pytest.mark.parametrize(
    ("name", "rows", "words"),
    [
        ("clip_vit_base_patch32", lambda good, bad: [good, bad, good], "images[1]"),
        # Two samples an image.
        pytest.param("internvl3_1b", lambda good, bad: [good, good, bad], "images[2]", marks=needs_room),
        ("idefics2_8b", lambda good, bad: [[good], [good, bad]], "images[1][1]"),
        ("llava_v1_6_mistral_7b", lambda good, bad: bad, "the image"),
    ],
)
def test_an_error_names_the_callers_image_and_nothing_that_a_processor_has_not(
    client: millrace.Client, made: list[Path], name: str, rows: Any, words: str
) -> None:
    config = {**example(name), **({"crop_to_patches": True} if "crop_to_patches" in example(name) else {})}
    images = rows(made[6], b"not an image")
    with (
        ImageProcessor.from_config(config, client=client) as processor,
        pytest.raises(millrace.SampleFailed) as failed,
    ):
        processor(images)

    assert str(failed.value).startswith(f"{words} (encoded bytes (12 B)): not an image")
    assert "on_error" not in str(failed.value)
    assert "slot" not in str(failed.value)
    (error,) = failed.value.sample_errors
    assert words in ("the image", f"images[{error.index}]", "images[1][1]")


def test_errors_speak_of_the_processors_own_arguments(client: millrace.Client, made: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def told(error: type[Exception], call: Any) -> str:
        with pytest.raises(error) as raised:
            call()
        text = str(raised.value)
        for word in ("on_error", "open the session", "submit", "Sessions/Open", "an epoch", "get()", "open a dataset"):
            assert word not in text
        return text

    picture = made[6]
    with ImageProcessor.from_config(CLIP, client=client) as processor:
        assert "images[1]: must be a file's bytes, its path, an open file" in told(
            millrace.InvalidRequest, lambda: processor([picture, object()])
        )
        assert "the image: is a URL" in told(millrace.InvalidRequest, lambda: processor("https://example.org/cat.jpg"))
        assert "call with fewer" in told(millrace.InvalidRequest, lambda: processor([picture] * 100_000))
        assert "timeout=" in told(millrace.DeadlineExceeded, lambda: processor([picture], timeout=0))
    for images, advice in (([picture], "so that slots grow"), ([picture] * 2, "or call with fewer images")):
        with ImageProcessor.from_config(QWEN, client=client, slot_bytes=1000) as processor:
            text = told(millrace.ResourceExhausted, lambda processor=processor, images=images: processor(images))
            assert "give ImageProcessor.from_config slot_bytes of at least" in text
            assert text.endswith(advice)
    enormous = ImageProcessor.from_config(CLIP, client=client, slots=200, slot_bytes=1 << 39)
    assert "fewer slots than 200" in told(millrace.ResourceExhausted, lambda: enormous(picture))
    long_name = ImageProcessor.from_config(CLIP, client=client, name="x" * 100)
    assert told(millrace.InvalidRequest, lambda: long_name(picture)).startswith("ImageProcessor.from_config: name")
    for slots in (0, -1, "4", True):
        assert "slots must be" in told(millrace.InvalidRequest, lambda slots=slots: ImageProcessor.from_config(CLIP, slots=slots))
    monkeypatch.setenv("MILLRACE_SOCKET", "/nowhere/s")
    text = told(millrace.DaemonUnavailable, lambda: ImageProcessor.from_config(CLIP)(picture))
    assert "from_config(client=" in text
    assert text.endswith("the processor opens its session by itself")


def test_an_image_too_long_for_a_smart_resize_is_refused_as_there(client: millrace.Client) -> None:
    file = io.BytesIO()
    Image.fromarray(scenery(3, 601, 0)).save(file, "PNG")
    with (
        ImageProcessor.from_config(QWEN, client=client) as processor,
        pytest.raises(millrace.SampleFailed, match="over 200 times"),
    ):
        processor([file.getvalue()])


def test_threads_take_turns(client: millrace.Client, made: list[Path]) -> None:
    with ImageProcessor.from_config(CLIP, client=client, slots=1) as processor:
        expected = [processor([path], copy=True).pixel_values for path in made]
        with ThreadPoolExecutor(4) as pool:
            results = list(pool.map(lambda path: processor([path], copy=True).pixel_values, made * 3))

    for result, wanted in zip(results, expected * 3, strict=True):
        np.testing.assert_array_equal(result, wanted)


def test_half_precision_is_the_float32_values_rounded(client: millrace.Client, made: list[Path]) -> None:
    with ImageProcessor.from_config(QWEN, client=client, dtype="float16", slots=3) as processor:
        got = processor(made[:3])

    assert got.pixel_values.dtype == np.float16
    wanted = theirs(QWEN, made[:3])["pixel_values"]
    np.testing.assert_array_equal(got.pixel_values, wanted.astype(np.float16))


@pytest.mark.parametrize("name", ["qwen2_vl_7b", "llava_v1_6_mistral_7b", "idefics2_8b", "vit_base_patch16_224"])
def test_bfloat16_is_the_float32_values_rounded(client: millrace.Client, made: list[Path], name: str) -> None:
    from ml_dtypes import bfloat16

    with ImageProcessor.from_config(example(name), client=client, dtype="bfloat16") as processor:
        got = processor(made[-3:])

    assert got.pixel_values.dtype == bfloat16
    wanted = theirs(example(name), made[-3:])["pixel_values"]
    np.testing.assert_array_equal(got.pixel_values.view(np.uint16), wanted.astype(bfloat16).view(np.uint16))


@pytest.mark.parametrize("dtype", ["float16", np.float16, np.dtype("float16"), "torch.float16"])
def test_an_element_type_goes_by_every_name(dtype: Any) -> None:
    assert ImageProcessor.from_config(QWEN, dtype=dtype).recipe.dtype == "float16"


def test_an_element_type_of_pytorch_is_one_too() -> None:
    torch = pytest.importorskip("torch")
    assert ImageProcessor.from_config(QWEN, dtype=torch.bfloat16).recipe.dtype == "bfloat16"


def test_an_element_type_that_the_daemon_does_not_make_is_refused() -> None:
    for dtype in ("float64", np.int32, 3):
        with pytest.raises(millrace.InvalidRequest, match="dtype: must be one of uint8, float16, bfloat16, float32"):
            ImageProcessor.from_config(QWEN, dtype=dtype)


def test_tensors_of_pytorch_share_the_memory(client: millrace.Client, made: list[Path]) -> None:
    torch = pytest.importorskip("torch")
    with ImageProcessor.from_config(QWEN, client=client) as processor:
        got, wanted = processor(made[:3], return_tensors="pt"), processor(made[:3])

    assert isinstance(got.pixel_values, torch.Tensor)
    assert got.image_grid_thw.dtype == torch.int64
    np.testing.assert_array_equal(got.pixel_values.numpy(), wanted.pixel_values)
    with ImageProcessor.from_config(QWEN, client=client, dtype="bfloat16") as processor:
        rounded = processor(made[:3], return_tensors="pt").pixel_values
    assert rounded.dtype == torch.bfloat16
    assert torch.equal(rounded, got.pixel_values.to(torch.bfloat16))


def test_the_result_names_what_it_has(client: millrace.Client, made: list[Path]) -> None:
    with ImageProcessor.from_config(CLIP, client=client) as processor:
        features = processor(made[0])

    assert features["pixel_values"] is features.pixel_values
    with pytest.raises(AttributeError, match="pixel_values"):
        _ = features.image_sizes


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"do_sharpen": True}, millrace.Unsupported, "key do_sharpen"),
        ({"do_pad": True}, millrace.Unsupported, "key do_pad"),
        ({"data_format": "channels_last"}, millrace.Unsupported, "key data_format"),
        ({"size": {"longest_edge": 224}}, millrace.Unsupported, "key size"),
        ({"size": {"shortest_edge": 224, "longest_edge": 448}}, millrace.Unsupported, "key size"),
        ({"size": {"shortest_edge": 0}}, millrace.InvalidRequest, "key size.shortest_edge"),
        ({"size": "large"}, millrace.InvalidRequest, "key size"),
        ({"crop_size": {"height": 224}}, millrace.Unsupported, "key crop_size"),
        ({"do_center_crop": False}, millrace.Unsupported, "key do_center_crop"),
        ({"do_center_crop": "yes"}, millrace.InvalidRequest, "key do_center_crop"),
        ({"resample": 6}, millrace.InvalidRequest, "key resample"),
        ({"image_mean": [0.5, 0.5]}, millrace.InvalidRequest, "key image_mean"),
        ({"image_mean": ["a", "b", "c"]}, millrace.InvalidRequest, "key image_mean"),
        ({"image_std": [0.5, 0, 0.5]}, millrace.InvalidRequest, "key image_std"),
        ({"rescale_factor": 0}, millrace.InvalidRequest, "key rescale_factor"),
        ({"rescale_factor": float("nan")}, millrace.InvalidRequest, "key rescale_factor"),
        ({"image_processor_type": "Idefics3ImageProcessor"}, millrace.Unsupported, "resizes every image twice"),
        ({**NEXT, "crop_size": 300}, millrace.Unsupported, "key crop_size"),
        ({**NEXT, "image_grid_pinpoints": [[336, 700]]}, millrace.Unsupported, "key image_grid_pinpoints: 336 x 700"),
        ({**NEXT, "image_grid_pinpoints": [[336]]}, millrace.InvalidRequest, "key image_grid_pinpoints"),
        ({**NEXT, "image_grid_pinpoints": []}, millrace.InvalidRequest, "key image_grid_pinpoints"),
        ({**NEXT, "aspect_ratio_setting": "pad"}, millrace.Unsupported, "key aspect_ratio_setting"),
        ({"image_processor_type": "DonutImageProcessor"}, millrace.Unsupported, "DonutImageProcessor is not supported"),
        ({"image_processor_type": None}, millrace.InvalidRequest, "key image_processor_type"),
        ({**QWEN, "max_pixels": 10}, millrace.InvalidRequest, "key size"),
        ({**QWEN, "min_pixels": -1}, millrace.InvalidRequest, "key min_pixels"),
        ({**QWEN, "merge_size": 1.5}, millrace.InvalidRequest, "key merge_size"),
        ({"image_processor_type": "GotOcr2ImageProcessor", "do_resize": False}, millrace.Unsupported, "key do_resize"),
        ({**example("idefics_9b"), "do_resize": False}, millrace.Unsupported, "key do_resize: false leaves"),
    ],
)
def test_what_is_not_supported_is_refused_by_its_key(changes: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        ImageProcessor.from_config({**CLIP, **changes})


def test_uint8_is_refused_where_pixels_are_normalised() -> None:
    with pytest.raises(millrace.Unsupported, match="key do_normalize"):
        ImageProcessor.from_config(CLIP, dtype="uint8")


def test_files_that_are_no_configuration_are_refused_by_name(tmp_path: Path) -> None:
    for name, content, error in (("a.json", "{", millrace.InvalidRequest), ("b.json", "[]", millrace.InvalidRequest)):
        (tmp_path / name).write_text(content)
        with pytest.raises(error, match=name):
            ImageProcessor.from_config(tmp_path / name)
    with pytest.raises(millrace.NotFound, match="nowhere"):
        ImageProcessor.from_config(tmp_path / "nowhere")


def test_calls_that_make_no_sense_are_refused(client: millrace.Client, made: list[Path]) -> None:
    with ImageProcessor.from_config(example("idefics2_8b"), client=client) as processor:
        for images in ([], [[]]):
            with pytest.raises(millrace.InvalidRequest, match="at least one"):
                processor(images)
        with pytest.raises(millrace.InvalidRequest, match="mixes both"):
            processor([made[0], [made[1]]])
        with pytest.raises(millrace.InvalidRequest, match="return_tensors"):
            processor(made[:1], return_tensors="tf")  # type: ignore[arg-type]
        for timeout in ("3", -1, float("nan")):
            with pytest.raises(millrace.InvalidRequest, match="timeout: must be seconds"):
                processor(made[:1], timeout=timeout)  # type: ignore[arg-type]
