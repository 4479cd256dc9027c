"""AVIF files as Pillow writes them, by avifenc (libavif-bin) where it is, and with their boxes changed.

Each function takes a pillow_decode.Comparison and a random.Random.
"""

import random
import shutil
import struct
import subprocess
import tempfile
from pathlib import Path

from made_pictures import exif_with, random_image, saved
from pillow_side import features
from skips import skip

MATRICES = ["1/13/6", "1/13/1", "9/16/9", "5/6/5", "2/2/2", "1/13/4", "1/13/7", "1/13/8", "9/16/12", "12/13/12"]
XMP = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:Description tiff:Orientation="%d"/></x:xmpmeta>'


def compare_saved_avifs(comparison, rng):
    for number in range(120):
        mode = rng.choice(["L", "RGB", "RGB", "RGBA", "LA"])
        options = {
            "quality": rng.choice([1, 40, 80, 100]),
            "speed": 10,
            "subsampling": rng.choice(["4:2:0", "4:2:0", "4:2:2", "4:4:4", "4:0:0"]),
            "range": rng.choice(["full", "limited"]),
        }
        if mode in ("RGBA", "LA") and rng.random() < 0.3:
            options["alpha_premultiplied"] = True
        if rng.random() < 0.4:
            options["exif"] = exif_with(rng.randint(1, 8))
        if rng.random() < 0.2:
            options["xmp"] = XMP % rng.randint(1, 8)
        whole = saved(random_image(rng, mode), format="AVIF", **options)
        comparison.compare(f"avif {number} {mode} {sorted(options)} {options['subsampling']} {options['range']}", whole, 3)
    frames = [random_image(rng, "RGB").resize((61, 47)) for _ in range(3)]
    comparison.compare("animated avif", saved(frames[0], format="AVIF", save_all=True, append_images=frames[1:]))


def compare_encoded_avifs(comparison, rng):
    """Depths, matrices and grids that Pillow does not write."""
    program = shutil.which("avifenc")
    if program is None:
        skip("AVIF of 10 and 12 bits, of several matrices, and grids: no avifenc (libavif-bin)")
        return
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "source.png"), Path(folder, "made.avif")

        def encode(name, image, *arguments):
            image.save(source)
            target.unlink(missing_ok=True)
            done = subprocess.run([program, "-s", "10", "-j", "1", *arguments, str(source), str(target)], capture_output=True, check=False)
            if done.returncode == 0:
                comparison.compare(name, target.read_bytes(), 2)

        for depth in ("8", "10", "12"):
            for layout in ("420", "422", "444", "400"):
                for mode in ("RGB", "RGBA"):
                    for matrix in [*rng.sample(MATRICES, 3), "1/13/6"]:
                        limits = rng.choice("fl")
                        arguments = [
                            "-d",
                            depth,
                            "-y",
                            layout,
                            "-r",
                            limits,
                            "--cicp",
                            matrix,
                            "--max",
                            str(rng.choice([8, 40, 63])),
                            "--min",
                            "0",
                        ]
                        encode(f"avif of {depth} bits, {layout}, {mode}, {matrix}, {limits}", random_image(rng, mode), *arguments)
        encode("avif lossless", random_image(rng, "RGB"), "--lossless")
        encode("avif premultiplied", random_image(rng, "RGBA"), "--premultiply")
        encode("avif with a crop", random_image(rng, "RGB").resize((120, 100)), "--crop", "4,4,100,80")
        for grid in ("2x2", "3x1", "1x2"):
            for layout in ("420", "444"):
                for mode in ("RGB", "RGBA"):
                    encode(f"avif grid {grid} {layout} {mode}", random_image(rng, mode).resize((192, 256)), "--grid", grid, "-y", layout)
        for angle in ("0", "1", "2", "3"):
            for mirror in (None, "0", "1"):
                turned = ["--irot", angle] + (["--imir", mirror] if mirror else [])
                encode(f"avif turned {angle} {mirror}", random_image(rng, "RGB").resize((67, 45)), *turned)


def compare_changed_avifs(comparison, rng):
    image = random_image(rng, "RGB").resize((67, 45))
    for orientation in range(1, 9):
        whole = saved(image, format="AVIF", exif=exif_with(orientation))
        comparison.compare(f"avif turned as EXIF {orientation}", whole, 1)
        comparison.compare(f"avif turned as XMP {orientation}", saved(image, format="AVIF", xmp=XMP % orientation), 1)
        both = saved(image, format="AVIF", exif=exif_with(orientation), xmp=XMP % 3)
        comparison.compare(f"avif turned as EXIF {orientation}, not XMP", both, 1)
        # without irot and imir EXIF counts for nothing
        comparison.compare(f"avif with EXIF {orientation} alone", whole.replace(b"irot", b"free").replace(b"imir", b"free"), 1)
    whole = saved(image, format="AVIF")
    for size in (0, 7, 12, 31, 100, 200, 280, len(whole) // 2, len(whole) - 1):
        comparison.compare(f"avif cut off at {size}", whole[:size], 0)
    for name in (b"meta", b"pitm", b"iloc", b"iinf", b"infe", b"iprp", b"ipco", b"ipma", b"ispe", b"av1C", b"pixi", b"colr", b"mdat"):
        comparison.compare(f"avif without {name.decode()}", whole.replace(name, b"free", 1), 0)
    at = whole.index(b"ispe") + 8
    for size in ((66, 45), (68, 45), (0, 45), (1 << 31, 1 << 31), (134, 90)):
        comparison.compare(f"avif whose ispe says {size}", whole[:at] + struct.pack(">II", *size) + whole[at + 8 :], 0)


def grids_of(whole):
    """Where the references of its grids begin, and the items that they name."""
    at = whole.find(b"dimg")
    while at >= 0:
        (count,) = struct.unpack_from(">H", whole, at + 6)
        yield at, list(struct.unpack_from(f">{count}H", whole, at + 8))
        at = whole.find(b"dimg", at + 4)


def with_parts(whole, at, parts):
    return whole[: at + 6] + struct.pack(f">{1 + len(parts)}H", len(parts), *parts) + whole[at + 8 + 2 * len(parts) :]


def compare_grids_in_disorder(comparison, _):
    """What a grid says of its parts: their order, the same one twice, fewer of them."""
    rng = random.Random(1)
    program = shutil.which("avifenc")
    if program is None:
        skip("AVIF grids whose parts do not ascend: no avifenc (libavif-bin)")
        return
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "source.png"), Path(folder, "made.avif")
        for mode in ("RGB", "RGBA"):
            random_image(rng, mode).resize((256, 256)).save(source)
            subprocess.run([program, "-s", "10", "-j", "1", "--grid", "2x2", str(source), str(target)], capture_output=True, check=True)
            whole = target.read_bytes()
            for number, (at, parts) in enumerate(grids_of(whole)):
                comparison.compare(f"avif grid as it was, {mode} {number}", with_parts(whole, at, parts), 0)
                comparison.compare(f"avif grid reversed, {mode} {number}", with_parts(whole, at, parts[::-1]), 0)
                comparison.compare(f"avif grid with two parts changed over, {mode} {number}", with_parts(whole, at, [parts[1], parts[0], *parts[2:]]), 0)
                comparison.compare(f"avif grid with a part twice, {mode} {number}", with_parts(whole, at, [parts[0], parts[0], *parts[2:]]), 0)
                comparison.compare(f"avif grid of parts that are not there, {mode} {number}", with_parts(whole, at, [part + 100 for part in parts]), 0)
    comparison.expect_exceptions("avif grid")


def box(name, *data):
    content = b"".join(data)
    return struct.pack(">I", 8 + len(content)) + name + content


def avif_of(pictures, *, reference=b"thmb", meta_behind=False):
    """One file of several pictures, each (width, height, av1C, data): the first is the primary item, the others refer to it."""
    full = bytes(4)
    numbers = range(1, len(pictures) + 1)
    entries = b"".join(box(b"infe", b"\2\0\0\0", struct.pack(">HH", number, 0), b"av01", b"\0") for number in numbers)
    properties = b"".join(box(b"ispe", full, struct.pack(">II", width, height)) + configuration for width, height, configuration, _ in pictures)
    uses = b"".join(struct.pack(">HBBB", number, 2, 2 * number - 1, 0x80 | 2 * number) for number in numbers)
    refers = b"".join(box(reference, struct.pack(">HHH", number, 1, 1)) for number in numbers[1:])
    beginning = box(b"ftyp", b"avif", full, b"avifmif1miaf")
    data = box(b"mdat", *[picture[3] for picture in pictures])

    def meta(data_at):
        places = b""
        for number, picture in zip(numbers, pictures, strict=True):
            places += struct.pack(">HHHII", number, 0, 1, data_at, len(picture[3]))
            data_at += len(picture[3])
        return box(
            b"meta",
            full,
            box(b"hdlr", full, full, b"pict", bytes(13)),
            box(b"pitm", full, struct.pack(">H", 1)),
            box(b"iloc", full, struct.pack(">HH", 0x4400, len(pictures)), places),
            box(b"iinf", full, struct.pack(">H", len(pictures)), entries),
            box(b"iprp", box(b"ipco", properties), box(b"ipma", full, struct.pack(">I", len(pictures)), uses)),
            box(b"iref", full, refers),
        )

    if meta_behind:
        description = meta(len(beginning) + 8)
        return beginning + data + bytes(4) + description[4:]
    return beginning + meta(len(beginning) + len(meta(0)) + 8) + data


def picture_of(image):
    whole = saved(image, format="AVIF")
    at = whole.index(b"av1C") - 4
    (size,) = struct.unpack_from(">I", whole, at)
    data_at = whole.index(b"mdat") + 4
    return (*image.size, whole[at : at + size], whole[data_at:])


def compare_avifs_of_several(comparison, _):
    """An item beside the picture that is larger than it: a thumbnail, or what only later versions know, such as a gain map."""
    rng = random.Random(1)
    small, large = (picture_of(random_image(rng, "RGB").resize(size)) for size in ((64, 48), (1000, 800)))
    comparison.compare("avif put together", avif_of([small]), 0)
    comparison.compare("avif with a smaller thumbnail", avif_of([large, small]), 0)
    comparison.compare("avif with a larger thumbnail", avif_of([small, large]), 0)
    comparison.compare("avif with a larger item beside", avif_of([small, large], reference=b"abcd"), 0)
    comparison.compare("avif whose item is larger than it says", avif_of([(64, 48, *large[2:]), large]), 0)
    comparison.compare("avif whose meta has no length", avif_of([small], meta_behind=True), 0)
    comparison.expect_exceptions("avif whose")


COMPARISONS = [compare_saved_avifs, compare_encoded_avifs, compare_changed_avifs, compare_grids_in_disorder, compare_avifs_of_several]
if not features.check("avif"):
    skip("AVIF: this Pillow has none")
    COMPARISONS = []
