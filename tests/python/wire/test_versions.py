"""Packages and daemons of different versions: what one lacks is named, never passed over in silence."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

import millrace
import pytest
from google.protobuf import descriptor_pb2
from millrace._wire import daemon_knowledge as _knowledge
from millrace._wire import messages as _messages
from millrace._wire import schema as _schema

from pictures import path_of

UNKNOWN = {("OpenSessionRequest", "job"), ("Release", "waited_ns"), ("Sample", "part"), ("ClientMessage", "list_parts")}


def newer_schema() -> dict[str, Any]:
    """The schema's messages with what this version lacks: ``Recipe.sharpen`` (500), ``Crop.diagonal`` (9), ``ON_ERROR_BLUR`` (9).

    ``Release.waited_ns``, ``OpenSessionRequest.job``, ``Sample.part`` and the message ``list_parts`` have another number (500), so that
    older daemons of this test do not know them.
    """
    schema = descriptor_pb2.FileDescriptorSet()
    schema.ParseFromString(resources.files("millrace").joinpath("_proto/schema.binpb").read_bytes())
    for file in schema.file:
        for message in file.message_type:
            if message.name == "Recipe":
                message.field.add(name="sharpen", number=500, label=1, type=descriptor_pb2.FieldDescriptorProto.TYPE_UINT32)
            for field in message.field:
                if (message.name, field.name) in UNKNOWN:
                    field.number = 500
            if message.name == "Crop":
                del message.reserved_range[:]
                message.field.add(name="diagonal", number=9, label=1, type=descriptor_pb2.FieldDescriptorProto.TYPE_UINT32, oneof_index=0)
        for enum in file.enum_type:
            if enum.name == "OnError":
                enum.value.add(name="ON_ERROR_BLUR", number=9)
    return _schema.classes_of(schema)


@pytest.fixture
def newer(monkeypatch: pytest.MonkeyPatch) -> None:
    """This package with the schema of a version to come."""
    for name, cls in newer_schema().items():
        if hasattr(_schema, name):
            monkeypatch.setattr(_schema, name, cls)


@pytest.fixture
def newer_session(newer: None, client: millrace.Client, own_size: millrace.Recipe) -> Any:
    with client.session(own_size, batch=4) as session:
        yield session


def sharpened(change: Any) -> Any:
    made = _messages.recipe_message

    def recipe_message(of: millrace.Recipe) -> Any:
        message = _schema.Recipe()
        message.CopyFrom(made(of))
        change(message)
        return message

    return recipe_message


@pytest.mark.usefixtures("newer")
def test_a_newer_package_does_without_what_the_daemon_lacks(newer_session: millrace.Session, folder: Path) -> None:
    with newer_session.get(newer_session.submit([path_of(folder, 0)])) as batch:
        assert len(batch) == 1
    assert sum(len(batch) for batch in newer_session.dataset(folder).epoch(batches=2)) == 8


@pytest.mark.usefixtures("newer")
def test_an_older_daemon_is_not_told_how_long_programs_wait(client: millrace.Client, own_size: millrace.Recipe, folder: Path) -> None:
    with client.session(own_size, batch=4, slots=1) as session:
        for number in range(3):  # the slot comes back each time
            session.get(session.submit([path_of(folder, number)])).release()
        with session.get(session.submit([path_of(folder, 3)])):
            told = next(one for one in client.statistics().sessions if one.id == session.id)
            assert told.waits_told == 0
            assert sum(told.waited_seconds.values()) == 0


@pytest.mark.usefixtures("newer")
def test_a_job_is_left_out_where_the_daemon_knows_none(client: millrace.Client, own_size: millrace.Recipe) -> None:
    with client.session(own_size, batch=4, name="without", job="unknown") as session:
        told = next(one for one in client.statistics().sessions if one.id == session.id)
    assert told.name == "without"


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda recipe: setattr(recipe, "sharpen", 3), r"Recipe\.sharpen"),
        (lambda recipe: setattr(recipe.crop, "diagonal", 3), r"Crop\.diagonal"),
    ],
)
def test_a_field_that_the_daemon_lacks_is_named(
    newer_session: millrace.Session, folder: Path, monkeypatch: pytest.MonkeyPatch, change: Any, named: str
) -> None:
    dataset = newer_session.dataset(folder)
    monkeypatch.setattr(_messages, "recipe_message", sharpened(change))
    text = rf"^millraced \d+\.\d+\.\d+ does not know {named}; update millraced, or do without it$"
    with pytest.raises(millrace.Unsupported, match=text):
        newer_session.submit([path_of(folder, 0)])
    with pytest.raises(millrace.Unsupported, match=text):
        dataset.epoch()
    with pytest.raises(millrace.FailedPrecondition, match="no submitted batch"):
        newer_session.get()


def test_parts_of_files_are_refused_where_the_daemon_knows_none(newer_session: millrace.Session, folder: Path) -> None:
    part = millrace.Part(path_of(folder, 0), 0, 9)
    with pytest.raises(millrace.Unsupported, match=r"does not know Sample\.part; update millraced"):
        newer_session.submit([part])
    with pytest.raises(millrace.Unsupported, match=r"does not know ClientMessage\.list_parts; update millraced"):
        newer_session.dataset_of([path_of(folder, 1), part])
    assert len(newer_session.dataset_of([path_of(folder, 0), path_of(folder, 1)])) == 2


def test_a_value_that_the_daemon_lacks_is_named(newer_session: millrace.Session, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_messages, "on_error_number", lambda value: 9)
    with pytest.raises(millrace.Unsupported, match=r"does not know the value ON_ERROR_BLUR of Submit\.on_error;"):
        newer_session.submit([path_of(folder, 0)])


def test_the_daemon_refuses_what_it_does_not_know(session: millrace.Session, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client of any kind that does not look at what the daemon said at open."""
    unknown_field = b"\xa0\x1f\x03"  # number 500, a varint
    monkeypatch.setattr(_messages, "recipe_message", sharpened(lambda recipe: recipe.MergeFromString(unknown_field)))
    text = r"recipe\.500: a field of Recipe that millraced \d+\.\d+\.\d+ does not know; update millraced, or leave it out"
    with pytest.raises(millrace.InvalidRequest, match=text):
        session.get(session.submit([path_of(folder, 0)]))
    with pytest.raises(millrace.InvalidRequest, match=text):
        next(session.dataset(folder).epoch())
    monkeypatch.undo()
    monkeypatch.setattr(_messages, "on_error_number", lambda value: 9)
    with pytest.raises(millrace.InvalidRequest, match=r"on_error: 9 is not a value that millraced \d+\.\d+\.\d+ knows"):
        session.get(session.submit([path_of(folder, 0)]))


def test_a_daemon_that_does_not_say_what_it_knows_is_too_old() -> None:
    with pytest.raises(millrace.FailedPrecondition, match=r"millraced 0\.0\.9 does not say what it knows"):
        _knowledge.DaemonKnowledge(_schema.OpenSessionReply(daemon_version="0.0.9"))


def test_a_daemon_of_this_version_knows_all(session: millrace.Session) -> None:
    assert session._knowledge._whole
