"""What the session's daemon knows of what this package can say.

A daemon that knows all of it, the usual case, costs nothing: that is found out once, at open. Of an older one every message is looked
through before it is sent, so that what it lacks is named instead of left out.
"""

from __future__ import annotations

from typing import Any

from google.protobuf.message import Message

from millrace._wire import schema as _schema
from millrace.errors import FailedPrecondition, Unsupported

_Names = dict[str, frozenset[int]]  # by message or enum: the numbers of its fields or values


class DaemonKnowledge:
    """Made of the daemon's ``OpenSessionReply``. Immutable."""

    def __init__(self, reply: Any) -> None:
        """Reads what the daemon knows.

        Raises:
            FailedPrecondition: it is so old that it does not say.
        """
        self._daemon = f"millraced {reply.daemon_version}"
        if not reply.HasField("vocabulary"):
            raise FailedPrecondition(
                f"session: {self._daemon} does not say what it knows, so it might leave out what it is asked for; "
                "install the Python package and millraced of the same version"
            )
        self._fields: _Names = {entry.message: frozenset(entry.numbers) for entry in reply.vocabulary.messages}
        self._values: _Names = {entry.enumeration: frozenset(entry.numbers) for entry in reply.vocabulary.enums}
        fields, values = _own()
        self._whole = _covers(self._fields, fields) and _covers(self._values, values)

    def check(self, message: Any) -> None:
        """Looks for what is set in a message and unknown to the daemon.

        Raises:
            Unsupported: names it: ``millraced 0.1.0 does not know Recipe.patches``.
        """
        missing = None if self._whole else self._missing(message)
        if missing is not None:
            raise Unsupported(f"{self._daemon} does not know {missing}; update millraced, or do without it")

    def knows(self, message: Any) -> bool:
        """Whether all that is set in a message is known to the daemon."""
        return self._whole or self._missing(message) is None

    def _missing(self, message: Any) -> str | None:
        known = self._fields.get(_name(message.DESCRIPTOR), frozenset())
        for field, value in message.ListFields():
            spelled = f"{_name(message.DESCRIPTOR)}.{field.name}"
            if field.number not in known:
                return spelled
            several = (value,) if isinstance(value, (int, Message)) else value  # singular or repeated
            if field.message_type is not None:
                for inner in several:
                    if (missing := self._missing(inner)) is not None:
                        return missing
            elif field.enum_type is not None:
                values = self._values.get(_name(field.enum_type), frozenset())
                for number in several:
                    if number not in values:
                        named = field.enum_type.values_by_number.get(number)
                        return f"the value {named.name if named else number} of {spelled}"
        return None


def _name(descriptor: Any) -> str:
    """Without the package, which all of them share."""
    full: str = descriptor.full_name
    return full.removeprefix(f"{descriptor.file.package}.")


def _covers(theirs: _Names, mine: _Names) -> bool:
    return all(numbers <= theirs.get(name, frozenset()) for name, numbers in mine.items())


def _own() -> tuple[_Names, _Names]:
    """All that this package's requests can hold: fields of messages, values of enums."""
    fields: _Names = {}
    values: _Names = {}
    waiting = [_schema.OpenSessionRequest.DESCRIPTOR, _schema.ClientMessage.DESCRIPTOR]
    while waiting:
        message = waiting.pop()
        if _name(message) in fields:
            continue
        fields[_name(message)] = frozenset(message.fields_by_number)
        waiting += [field.message_type for field in message.fields if field.message_type is not None]
        values.update({_name(field.enum_type): frozenset(field.enum_type.values_by_number) for field in message.fields if field.enum_type})
    return fields, values
