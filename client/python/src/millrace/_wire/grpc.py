"""gRPC, as the rest of the package imports it: told to leave fork() alone. Imported by what connects, not by `import millrace`.

Left to itself it stops its threads before a fork and starts new ones afterwards, in the child too, on sockets that are the parent's; that
takes milliseconds in every worker of a DataLoader and can hang either process. This package needs none of it: a child never touches what
it has inherited (_process/fork.py). The one setting for that is read when gRPC is loaded, and is set here only for as long as that takes.
A program that has set GRPC_ENABLE_FORK_SUPPORT, or has loaded gRPC before, keeps what it has.
"""

from __future__ import annotations

import os
import sys

_SETTING = "GRPC_ENABLE_FORK_SUPPORT"

if _SETTING in os.environ or "grpc" in sys.modules:
    import grpc
else:
    os.environ[_SETTING] = "0"
    try:
        import grpc
    finally:
        del os.environ[_SETTING]

__all__ = ["grpc"]
