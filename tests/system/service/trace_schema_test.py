#!/usr/bin/env python3
"""A recording reads with Perfetto's own schema: no field that it does not know, slices that nest, and the figures of ``millrace stats``.

trace_schema_test.py MILLRACED MILLRACE MAKE_PICTURES

Where $MILLRACE_TRACE_PROCESSOR names a trace_processor_shell, it is asked as well.
"""

from __future__ import annotations

import collections
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "support"))
from skips import skip, skip_all  # noqa: E402

try:
    from google.protobuf.unknown_fields import UnknownFieldSet
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema
except ImportError as why:
    skip_all(f"recordings by Perfetto's schema: {why}; `config/setup.sh test` makes an interpreter that has it")

IMAGES, BATCH, EPOCHS = 96, 8, 3
TOLERANCE = 0.01
"""Of seconds of a state: of the time, and at least a millisecond."""


class Row:
    """A track: its name, that of its parent, and its slices."""

    def __init__(self, name: str, parent: str) -> None:
        self.name, self.parent = name, parent
        self.open: list[dict[str, Any]] = []
        self.slices: list[dict[str, Any]] = []


@contextlib.contextmanager
def daemon(program: str, socket: str, root: str) -> Iterator[subprocess.Popen[str]]:
    environment = {**os.environ, "XDG_STATE_HOME": "/dev/null"}
    command = [program, "--socket", socket, "--root", root, "--lanes", "2"]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("listening on")
        yield process
    finally:
        process.terminate()
        process.wait()


def unknown_fields(message: Any, where: str = "") -> Iterator[str]:
    for field in UnknownFieldSet(message):
        yield f"{where}: field {field.field_number}"
    for field, value in message.ListFields():
        if field.type != field.TYPE_MESSAGE:
            continue
        for one in value if field.is_repeated else [value]:
            yield from unknown_fields(one, f"{where}.{field.name}")


def read(file: str) -> Any:
    trace = schema.Trace()
    trace.ParseFromString(Path(file).read_bytes())
    return trace


def rows_of(trace: Any) -> dict[int, Row]:
    """Checks the order that a reader relies on."""
    rows: dict[int, Row] = {}
    events = []
    for packet in trace.packet:
        assert packet.trusted_packet_sequence_id, "a packet of nobody"
        if packet.HasField("track_descriptor"):
            descriptor = packet.track_descriptor
            assert descriptor.uuid not in rows, f"two rows {descriptor.uuid}"
            parent = rows[descriptor.parent_uuid].name if descriptor.parent_uuid else ""
            name = descriptor.process.process_name or descriptor.thread.thread_name or descriptor.name
            rows[descriptor.uuid] = Row(name, parent)
        if packet.HasField("track_event"):
            assert packet.track_event.track_uuid in rows, "an event of a row that is not known yet"
            assert packet.timestamp_clock_id == schema.BUILTIN_CLOCK_MONOTONIC
            events.append((packet.timestamp, packet.track_event))
    for at, event in sorted(events, key=lambda pair: pair[0]):  # stable, as Perfetto sorts
        row = rows[event.track_uuid]
        if event.type == schema.TrackEvent.TYPE_SLICE_BEGIN:
            row.open.append({"name": event.name, "begin": at, "depth": len(row.open), "notes": notes_of(event)})
            row.slices.append(row.open[-1])
        if event.type == schema.TrackEvent.TYPE_SLICE_END:
            assert row.open, f"{row.name}: a slice ends that has not begun"
            row.open[-1]["end"] = at
            row.open[-1]["notes"] |= notes_of(event)
            row.open.pop()
    return rows


def notes_of(event: Any) -> dict[str, Any]:
    return {note.name: note.string_value or note.uint_value for note in event.debug_annotations}


def session_of(socket: str, millrace: str, least: int) -> dict[str, Any]:
    """The one session's figures, once it has had so many batches."""
    while True:
        told = json.loads(subprocess.check_output([millrace, "stats", "--json", "--socket", socket]))
        for session in told["sessions"]:
            if session["batches"] >= least:
                return dict(session)
        time.sleep(0.01)


def slices(rows: dict[int, Row], name: str, depth: int = 0) -> list[dict[str, Any]]:
    return [one for row in rows.values() if row.name.startswith(name) for one in row.slices if one["depth"] == depth]


@contextlib.contextmanager
def recorded(millrace: str, socket: str, file: str) -> Iterator[None]:
    """Everything that the daemon does meanwhile, up to its session's end."""
    process = subprocess.Popen([millrace, "trace", "600", "-o", file, "--socket", socket], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not (Path(file).exists() and Path(file).stat().st_size > 0):
        assert process.poll() is None, "it does not record"
        time.sleep(0.01)
    yield
    while not (states := slices(rows_of(read(file)), "state")) or "end" not in states[-1]:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    process.wait()


def check(rows: dict[int, Row], told: dict[str, Any]) -> None:
    for row in rows.values():
        assert not row.open, f"{row.name}: {len(row.open)} slices have no end"
    states = slices(rows, "state")
    until = states[0]["begin"] + told["seconds"] * 1e9
    seconds: collections.Counter[str] = collections.Counter()
    for one in states:
        seconds[one["name"]] += max(0, min(one["end"], until) - one["begin"]) / 1e9
    for name, expected in told["state_seconds"].items():
        assert abs(seconds[name] - expected) <= max(0.001, TOLERANCE * told["seconds"]), f"{name}: {seconds[name]} s, and stats say {expected} s"
    batches = slices(rows, "batches")
    assert sum(one["end"] <= until for one in batches) in (told["batches"], told["batches"] + 1), f"{told['batches']} batches by stats"
    assert len(batches) == EPOCHS * IMAGES // BATCH, f"{len(batches)} batches"
    assert all(one["notes"]["end"] == "handed over" for one in batches)
    images = slices(rows, "mr-lane-", depth=1)
    assert len(images) == EPOCHS * IMAGES, f"{len(images)} images"


def check_program(rows: dict[int, Row]) -> None:
    """What the program adds of itself."""
    program = collections.Counter(one["name"] for one in slices(rows, "program"))
    batches = len(slices(rows, "batches"))
    assert program == {"next": batches + EPOCHS, "hold": batches}, f"{program}"
    assert batches == EPOCHS * IMAGES // BATCH, f"{batches} batches"


def ask_trace_processor(file: str) -> None:
    shell = os.environ.get("MILLRACE_TRACE_PROCESSOR")
    if not shell:
        return skip("SQL over a recording: $MILLRACE_TRACE_PROCESSOR names no trace_processor_shell")
    query = "select count(*) from slice where name glob 'batch *'; select count(*) from slice where dur < 0; select sum(value) from stats where severity = 'error';"
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as sql:
        sql.write(query)
        sql.flush()
        answer = subprocess.run([shell, "-q", sql.name, file], capture_output=True, text=True, check=True).stdout
    numbers = [int(line) for line in answer.split() if line.lstrip("-").isdigit()]
    assert numbers == [EPOCHS * IMAGES // BATCH, 0, 0], answer


def main() -> None:
    millraced, millrace, make_pictures = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        pictures, socket = f"{folder}/pictures", f"{folder}/m.sock"
        whole, own = f"{folder}/all.pftrace", f"{folder}/run.pftrace"
        subprocess.run([make_pictures, pictures, str(IMAGES)], check=True)
        with daemon(millraced, socket, pictures), recorded(millrace, socket, whole):
            command = [millrace, "run", "--dataset", pictures, "--batch", str(BATCH), "--epochs", str(EPOCHS), "--cache", "off", "--json", "--trace", own]
            run = subprocess.Popen([*command, "--socket", socket], stdout=subprocess.DEVNULL)
            told = session_of(socket, millrace, least=EPOCHS * IMAGES // BATCH // 2)
            assert run.wait() == 0
        for trace in (read(whole), read(own)):
            assert not (unknown := sorted(set(unknown_fields(trace, "Trace")))), unknown
            assert any(packet.HasField("clock_snapshot") for packet in trace.packet)
            assert not any(packet.previous_packet_dropped for packet in trace.packet)
            print(f"{len(trace.packet)} packets read with Perfetto's schema")
        check(rows_of(read(whole)), told)
        check_program(rows_of(read(own)))
        ask_trace_processor(own)


if __name__ == "__main__":
    main()
