"""What a processor takes as images, beside what transformers' own makes of the same objects."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import millrace
import numpy as np
import pytest
from millrace.hf import ImageProcessor
from PIL import Image
from transformers.image_utils import load_image

from folders import assert_same, both
from peers import example, theirs
from pictures import scenery

CLIP = "clip_vit_base_patch32"


@pytest.fixture
def clip(client: millrace.Client) -> Iterator[ImageProcessor]:
    with ImageProcessor.from_config(example(CLIP), client=client) as processor:
        yield processor


def picture(width: int = 301, height: int = 200) -> Image.Image:
    return Image.fromarray(scenery(width, height, 5))


def with_alpha() -> Image.Image:
    image = picture().convert("RGBA")
    image.putalpha(picture().convert("L"))
    return image


def palette(transparent: bool) -> Image.Image:
    image = picture().quantize(32)
    if transparent:
        image.info["transparency"] = 3
    return image


def sixteen_bits() -> Image.Image:
    return Image.fromarray(scenery(301, 200, 6)[..., 0].astype(np.uint16) * 200)


def turned() -> Image.Image:
    file, exif = io.BytesIO(), Image.Exif()
    exif[0x0112] = 6
    picture().save(file, "JPEG", exif=exif)
    return Image.open(io.BytesIO(file.getvalue()))


def keyed() -> Image.Image:
    image = picture()
    image.info["transparency"] = tuple(int(level) for level in np.asarray(image)[0, 0])
    return image


PICTURES: dict[str, Callable[[], Image.Image]] = {
    "RGB": picture,
    "one pixel": lambda: picture(1, 1),
    "narrow": lambda: picture(3, 500),
    "RGB with a transparent colour": keyed,
    "RGBA": with_alpha,
    "LA": lambda: with_alpha().convert("LA"),
    "L": lambda: picture().convert("L"),
    "P": lambda: palette(False),
    "P with a transparent colour": lambda: palette(True),
    "1": lambda: picture().convert("1"),
    "I;16": sixteen_bits,
    "I": lambda: sixteen_bits().convert("I"),
    "F": lambda: picture().convert("F"),
    "CMYK": lambda: picture().convert("CMYK"),
    "YCbCr": lambda: picture().convert("YCbCr"),
    "a file that PIL has not read, turned by EXIF": turned,
}


@pytest.mark.parametrize("name", sorted(PICTURES))
def test_a_pil_image_of_any_mode(client: millrace.Client, tmp_path: Path, clip: ImageProcessor, name: str) -> None:
    with both(client, CLIP, tmp_path) as (ours, own):
        wanted = own(PICTURES[name](), return_tensors="np")

        assert_same(ours(PICTURES[name](), return_tensors="np"), wanted)
        assert_same(clip([PICTURES[name]()]), wanted)


def rgba() -> np.ndarray[Any, Any]:
    return np.asarray(with_alpha())


ARRAYS: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "channels last": (lambda: scenery(301, 200, 1), {}),
    "channels first": (lambda: np.moveaxis(scenery(301, 200, 1), 2, 0), {}),
    "channels first, in memory so": (lambda: np.ascontiguousarray(np.moveaxis(scenery(301, 200, 1), 2, 0)), {}),
    "three rows": (lambda: scenery(301, 3, 1), {}),  # could be both: then channels come first
    "three rows, said to be": (lambda: scenery(301, 3, 1), {"input_data_format": "channels_last"}),
    "three columns, said to be": (lambda: scenery(3, 301, 1), {"input_data_format": "channels_last"}),
    "every other pixel": (lambda: scenery(301, 200, 1)[::-2, ::2], {}),
    "grey": (lambda: scenery(301, 200, 1)[..., :1], {}),
    "grey, channels first": (lambda: scenery(301, 200, 1)[None, ..., 0], {}),
    "RGBA": (rgba, {}),
    "RGBA, channels first": (lambda: np.moveaxis(rgba(), 2, 0), {}),
    "whole numbers as int64": (lambda: scenery(301, 200, 1).astype(np.int64), {}),
    "whole numbers as float32": (lambda: scenery(301, 200, 1).astype(np.float32), {}),
}


@pytest.mark.parametrize("name", sorted(ARRAYS))
def test_an_array(client: millrace.Client, tmp_path: Path, clip: ImageProcessor, name: str) -> None:
    make, options = ARRAYS[name]
    with both(client, CLIP, tmp_path) as (ours, own):
        wanted = own(make(), return_tensors="np", **options)

        assert_same(ours(make(), return_tensors="np", **options), wanted)
        assert_same(clip(make(), **options), wanted)


def test_tensors_of_pytorch(client: millrace.Client, tmp_path: Path, clip: ImageProcessor) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch's tensors as images: tests/requirements-frameworks.txt is not installed")
    last = torch.from_numpy(scenery(301, 200, 1))
    first = last.permute(2, 0, 1)
    with both(client, CLIP, tmp_path) as (ours, own):
        for images in (last, first, [first, last], torch.stack([first, first.flip(1)]), first.float()):
            wanted = own(images, return_tensors="pt")
            got = ours(images, return_tensors="pt")
            assert_same(got, wanted)
            assert torch.equal(clip(images, return_tensors="pt").pixel_values, wanted.pixel_values)
    needs_gradient = first.float().requires_grad_()
    assert torch.equal(clip(needs_gradient, return_tensors="pt").pixel_values[0], clip(first, return_tensors="pt").pixel_values[0])


def test_batches_and_rows_are_lists_of_images(client: millrace.Client, tmp_path: Path, clip: ImageProcessor) -> None:
    one, other = scenery(100, 80, 1), scenery(100, 80, 2)
    batch, single = np.stack([one, other]), np.stack([one])
    with both(client, CLIP, tmp_path) as (ours, own):
        for images in (batch, [one, other], (one, other), [[one], [other, one]], [batch, single]):
            wanted = own(images, return_tensors="np")

            assert_same(ours(images, return_tensors="np"), wanted)
            assert_same(clip(images), wanted)


def test_rows_of_pixels_are_rows(client: millrace.Client, tmp_path: Path) -> None:
    rows = [[picture()], [with_alpha(), scenery(90, 70, 3)]]
    with both(client, "idefics2_8b", tmp_path) as (ours, own):
        wanted = own(rows, return_tensors="np")

        assert_same(ours(rows, return_tensors="np"), wanted)


@pytest.mark.parametrize("name", ["qwen2_5_vl_7b", "llava_v1_6_mistral_7b", "internvl3_1b", "idefics2_8b", "siglip_so400m_patch14_384"])
def test_every_family_takes_pixels(client: millrace.Client, tmp_path: Path, name: str) -> None:
    images = [picture(), with_alpha(), scenery(500, 333, 7), picture(640, 333).convert("L")]
    overrides: dict[str, Any] = {"crop_to_patches": True} if name.startswith("internvl") else {}
    with both(client, name, tmp_path) as (ours, own):
        assert_same(ours(images, return_tensors="np", **overrides), own(images, return_tensors="np", **overrides))


def encoded_kinds(path: Path) -> dict[str, Any]:
    content = path.read_bytes()
    text = base64.b64encode(content).decode()
    return {
        "bytes": content,
        "bytearray": bytearray(content),
        "memoryview": memoryview(content),
        "a part of a memoryview": memoryview(b"ab" + content + b"c")[2:-1],
        "a path": path,
        "a path as str": str(path),
        "a path of bytes": millrace.Path(bytes(path)),
        "BytesIO": io.BytesIO(content),
        "a data URL": f"data:image/jpeg;base64,{text}",
        "a data URL in lines": f"data:image/jpeg;base64,{text[:100]}\n{text[100:]}",
        "a data URL, escaped": f"DATA:image/jpeg;charset=x;base64,{text.replace('+', '%2B').replace('/', '%2F').replace('=', '%3D')}",
    }


def test_a_file_in_every_form(client: millrace.Client, made: list[Path], tmp_path: Path, clip: ImageProcessor) -> None:
    path = next(path for path in made if path.name == "turned6.jpg")
    wanted = theirs(example(CLIP), [path])["pixel_values"]
    with both(client, CLIP, tmp_path) as (ours, _), path.open("rb") as file:
        for name, image in {**encoded_kinds(path), "an open file": file}.items():
            for processor in (clip, ours):
                for _ in range(2):  # a file is left where it was
                    np.testing.assert_array_equal(processor(image, return_tensors="np")["pixel_values"], wanted, err_msg=name)


def test_all_kinds_in_one_call(client: millrace.Client, made: list[Path], clip: ImageProcessor) -> None:
    path = made[-1]
    pixels = load_image(str(path))
    images = [*encoded_kinds(path).values(), pixels, np.asarray(pixels), pixels]

    got = clip(images).pixel_values

    assert got.shape[0] == len(images)
    np.testing.assert_array_equal(got, np.broadcast_to(got[:1], got.shape))


def test_more_pixels_than_a_message_holds(client: millrace.Client, clip: ImageProcessor) -> None:
    large = picture(2000, 1500)
    assert len(large.tobytes()) > 8 << 20

    got = clip([large, np.asarray(large)]).pixel_values

    np.testing.assert_array_equal(got[0], got[1])
    file = io.BytesIO()
    large.save(file, "PNG")
    np.testing.assert_array_equal(got[0], clip(file.getvalue()).pixel_values[0])


def test_where_the_ring_is_too_small_messages_carry_what_they_can(tmp_path: Path) -> None:
    settings = tmp_path / "millrace.toml"
    settings.write_text('[limits]\nring = "300 KiB"\n')
    with (
        millrace.serve(tmp_path, lanes=1, arguments=["--config", str(settings)]) as daemon,
        millrace.connect(daemon.address) as client,
        ImageProcessor.from_config(example(CLIP), client=client) as processor,
    ):
        for image in (picture(300, 200), picture(500, 400), picture(30, 20)):  # 180 kB, 600 kB
            file = io.BytesIO()
            image.save(file, "PNG")
            wanted = processor(file.getvalue(), copy=True).pixel_values
            np.testing.assert_array_equal(processor(image).pixel_values, wanted)
        with pytest.raises(millrace.ResourceExhausted, match=r"limits.ring .* goes through it: call with smaller images"):
            processor(picture(1000, 600))
        assert processor(picture(30, 20)).pixel_values.shape == (1, 3, 224, 224)


def test_what_is_not_converted_must_have_three_channels(client: millrace.Client, tmp_path: Path, clip: ImageProcessor) -> None:
    with both(client, "vit_base_patch16_224", tmp_path) as (ours, own):
        for taken in (picture(), picture().convert("YCbCr"), scenery(90, 70, 3)):
            assert_same(ours(taken, return_tensors="np"), own(taken, return_tensors="np"))
        for refused in (picture().convert("L"), with_alpha(), palette(False), rgba(), scenery(90, 70, 3)[..., :1]):
            with pytest.raises(ValueError, match="elements"):
                own(refused, return_tensors="np")
            with pytest.raises(millrace.InvalidRequest, match=r"images\[1\].* do_convert_rgb=True"):
                ours([picture(), refused], return_tensors="np")
            assert_same(ours(refused, return_tensors="np", do_convert_rgb=True), own(refused, return_tensors="np", do_convert_rgb=True))
            with pytest.raises(millrace.InvalidRequest, match=r"the image.* do_convert_rgb=True"):
                clip(refused, do_convert_rgb=False)


class Unreadable:
    def read(self) -> str:
        raise OSError("the disk is gone")


@pytest.mark.parametrize(
    ("image", "words"),
    [
        (3, "must be a file's bytes, its path, an open file, a data URL, .* or a PyTorch tensor; is a builtins.int"),
        (None, "is a builtins.NoneType"),
        ({"path": "/x"}, "is a builtins.dict"),
        ("http://example.org/a.jpg", "is a URL .* fetch it"),
        ("https://example.org/a.jpg", "is a URL .* fetch it"),
        ("data:image/jpeg,abc", "data URL without base64"),
        ("abcd" * 2000, "a str of 8000 letters .* base64 is given as data:"),
        ("data:image/jpeg;base64,abc", "base64 is broken"),
        ("data:image/jpeg;base64,ä", "base64 is broken"),
        ("data:image/jpeg;base64,", "data URL without content"),
        (io.BytesIO(), "a file at its end, or an empty one"),
        (io.StringIO("text"), 'opened as text; open it with mode "rb"'),
        (Unreadable(), "cannot be read .the disk is gone."),
        (np.zeros((4, 5), np.uint8), r"must be \[height, width, channels\].*\(4, 5\)"),
        (np.zeros((0, 5, 3), np.uint8), r"\(0, 5, 3\)"),
        (np.zeros((5, 5, 5), np.uint8), "which axis .* are the channels"),
        (np.zeros((5, 5, 2), np.uint8), "which axis .* are the channels"),
        (np.full((5, 5, 3), 300), "values from 300 to 300; give uint8"),
        (np.full((5, 5, 3), -1), "values from -1 to -1"),
        (np.full((5, 5, 3), np.nan), "values from nan to nan"),
        (np.full((5, 5, 3), 0.5), "between 0 and 1: multiply by 255 and round"),
        (np.full((5, 5, 3), 3.5), "no whole numbers: round"),
        (np.full((5, 5, 4), 3.0), "RGBA as float64; give uint8"),
        (np.full((5, 5, 3), "a"), "an array of <U1; give uint8"),
    ],
)
def test_what_is_no_image_is_refused_by_its_place(clip: ImageProcessor, image: Any, words: str) -> None:
    for images, name in (([b"x", image], r"images\[1\]"), ([[b"x"], [b"y", image]], r"images\[1\]\[1\]")):
        with pytest.raises(millrace.InvalidRequest, match=f"^{name}: .*{words}"):
            clip(images)


def test_a_picture_that_pil_cannot_decode_is_named(clip: ImageProcessor) -> None:
    file = io.BytesIO()
    picture().save(file, "JPEG")
    cut = Image.open(io.BytesIO(file.getvalue()[:-2000]))

    with pytest.raises(millrace.InvalidRequest, match=r"images\[1\]: PIL cannot read it"):
        clip([picture(), cut])


def test_lists_that_mix_images_and_rows_are_refused(clip: ImageProcessor) -> None:
    for images in ([picture(), [picture()]], [[picture()], picture()]):
        with pytest.raises(millrace.InvalidRequest, match="mixes both"):
            clip(images)
    for nothing in ([], [[]], [[], []], ()):
        with pytest.raises(millrace.InvalidRequest, match="at least one"):
            clip(nothing)
