#!/usr/bin/env python3
"""DALI's training pipeline on a GPU: mixed decoding with random crops, resize, flip, normalisation to float16 NCHW.

    dali_peer.py FOLDER [--batch 256] [--threads 4] [--seconds 5]

Prints one line of the benchmark's table. Exit status 77 where nvidia.dali is not installed.
"""

import argparse
import pathlib
import sys
import time

try:
    from nvidia.dali import fn, pipeline_def, types
except ImportError:
    sys.exit(77)

MEAN = [0.485 * 255, 0.456 * 255, 0.406 * 255]
DEVIATION = [0.229 * 255, 0.224 * 255, 0.225 * 255]


@pipeline_def
def training_crops(files):
    """As DALI's documentation has it for ImageNet; files come from the page cache."""
    encoded, _ = fn.readers.file(files=files, random_shuffle=True, prefetch_queue_depth=4)
    images = fn.decoders.image_random_crop(
        encoded, device="mixed", output_type=types.RGB, random_aspect_ratio=[3 / 4, 4 / 3], random_area=[0.08, 1.0], hw_decoder_load=0.9
    )
    images = fn.resize(images, resize_x=224, resize_y=224, interp_type=types.INTERP_TRIANGULAR)
    mirror = fn.random.coin_flip(probability=0.5)
    return fn.crop_mirror_normalize(images, dtype=types.FLOAT16, output_layout="CHW", mean=MEAN, std=DEVIATION, mirror=mirror)


def images_a_second(pipeline, batch, seconds):
    """Batches for a while, after as many for warming up as fill DALI's queues."""
    for _ in range(20):
        pipeline.run()
    begin, batches = time.monotonic(), 0
    while time.monotonic() - begin < seconds:
        pipeline.run()
        batches += 1
    return batches * batch / (time.monotonic() - begin)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=5)
    options = parser.parse_args()
    files = [str(path) for path in sorted(options.folder.rglob("*")) if path.suffix.lower() in (".jpg", ".jpeg")]
    pipeline = training_crops(files, batch_size=options.batch, num_threads=options.threads, device_id=0)
    pipeline.build()
    rate = images_a_second(pipeline, options.batch, options.seconds)
    print(f"{'peer.dali':<42} {rate:14.4g}  {'images/s':<12} the same crops, {options.threads} CPU threads, files in the page cache")


if __name__ == "__main__":
    main()
