"""The reply socket's frames, as they come: in pieces, several at once, and what is none."""

from __future__ import annotations

import os
import socket
import struct
import threading
from collections.abc import Iterator

import pytest
from millrace._wire import schema as _schema
from millrace._wire.reply_socket import Replies
from millrace.errors import InternalError


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, Replies]]:
    daemon, client = socket.socketpair()
    replies = Replies(client.detach())
    yield daemon, replies
    daemon.close()
    replies.close()


def framed(batch: int, padding: int = 0) -> bytes:
    message = _schema.ServerMessage(failed={"batch_id": batch, "message": "x" * padding}).SerializeToString()
    return struct.pack("<I", len(message)) + message


def batches(replies: Replies) -> list[int]:
    return [message.failed.batch_id for message in replies]


def test_messages_come_in_order_and_early_wake_ups_are_none(pair: tuple[socket.socket, Replies]) -> None:
    daemon, replies = pair
    daemon.sendall(framed(1) + bytes(4) + framed(2) + bytes(4))
    daemon.shutdown(socket.SHUT_WR)

    assert batches(replies) == [1, 2]


def test_a_message_in_pieces_is_given_once_it_is_whole(pair: tuple[socket.socket, Replies]) -> None:
    daemon, replies = pair
    sent = framed(1, 300_000) + framed(2)

    def send() -> None:
        for byte in sent[:10]:
            daemon.send(bytes([byte]))
        daemon.sendall(sent[10:])
        daemon.shutdown(socket.SHUT_WR)

    sender = threading.Thread(target=send)
    sender.start()
    arrived = batches(replies)
    sender.join()

    assert arrived == [1, 2]


@pytest.mark.parametrize("garbage", [b"\xff\xff\xff\xff", b"\x03\0\0\0\xff\xff\xff"], ids=["length", "message"])
def test_what_is_no_message_is_an_error(pair: tuple[socket.socket, Replies], garbage: bytes) -> None:
    daemon, replies = pair
    daemon.sendall(framed(1) + garbage)
    reading = iter(replies)
    assert next(reading).failed.batch_id == 1

    with pytest.raises(InternalError, match="please report it"):
        next(reading)


def test_hanging_up_ends_a_reader_that_waits(pair: tuple[socket.socket, Replies]) -> None:
    _, replies = pair
    arrived: list[list[int]] = []
    reader = threading.Thread(target=lambda: arrived.append(batches(replies)))
    reader.start()

    replies.hang_up()
    reader.join(300)

    assert arrived == [[]]
    replies.close()
    replies.hang_up()  # nothing of anybody else's


def test_a_forked_child_leaves_the_parents_end_alone(pair: tuple[socket.socket, Replies]) -> None:
    daemon, replies = pair
    child = os.fork()
    if child == 0:
        replies.after_fork_in_child()
        os._exit(0)
    os.waitpid(child, 0)
    daemon.sendall(framed(7))
    daemon.shutdown(socket.SHUT_WR)

    assert batches(replies) == [7]
