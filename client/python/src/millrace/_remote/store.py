"""The stores that URLs name, by fsspec and what is installed for their scheme."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from millrace._remote.ranges import AT_ONCE
from millrace._wire.messages import path_text
from millrace.errors import InvalidRequest, Unsupported

_PACKAGES = {
    "s3": "s3fs",
    "s3a": "s3fs",
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "az": "adlfs",
    "abfs": "adlfs",
    "hf": "huggingface_hub",
    "https": "aiohttp",
    "http": "aiohttp",
}
_S3 = ("s3", "s3a")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_SIGNING = re.compile(  # S3's and Google's, CloudFront's, Azure's
    "(x-amz-.*|x-goog-.*|awsaccesskeyid|googleaccessid|signature|expires|policy|key-pair-id|token"
    "|sig|se|sp|spr|sr|srt|ss|st|sv|si|sip|sdd|skoid|sktid|skt|ske|sks|skv)",
    re.IGNORECASE,
)
_VERSIONS = (
    *("ETag", "etag", "generation", "blob_id", "md5Hash", "content_md5", "Content-MD5"),
    *("LastModified", "last_modified", "updated", "Last-Modified"),
)


_lock = threading.Lock()
_own: dict[tuple[str, str], tuple[Store, Any]] = {}  # with the store, for its options to stay what the key says
_inherited: list[object] = []


def _after_fork_in_child() -> None:
    """The parent's file systems are kept unused: closing their connections would take them out of the parent's event loop as well."""
    global _lock, _own
    _lock = threading.Lock()
    _inherited.append(_own)
    _own = {}


os.register_at_fork(after_in_child=_after_fork_in_child)


def shown(url: str) -> str:
    """The URL for people, without what may be secret: a query with its signature, a user's name."""
    before, query, _ = url.partition("?")
    scheme, separator, rest = before.partition("://")
    host, slash, path = rest.partition("/")
    return path_text(f"{scheme}{separator}{host.rpartition('@')[2]}{slash}{path}{query and '?...'}")


def unsigned(url: str) -> str:
    """The URL without a user's name, and without what its query has for a signature: the rest may say which object it is."""
    before, _, query = url.partition("?")
    left = "&".join(one for one in query.split("&") if one and not _SIGNING.fullmatch(one.partition("=")[0]))
    scheme, separator, rest = before.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{separator}{host.rpartition('@')[2]}{slash}{path}{left and '?' + left}"


@dataclass(frozen=True)
class Store:
    """A store and how it is reached. It may be pickled, and used in a process that was forked.

    Attributes:
        scheme: of its URLs.
        options: fsspec's ``storage_options``: credentials, endpoint and the like.
    """

    scheme: str
    options: tuple[tuple[str, Any], ...] = field(default=(), repr=False)

    @staticmethod
    def of(url: str, options: Mapping[str, Any] | None = None) -> Store:
        """The store of a URL.

        Raises:
            Unsupported: Millrace reads no such URLs; or a package is missing, which it names.
        """
        found = _SCHEME.match(url)
        scheme = found[1].lower() if found else ""
        if scheme not in _PACKAGES:
            raise Unsupported(f"{shown(url)}: URLs are read of the schemes {', '.join(sorted(_PACKAGES))}; copy the files to this host")
        store = Store(scheme, tuple((options or {}).items()))
        store.files()
        return store

    @property
    def http(self) -> bool:
        """Whether its URLs are plain HTTP's."""
        return self.scheme in ("http", "https")

    @property
    def s3(self) -> bool:
        """Whether s3fs reads it."""
        return self.scheme in _S3

    def files(self) -> Any:
        """Its file system of fsspec's, of this process. What it lists is not kept, so that it tells what is there now."""
        package = _PACKAGES[self.scheme]
        try:
            import fsspec

            kind = fsspec.get_filesystem_class(self.scheme)
            if not getattr(kind, "async_impl", False):
                return fsspec.filesystem(self.scheme, use_listings_cache=False, **dict(self.options))  # one for each thread
            with _lock:
                key = (self.scheme, repr(self.options))
                if key not in _own:
                    _own[key] = (self, kind(use_listings_cache=False, skip_instance_cache=True, **self._options()))
                files = _own[key][1]
        except ImportError as why:
            raise Unsupported(f"{self.scheme}:// is read by fsspec and {package}: pip install fsspec {package}") from why
        except (KeyError, TypeError, ValueError) as why:
            raise InvalidRequest(f"{self.scheme}://: the store cannot be opened with these storage_options: {why}") from why
        if self.s3:
            files.retries = 1
        return files

    def _options(self) -> dict[str, Any]:
        """With other defaults.

        As many connections as there are reads; retries are those of ``ranges`` alone, which can be given up; no compression on the way, in
        which ranges would be others.
        """
        options = dict(self.options)
        if self.s3:
            own = {"max_pool_connections": 2 * AT_ONCE, "retries": {"mode": "standard", "total_max_attempts": 1}}
            options["config_kwargs"] = {**own, **options.get("config_kwargs", {})}
        elif self.http:
            options["headers"] = {"Accept-Encoding": "identity", **options.get("headers", {})}
        return options

    def path(self, url: str) -> str:
        """What fsspec calls it."""
        return str(self.files()._strip_protocol(url))

    def url(self, path: str) -> str:
        """The URL of a path of fsspec's."""
        return path if _SCHEME.match(path) else f"{self.scheme}://{path.lstrip('/')}"


def version_of(info: Mapping[str, Any]) -> str:
    """What tells an object from the one that replaces it: its ETag, or what the store has for it. Empty: the store says nothing."""
    for name in _VERSIONS:
        if info.get(name):
            return f"{name} {info[name]}"
    return ""
