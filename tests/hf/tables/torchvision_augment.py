#!/usr/bin/env python3
"""Compares augmentation steps with torchvision's on PIL images, byte for byte, on random pictures, sizes and parameters.

    torchvision_augment.py PATH/TO/millrace_augment_tool [--rounds 6000] [--largest 300] [--seed 0]

Every instruction set that this processor has is checked, and hue with each of the 2^24 colours. torchvision's Gaussian blur adds floats
in an order of its own: there, at most 200 values in a million may be one off. Exits 1 and prints the first job that differs; exits 77
where torchvision is not installed.
"""

import argparse
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "support"))
from skips import skip, skip_all

from augment_tool import NAMED, TARGETS, Tool, operation

try:
    import numpy
    import PIL
    import torchvision
    from PIL import Image, ImageFilter
    from torchvision.transforms import InterpolationMode
    from torchvision.transforms import functional as F  # noqa: N812
    from torchvision.transforms.autoaugment import _apply_op
    from torchvision.transforms.functional import _get_inverse_affine_matrix, _get_perspective_coeffs
except ImportError as missing:
    skip_all(f"comparing with torchvision: {missing}; install tests/requirements-frameworks.txt for {sys.executable}")

MODES = [InterpolationMode.NEAREST, InterpolationMode.BILINEAR, InterpolationMode.BICUBIC]  # enum Sampling
FILTERS = [Image.Resampling.NEAREST, Image.Resampling.BILINEAR, Image.Resampling.BICUBIC]


MOST_OFF = 200e-6  # of the values of Gaussian blurs


def hue_job(_rng, _image, factor):
    return operation("hue", value=int(factor * 255)), lambda image: F.adjust_hue(image, factor)


def any_affine(rng, image):
    """Any six numbers: also those for which Pillow leaves fixed-point."""
    width, height = image.size
    spread = rng.choice([0.3, 2.0, 500.0])
    matrix = [rng.gauss(0, spread) for _ in range(6)]
    if rng.random() < 0.4:
        matrix[1] = matrix[3] = 0.0
    matrix[2], matrix[5] = matrix[2] * width, matrix[5] * height
    return sampled(rng, "affine", matrix, Image.Transform.AFFINE)


def sampled(rng, step, matrix, method):
    sampling, fill = rng.randrange(3), tuple(rng.randrange(256) for _ in range(3))
    return (
        operation(step, matrix=matrix, fill=fill, sampling=sampling),
        lambda image: image.transform(image.size, method, matrix, FILTERS[sampling], fillcolor=fill),
    )


def affine(rng, image):
    """As torchvision calls it: shear or translation by whole pixels or both with scale and rotation."""
    width, height = image.size
    sampling = rng.randrange(3)
    kind = rng.randrange(3)
    center = [0, 0] if kind == 0 else None
    angle = rng.uniform(-180, 180) if kind == 2 else 0.0
    translate = [0, 0] if kind == 0 else [rng.randint(-width, width), rng.randint(-height, height)]
    scale = rng.uniform(0.5, 2) if kind == 2 else 1.0
    shear = [0.0, 0.0] if kind == 1 else [rng.uniform(-45, 45), rng.choice([0.0, rng.uniform(-45, 45)])]
    matrix = _get_inverse_affine_matrix(center or [width * 0.5, height * 0.5], angle, translate, scale, shear)
    return (
        operation("affine", matrix=matrix, sampling=sampling),
        lambda image: F.affine(image, angle, translate, scale, shear, MODES[sampling], None, center),
    )


def perspective(rng, image):
    width, height = image.size
    if rng.random() < 0.1:  # a line of the picture comes from infinity, and a point of it from nowhere
        x, y = rng.randrange(width) + 0.5, rng.randrange(height) + 0.5
        return sampled(rng, "perspective", [1.0, 0.0, -x, 0.0, 1.0, -y, -0.5 / x, -0.5 / y], Image.Transform.PERSPECTIVE)
    corners = [[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]]
    moved = [[x + rng.randint(-width // 3, width // 3), y + rng.randint(-height // 3, height // 3)] for x, y in corners]
    try:
        matrix = _get_perspective_coeffs(corners, moved)
    except Exception:  # corners on one line
        matrix = [1.0, 0.1, 0.0, 0.0, 1.0, 0.0, 0.001, 0.002]
    if not all(abs(entry) < 1e6 for entry in matrix):
        matrix = [1.0, 0.1, 0.0, 0.0, 1.0, 0.0, 0.001, 0.002]
    return sampled(rng, "perspective", matrix, Image.Transform.PERSPECTIVE)


def erase(rng, image):
    width, height = image.size
    left, top = rng.randrange(width), rng.randrange(height)
    box, fill = (left, top, rng.randint(0, width - left), rng.randint(0, height - top)), tuple(rng.randrange(256) for _ in range(3))

    def fill_box(image):
        pixels = numpy.array(image)
        pixels[box[1] : box[1] + box[3], box[0] : box[0] + box[2]] = fill
        return Image.fromarray(pixels)

    return operation("erase", box=box, fill=fill), fill_box


def enhancing(step, function):
    def job(rng, _image):
        factor = rng.choice([0.0, 1.0, rng.random(), rng.uniform(0, 3), rng.uniform(0, 30)])
        return operation(step, factor=factor), lambda image: function(image, factor)

    return job


def plain(step, function):
    return lambda _rng, _image: (operation(step), function)


def posterize(rng, _image):
    bits = rng.randint(1, 8)
    return operation("posterize", value=bits), lambda image: F.posterize(image, bits)


def solarize(rng, _image):
    threshold = rng.choice([rng.randint(0, 256), rng.uniform(0, 255)])
    return operation("solarize", factor=threshold), lambda image: F.solarize(image, float(numpy.float32(threshold)))


def solarize_add(rng, _image):
    """timm's, which is a table."""
    threshold, added = rng.choice([rng.randint(0, 256), rng.uniform(0, 255)]), rng.randint(-255, 255)
    table = [min(255, value + added) if value < numpy.float32(threshold) else value for value in range(256)]
    return operation("solarize_add", factor=threshold, value=added), lambda image: image.point(table * 3)


def pillow_blur(rng, _image):
    radius = float(numpy.float32(rng.choice([rng.uniform(0.001, 2), rng.uniform(0.1, 100), 1e-5, 100.0])))
    return operation("pillow_blur", factor=radius), lambda image: image.filter(ImageFilter.GaussianBlur(radius))


def gaussian_blur(rng, image):
    largest = min(99, 2 * min(image.size) - 1)
    side = min(largest, rng.choice([1, 3, 2 * rng.randint(0, 10) + 1, 23, 2 * rng.randint(0, 49) + 1]))
    deviation = float(numpy.float32(rng.choice([rng.uniform(0.1, 2), side * 0.15 + 0.35, rng.uniform(0.01, 20), 1e4])))
    return operation("gaussian_blur", value=side, factor=deviation), lambda image: F.gaussian_blur(image, side, deviation)


def quarter_turns(rng, _image):
    turns = rng.randint(0, 3)
    methods = [None, Image.Transpose.ROTATE_90, Image.Transpose.ROTATE_180, Image.Transpose.ROTATE_270]
    return operation("quarter_turns", value=turns), lambda image: image.transpose(methods[turns]) if turns else image


def named(rng, image):
    """As RandAugment and TrivialAugmentWide draw them."""
    name, sampling = rng.choice(NAMED), rng.randrange(3)
    widest = {"Rotate": 135.0, "TranslateX": image.width / 2, "TranslateY": image.height / 2}.get(name, 0.99)
    magnitude = float(numpy.float32(rng.choice([0.0, widest, rng.uniform(-widest, widest), -widest])))
    if name == "Rotate" and rng.random() < 0.2:
        magnitude = rng.choice([90.0, -90.0])
    if name in ("Posterize", "Solarize"):
        magnitude = float(rng.randint(2, 8)) if name == "Posterize" else float(numpy.float32(rng.uniform(0, 255)))
    return operation(name, factor=magnitude, sampling=sampling), lambda image: _apply_op(image, name, magnitude, MODES[sampling], None)


JOBS = {
    "named": named,
    "invert": plain("invert", F.invert),
    "posterize": posterize,
    "solarize": solarize,
    "brightness": enhancing("brightness", F.adjust_brightness),
    "contrast": enhancing("contrast", F.adjust_contrast),
    "saturation": enhancing("saturation", F.adjust_saturation),
    "sharpness": enhancing("sharpness", F.adjust_sharpness),
    "grey": plain("grey", lambda image: F.to_grayscale(image, 3)),
    "autocontrast": plain("autocontrast", F.autocontrast),
    "equalize": plain("equalize", F.equalize),
    "hue": lambda rng, image: hue_job(rng, image, rng.uniform(-0.5, 0.5)),
    "flip_horizontal": plain("flip_horizontal", F.hflip),
    "flip_vertical": plain("flip_vertical", F.vflip),
    "quarter_turns": quarter_turns,
    "affine": affine,
    "any_affine": any_affine,
    "perspective": perspective,
    "erase": erase,
    "solarize_add": solarize_add,
    "pillow_blur": pillow_blur,
}


def random_picture(rng, largest):
    width, height = (rng.choice([1, rng.randint(1, 5), rng.randint(1, largest)]) for _ in range(2))
    generator = numpy.random.default_rng(rng.getrandbits(64))
    low, high = sorted(rng.sample(range(257), 2)) if rng.random() < 0.4 else (0, 256)
    pixels = generator.integers(low, high, (height, width, 3), dtype=numpy.uint8)
    if rng.random() < 0.2:  # few values
        pixels = numpy.where(pixels < 128, low, high - 1).astype(numpy.uint8)
    return Image.fromarray(pixels)


def compare(tool, targets, image, operations, golden, what):
    expected = numpy.asarray(golden)
    for target in targets:
        ours = numpy.frombuffer(tool.answer(target, numpy.asarray(image), operations, expected.size), numpy.uint8).reshape(expected.shape)
        if not numpy.array_equal(ours, expected):
            where = tuple(numpy.argwhere(ours != expected)[0])
            print(f"{what}: {TARGETS[target]}, {image.size}: {int((ours != expected).sum())} of {expected.size} bytes differ,")
            print(f"the first at {where}: {ours[where]}, not {expected[where]}")
            raise SystemExit(1)


def compare_gaussian_blur(rng, tool, targets, rounds, largest):
    """How many values in a million differ from torchvision's, by one. All targets have the same."""
    values = different = 0
    for number in range(rounds):
        image = random_picture(rng, largest)
        job, function = gaussian_blur(rng, image)
        expected = numpy.asarray(function(image)).astype(int)
        answers = [tool.answer(target, numpy.asarray(image), [job], expected.size) for target in targets]
        ours = numpy.frombuffer(answers[0], numpy.uint8).reshape(expected.shape)
        values, different = values + expected.size, different + int((ours != expected).sum())
        if abs(ours - expected).max() > 1 or answers != answers[:1] * len(answers):
            print(f"blur {number}: {image.size}: off by {abs(ours - expected).max()}, or targets differ")
            raise SystemExit(1)
    print(f"Gaussian blur: {different} of {values} values are one off, {different / values * 1e6:.1f} in a million")
    if different > MOST_OFF * values:
        raise SystemExit(1)


def compare_all_colours(tool, targets):
    colours = numpy.arange(1 << 24, dtype=numpy.uint32)
    pixels = numpy.stack([colours >> 16, (colours >> 8) & 255, colours & 255], axis=1).astype(numpy.uint8).reshape(4096, 4096, 3)
    image = Image.fromarray(pixels)
    for factor in (0.0, 0.1, -0.31):
        job, function = hue_job(None, image, factor)
        compare(tool, targets, image, [job], function(image), f"hue {factor} of all colours")
    compare(tool, targets, image, [operation("grey")], F.to_grayscale(image, 3), "grey of all colours")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool", help="the built millrace_augment_tool")
    parser.add_argument("--rounds", type=int, default=6000)
    parser.add_argument("--largest", type=int, default=300, help="longest side in pixels")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    rng = random.Random(arguments.seed)
    tool = Tool(arguments.tool)
    targets = [target for target in range(len(TARGETS)) if tool.supports(target)]
    compare_all_colours(tool, targets)
    compare_gaussian_blur(rng, tool, targets, arguments.rounds // 10, arguments.largest)
    names = list(JOBS)
    for number in range(arguments.rounds):
        image = golden = random_picture(rng, arguments.largest)
        chosen = [rng.choice(names)] if number % 3 else rng.choices(names, k=rng.randint(0, 6))
        operations = []
        for name in chosen:
            job, function = JOBS[name](rng, golden)
            operations.append(job)
            golden = function(golden)
        compare(tool, targets, image, operations, golden, f"job {number}, {' '.join(chosen)}")
    for target in set(range(len(TARGETS))) - set(targets):
        skip(f"instructions: this processor lacks {TARGETS[target]}")
    checked = ", ".join(TARGETS[target] for target in targets)
    print(f"{arguments.rounds} jobs equal to torchvision {torchvision.__version__} on Pillow {PIL.__version__}, byte for byte ({checked})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
