"""Processors that a server's plug-in has taken over: the same results, and the model's own where the daemon does not do the work."""

from __future__ import annotations

import copy
import io
import logging
import os
import pickle
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import millrace
import numpy as np
import pytest
from millrace.serving.settings import Settings, settings
from millrace.serving.takeover import taken_over
from millrace.serving.upload import Upload, opened
from PIL import Image
from transformers.image_utils import load_image

from folders import assert_same, folder_of, own

LOG = logging.getLogger("a server's")


def required(client: millrace.Client) -> Settings:
    return Settings("required", client.path, timeout=300)


@pytest.mark.parametrize("name", ["qwen2_vl_7b", "qwen2_5_vl_7b", "llava_1_5_7b", "llava_v1_6_mistral_7b", "clip_vit_base_patch32"])
def test_the_results_are_those_of_the_models_own(client: millrace.Client, made: list[Path], tmp_path: Path, name: str) -> None:
    processor = own(folder_of(name, tmp_path))
    served = taken_over(processor, required(client), LOG)
    images = [load_image(str(path)) for path in (made[6], made[-1])]

    assert isinstance(served, millrace.serving.takeover.TakenOver)
    assert_same(served(images, return_tensors="np"), processor(images, return_tensors="np"))
    assert served.to_dict() == processor.to_dict()


def test_copies_and_pickles_work(client: millrace.Client, made: list[Path], tmp_path: Path) -> None:
    processor = own(folder_of("clip_vit_base_patch32", tmp_path))
    served = taken_over(processor, required(client), LOG)
    image = load_image(str(made[-1]))

    for one in (copy.deepcopy(served), pickle.loads(pickle.dumps(served))):
        assert_same(one(image, return_tensors="np"), processor(image, return_tensors="np"))


def test_without_a_daemon_the_models_own_does_the_work_and_one_line_says_so(
    client: millrace.Client, made: list[Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    processor = own(folder_of("clip_vit_base_patch32", tmp_path))
    image = load_image(str(made[-1]))
    with caplog.at_level(logging.WARNING, LOG.name):
        served = taken_over(processor, Settings("fallback", str(tmp_path / "nobody.sock")), LOG)
        for _ in range(3):
            assert_same(served(image, return_tensors="np"), processor(image, return_tensors="np"))
            served._beside.not_before = 0.0

    (line,) = [record.getMessage() for record in caplog.records]
    assert "cannot reach the daemon" in line
    assert "the model's own processor does the work" in line
    with pytest.raises(millrace.DaemonUnavailable, match=r"nobody\.sock"):
        taken_over(processor, Settings("required", str(tmp_path / "nobody.sock")), LOG)


def link(socket: Path, address: str) -> None:
    """Has the daemon at ``address`` answer at ``socket``, where another one did."""
    for ending in ("", ".handoff"):
        place = socket.with_name(socket.name + ending)
        place.unlink(missing_ok=True)
        place.symlink_to(address + ending)


def test_a_daemon_that_ends_and_comes_back_is_used_again(made: list[Path], tmp_path: Path) -> None:
    socket = tmp_path / "daemon.sock"
    processor = own(folder_of("clip_vit_base_patch32", tmp_path))
    image = load_image(str(made[-1]))
    wanted = processor(image, return_tensors="np")
    with millrace.serve(tmp_path, lanes=1) as daemon:
        link(socket, daemon.address)
        served = taken_over(processor, Settings("fallback", str(socket), timeout=300), LOG)
        assert_same(served(image, return_tensors="np"), wanted)
        assert not served._beside.not_before
    assert_same(served(image, return_tensors="np"), wanted)
    assert served._beside.not_before

    with millrace.serve(tmp_path, lanes=1) as daemon:
        link(socket, daemon.address)
        time.sleep(max(0.0, served._beside.not_before - time.monotonic()))
        assert_same(served(image, return_tensors="np"), wanted)
        with millrace.connect(daemon.address) as client:
            assert [session.name for session in client.statistics().sessions] == ["serving CLIPImageProcessor"]


def test_what_the_daemon_does_not_do_is_the_models_own(client: millrace.Client, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    processor = own(folder_of("clip_vit_base_patch32", tmp_path))
    served = taken_over(processor, Settings("fallback", client.path), LOG)
    shades = np.random.default_rng(7).random((64, 64, 3)).astype(np.float32)  # between 0 and 1

    with caplog.at_level(logging.WARNING, LOG.name):
        assert_same(served(shades, do_rescale=False, return_tensors="np"), processor(shades, do_rescale=False, return_tensors="np"))

    assert "multiply by 255" in caplog.text
    assert not served._beside.away()
    with pytest.raises(millrace.InvalidRequest, match="multiply by 255"):
        taken_over(processor, required(client), LOG)(shades, do_rescale=False)


def test_a_processor_that_is_not_known_stays_as_it_is(tmp_path: Path, client: millrace.Client, caplog: pytest.LogCaptureFixture) -> None:
    class Unheard(type(own(folder_of("clip_vit_base_patch32", tmp_path)))):  # type: ignore[misc]
        pass

    processor = Unheard()
    with caplog.at_level(logging.INFO, LOG.name):
        assert taken_over(processor, Settings("fallback", client.path), LOG) is processor

    assert "Unheard stays the model's own" in caplog.text
    with pytest.raises(millrace.Unsupported, match="Unheard cannot be taken over"):
        taken_over(processor, required(client), LOG)


def test_an_upload_has_its_size_without_being_decoded_and_the_pixels_of_its_file(made: list[Path]) -> None:
    seen = 0
    for path in made:
        encoded = path.read_bytes()
        upload = opened(encoded)
        if upload is None:
            continue
        seen += 1
        wanted = load_image(str(path))
        assert (upload.size, upload.mode, upload._im) == (wanted.size, "RGB", None)
        upload.load()
        assert upload._im is None
        np.testing.assert_array_equal(np.asarray(upload), np.asarray(wanted))
        np.testing.assert_array_equal(np.asarray(Upload(encoded, wanted.size).convert("RGB")), np.asarray(wanted))
    assert seen


def test_what_is_no_plain_jpeg_is_left_to_the_server(tmp_path: Path) -> None:
    for kind, mode in (("PNG", "RGB"), ("JPEG", "L"), ("JPEG", "CMYK")):
        file = io.BytesIO()
        Image.new(mode, (9, 9)).save(file, kind)
        assert opened(file.getvalue()) is None
    assert opened(b"") is None
    assert opened(b"\xff\xd8\xff") is None


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({}, "off"),
        ({"MILLRACE_SOCKET": "/run/a.sock"}, "fallback"),
        ({"MILLRACE_SOCKET": "/run/a.sock", "MILLRACE_SERVING": "off"}, "off"),
        ({"MILLRACE_SERVING": "required"}, "required"),
    ],
)
def test_the_environment_says_whether(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], wanted: str) -> None:
    for name in ("MILLRACE_SOCKET", "MILLRACE_SERVING"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    assert settings().mode == wanted


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MILLRACE_SERVING", "yes"),
        ("MILLRACE_SERVING_SLOTS", "0"),
        ("MILLRACE_SERVING_SLOTS", "1.5"),
        ("MILLRACE_SERVING_SLOTS", "many"),
        ("MILLRACE_SERVING_TIMEOUT", "0"),
        ("MILLRACE_SERVING_TIMEOUT", "nan"),
    ],
)
def test_what_makes_no_sense_names_its_variable(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv("MILLRACE_SERVING", "fallback")
    monkeypatch.setenv(name, value)
    with pytest.raises(millrace.InvalidRequest, match=f"{name}: must be"):
        settings()


@pytest.mark.parametrize("plugin", ["vllm", "sglang"])
def test_a_plugin_that_nobody_asked_for_imports_nothing(plugin: str) -> None:
    heavy = {"vllm", "sglang", "torch", "transformers", "PIL"}
    code = f"import sys; from millrace.serving.{plugin} import register; register(); print({heavy} & set(sys.modules))"
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MILLRACE_S")}

    done: Any = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "set()"
