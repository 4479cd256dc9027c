"""AVIF files as Pillow writes them, by avifenc (libavif-bin) where it is, and with their boxes changed.

Each function takes a pillow_decode.Comparison and a random.Random.
"""

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


COMPARISONS = [compare_saved_avifs, compare_encoded_avifs, compare_changed_avifs]
if not features.check("avif"):
    skip("AVIF: this Pillow has none")
    COMPARISONS = []
