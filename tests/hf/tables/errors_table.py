"""Prints the tables of errors of client/python/doc/hugging_face.md: each family over all pictures of pictures.py and MILLRACE_TEST_DATA.

    errors_table.py [--backend pil|torchvision] [--photographs] [--classes N]

``--classes`` prints the largest and the mean error of every class that is supported instead, with its own defaults, over N photographs.
``torchvision`` compares with the processors that AutoImageProcessor gives by default, and needs torch and torchvision as well.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

import millrace
import numpy as np
from millrace.hf import ImageProcessor
from millrace.hf._families.families import FAMILIES

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from peers import difference, example, made_by, theirs
from pictures import make_pictures, photographs
from roster import DEFAULTS, OLDER_NAMES, processor_class

CHUNK = 6

ROWS: list[tuple[str, str, dict[str, Any]]] = [
    ("CLIP ViT-B/32", "clip_vit_base_patch32", {}),
    ("CLIP ViT-L/14-336", "clip_vit_large_patch14_336", {}),
    ("LLaVA-1.5", "llava_1_5_7b", {}),
    ("LLaVA-NeXT (1.6)", "llava_v1_6_mistral_7b", {}),
    ("ViT-B/16", "vit_base_patch16_224", {}),
    ("SigLIP so400m-384", "siglip_so400m_patch14_384", {}),
    ("SigLIP 2 base-256", "siglip2_base_patch16_256", {}),
    ("PaliGemma 224", "paligemma_3b_pt_224", {}),
    ("Gemma 3n", "gemma_3n_e4b", {}),
    ("Idefics", "idefics_9b", {}),
    ("Idefics2, split in four", "idefics2_8b", {}),
    ("Idefics2, whole", "idefics2_8b", {"do_image_splitting": False}),
    ("Qwen2-VL", "qwen2_vl_7b", {}),
    ("Qwen2.5-VL", "qwen2_5_vl_7b", {}),
    ("Qwen3-VL", "qwen3_vl_8b", {}),
    ("InternVL3, tiles", "internvl3_1b", {"crop_to_patches": True}),
]


def row(client: millrace.Client, title: str, config: dict[str, Any], paths: list[Path], backend: str) -> str:
    largest, total, count, others = 0.0, 0.0, 0, True
    names: set[str] = set()
    with ImageProcessor.from_config(config, client=client) as processor:
        for at in range(0, len(paths), CHUNK):
            chunk = paths[at : at + CHUNK]
            got, wanted = processor(chunk, copy=True), theirs(config, chunk, backend)
            one = difference(got["pixel_values"], wanted["pixel_values"])
            size = wanted["pixel_values"].size
            largest, total, count = max(largest, one.largest), total + one.mean * size, count + size
            names |= wanted.keys() - {"pixel_values"}
            others &= all(np.array_equal(got[name], wanted[name]) for name in names)
    verdict = f"{', '.join(f'`{name}`' for name in sorted(names))}: {'equal' if others else 'DIFFERENT'}" if names else "-"
    return f"| {title} | {len(paths)} | {count / 1e6:.0f} M | {largest:.2g} | {total / count:.2g} | {verdict} |"


def of_classes(client: millrace.Client, paths: list[Path], backend: str) -> None:
    """One line a class, image by image."""
    print("| class | largest error | mean error | beside `pixel_values` |\n|---|---|---|---|")
    for name in sorted(FAMILIES.keys() - OLDER_NAMES.keys()):
        theirs_now = processor_class(name, backend)(**DEFAULTS.get(name, {}))
        errors, same = [], True
        with ImageProcessor.from_config(theirs_now.to_dict(), client=client) as processor:
            for path in paths:
                got, wanted = processor([path]), made_by(theirs_now, [path])
                errors.append(difference(got["pixel_values"], wanted["pixel_values"]))
                same &= all(np.array_equal(got[key], wanted[key]) for key in wanted.keys() - {"pixel_values"})
        largest, mean = max(error.largest for error in errors), sum(error.mean for error in errors) / len(errors)
        print(f"| {name} | {largest:.2g} | {mean:.2g} | {'equal' if same else 'DIFFERENT'} |", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=("pil", "torchvision"), default="pil", help="of transformers' processors (pil)")
    parser.add_argument("--photographs", action="store_true", help="without the pictures that are made to be difficult")
    parser.add_argument("--classes", type=int, metavar="N", help="every class, over N photographs")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        paths = ([] if given.photographs else make_pictures(Path(folder))) + photographs()
        roots = sorted({str(path.parent) for path in paths})
        with millrace.serve(roots, lanes=2) as daemon, millrace.connect(daemon.address) as client:
            if given.classes:
                of_classes(client, photographs()[:: max(1, len(photographs()) // given.classes)][: given.classes], given.backend)
                return 0
            print("| family | pictures | values compared | largest error | mean error | beside `pixel_values` |\n|---|---|---|---|---|---|")
            for title, name, changes in ROWS:
                print(row(client, title, {**example(name), **changes}, paths, given.backend), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
