#!/usr/bin/env python3
"""Compares the resampler with Pillow, byte for byte, on random pictures, sizes, crops and filters.

    pillow_resample.py PATH/TO/millrace_resample_tool [--rounds 400] [--largest 700] [--seed 0]

Every instruction set that this processor has is checked. Exits 1 and prints the first job that differs; exits 77 where Pillow is not installed.
"""

import argparse
import random
import struct
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from skips import skip, skip_all

try:
    import numpy
    import PIL
    from PIL import Image
except ImportError as missing:
    skip_all(f"comparing with Pillow: {missing}; install tests/requirements.txt for {sys.executable}")

TARGETS = ["scalar", "avx2", "avx512bw", "avx512"]  # enum Target
FILTERS = [  # enum Filter
    Image.Resampling.NEAREST,
    Image.Resampling.BOX,
    Image.Resampling.BILINEAR,
    Image.Resampling.HAMMING,
    Image.Resampling.BICUBIC,
    Image.Resampling.LANCZOS,
]
# enum PassOrder: Pillow 13 filters the rows of some pictures first. 12.2 and 12.3 did so for very tall ones, which we do not imitate.
PASS_ORDER = 0 if int(PIL.__version__.split(".")[0]) >= 13 else 1
TALLEST = sys.maxsize if PASS_ORDER == 0 else 100
# CMYK stands for "four plain channels": Pillow premultiplies RGBA before it resizes.
MODES = {1: "L", 3: "RGB", 4: "CMYK"}


class Tool:
    """The program under test, kept running; one job at a time."""

    def __init__(self, path):
        self.path = path
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def resample(self, target, pixels, size, window, filter_index):
        height, width, channels = pixels.shape
        header = struct.pack("=12i", target, channels, width, height, *size, *window, filter_index, PASS_ORDER)
        self.process.stdin.write(header + pixels.tobytes())
        self.process.stdin.flush()
        expected = window[2] * window[3] * channels
        data = self.process.stdout.read(expected)
        if len(data) != expected:
            raise SystemExit(f"{self.path} ended early (status {self.process.wait()})")
        return numpy.frombuffer(data, numpy.uint8).reshape(window[3], window[2], channels)

    def supports(self, target):
        header = struct.pack("=12i", target, 1, 1, 1, 1, 1, 0, 0, 1, 1, 0, 0)
        return subprocess.run([self.path], input=header + b"\0", capture_output=True).returncode == 0


def random_side(rng, largest):
    return rng.randint(1, rng.randint(1, largest))


def random_picture(rng, width, height, channels):
    generator = numpy.random.default_rng(rng.getrandbits(64))
    pixels = generator.integers(0, 256, (height, width, channels), dtype=numpy.uint8)
    if rng.random() < 0.3:  # hard edges make filters with negative lobes overshoot
        pixels = numpy.where(pixels < 128, 0, 255).astype(numpy.uint8)
    return pixels


def random_window(rng, size):
    if rng.random() < 0.5:
        return (0, 0, *size)
    width, height = rng.randint(1, size[0]), rng.randint(1, size[1])
    return (rng.randint(0, size[0] - width), rng.randint(0, size[1] - height), width, height)


def with_pillow(pixels, box, size, window, filter_index):
    channels = pixels.shape[2]
    image = Image.frombytes(MODES[channels], (pixels.shape[1], pixels.shape[0]), pixels.tobytes())
    image = image.crop(box).resize(size, FILTERS[filter_index])
    image = image.crop((window[0], window[1], window[0] + window[2], window[1] + window[3]))
    return numpy.asarray(image).reshape(window[3], window[2], channels)


def random_job(rng, largest):
    width, height = random_side(rng, largest), random_side(rng, largest)
    left, top = rng.randint(0, width - 1), rng.randint(0, height - 1)
    box = (left, top, rng.randint(left + 1, width), rng.randint(top + 1, height)) if rng.random() < 0.5 else (0, 0, width, height)
    size = [random_side(rng, largest), random_side(rng, largest)]
    if rng.random() < 0.1:
        size[0] = box[2] - box[0]
    if rng.random() < 0.1:
        size[1] = box[3] - box[1]
    pixels = random_picture(rng, width, height, rng.choice([1, 3, 3, 4]))
    return pixels, box, tuple(size), random_window(rng, size), rng.randrange(len(FILTERS))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool", help="the built millrace_resample_tool")
    parser.add_argument("--rounds", type=int, default=400)
    parser.add_argument("--largest", type=int, default=700, help="longest side in pixels")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    rng = random.Random(arguments.seed)
    tool = Tool(arguments.tool)
    targets = [target for target in range(len(TARGETS)) if tool.supports(target)]
    for number in range(arguments.rounds):
        pixels, box, size, window, filter_index = random_job(rng, arguments.largest)
        if box[3] - box[1] > TALLEST * (box[2] - box[0]):
            continue
        golden = with_pillow(pixels, box, size, window, filter_index)
        cropped = numpy.ascontiguousarray(pixels[box[1] : box[3], box[0] : box[2]])
        for target in targets:
            ours = tool.resample(target, cropped, size, window, filter_index)
            if not numpy.array_equal(ours, golden):
                different = int((ours != golden).sum())
                print(
                    f"job {number}: {TARGETS[target]}, {MODES[pixels.shape[2]]} {pixels.shape[1]}x{pixels.shape[0]} crop {box} "
                    f"-> {size} window {window}, {FILTERS[filter_index].name}: {different} of {golden.size} bytes differ from Pillow"
                )
                return 1
    for target in set(range(len(TARGETS))) - set(targets):
        skip(f"instructions: this processor lacks {TARGETS[target]}")
    names = ", ".join(TARGETS[target] for target in targets)
    print(f"{arguments.rounds} jobs equal to Pillow {PIL.__version__}, byte for byte ({names})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
