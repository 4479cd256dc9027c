#!/usr/bin/env python3
"""Damages pictures in thousands of ways and compares verdicts and pixels with Pillow's, byte for byte.

  pillow_damage.py DECODE_TOOL [--others] [--data FOLDER] [--count N] [--seed N] [--only N] [--keep FOLDER]

Damaged are JPEG, PNG and WebP; with --others BMP, GIF, PNM, AVIF, HEIC and TIFF by compression. DECODE_TOOL is the built
millrace_decode_tool; FOLDER has photos/ and kodak/ (default: the environment variable MILLRACE_TEST_DATA; without it pictures that are
made here are damaged, and fewer). Exit status 77: Pillow or numpy is missing.

What holds for every damaged file:
  - The whole picture, and all of it shrunk, is delivered where Pillow delivers it (LOAD_TRUNCATED_IMAGES off), with Pillow's pixels, and
    refused where Pillow refuses it; damage_classes.py has the exceptions.
  - A crop of another format than JPEG has the whole picture's verdict.
  - A crop of a JPEG file that Pillow delivers is Pillow's, or an error, if the coded data or the picture was hit at all.
  - A crop of a JPEG file that Pillow refuses is an error, or the same crop of the file without the damage to its coded data: that may
    go unseen behind the crop and in restart intervals that the crop does not meet, and nowhere else.
  - First touch with and without an index to make, a touch by the index, a touch by the index of the undamaged file, as if nothing told
    that it was damaged since, every instruction set, number of streams and way to decode by an index give the same verdict and the same
    bytes; fidelity `fast` gives the verdict of `exact`.
A failure is printed with the number that --only makes it again by.
"""

import argparse
import collections
import os
import random
import sys
import warnings

from damage_classes import CLASSES, CROP_PIXELS, DELIVERED, OTHER_CLASSES, OTHER_PIXELS, REFUSED, due, is_incomplete_progressive
from damages import Splice, anatomy_of, damaged, draw
from decode_tool import Tool
from originals import OTHERS, USUAL, Originals
from pillow_side import Image, Picture, numpy, with_pillow
from skips import skip

MOST_PIXELS = 4_000_000  # of a damaged header's claim; more is not compared, for it only takes long
REFUSALS = (1, 9)  # INVALID_ARGUMENT and UNSUPPORTED: what a damaged file may be called


# --- one damaged file ------------------------------------------------------------------------------------------------------------------------


class Trial:
    def __init__(self, originals, seed, number):
        self.number, self.rng = number, random.Random(f"{seed}/{number}")
        self.file, self.source, self.original = originals.draw(self.rng)
        self.kind, self.splices = draw(self.rng, self.original)
        self.anatomy = anatomy_of(self.original)
        self.data = damaged(self.original, self.splices)
        self.undamaged = Picture("", self.original).rgb
        self.is_jpeg = self.original[:2] == b"\xff\xd8"

    def __str__(self):
        return f"{self.file} of {self.source}, {self.kind}: " + "; ".join(str(splice) for splice in self.splices)

    def header_damaged(self):
        """The file with the damage to what comes before its coded data alone; None: they cannot be told apart."""
        begin, kept = self.anatomy.begin, []
        for splice in self.splices:
            if splice.at >= begin:
                continue
            if splice.at + splice.removed > begin:
                if splice.removed != len(splice.put):
                    return None
                splice = Splice(splice.at, begin - splice.at, splice.put[: begin - splice.at])
            kept.append(splice)
        return damaged(self.original, kept)

    def hits_coded_data(self):
        return any(self.anatomy.is_coded(splice) for splice in self.splices)

    def depth(self):
        """How far down the picture the damage begins, 0 to 1, about."""
        first = len(os.path.commonprefix([self.data, self.original]))
        return min(max((first - self.anatomy.begin) / max(self.anatomy.end - self.anatomy.begin, 1), 0), 1)


def geometries(trial, size):
    """name -> what is asked for: all of the picture twice, random crops, and crops above, across and below the damage."""
    rng, (width, height) = trial.rng, size
    row = min(int(trial.depth() * height), height - 1)

    def crop(top, bottom):
        left = rng.randrange(width)
        return (left, top, rng.randint(left + 1, width), bottom)

    def random_crop():
        top = rng.randrange(height)
        return crop(top, rng.randint(top + 1, height))

    asked = {"whole": {}, "whole shrunk": {"size": (width // 3 + 1, height // 3 + 1)}, "random": {"crop": random_crop()}}
    asked["random, resized"] = {"crop": random_crop(), "size": (rng.randint(1, 224), rng.randint(1, 224)), "flip": rng.randrange(2)}
    if row >= 2:
        asked["above"] = {"crop": crop(0, rng.randint(1, row))}
    asked["across"] = {"crop": crop(max(row - rng.randint(0, 40), 0), min(row + rng.randint(1, 40), height))}
    if row + 2 < height:
        asked["below"] = {"crop": crop(rng.randint(row + 1, height - 1), height)}
    return asked


def for_tool(geometry):
    boxes = dict(geometry)
    if "crop" in boxes:
        left, top, right, bottom = boxes["crop"]
        boxes["crop"] = (left, top, right - left, bottom - top)
    return boxes


def difference(tensor, image, geometry):
    """None, or in words how the bytes differ from what Pillow makes of the picture."""
    golden = with_pillow(image, **geometry)
    ours = numpy.frombuffer(tensor, numpy.uint8)
    if ours.size != golden.size:
        return f"{ours.size} bytes instead of {golden.size}"
    off = numpy.abs(ours.reshape(golden.shape).astype(int) - golden)
    return f"{int((off > 0).sum())} of {ours.size} bytes differ, by {off.max()} at most" if off.any() else None


class Judge:
    def __init__(self, tool, classes):
        self.tool, self.ways, self.known = tool, tool.ways(), classes
        self.counts = collections.Counter()
        self.classes = collections.Counter()
        self.cases = collections.Counter()  # (file, kind): how many
        self.failures = collections.defaultdict(dict)  # number: {what: details}
        self.cells = collections.Counter()  # (what, file, kind): how many

    def fail(self, trial, what, details):
        for name, (_, differs, holds) in self.known.items():
            if what in differs and holds(trial, details):
                self.classes[name] += 1
                return
        if what not in self.failures[trial.number]:
            self.failures[trial.number][what] = details
            self.cells[what, trial.file, trial.kind] += 1

    def judge(self, trial):
        strict = Picture("", trial.data, most_pixels=MOST_PIXELS)
        if strict.size and strict.size[0] * strict.size[1] > MOST_PIXELS:
            self.counts["claims too many pixels, not compared"] += 1
            return
        self.cases[trial.file, trial.kind] += 1
        if strict.error is None and not strict.is_ours:
            strict.error = "it has become another format"
        asked = geometries(trial, strict.size if strict.error is None else self.likely_size(trial))
        plain = {name: self.tool.make(trial.data, **for_tool(geometry)) for name, geometry in asked.items()}
        for name, (code, message) in plain.items():
            if code not in (0, *REFUSALS):
                self.fail(trial, "error of another kind", f"{name}: code {code}, {message.decode(errors='replace')}")
        self.judge_whole(trial, strict, plain, asked)
        self.judge_crops(trial, strict, plain, asked)
        self.judge_paths(trial, plain, asked)

    def likely_size(self, trial):
        """Of a picture that Pillow refuses. A square where its EXIF may be damaged, for that is there whichever way up it is."""
        is_behind = trial.file.startswith("tiff")  # what says how large it is may be there
        is_header_whole = not is_behind and all(splice.at >= trial.anatomy.begin for splice in trial.splices)
        size = trial.undamaged.size if is_header_whole else Picture("", trial.data, truncated=True, most_pixels=MOST_PIXELS).size or (1, 1)
        return size if is_header_whole and trial.is_jpeg else (min(size), min(size))

    def judge_whole(self, trial, strict, plain, asked):
        for name in ("whole", "whole shrunk"):
            code, answer = plain[name]
            if strict.error:
                if code == 0:
                    still = "" if difference(answer, trial.undamaged, asked[name]) else ", which is as the undamaged file's"
                    self.fail(trial, DELIVERED, f"{name}{still}: Pillow says {strict.error}")
            elif code != 0:
                self.fail(trial, REFUSED, f"{name}: {answer.decode(errors='replace')}")
            elif differs := difference(answer, strict.rgb, asked[name]):
                self.fail(trial, OTHER_PIXELS, f"{name}: {differs}")
        self.counts["whole pictures refused by both" if strict.error and plain["whole"][0] else "whole pictures delivered"] += 1

    def judge_crops(self, trial, strict, plain, asked):
        golden = None if strict.error else strict.rgb
        if golden and plain["whole"][0] == 0 and difference(plain["whole"][1], golden, {}) and is_incomplete_progressive(trial.data):
            golden = Image.frombytes("RGB", golden.size, plain["whole"][1])
        for name, geometry in asked.items():
            if name.startswith("whole"):
                continue
            code, answer = plain[name]
            box = f"{name} {geometry}"
            if not trial.is_jpeg and (code == 0) != (plain["whole"][0] == 0):
                self.fail(trial, "crop: not the whole's verdict", f"{box}: {'delivered' if code == 0 else answer.decode(errors='replace')}")
            if golden and code == 0:
                if differs := difference(answer, golden, geometry):
                    self.fail(trial, CROP_PIXELS, f"{box}: {differs}")
                self.counts["crops of delivered pictures"] += 1
            elif golden and trial.is_jpeg:
                self.counts["crops refused of delivered pictures"] += 1
                if not trial.hits_coded_data() and not difference(golden.tobytes(), trial.undamaged, {}):
                    self.fail(trial, "crop: refused without a cause", f"{box}: {answer.decode(errors='replace')}")
            elif code == 0 and trial.is_jpeg:
                self.counts["crops delivered of refused pictures"] += 1
                self.judge_unseen(trial, answer, box, geometry)
            elif code != 0:
                self.counts["crops of refused pictures refused"] += 1

    def judge_unseen(self, trial, answer, box, geometry):
        """A crop that was delivered though Pillow refuses the picture: is it untouched?"""
        data = trial.header_damaged()
        undamaged = Picture("", data, most_pixels=MOST_PIXELS) if data is not None else None
        if undamaged is None or undamaged.error:
            return self.fail(trial, "crop: delivered from a damaged header", f"{box}: {undamaged and undamaged.error}")
        if differs := difference(answer, undamaged.rgb, geometry):
            return self.fail(trial, "crop: damage delivered, Pillow refuses", f"{box}: {differs}")
        return None

    def judge_paths(self, trial, plain, asked):
        names = list(asked)
        if trial.is_jpeg:
            for touch in ("index made", "by the index"):
                trial.rng.shuffle(names)
                self.same(trial, touch, plain, asked, names, indexed=1)
            if len(trial.data) == len(trial.original):
                identity = trial.number + 2
                self.tool.make(trial.original, indexed=identity)
                self.same(trial, "by the undamaged file's index", plain, asked, names, indexed=identity)
        others = trial.rng.sample(range(1, len(self.ways)), min(2, len(self.ways) - 1)) if trial.is_jpeg else []
        for way in sorted({*others, len(self.ways) - 1}):
            self.same(trial, self.ways[way], plain, asked, names, way=way, indexed=trial.rng.randrange(2))
        fast = {}
        for name in names:
            fast[name] = self.tool.make(trial.data, **for_tool(asked[name]), fast=1)
            if (fast[name][0] == 0) != (plain[name][0] == 0):
                self.fail(trial, "fast: another verdict", f"{name} {asked[name]}: {verdict(fast[name])}, exact: {verdict(plain[name])}")
        if trial.is_jpeg:
            self.same(trial, "fast by the index", fast, asked, names, fast=1, indexed=1)

    def is_damaged_to_the_right(self, trial, geometry):
        """Whether our decoder, too, refuses the crop when it reaches to the right edge, and a row further down."""
        picture = Picture("", trial.data, truncated=True, most_pixels=MOST_PIXELS)
        return "crop" in geometry and self.tool.make(trial.data, **for_tool(widened(geometry, picture)))[0] != 0

    def same(self, trial, path, expected, asked, names, **how):
        before = self.tool.index_hits
        for name in names:
            answer = self.tool.make(trial.data, **for_tool(asked[name]), **how)
            self.counts["tensors of other paths compared"] += 1
            if (answer[0] == 0) != (expected[name][0] == 0):
                if path == "scalar" and answer[0] != 0 and self.is_damaged_to_the_right(trial, asked[name]):
                    self.counts["crops refused by libjpeg-turbo alone, which decodes rows to their end"] += 1
                    continue
                details = f"{path}: {name} {asked[name]}: {verdict(answer)}, but {verdict(expected[name])}"
                self.fail(trial, "paths: another verdict", details)
            elif answer[0] == 0 and answer[1] != expected[name][1]:
                self.fail(trial, "paths: other pixels", f"{path}: {name} {asked[name]}")
        if how.get("indexed") and how.get("way", 0) == 0:
            self.counts["tensors made by an index"] += max(self.tool.index_hits - before, 0)


def widened(geometry, picture):
    """As far as the stored picture's right edge, and by a row, but not the whole picture, which has a verdict of its own."""
    left, top, _, bottom = geometry["crop"]
    width, height = picture.size
    upright = (max(left, 1), top, width, min(bottom + 1, height))
    return {**geometry, "crop": (1, 1, width, height) if picture.is_turned else upright}


def verdict(answer):
    return "delivered" if answer[0] == 0 else f"refused ({answer[1].decode(errors='replace')})"


# --- the report ------------------------------------------------------------------------------------------------------------------------------


def report(judge, trial, keep):
    failures = judge.failures.get(trial.number)
    if not failures:
        return
    print(f"FAIL --only {trial.number}: {trial}")
    for what, details in failures.items():
        print(f"     {what}: {details}", flush=True)
    if keep:
        suffix = "jpg" if trial.is_jpeg else trial.file.split()[0]
        with open(os.path.join(keep, f"{trial.number}_{trial.file}_{trial.kind}.{suffix}".replace(" ", "_")), "wb") as file:
            file.write(trial.data)


def print_table(judge):
    """What failed: a row each kind of file and damage, `failed/tried`."""
    for what in sorted({cell[0] for cell in judge.cells}):
        rows = collections.Counter({(file, kind): n for (w, file, kind), n in judge.cells.items() if w == what})
        print(f"\n{what}: {sum(rows.values())} files")
        for file in sorted({row[0] for row in rows}):
            kinds = [f"{kind} {n}/{judge.cases[file, kind]}" for (f, kind), n in sorted(rows.items()) if f == file]
            print(f"  {file:14} {', '.join(kinds)}")
    print()
    for what, count in sorted(judge.counts.items()):
        print(f"{count:8} {what}")
    for name, (reason, _, _) in judge.known.items():
        print(f"{judge.classes[name]:8} differences of class {name!r} ({reason}){'' if judge.classes[name] else ': UNUSED'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool", help="the built millrace_decode_tool")
    parser.add_argument("--data", default=os.environ.get("MILLRACE_TEST_DATA"))
    parser.add_argument("--count", type=int, help="damaged files; 2000, or 200 without test data")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="this damage alone")
    parser.add_argument("--others", action="store_true", help="BMP, GIF, PNM, TIFF by compression, AVIF and HEIC instead of JPEG, PNG and WebP")
    parser.add_argument("--keep", help="a folder for the files that fail")
    arguments = parser.parse_args()

    warnings.simplefilter("ignore")
    if not arguments.data:
        skip("real files to damage: MILLRACE_TEST_DATA is not set")
    if arguments.keep:
        os.makedirs(arguments.keep, exist_ok=True)
    originals, judge = Originals(arguments.data, OTHERS if arguments.others else USUAL), Judge(Tool(arguments.tool), OTHER_CLASSES if arguments.others else CLASSES)
    count = arguments.count or (2000 if arguments.data else 200)
    for number in range(count) if arguments.only is None else [arguments.only]:
        trial = Trial(originals, arguments.seed, number)
        judge.judge(trial)
        report(judge, trial, arguments.keep)
    print_table(judge)
    wrong = []
    if arguments.only is None:
        if count >= 100 and not arguments.others and len(judge.ways) > 1 and not judge.counts["tensors made by an index"]:
            wrong.append("no tensor was made by an index")
        if unused := due(count, arguments.seed, bool(arguments.data)) & (judge.known.keys() - judge.classes.keys()):
            wrong.append(f"no file is of these classes any more, which the table in daemon/backend/cpu/README.md has: {sorted(unused)}")
    for line in wrong:
        print(f"FAIL: {line}")
    print(f"{sum(judge.cases.values())} damaged files compared with Pillow {Image.__version__}: {len(judge.failures)} with differences")
    return 1 if judge.failures or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
