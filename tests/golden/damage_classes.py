"""Where the answer to a damaged file differs from Pillow's on purpose: classes of files, recognised by the file or by what is said of it."""

import io
import struct

from damages import jpeg_segments
from pillow_side import Image


def is_incomplete_progressive(data):
    """Some of the low AC coefficients that libjpeg smooths by are in no scan to the last bit."""
    known = {}
    is_progressive, components = False, []
    for marker, _, content in jpeg_segments(data):
        if marker in (0xC2, 0xCA) and len(content) >= 6:
            is_progressive, components = True, list(content[6::3])[: content[5]]
        if marker == 0xDA and len(content) >= 4 and len(content) >= 4 + 2 * content[0]:
            start, end, low = content[-3], content[-2], content[-1] & 15
            for component in content[1 : 1 + 2 * content[0] : 2]:
                for coefficient in range(start, min(end, 9) + 1):
                    known[component, coefficient] = low
    return is_progressive and any(known.get((component, k), 99) != 0 for component in components for k in range(1, 10))


def is_whole_but_for_exif(data):
    """Pillow decodes it, but exif_transpose() raises: what calls itself EXIF is no TIFF."""
    try:
        with Image.open(io.BytesIO(data)) as image:
            image.convert("RGB")
            image.getexif()
    except SyntaxError as error:
        return "not a TIFF file" in str(error)
    except Exception:  # whatever else Pillow raises
        pass
    return False


def tiff_contradicts_itself(data):
    """Whether there are more or fewer depths than samples, or samples beside the colours that nothing explains."""
    order = "<" if data[:2] == b"II" else ">"
    (at,) = struct.unpack_from(order + "I", data, 4)
    (entries,) = struct.unpack_from(order + "H", data, at)
    tags = {}
    for place in range(at + 2, min(at + 2 + 12 * entries, len(data) - 11), 12):
        tag, _, count, value = struct.unpack_from(order + "HHIH", data, place)
        tags[tag] = (count, value)
    samples = tags.get(277, (1, 1))[1]
    colours = {2: 3, 5: 4, 6: 3}.get(tags.get(262, (1, 0))[1], 1)
    return tags.get(258, (1, 1))[0] != samples or (samples > colours and 338 not in tags)


def is_of(*kinds):
    """Of these kinds of file, whatever is said of it."""
    return lambda trial, _: trial.file.startswith(kinds)


def says(kind, words):
    """Of this kind of file, and what is said of it has these words, or one of them."""
    return lambda trial, details: trial.file.startswith(kind) and any(one in details for one in ([words] if isinstance(words, str) else words))


DELIVERED, REFUSED, OTHER_PIXELS = "whole: delivered, Pillow refuses", "whole: refused, Pillow delivers", "whole: other pixels"
CROP_PIXELS = "crop: other pixels than Pillow's"

# name: (reason, what may differ, whether a trial is of the class by its file or by what is said of it)
CLASSES = {
    "incomplete progressive": (
        "libjpeg-turbo 2.1 and 3 smooth blocks by different rules",
        [OTHER_PIXELS],
        lambda trial, _: is_incomplete_progressive(trial.data),
    ),
    "EXIF that is no TIFF": (
        "the picture is whole, and upright as far as anybody can tell",
        [DELIVERED, "crop: delivered from a damaged header"],
        lambda trial, _: is_whole_but_for_exif(trial.data),
    ),
}
OTHER_CLASSES = {
    "AVIF, last rows": (
        "dav1d before 1.4 does not see that the codes of a tile's last superblocks go on behind its data",
        [DELIVERED],
        says("avif", "planes failed"),
    ),
    "HEIC": (
        "what libde265 makes up, and warns of, is an error here",
        [REFUSED],
        says("heic", ("damaged HEIC: ", "truncated HEIC: ", "HEIC is not decoded here: ", "a broken HEIC: ")),
    ),
    "HEIC, garbage": ("libde265 1.0 and 1.1 make different pixels of damage that neither sees", [OTHER_PIXELS, CROP_PIXELS], is_of("heic")),
    "beside the picture": (
        "the picture is whole: pillow-heif reads EXIF and profiles first, libavif properties of no use to pixels",
        [DELIVERED],
        says(("heic", "avif"), "as the undamaged file's"),
    ),
    "TIFF, faxes": ("libtiff 4.5 and 4.7 make different rows of damaged ones", [OTHER_PIXELS, CROP_PIXELS], is_of("tiff fax")),
    "TIFF, faxes refused": ("the same", [REFUSED], says("tiff fax", "damaged TIFF: ")),
    "TIFF, directory": (
        "values that are not in the file are an error here; Pillow passes over them",
        [REFUSED],
        says("tiff", "more bytes than the file has"),
    ),
    "TIFF, uncompressed": (
        "libtiff refuses what Pillow, which reads these itself, does not look at",
        [REFUSED],
        says("tiff", ("TIFFReadDirectory: ", "TIFFFetchNormalTag: ", "TIFFFetchDirectory: ", "TIFFFillStrip: ", "_TIFFVSetField: ")),
    ),
    "TIFF, samples": (
        "the number of samples contradicts the rest of the directory: libtiff goes by it",
        [DELIVERED],
        lambda trial, _: trial.file.startswith("tiff") and tiff_contradicts_itself(trial.data),
    ),
    "BMP, colours": ("the header counts more colours than samples can name", [REFUSED], says("bmp", "more than 256 colours")),
}
# Where one does not occur any more among so many files, it is out of date, and so is the README's table. Among a thousand, whatever the seed:
FREQUENT = {"AVIF, last rows", "HEIC", "beside the picture", "TIFF, faxes", "TIFF, faxes refused"}
# And of seed 0: class -> among how many files, and whether of test data (True), of pictures made here (False) or of both (None).
OF_SEED_0 = {
    "incomplete progressive": (2000, None),
    "HEIC, garbage": (4000, None),
    "TIFF, directory": (4000, None),
    "TIFF, uncompressed": (4000, True),
    "TIFF, samples": (4000, False),
    "BMP, colours": (4000, None),
}


def due(count, seed, has_data):
    """The classes that so many files must have."""
    rare = {name for name, (least, data) in OF_SEED_0.items() if seed == 0 and count >= least and data in (None, has_data)}
    return rare | (FREQUENT if count >= 1000 else set())
