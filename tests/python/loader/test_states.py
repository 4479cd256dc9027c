"""States of loaders that do not fit, or are none: what the error says, and what a state does not say."""

from __future__ import annotations

from typing import Any

import millrace
import numpy as np
import pytest

from folder_loaders import ids_of, make_loader  # noqa: F401, a fixture


def test_states_of_something_else(make: Any) -> None:
    loader = make(shuffle=True)
    next(iter(loader))
    state = loader.state_dict()

    for changed, told in (
        ({"batch_size": 9}, "batch_size=8, and this loader has batch_size=9: make the loader with batch_size=8"),
        ({"batch_size": 4}, "batch_size=8, and this loader has batch_size=4"),
        ({"seed": 5}, "seed=0, and this loader has seed=5"),
        ({"shuffle": False}, "shuffle=True, and this loader has shuffle=False"),
        ({"drop_last": True}, "drop_last=False, and this loader has drop_last=True"),
        ({"shard_tail": "drop"}, "shard_tail='pad', and this loader has shard_tail='drop'"),
        ({"rank": 1, "world_size": 2, "seed": 5}, "seed=0, and this loader has seed=5"),
    ):
        other = make(**{"shuffle": True, **changed})
        other.load_state_dict(state)
        with pytest.raises(millrace.FailedPrecondition) as raised:
            next(iter(other))
        assert f"load_state_dict: the state was saved with {told}" in str(raised.value)
        assert "or begin epoch 0 anew: set_epoch(0), without the state" in str(raised.value)
    with pytest.raises(millrace.FailedPrecondition, match="is of version 9, and this package reads 1 and 2"):
        other.load_state_dict({**state, "version": 9})
    for damaged, told in (
        ({"epoch": 1}, "has no 'version', 'batches', 'position': give it what state_dict"),
        ({"version": 1}, "has no 'epoch', 'batches', 'position'"),
        ({**state, "version": 2}, "has no 'order'"),
        ({**state, "version": 2, "order": {}}, r"is damaged \(its order has no 'begun'\)"),
        ({**state, "version": 2, "order": 7}, r"is damaged \(its order is none"),
        ({**state, "epoch": 1.5}, "is damaged .*'float' object.*: give it what"),
        ({**state, "position": state["position"][:-2]}, "is damaged .*: give it what"),
        ({**state, "position": "xyz"}, "is damaged .*hexadecimal.*: give it what"),
    ):
        with pytest.raises(millrace.InvalidRequest, match=f"load_state_dict: the state {told}"):
            other.load_state_dict(damaged)
    for nothing in (None, [], "state"):
        with pytest.raises(millrace.InvalidRequest, match="a state is what state_dict"):
            other.load_state_dict(nothing)


def test_numbers_and_truths_of_other_types_are_the_same(make: Any) -> None:
    loader = make(shuffle=True, seed=2)
    whole = ids_of(loader)
    loader.set_epoch(0)
    next(iter(loader))
    other = make(shuffle=np.bool_(True), seed=np.int64(2), batch_size=np.int32(8))
    other.load_state_dict(loader.state_dict())
    assert ids_of(other) == whole[8:]


def test_a_state_says_the_place_and_not_what_is_made_there(make: Any) -> None:
    loader = make(shuffle=True)
    whole = ids_of(loader)
    loader.set_epoch(0)
    next(iter(loader))
    other = make(transform=millrace.Recipe.train(24), shuffle=True)
    other.load_state_dict(loader.state_dict())
    assert ids_of(other) == whole[8:]
