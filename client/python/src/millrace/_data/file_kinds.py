"""Which class takes files that are no pictures, as their names say."""

from __future__ import annotations

from millrace._wire.messages import is_url

_KINDS = (
    ((".tar",), "Shards", "RemoteShards"),
    ((".tar.gz", ".tgz", ".tar.zst", ".tar.xz", ".tar.bz2"), "CompressedShards", "CompressedShards"),
    ((".parquet",), "Parquet", "Parquet"),
    ((".csv", ".tsv", ".jsonl", ".ndjson"), "", "RemoteFiles"),  # those of this host are taken by their paths
)


def container_of(name: str) -> str | None:
    """``"Shards"``, ``"CompressedShards"`` or ``"Parquet"``: the class for a file of this name on this host; None: its name says none."""
    return next((here for endings, here, _ in _KINDS if here and name.lower().endswith(endings)), None)


def class_for(name: str, otherwise: str = "") -> str:
    """``millrace.Parquet("train.parquet")``: what stands for files of this name, on this host or behind a URL.

    Args:
        name: a path or a URL.
        otherwise: the class, where the name does not say; empty: then the answer is empty, too.
    """
    remote = is_url(name)
    plain = (name.partition("?")[0] if remote else name).lower()
    found = next((behind_url if remote else here for endings, here, behind_url in _KINDS if plain.endswith(endings)), "") or otherwise
    return f"millrace.{found}({name!r})" if found else ""
