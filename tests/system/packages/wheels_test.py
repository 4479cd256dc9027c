"""What somebody has who has installed the wheels with pip, and nothing else of Millrace: run by wheels_test.sh, with that Python, anywhere.

wheels_test.py [LIBRARY...]     of the host's libraries, beside glibc's, those that are to be used
    $DRIVER                     a folder with a libcuda.so.1: GPUs are to be used, too
"""

from __future__ import annotations

import base64
import contextlib
import os
import signal
import struct
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import millrace
import millrace.numpy
import millrace_daemon
import numpy as np
from numpy.typing import NDArray

HERE = Path(millrace_daemon.__file__).resolve().parent
GLIBC = {"ld-linux-x86-64.so.2", "libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libresolv.so.2"}
COLOURS = {"blue": (40, 40, 200), "green": (40, 200, 40), "red": (200, 40, 40)}
SIZE = 32

# For the libraries that pictures of PNG do not want: a progressive JPEG, which libjpeg-turbo decodes, and a WebP, both of 24 x 16.
OTHERS = {
    "jpg": """
        /9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABsSFBcUERsXFhceHBsgKEIrKCUlKFE6PTBCYFVlZF9VXVtqeJmBanGQc1tdhbWGkJ6jq62rZ4C8ybqmx5moq6T/
        wgALCAAQABgBAREA/8QAFwABAAMAAAAAAAAAAAAAAAAAAwECBP/aAAgBAQAAAAHOzVWf/8QAFxABAQEBAAAAAAAAAAAAAAAAAQACEf/aAAgBAQABBQIIIILk
        pm//xAAWEAADAAAAAAAAAAAAAAAAAAAAICH/2gAIAQEABj8CWn//xAAYEAADAQEAAAAAAAAAAAAAAAAAAREgIf/aAAgBAQABPyHCqoFl4P/aAAgBAQAAABDr
        /8QAGRAAAwEBAQAAAAAAAAAAAAAAAAFhMREh/9oACAEBAAE/EJkyZMWnogt4eJaz/9k=
    """,
    "webp": """
        UklGRoAAAABXRUJQVlA4IHQAAAAwBACdASoYABAAPu1iqk2ppaQiMAgBMB2JbACxGwCfKwmhLwwwFqRSFvAA/vn82bxXivC0IO0y1xQrJx/2pyswJbc7f7v/
        tSW1A/9Cqy30lCteLFurg1Zcdgb9crudnMzatPaShjY+cea6IyHNW6+rD06AAA==
    """,
}


def png_of(pixels: NDArray[np.uint8]) -> bytes:
    """An RGB PNG file of height x width x 3."""
    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def tiff_of(pixels: NDArray[np.uint8], compression: int) -> bytes:
    """An RGB TIFF file of height x width x 3 in one strip, whose bytes are Deflate's whatever it says of its compression."""
    height, width, _ = pixels.shape
    strip = zlib.compress(pixels.tobytes())
    longs = {256: width, 257: height, 259: compression, 262: 2, 273: 8, 277: 3, 278: height, 279: len(strip)}
    bits_at = 8 + len(strip)
    entries = {tag: struct.pack("<HHII", tag, 4, 1, value) for tag, value in longs.items()}
    entries[258] = struct.pack("<HHII", 258, 3, 3, bits_at)
    directory = struct.pack("<H", len(entries)) + b"".join(entries[tag] for tag in sorted(entries)) + bytes(4)
    return struct.pack("<2sHI", b"II", 42, bits_at + 6) + strip + struct.pack("<3H", 8, 8, 8) + directory


def make_folder(folder: Path) -> None:
    """Three classes of 32 noisy pictures of one colour each; in each class one JPEG, one WebP and one TIFF, too."""
    chance = np.random.default_rng(7)
    for name, colour in COLOURS.items():
        (folder / name).mkdir(parents=True)
        for k in range(32):
            pixels = np.clip(np.array(colour) + chance.integers(-40, 40, (40, 48, 3)), 0, 255).astype(np.uint8)
            (folder / name / f"{k:02d}.png").write_bytes(png_of(pixels))
        for kind, text in OTHERS.items():
            (folder / name / f"other.{kind}").write_bytes(base64.b64decode(text))
        (folder / name / "other.tif").write_bytes(tiff_of(pixels, 8))


def train(dataset: Any) -> list[float]:
    """The loss of each batch of two epochs over a folder or a list: softmax regression on the mean colour."""
    weights = np.zeros((3, len(COLOURS)))
    losses = []
    for _ in range(2):
        for images, labels in millrace.numpy.Loader(dataset, millrace.Recipe.train(SIZE), batch_size=16, shuffle=True, dtype="float32"):
            assert images.shape[1:] == (3, SIZE, SIZE)
            features = images.mean(axis=(2, 3), dtype=np.float64)
            logits = features @ weights
            odds = np.exp(logits - logits.max(axis=1, keepdims=True))
            odds /= odds.sum(axis=1, keepdims=True)
            chosen = np.arange(len(labels)), np.asarray(labels)
            losses.append(float(-np.log(odds[chosen]).mean()))
            odds[chosen] -= 1
            weights -= 0.5 * features.T @ odds / len(labels)
    return losses


def children(pid: int) -> list[int]:
    """The processes that it has started."""
    found = []
    for status in Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError):
            if f"\nPPid:\t{pid}\n" in status.read_text():
                found.append(int(status.parent.name))
    return found


def loaded_for(pattern: str) -> set[str]:
    """The names of such libraries of the host's, and of those that they need."""
    names = set()
    for path in Path("/usr/lib").rglob(pattern):
        told = subprocess.run(["ldd", str(path)], capture_output=True, text=True, check=False).stdout
        names |= {path.name} | {line.split()[0] for line in told.splitlines() if " => " in line}
    return names


# AVIF and HEIC are decoded where the host has these. What they need of what is in the wheel they get from there.
OPTIONAL = (loaded_for("libavif.so.*") | loaded_for("libde265.so.*")) - {path.name for path in (HERE / "lib").iterdir()}


def check_process(pid: int, name: str, of_the_host: set[str]) -> None:
    """It is the wheel's program, and has mapped libraries of the wheel's and those of the host's alone."""
    assert Path(os.readlink(f"/proc/{pid}/exe")) == HERE / "bin" / name
    libraries = {line.split(maxsplit=5)[5].strip() for line in Path(f"/proc/{pid}/maps").read_text().splitlines() if ".so" in line}
    foreign = {path for path in libraries if Path(path).parent != HERE / "lib"}
    assert len(foreign) < len(libraries), f"{name} has no library of the wheel's"
    nss = {path for path in foreign if Path(path).name.startswith("libnss_")}  # glibc's, by what /etc/nsswitch.conf names
    may_be = tuple(GLIBC | of_the_host | OPTIONAL)
    wrong = {path for path in foreign - nss if not Path(path).name.startswith(may_be)}
    assert not wrong, f"{name} has taken {', '.join(sorted(wrong))} from the system"
    for library in of_the_host:
        assert any(Path(path).name.startswith(library) for path in foreign), f"{name} has not taken {library} from the system"


def check_daemon(folder: Path, of_the_host: set[str]) -> None:
    """A program trains on a folder, and on a list of its files, which are as many and learnt as well."""
    files = [(str(path), list(COLOURS).index(path.parent.name)) for path in sorted(folder.rglob("*.*"))]
    with millrace.serve(folder) as daemon:
        losses, of_list = train(folder), train(files)
        check_process(daemon.pid, "millraced", of_the_host)
        with millrace.connect() as client:
            devices = [device.name for device in client.devices()]
    for each in (losses, of_list):
        assert len(each) == 14, each
        assert each[-1] < 0.7 * each[0], f"nothing was learnt: {each}"
    print(f"trained on a list: loss {of_list[0]:.3f}, then {of_list[-1]:.3f}")
    print(f"trained: loss {losses[0]:.3f}, then {losses[-1]:.3f}, after {len(losses)} batches; devices: {devices}")


def check_decoders(folder: Path, scratch: Path, of_the_host: set[str]) -> None:
    """Decoders in processes of their own."""
    (scratch / "settings.toml").write_text('[cpu]\nisolation = "process"\n')
    with millrace.serve(folder, arguments=["--config", str(scratch / "settings.toml")]) as daemon:
        train(folder)
        decoders = children(daemon.pid)
        assert decoders, "no decoder was started"
        for pid in decoders:
            check_process(pid, "millrace-decoder", of_the_host)
    print(f"decoders in {len(decoders)} processes of their own")


def check_refused_compression(folder: Path) -> None:
    """libtiff has no JBIG-KIT here, which is under the GPL: files of that compression are refused, and nothing dies of them."""
    third_party = next(Path(sys.prefix).glob("lib/python3*/site-packages/millrace_daemon-*.dist-info")) / "licenses" / "third_party"
    index = (third_party / "INDEX.tsv").read_text()
    assert "libtiff" in index
    assert "jbig" not in index, index
    jbig, deflate = (tiff_of(np.full((9, 9, 3), 200, np.uint8), compression) for compression in (34661, 8))
    with millrace.serve(folder) as daemon, millrace.connect() as client, client.session(millrace.Recipe.evaluate(8, 8), 2, 2) as session:
        with session.get(session.submit([jbig, deflate], on_error="zero")) as batch:
            assert "compression 34661" in str(batch.errors[0]), batch.errors
            assert (batch.images.numpy()[1] == 200).all()
        assert daemon.pid
    print("JBIG is refused, and not there")


def check_gpus(folder: Path, driver: str, of_the_host: set[str]) -> None:
    """GPUs, by whichever driver the loader finds."""
    os.environ["LD_LIBRARY_PATH"] = driver
    with millrace.serve(folder, cuda="yes", timeout=60) as daemon, millrace.connect() as client:
        train(folder)
        owners = children(daemon.pid)
        assert owners, "no process has a GPU"
        for pid in owners:
            check_process(pid, "millrace-cuda", of_the_host | {"libcuda.so"})
        print("GPUs:", [device.name for device in client.devices()])
    del os.environ["LD_LIBRARY_PATH"]


@contextlib.contextmanager
def started(*command: str) -> Iterator[subprocess.Popen[Any]]:
    """A process that does not outlive the block."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def check_commands(folder: Path, scratch: Path) -> None:
    """What pip has put beside the interpreter."""
    bin_folder = Path(sys.executable).parent
    ran = [
        str(bin_folder / "millrace"),
        "run",
        "--private",
        "--dataset",
        str(folder),
        "--recipe",
        "train",
        "--size",
        str(SIZE),
        "--batch",
        "8",
    ]
    answer = subprocess.run(ran, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    told = subprocess.run([bin_folder / "millraced", "--help"], capture_output=True, text=True, check=True).stdout
    assert millrace_daemon.settings() in "".join(told.split()), "the daemon names other settings than those that came with it"
    reader, writer = os.pipe()
    os.close(reader)
    nobody_reads = subprocess.run([bin_folder / "millrace", "--help"], stdout=writer, check=False)
    os.close(writer)
    assert nobody_reads.returncode == -signal.SIGPIPE, "what Python ignores is ignored by the program"
    with started(
        str(bin_folder / "millraced"), "--config", millrace_daemon.settings(), "--socket", str(scratch / "s"), "--root", str(folder)
    ) as process:
        assert process.stdout is not None
        assert "listening on" in process.stdout.readline()
        assert Path(os.readlink(f"/proc/{process.pid}/exe")) == HERE / "bin" / "millraced"
        with millrace.connect(str(scratch / "s")) as client:
            assert client.statistics().pid == process.pid
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    print("commands: millrace run --private, millraced")


def main() -> None:
    """Every check."""
    of_the_host = set(sys.argv[1:])
    packages = Path(sys.prefix).resolve() / "lib"
    for module in (millrace, millrace_daemon):
        assert packages in Path(str(module.__file__)).resolve().parents, f"{module.__file__} is not what was installed"
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "train"
        make_folder(folder)
        check_daemon(folder, of_the_host)
        check_decoders(folder, Path(scratch), of_the_host)
        check_refused_compression(folder)
        if os.environ.get("DRIVER"):
            check_gpus(folder, os.environ["DRIVER"], of_the_host)
        check_commands(folder, Path(scratch))


if __name__ == "__main__":
    main()
