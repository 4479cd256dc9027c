"""What a session's daemon takes, as it said at open, and requests held against it before they are sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from millrace._wire.uncopied_images import parts_of
from millrace.errors import InvalidRequest


@dataclass(frozen=True)
class Limits:
    """What the daemon takes, most of it as its settings say.

    None: an older daemon, which does not tell and refuses by itself; but one message of it never takes more than 4 MiB.

    Attributes:
        message_bytes: one batch's request in all, but for what is in a ring.
        inline_bytes: encoded images in one batch's request together (``limits.inline_message``).
        samples: in one batch (``limits.samples``).
        ring_bytes: of ``Session.ring`` (``limits.ring``).
        extensions: of one dataset.
        extension_bytes: of each.
        files_named: samples whose files the daemon names in an answer.
    """

    message_bytes: int = 4 << 20
    inline_bytes: int | None = None
    samples: int | None = None
    ring_bytes: int | None = None
    extensions: int | None = None
    extension_bytes: int | None = None
    files_named: int | None = None

    @staticmethod
    def told(reply: Any) -> Limits:
        """Of an ``OpenSessionReply``."""
        return Limits(**{field.name: value for field, value in reply.limits.ListFields() if field.name in Limits.__dataclass_fields__})

    def checked_parts(self, message: Any, images: Mapping[int, memoryview]) -> list[bytes | memoryview]:
        """The bytes of a ``ClientMessage`` with a ``Submit``, and its large ``images`` (see uncopied_images.py), if it is not too large.

        Raises:
            InvalidRequest: says what the daemon takes, and how to do without more.
        """
        samples = len(message.submit.samples)
        if self.samples is not None and samples > self.samples:
            raise TooLarge(f"{samples} samples in one batch, the daemon takes {self.samples} (limits.samples in its settings)", "")
        inline = sum(map(len, images.values())) + sum(len(sample.encoded) for sample in message.submit.samples)
        if self.inline_bytes is not None and inline > self.inline_bytes:
            raise InvalidRequest(
                f"submit: {inline} bytes of encoded images in one batch, the daemon takes {self.inline_bytes} in a message "
                "(limits.inline_message in its settings); put them into a ring (Session.ring)"
            )
        parts = parts_of(message, images)
        if (size := sum(map(len, parts))) > self.message_bytes:
            told = f"the request has {size} bytes, the daemon takes messages of at most {self.message_bytes}"
            raise TooLarge(told, ", or open a dataset")
        return parts


class TooLarge(InvalidRequest):
    """A batch of which the daemon takes smaller ones only. ``excess`` says of what it has too much, without what to do."""

    def __init__(self, excess: str, otherwise: str) -> None:
        super().__init__(f"submit: {excess}; split the batch{otherwise}")
        self.excess = excess
