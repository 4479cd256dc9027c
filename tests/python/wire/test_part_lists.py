"""Lists of parts of files as messages."""

from __future__ import annotations

import millrace
import numpy as np
import pytest
from millrace._core.dataset_requests import _list_messages
from millrace._data.file_parts import WHOLE, FileParts
from millrace._wire.part_list import parts_in_messages


def made(files: list[str], rows: list[tuple[int, int, int]], **more: object) -> FileParts:
    which, offsets, lengths = zip(*rows, strict=True)
    return FileParts(
        files,
        np.array(which, np.uint32),
        np.array(offsets, np.uint64),
        np.array(lengths, np.uint64),
        **more,  # type: ignore[arg-type]
    )


def read_back(messages: list[object], folder: bytes) -> list[tuple[bytes, int, int]]:
    """Samples as the daemon takes them."""
    files: list[bytes] = []
    samples = []
    for message in messages:
        listing = message.list_parts  # type: ignore[attr-defined]
        files += [folder + b"/" + path for path in listing.paths.split(b"\0")[:-1]]
        assert all(number < len(files) for number in listing.files)
        samples += [(files[n], o, k) for n, o, k in zip(listing.files, listing.offsets, listing.lengths, strict=True)]
    return samples


def test_files_come_once_each_before_their_first_sample() -> None:
    parts = made(["/d/a.tar", "/d/unused", "/d/b.tar"], [(2, 5, 6), (0, 1, 2), (2, 7, 8), (0, 0, WHOLE)])
    (only,) = parts_in_messages(parts, np.array([4, 3, 2, 1]), b"/d", 1 << 20)
    assert only.paths == b"b.tar\0a.tar\0"
    assert (only.files, only.offsets, only.lengths) == ([0, 1, 0, 1], [5, 1, 7, 0], [6, 2, 8, WHOLE])
    assert only.labels == [4, 3, 2, 1]
    assert only.sizes == only.modified_ns == []


def test_long_lists_come_in_several_messages_that_fit() -> None:
    files = [f"/data/{'x' * 200}/{number:05}" for number in range(3_000)]
    rng = np.random.default_rng(5)
    rows = [(int(rng.integers(3_000)), int(rng.integers(1 << 40)), 7) for _ in range(50_000)]
    times = np.arange(3_000)
    parts = made(files, rows, sizes=times.astype(np.uint64), modified_ns=-times)
    messages = [message for message, _ in _list_messages(1, b"/data", parts, np.arange(50_000), 1 << 17)]
    assert len(messages) > 3
    assert all(len(message.list_parts.paths) <= 1 << 17 for message in messages)
    assert [message.list_parts.last for message in messages] == [False] * (len(messages) - 1) + [True]
    assert [message.list_parts.folder for message in messages[:2]] == [b"/data", b""]
    assert read_back(messages, b"/data") == [(files[file].encode(), offset, length) for file, offset, length in rows]
    sent = [(size, time) for m in messages for size, time in zip(m.list_parts.sizes, m.list_parts.modified_ns, strict=True)]
    assert all(size == -time for size, time in sent)
    assert sorted(size for size, _ in sent) == sorted({row[0] for row in rows})


@pytest.mark.parametrize(
    ("part", "told"),
    [
        (millrace.Part("/d/x", -1, 5), "at least 0"),
        (millrace.Part("/d/x", 1, -5), "at least 0"),
        (millrace.Part("/d/x", 1 << 62, 1 << 62), "below 2"),
        (millrace.Part("/d/x", 1.5, 5), "whole numbers"),  # type: ignore[arg-type]
        (millrace.Part("/d/x", 0, None), "whole numbers"),  # type: ignore[arg-type]
        (millrace.Part("s3://bucket/x", 0, 5), "URL"),
        (millrace.Part(["/d/x"], 0, 5), "list"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_part_is_refused_by_its_number(part: millrace.Part, told: str) -> None:
    with pytest.raises(millrace.InvalidRequest, match=told) as why:
        millrace.Samples(["/d/good", part], [0, 1])
    assert "sample" in str(why.value)


def test_parts_and_files_are_one_list() -> None:
    given = [millrace.Part("/d/a.tar", 512, 9), "/d/b.jpg", millrace.Part("/d/a.tar", 0, 0)]
    samples = millrace.Samples.of([(source, label) for label, source in enumerate(given)])
    assert list(samples.paths) == ["/d/a.tar[512+9]", "/d/b.jpg", "/d/a.tar[0+0]"]
    assert [samples.part_of(number) for number in range(3)] == [given[0], None, given[2]]
    some = samples.subset([2, 1])
    assert (list(some.paths), [label for _, label in some]) == (["/d/a.tar[0+0]", "/d/b.jpg"], [2, 1])
    both = FileParts.joined([samples.paths, ["/d/c.jpg"]])
    assert list(both) == [*samples.paths, "/d/c.jpg"]


def test_members_are_in_names() -> None:
    parts = made(["/d/a.tar"], [(0, 512, 9), (0, 2048, 3)], members=["x/1.jpg", ""])
    assert list(parts) == ["/d/a.tar[512+9] x/1.jpg", "/d/a.tar[2048+3]"]
    assert list(parts.taken(np.array([1, 0]))) == ["/d/a.tar[2048+3]", "/d/a.tar[512+9] x/1.jpg"]


def test_lists_with_and_without_times_keep_the_times() -> None:
    timed = made(["/d/a.tar", "/d/b.tar"], [(0, 1, 2), (1, 3, 4)], sizes=np.array([70, 80], np.uint64), modified_ns=np.array([7, 8]))
    joined = FileParts.joined([["/d/x.jpg"], timed, ["/d/y.jpg", "/d/z.jpg"], timed.taken(np.array([1, 0, 1]))])
    for order in (np.arange(len(joined)), np.arange(len(joined))[::-1], np.array([0, 1, 0, 3, 2, 2, 5, 4, 1])):
        parts = joined.taken(order)
        messages = list(parts_in_messages(parts, None, b"/d", 1 << 20))
        paths, stamps, rows = [], {}, []
        for message in messages:
            new = message.paths.split(b"\0")[:-1]
            assert len(message.sizes) == len(message.modified_ns) in (0, len(new))
            stamps.update({len(paths) + n: stamp for n, stamp in enumerate(zip(message.sizes, message.modified_ns, strict=True))})
            paths += new
            assert message.samples
            rows += list(zip(message.files, message.offsets, message.lengths, strict=True))
        assert [(b"/d/" + paths[file], offset, length) for file, offset, length in rows] == [
            (parts.files[which].encode(), offset, length)
            for which, offset, length in zip(parts.which.tolist(), parts.offsets.tolist(), parts.lengths.tolist(), strict=True)
        ]
        assert {paths[file] for file in stamps} == {path for path in paths if path.endswith(b".tar")}
        assert all(stamp == {b"a.tar": (70, 7), b"b.tar": (80, 8)}[paths[file]] for file, stamp in stamps.items())
