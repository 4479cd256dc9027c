"""Where the answer to a damaged file differs from Pillow's on purpose: classes of files, recognised from the files alone."""

import io

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
    except OSError:
        pass
    return False


# name: (reason, what may differ, whether a file is of the class)
CLASSES = {
    "incomplete progressive": ("libjpeg-turbo 2.1 and 3 smooth blocks by different rules", ["whole: other pixels"], is_incomplete_progressive),
    "EXIF that is no TIFF": (
        "the picture is whole, and upright as far as anybody can tell",
        ["whole: delivered, Pillow refuses", "crop: delivered from a damaged header"],
        is_whole_but_for_exif,
    ),
}
