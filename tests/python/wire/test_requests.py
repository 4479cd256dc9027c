"""Requests by the reply socket: images that are never copied into a message, and several threads at once."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator

import millrace
import numpy as np
import pytest
from millrace._core.session_wire import outgoing_queue
from millrace._memory.lease import Outgoing
from millrace._wire import messages as _messages
from millrace._wire import schema as _schema
from millrace._wire.reply_socket import Replies, Requests
from millrace._wire.uncopied_images import LARGE, parts_of
from millrace.samples import Sample

from pictures import png_of

SMALL, BIG = b"small", bytes(range(256)) * (LARGE // 256)


def plain(samples: list[Sample]) -> bytes:
    """What the message was before anything was spliced."""
    message = _schema.ClientMessage(submit={"batch_id": 7, "seed": 3})
    for given in samples:
        entry = message.submit.samples.add()
        if isinstance(given.source, str):
            entry.path = given.source.encode()
        else:
            entry.encoded = bytes(given.source)
        if given.id is not None:
            entry.id, entry.has_id = given.id, True
        if given.label is not None:
            entry.label = given.label
    return message.SerializeToString(deterministic=True)


@pytest.mark.parametrize(
    "samples",
    [
        [Sample(BIG)],
        [Sample(SMALL)],
        [Sample(BIG, id=5, label=-2), Sample(SMALL, id=6), Sample("/a/path"), Sample(BIG * 9, label=0)],
        [Sample(bytearray(BIG)), Sample(memoryview(BIG)[::2], id=1), Sample(memoryview(np.frombuffer(BIG, np.uint16)))],
        [Sample(memoryview(np.asfortranarray(np.arange(2 * LARGE, dtype=np.uint8).reshape(LARGE, 2))))],
    ],
)
def test_a_spliced_message_is_the_message(samples: list[Sample]) -> None:
    message = _schema.ClientMessage(submit={"batch_id": 7, "seed": 3})
    _, images = _messages.fill_samples(message.submit.samples, samples)

    parsed = _schema.ClientMessage.FromString(b"".join(parts_of(message, images)))

    assert parsed.SerializeToString(deterministic=True) == plain(samples)


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, Requests, Outgoing]]:
    daemon, client = socket.socketpair()
    replies, outgoing = Replies(client.detach()), outgoing_queue()
    yield daemon, Requests(replies, outgoing), outgoing
    daemon.close()
    replies.close()


def frames(daemon: socket.socket, count: int) -> list[bytes]:
    """The next frames' contents."""
    found = []
    for _ in range(count):
        (length,) = struct.unpack("<I", daemon.recv(4, socket.MSG_WAITALL))
        found.append(daemon.recv(length, socket.MSG_WAITALL))
    return found


def test_what_the_socket_has_no_room_for_follows_in_order(pair: tuple[socket.socket, Requests, Outgoing]) -> None:
    daemon, requests, outgoing = pair
    sent = [bytes([n]) * 150_000 for n in range(20)]
    for message in sent:
        requests.send([message[:10], message[10:]])
    assert not outgoing.empty()

    def write() -> None:
        while not outgoing.empty():
            requests.write(outgoing.get())
        requests.write(b"at the end")

    writer = threading.Thread(target=write)
    writer.start()

    assert frames(daemon, 21) == [*sent, b"at the end"]
    writer.join()
    requests.send([b"direct"])
    assert outgoing.empty()
    assert frames(daemon, 1) == [b"direct"]


def test_nothing_comes_into_the_midst_of_a_frame(pair: tuple[socket.socket, Requests, Outgoing]) -> None:
    daemon, requests, _ = pair
    large = bytes(3_000_000)
    requests.send([large])  # a part of it has left
    writer = threading.Thread(target=requests.write, args=(b"a release that the writer had in hand",))
    writer.start()

    assert frames(daemon, 2) == [large, b"a release that the writer had in hand"]
    writer.join()


def test_a_daemon_that_is_gone_is_no_error_here(pair: tuple[socket.socket, Requests, Outgoing]) -> None:
    daemon, requests, outgoing = pair
    requests.send([bytes(1_000_000)])
    daemon.close()

    requests.send([b"lost"])
    while not outgoing.empty():
        requests.write(outgoing.get())


def test_threads_that_submit_large_images_get_their_own(client: millrace.Client) -> None:
    def picture(level: int) -> bytes:
        noise = np.random.default_rng(level).integers(0, 20, (700, 700, 1), np.uint8)
        return png_of(np.zeros((700, 700, 3), np.uint8) + np.uint8(level) + noise)

    levels = (10, 80, 150, 220)
    pictures = {level: picture(level) for level in levels}
    assert min(map(len, pictures.values())) > 250_000
    wrong: list[str] = []
    with client.session(millrace.Recipe.evaluate(32, 32), batch=2, slots=4) as session:

        def work(level: int) -> None:
            for _ in range(15):
                with session.get(session.submit([pictures[level], pictures[level]])) as batch:
                    mean = float(np.asarray(batch.images).mean())
                    if abs(mean - level - 10) > 3:
                        wrong.append(f"{level}: {mean}")

        threads = [threading.Thread(target=work, args=(level,)) for level in levels]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert not wrong


@pytest.mark.parametrize("one", ["/a.jpg", b"bytes", Sample("/a.jpg")])
def test_one_sample_in_the_place_of_a_list_is_refused(client: millrace.Client, one: str | bytes | Sample) -> None:
    with (
        client.session(millrace.Recipe.evaluate(32, 32), batch=2, slots=1) as session,
        pytest.raises(millrace.errors.InvalidRequest, match="put it into a list"),
    ):
        session.submit(one)  # type: ignore[arg-type]
