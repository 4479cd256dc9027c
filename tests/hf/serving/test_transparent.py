"""Encoded images that have a transparent colour: on white where transformers' class lays them on white, else as they are."""

from __future__ import annotations

import io
import os
import struct
import sys
import zlib
from pathlib import Path
from typing import Any

import millrace
import numpy as np
import pytest
from millrace.hf import ImageProcessor, from_pretrained
from PIL import Image
from transformers.image_utils import load_image

from folders import assert_same
from peers import example
from pictures import scenery
from roster import DEFAULTS, processor_class

CLIP = "clip_vit_base_patch32"


def with_a_patch() -> Image.Image:
    pixels = scenery(101, 64, 3)
    pixels[10:40, 20:60] = (7, 130, 200)
    return Image.fromarray(pixels)


def encoded(image: Image.Image, kind: str, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def files() -> dict[str, bytes]:
    image = with_a_patch()
    palette, grey = image.quantize(16), image.convert("L")
    of_palette, of_grey = (int(np.asarray(one)[15, 30]) for one in (palette, grey))
    alpha = image.convert("RGBA")
    alpha.putalpha(grey)
    return {
        "GIF": encoded(palette, "GIF", transparency=of_palette),
        "GIF with a comment": encoded(palette, "GIF", transparency=of_palette, comment=b"x" * 700),
        "GIF in grey": encoded(grey, "GIF", transparency=of_grey),
        "PNG of a palette": encoded(palette, "PNG", transparency=of_palette),
        "PNG of a palette, with alpha": encoded(palette, "PNG", transparency=bytes(range(0, 160, 10))),
        "PNG in grey": encoded(grey, "PNG", transparency=of_grey),
        "PNG in colours": encoded(image, "PNG", transparency=(7, 130, 200)),
        "PNG in grey, with alpha": encoded(alpha.convert("LA"), "PNG"),
        "PNG in colours, with alpha": encoded(alpha, "PNG"),
        "WebP with alpha": encoded(alpha, "WEBP", lossless=True),
        "GIF, opaque": encoded(palette, "GIF"),
    }


FILES = files()
ON_WHITE = ("GIF", "GIF with a comment", "GIF in grey", "PNG of a palette", "PNG in grey", "PNG in colours")


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with (
        millrace.serve([str(tmp_path_factory.getbasetemp())], lanes=1) as daemon,
        millrace.connect(daemon.address) as connected,
    ):
        yield connected


@pytest.mark.parametrize("name", ["CLIP", "Qwen2VL", "LlavaNext", "Idefics2", "Mllama", "ViT", "LayoutLMv3", "Flava"])
def test_they_are_what_transformers_makes_of_the_loaded_image(client: millrace.Client, tmp_path: Path, name: str) -> None:
    config = {"image_processor_type": f"{name}ImageProcessor", **DEFAULTS.get(name, {})}
    theirs = processor_class(name)(**DEFAULTS.get(name, {}))
    with from_pretrained(config, client=client, slots=2) as ours, ImageProcessor.from_config(config, client=client, slots=2) as plain:
        for label, content in FILES.items():
            path = tmp_path / label
            path.write_bytes(content)
            wanted = theirs(load_image(str(path)), return_tensors="np")
            for image in (content, memoryview(content), path, io.BytesIO(content), ours.fetch_images(content)):
                assert_same(ours(image, return_tensors="np"), wanted)
                np.testing.assert_array_equal(plain(image)["pixel_values"], wanted["pixel_values"], err_msg=label)


@pytest.mark.parametrize("label", ON_WHITE)
def test_a_class_that_is_told_not_to_convert_shows_the_colour(client: millrace.Client, tmp_path: Path, label: str) -> None:
    (tmp_path / "image").write_bytes(FILES[label])
    image = load_image(str(tmp_path / "image"))
    theirs = processor_class("CLIP")()
    with from_pretrained(example(CLIP), client=client) as ours:
        shown = ours(FILES[label], return_tensors="np", do_convert_rgb=False, copy=True)
        assert_same(shown, theirs(image, return_tensors="np", do_convert_rgb=False))
        fetched = ours.fetch_images(FILES[label])
        assert_same(ours(fetched, return_tensors="np", do_convert_rgb=False, copy=True), shown)
        assert not np.array_equal(ours(FILES[label], return_tensors="np")["pixel_values"], shown["pixel_values"])
        fetched.load()
        assert fetched.info.get("transparency") == image.info["transparency"]


def test_without_pillow_they_are_refused_by_name(client: millrace.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    with ImageProcessor.from_config(example(CLIP), client=client) as plain:
        wanted = plain(FILES["GIF, opaque"], copy=True).pixel_values
        monkeypatch.setitem(sys.modules, "PIL", None)
        with pytest.raises(millrace.Unsupported, match=r"images\[1\]: has a transparent colour, .* install Pillow"):
            plain([FILES["GIF, opaque"], FILES["GIF"]])
        np.testing.assert_array_equal(plain(FILES["GIF, opaque"]).pixel_values, wanted)
        assert plain(FILES["GIF"], do_convert_rgb=False).pixel_values.shape == (1, 3, 224, 224)


def chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def test_files_that_are_not_what_they_seem_are_refused_by_name(client: millrace.Client, tmp_path: Path) -> None:
    png = FILES["PNG in colours"]
    with ImageProcessor.from_config(example(CLIP), client=client) as plain:
        with pytest.raises(millrace.InvalidRequest, match=r"the image: has a transparent colour, .* PIL cannot read it"):
            plain(png[:-300])
        for many in (png[:33] + chunk(b"tEXt", b"") * 100_002 + png[33:], FILES["GIF"][:13] + b"\1" * 200_000):
            with pytest.raises(millrace.InvalidRequest, match="the image: has more than 100000 blocks"):
                plain(many)
        with pytest.raises(millrace.InvalidRequest, match=r"the image: .*logo\.png cannot be read here .* give the file's bytes"):
            plain(str(tmp_path / "logo.png"))
        with pytest.raises(millrace.SampleFailed):
            plain(str(tmp_path / "picture.jpg"))
        os.mkfifo(tmp_path / "waits.gif")
        with pytest.raises(millrace.SampleFailed):
            plain(str(tmp_path / "waits.gif"))
        for start in (b"GIF89a", b"GIF89a\0\0\0\0\xff", b"\x89PNG\r\n\x1a\n", b"\x89PNG\r\n\x1a\n\xff\xff\xff\xffIHDR", FILES["GIF"][:14]):
            with pytest.raises(millrace.SampleFailed):
                plain(start)
