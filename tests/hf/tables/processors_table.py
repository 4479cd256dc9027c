"""Prints the table of client/python/doc/processors.md: every class of transformers' image processors, and how it is supported."""

from __future__ import annotations

import sys
from pathlib import Path

from millrace.hf._families.families import FAMILIES
from millrace.hf._families.many_sizes import MANY_SIZES
from millrace.hf._families.patch_rows import PATCH_ROWS
from millrace.hf._families.refusals import REFUSED
from millrace.hf._families.tile_families import TILES

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from roster import BOUNDS, classes

NO_ANNOTATIONS = "images and `pixel_mask`, without annotations"
NO_MAPS = "images, without segmentation maps"
ONE_SIZE_A_CALL = "images of one resulting size in a call, or one image"

NOTES: dict[str, str] = {
    "Aria": "without `split_image`",
    "Beit": NO_MAPS,
    "ConditionalDetr": NO_ANNOTATIONS,
    "DPT": f"{NO_MAPS}, without `do_pad`; {ONE_SIZE_A_CALL}",
    "DeformableDetr": NO_ANNOTATIONS,
    "Detr": NO_ANNOTATIONS,
    "Flava": "without random masks and codebook pixels",
    "GLPN": ONE_SIZE_A_CALL,
    "Gemma3": "without pan and scan",
    "GotOcr2": "InternVL, Aya Vision",
    "GroundingDino": NO_ANNOTATIONS,
    "LayoutLMv2": "with `apply_ocr` false: texts are not read here",
    "LayoutLMv3": "with `apply_ocr` false: texts are not read here",
    "Llava": "without `do_pad`",
    "LlavaNext": "`size` and `crop_size` are the side of `image_grid_pinpoints`' tiles, which the class's own defaults are not",
    "LlavaOnevision": "images, each by itself; rows of several images are refused",
    "Mask2Former": f"{NO_MAPS}; with `pixel_mask`",
    "MaskFormer": f"{NO_MAPS}; with `pixel_mask`",
    "Mllama": "Llama 3.2 Vision; rows of images; `num_tiles` is a list of lists",
    "MobileNetV2": NO_MAPS,
    "MobileViT": NO_MAPS,
    "OneFormer": f"{NO_MAPS}; `task_inputs` is a list, the panoptic task",
    "PromptDepthAnything": f"without `prompt_depth` and `do_pad`; {ONE_SIZE_A_CALL}",
    "Qwen2VL": "Qwen2-VL, Qwen2.5-VL, Qwen3-VL; images, not videos",
    "RTDetr": "images, without annotations",
    "Sam": "images and sizes, without segmentation maps",
    "Sam2": "images and sizes, without segmentation maps",
    "Sam3": "images and sizes, without segmentation maps",
    "Sapiens2": f"{NO_MAPS}, boxes and `do_pad`",
    "SegGpt": "images of three channels, without prompts",
    "Segformer": NO_MAPS,
    "Siglip": "also PaliGemma, Gemma 3n, SigLIP 2 of one size",
    "SuperPoint": "without `do_grayscale`",
    "TextNet": ONE_SIZE_A_CALL,
    "VideoMAE": "rows of frames, a row a video",
    "Yolos": NO_ANNOTATIONS,
}
"""What is to be known of a class that is supported."""

NAMES = sorted(classes(), key=str.lower)


def made(name: str) -> str:
    """What becomes of an image."""
    for family, words in ((TILES, "tiles or padding"), (PATCH_ROWS, "rows of patches"), (MANY_SIZES, "a size of its own")):
        if name in family:
            return words
    return "one size"


def row(name: str) -> str:
    """Of the table."""
    kind = classes()[name]
    if name in REFUSED:
        return f"| `{name}ImageProcessor` | refused | | {REFUSED[name]} |"
    bound = BOUNDS.get(name)
    result = "equal" if kind.pil else f"torchvision's, ≤ {bound.largest}, mean ≤ {bound.mean}" if bound else "?"
    return f"| `{name}ImageProcessor` | {result} | {made(name)} | {NOTES.get(name, '')} |"


def table() -> str:
    """All of it."""
    head = "| class | result | an image becomes | what to know |\n|---|---|---|---|"
    return "\n".join([head, *(row(name) for name in NAMES)])


def counts() -> str:
    """The sentence before it."""
    supported = [name for name in NAMES if name in FAMILIES]
    bounded = [name for name in supported if classes()[name].pil is None]
    return (
        f"Of {len(NAMES)} classes {len(supported)} are supported, {len(supported) - len(bounded)} of them with equal results and "
        f"{len(bounded)} within a bound; {len(NAMES) - len(supported)} are refused."
    )


if __name__ == "__main__":
    print(f"{counts()}\n\n{table()}")
