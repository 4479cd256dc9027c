#!/usr/bin/env python3
"""Collects what the wheel `millrace-daemon` is made of: `collect.py PROGRAMS [--host-gcc] TREE`.

    PROGRAMS/millraced ...      TREE/pyproject.toml, setup.py, README.md         as they lie beside this file
                                TREE/src/millrace_daemon/bin/                    the programs, without debugging information
                                TREE/src/millrace_daemon/lib/                    every library that they need, but for glibc's
                                TREE/third_party/INDEX.tsv, PACKAGE.copyright    which Debian package each is from, and its licences

--host-gcc leaves out what belongs to the compiler (libstdc++, libgcc_s): Debian 12's need a newer glibc than anything else here does.

Libraries keep their names, for nothing of another wheel's ever shares a process with them. Programs look in ../lib before anywhere else,
LD_LIBRARY_PATH included (DT_RPATH). What belongs to a driver (NVIDIA's, XRT) must not be needed: it is the host's, opened at run time.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
TOP = HERE.parents[2]

# millrace-opener is a service's, with two capabilities of root's: it has no business in a folder that a user may write to. millrace-fpga
# has to be linked to the XRT of the card's driver.
PROGRAMS = ("millraced", "millrace", "millrace-decoder", "millrace-cuda")
GLIBC = {"libc6"}  # packages
GCC = {"libstdc++6", "libgcc-s1"}
DRIVERS = re.compile(r"lib(cuda|nvidia|nvjpeg|xrt|xilinx)")
HEADERS = ("/usr/include/boost/version.hpp", "/usr/include/CLI/CLI.hpp", "/usr/include/toml++/toml.h")  # libraries of headers alone
COMMON = Path("/usr/share/common-licenses")
REPLACED = {"libjbig.so.0": HERE / "no_jbig.c"}  # libraries that may not be here, and our own that stand in for them

ABOUT = """\
# What is in this wheel that is not Millrace's: the files beneath millrace_daemon/lib, unchanged but for where they look for each other, and
# what was compiled into the programs from headers. Each is from a package of Debian's; its licences are in the file that the last column
# names, the common ones in full beneath common-licenses. The source is that package's: apt-get source SOURCE=VERSION, or
# https://snapshot.debian.org/package/SOURCE/VERSION/
file\tpackage\tversion\tsource\tsource version\tlicences
"""


class Package(NamedTuple):
    """A Debian package as dpkg knows it."""

    name: str
    version: str
    source: str
    source_version: str


def said(*command: str) -> str:
    """What a command prints."""
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def owner(path: str) -> Package:
    """The package that a file is from."""
    real = os.path.realpath(path)
    for name in dict.fromkeys((real, real.removeprefix("/usr"), path, path.removeprefix("/usr"))):
        found = subprocess.run(["dpkg-query", "-S", name], check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        if found.returncode == 0:
            package = found.stdout.split(": ")[0].split(",")[0]
            fields = "${Package}\t${Version}\t${source:Package}\t${source:Version}"
            return Package(*said("dpkg-query", "-W", "-f", fields, package).split("\t"))
    raise SystemExit(f"collect: {path} is from no Debian package, so nobody can say what its licence is")


def libraries(programs: list[Path]) -> dict[str, str]:
    """Of every library that the loader would load for them, its path by its name."""
    found: dict[str, str] = {}
    for program in programs:
        for line in said("ldd", str(program)).splitlines():
            name, arrow, place = line.strip().partition(" => ")
            if not arrow:
                continue  # the loader, the kernel's
            if DRIVERS.match(name):
                raise SystemExit(f"collect: {program} is linked to {name}, which belongs to the host's driver")
            if not place.startswith("/"):
                raise SystemExit(f"collect: {program} needs {name}, which is not here")
            found[name] = place.split(" (")[0]
    return found


def place(source: str | Path, target: Path, runpath: str) -> None:
    """Copies a program or library, so that it looks for others in `runpath` first."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.parent.name == "bin":
        subprocess.run(["strip", "--strip-unneeded", "-o", str(target), str(source)], check=True)
    else:
        shutil.copyfile(source, target)
    target.chmod(0o755)
    subprocess.run(["patchelf", "--force-rpath", "--set-rpath", runpath, str(target)], check=True)


def stand_in(source: Path, name: str, tree: Path) -> Path:
    """A library of that name, compiled."""
    made = tree / "stand_in" / name
    made.parent.mkdir(exist_ok=True)
    subprocess.run(["cc", "-std=c11", "-O2", "-fPIC", "-shared", f"-Wl,-soname,{name}", "-s", "-o", made, source], check=True)
    return made


def write_licences(folder: Path, parts: list[tuple[str, Package]]) -> None:
    """The index, and what Debian says of each package."""
    folder.mkdir(parents=True)
    named: set[str] = set()
    for package in sorted({package.name for _, package in parts}):
        text = Path(f"/usr/share/doc/{package}/copyright").read_text("utf-8")
        (folder / f"{package}.copyright").write_text(text, "utf-8")
        named |= set(re.findall(rf"{COMMON}/([\w.+-]*[\w+])", text))
    (folder / "common-licenses").mkdir()
    for name in sorted(named):
        if (COMMON / name).is_file():
            shutil.copyfile(COMMON / name, folder / "common-licenses" / name)
    lines = ["\t".join((file, *package, f"{package.name}.copyright")) for file, package in sorted(parts)]
    (folder / "INDEX.tsv").write_text(ABOUT + "\n".join(lines) + "\n", "utf-8")


def collect(programs: Path, tree: Path, hosts_own: set[str]) -> None:
    """Makes TREE anew; `hosts_own`: packages whose libraries the host has to have."""
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(HERE, tree, ignore=shutil.ignore_patterns("collect.py", "*.c", "__pycache__", "*.egg-info", "build"))
    package = tree / "src" / "millrace_daemon"
    shutil.copyfile(TOP / "config" / "millrace.toml", package / "millrace.toml")
    needed = libraries([programs / name for name in PROGRAMS])
    parts = []
    for name, path in sorted(needed.items()):
        if name in REPLACED:
            place(stand_in(REPLACED[name], name, tree), package / "lib" / name, "$ORIGIN")
            continue
        owned = owner(path)
        if owned.name not in hosts_own:
            place(path, package / "lib" / name, "$ORIGIN")
            parts.append((f"lib/{name}", owned))
    for name in PROGRAMS:
        place(programs / name, package / "bin" / name, "$ORIGIN/../lib")
    parts += [(f"compiled in: {Path(header).parent.name}", owner(header)) for header in HEADERS]
    write_licences(tree / "third_party", parts)


if __name__ == "__main__":
    folders = [argument for argument in sys.argv[1:] if argument != "--host-gcc"]
    if len(folders) != 2:
        sys.exit(__doc__)
    collect(Path(folders[0]), Path(folders[1]), GLIBC | GCC if "--host-gcc" in sys.argv else GLIBC)
