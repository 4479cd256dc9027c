"""Lists and orders from a client that does not keep to what this package would send; and what they are charged with."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

import millrace
import pytest
from millrace._wire import schema as _schema

from pictures import COUNT, path_of
from processes import PATIENCE

DOT = millrace.Recipe(resize=millrace.ExactSize(millrace.Size(1, 1)))


def part(number: int, paths: bytes, labels: list[int], folder: str = "", last: bool = False) -> Any:
    message = _schema.ClientMessage()
    message.list_files.dataset_id, message.list_files.paths, message.list_files.last = number, paths, last
    message.list_files.folder = folder.encode()
    message.list_files.labels.extend(labels)
    return message


def given(stream: int, sizes: list[int], samples: list[int]) -> Any:
    message = _schema.ClientMessage()
    message.give_batches.stream_id = stream
    message.give_batches.sizes.extend(sizes)
    message.give_batches.samples.extend(samples)
    return message


def charged(client: millrace.Client) -> float:
    return client.statistics().metrics["millrace_requests_bytes"].value


def settles(client: millrace.Client, most: float) -> bool:
    """Whether what requests are charged with comes down to that in time."""
    until = time.monotonic() + PATIENCE
    while charged(client) > most:
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def test_a_part_that_is_refused_ends_its_list(client: millrace.Client, session: millrace.Session, folder: Path) -> None:
    before = charged(client)
    for number in range(1000, 1020):  # more than a session may have
        session._inbox.expect_dataset(number)
        session._send(part(number, b"ant/0000.png\0", [1], str(folder)))
        session._send(part(number, b"ant/0001.png\0", [1, 2]))
        take = partial(session._inbox.take_dataset, number)
        answer = session._wait(partial(take, 0), 20, "dataset")
        while isinstance(answer, int):
            answer = session._wait(partial(take, answer), 20, "dataset")
        assert isinstance(answer, millrace.InvalidRequest)
        assert "labels: must be as many" in str(answer)
        session._inbox.forget_dataset(number)
        session._inbox.expect_dataset(number)
        session._send(part(number, b"ant/0002.png\0", [3], last=True))
        assert "no list" in str(session._wait(partial(take, 0), 20, "dataset"))
        session._inbox.forget_dataset(number)
    assert len(session.dataset_of([path_of(folder, 0)])) == 1
    assert settles(client, before + 10_000)


def test_batches_for_an_order_of_the_daemons_end_that_epoch(session: millrace.Session, folder: Path) -> None:
    dataset = session.dataset_of([path_of(folder, number) for number in range(COUNT)] * 500)
    for _ in range(10):  # some while the order is worked out, some later
        epoch = dataset.epoch(shuffle=True)
        session._send(given(epoch._stream, [1], [0]))
        with pytest.raises(millrace.InvalidRequest, match="order is the daemon's"):
            sum(len(batch) for batch in epoch)


def test_a_given_order_is_charged_for_the_batches_that_it_may_have(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text('[memory]\nrequests = "64 MiB"\n')
    arguments = ["--config", str(tmp_path / "settings.toml")]
    with (
        millrace.serve(folder, lanes=1, arguments=arguments) as daemon,
        millrace.connect(daemon.address) as client,
        client.session(DOT, batch=65_536, slots=4) as session,
    ):
        one = session.dataset_of([path_of(folder, 0)])  # which may come as often as somebody likes
        with pytest.raises(millrace.ResourceExhausted, match=r"memory\.requests"):
            one.epoch(order=[[0]]).next()
        assert one.epoch(order=[[0] * 100], batch=100).next() is not None


def test_small_parts_are_charged_with_what_they_take(client: millrace.Client, session: millrace.Session, folder: Path) -> None:
    before = charged(client)
    session._inbox.expect_dataset(77)
    for number in range(2_000):
        session._send(part(77, b"a\0", [1], str(folder) if number == 0 else ""))
    told = 0
    while told < 2_000:
        told = session._wait(partial(session._inbox.take_dataset, 77, told), 20, "dataset")
    assert charged(client) - before > 2_000 * 120
    session._close_dataset(77)
    assert settles(client, before + 10_000)


@pytest.mark.parametrize("ended", ["made", "in the middle"])
def test_a_list_goes_with_its_session_whatever_is_kept_of_its_batches(
    daemon: millrace.PrivateDaemon, client: millrace.Client, own_size: millrace.Recipe, folder: Path, ended: str
) -> None:
    before = charged(client)
    session = client.session(own_size, batch=2, slots=2)
    dataset = session.dataset_of([path_of(folder, number % COUNT) for number in range(100_000)])
    batch = dataset.epoch(order=[[1]]).next()
    assert batch is not None
    kept = batch.images.numpy()[0:1]
    if ended == "in the middle":
        session._send(part(99, b"a\0" * 50_000, [], str(folder)))
    assert charged(client) > before + 1_000_000
    del batch, dataset
    session.close()
    assert settles(client, before + 100_000)
    assert kept.any()
