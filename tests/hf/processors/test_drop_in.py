"""from_pretrained: where it looks, and what transformers' own code finds in what it gives."""

from __future__ import annotations

import copy
import gc
import json
import os
import pickle
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import millrace
import numpy as np
import pytest
from millrace.hf import ImageProcessor, from_pretrained
from transformers import AutoImageProcessor, BatchFeature
from transformers.image_processing_utils import BaseImageProcessor
from transformers.image_utils import load_image

from folders import assert_same, both, folder_of, own
from peers import EXAMPLES, example

CLIP = "clip_vit_base_patch32"
QWEN = "qwen2_5_vl_7b"


@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.json")))
@pytest.mark.parametrize("return_tensors", [None, "np"])
def test_it_gives_what_transformers_own_class_gives(
    client: millrace.Client, made: list[Path], tmp_path: Path, name: str, return_tensors: str | None
) -> None:
    paths = [made[6], made[-1]]
    with both(client, name, tmp_path) as (ours, theirs):
        wanted = theirs([load_image(str(path)) for path in paths], return_tensors=return_tensors)
        got = ours(paths, return_tensors=return_tensors)

        assert isinstance(ours, BaseImageProcessor)
        assert isinstance(ours, type(theirs))
        assert type(got) is type(wanted)
        assert_same(got, wanted)


@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.json")))
def test_what_it_saves_transformers_reads_as_its_own(client: millrace.Client, tmp_path: Path, name: str) -> None:
    kind = example(name).get("image_processor_type") or example(name)["feature_extractor_type"]
    with both(client, name, tmp_path) as (ours, theirs):
        ours.save_pretrained(tmp_path / "saved")

        saved = json.loads((tmp_path / "saved" / "preprocessor_config.json").read_text())
        assert saved["image_processor_type"] == kind.replace("FeatureExtractor", "ImageProcessor")
        again = AutoImageProcessor.from_pretrained(tmp_path / "saved", backend="pil")
        assert type(again) is type(theirs)
        assert again.to_dict() == theirs.to_dict()
        with from_pretrained(tmp_path / "saved", client=client) as read:
            assert read.to_dict() == ours.to_dict()
            assert read.recipe == ours.recipe


def test_attributes_and_methods_are_those_of_transformers(client: millrace.Client, tmp_path: Path) -> None:
    with both(client, QWEN, tmp_path) as (ours, theirs):
        for name in ("merge_size", "patch_size", "temporal_patch_size", "size", "model_input_names", "image_mean", "do_resize", "resample"):
            assert getattr(ours, name) == getattr(theirs, name), name
        for height, width in ((333, 500), (29, 900)):
            assert ours.get_number_of_image_patches(height, width) == theirs.get_number_of_image_patches(height, width)
        assert "Qwen2VLImageProcessor" in repr(ours)
        assert "_millrace" not in repr(ours)
    with both(client, CLIP, tmp_path) as (ours, theirs):
        assert (ours.crop_size, ours.size) == (theirs.crop_size, theirs.size)


def test_copies_and_pickles_are_processors_like_it(client: millrace.Client, made: list[Path], tmp_path: Path) -> None:
    with both(client, QWEN, tmp_path, dtype="float16", slots=2, name="copied") as (ours, _):
        ours.size = {"shortest_edge": 3136, "longest_edge": 40_000}
        wanted = ours(made[-1], return_tensors="np", copy=True)
        assert wanted["pixel_values"].dtype == np.float16
        for again in (copy.deepcopy(ours), copy.copy(ours), pickle.loads(pickle.dumps(ours))):
            assert type(again) is type(ours)
            assert again.to_dict() == ours.to_dict()
            with again:
                assert_same(again(made[-1], return_tensors="np"), wanted)
    plain = ImageProcessor.from_config(example(QWEN), client=client, slots=3)
    with plain, pickle.loads(pickle.dumps(plain)) as again:
        assert repr(again) == repr(plain) == "<millrace.hf.ImageProcessor Qwen2VLImageProcessor, float32, 3 calls at once>"
        np.testing.assert_array_equal(again(made[-1]).pixel_values, plain(made[-1]).pixel_values)


def test_a_class_made_for_it_reads_folders_by_itself(
    client: millrace.Client, made: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MILLRACE_SOCKET", client.path)
    with both(client, CLIP, tmp_path) as (ours, theirs), type(ours).from_pretrained(tmp_path / CLIP) as read, type(ours)(size=250) as fresh:
        image = load_image(str(made[-1]))
        assert_same(read(made[-1], return_tensors="np"), theirs(image, return_tensors="np"))
        assert_same(fresh(made[-1], return_tensors="np"), type(theirs)(size=250)(image, return_tensors="np"))


def test_a_feature_goes_where_it_is_sent(client: millrace.Client, made: list[Path], tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="features sent to a device or type: tests/requirements-frameworks.txt is not installed")
    with both(client, QWEN, tmp_path) as (ours, _), ImageProcessor.from_config(example(QWEN), client=client) as plain:
        assert isinstance(ours(made[-1], return_tensors="pt"), BatchFeature)
        for processor in (ours, plain):
            got = processor(made[-1], return_tensors="pt")
            pixels = got["pixel_values"]
            assert got.to("cpu", torch.bfloat16) is got
            assert got["pixel_values"].dtype == torch.bfloat16
            assert got["image_grid_thw"].dtype == torch.int64
            assert torch.equal(got["pixel_values"], pixels.to(torch.bfloat16))
            assert got.to("meta")["image_grid_thw"].device.type == "meta"
            assert processor(made[-1], return_tensors="pt", device="meta")["pixel_values"].device.type == "meta"
        arrays = plain(made[-1])
        with pytest.raises(millrace.InvalidRequest, match='return_tensors="pt"'):
            arrays.to("cpu")
        assert isinstance(arrays.convert_to_tensors("pt").pixel_values, torch.Tensor)
        assert isinstance(arrays.convert_to_tensors("np").pixel_values, np.ndarray)
    with ImageProcessor.from_config(example(QWEN), client=client, dtype="bfloat16") as plain:
        rounded = plain(made[-1], return_tensors="pt").pixel_values
        assert torch.equal(plain(made[-1]).convert_to_tensors("pt").pixel_values, rounded)
        as_numpy = plain(made[-1], return_tensors="pt").convert_to_tensors("np").pixel_values
        np.testing.assert_array_equal(as_numpy.view(np.uint16), rounded.view(torch.uint16).numpy())


def test_tensors_of_pytorch_show_shared_memory(client: millrace.Client, made: list[Path], tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="features as views of shared memory: tests/requirements-frameworks.txt is not installed")
    with both(client, CLIP, tmp_path, name="shown", slots=3) as (ours, _):
        kept = ours(made[-1], return_tensors="pt")

        (session,) = [session for session in client.statistics().sessions if session.name == "shown"]
        assert session.slots_free == 2
        del kept
        gc.collect()
        deadline = time.monotonic() + 240
        while [session.slots_free for session in client.statistics().sessions if session.name == "shown"] != [3]:
            assert time.monotonic() < deadline


def test_features_are_unpacked_and_turned_without_pytorch(client: millrace.Client, made: list[Path]) -> None:
    def model(pixel_values: Any, image_grid_thw: Any) -> Any:
        return pixel_values, image_grid_thw

    with ImageProcessor.from_config(example(QWEN), client=client) as plain:
        got = plain(made[-1], return_tensors=None)

        assert model(**got)[0] is got.pixel_values
        assert got.convert_to_tensors("np") is got.convert_to_tensors() is got
        with pytest.raises(millrace.InvalidRequest, match="must be np or pt"):
            got.convert_to_tensors("tf")


def test_fetched_images_are_pils_and_decoded_when_looked_at(client: millrace.Client, made: list[Path], tmp_path: Path) -> None:
    path = next(path for path in made if path.name == "turned6.jpg")
    wanted = load_image(str(path))
    with both(client, CLIP, tmp_path) as (ours, theirs):
        for given in (str(path), path.read_bytes(), millrace.Path(bytes(path))):
            (fetched,) = ours.fetch_images([given])
            assert fetched.millrace_source == given
            assert_same(ours(fetched, return_tensors="np"), theirs(wanted, return_tensors="np"))
            assert fetched._im is None
            assert (fetched.size, fetched.width, fetched.mode) == (wanted.size, wanted.width, "RGB")
            np.testing.assert_array_equal(np.asarray(fetched), np.asarray(wanted))
            np.testing.assert_array_equal(np.asarray(fetched.resize((20, 10))), np.asarray(wanted.resize((20, 10))))
        pixels = np.asarray(wanted)
        assert ours.fetch_images([pixels, [wanted]]) == [pixels, [wanted]]
        with pytest.raises(millrace.InvalidRequest, match=r"images\[0\]\[1\]: is a URL .* fetch it"):
            ours.fetch_images([[b"x", "http://example.org/a.jpg"]])


# --------------------------------------------------------------------------------------------------------------- folders


def test_a_processors_own_file_counts_first(client: millrace.Client, tmp_path: Path) -> None:
    folder = folder_of(CLIP, tmp_path)
    whole = {"processor_class": "CLIPProcessor", "image_processor": {**own(folder).to_dict(), "size": {"shortest_edge": 300}}}
    (folder / "processor_config.json").write_text(json.dumps(whole))

    with from_pretrained(folder, client=client) as ours:
        assert ours.size == own(folder).size == {"shortest_edge": 300}
    for part in ({}, {"processor_class": "CLIPProcessor", "image_seq_len": 3}):  # an older one, which says nothing of it
        (folder / "processor_config.json").write_text(json.dumps(part))
        with from_pretrained(folder, client=client) as ours:
            assert ours.size == {"shortest_edge": 224}


def test_files_dicts_and_overrides_are_taken(client: millrace.Client, tmp_path: Path) -> None:
    folder = folder_of(CLIP, tmp_path)
    for source in (folder, str(folder), folder / "preprocessor_config.json", example(CLIP)):
        with from_pretrained(source, client=client, size={"shortest_edge": 250}) as ours:
            assert ours.size == {"shortest_edge": 250}
            assert ours.recipe.resize == millrace.ShorterSide(250)
    with pytest.raises(millrace.Unsupported, match="key do_sharpen: not known"):
        from_pretrained(folder, do_sharpen=True)


def test_a_name_that_is_no_folder_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(millrace.NotFound, match=r'downloads nothing: get a model with huggingface_hub.snapshot_download\("openai/clip"\)'):
        from_pretrained("openai/clip")
    with pytest.raises(millrace.NotFound, match=r"neither preprocessor_config.json nor processor_config.json"):
        from_pretrained(tmp_path)
    (tmp_path / "processor_config.json").write_text("{")
    with pytest.raises(millrace.InvalidRequest, match=r"processor_config.json: not JSON"):
        from_pretrained(tmp_path)


def test_transformers_own_complaints_come_through(tmp_path: Path) -> None:
    with pytest.raises(millrace.Unsupported, match="DonutImageProcessor is not supported"):
        from_pretrained({"image_processor_type": "DonutImageProcessor"})


# ---------------------------------------------------------------------------------------------------- imports, threads

WITHOUT = """
import sys, time
began = time.perf_counter()
import millrace
took = time.perf_counter() - began
import millrace.hf
from millrace.hf import ImageProcessor, from_pretrained
plain = ImageProcessor.from_config(sys.argv[1])
assert not {"transformers", "torch", "PIL", "tokenizers"} & set(sys.modules), sorted(sys.modules)
if sys.argv[2] == "blocked":
    sys.modules["transformers"] = None  # as where it is not installed
else:
    assert "transformers" not in sys.modules
processor = from_pretrained(sys.argv[1])
print(type(processor).__name__, bool(sys.modules.get("transformers")), took)
"""


@pytest.mark.parametrize(("how", "wanted"), [("blocked", "ImageProcessor False"), ("free", "MillraceCLIPImageProcessor True")])
def test_transformers_is_imported_only_when_it_is_there_and_asked_for(tmp_path: Path, how: str, wanted: str) -> None:
    folder = folder_of(CLIP, tmp_path)
    ended = subprocess.run([sys.executable, "-c", WITHOUT, str(folder), how], capture_output=True, text=True, timeout=300)

    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith(wanted)


def test_threads_share_one_processor_and_its_plans(client: millrace.Client, made: list[Path], tmp_path: Path) -> None:
    sizes = [224 + 8 * (number % 5) for number in range(40)]
    with both(client, CLIP, tmp_path, slots=3) as (ours, _):
        expected = {size: ours(made[-1], return_tensors="np", size=size, copy=True)["pixel_values"] for size in set(sizes)}

        def work(size: int) -> bool:
            return np.array_equal(ours(made[-1], return_tensors="np", size=size)["pixel_values"], expected[size])

        with ThreadPoolExecutor(6) as pool:
            assert all(pool.map(work, sizes))


def test_a_forked_child_makes_its_own(client: millrace.Client, tmp_path: Path) -> None:
    with both(client, CLIP, tmp_path) as (ours, _):
        child = os.fork()
        if child == 0:
            try:
                os._exit(0 if copy.deepcopy(ours).to_dict() == ours.to_dict() else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
