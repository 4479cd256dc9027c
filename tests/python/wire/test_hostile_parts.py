"""Lists of parts that no client of this package would send: each is refused or ends as errors of samples, and its charge is given back."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import millrace
from millrace._wire import schema as _schema

from pictures import path_of
from test_hostile_lists import charged, part, settles

END = 1 << 63


def parts(number: int, paths: bytes, rows: list[tuple[int, int, int]], **more: Any) -> Any:
    message = _schema.ClientMessage()
    listing = message.list_parts
    listing.dataset_id, listing.paths, listing.last = number, paths, more.pop("last", False)
    listing.folder = more.pop("folder", "").encode()
    for name, values in more.items():
        getattr(listing, name).extend(values)
    for file, offset, length in rows:
        listing.files.append(file)
        listing.offsets.append(offset)
        listing.lengths.append(length)
    return message


def answer(session: millrace.Session, number: int, messages: list[Any]) -> Any:
    session._inbox.expect_dataset(number)
    for message in messages:
        session._send(message)
    take = partial(session._inbox.take_dataset, number)
    found = session._wait(partial(take, 0), 20, "dataset")
    while isinstance(found, int):
        found = session._wait(partial(take, found), 20, "dataset")
    session._inbox.forget_dataset(number)
    return found


def test_what_no_client_sends_is_refused(client: millrace.Client, session: millrace.Session, folder: Path) -> None:
    before, f, a = charged(client), str(folder), b"ant/0000.png\0"
    good = [(0, 0, 9)]
    cases = [
        [parts(1, a, [(1, 0, 9)], folder=f, last=True)],
        [parts(1, a, [(2**32 - 1, 0, 9)], folder=f, last=True)],
        [parts(1, a, [(0, END - 1, 1)], folder=f, last=True)],
        [parts(1, a, [(0, END, 0)], folder=f, last=True)],
        [parts(1, a, [(0, 2**64 - 1, 2)], folder=f, last=True)],
        [parts(1, a, [(0, 1, 2**64 - 1)], folder=f, last=True)],
        [parts(1, a, good, folder=f, labels=[1, 2], last=True)],
        [parts(1, a, good, folder=f, sizes=[1], last=True)],
        [parts(1, a, good, folder=f, sizes=[1, 2], modified_ns=[1, 2], last=True)],
        [parts(1, a[:-1], good, folder=f, last=True)],
        [parts(1, b"\0", good, folder=f, last=True)],
        [parts(1, b"../x\0", good, folder=f, last=True)],
        [parts(1, b"etc/passwd\0", good, last=True)],
        [parts(1, a, [], folder=f, last=True)],
        [parts(1, b"", [], folder=f, last=True)],
        [parts(1, b"", good, folder=f), parts(1, a, [], last=True)],  # its file comes later
        [parts(1, a, good, folder=f), part(1, a, [1], last=True)],
        [part(1, a, [1], folder=f), parts(1, a, good, last=True)],
        [parts(1, b"x" * 5000 + b"\0", good, folder=f, last=True)],
    ]
    for number, messages in enumerate(cases):
        for message in messages:
            (message.list_parts if message.HasField("list_parts") else message.list_files).dataset_id = 1000 + number
        found = answer(session, 1000 + number, messages)
        assert isinstance(found, millrace.Error), (number, found)
    assert len(session.dataset_of([path_of(folder, 0)])) == 1
    assert settles(client, before + 10_000)
