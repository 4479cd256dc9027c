#!/usr/bin/env python3
"""Converts pictures to L3 and back with `millrace convert`, and compares with Pillow sample by sample.

  l3_pixels.py MILLRACE --decode-tool TOOL [--data FOLDER] [--seed N]

MILLRACE is the built command line, TOOL the built millrace_decode_tool; FOLDER has png-suite/ and kodak/ (default: the environment variable
MILLRACE_TEST_DATA; without it only pictures that are made here are compared). Of each picture the PNG file that comes back is compared:
samples in the mode that Pillow gives the source, numbers and colours of palettes, samples of 16 bits, EXIF, ICC profile, XMP, and what
exif_transpose() makes of it. The daemon's decoder makes Pillow's pixels of the L3 file. A file that Pillow refuses must be named and must be
missing. A file that L3 does not hold must be copied with its reason. Of the odd files of the other comparisons the daemon makes the same tensor
as of their L3 files. Exit status 77: Pillow or numpy is missing.
"""

import argparse
import io
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

import odd_files
import raster_files
import tiff_files
from decode_tool import Tool
from made_pictures import exif_with, random_image, saved
from pillow_side import Image, ImageOps, Picture, numpy
from skips import skip

XMP = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:Description tiff:Orientation="%d"/></x:xmpmeta>'
PROFILE = bytes(range(256)) * 2
# Named as damaged although Pillow decodes them.
STRICTER = {"png-suite/xcsn0g01.png": "the checksum of its image data is wrong, which Pillow does not look at"}


# --- files that are made here ---


def png_of_16_bits(colour_type, pixels):
    """Rows without a filter; `colour_type`: as in IHDR."""
    height, width = pixels.shape[:2]
    rows = pixels.astype(">u2").reshape(height, -1)
    data = zlib.compress(b"".join(b"\0" + row.tobytes() for row in rows))
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", width, height, 16, colour_type, 0, 0, 0)), (b"IDAT", data), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks)


def samples_of_16_bits(png):
    """Height x width x channels of a PNG file that is not interlaced (W3C PNG 9.2)."""
    at, data, header = 8, b"", None
    while at < len(png):
        (length,), kind = struct.unpack_from(">I", png, at), png[at + 4 : at + 8]
        body = png[at + 8 : at + 8 + length]
        header = struct.unpack(">IIBBBBB", body) if kind == b"IHDR" else header
        data += body if kind == b"IDAT" else b""
        at += 12 + length
    width, height, depth, colour_type, *_, interlaced = header
    assert depth == 16 and not interlaced, header
    channels = {0: 1, 2: 3, 4: 2, 6: 4}[colour_type]
    pixel, stride = 2 * channels, 2 * channels * width
    rows, above, raw = [], bytearray(stride), zlib.decompress(data)
    for y in range(height):
        kind, row = raw[y * (stride + 1)], bytearray(raw[y * (stride + 1) + 1 : (y + 1) * (stride + 1)])
        for x in range(stride):
            a, b, c = row[x - pixel] if x >= pixel else 0, above[x], above[x - pixel] if x >= pixel else 0
            paeth = min((a, b, c), key=lambda value, p=a + b - c: abs(p - value))
            row[x] = (row[x] + (0, a, b, (a + b) // 2, paeth)[kind]) & 255
        rows.append(bytes(row))
        above = row
    return numpy.frombuffer(b"".join(rows), ">u2").reshape(height, width, channels)


def make_pngs(rng):
    for number, mode in enumerate(["1", "L", "LA", "P", "RGB", "RGBA", "I;16"] * 12):
        options = {}
        if mode == "P" and rng.random() < 0.6:
            options["transparency"] = rng.choice([0, bytes([0, 100, 255])])
        if rng.random() < 0.4:
            options["exif"] = exif_with(rng.randint(1, 8))
        if rng.random() < 0.3 and mode in ("L", "LA", "RGB", "RGBA"):
            options["icc_profile"] = PROFILE
        if rng.random() < 0.3:
            options["xmp"] = XMP % rng.randint(1, 8)
        yield f"png{number}.png", saved(random_image(rng, mode), format="PNG", **options)


def make_others(rng):
    for number, mode in enumerate(["1", "L", "P", "RGB", "RGBA"] * 4):
        yield f"bmp{number}.bmp", saved(random_image(rng, mode), format="BMP")
    for number, mode in enumerate(["1", "L", "RGB"] * 4):
        yield f"pnm{number}.pnm", saved(random_image(rng, mode), format="PPM")
    for number, mode in enumerate(["1", "L", "LA", "P", "RGB", "RGBA", "I;16"] * 8):
        options = {"compression": rng.choice([None, "tiff_lzw", "tiff_adobe_deflate", "packbits"])}
        if rng.random() < 0.4:
            options["tiffinfo"] = {274: rng.randint(1, 8)}
        if rng.random() < 0.3 and mode == "RGB":
            options["icc_profile"] = PROFILE
        yield f"tiff{number}.tiff", saved(random_image(rng, mode), format="TIFF", **options)
    for number, mode in enumerate(["L", "RGB", "RGBA"] * 5):
        options = {"exif": exif_with(rng.randint(1, 8))} if rng.random() < 0.5 else {}
        if rng.random() < 0.4:
            options["icc_profile"], options["xmp"] = PROFILE, XMP % rng.randint(1, 8)
        yield f"webp{number}.webp", saved(random_image(rng, mode), format="WEBP", lossless=True, exact=True, **options)


def make_copied(rng):
    """(name, bytes, the reason in JSON)."""
    rgb, two = random_image(rng, "RGB"), [random_image(rng, "RGB").resize((9, 8)) for _ in range(2)]
    yield "copied1.webp", saved(rgb, format="WEBP", quality=70), "lossy"
    yield "copied2.png", saved(two[0], format="PNG", save_all=True, append_images=two[1:]), "several_pictures"
    yield "copied3.tiff", saved(two[0], format="TIFF", save_all=True, append_images=two[1:]), "several_pictures"
    yield "copied4.webp", saved(two[0], format="WEBP", save_all=True, append_images=two[1:], lossless=True), "several_pictures"
    yield "copied5.tiff", saved(rgb.convert("CMYK"), format="TIFF"), "cmyk"
    yield "copied6.tiff", saved(rgb.convert("F"), format="TIFF"), "sample_kind"
    yield "copied7.tiff", saved(rgb.convert("I"), format="TIFF"), "sample_kind"
    yield "copied8.tiff", saved(rgb, format="TIFF", compression="jpeg"), "lossy"
    yield "copied9.png", saved(rgb, format="PNG", transparency=(1, 2, 3)), "transparent_colour"
    yield "copied10.png", saved(rgb.convert("L"), format="PNG", transparency=7), "transparent_colour"
    yield "copied11.png", saved(rgb, format="JPEG"), "other_formats"
    yield "copied12.jpg", saved(rgb, format="JPEG"), "other_formats"
    yield "copied13.pgm", b"P5 2 1 15\n\1\2", "scaled"
    yield "copied14.pgm", b"P2 2 1 255\n1 2", "rare_kind"
    yield "copied15.ppm", b"P6 1 1 65535\n123456", "scaled"
    yield "copied16.png", saved(Image.new("L", ((1 << 20) + 1, 1)), format="PNG"), "too_large"
    yield "copied17.tiff", tiff_files.tiff(tiff_files.shape(2, 2, 8, 2, 5, _338=(tiff_files.SHORT, [0, 0])), [bytes(20)]), "channels"


class Collector:
    """Takes what the files of other comparisons are given to pillow_decode.Comparison for."""

    def __init__(self):
        self.files = {}

    def compare(self, name, data, crops=0):
        suffix = next((known for known in ("png", "webp", "bmp", "pnm", "tiff") if known in name.split()[0]), None)
        if suffix and data:
            self.files[f"odd{len(self.files)}.{suffix}"] = name, data

    def expect_pixels(self, name, data, pixels):
        self.compare(name, data)


def make_odd(rng):
    """{file: (what it is, its bytes)}: every kind of pixels, of chunks and of directories, whole and damaged."""
    collector = Collector()
    for module in (tiff_files, raster_files, odd_files):
        for name, function in vars(module).items():
            if name.startswith("compare_") and not any(other in name for other in ("gif", "jpeg")):
                function(collector, rng)
    return collector.files


# --- comparing ---


def arrays_of(image):
    """What has to be equal: one or two arrays, with words for them."""
    if image.mode == "P":
        return {"numbers": numpy.asarray(image), "colours": numpy.asarray(image.convert("RGBA"))}
    return {"samples": numpy.asarray(image.convert("L") if image.mode == "1" else image)}


class Comparison:
    def __init__(self, folder, tool):
        self.folder, self.tool = folder, tool
        self.compared = self.refused = self.copied = 0
        self.failures = []

    def fail(self, name, text):
        self.failures.append(name)
        print(f"FAIL {name}: {text}", flush=True)

    def read(self, part, name):
        with open(os.path.join(self.folder, part, name), "rb") as file:
            return file.read()

    def compare(self, name, l3_name, reasons):
        source = self.read("in", name)
        picture = Picture(name, source)
        has_l3 = os.path.exists(os.path.join(self.folder, "l3", l3_name))
        if name in reasons:
            self.copied += 1
            if self.read("l3", name) != source or self.read("back", name) != source:
                self.fail(name, "the copy has other bytes")
        elif picture.error or name in STRICTER:
            self.refused += 1
            if has_l3:
                self.fail(name, f"it became an L3 file; Pillow says {picture.error}")
        elif not has_l3:
            self.fail(name, "it became no L3 file, and was not copied")
        else:
            self.compared += 1
            self.compare_pixels(name, source, self.read("back", l3_name[: -len("l3")] + "png"))
            self.compare_tensor(name, picture, self.read("l3", l3_name))

    def compare_pixels(self, name, source, back):
        with Image.open(io.BytesIO(source)) as before, Image.open(io.BytesIO(back)) as after:
            before.load(), after.load()
            shown = after.convert(before.mode) if name.endswith(".webp") else after  # three equal channels are kept as one
            shown = ImageOps.exif_transpose(shown) if name.endswith(".tiff") else shown  # Pillow turns TIFF as it loads it
            ours, theirs = arrays_of(shown), arrays_of(before)
            if ours.keys() != theirs.keys():
                return self.fail(name, f"{before.mode} came back as {after.mode}")
            for what, array in theirs.items():
                if array.dtype != ours[what].dtype or not numpy.array_equal(array, ours[what]):
                    self.fail(name, f"other {what} came back")
            if not numpy.array_equal(*(numpy.asarray(ImageOps.exif_transpose(image).convert("RGBA")) for image in (before, shown))):
                self.fail(name, "exif_transpose() makes something else of what came back")
            for key in ("icc_profile", "xmp"):
                if before.info.get(key) != after.info.get(key):
                    self.fail(name, f"other {key} came back")
            if name.endswith((".png", ".webp")) and dict(before.getexif()) != dict(after.getexif()):
                self.fail(name, "other EXIF came back")
        return None

    def compare_tensor(self, name, picture, l3):
        code, tensor = self.tool.make(l3)
        if code != 0 or tensor != picture.rgb.tobytes():
            self.fail(name, f"the daemon makes other pixels of its L3 file (code {code})")

    def compare_16_bits(self, name, pixels):
        l3, back = self.read("l3", f"{name}.l3"), samples_of_16_bits(self.read("back", f"{name}.png"))
        if (l3[5], l3[6]) != (pixels.shape[2], 16) or not numpy.array_equal(back, pixels):
            self.fail(name, "other samples of 16 bits came back")
        self.compared += 1


def convert(millrace, to, source, into, *options):
    run = subprocess.run([millrace, "convert", "--to", to, source, into, "--json", "--verbose", *options], capture_output=True, text=True)
    if run.returncode not in (0, 1) or not run.stdout:
        raise SystemExit(f"convert --to {to}: status {run.returncode}: {run.stderr}")
    return run.returncode, json.loads(run.stdout), run.stderr


def compare_folder(comparison, millrace, names, expected):
    folder = comparison.folder
    status, told, errors = convert(millrace, "l3", f"{folder}/in", f"{folder}/l3")
    _, told_back, errors_back = convert(millrace, "png", f"{folder}/l3", f"{folder}/back")
    reasons = {copied["path"]: copied["why"] for copied in told["copied_files"]}
    for name in names:
        stem = os.path.splitext(name)[0]
        comparison.compare(name, f"{stem}.l3", reasons)
        if name in expected and reasons.get(name) != expected[name]:
            comparison.fail(name, f"copied for {reasons.get(name)} instead of {expected[name]}")
    if (status == 0) != (comparison.refused == 0) or told["failed"] != comparison.refused:
        comparison.fail("in", f"status {status}, {told['failed']} failed, {comparison.refused} to be refused: {errors}")
    if told_back["failed"] or told_back["converted"] != told["converted"]:
        comparison.fail("back", f"{told_back['converted']} of {told['converted']} came back: {errors_back}")
    for name in names:
        if not any(os.path.exists(f"{folder}/l3/{left}") for left in (name, os.path.splitext(name)[0] + ".l3")) and f"{name}: " not in errors:
            comparison.fail(name, "it is missing, and nothing was said")


def compare_odd(comparison, millrace, rng):
    """What is converted has the tensor of its source. What the daemon decodes is converted or copied, and what it refuses is neither.

    libspng's verdict on a damaged PNG may be another: it leaves chunks aside that Pillow reads, and wants the last chunk.
    """
    folder, tool, files = comparison.folder, comparison.tool, make_odd(rng)
    os.makedirs(f"{folder}/odd")
    for file, (_, data) in files.items():
        with open(f"{folder}/odd/{file}", "wb") as out:
            out.write(data)
    _, told, _ = convert(millrace, "l3", f"{folder}/odd", f"{folder}/odd_l3")
    _, back, errors = convert(millrace, "png", f"{folder}/odd_l3", f"{folder}/odd_back")
    copied = {one["path"] for one in told["copied_files"]}
    for file, (name, data) in files.items():
        code, tensor = tool.make(data)
        path = f"{folder}/odd_l3/{os.path.splitext(file)[0]}.l3"
        if file in copied or ((code == 0) != os.path.exists(path) and file.endswith(".png")):
            continue
        if (code == 0) != os.path.exists(path):
            comparison.fail(name, f"the daemon's code is {code}, and the L3 file is {'there' if code else 'missing'}")
        elif code == 0:
            with open(path, "rb") as l3:
                if tool.make(l3.read()) != (code, tensor):
                    comparison.fail(name, "its L3 file has another tensor")
            comparison.compared += 1
    if back["failed"] or back["converted"] + back["why_copied"]["metadata"] != told["converted"]:
        comparison.fail("odd", f"{back['converted']} of {told['converted']} came back: {errors}")
    if told["converted"] < 1000 or told["copied"] < 100:
        comparison.fail("odd", f"{told['converted']} converted, {told['copied']} copied: too few to say anything")


def compare_version_1(comparison, millrace, rng):
    folder = comparison.folder
    os.makedirs(f"{folder}/in1")
    image = random_image(rng, "RGB").resize((192, 128))
    image.save(f"{folder}/in1/held.png")
    image.resize((100, 100)).save(f"{folder}/in1/other.png")
    _, told, _ = convert(millrace, "l3", f"{folder}/in1", f"{folder}/l3_1", "--version", "1")
    convert(millrace, "png", f"{folder}/l3_1", f"{folder}/back_1")
    with open(f"{folder}/l3_1/held.l3", "rb") as file:
        magic = file.read(4)
    with Image.open(f"{folder}/back_1/held.png") as back:
        if magic != b"LLL." or back.tobytes() != image.tobytes() or told["copied_files"] != [{"path": "other.png", "why": "no_version_1"}]:
            comparison.fail("version 1", f"{magic}, {told}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("millrace", help="the built command line")
    parser.add_argument("--decode-tool", required=True, help="the built millrace_decode_tool")
    parser.add_argument("--data", default=os.environ.get("MILLRACE_TEST_DATA"))
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    rng = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory(prefix="millrace-l3-") as folder:
        comparison = Comparison(folder, Tool(arguments.decode_tool))
        os.makedirs(f"{folder}/in")
        made, expected = dict([*make_pngs(rng), *make_others(rng)]), {}
        for name, data, why in make_copied(rng):
            made[name], expected[name] = data, why
        made["cut off.png"] = made["png4.png"][: len(made["png4.png"]) // 2]
        made["nothing.bmp"] = b""
        for name, data in made.items():
            with open(f"{folder}/in/{name}", "wb") as file:
                file.write(data)
        generator = numpy.random.default_rng(arguments.seed)
        deep = {f"deep{kind}": (kind, generator.integers(0, 65536, (35, 40, channels), numpy.uint16)) for kind, channels in ((0, 1), (2, 3), (4, 2), (6, 4))}
        for name, (kind, pixels) in deep.items():
            with open(f"{folder}/in/{name}.png", "wb") as file:
                file.write(png_of_16_bits(kind, pixels))
        names = list(made)
        for part in ("png-suite", "kodak"):
            if not arguments.data or not os.path.isdir(os.path.join(arguments.data, part)):
                skip(f"{part} to L3 and back: MILLRACE_TEST_DATA is not set, or lacks it")
                continue
            shutil.copytree(os.path.join(arguments.data, part), f"{folder}/in/{part}")
            names += [f"{part}/{name}" for name in sorted(os.listdir(f"{folder}/in/{part}")) if name.endswith(".png")]
        compare_folder(comparison, arguments.millrace, names, expected)
        for name, (_, pixels) in deep.items():
            comparison.compare_16_bits(name, pixels)
        compare_version_1(comparison, arguments.millrace, rng)
        compare_odd(comparison, arguments.millrace, rng)
    print(f"{comparison.compared} pictures equal to Pillow's, {comparison.refused} refused, {comparison.copied} copied: {len(comparison.failures)} failures")
    return 1 if comparison.failures or comparison.compared < 200 * bool(arguments.data) else 0


if __name__ == "__main__":
    sys.exit(main())
