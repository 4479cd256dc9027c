"""Sockets that are kept: each has one owner for as long as it is open, so that no interruption can leave two."""

from __future__ import annotations

import socket


class QuietSocket(socket.socket):
    """Closed without a ResourceWarning when the interpreter collects it before its owner."""

    def __del__(self) -> None:
        self.close()
