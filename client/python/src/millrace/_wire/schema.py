"""The daemon's messages (proto/rpc/millrace/v1), as classes made at import time from the schema in the wheel.

They live in a descriptor pool of their own, so that another copy of the schema in the process, of whatever version, is no clash.
"""

from __future__ import annotations

import pkgutil
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory


def classes_of(schema: descriptor_pb2.FileDescriptorSet) -> dict[str, Any]:
    """The schema's messages by their names, as classes in a pool of their own."""
    pool = descriptor_pool.DescriptorPool()
    waiting = list(schema.file)
    known: set[str] = set()
    while waiting:  # a file goes in after those that it imports
        ready = [file for file in waiting if known.issuperset(file.dependency)]
        for file in ready:
            pool.AddSerializedFile(file.SerializeToString())
            known.add(file.name)
            waiting.remove(file)
        if not ready:
            raise ImportError(f"the wheel's schema lacks what {waiting[0].name} imports; reinstall millrace")
    names = [f"{file.package}.{message.name}" for file in schema.file for message in file.message_type]
    return {name.rpartition(".")[2]: message_factory.GetMessageClass(pool.FindMessageTypeByName(name)) for name in names}


def _in_the_wheel() -> descriptor_pb2.FileDescriptorSet:
    schema = pkgutil.get_data("millrace", "_proto/schema.binpb")  # importlib.resources takes 7 ms to import
    if schema is None:
        raise ImportError("the package has no schema, _proto/schema.binpb; reinstall millrace")
    return descriptor_pb2.FileDescriptorSet.FromString(schema)


_messages = classes_of(_in_the_wheel())

Box: Any = _messages["Box"]
ClientMessage: Any = _messages["ClientMessage"]
EpochPosition: Any = _messages["EpochPosition"]
ExplainReply: Any = _messages["ExplainReply"]
ExplainRequest: Any = _messages["ExplainRequest"]
GetStatisticsReply: Any = _messages["GetStatisticsReply"]
ListDevicesReply: Any = _messages["ListDevicesReply"]
OpenSessionReply: Any = _messages["OpenSessionReply"]
OpenSessionRequest: Any = _messages["OpenSessionRequest"]
Recipe: Any = _messages["Recipe"]
ServerMessage: Any = _messages["ServerMessage"]
StartEpoch: Any = _messages["StartEpoch"]
Submit: Any = _messages["Submit"]
Ticket: Any = _messages["Ticket"]
