"""Images and their masks: which files they are, what becomes of bad pairs, and what is refused."""

from __future__ import annotations

import dataclasses
import os
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import millrace
import millrace.numpy
import numpy as np
import pytest
from millrace import CentreCrop, ExactSize, Pairs, Recipe, Size, mask_recipe, steps
from millrace._data.mask_file import MaskFiles
from millrace.errors import CODE_NAMES

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch", reason="PyTorch is not installed: pairs are not tried")
Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed: there are no masks with palettes")

import millrace.torch  # noqa: E402

from paired import CLASSES, COUNT, IGNORED, check_alike, classes_of, drain, image_of, loaders, make_place, write_mask  # noqa: E402
from processes import eventually  # noqa: E402

EXACT = Recipe(resize=ExactSize(Size(64, 56)), filter="nearest")


@pytest.fixture(scope="module")
def place(folder: Path) -> Path:
    return make_place(folder.parent / "files")


@pytest.fixture(scope="module")
def pairs(place: Path) -> Pairs:
    return Pairs.of_folders(place / "images", place / "masks")


@pytest.fixture
def make(daemon: millrace.PrivateDaemon, pairs: Pairs) -> Iterator[Callable[..., Any]]:
    with loaders(daemon.address, pairs) as loader:
        yield loader


# --------------------------------------------------------------------------------------------------------- mask files


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_indices_of_palettes_are_pillows(make: Any, place: Path, bits: int) -> None:
    mask = np.random.default_rng(bits).integers(0, 2**bits, (70, 90), np.uint8)
    path, beside = place / f"palette{bits}.png", place / "any.png"
    write_mask(path, mask, bits=bits, transparency=0)
    Image.fromarray(image_of(mask)).save(beside)
    loader = make(Pairs([(beside, path)] * 30), Recipe.train(48), seed=bits)
    with Image.open(path) as opened:
        assert opened.mode == "P"
        np.testing.assert_array_equal(opened, mask)
        for _, masks in loader:
            batch = loader.batch
            for made, (left, top, width, height), flip in zip(masks, batch.boxes.tolist(), batch.flips.tolist(), strict=True):
                want = opened.crop((left, top, left + width, top + height)).resize((48, 48), Image.Resampling.NEAREST)
                np.testing.assert_array_equal(made, np.asarray(want)[:, ::-1] if flip else np.asarray(want))


def test_recipes_say_indices_and_need_grey_and_nearest(daemon: millrace.PrivateDaemon, place: Path) -> None:
    recipe = Recipe(resize=ExactSize(Size(100, 60)), filter="nearest", channels="grey", indices=True)
    with millrace.connect(daemon.address) as client, client.session(recipe, batch=1) as session:
        path = place / "masks" / "00.png"
        np.testing.assert_array_equal(session.get(session.submit([path])).images.numpy()[0, 0], classes_of(0))
        with pytest.raises(millrace.SampleFailed, match="has no indices"):
            session.get(session.submit([place / "images" / "00.png"]))
        for field, value in (("channels", "RGB"), ("filter", "box")):
            with pytest.raises(millrace.InvalidRequest, match=r"recipe\.indices: .* ask for"):
                client.session(dataclasses.replace(recipe, **{field: value}), batch=1)


def test_masks_whose_levels_are_not_their_numbers_are_refused(make: Any, place: Path) -> None:
    for mode, bits in (("1", 1), ("I;16", 16)):
        path = place / f"grey{bits}.png"
        Image.new(mode, (100, 60), 1).save(path)
        with pytest.raises(millrace.Unsupported, match=rf"grey{bits}\.png is a grey PNG of {bits} bit.* convert it once"):
            list(make(Pairs([(place / "images" / "00.png", path)])))


def test_masks_in_colour_are_told_how_to_become_classes(make: Any, place: Path) -> None:
    image = place / "images" / "00.png"
    for mode, ending, kind in (
        ("RGB", "png", "it is RGB: convert"),
        ("RGBA", "png", "it is RGB with transparency"),
        ("L", "jpg", "it is a JPEG"),
    ):
        path = place / f"colour {mode}.{ending}"
        Image.new(mode, (100, 60)).save(path)
        with pytest.raises(millrace.SampleFailed, match=f"colour {mode}.* has no indices.*; {kind}"):
            list(make(Pairs([(image, path)]), on_error="fail"))


def test_a_mask_that_another_file_replaced_is_looked_at_again(tmp_path: Path) -> None:
    path = tmp_path / "mask.png"
    Image.new("L", (9, 9)).save(path)
    files = MaskFiles([str(path)])
    assert [files.check(0), files.check(0)] == ["", ""]
    Image.new("I;16", (9, 9)).save(tmp_path / "new.png")
    (tmp_path / "new.png").replace(path)
    for _ in range(2):
        with pytest.raises(millrace.Unsupported, match=r"mask\.png is a grey PNG of 16 bits"):
            files.check(0)
    Image.new("L", (9, 9)).save(path)
    assert files.check(0) == ""
    path.unlink()
    assert files.check(0) == ""  # the daemon says so when it reads it
    path.mkdir()
    assert "no regular file" in files.check(0)


@pytest.mark.filterwarnings("ignore::millrace.BadImageWarning")
def test_a_pipe_in_the_place_of_a_mask_is_waited_for_by_nobody(make: Any, daemon: millrace.PrivateDaemon, place: Path) -> None:
    pairs, fifo = [(place / "images" / "00.png", place / f"before{n}.png") for n in range(4)], place / "before2.png"
    for _, mask in pairs:
        write_mask(mask, classes_of(0))
    loader, errors = make(Pairs(pairs), batch_size=1, slots=4, on_error="zero", timeout=300), []

    def loop() -> None:
        for number, (images, masks) in enumerate(loader):
            check_alike(images, masks) if not loader.batch.errors else None
            errors.extend(loader.batch.errors)
            if number == 0:
                eventually(lambda: all(of.batches == 4 for of in both()), "all masks are made")
                fifo.unlink()
                os.mkfifo(fifo)

    def both() -> list[Any]:
        session = loader._session.id
        return [of for of in client.statistics().sessions if of.id == session or of.name == f"masks of {session}"]

    with millrace.connect(daemon.address) as client:
        thread = threading.Thread(target=loop)
        thread.start()
        thread.join(300)
        waits = thread.is_alive()
        os.close(os.open(fifo, os.O_RDWR | os.O_NONBLOCK))  # who waits for it goes on
        thread.join()
    assert not waits
    assert [(error.index, error.sample_id, error.path, error.code) for error in errors] == [(0, 2, str(fifo), "INVALID_ARGUMENT")]
    assert "is no regular file any more" in errors[0].message


# ---------------------------------------------------------------------------------------------------------- bad pairs


@pytest.fixture(scope="module")
def bad(pairs: Pairs, place: Path) -> Pairs:
    """3: the mask is no picture; 6: nor the image; 9: the mask is of another size; 12: in colour; 16 to 19: not there."""
    rows = list(pairs)
    (place / "no.png").write_bytes(b"nothing")
    Image.new("L", (5, 7)).save(place / "small.png")
    rows[3] = rows[3][0], str(place / "no.png")
    rows[6] = str(place / "no.png"), rows[6][1]
    rows[9] = rows[9][0], str(place / "small.png")
    rows[12] = rows[12][0], rows[12][0]
    for number in range(16, COUNT):
        rows[number] = rows[number][0], str(place / "absent.png")
    return Pairs(rows)


WRONG = {
    3: "no.png",
    6: "no.png",
    9: "small.png.*5 x 7 pixels, and its image 91 x 69",
    12: "12.png.*has no indices.*it is RGB: convert it to a palette or grey",
    16: "absent.png",
}


@pytest.mark.filterwarnings("ignore::millrace.BadImageWarning")
@pytest.mark.parametrize("writable", [True, False])
@pytest.mark.parametrize("how", ["skip", "zero", "substitute"])
def test_what_becomes_of_bad_pairs(make: Any, bad: Pairs, how: str, writable: bool) -> None:
    many = bad.subset(range(16)) if how == "substitute" else bad
    loader, ids, found = make(many, on_error=how, writable=writable), [], []
    for images, masks in loader:
        batch = loader.batch
        broken = batch.status != 0
        ids += batch.ids.tolist()
        found += [error.sample_id for error in batch.errors]
        if how == "zero":
            assert not images[broken].any()
            assert (masks[broken] == IGNORED).all()
            check_alike(images[~broken], masks[~broken])
        else:
            check_alike(images, masks)
        for error in batch.errors:
            if how != "skip":
                assert CODE_NAMES[batch.status[error.index]] == error.code
            if error.sample_id in WRONG:
                assert re.search(WRONG[error.sample_id], f"{error.source}: {error.message}"), error
    wrong = [n for n in (3, 6, 9, 12, 16, 17, 18, 19) if n < len(many)]
    assert (
        ids
        == {
            "skip": [n for n in range(len(many)) if n not in wrong],
            "zero": list(range(len(many))),
            "substitute": [n - 1 if n in wrong else n for n in range(len(many))],
        }[how]
    )
    assert found == [n for n in wrong if n < 16 or how != "skip"]
    assert loader.bad == len(wrong)


def test_a_pair_of_two_bad_files_is_one_error_and_one_warning(make: Any, pairs: Pairs, place: Path) -> None:
    rows = [(place / f"no image {n}.png", place / f"no mask {n}.png") for n in range(18)]
    loader, codes = make(Pairs([*pairs, *rows, (pairs.images[0], place / "alone.png")]), on_error="zero", batch_size=13), []

    def look() -> None:
        for _ in range(2):
            for _ in loader:
                batch = loader.batch
                codes.extend(error.code for error in batch.errors)
                assert [(error.index, error.code) for error in batch.errors] == [
                    (number, CODE_NAMES[code]) for number, code in enumerate(batch.status) if code
                ]

    with pytest.warns(millrace.BadImageWarning) as told:
        look()
    assert codes == ["NOT_FOUND"] * 38
    assert loader.bad == 38
    texts = [str(warning.message) for warning in told]
    for number, text in enumerate(texts[:18]):
        assert re.search(rf"no image {number}\.png: .*; nor is its mask good: .*no mask {number}\.png: ", text)
    assert len(texts) == 19
    assert "alone.png: " in texts[18]


@pytest.mark.filterwarnings("ignore::millrace.BadImageWarning")
def test_a_bad_pair_ends_a_loop_that_may_not_have_any(make: Any, bad: Pairs) -> None:
    with pytest.raises(millrace.SampleFailed, match=r"no\.png"):
        drain(make(bad, on_error="fail"))
    for how, force in (("substitute", "on_error is substitute"), (None, "no on_error was chosen")):
        with pytest.raises(millrace.SampleFailed, match=f"no pair of the batch's 4 is good, .*; {force}: skip or zero go on"):
            drain(make(bad, on_error=how, batch_size=4))


@pytest.mark.filterwarnings("ignore::millrace.BadImageWarning")
def test_what_is_a_copy_is_no_slot_to_be_page_locked(make: Any, bad: Pairs) -> None:
    loader, found = make(bad.subset(range(4)), kind=millrace.torch.Loader, device="meta", batch_size=2), []
    for _ in loader:
        images = torch.from_dlpack(loader.batch.images)
        within = np.shares_memory(images.numpy(), loader._session.memory())
        assert within or not loader._page_locked(images)
        found.append((within, loader.batch.ids.tolist()))
    assert found == [(True, [0, 1]), (False, [2])]


def test_masks_of_images_that_exif_turns(make: Any, place: Path) -> None:
    stored, mask = [place / f"turned.{ending}" for ending in ("png", "mask.png")], classes_of(0)
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(image_of(mask)).save(stored[0], exif=exif)
    Image.fromarray(mask).save(stored[1])
    upright = place / "upright.png"
    Image.fromarray(np.rot90(mask, -1)).save(upright)
    turned = place / "turned too.png"
    Image.fromarray(mask).save(turned, exif=exif)
    square = place / "square.png", place / "square.mask.png"
    Image.fromarray(image_of(mask[:50, :50])).save(square[0], exif=exif)
    Image.fromarray(mask[:50, :50]).save(square[1])

    ((images, masks),) = make(Pairs([(stored[0], upright)], drawn_upright=True), EXACT)
    check_alike(images, masks)
    ((images, masks),) = make(Pairs([(stored[0], turned)]), EXACT)
    check_alike(images, masks)
    ((images, masks),) = make(Pairs([stored]), dataclasses.replace(EXACT, ignore_orientation=True))
    check_alike(images, masks)
    told = r"the mask is 100 x 60 pixels, and its image 60 x 100: EXIF turns the image \(orientation 6\), .*ignore_orientation=True\)"
    with pytest.raises(millrace.SampleFailed, match=told):
        list(make(Pairs([stored]), EXACT, on_error="fail"))
    told = r"the mask is 60 x 100 pixels, and its image 100 x 60: the recipe has ignore_orientation=True; .* Pairs\(drawn_upright=True\)"
    with pytest.raises(millrace.SampleFailed, match=told):
        list(make(Pairs([(stored[0], upright)]), dataclasses.replace(EXACT, ignore_orientation=True), on_error="fail"))
    told = r"the mask is 60 x 100 pixels, and its image 100 x 60: EXIF turns the mask \(orientation 6\), and not the image;"
    Image.fromarray(image_of(mask)).save(place / "not turned.png")
    with pytest.raises(millrace.SampleFailed, match=told):
        list(make(Pairs([(place / "not turned.png", turned)]), EXACT, on_error="fail"))
    with pytest.raises(millrace.SampleFailed, match=r"orientation 6.*drawn_upright=True"):
        list(make(Pairs([square]), EXACT, on_error="fail"))


# ------------------------------------------------------------------------------------------------- lists and refusals


def test_two_folders_whose_files_are_named_alike(tmp_path: Path) -> None:
    for name in ("i/b/1_img.jpg", "i/a/1_img.JPEG", "i/.x/1_img.jpg", "i/other.jpg", "m/a/1_gt.png", "m/b/1_gt.png", "m/b/2_gt.png"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    suffixes = {"image_suffix": "_img", "mask_suffix": "_gt"}
    made = Pairs.of_folders(tmp_path / "i", tmp_path / "m", **suffixes)
    want = [(f"i/{one}", f"m/{other}") for one, other in (("a/1_img.JPEG", "a/1_gt.png"), ("b/1_img.jpg", "b/1_gt.png"))]
    assert list(made) == [(str(tmp_path / one), str(tmp_path / other)) for one, other in want]
    assert list(Pairs(want, root=tmp_path)) == list(made)
    assert made.subset([1])[0] == made[1]
    (tmp_path / "i/c_img.png").touch()
    with pytest.raises(millrace.InvalidRequest, match=r"1 of 3 images have no mask in .*, such as .*c_img\.png"):
        Pairs.of_folders(tmp_path / "i", tmp_path / "m", **suffixes)
    (tmp_path / "i/c_img.jpg").touch()
    with pytest.raises(millrace.InvalidRequest, match="are named alike"):
        Pairs.of_folders(tmp_path / "i", tmp_path / "m", **suffixes)
    with pytest.raises(millrace.InvalidRequest, match="there is no image"):
        Pairs.of_folders(tmp_path / "m", tmp_path / "m", image_suffix="_none")


def test_torchvisions_voc(make: Any, folder: Path) -> None:
    datasets = pytest.importorskip("torchvision.datasets", reason="torchvision is not installed: it has no VOCSegmentation")
    base = folder.parent / "voc" / "VOCdevkit" / "VOC2012"
    for name in ("ImageSets/Segmentation", "JPEGImages", "SegmentationClass"):
        (base / name).mkdir(parents=True)
    (base / "ImageSets" / "Segmentation" / "train.txt").write_text("one\ntwo\n")
    for number, name in enumerate(("one", "two")):
        Image.fromarray(image_of(classes_of(number))).save(base / "JPEGImages" / f"{name}.jpg")
        write_mask(base / "SegmentationClass" / f"{name}.png", classes_of(number))
    voc = datasets.VOCSegmentation(folder.parent / "voc", image_set="train")
    ((images, masks),) = make(Pairs(voc), Recipe(crop=CentreCrop(Size(64, 56)), filter="nearest"))
    for number, mask in enumerate(masks):
        height, width = classes_of(number).shape
        top, left = (height - 56) // 2, (width - 64) // 2
        assert images.shape[2:] == mask.shape
        middles = [classes_of(number)[y : y + 56, x : x + 64] for y in (top, top + 1) for x in (left, left + 1)]
        assert any(np.array_equal(mask, middle) for middle in middles)
    voc.transforms = voc.transform = lambda image: image
    with pytest.raises(millrace.InvalidRequest, match="the VOCSegmentation has transform: make it without"):
        Pairs(voc)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("folder", "takes .*Pairs.of_folders"),
        ([], "there are none"),
        (["a.png"], "number 0 is 'a.png', and a pair is"),
        ([("a", "b"), ("a", "b", "c")], "number 1 is"),
        ([("a", "http://b/c.png")], "is a URL"),
        (7, "number 0 is 7"),
    ],
)
def test_what_are_no_pairs(given: Any, said: str) -> None:
    with pytest.raises(millrace.InvalidRequest, match=said):
        Pairs(given)


def test_what_masks_cannot_follow_is_refused_by_name(pairs: Pairs) -> None:
    auto: tuple[steps.Step, ...] = (
        steps.RandAugment(),
        steps.TrivialAugmentWide(),
        steps.AutoAugment(),
        steps.TimmRandAugment(),
        steps.AugMix(),
        steps.TimmAugMix(),
    )
    for step in (*auto, steps.OneOf((steps.Sequence(auto[:1]),))):
        with pytest.raises(millrace.Unsupported, match="RandAugment|" + type(step).__name__):
            millrace.numpy.Loader(pairs, dataclasses.replace(EXACT, steps=(step,)))
    patches = Recipe(resize=ExactSize(Size(28, 28)), patches=millrace.Patches(Size(14, 14)))
    for recipe, said in ((Recipe.of_views(EXACT, EXACT), "views"), (patches, "patches")):
        with pytest.raises(millrace.Unsupported, match=said):
            millrace.numpy.Loader(pairs, recipe)
    with pytest.raises(millrace.Unsupported, match="leave out memory=cuda:0"):
        millrace.torch.Loader(pairs, EXACT, memory="cuda:0")
    for fill in (-1, 256, True, "255", 1.5):
        with pytest.raises(millrace.InvalidRequest, match="fill is a class from 0 to 255"):
            mask_recipe(EXACT, fill)  # type: ignore[arg-type]
        with pytest.raises(millrace.InvalidRequest, match="fill is a class from 0 to 255"):
            Pairs(list(pairs), fill=fill)  # type: ignore[arg-type]


def test_datasets_that_take_no_pairs(make: Any, pairs: Pairs) -> None:
    data = torch.utils.data
    for given in (data.Subset(pairs, [1]), data.random_split(pairs, [12, 8])[0], data.ConcatDataset([pairs, pairs])):
        with pytest.raises(millrace.InvalidRequest, match=r"pairs\.subset\(ids\) .* millrace\.Pairs\(\[\*first, \*second\]\) one list"):
            make(given)
    split = data.random_split(pairs, [12, 8])[1]
    assert list(pairs.subset(split.indices)) == [pairs[index] for index in split.indices]
    with pytest.raises(millrace.InvalidRequest, match="extensions= is for folders"):
        list(make(extensions="png"))
    with pytest.raises(millrace.InvalidRequest, match="labels must be one class number an image"):
        list(millrace.torch.Mixed(make(kind=millrace.torch.Loader, dtype="float32"), millrace.torch.MixUp(0.2), classes=CLASSES))
