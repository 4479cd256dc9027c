"""Recipes with views and places of crops: what agrees, what is sent, and what an older daemon is told. Most needs no daemon."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import millrace
import pytest
from millrace import (
    Erasing,
    ExactSize,
    Normalise,
    Pad,
    Patches,
    RandomResizedCrop,
    Recipe,
    Size,
    recipes,
    steps,
)
from millrace._wire import daemon_knowledge as _knowledge
from millrace._wire import messages as _messages
from millrace._wire import schema as _schema

from pictures import png

LARGE = dataclasses.replace(Recipe.train(32), steps=(steps.Grayscale(),), erasing=Erasing(0.5))
SMALL = Recipe(resize=ExactSize(Size(24, 16)), filter="bicubic")
BOTH = Recipe.of_views(LARGE, [SMALL] * 3)


def test_views_are_the_recipes_in_their_order() -> None:
    assert BOTH.views == (LARGE, SMALL, SMALL, SMALL)
    assert Recipe.of_views([LARGE, SMALL], SMALL, (each for each in [SMALL])) == BOTH
    assert Recipe(views=[LARGE, SMALL, SMALL, SMALL]) == BOTH  # type: ignore[arg-type]
    assert Recipe.of_views(LARGE) != LARGE
    assert len(Recipe.of_views(LARGE).views) == 1
    assert pickle.loads(pickle.dumps(BOTH)) == BOTH
    assert hash(pickle.loads(pickle.dumps(BOTH))) == hash(BOTH)


def test_what_is_shared_is_the_recipes() -> None:
    shared = Recipe.of_views(view.normalised("float16") for view in BOTH.views)
    assert BOTH.normalised("float16") == shared
    assert shared.dtype == "float16"
    assert shared.normalise == Normalise()
    changed = dataclasses.replace(shared, layout="NHWC", channels="BGR", ignore_orientation=True, centre_rounding="down")
    assert {(view.layout, view.channels, view.ignore_orientation, view.centre_rounding) for view in changed.views} == {
        ("NHWC", "BGR", True, "down")
    }
    assert changed.views[0].steps == LARGE.steps
    assert shared.normalised("uint8") == BOTH


DISAGREEING: dict[str, Any] = {
    "normalise": Normalise((0.5,) * 3, (0.5,) * 3),
    "range": "raw",
    "dtype": "float32",
    "layout": "NHWC",
    "channels": "grey",
    "ignore_orientation": True,
    "centre_rounding": "down",
    "indices": True,
}


@pytest.mark.parametrize("field", DISAGREEING)
def test_a_field_in_which_they_do_not_agree_is_named(field: str) -> None:
    other = dataclasses.replace(SMALL, **{field: DISAGREEING[field]})
    with pytest.raises(millrace.InvalidRequest, match=rf"^Recipe\.of_views: {field} is the same in all views, .* in views\[2\]$"):
        Recipe.of_views(SMALL, SMALL, other)


@pytest.mark.parametrize(
    ("views", "message"),
    [
        ((), "there is no recipe"),
        (([], []), "there is no recipe"),
        ((LARGE, "crops"), "takes recipes and iterables of them, not"),
        ((LARGE, [3]), "takes recipes and iterables of them, not 3"),
        ((LARGE, BOTH), r"views\[1\] has views itself"),
        ((Recipe.thumbnail(8),), r"views\[0\] is packed"),
        ((LARGE, dataclasses.replace(SMALL, patches=Patches(Size(8, 8)))), r"views\[1\] has patches"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_no_view_is(views: Any, message: str) -> None:
    with pytest.raises(millrace.InvalidRequest, match=rf"^Recipe\.of_views: {message}"):
        Recipe.of_views(*views)


OWN: dict[str, Any] = {
    "crop": RandomResizedCrop(),
    "resize": ExactSize(Size(8, 8)),
    "filter": "box",
    "centre_crop": Size(8, 8),
    "crop_place": "random",
    "flip_probability": 0.5,
    "steps": (steps.Invert(),),
    "erasing": Erasing(0.5),
    "packing": "packed",
    "patches": Patches(Size(8, 8)),
    "pad": Pad(1),
    "random_filters": ("box", "bilinear"),
}


@pytest.mark.parametrize("field", OWN)
def test_what_is_each_views_own_is_not_said_beside_them(field: str) -> None:
    with pytest.raises(millrace.InvalidRequest, match=rf"^Recipe\.{field}: with views it is each view's own"):
        dataclasses.replace(BOTH, **{field: OWN[field]})
    everything = {one.name for one in dataclasses.fields(Recipe)}
    assert everything == {*OWN, *DISAGREEING, "views"}


def test_sizes_and_rooms() -> None:
    assert BOTH.fixed_size is None
    assert Recipe.of_views([SMALL] * 2).fixed_size == Size(24, 16)
    pixels = [5 * 3 * 32 * 32, *[5 * 3 * 24 * 16] * 3]
    assert BOTH.slot_bytes(5) == sum(-(-each // 64) * 64 for each in pixels) + 5 * millrace._memory.layout.RECORD.itemsize
    assert Recipe.of_views(SMALL, Recipe()).slot_bytes(5) is None
    grey = dataclasses.replace(Recipe.of_views(Recipe(resize=ExactSize(Size(7, 3)))), channels="grey", dtype="float16")
    assert grey.slot_bytes(3) == 128 + 3 * millrace._memory.layout.RECORD.itemsize


def test_it_says_what_it_is() -> None:
    names = {**vars(millrace), **vars(steps)}
    for recipe in (BOTH, recipes.dino(), recipes.simclr(), Recipe(centre_crop=Size(8, 8), crop_place="top_right")):
        assert eval(repr(recipe), names) == recipe
    assert repr(recipes.dino()).count("Recipe(") == 3
    assert "crop_place='random'" in repr(Recipe(centre_crop=Size(8, 8), crop_place="random"))
    assert millrace.recipe.described(recipes.dino()) == " in 2 views 224 x 224 and 8 views 96 x 96 float32"
    assert millrace.recipe.described(Recipe.of_views(SMALL, Recipe())) == " in 1 view 24 x 16 and 1 view uint8"


def test_a_place_that_does_not_exist() -> None:
    with pytest.raises(millrace.InvalidRequest, match=r"^Recipe\.crop_place: must be one of centre, top_left, .*random; is 'left'$"):
        Recipe(crop_place="left")  # type: ignore[arg-type]


def test_the_message_counts_views_that_are_alike() -> None:
    message = _messages.recipe_message(dataclasses.replace(BOTH, layout="NHWC"))

    assert [view.count for view in message.views] == [1, 3]
    assert message.layout == 2
    alone = _messages.recipe_message(dataclasses.replace(LARGE, layout="NHWC"))
    for field in ("crop", "resize", "flip_probability", "steps", "erasing"):
        assert getattr(message.views[0], field) == getattr(alone, field)
    set_in_the_recipe = {field.name for field, _ in message.ListFields()}
    assert set_in_the_recipe == {"range", "dtype", "layout", "channels", "packing", "centre_rounding", "views"}
    assert [view.count for view in _messages.recipe_message(Recipe.of_views(SMALL, LARGE, SMALL)).views] == [1, 1, 1]


def test_places_are_the_schemas() -> None:
    places = _schema.Recipe.DESCRIPTOR.fields_by_name["crop_place"].enum_type.values
    for value in places[2:]:
        recipe = Recipe(centre_crop=Size(8, 8), crop_place=value.name.removeprefix("CROP_PLACE_").lower())
        assert _messages.recipe_message(recipe).crop_place == value.number
        assert _messages.recipe_message(Recipe.of_views(recipe)).views[0].crop_place == value.number


def test_a_wrong_step_of_a_view_is_named() -> None:
    wrong = dataclasses.replace(LARGE, steps=(steps.Grayscale(), steps.Posterize("many")))  # type: ignore[arg-type]
    with pytest.raises(millrace.InvalidRequest, match=r"steps\[1\], Posterize: "):
        _messages.recipe_message(Recipe.of_views(LARGE, wrong))


def older(session: millrace.Session, *lacks: str) -> _knowledge.DaemonKnowledge:
    """What is known of a daemon without these fields of ``Recipe``."""
    numbers = {field.name: field.number for field in _schema.Recipe.DESCRIPTOR.fields}
    reply = _schema.OpenSessionReply(daemon_version="0.0.9")
    reply.vocabulary.SetInParent()
    for kind, known in (("messages", session._knowledge._fields), ("enums", session._knowledge._values)):
        for name, fields in known.items():
            entry = getattr(reply.vocabulary, kind).add()
            setattr(entry, "message" if kind == "messages" else "enumeration", name)
            entry.numbers.extend(fields - {numbers[each] for each in lacks} if name == "Recipe" else fields)
    return _knowledge.DaemonKnowledge(reply)


def test_of_an_older_daemon_it_is_said(session: millrace.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_knowledge", older(session, "views", "crop_place"))
    random = Recipe(centre_crop=Size(8, 8), crop_place="random")
    for recipe, field in ((BOTH, "views"), (random, "crop_place")):
        with pytest.raises(millrace.Unsupported, match=rf"^millraced 0\.0\.9 does not know Recipe\.{field}; update millraced"):
            session.submit([png(0)], recipe=recipe)
    assert len(session.get(session.submit([png(0)], recipe=Recipe(centre_crop=Size(8, 8))))) == 1
