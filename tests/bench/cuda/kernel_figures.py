#!/usr/bin/env python3
"""What nvcc makes of the GPU kernels for sm_90: the table of kernels/cuda/README.md. Needs nvcc 13 and a C++ compiler, no GPU.

    kernel_figures.py [--check] [--nvcc NVCC]

Compiles kernels.cu with the flags of config/cmake/MillraceGpuKernels.cmake and writes the table anew. ``--check`` writes nothing and exits with 1
where the README has another one. It exits with 77 where no nvcc is, or another release than the table's: registers and spills are the compiler's.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

TOP = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "tests" / "support"))
from skips import skip_all

README = TOP / "kernels" / "cuda" / "README.md"
RULES = TOP / "config" / "cmake" / "MillraceGpuKernels.cmake"
TABLE = re.compile(r"\| kernel, nvcc (\d+\.\d+), sm_90 \|.*\n(?:\|.*\n)+")

# A multiprocessor of compute capability 9.0: CUDA's programming guide, "Technical Specifications per Compute Capability".
WARP, WARPS, BLOCKS = 32, 64, 32
REGISTERS, REGISTER_UNIT = 65_536, 256  # a warp's registers are a multiple of the unit
SHARED, SHARED_OF_SYSTEM = 228 * 1024, 1024  # the latter for each block

# What launches ask for, as batch_launch.cc does.
LAUNCHES = """
#include <cstdio>
#include "kernels/cuda/augment/augment.h"
#include "kernels/cuda/reconstruct/reconstruct.h"
#include "kernels/cuda/tokenise/tokenise.h"
#include "kernels/cuda/unpack/unpack.h"
using namespace millrace::kernels::cuda;
int main() {
  std::printf("millrace_tokenise %d %zu\\n", kTokeniseThreads, sizeof(TokeniseShared));
  std::printf("millrace_unpack %d %zu\\n", kUnpackThreads, sizeof(UnpackShared));
  std::printf("millrace_reconstruct %d %zu\\n", kTileThreads, std::size_t{kTileBytes});
  std::printf("millrace_augment %d %zu\\n", kAugmentThreads, sizeof(AugmentShared));
}
"""
KERNEL = re.compile(
    r"Compiling entry function '(\w+)' for 'sm_90'\n.*\n\s*(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads\n.*Used (\d+) registers(.*)"
)


def find_nvcc() -> str | None:
    """As the build looks for it."""
    wheels = sorted(map(str, (TOP / "build").glob("venv-cuda/lib/python3*/site-packages/nvidia/cu13/bin/nvcc")))
    named = (os.environ.get("CUDACXX"), "nvcc", "/usr/local/cuda/bin/nvcc", *wheels)
    return next((found for name in named if name and (found := shutil.which(name))), None)


def said_by(*command: str) -> str:
    done = subprocess.run(command, cwd=TOP, check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        sys.exit(f"{command[0]} fails:\n{done.stdout}")
    return done.stdout


def release_of(nvcc: str) -> str:
    found = re.search(r"release (\d+\.\d+)", said_by(nvcc, "--version"))
    return found[1] if found else "unknown"


def launches(folder: str) -> dict[str, tuple[int, int]]:
    """Threads and dynamic shared memory of each kernel."""
    source, program = f"{folder}/launches.cc", f"{folder}/launches"
    Path(source).write_text(LAUNCHES)
    said_by(os.environ.get("CXX", "g++"), "-std=c++20", f"-I{TOP}", "-o", program, source)
    rows = (line.split() for line in said_by(program).splitlines())
    return {name: (int(threads), int(shared)) for name, threads, shared in rows}


def compiled(nvcc: str, folder: str) -> str:
    flags = re.search(r"MILLRACE_NVCC\} -fatbin (.*) -I\$\{PROJECT_SOURCE_DIR\}", RULES.read_text())
    if flags is None:
        sys.exit(f"{RULES} has no flags where this program looks for them")
    ours = [f"-I{TOP}", "-arch=sm_90", "-Xptxas", "-v", "-o", f"{folder}/kernels.cubin"]
    return said_by(nvcc, "-cubin", *flags[1].split(), *ours, "kernels/cuda/kernels.cu")


def rounded_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def rows_of(report: str, asked: dict[str, tuple[int, int]]) -> Iterator[str]:
    found = KERNEL.findall(report)
    if {name for name, *_ in found} != set(asked):
        sys.exit(f"ptxas does not tell of {', '.join(asked)}, or of others:\n{report}")
    for name, stack, stores, loads, registers, rest in sorted(found, key=lambda row: list(asked).index(row[0])):
        threads, dynamic = asked[name]
        static = re.search(r"(\d+) bytes smem", rest)
        shared = dynamic + (int(static[1]) if static else 0)
        warps = threads // WARP
        limits = {
            "registers": REGISTERS // (rounded_up(int(registers) * WARP, REGISTER_UNIT) * warps),
            "shared memory": SHARED // (shared + SHARED_OF_SYSTEM),
            "warps": WARPS // warps,
            "blocks": BLOCKS,
        }
        blocks = min(limits.values())
        bound = " and ".join(what for what, most in limits.items() if most == blocks)
        yield (
            f"| `{name}` | {threads} | {registers} | {stack} | {stores} / {loads} | {shared:,} | {blocks} | {blocks * warps} ({blocks * warps / WARPS:.0%}) | {bound} |"
        )


def table(release: str, rows: Iterator[str]) -> str:
    head = f"| kernel, nvcc {release}, sm_90 | threads | registers | stack | spills, stored / loaded | shared memory | blocks | warps | bound by |"
    return "\n".join([head, "|---|---|---|---|---|---|---|---|---|", *rows]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with the README instead of writing it")
    parser.add_argument("--nvcc", default=find_nvcc(), help="the CUDA compiler")
    options = parser.parse_args()
    if not options.nvcc or not shutil.which(options.nvcc):
        skip_all("registers and spills of the GPU kernels: no nvcc of version 13 or newer; `config/setup.sh deps --cuda` installs one")
    text = README.read_text()
    written = TABLE.search(text)
    if written is None:
        sys.exit(f"{README} has no table that begins with `| kernel, nvcc`")
    release = release_of(options.nvcc)
    if options.check and release != written[1]:
        skip_all(f"registers and spills of the GPU kernels: the table is nvcc {written[1]}'s, this one is {release}")
    with tempfile.TemporaryDirectory() as folder:
        made = table(release, rows_of(compiled(options.nvcc, folder), launches(folder)))
    if not options.check:
        README.write_text(text.replace(written[0], made))
    elif made != written[0]:
        how = f"write it anew: {Path(__file__).relative_to(TOP)}"
        sys.exit(f"{README} has another table than what nvcc makes now; {how}\n{written[0]}\n{made}")


if __name__ == "__main__":
    main()
