"""Masks in each format that has palettes or grey: as Pillow opens them, or refused."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import millrace
import numpy as np
import pytest
from millrace import ExactSize, Pairs, Recipe, Size
from numpy.typing import NDArray

pytestmark = pytest.mark.torch  # whose environment has Pillow
Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed: there are no masks to compare")

from paired import image_of, loaders, write_mask  # noqa: E402

Mask = NDArray[np.uint8]
WIDTH, HEIGHT = 90, 70
COLOURS = np.random.default_rng(1).integers(0, 256, (256, 3), np.uint8)


def packed(mask: Mask, bits: int) -> list[bytes]:
    """Rows of so many bits a pixel, the first in a byte's upper bits."""
    rows = np.unpackbits(mask[..., None], axis=2)[..., 8 - bits :].reshape(len(mask), -1)
    return [bytes(row) for row in np.packbits(rows, axis=1)]


def runs(row: bytes) -> bytes:
    return b"".join(bytes((1, pixel)) for pixel in row) + b"\0\0"


def write_bmp(path: Path, mask: Mask, bits: int, colours: Mask = COLOURS, compressed: bool = False) -> None:
    """BITMAPINFOHEADER, rows from the bottom up; compressed: a run for each pixel."""
    table = b"".join(bytes((*colour[::-1], 0)) for colour in colours[: 2**bits].tolist())
    if compressed:
        rows = [runs((row << 4 if bits == 4 else row).tobytes()) for row in mask]
    else:
        rows = [row + bytes(-len(row) % 4) for row in packed(mask, bits)]
    data = b"".join(reversed(rows))
    height, width = mask.shape
    method = (1 if bits == 8 else 2) if compressed else 0
    begin = 54 + len(table)
    header = struct.pack("<2sIIIIIIHHIIIIII", b"BM", begin + len(data), 0, begin, 40, width, height, 1, bits, method, len(data), 0, 0, 0, 0)
    path.write_bytes(header + table + data)


def write_tiff(path: Path, mask: Mask, bits: int, photometric: int) -> None:
    """One strip, uncompressed, with a colour map."""
    data, table = b"".join(packed(mask, bits)), (COLOURS[: 2**bits].T.astype("<u2") * 256).tobytes()
    height, width = mask.shape
    begin = 8 + 2 + 12 * 9 + 4
    fields = [(256, 3, 1, width), (257, 3, 1, height), (258, 3, 1, bits), (259, 3, 1, 1), (262, 3, 1, photometric)]
    fields += [(273, 4, 1, begin), (278, 3, 1, height), (279, 4, 1, len(data)), (320, 3, 3 * 2**bits, begin + len(data))]
    directory = b"".join(struct.pack("<HHII", *field) for field in fields)
    path.write_bytes(b"II*\0" + struct.pack("<IH", 8, len(fields)) + directory + bytes(4) + data + table)


def write_gif(path: Path, mask: Mask, place: tuple[int, int] = (0, 0), **options: Any) -> None:
    """On a screen as large as all masks, from ``place`` on."""
    write_mask(path, mask, **options)
    file = bytearray(path.read_bytes())
    picture = file.index(struct.pack("<BHHHH", ord(","), 0, 0, mask.shape[1], mask.shape[0]))
    file[6:10] = struct.pack("<HH", WIDTH, HEIGHT)
    file[picture + 1 : picture + 5] = struct.pack("<HH", *place)
    path.write_bytes(file)


def write_grey(path: Path, mask: Mask, **options: Any) -> None:
    Image.fromarray(mask).save(path, **options)


def write_bilevel(path: Path, mask: Mask) -> None:
    Image.fromarray(mask > 1).save(path)


def deep(path: Path, mask: Mask) -> None:
    Image.fromarray(mask.astype(np.uint16)).save(path)


def coloured(path: Path, mask: Mask, **options: Any) -> None:
    Image.fromarray(COLOURS[mask]).save(path, **options)


def transparent(path: Path, mask: Mask, **options: Any) -> None:
    Image.fromarray(np.stack((mask, mask), axis=2)).save(path, **options)


Written = tuple[str, Callable[..., None], int, dict[str, Any]]  # ending, writer, bits, options

MASKS: dict[str, Written] = {
    **{f"bmp {bits}": ("bmp", write_bmp, bits, {"bits": bits}) for bits in (1, 4, 8)},
    **{f"bmp rle {bits}": ("bmp", write_bmp, bits, {"bits": bits, "compressed": True}) for bits in (4, 8)},
    "bmp palette": ("bmp", write_mask, 8, {}),
    "bmp grey": ("bmp", write_grey, 8, {}),
    "gif": ("gif", write_mask, 4, {"interlace": 0}),
    "gif interlaced": ("gif", write_mask, 8, {"interlace": 1}),
    "gif transparent": ("gif", write_mask, 8, {"transparency": 3}),
    "gif grey": ("gif", write_grey, 8, {}),
    "gif smaller": ("gif", write_gif, 4, {"place": (7, 5)}),
    "gif smaller, transparent": ("gif", write_gif, 4, {"place": (7, 5), "interlace": 1, "transparency": 3}),
    **{f"tiff palette {bits}": ("tif", write_tiff, bits, {"bits": bits, "photometric": 3}) for bits in (1, 2, 4, 8)},
    **{f"tiff grey {bits}": ("tif", write_tiff, bits, {"bits": bits, "photometric": 1}) for bits in (2, 4, 8)},
    **{f"tiff white is zero {bits}": ("tiff", write_tiff, bits, {"bits": bits, "photometric": 0}) for bits in (2, 4, 8)},
    **{f"tiff {how}": ("tiff", write_mask, 8, {"compression": how}) for how in ("raw", "tiff_lzw", "packbits", "tiff_adobe_deflate")},
    **{f"tiff grey {how}": ("tiff", write_grey, 8, {"compression": how}) for how in ("raw", "tiff_lzw", "packbits")},
    "webp": ("webp", write_grey, 8, {"lossless": True}),
}

BLACK_AND_WHITE = np.array([[0, 0, 0], [255, 255, 255]], np.uint8)
REFUSED: dict[str, tuple[Written, str]] = {
    "bmp in colour": (("bmp", coloured, 8, {}), r"has no indices \(recipe\.indices\): store it as PNG"),
    "bmp black and white": (("bmp", write_bmp, 1, {"bits": 1, "colours": BLACK_AND_WHITE}), "black and white.*store it in grey of 8"),
    "tiff in colour": (("tif", coloured, 8, {}), r"has no indices \(recipe\.indices\): store it as PNG"),
    "tiff with alpha": (("tif", transparent, 8, {}), "transparency.*store it without"),
    "tiff of 1 bit": (("tif", write_bilevel, 8, {}), "a grey TIFF of 1 bit, .*store it in 8 bits"),
    "tiff of 16 bits": (("tif", deep, 8, {}), "a grey TIFF of 16 bits, .*store it in 8 bits"),
    "tiff with jpeg": (("tif", write_grey, 8, {"compression": "jpeg"}), "JPEG in it, .*make it anew"),
    "webp in colour": (("webp", coloured, 8, {"lossless": True}), r"has no indices \(recipe\.indices\): store it as PNG"),
    "webp lossy": (("webp", write_grey, 8, {"quality": 100}), "a lossy WebP, .*make it anew"),
    "webp with alpha": (("webp", transparent, 8, {"lossless": True}), "transparency.*store it without"),
}


@pytest.fixture(scope="module")
def place(folder: Path) -> Path:
    made = folder.parent / "mask formats"
    for name in ("images", "masks"):
        (made / name).mkdir(parents=True)
    return made


@pytest.fixture
def make(daemon: millrace.PrivateDaemon) -> Iterator[Callable[..., Any]]:
    with loaders(daemon.address, None) as loader:  # type: ignore[arg-type]
        yield loader


def write(path: Path, written: Written) -> Path:
    """A mask by chance, of classes that have so many bits; with its ending."""
    ending, writer, bits, options = written
    smaller = (30, 19) if writer is write_gif else (0, 0)
    mask = np.random.default_rng(bits).integers(0, 2**bits, (HEIGHT - smaller[0], WIDTH - smaller[1]), np.uint8)
    path = path.parent / f"{path.name}.{ending}"
    writer(path, mask, **options)
    return path


def opened_by_pillow(path: Path) -> Any:
    """Of mode P or L; of a WebP one of its channels."""
    with Image.open(path) as image:
        assert image.mode in (("RGB",) if path.suffix == ".webp" else ("P", "L"))
        return image.getchannel(0) if image.mode == "RGB" else image.copy()


@pytest.mark.parametrize("name", MASKS)
def test_indices_are_what_pillow_opens(make: Any, daemon: millrace.PrivateDaemon, place: Path, name: str) -> None:
    path = write(place / name, MASKS[name])
    opened = opened_by_pillow(path)
    recipe = Recipe(resize=ExactSize(Size(*opened.size)), filter="nearest", channels="grey", indices=True)
    with millrace.connect(daemon.address) as client, client.session(recipe, batch=1) as session:
        np.testing.assert_array_equal(session.get(session.submit([path])).images.numpy()[0, 0], np.asarray(opened))

    image = place / "image.png"
    Image.fromarray(image_of(np.zeros(opened.size[::-1], np.uint8))).save(image)
    loader = make(Pairs([(image, path)] * 20), Recipe.train(48), seed=7)
    for _, masks in loader:
        batch = loader.batch
        for made, (left, top, width, height), flip in zip(masks, batch.boxes.tolist(), batch.flips.tolist(), strict=True):
            cut = opened.crop((left, top, left + width, top + height)).resize((48, 48), Image.Resampling.NEAREST)
            np.testing.assert_array_equal(made, np.asarray(cut)[:, ::-1] if flip else np.asarray(cut))


@pytest.mark.parametrize("name", REFUSED)
def test_masks_that_have_no_indices_say_what_to_do(daemon: millrace.PrivateDaemon, place: Path, name: str) -> None:
    written, told = REFUSED[name]
    path = write(place / f"refused {name}", written)
    recipe = Recipe(resize=ExactSize(Size(32, 32)), filter="nearest", channels="grey", indices=True)
    with (
        millrace.connect(daemon.address) as client,
        client.session(recipe, batch=1) as session,
        pytest.raises(millrace.SampleFailed, match=told),
    ):
        session.get(session.submit([path]))


def test_a_folder_of_masks_may_have_all_formats(make: Any, place: Path) -> None:
    for number, name in enumerate(MASKS):
        path = write(place / "masks" / f"{number:02}", MASKS[name])
        size = opened_by_pillow(path).size
        Image.fromarray(image_of(np.zeros(size[::-1], np.uint8))).save(place / "images" / f"{number:02}.png")
    pairs = Pairs.of_folders(place / "images", place / "masks")
    assert len(pairs) == len(MASKS)
    loader = make(pairs, Recipe(resize=ExactSize(Size(48, 40)), filter="nearest"))
    seen = [(sample, made) for _, masks in loader for sample, made in zip(loader.batch.ids.tolist(), masks.copy(), strict=True)]
    assert len(seen) == len(MASKS)
    for sample, made in seen:
        opened = opened_by_pillow(Path(pairs.masks[sample]))
        np.testing.assert_array_equal(made, np.asarray(opened.resize((48, 40), Image.Resampling.NEAREST)))


def test_a_mask_in_two_formats_needs_a_choice(tmp_path: Path) -> None:
    for name in ("i/1.png", "m/1.png", "m/1.gif"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    with pytest.raises(millrace.InvalidRequest, match=r"named alike: say which ending the masks have \(mask_endings=\)"):
        Pairs.of_folders(tmp_path / "i", tmp_path / "m")
    assert list(Pairs.of_folders(tmp_path / "i", tmp_path / "m", mask_endings="gif").masks) == [str(tmp_path / "m/1.gif")]
