"""An S3 server that tests start (moto's), and a proxy before it that makes what goes wrong between a client and a store.

::

    s3fs --> StoreProxy: delays, refuses, cuts, hangs, counts --> ObjectStore: moto, a process of its own
"""

from __future__ import annotations

import http.client
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from urllib.parse import quote, urlsplit

import pytest

from processes import Script
from store_proxy import StoreProxy, options_of

_SERVER = """
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()  # until the test's process has ended, however it does
"""
_SIGNATURE = "AWS4-HMAC-SHA256 Credential=a/20300101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"


class ObjectStore:
    """moto's server, empty at first. A context manager.

    Attributes:
        url: its address, ``http://127.0.0.1:...``; objects are at ``url/bucket/key`` by plain HTTP, too.
        options: ``storage_options`` for it, without the proxy.
    """

    def __init__(self) -> None:
        command = [sys.executable, "-c", _SERVER]
        self._process = Script(
            command, text=True, start_new_session=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert self._process.stdout is not None
        self.url = f"http://127.0.0.1:{int(self._process.stdout.readline())}"
        self.options = options_of(self.url)
        self._buckets: set[str] = set()

    def __enter__(self) -> ObjectStore:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.__exit__(None, None, None)

    def put(self, path: str, data: bytes) -> str:
        """Writes an object, whole at once. Its bucket is made where it is not there.

        Args:
            path: ``"bucket/key"``.
            data: its bytes.

        Returns:
            Its URL, ``s3://bucket/key``.
        """
        bucket = path.partition("/")[0]
        if bucket not in self._buckets:
            self._ask("PUT", bucket)
            self._buckets.add(bucket)
        self._ask("PUT", path, data)
        return f"s3://{path}"

    def remove(self, path: str) -> None:
        self._ask("DELETE", path)

    def _ask(self, method: str, path: str, data: bytes = b"") -> None:
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=60)
        try:
            connection.request(method, "/" + quote(path), data, {"Authorization": _SIGNATURE, "x-amz-acl": "public-read"})
            answer = connection.getresponse()
            said = answer.read()
            assert answer.status < 300, (method, path, answer.status, said)
        finally:
            connection.close()


def needs_a_store() -> None:
    """Skips the test where moto or s3fs is not installed."""
    for name in ("moto", "s3fs"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed: stores of objects are not tried")


@pytest.fixture(scope="session")
def object_store() -> Iterator[ObjectStore]:
    """One server for all tests; each takes buckets of its own."""
    needs_a_store()
    with ObjectStore() as store:
        yield store


@pytest.fixture(scope="session")
def one_proxy(object_store: ObjectStore) -> Iterator[StoreProxy]:
    with StoreProxy(object_store.url) as proxy:
        yield proxy


@pytest.fixture
def store_proxy(one_proxy: StoreProxy) -> Iterator[StoreProxy]:
    """The proxy before ``object_store``; of each test's faults and counts the next one sees nothing."""
    one_proxy.clear()
    yield one_proxy
    one_proxy.clear()
