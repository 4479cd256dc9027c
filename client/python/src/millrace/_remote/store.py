"""The stores that URLs name, by fsspec and what is installed for their scheme."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit

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
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_VERSIONS = ("ETag", "etag", "generation", "blob_id", "md5Hash", "content_md5", "Content-MD5", "LastModified", "last_modified", "updated")


def shown(url: str) -> str:
    """The URL for people, without what may be secret: a query with its signature, a user's name."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return path_text(urlunsplit((parts.scheme, host, parts.path, "...", "") if parts.query else (parts.scheme, host, parts.path, "", "")))


@dataclass(frozen=True)
class Store:
    """A store and how it is reached. It may be pickled, and used in a process that was forked.

    Attributes:
        scheme: of its URLs.
        options: fsspec's ``storage_options``: credentials, endpoint and the like.
    """

    scheme: str
    options: tuple[tuple[str, Any], ...] = ()

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

    def files(self) -> Any:
        """Its file system of fsspec's, of this process. What it lists is not kept, so that it tells what is there now."""
        package = _PACKAGES[self.scheme]
        try:
            import fsspec

            return fsspec.filesystem(self.scheme, use_listings_cache=False, **dict(self.options))
        except ImportError as why:
            raise Unsupported(f"{self.scheme}:// is read by fsspec and {package}: pip install fsspec {package}") from why
        except (TypeError, ValueError) as why:
            raise InvalidRequest(f"{self.scheme}://: the store cannot be opened with these storage_options: {why}") from why

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
