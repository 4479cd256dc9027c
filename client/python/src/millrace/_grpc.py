"""gRPC, as the rest of the package imports it: told to say on stderr what is an error, and no more.

A process that is connected has threads in gRPC, and so gRPC would write a line for each fork(), of every worker of a DataLoader: that it
leaves out handlers which this package does without (see _fork.py). The one setting for that is read when gRPC is loaded, and is set here
only for as long as that takes. Whoever has set GRPC_VERBOSITY, or has loaded gRPC before, keeps what they have.
"""

from __future__ import annotations

import os
import sys

_SETTING = "GRPC_VERBOSITY"

if _SETTING in os.environ or "grpc" in sys.modules:
    import grpc
else:
    os.environ[_SETTING] = "ERROR"
    try:
        import grpc
    finally:
        del os.environ[_SETTING]

__all__ = ["grpc"]
