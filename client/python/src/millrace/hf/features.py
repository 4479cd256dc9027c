"""What a processor returns."""

from __future__ import annotations

from typing import Any


class Features(dict[str, Any]):
    """The arrays by name, as transformers' ``BatchFeature``: ``features["pixel_values"]`` and ``features.pixel_values``.

    Arrays that show shared memory may be written to, which changes nothing but them. They keep their slot in the daemon as long as
    they, or views of them, live.
    """

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"no {name!r} among the features: {', '.join(self)}") from None
