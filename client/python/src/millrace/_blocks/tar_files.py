"""Tar shards, compressed or not, on this host or behind a URL, as ``CompressedShards`` reads them from the beginning to the end."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import threading
from typing import IO, Any, NamedTuple

from millrace._remote.objects import RemoteObject
from millrace._wire.messages import path_text
from millrace.errors import NotFound, PermissionDenied, Unsupported


class LocalTar(NamedTuple):
    """A file of this host's.

    Attributes:
        name: its path.
        stamp: its size and time when it was found.
    """

    name: str
    stamp: tuple[int, int]

    @staticmethod
    def of(path: str) -> LocalTar:
        """As it is now. Raises NotFound, PermissionDenied."""
        try:
            with open(path, "rb"):
                return LocalTar(path, _stamp(path))
        except FileNotFoundError:
            raise NotFound(f"shards: {path_text(path)} is not there") from None
        except PermissionError:
            raise PermissionDenied(f"shards: {path_text(path)} cannot be read by this user") from None

    @property
    def kept_as(self) -> str:
        """What its counts are kept by."""
        return os.path.abspath(self.name)

    def content(self, stop: threading.Event | None = None) -> str | io.BytesIO:
        """Its path; raises ValueError: it has changed."""
        if _stamp(self.name) != self.stamp:
            raise ValueError("the file has changed since its samples were counted: it has another size or time")
        return self.name


class RemoteTar(NamedTuple):
    """An object of a store."""

    object: RemoteObject

    @property
    def name(self) -> str:
        """Its URL, for people."""
        return self.object.name

    @property
    def stamp(self) -> tuple[int, str]:
        """Its size and version."""
        return self.object.size, self.object.version

    @property
    def kept_as(self) -> str:
        """What its counts are kept by; empty: the store says no version, so that they are not."""
        return f"{self.object.url} {self.object.version}" if self.object.version else ""

    def content(self, stop: threading.Event | None = None) -> str | io.BytesIO:
        """All of it; raises OSError: it cannot be read, and ValueError: it has been replaced."""
        return io.BytesIO(self.object.read([(0, self.object.size)], stop)[0])


def decompressed(content: str | io.BytesIO, name: str) -> IO[bytes]:
    """A stream that raises, as tarfile does not, where the content ends too early.

    Args:
        content: of a ``LocalTar`` or a ``RemoteTar``.
        name: its name.
    """
    if isinstance(content, str):
        with open(content, "rb") as opened:
            begin = opened.read(6)
    else:
        begin = content.getbuffer()[:6].tobytes()
    for magic, module in ((b"\x1f\x8b", gzip), (b"BZh", bz2), (b"\xfd7zXZ\0", lzma)):
        if begin.startswith(magic):
            return module.open(content, "rb")  # type: ignore[no-any-return]
    if not begin.startswith(b"\x28\xb5\x2f\xfd"):
        return open(content, "rb") if isinstance(content, str) else content
    try:
        import pyarrow
    except ImportError as why:
        raise Unsupported(f"{name} is compressed by zstd and read by pyarrow: pip install pyarrow") from why
    stream: Any = pyarrow.input_stream(content, compression="zstd")
    return stream  # type: ignore[no-any-return]


def _stamp(path: str) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns
