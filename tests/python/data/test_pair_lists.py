"""Which images and masks ``Pairs`` are: of lists, arrays, folders and other pairs; parts of them; and what else they are given."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import millrace
import millrace.numpy
import numpy as np
import pytest
from millrace import ExactSize, Pairs, Recipe, Size

PAIRS = Pairs([(f"/i{n}.png", f"/m{n}.png") for n in range(10)], fill=7, erase=True, drawn_upright=True)
EXACT = Recipe(resize=ExactSize(Size(20, 20)))


def options_of(pairs: Pairs) -> tuple[int, bool, bool]:
    return pairs.fill, pairs.erase, pairs.drawn_upright


# ---------------------------------------------------------------------------------------------------------------- parts


@pytest.mark.parametrize(
    "ids",
    [
        [3, 1, 3],
        (3, 1, 3),
        iter([3, 1, 3]),
        np.array([3, 1, 3]),
        np.array([3, 1, 3], np.uint8),
        [np.int64(3), 1, np.uint16(3)],
    ],
)
def test_a_subset_is_of_whole_numbers(ids: Any) -> None:
    part = PAIRS.subset(ids)
    assert list(part) == [PAIRS[3], PAIRS[1], PAIRS[3]]
    assert options_of(part) == (7, True, True)


def test_a_subset_is_of_truth_values() -> None:
    chosen = np.arange(10) % 3 == 1
    for mask in (chosen, chosen.tolist(), list(chosen)):
        part = PAIRS.subset(mask)
        assert list(part) == [PAIRS[1], PAIRS[4], PAIRS[7]]
    assert list(PAIRS.subset([True] * 10)) == list(PAIRS)


@pytest.mark.torch
def test_a_subset_is_of_pytorchs_tensors() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: there are no tensors of its")
    assert list(PAIRS.subset(torch.tensor([9, 0]))) == [PAIRS[9], PAIRS[0]]
    assert list(PAIRS.subset(torch.arange(10) > 7)) == [PAIRS[8], PAIRS[9]]


@pytest.mark.parametrize(
    ("ids", "told"),
    [
        ([1.9, 2.2], r"whole numbers from 0 to 9, or .*, not 1\.9"),
        (np.array([1.0]), r"not 1\.0"),
        ("12", "not '12'"),
        (["1", "2"], "not '1'"),
        ([-1], "not -1"),
        ([0, 10], "not 10"),
        ([2**70], f"not {2**70}"),
        ([True, False], "there are 2 truth values for 10 pairs"),
        (np.ones(11, bool), "there are 11 truth values for 10 pairs"),
        ([1, True], "not True"),
        ([[1, 2]], r"not \[1, 2\]"),
        (np.ones((10, 1), bool), r"not \[True\]"),
        (3, "not 3"),
        (np.int64(3), "not .*3"),
        (None, "not None"),
        ([], "none is left"),
        ([False] * 10, "none is left"),
    ],
)
def test_what_is_no_subset(ids: Any, told: str) -> None:
    with pytest.raises(millrace.InvalidRequest, match=rf"^Pairs: .*{told}"):
        PAIRS.subset(ids)


def test_a_slice_is_pairs() -> None:
    part = PAIRS[1:8:3]
    assert isinstance(part, Pairs)
    assert list(part) == [PAIRS[1], PAIRS[4], PAIRS[7]]
    assert options_of(part) == (7, True, True)
    assert list(PAIRS[::-1]) == list(PAIRS)[::-1]
    assert PAIRS[-1] == ("/i9.png", "/m9.png")
    with pytest.raises(IndexError):
        PAIRS[10]
    with pytest.raises(millrace.InvalidRequest, match="none is left"):
        PAIRS[10:]


# ---------------------------------------------------------------------------------------------------------------- lists


def test_pairs_of_pairs_keep_what_they_are_not_given() -> None:
    assert list(Pairs(PAIRS)) == list(PAIRS)
    assert options_of(Pairs(PAIRS)) == (7, True, True)
    assert options_of(Pairs(PAIRS, fill=0, erase=False)) == (0, False, True)
    assert options_of(Pairs(PAIRS, drawn_upright=False)) == (7, True, False)
    assert options_of(Pairs(list(PAIRS))) == (255, False, False)


def test_an_array_of_pairs() -> None:
    rows = [[f"/i{n}.png", f"/m{n}.png"] for n in range(10)]
    for given in (np.array(rows), np.array(rows, object), list(np.array(rows))):
        made = Pairs(given)
        assert list(made) == list(PAIRS)
        assert {type(path) for pair in made for path in pair} == {str}
    for wrong in (np.array(rows)[:, :1], np.array(rows)[0], np.array(rows).T, np.array("/a")):
        with pytest.raises(millrace.InvalidRequest, match=r"number 0 is .*, and a pair is \(image_path, mask_path\)"):
            Pairs(wrong)


@pytest.mark.parametrize("fill", [200, np.uint8(200), np.int64(200)])
def test_fill_is_any_whole_number(fill: Any) -> None:
    made = Pairs(PAIRS, fill=fill).fill
    assert (made, type(made)) == (200, int)
    assert millrace.mask_recipe(Recipe(pad=millrace.Pad(1)), fill).pad == millrace.Pad(1, fill=200)


@pytest.mark.parametrize("name", ["erase", "drawn_upright"])
def test_flags_are_true_or_false(name: str) -> None:
    for value in ("no", 0, 1, []):
        with pytest.raises(millrace.InvalidRequest, match=rf"Pairs: {name} is True or False, not "):
            Pairs(PAIRS, **{name: value})  # type: ignore[arg-type]
    assert getattr(Pairs(PAIRS, **{name: np.False_}), name) is False  # type: ignore[arg-type]


def test_masks_drawn_upright_are_not_for_images_as_they_are_stored() -> None:
    recipe = Recipe(resize=ExactSize(Size(20, 20)), ignore_orientation=True)
    with pytest.raises(millrace.InvalidRequest, match=r"ignore_orientation=True, .* Pairs\(drawn_upright=True\) .* leave out the one"):
        millrace.numpy.Loader(PAIRS, recipe)
    millrace.numpy.Loader(PAIRS, EXACT)
    millrace.numpy.Loader(Pairs(PAIRS, drawn_upright=False), recipe)


# -------------------------------------------------------------------------------------------------------------- folders


def touch(base: Path, *names: str) -> None:
    for name in names:
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).touch()


def names_of(pairs: Pairs, base: Path) -> list[str]:
    """Of the images, beneath ``base``; their masks are named alike."""
    for image, mask in pairs:
        assert Path(image).relative_to(base / "i").with_suffix("") == Path(mask).relative_to(base / "m").with_suffix("")
    return [str(Path(image).relative_to(base / "i")) for image, _ in pairs]


def test_a_folder_is_taken_once(tmp_path: Path) -> None:
    touch(tmp_path, "i/z/1.png", "m/z/1.png", "i/2.png", "m/2.png", "elsewhere/i/3.png", "elsewhere/m/3.png")
    for side in ("i", "m"):
        os.symlink(".", tmp_path / side / "self")
        os.symlink("z", tmp_path / side / "a")  # comes before z
        os.symlink("..", tmp_path / side / "z" / "up")
        os.symlink(f"../elsewhere/{side}", tmp_path / side / "other")
        os.symlink(f"../elsewhere/{side}", tmp_path / side / "same")
    made = Pairs.of_folders(tmp_path / "i", tmp_path / "m")
    assert names_of(made, tmp_path) == ["2.png", "other/3.png", "z/1.png"]


def test_pairs_come_in_byte_order_of_the_images(tmp_path: Path) -> None:
    stems = ["a", "a-b", "a.b", "a/c", "B", "é", "a0"]
    names = [f"{stem}.{ending}" for stem, ending in zip(stems, ["png", "jpg", "webp", "jpeg", "jpg", "png", "jpg"], strict=True)]
    touch(tmp_path, *(f"i/{name}" for name in names), *(f"m/{stem}.png" for stem in stems))
    want = sorted(names, key=os.fsencode)
    assert names_of(Pairs.of_folders(tmp_path / "i", tmp_path / "m"), tmp_path) == want
    assert want != sorted(names, key=lambda name: os.fsencode(os.path.splitext(name)[0]))  # "a-b.jpg" is before "a.png"


@pytest.mark.parametrize("endings", ["png", ".PNG", ["png"], ("jpg", "png"), iter(["png"])])
def test_endings_are_names(tmp_path: Path, endings: Any) -> None:
    touch(tmp_path, "i/1.png", "i/2.p", "i/3.n", "m/1.png", "m/2.png", "m/3.png", "m/1.g")
    assert names_of(Pairs.of_folders(tmp_path / "i", tmp_path / "m", image_endings=endings), tmp_path) == ["1.png"]
    assert names_of(Pairs.of_folders(tmp_path / "i", tmp_path / "m", image_endings="png", mask_endings="png"), tmp_path) == ["1.png"]


@pytest.mark.parametrize("endings", [[], b"png", 7, None, ["png", 7]])
def test_what_are_no_endings(tmp_path: Path, endings: Any) -> None:
    touch(tmp_path, "i/1.png", "m/1.png")
    for name, told in (("image_endings", "images"), ("mask_endings", "masks")):
        with pytest.raises(millrace.InvalidRequest, match=rf'Pairs: endings of {told} are names, "png" or .*, not '):
            Pairs.of_folders(tmp_path / "i", tmp_path / "m", **{name: endings})


def test_what_is_no_folder_is_named(tmp_path: Path) -> None:
    touch(tmp_path, "i/1.png", "m/1.png")
    image, mask = tmp_path / "i", tmp_path / "m"
    for wrong, told in ((tmp_path / "absent", "absent: No such file or directory"), (image / "1.png", r"1\.png: Not a directory")):
        with pytest.raises(millrace.InvalidRequest, match=f"the folder of images, .*{told}"):
            Pairs.of_folders(wrong, mask)
        with pytest.raises(millrace.InvalidRequest, match=f"the folder of masks, .*{told}"):
            Pairs.of_folders(image, wrong)
