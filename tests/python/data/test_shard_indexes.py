"""Indexes of shards: where they are kept, which are believed, and that none is ever half there."""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import millrace
import pytest
from millrace._shards import index_files
from millrace._shards.index import NoIndex, index_of

from archives import write_tar

DALIS = "v1.2 2\ncls 512 1 0.cls jpg 1536 5 0.jpg\njpg 2560 5 1.jpg cls 3584 1 1.cls\n"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def shard(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    return write_tar(tmp_path / "data" / "t.1.tar", [("0.cls", b"3"), ("0.jpg", b"first"), ("1.jpg", b"other"), ("1.cls", b"4")])


def labels_of(shard: Path) -> list[int]:
    labels: list[int] = millrace.Shards(shard).labels.tolist()  # type: ignore[union-attr]
    return labels


def older(path: Path, by: int = 10) -> None:
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns - by * 10**9))


def test_it_is_dalis_and_one_line_more(shard: Path) -> None:
    assert labels_of(shard) == [3, 4]
    index = shard.with_name("t.1.idx")
    text, told = index.read_text().split("#millrace-1 ")
    assert text == DALIS
    assert f'"size":{shard.stat().st_size},"modified_ns":{shard.stat().st_mtime_ns},"left_out":' in told
    assert told.endswith('"left_out":{},"again":0,"numbers":{"cls":[3,4]}}\n')
    assert os.listdir(shard.parent) == ["t.1.idx", "t.1.tar"] or os.listdir(shard.parent) == ["t.1.tar", "t.1.idx"]
    assert index.stat().st_mode & 0o777 == 0o666 & ~_umask()
    before = index.stat().st_mtime_ns
    assert labels_of(shard) == [3, 4]
    assert index.stat().st_mtime_ns == before


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_one_of_dalis_is_read(shard: Path) -> None:
    index = shard.with_name("t.1.idx")
    index.write_text(DALIS.replace("cls 512 1 0.cls ", ""))  # nothing else would say so
    with pytest.raises(millrace.InvalidRequest, match="1 of 2 samples have no cls"):
        millrace.Shards(shard)
    index.write_text(DALIS)
    assert labels_of(shard) == [3, 4]
    assert index.read_text() == DALIS


@pytest.mark.parametrize("text", [
    "", "v1.2", "v1.2 2\n", "v1.1 2\ncls 512 1 jpg 1536 5\njpg 2560 5 cls 3584 1\n", "v1.2 9\n" + DALIS[7:], DALIS[:-1], DALIS[:-9],
    DALIS.replace("512", "513"), DALIS.replace("2560", "1e3"), DALIS.replace("2560", "99999999999999999999"), DALIS.replace(" 5 ", "  "),
    DALIS.replace("1536 5", "1536 6"),
    DALIS.replace("0.cls", "1.cls"), DALIS.replace("2560", "256000"), DALIS.replace("3584 1", "3584 90000"),
    DALIS + "#millrace-1 {}\n", DALIS + "#millrace-1 00000000 {}\n", DALIS + "#millrace-1 " + "[" * 5000, DALIS.replace("\n", "\r\n"),
    DALIS.replace("512", "-512"), DALIS.replace("512", "0"),
])  # fmt: skip
def test_one_that_does_not_fit_is_made_anew(shard: Path, text: str) -> None:
    index = shard.with_name("t.1.idx")
    index.write_text(text, encoding="latin-1")
    assert labels_of(shard) == [3, 4]
    assert index.read_text().startswith(DALIS + "#millrace-1 ")


def test_a_digit_that_flips_is_noticed(shard: Path) -> None:
    index = shard.with_name("t.1.idx")
    assert labels_of(shard) == [3, 4]
    whole = index.read_bytes()
    for digit in (whole.index(b"[3,4]") + 1, whole.index(b"#millrace-1 ") + 14, whole.index(b"cls") + 5):
        index.write_bytes(whole[:digit] + (b"7" if whole[digit : digit + 1] != b"7" else b"8") + whole[digit + 1 :])
        assert labels_of(shard) == [3, 4]
        assert index.read_bytes() == whole


def test_a_pipe_in_its_place_is_not_waited_for_and_stays(shard: Path, cache: Path) -> None:
    index = shard.with_name("t.1.idx")
    os.mkfifo(index)
    writer = os.open(index, os.O_RDWR)
    assert labels_of(shard) == [3, 4]
    os.close(writer)
    assert index.is_fifo()
    assert len(os.listdir(cache / "millrace" / "shards")) == 1


@pytest.mark.parametrize("data", [b"\0" * 500, b"\xff" * 64, b"0\t0\n1\t912\n"])
def test_another_programs_file_of_that_name_stays(shard: Path, cache: Path, data: bytes) -> None:
    index = shard.with_name("t.1.idx")
    index.write_bytes(data)
    assert labels_of(shard) == [3, 4]
    assert labels_of(shard) == [3, 4]
    assert index.read_bytes() == data
    assert len(os.listdir(cache / "millrace" / "shards")) == 1


def test_a_shard_of_the_same_size_and_an_older_time_is_another(shard: Path) -> None:
    assert labels_of(shard) == [3, 4]
    write_tar(shard, [("0.cls", b"5"), ("0.jpg", b"first"), ("1.jpg", b"other"), ("1.cls", b"6")])
    older(shard)  # as copies that keep their times
    assert labels_of(shard) == [5, 6]


@pytest.mark.parametrize("byte", range(1, 33))
def test_names_may_have_control_bytes(shard: Path, byte: int) -> None:
    write_tar(shard, [(f"0{byte:c}.cls", b"3"), (f"0{byte:c}.jpg", b"first"), ("1.jpg", b"other"), ("1.cls", b"4")])
    for _ in range(2):
        samples = millrace.Shards(shard)
        assert samples.labels.tolist() == [3, 4]  # type: ignore[union-attr]
    assert not shard.with_name("t.1.idx").exists()


def test_numbers_are_told_wherever_they_lie(shard: Path) -> None:
    write_tar(shard, [(f"{n}.{kind}", data) for n in range(2000) for kind, data in (("jpg", bytes(n * 7 % 3000)), ("cls", b"%d" % n))])
    (found,) = index_files.indexed([str(shard)], lambda _: None)
    assert found.members.told is not None
    assert found.members.told.numbers["cls"].tolist() == list(range(2000))


@pytest.mark.filterwarnings("ignore::millrace.ShardWarning")
def test_the_first_label_counts_whatever_its_case(shard: Path) -> None:
    members = [("0.cls", b"3"), ("0.CLS", b"8"), ("0.jpg", b"first"), ("1.jpg", b"other"), ("1.CLS", b"4"), ("1.cls", b"9")]
    write_tar(shard, members)
    assert labels_of(shard) == [3, 4]
    assert labels_of(shard) == [3, 4]


def test_one_that_is_older_is_made_anew(shard: Path) -> None:
    index = shard.with_name("t.1.idx")
    index.write_text(DALIS)
    older(index)
    assert labels_of(shard) == [3, 4]
    assert index.read_text() != DALIS
    write_tar(shard, [("0.cls", b"5"), ("0.jpg", b"first"), ("1.jpg", b"other"), ("1.cls", b"6")])  # as large
    os.utime(shard, ns=(0, index.stat().st_mtime_ns + 1))
    assert labels_of(shard) == [5, 6]


def test_damage_of_a_single_bit_is_noticed(shard: Path) -> None:
    assert labels_of(shard) == [3, 4]
    text = shard.with_name("t.1.idx").read_bytes()
    dice = random.Random(3)
    for _ in range(300):
        changed = bytearray(text)
        changed[dice.randrange(len(text))] ^= 1 << dice.randrange(8)
        with contextlib.suppress(NoIndex):
            found = index_of(bytes(changed))
            # What the checksum does not cover: the last line. Its size or time differ then, or what it says of no member.
            assert bytes(changed).startswith(DALIS.encode()) or found.told is None


def test_names_with_blanks_are_kept_in_the_cache(tmp_path: Path, cache: Path) -> None:
    names = ["a b.jpg", "tab\t.jpg", "per%cent.jpg", "plain.jpg", "c d.x y", "e 1 2 f.jpg"]
    path = write_tar(tmp_path / "t.tar", [(name, name.encode()) for name in names])

    for _ in range(2):
        shards = millrace.Shards(path, image=["jpg", "x y"])
        assert [name.partition("] ")[2] for name in shards.paths] == ["a b.jpg", r"tab\t.jpg", *names[2:]]
        (index,) = (cache / "millrace" / "shards").iterdir()
        assert index.read_text().startswith("millrace-1 6\njpg 512 7 a%20b.jpg\njpg 1536 8 tab%09.jpg\njpg 2560 12 per%25cent.jpg\n")
        assert not path.with_name("t.idx").exists()


def test_shards_that_cannot_be_written_beside(shard: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shard.with_name("t.1.idx").mkdir()  # nothing can be renamed to it, by any user
    for _ in range(2):
        assert labels_of(shard) == [3, 4]
        (index,) = (cache / "millrace" / "shards").iterdir()
        assert index.read_text().startswith(DALIS)
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    assert labels_of(shard) == [3, 4]
    assert sorted(os.listdir(shard.parent)) == ["t.1.idx", "t.1.tar"]


def test_what_a_killed_process_left_is_removed(shard: Path, cache: Path) -> None:
    folder = Path(index_files.in_cache(str(shard))).parent
    folder.mkdir(parents=True)
    index, kept = Path(index_files.beside(str(shard))).name, Path(index_files.in_cache(str(shard))).name
    left = [shard.parent / f".{index}.12.0123abcd.tmp", folder / f".{kept}.12.0123abcd.tmp"]
    others = [shard.parent / f".{index}.13.0123abcd.tmp", shard.parent / f".x{index}.12.0123abcd.tmp", shard.parent / f".{index}.tmp"]
    for path in left + others:
        path.write_bytes(b"half")
        if path != others[0]:  # which another process is writing now
            older(path, 3600)
    labels_of(shard)
    assert [path.exists() for path in left + others] == [False, False, True, True, True]


def test_another_process_that_makes_it_is_waited_for(shard: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has the lock makes it; this process reads what came of that."""
    with open(shard, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        slept = []

        def finished(seconds: float) -> None:
            slept.append(seconds)
            if len(slept) == 3:
                shard.with_name("t.1.idx").write_text(DALIS)
                fcntl.flock(file, fcntl.LOCK_UN)

        monkeypatch.setattr(index_files.time, "sleep", finished)
        assert labels_of(shard) == [3, 4]
    assert len(slept) == 3
    assert shard.with_name("t.1.idx").read_text() == DALIS  # it was not made a second time


def test_one_that_never_ends_is_not_waited_for(shard: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_files, "_PATIENCE", 0.0)
    with open(shard, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert labels_of(shard) == [3, 4]


KILLED = """
import os, random, signal, sys, time
import millrace
millrace.Shards  # imported before there are children
from millrace._shards.index import index_of
paths, dice, whole, took = sys.argv[1:], random.Random(11), 0, 0.0
for number in range(15):
    making = []
    for _ in range(2):
        making.append(os.fork())
        if not making[-1]:
            millrace.Shards(paths)
            os._exit(0)
    began = time.monotonic()
    if number:
        time.sleep(dice.random() * 1.2 * took)  # somewhere within, or after
        for one in making:
            os.kill(one, signal.SIGKILL)
    for one in making:
        os.waitpid(one, 0)
    took = took or time.monotonic() - began
    for path in paths:
        index = path[:-4] + ".idx"
        if os.path.exists(index):
            with open(index, "rb") as file:
                assert len(index_of(file.read())) == 2000
            os.unlink(index)
            whole += 1
print(whole, millrace.Shards(paths).labels.sum())
"""


def test_killed_at_any_moment_none_is_half(tmp_path: Path) -> None:
    members = [(f"{n:05d}.{name}", data) for n in range(2000) for name, data in (("jpg", b"x" * 600), ("cls", b"%d" % n))]
    paths = [write_tar(tmp_path / f"t-{number}.tar", members) for number in range(3)]
    done = subprocess.run([sys.executable, "-c", KILLED, *map(str, paths)], stdout=subprocess.PIPE, text=True, check=True)
    whole, labels = done.stdout.split()
    assert int(whole) >= 3  # of those that were not killed
    assert int(labels) == 3 * sum(range(2000))


KILLED_BEFORE_IT_IS_NAMED = """
import os, signal, sys
import millrace

def killed(file):
    print(os.fstat(file).st_size, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

os.fsync = killed
millrace.Shards(sys.argv[1])
"""


def test_a_kill_leaves_nothing_beside_a_shard(shard: Path) -> None:
    try:
        os.close(os.open(shard.parent, os.O_WRONLY | os.O_TMPFILE))
    except OSError:
        pytest.skip("the file system of temporary files has no files without a name: what a kill leaves beside a shard is not looked for")
    before = sorted(shard.parent.iterdir())
    done = subprocess.run([sys.executable, "-c", KILLED_BEFORE_IT_IS_NAMED, str(shard)], stdout=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, int(done.stdout) > 0) == (-signal.SIGKILL, True)
    assert sorted(shard.parent.iterdir()) == before
    assert labels_of(shard) == [3, 4]
    assert sorted(shard.parent.iterdir()) == sorted([*before, shard.with_suffix(".idx")])
