"""What goes wrong in a call, in the words of the processor: its arguments, and which of the caller's images it was."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from millrace._wire.address import NAMED_BY
from millrace._wire.calls import NEXT_SESSION, OPENING
from millrace._wire.limits import TooLarge
from millrace.errors import (
    Cancelled,
    DaemonUnavailable,
    DeadlineExceeded,
    Error,
    Forked,
    InvalidRequest,
    ResourceExhausted,
    SampleError,
    SampleFailed,
)

_MOST_NAMED = 4


def in_its_words(why: Error, names: Sequence[str], image_of: Callable[[int], int], slots: int, timeout: float) -> Error:
    """The exception for the caller of a processor: the same class, the same cause, and what can be done there.

    Args:
        why: what the session raised.
        names: of the call's images.
        image_of: which of them a sample was made of.
        slots: of the processor.
        timeout: seconds, of the call.
    """
    if why.sample_errors:
        return _bad_images(why.sample_errors, names, image_of)
    told = _TOLD.get(type(why))
    if told is None:
        return why
    cls = InvalidRequest if isinstance(why, TooLarge) else type(why)
    return cls(told(why, len(names), slots, timeout))


def _bad_images(errors: Sequence[SampleError], names: Sequence[str], image_of: Callable[[int], int]) -> SampleFailed:
    by_image = {image_of(error.index): error for error in reversed(errors)}
    bad = [replace(by_image[image], index=image, sample_id=image) for image in sorted(by_image)]
    text = "; ".join(f"{names[error.index]} ({error.source}): {error.message}" for error in bad[:_MOST_NAMED])
    if len(bad) > _MOST_NAMED:
        text += f"; and {len(bad) - _MOST_NAMED} others"
    if len(names) > 1:
        text += "; a call gives all of its images or none: leave out what is bad and call again"
    return SampleFailed(text, sample_errors=bad)


def _exhausted(why: Error, images: int, slots: int, timeout: float) -> str:
    fewer = ", or call with fewer images" if images > 1 else ""
    if isinstance(why, ResourceExhausted) and why.slot_bytes:
        room = f"slot_bytes of at least {why.slot_bytes}, or none, so that slots grow"
        return f"what is made of {'the images' if images > 1 else 'it'} does not fit a slot: give ImageProcessor.from_config {room}{fewer}"
    text = str(why).removeprefix(f"{OPENING}: ")
    if text.startswith("input ring"):
        return f"{text}; what is encoded, or given as pixels, goes through it: call with {'fewer' if images > 1 else 'smaller'} images"
    return f"{text}; here that is: give ImageProcessor.from_config fewer slots than {slots}{fewer}"


def _invalid(why: Error, images: int, slots: int, timeout: float) -> str:
    text = str(why)
    for prefix in (f"{OPENING}: ", "session: "):
        if text.startswith(prefix):
            return f"ImageProcessor.from_config: {text.removeprefix(prefix)}"
    return text


def _too_large(why: Error, images: int, slots: int, timeout: float) -> str:
    assert isinstance(why, TooLarge)
    return f"images: {images} in one call are too many: {why.excess}; call with fewer"


def _late(why: Error, images: int, slots: int, timeout: float) -> str:
    return (
        f"not finished within {timeout:g} s: the daemon was busy, or calls of other threads were before this one ({slots} at once); "
        "wait longer with timeout=, call with fewer images, or give ImageProcessor.from_config more slots"
    )


def _unavailable(why: Error, images: int, slots: int, timeout: float) -> str:
    text = str(why).removesuffix(NEXT_SESSION).replace(NAMED_BY, "with ImageProcessor.from_config(client=millrace.connect(SOCKET))")
    return f"{text}; call again once it runs: the processor opens its session by itself"


def _closed(why: Error, images: int, slots: int, timeout: float) -> str:
    return "the call was cancelled, or the processor closed during it"


def _forked(why: Error, images: int, slots: int, timeout: float) -> str:
    return (
        "this process was forked from one that was connected to the daemon, and gRPC does not survive fork(): make the processor in the "
        'child, and fork before anything connects, or start processes with the "spawn" or "forkserver" method'
    )


_TOLD: dict[type[Error], Callable[[Error, int, int, float], str]] = {
    ResourceExhausted: _exhausted,
    InvalidRequest: _invalid,
    TooLarge: _too_large,
    DeadlineExceeded: _late,
    DaemonUnavailable: _unavailable,
    Cancelled: _closed,
    Forked: _forked,
}
