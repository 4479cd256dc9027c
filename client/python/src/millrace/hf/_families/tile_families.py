"""The families that make several pictures of an image: tiles of it, quarters, and the whole beside them."""

from __future__ import annotations

from functools import partial

from millrace.hf._families.config import Keys
from millrace.hf._families.one_size import Row
from millrace.hf._families.own import CLIP, HALF, Own, must_resize, recipe_of, square
from millrace.hf._plans.any_resolution import AnyResolution
from millrace.hf._plans.grids import covering, least_enlarged, nearest_ratio
from millrace.hf._plans.plans import OneSize, Padded, Plan, Tiles
from millrace.hf._plans.tiling import Canvases, ChosenTiles
from millrace.recipe import BoundedSides, DType, ExactSize, Patches, Resize, Size, TileGrid

_MOST_TILES = 1024  # of an image; each choice of columns and rows is looked at


def got_ocr2(own: Own, keys: Keys, dtype: DType | None) -> Plan:
    """GotOcr2ImageProcessor, which InternVL uses: one square, or with ``crop_to_patches`` tiles and a thumbnail."""
    tile = keys.exact_size("size", own.size)
    least, most = keys.count("min_patches", 1), keys.count("max_patches", 12, _MOST_TILES)
    tiled = keys.flag("crop_to_patches", False) and most > 1
    keys.flag("do_resize", True)  # tiles have their size already
    if not tiled:
        must_resize(keys)
        return OneSize(recipe_of(keys, dtype, own, ExactSize(tile)), beside=("num_patches", 1, ()))
    if most < least:
        raise keys.wrong("max_patches", f"{most} is less than min_patches, {least}")
    grid = TileGrid(tile, least, most)
    return Tiles(recipe_of(keys, dtype, own, grid, packing="packed", patches=Patches(tile)))


def ovis2(own: Own, keys: Keys, dtype: DType | None) -> Plan:
    """Ovis2ImageProcessor: one square, or with ``crop_to_patches`` a thumbnail and tiles."""
    tile = keys.exact_size("size", own.size)
    least, most = keys.count("min_patches", 1), keys.count("max_patches", 12, _MOST_TILES)
    covers = keys.flag("use_covering_area_grid", True)
    if not (keys.flag("crop_to_patches", False) and most > 1):
        must_resize(keys)
        return OneSize(recipe_of(keys, dtype, own, ExactSize(tile)), beside=("grids", 1, (2,)))
    if most < least:
        raise keys.wrong("max_patches", f"{most} is less than min_patches, {least}")
    keys.flag("do_resize", True)  # tiles have their size already
    grid = partial(covering, tile=tile, most=most) if covers else partial(nearest_ratio, tile=tile, least=least, most=most)
    return ChosenTiles(recipe_of(keys, dtype, own, None, packing="one_size"), tile, grid, most, "grids")


def cohere2_vision(own: Own, keys: Keys, dtype: DType | None) -> Plan:
    """Cohere2VisionImageProcessor: tiles and a thumbnail, or without ``crop_to_patches`` one square."""
    tile = keys.exact_size("size", own.size)
    most = keys.count("max_patches", 12, _MOST_TILES)
    keys.accept("min_patches", "patch_size")
    if not keys.flag("crop_to_patches", True):
        must_resize(keys)
        return OneSize(recipe_of(keys, dtype, own, ExactSize(tile)), beside=("num_patches", 1, ()))
    if tile.width != tile.height:
        keys.unsupported("size", "its sides must be equal")
    keys.flag("do_resize", True)  # tiles have their size already
    grid = partial(least_enlarged, tile=tile, most=most)
    return ChosenTiles(recipe_of(keys, dtype, own, None), tile, grid, most, "num_patches")


def mllama(own: Own, keys: Keys, dtype: DType | None) -> Plan:
    """MllamaImageProcessor: a canvas of up to ``max_image_tiles`` tiles."""
    tile = keys.exact_size("size", own.size)
    if tile.width != tile.height:
        keys.unsupported("size", "its sides must be equal")
    must_resize(keys)
    keys.only("do_pad", True)
    return Canvases(recipe_of(keys, dtype, own, None, packing="packed"), tile.width, keys.count("max_image_tiles", 4, _MOST_TILES))


def idefics2(own: Own, keys: Keys, dtype: DType | None) -> Plan:
    """Idefics2ImageProcessor: bounded sides, padded; with ``do_image_splitting`` four quarters before each image."""
    forms = [("shortest_edge", "longest_edge"), ("height", "width")]
    size = keys.size("size", own.size, (), forms)
    if not keys.flag("do_resize", True):
        keys.unsupported("do_resize", "false is not supported for Idefics2")
    if not keys.flag("do_pad", True):
        keys.unsupported("do_pad", "false leaves images of different sizes, which make no one array")
    if "height" in size:
        resize: Resize = ExactSize(Size(size["width"], size["height"]))
    elif size["longest_edge"] < size["shortest_edge"]:
        raise keys.wrong("size", f"longest_edge {size['longest_edge']} is less than shortest_edge {size['shortest_edge']}")
    else:
        resize = BoundedSides(size["shortest_edge"], size["longest_edge"])
    split = keys.flag("do_image_splitting", False)
    return Padded(recipe_of(keys, dtype, own, resize, packing="packed"), split)


def llava_next(own: Own, keys: Keys, dtype: DType | None) -> Plan:
    """LlavaNextImageProcessor: the whole image and tiles at one of ``image_grid_pinpoints``."""
    size = keys.size("size", own.size, ("shortest_edge",), [("height", "width"), ("shortest_edge",)])
    side = keys.exact_size("crop_size", {"height": 224, "width": 224}).height
    if set(size.values()) != {side} or keys.exact_size("crop_size", {"height": 224, "width": 224}).width != side:
        keys.unsupported("crop_size", "must be a square of the side that `size` names, or tiles would be resized once more")
    if keys.take("aspect_ratio_setting", "anyres") != "anyres":
        keys.unsupported("aspect_ratio_setting", "only anyres is supported")
    keys.flag("do_center_crop", True)  # of tiles that have the crop's size already
    return _any_resolution(own, keys, dtype, side, [[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]], counts=False)


def llava_onevision(own: Own, keys: Keys, dtype: DType | None) -> Plan:
    """LlavaOnevisionImageProcessor: the same with resolutions of its own; of lists of lists those that hold one image each."""
    size = keys.size("size", own.size, ("shortest_edge",), [("height", "width"), ("shortest_edge",)])
    if len(set(size.values())) > 1:
        keys.unsupported("size", "its sides must be equal, or tiles would be resized once more")
    keys.only("do_center_crop", False)
    if keys.has("crop_size") and keys.exact_size("crop_size", {}).height not in size.values():
        keys.unsupported("crop_size", "is the side of tiles, and must be the one that `size` names, or tiles would be resized once more")
    sides = [384 * times for times in range(1, 7)]
    return _any_resolution(own, keys, dtype, next(iter(size.values())), [[high, wide] for high in sides for wide in sides], counts=True)


def _any_resolution(own: Own, keys: Keys, dtype: DType | None, side: int, pinpoints: list[list[int]], *, counts: bool) -> Plan:
    if not keys.flag("do_resize", True):
        keys.unsupported("do_resize", "false is not supported for this processor")
    if not keys.flag("do_pad", True):
        keys.unsupported("do_pad", "false leaves images with different numbers of tiles, which make no one array")
    resolutions = keys.sizes("image_grid_pinpoints", pinpoints)
    for pinpoint in resolutions:
        if pinpoint.width % side or pinpoint.height % side:
            keys.unsupported("image_grid_pinpoints", f"{pinpoint.height} x {pinpoint.width} does not divide into tiles of {side}")
    return AnyResolution(recipe_of(keys, dtype, own, ExactSize(Size(side, side))), side, resolutions, counts)


TILES: dict[str, Row] = {
    "Cohere2Vision": (cohere2_vision, Own(square(512))),
    "GotOcr2": (got_ocr2, Own(square(384))),
    "Idefics2": (idefics2, Own({"shortest_edge": 378, "longest_edge": 980}, "bilinear", HALF)),
    "LlavaNext": (llava_next, Own({"shortest_edge": 224})),
    "LlavaOnevision": (llava_onevision, Own(square(384))),
    "Mllama": (mllama, Own(square(224), "bilinear", HALF, floats=True)),
    "Ovis2": (ovis2, Own(square(384), statistics=CLIP)),
}
"""By the name of the class without ``ImageProcessor``; sizes, filters and values are its own."""
