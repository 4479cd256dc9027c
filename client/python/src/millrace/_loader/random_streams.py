"""Sources of random numbers that a sampler may draw from: their states as plain values, and private copies of the global ones."""

from __future__ import annotations

import base64
import contextlib
import random
import sys
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

_DEEP = 4  # samplers within samplers


def global_streams() -> dict[str, Any]:
    """The generators behind ``random.random``, ``numpy.random.rand``, and, if it is imported, ``torch.rand`` on the CPU."""
    found: dict[str, Any] = {"random": random.getstate.__self__, "numpy": np.random.get_state.__self__}  # type: ignore[attr-defined]
    torch = sys.modules.get("torch")
    if torch is not None:
        found["torch"] = torch.default_generator
    return found


def own_streams(sampler: Any) -> dict[str, Any]:
    """The generators that are attributes of a sampler, or of the sampler in its attribute ``sampler``; by name."""
    found: dict[str, Any] = {}
    shared = [id(stream) for stream in global_streams().values()]
    for depth in range(_DEEP):
        for name, value in getattr(sampler, "__dict__", {}).items():
            if _is_stream(value) and id(value) not in shared:
                found[f"{'sampler.' * depth}{name}"] = value
        sampler = getattr(sampler, "sampler", None)
    return found


def _is_stream(value: Any) -> bool:
    torch = sys.modules.get("torch")
    known = (random.Random, np.random.Generator, np.random.RandomState)
    return isinstance(value, known) or (torch is not None and isinstance(value, torch.Generator))


def state_of(stream: Any) -> Any:
    """A generator's state: numbers, texts, arrays, and dictionaries of these."""
    if isinstance(stream, random.Random):
        version, words, gauss = stream.getstate()
        return {"version": version, "words": np.array(words, np.uint32), "gauss": gauss}
    if isinstance(stream, np.random.Generator):
        return stream.bit_generator.state
    if isinstance(stream, np.random.RandomState):
        return stream.get_state(legacy=False)
    return stream.get_state().numpy()


def set_state(stream: Any, state: Any) -> None:
    """Makes a generator what ``state_of`` said. Raises ValueError, TypeError, KeyError or RuntimeError if that is of another kind."""
    if isinstance(stream, random.Random):
        stream.setstate((state["version"], tuple(state["words"].tolist()), state["gauss"]))
    elif isinstance(stream, np.random.Generator):
        stream.bit_generator.state = state
    elif isinstance(stream, np.random.RandomState):
        stream.set_state(state)
    else:
        stream.set_state(sys.modules["torch"].from_numpy(np.array(state, np.uint8)))


def states_of(streams: Mapping[str, Any]) -> dict[str, Any]:
    """The states of several."""
    return {name: state_of(stream) for name, stream in streams.items()}


class Streams:
    """Private copies of the global generators: what is drawn with them neither depends on other draws nor changes them."""

    def __init__(self, states: Mapping[str, Any] | None = None) -> None:
        """As the global ones are now, or as they were: ``states``. In the first case each of them moves on, by one number."""
        if states is None:
            _draw_of_torch()
        self.states: dict[str, Any] = states_of(global_streams()) if states is None else dict(states)
        """Where they are."""
        if states is None:
            _draw_of_the_others()

    @contextlib.contextmanager
    def drawn(self) -> Iterator[None]:
        """Within, code that draws from the global generators draws from these. No other thread should draw meanwhile."""
        before = {name: (stream, state_of(stream)) for name, stream in global_streams().items()}
        try:
            for name, (stream, _) in before.items():
                if name in self.states:
                    set_state(stream, self.states[name])
            yield
        finally:
            self.states.update({name: state_of(stream) for name, (stream, _) in before.items()})
            for stream, state in before.values():
                set_state(stream, state)


def _draw_of_the_others() -> None:
    """So that the copies of the next loop are others, where DataLoader's sampler would have drawn of them."""
    random.getrandbits(32)
    np.random.random_sample()


def _draw_of_torch() -> None:
    """As DataLoader does when a loop begins."""
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.empty((), dtype=torch.int64).random_()


def to_plain(value: Any) -> Any:
    """The same with arrays as text, for JSON."""
    if isinstance(value, np.ndarray):
        packed = base64.b64encode(zlib.compress(np.ascontiguousarray(value).tobytes(), 9)).decode("ascii")
        return {"dtype": value.dtype.str, "zlib": packed}
    if isinstance(value, Mapping):
        return {name: to_plain(inner) for name, inner in value.items()}
    if isinstance(value, np.generic):
        return value.item()
    return value


def from_plain(value: Any) -> Any:
    """What ``to_plain`` was given. Raises ValueError, TypeError or zlib.error if it is damaged."""
    if isinstance(value, Mapping):
        if value.keys() == {"dtype", "zlib"}:
            return np.frombuffer(zlib.decompress(base64.b64decode(value["zlib"])), np.dtype(value["dtype"])).copy()
        return {name: from_plain(inner) for name, inner in value.items()}
    return value
