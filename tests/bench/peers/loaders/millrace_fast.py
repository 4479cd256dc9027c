"""Millrace in fidelity ``fast``."""

from __future__ import annotations

from loaders import millrace


class Loader(millrace.Loader):
    fidelity = "fast"
    tuned = "as millrace, fidelity fast"
