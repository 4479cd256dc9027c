"""The program millrace_augment_tool, kept running, and operations as it takes them."""

import struct
import subprocess

TARGETS = ["scalar", "avx2", "avx512bw", "avx512"]  # enum Target
STEPS = [  # enum Step
    "invert", "posterize", "solarize", "brightness", "contrast", "saturation", "sharpness", "grey", "autocontrast", "equalize", "hue",
    "flip_horizontal", "flip_vertical", "quarter_turns", "affine", "perspective", "erase", "gaussian_blur", "pillow_blur", "solarize_add",
]  # fmt: skip

NAMED = [  # kNames
    "ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate", "Brightness", "Color", "Contrast", "Sharpness", "Posterize", "Solarize",
    "AutoContrast", "Equalize", "Invert",
]  # fmt: skip


def operation(step, value=0, factor=1.0, fill=(0, 0, 0), box=(0, 0, 0, 0), matrix=(), sampling=0):
    entries = [*matrix, *[0.0] * (8 - len(matrix))]
    return struct.pack(
        "=10i9d", STEPS.index(step) if step in STEPS else 100 + NAMED.index(step), sampling, value, *fill, *box, factor, *entries
    )


class Tool:
    def __init__(self, path, *options):
        self.path = path
        self.process = subprocess.Popen([path, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def answer(self, target, pixels, operations, size):
        height, width, _ = pixels.shape
        self.process.stdin.write(struct.pack("=4i", target, width, height, len(operations)) + b"".join(operations) + pixels.tobytes())
        self.process.stdin.flush()
        data = self.process.stdout.read(size)
        if len(data) != size:
            raise SystemExit(f"{self.path} ended early (status {self.process.wait()})")
        return data

    def supports(self, target):
        header = struct.pack("=4i", target, 1, 1, 0)
        return subprocess.run([self.path], input=header + b"\0\0\0", capture_output=True).returncode == 0
