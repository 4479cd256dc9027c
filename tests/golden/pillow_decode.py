#!/usr/bin/env python3
"""Compares decoding, orientation, cropping and resizing with Pillow, byte for byte.

  pillow_decode.py DECODE_TOOL [--data FOLDER] [--only NAME] [--seed N]

DECODE_TOOL is the built millrace_decode_tool; FOLDER has photos/, jpeg-variants/, png-suite/, kodak/ and bad-jpeg/ (default: the environment
variable MILLRACE_TEST_DATA; without it only pictures that Pillow writes here are compared). A file that Pillow refuses must be
refused, and any difference fails unless EXCEPTIONS says why it is right; so does an exception without a difference. Pillow opens each
file from bytes and by its path, which must be the same but for TIFF on its side (tiff_differences.MIXED_UP_BY_PATH). Exit status 77:
Pillow or numpy is missing.
"""

import argparse
import os
import random
import sys
import tempfile

import avif_files
import heic_files
import heif_differences
import odd_files
import raster_files
import tiff_differences
import tiff_files
from decode_tool import Tool
from made_pictures import exif_with, noisy_gradient, random_image, saved
from pillow_side import FILTERS, Image, Picture, numpy, with_pillow
from skips import skip

# Where the answer differs from Pillow's on purpose: file -> reason; more in *_differences.py. daemon/backend/cpu/README.md has the same table.
SECOND_FRAME = "the file ends within a second frame header behind the image: libjpeg-turbo 3 refuses it by its marker, 2.1 has to read it first"
EXCEPTIONS = {
    "bad-jpeg/jpeg__edges-only__images__id_000903_src_000177_op_havoc_rep_2.jpg": SECOND_FRAME,
    "made/png rows end early": "the image data ends, whole, before the picture does: Pillow leaves the other rows black, we refuse it",
    "made/png data before the header": "Pillow passes over IDAT chunks as long as it has no header, we refuse the file",
    "made/png two headers": "Pillow goes by the last IHDR, we refuse it",
    "made/png image data in fdAT": "an animation without a default image: Pillow takes the first frame's data, we refuse it",
    "made/png first frame small": "APNG wants the whole picture there: Pillow decodes as much as the frame says, we refuse it",
    "made/png long text": "more than 1 MiB of decompressed text is an error in Pillow; nothing of it is in the pixels",
    "made/png long profile": "the same for a colour profile",
    "made/png exif is no TIFF": "exif_transpose() raises where EXIF cannot be read; here the picture is upright",
    "made/webp exif is no TIFF": "the same",
    "made/png raw exif is no hex": "the same",
    "made/jpeg lossless": "SOF3: libjpeg-turbo 3, in Pillow's wheels, decodes it; Debian's 2.1 cannot",
    "made/bmp black and white in 8 bits": "Pillow takes a palette of black and white alone for a picture of 1 bit a pixel",
    "made/bmp black alone in 4 bits": "nor is a palette of black alone one of 4 bits or 8 to Pillow",
    "made/bmp black alone in 8 bits": "the same",
    "made/bmp black and white in 4 bits": "the same",
    "made/bmp dark greys in 4 bits": "Pillow takes a palette of the greys 0 to 15 for a picture of 8 bits a pixel, and then fails",
    "made/tiff 262: 6": "YCbCr that is not JPEG is not decoded here",
    "made/tiff 262: 8": "nor is CIELAB",
    "made/tiff 284: 3": "libtiff refuses a number that says nothing about planes, where Pillow reads uncompressed files itself",
    "made/tiff 266: 3": "libtiff leaves a number aside that says nothing about the order of bits",
    "made/jpeg marker 01 first": "TEM stands alone (T.81, B.1.1.3): libjpeg passes over it, Pillow refuses it before libjpeg sees it",
    "made/jpeg marker 01 before the frame": "the same",
    "made/jpeg marker 01 before the scan": "the same",
    **{
        f"avif grid {order}, {mode}": "libavif before version 1 lays parts by their numbers, not in the grid's order: refused"
        for order in ("reversed", "with two parts changed over")
        for mode in ("RGB 0", "RGBA 0", "RGBA 1")
    },
    "avif whose item is larger than it says": "nothing is decoded that is larger than the boxes say",
    "avif whose meta has no length": "libavif before version 1 wants the length of every box: refused",
    "heic without ispe": "libheif takes the size from the data; here nothing is decoded whose size the boxes do not say",
    **{f"made/png keyword exif in {kind}": "exif_transpose() raises: Pillow has no use for one that is not tEXt" for kind in ("zTXt", "iTXt", "compressed iTXt")},
    **{f"made/png keyword xmp in {kind}": "the same, whatever it is" for kind in ("tEXt", "zTXt", "iTXt", "compressed iTXt")},
    "made/png texts of 65 MiB": "no pixel depends on them",
    **{f"made/jpeg exif is no TIFF, density {unit}": "Pillow does not read EXIF early where JFIF has a density, and raises later" for unit in (1, 2)},
    "made/bmp 257 greys": "no sample can name them",
    **{f"made/bmp three dark greys in {bits} bits": "Pillow takes a palette of the greys 0, 1, 2 for a picture of 8 bits a pixel" for bits in (1, 4)},
    **tiff_differences.EXCEPTIONS,
    **heif_differences.EXCEPTIONS,
}


class Comparison:
    def __init__(self, tool, rng):
        self.tool, self.rng = tool, rng
        self.compared = self.refused = self.crops_refused = 0
        self.excepted, self.mixed_up_by_path = set(), set()
        self.folder = tempfile.TemporaryDirectory(prefix="millrace-golden-")
        self.failures = []

    def fail(self, picture, text):
        if picture.name in EXCEPTIONS:
            self.excepted.add(picture.name)
            return
        self.report(picture.name, text)

    def report(self, name, text):
        self.failures.append(f"{name}: {text}")
        print(f"FAIL {self.failures[-1]}", flush=True)

    def compare(self, name, data, crops=2):
        picture = Picture(name, data)
        self.compare_by_path(picture)
        if picture.error:
            return self.expect_refusal(picture)
        if not picture.is_ours:
            return None
        if not self.compare_one(picture, {}):
            return None
        for _ in range(crops):
            self.compare_one(picture, self.random_geometry(picture.rgb.size))
        return None

    def compare_by_path(self, picture):
        path = os.path.join(self.folder.name, "picture")
        with open(path, "wb") as file:
            file.write(picture.data)
        opened = Picture(picture.name, picture.data, path=path)
        if opened.error or picture.error:
            if bool(opened.error) != bool(picture.error):
                self.fail(picture, f"Pillow says {opened.error} by path, {picture.error} of the bytes")
        elif opened.rgb.size != picture.rgb.size or opened.rgb.tobytes() != picture.rgb.tobytes():
            if picture.is_tiff_on_its_side:  # Pillow maps uncompressed ones with their width and height changed over: rows are mixed up
                self.mixed_up_by_path.add(picture.name)
            else:
                self.fail(picture, "Pillow has other pixels by path than from the bytes")

    def expect_pixels(self, name, data, pixels):
        """Fails where these are not ours: of a file that Pillow reads in another way. `pixels`: of two dimensions where they are grey."""
        code, tensor = self.tool.make(data)
        shown = pixels if pixels.ndim == 3 else numpy.repeat(pixels[..., None], 3, axis=-1)
        if code != 0 or tensor != shown.tobytes():
            self.report(name, "ours are not the pixels that were put in")

    def expect_exceptions(self, prefix, is_present=lambda name: True):
        for name in EXCEPTIONS:
            if name.startswith(prefix) and is_present(name) and name not in self.excepted:
                self.report(name, "it is in EXCEPTIONS, but there is no difference any more")

    def expect_refusal(self, picture):
        code, _ = self.tool.make(picture.data)
        if code == 0:
            return self.fail(picture, f"made, but Pillow says {picture.error}")
        if not picture.data.startswith(b"\xff\xd8") and self.tool.make(picture.data, crop=(0, 0, 1, 1))[0] == 0:
            return self.fail(picture, f"its first pixel is made, but Pillow says {picture.error}")
        self.refused += 1
        return None

    def compare_one(self, picture, geometry):
        golden = with_pillow(picture.rgb, **geometry)
        boxes = dict(geometry)
        if "crop" in boxes:
            left, top, right, bottom = boxes["crop"]
            boxes["crop"] = (left, top, right - left, bottom - top)
        code, tensor = self.tool.make(picture.data, **boxes)
        if code != 0 and "crop" in geometry and picture.name.startswith("bad-jpeg/"):
            self.crops_refused += 1  # stricter than Pillow, whose whole picture has garbage there
            return False
        if code != 0:
            return self.fail(picture, f"{tensor.decode(errors='replace')} (code {code}), but Pillow decodes it")
        ours = numpy.frombuffer(tensor, numpy.uint8)
        if ours.size != golden.size:
            return self.fail(picture, f"{ours.size} bytes instead of {golden.size} {geometry}")
        difference = numpy.abs(ours.reshape(golden.shape).astype(int) - golden)
        if difference.any():
            return self.fail(picture, f"{int((difference > 0).sum())} of {ours.size} bytes differ, by {difference.max()} at most {geometry}")
        self.compared += 1
        return True

    def random_geometry(self, size):
        rng = self.rng
        left, top = rng.randrange(size[0]), rng.randrange(size[1])
        right, bottom = rng.randint(left + 1, size[0]), rng.randint(top + 1, size[1])
        geometry = {"crop": (left, top, right, bottom), "flip": rng.randrange(2), "channels": rng.choice([0, 0, 1, 2])}
        if rng.random() < 0.7:
            target = (rng.randint(1, 300), rng.randint(1, 300))
            width, height = rng.randint(1, target[0]), rng.randint(1, target[1])
            geometry["size"], geometry["resampling"] = target, rng.randrange(len(FILTERS))
            if rng.random() < 0.5:
                geometry["window"] = (rng.randint(0, target[0] - width), rng.randint(0, target[1] - height), width, height)
        return geometry


# --- pictures that Pillow writes here -----------------------------------------------------------------------------------------------------


def compare_jpegs(comparison, rng):
    for number in range(220):
        mode = rng.choice(["L", "RGB", "RGB", "RGB", "CMYK"])
        options = {"quality": rng.choice([5, 30, 75, 92, 100]), "progressive": rng.random() < 0.3, "optimize": rng.random() < 0.3}
        if mode == "RGB":
            options["subsampling"] = rng.choice([0, 1, 2])
        if rng.random() < 0.2:
            options["restart_marker_blocks"] = rng.randint(1, 9)
        if rng.random() < 0.5:
            options["exif"] = exif_with(rng.randint(1, 8))
        comparison.compare(f"jpeg {number} {mode} {sorted(options.items() - {('exif', options.get('exif'))})}", saved(random_image(rng, mode), format="JPEG", **options), 3)


def compare_pngs(comparison, rng):
    for number in range(160):
        mode = rng.choice(["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
        options = {"compress_level": rng.randint(0, 9)}
        if mode in ("P", "L", "RGB") and rng.random() < 0.3:
            options["transparency"] = (1, 2, 3) if mode == "RGB" else 0
        if rng.random() < 0.3:
            options["exif"] = exif_with(rng.randint(1, 8))
        comparison.compare(f"png {number} {mode}", saved(random_image(rng, mode), format="PNG", **options))
    frames = [random_image(rng, "RGB").resize((40, 30)) for _ in range(3)]
    comparison.compare("animated png", saved(frames[0], format="PNG", save_all=True, append_images=frames[1:]))
    comparison.compare(
        "animated png with a default image", saved(frames[0], format="PNG", save_all=True, append_images=frames[1:], default_image=True)
    )


def compare_webps(comparison, rng):
    for number in range(120):
        mode = rng.choice(["L", "RGB", "RGBA"])
        options = {"lossless": rng.random() < 0.4, "quality": rng.choice([1, 40, 80, 100]), "method": rng.choice([0, 2, 4])}
        if rng.random() < 0.3:
            options["exif"] = exif_with(rng.randint(1, 8))
        comparison.compare(f"webp {number} {mode} {options['lossless']}", saved(random_image(rng, mode), format="WEBP", **options), 3)
    for mode in ("RGB", "RGBA"):
        frames = [random_image(rng, mode).resize((61, 47)) for _ in range(3)]
        comparison.compare(f"animated webp {mode}", saved(frames[0], format="WEBP", save_all=True, append_images=frames[1:]))


def compare_cut_off(comparison, rng):
    image = Image.fromarray(noisy_gradient(rng, 97, 61, 3))
    for image_format, options in (("JPEG", {}), ("JPEG", {"progressive": True}), ("PNG", {}), ("WEBP", {}), ("WEBP", {"lossless": True})):
        whole = saved(image, format=image_format, **options)
        for size in [1, 9, 30, len(whole) // 2, len(whole) * 9 // 10, len(whole) - 20 if image_format == "PNG" else len(whole) - 1]:
            comparison.compare(f"{image_format} {options} cut off at {size}.{image_format.lower()}", whole[:size])


def compare_folder(comparison, folder, crops):
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        with open(path, "rb") as file:
            data = file.read()
        if os.path.basename(path).startswith("PngSuite.") and not name.endswith(".png"):
            continue
        comparison.compare(f"{os.path.basename(folder)}/{name}", data, crops)
    comparison.expect_exceptions(os.path.basename(folder) + "/", lambda name: os.path.exists(os.path.join(os.path.dirname(folder), name)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool", help="the built millrace_decode_tool")
    parser.add_argument("--data", default=os.environ.get("MILLRACE_TEST_DATA"))
    parser.add_argument("--only", help="one folder of the data, nothing else")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    rng = random.Random(arguments.seed)
    comparison = Comparison(Tool(arguments.tool), rng)
    if not arguments.only:
        for compare in (compare_jpegs, compare_pngs, compare_webps, compare_cut_off, *odd_files.COMPARISONS, *raster_files.COMPARISONS, *tiff_files.COMPARISONS, *avif_files.COMPARISONS, *heic_files.COMPARISONS, tiff_files.compare_packed_runs, raster_files.compare_small_palettes, *tiff_differences.COMPARISONS, *heif_differences.COMPARISONS):
            compare(comparison, rng)
        comparison.expect_exceptions("made/")
        for name in sorted(tiff_differences.MIXED_UP_BY_PATH - comparison.mixed_up_by_path):
            comparison.report(name, "it is in MIXED_UP_BY_PATH, but Pillow has the same pixels by path as from the bytes")
    if arguments.data:
        for folder, crops in (("png-suite", 1), ("jpeg-variants", 2), ("bad-jpeg", 1), ("kodak", 2), ("photos", 1)):
            if arguments.only in (None, folder):
                compare_folder(comparison, os.path.join(arguments.data, folder), crops)
    else:
        skip("real files to decode: MILLRACE_TEST_DATA is not set")
    print(
        f"{comparison.compared} tensors equal to Pillow {Image.__version__}, byte for byte; {comparison.refused} files refused by both; "
        f"{len(comparison.excepted)} exceptions, {len(comparison.mixed_up_by_path)} TIFF on their side that Pillow mixes up by path; "
        f"{len(comparison.failures)} failures"
    )
    return 1 if comparison.failures else 0


if __name__ == "__main__":
    sys.exit(main())
