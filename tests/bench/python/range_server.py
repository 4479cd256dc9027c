"""A server of ranges that is no bottleneck: objects of one folder by HTTP as S3 gives them, each request some time later. For urls.py.

    range_server.py FOLDER SECONDS      prints its port; ends when its standard input does

HEAD and GET with a range, ETag; listings are empty. The kernel sends the bytes from the page cache.
"""

from __future__ import annotations

import asyncio
import re
import sys
import urllib.parse
from pathlib import Path

EMPTY = b'<?xml version="1.0"?><ListBucketResult><KeyCount>0</KeyCount><IsTruncated>false</IsTruncated></ListBucketResult>'
MISSING = b'<?xml version="1.0"?><Error><Code>NoSuchKey</Code><Message>no such key</Message></Error>'


class Server:
    def __init__(self, folder: Path, seconds: float) -> None:
        self._folder, self._seconds = folder, seconds

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                await asyncio.sleep(self._seconds)
                await self._answer(head, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _answer(self, head: str, writer: asyncio.StreamWriter) -> None:
        method, target = head.split(" ", 2)[:2]
        path, _, query = target.partition("?")
        file = self._folder / urllib.parse.unquote(path).rpartition("/")[2]
        if "list-type" in query or not file.is_file():
            body = EMPTY if "list-type" in query else MISSING
            status = "200 OK" if "list-type" in query else "404 Not Found"
            said = f"HTTP/1.1 {status}\r\nContent-Type: application/xml\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            writer.write(said + (b"" if method == "HEAD" else body))
            return
        found, size = re.search(r"(?im)^range: *bytes=(\d+)-(\d+)", head), file.stat().st_size
        begin, end = (int(found[1]), min(int(found[2]) + 1, size)) if found else (0, size)
        status = f"206 Partial Content\r\nContent-Range: bytes {begin}-{end - 1}/{size}" if found else "200 OK"
        kind = "Content-Type: application/x-tar\r\nLast-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\nAccept-Ranges: bytes"
        writer.write(f'HTTP/1.1 {status}\r\n{kind}\r\nETag: "{size:x}"\r\nContent-Length: {end - begin}\r\n\r\n'.encode())
        if method == "GET":
            with file.open("rb") as data:
                await asyncio.get_running_loop().sendfile(writer.transport, data, begin, end - begin)


async def main() -> None:
    server = await asyncio.start_server(Server(Path(sys.argv[1]), float(sys.argv[2])).serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
